/* Finds the name of the known pre-tokenizer that a tokenizer.json has. A pattern can be written in
 * many ways, so behavior is compared: both split a set of texts on which the known ones differ. */
#include "text/tokenizer/internal.h"
#include "text/tokenizer/pretokenize.h"
#include "text/tokenizer/tokenizer.h"

/* Each begins with a space, since some tokenizers would add one. No capitals beyond ASCII, for
 * which llama.cpp's classes are wider (rules.c). */
static const char *const probes[] = {
    " I'll say: we've won, they'RE late; it's o'clock 'tis y'all d'accord",
    " 1 12 123 1234 12345 1234567 a1b22c333d4444 3.14159 1,000,000 x2y",
    "  two  blanks   three    four\ttab\t\ttabs \t mixed ",
    " line\nline\n\nparagraph\r\nwindows\r\n\r\n end\n \n  \n\n   x\n",
    " a/b //comment /path/to/file.txt http://example.org/?q=1&r=2#top \\back",
    " (brackets) [x] {y} <tag> \"quoted\" 'single' `code` --flag == != <= >= -> => ...!!!???",
    " fooBarBaz HTTPServer iPhone XMLHttpRequest CamelCase snake_case kebab-case ALLCAPS McX",
    " don't DON'T can't CAN'T I'm I'M he'd HE'D we'll WE'LL 'Lately 'struth 'dear",
    " na\xc3\xafve caf\xc3\xa9 \xc3\xbc"
    "ber stra\xc3\x9f"
    "e se\xc3\xb1or \xce\xb1\xce\xb2\xce\xb3 \xd0\xbf\xd1\x80\xd0\xb8\xd0\xb2\xd0\xb5\xd1\x82",
    " \xe4\xbd\xa0\xe5\xa5\xbd\xef\xbc\x8c\xe4\xb8\x96\xe7\x95\x8c\xe3\x80\x82 "
    "\xe6\xbc\xa2\xe5\xad\x97\xe3\x81\x8b\xe3\x81\xaa\xe3\x82\xab\xe3\x83\x8a "
    "\xed\x95\x9c\xea\xb5\xad\xec\x96\xb4 abc\xe4\xb8\xad\xe6\x96\x87"
    "123",
    " e\xcc\x81 combining \xe0\xa4\xa8\xe0\xa4\xae\xe0\xa4\xb8\xe0\xa5\x8d\xe0\xa4\xa4\xe0\xa5\x87 "
    "\xe0\xb8\xaa\xe0\xb8\xa7\xe0\xb8\xb1\xe0\xb8\xaa\xe0\xb8\x94\xe0\xb8\xb5",
    " \xf0\x9f\x98\x80\xf0\x9f\x91\x8d \xe2\x82\xac"
    "5 \xc2\xa3"
    "6 7\xc2\xb2 \xc2\xbd \xd9\xa1\xd9\xa2\xd9\xa3 \xe2\x80\x9cquotes\xe2\x80\x9d \xe2\x80\x94 "
    "\xe2\x80\xa6",
    " +a -b *c =d ~e ^f |g $h %i @j #k &l _m :n ;o ,p .q !r ?s",
    " a+b=c, x*y^2; f(x)={1,2,3}\n\tif (a && b) return 0;\n\t\tindent\n    four();  ",
    " word.\nword!\n\n?word\n/word/\n\"word\"\n",
};
enum { N_PROBES = sizeof probes / sizeof *probes };

/* End offsets of words, in order. */
struct ends {
    const char *text;
    struct ak_buffer list; /* of size_t */
};

static ak_status add_end(struct ends *e, size_t end, struct ak_error *error)
{
    return ak_buffer_add(&e->list, (const char *)&end, sizeof end, error);
}

static ak_status on_word(void *context, const char *word, size_t n, struct ak_error *error)
{
    struct ends *e = context;
    return add_end(e, (size_t)(word - e->text) + n, error);
}

/* Splits a probe with the tokenizer's own pre-tokenizers. */
static ak_status split_probe(const struct ak_tokenizer *t, const char *probe,
                             struct ak_tok_matcher *m, struct ends *out, struct ak_error *error)
{
    struct ak_tok_scratch w = { .capacity = 0 };
    ak_status status = ak_buffer_add(&w.text, probe, strlen(probe), error);
    if (status == AKUNU_OK)
        status = ak_tok_apply_pretokenizers(&t->pipeline->pretokenizers, 0, w.text.n, true, m, &w,
                                            error);
    for (size_t i = 0; status == AKUNU_OK && i < w.spans.n; i++)
        status = add_end(out, w.spans.list[i].end, error);
    ak_tok_scratch_free(&w);
    return status;
}

/* Whether `pre` splits all probes into the same words. */
static ak_status splits_alike(const struct ak_tok_pretokenizer *pre, const struct ends *own,
                              struct ak_tok_matcher *m, bool *out, struct ak_error *error)
{
    *out = true;
    for (int i = 0; i < N_PROBES && *out; i++) {
        struct ends known = { .text = probes[i] };
        ak_status status =
            ak_tok_pretokenize(pre, m, probes[i], strlen(probes[i]), on_word, &known, error);
        *out = status == AKUNU_OK && known.list.n == own[i].list.n &&
               memcmp(known.list.bytes, own[i].list.bytes, known.list.n) == 0;
        ak_free(known.list.bytes);
        AK_TRY(status);
    }
    return AKUNU_OK;
}

static ak_status find_rule_name(const struct ak_tokenizer *t, const struct ends *own,
                                struct ak_tok_matcher *m, struct ak_text *out,
                                struct ak_error *error)
{
    for (const struct ak_tok_pre_rule *rule = ak_tok_pre_rules; rule->names; rule++) {
        struct ak_text name = { rule->names + 1, (uint32_t)strcspn(rule->names + 1, " ") };
        struct ak_tok_pretokenizer *pre;
        bool same;
        if (rule->ignore_merges != t->ignore_merges)
            continue;
        AK_TRY(ak_tok_pretokenizer_create(name, &pre, error));
        ak_status status = splits_alike(pre, own, m, &same, error);
        ak_tok_pretokenizer_free(pre);
        AK_TRY(status);
        if (same) {
            *out = name;
            return AKUNU_OK;
        }
    }
    return AKUNU_OK;
}

ak_status ak_tok_find_pre_name(const struct ak_tokenizer *t, struct ak_text *out,
                               struct ak_error *error)
{
    struct ends own[N_PROBES];
    struct ak_tok_matcher *m;
    *out = (struct ak_text){ NULL, 0 };
    memset(own, 0, sizeof own);
    AK_TRY(ak_tok_matcher_create(&m, error));
    ak_status status = AKUNU_OK;
    for (int i = 0; i < N_PROBES && status == AKUNU_OK; i++)
        status = split_probe(t, probes[i], m, &own[i], error);
    if (status == AKUNU_OK)
        status = find_rule_name(t, own, m, out, error);
    for (int i = 0; i < N_PROBES; i++)
        ak_free(own[i].list.bytes);
    ak_tok_matcher_free(m);
    return status;
}
