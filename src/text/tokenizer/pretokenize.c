/* Pre-tokenizer of byte-level BPE: looks its patterns up by name (rules.c) and applies them. */
#include "text/tokenizer/pretokenize.h"

#include <string.h>

#include "base/mem.h"

struct ak_tok_pretokenizer {
    const struct ak_tok_pre_rule *rule;
    struct ak_tok_regex *patterns[AK_TOK_PATTERNS_MAX];
    unsigned n_patterns;
};

static bool is_among(struct ak_text name, const char *names)
{
    char wanted[64];

    if (name.n == 0 || name.n + 3 > sizeof wanted || memchr(name.bytes, ' ', name.n) ||
        memchr(name.bytes, '\0', name.n))
        return false;
    wanted[0] = ' ';
    memcpy(wanted + 1, name.bytes, name.n);
    memcpy(wanted + 1 + name.n, " ", 2);
    return strstr(names, wanted) != NULL;
}

static const struct ak_tok_pre_rule *find_rule(struct ak_text name)
{
    const struct ak_tok_pre_rule *rule = ak_tok_pre_rules;

    while (name.n > 0 && rule->names && !is_among(name, rule->names))
        rule++;
    return rule->names ? rule : NULL;
}

const struct ak_tok_char_rule *ak_tok_find_char_rule(struct ak_text name)
{
    const struct ak_tok_char_rule *rule = ak_tok_char_rules;

    while (rule->names && !is_among(name, rule->names))
        rule++;
    return rule->names ? rule : NULL;
}

/* Lists the first name of each rule; other names of a rule split alike. */
static ak_status fail_unknown_name(struct ak_text name, struct ak_error *error)
{
    char known[400] = "";
    size_t n = 0;

    for (const struct ak_tok_pre_rule *rule = ak_tok_pre_rules; rule->names; rule++) {
        size_t length = strcspn(rule->names + 1, " ") + 1;
        if (n + length >= sizeof known)
            break;
        memcpy(known + n, rule->names, length);
        n += length;
    }
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                   "the pre-tokenizer '%.*s' (tokenizer.ggml.pre) is not known. Where the model "
                   "splits words as a known one does, "
                   "--override-kv tokenizer.ggml.pre=str:NAME serves; NAME is one of:%s",
                   (int)(name.n < 64 ? name.n : 64), name.bytes, known);
}

static ak_status fill_pretokenizer(struct ak_tok_pretokenizer *p, struct ak_text name,
                                   struct ak_error *error)
{
    p->rule = find_rule(name);
    if (!p->rule)
        return fail_unknown_name(name, error);
    for (unsigned i = 0; i < AK_TOK_PATTERNS_MAX && p->rule->patterns[i]; i++) {
        struct ak_text pattern = { p->rule->patterns[i], (uint32_t)strlen(p->rule->patterns[i]) };
        AK_TRY(ak_tok_regex_compile(pattern, false, &p->patterns[i], error));
        p->n_patterns++;
    }
    return AKUNU_OK;
}

ak_status ak_tok_pretokenizer_create(struct ak_text name, struct ak_tok_pretokenizer **out,
                                     struct ak_error *error)
{
    struct ak_tok_pretokenizer *p = ak_alloc(1, sizeof *p);

    *out = NULL;
    if (!p)
        return ak_fail_memory(error, "the pre-tokenizer", sizeof *p);
    ak_status status = fill_pretokenizer(p, name, error);
    if (status != AKUNU_OK) {
        ak_tok_pretokenizer_free(p);
        return status;
    }
    *out = p;
    return AKUNU_OK;
}

void ak_tok_pretokenizer_free(struct ak_tok_pretokenizer *p)
{
    if (!p)
        return;
    for (unsigned i = 0; i < p->n_patterns; i++)
        ak_tok_regex_free(p->patterns[i]);
    ak_free(p);
}

uint64_t ak_tok_pretokenizer_memory(const struct ak_tok_pretokenizer *p)
{
    uint64_t bytes = sizeof *p;

    for (unsigned i = 0; i < p->n_patterns; i++)
        bytes += ak_tok_regex_memory(p->patterns[i]);
    return bytes;
}

bool ak_tok_pretokenizer_adds_bos(const struct ak_tok_pretokenizer *p)
{
    return p->rule->adds_bos;
}

bool ak_tok_pretokenizer_ignores_merges(const struct ak_tok_pretokenizer *p)
{
    return p->rule->ignore_merges;
}

/* A text and the subject that patterns match (ak_tok_matcher_prepare). */
struct splitter {
    const struct ak_tok_pretokenizer *p;
    struct ak_tok_matcher *matcher;
    const char *text, *subject;
    ak_tok_word_fn *fn;
    void *context;
    struct ak_error *error;
};

/* Splits [begin, end) by pattern `level`, and each part by the patterns after it. */
static ak_status split_range(const struct splitter *k, unsigned level, size_t begin, size_t end)
{
    if (begin == end)
        return AKUNU_OK;
    if (level == k->p->n_patterns)
        return k->fn(k->context, k->text + begin, end - begin, k->error);
    size_t n = end - begin, at = 0, from, to;
    while (at < n) {
        /* Match the range as a subject of its own, so that (?!…) sees its end. */
        AK_TRY(ak_tok_regex_find(k->p->patterns[level], k->matcher, k->subject + begin, n, at,
                                 false, &from, &to, k->error));
        if (from == SIZE_MAX)
            break;
        AK_TRY(split_range(k, level + 1, begin + at, begin + from));
        AK_TRY(split_range(k, level + 1, begin + from, begin + to));
        at = to;
    }
    return split_range(k, level + 1, begin + at, end);
}

ak_status ak_tok_pretokenize(const struct ak_tok_pretokenizer *p, struct ak_tok_matcher *matcher,
                             const char *text, size_t n, ak_tok_word_fn *fn, void *context,
                             struct ak_error *error)
{
    struct splitter k = { p, matcher, text, text, fn, context, error };

    AK_TRY(ak_tok_matcher_prepare(matcher, text, n, &k.subject, error));
    return split_range(&k, 0, 0, n);
}
