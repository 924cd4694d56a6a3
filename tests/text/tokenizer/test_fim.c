/* Fill-in-the-middle: which tokens are the markers, and the order of a prompt in each family. The
 * orders are those of the models' own documentation. */
#include "tests/test.h"
#include <stdio.h>
#include <string.h>

#include "text/tokenizer/tokenizer.h"

enum { MAX_IDS = 64, MAX_TOKENS = 16, NORMAL = 1, UNKNOWN = 2, CONTROL = 3, ADDED = 4 };

/* A vocabulary of the letters a to d, ids 0 to 3, and of up to 12 more tokens of one type. */
struct by_hand {
    struct ak_vocab vocab;
    struct ak_text tokens[MAX_TOKENS];
    int32_t types[MAX_TOKENS];
    int64_t fim[AK_VOCAB_FIM_COUNT];
};

static struct ak_text text_of(const char *string)
{
    return (struct ak_text){ string, (uint32_t)strlen(string) };
}

static void begin(struct by_hand *v, const char *const *more, int32_t type)
{
    static const char *const letters[] = { "a", "b", "c", "d" };
    v->vocab = ak_vocab_none;
    v->vocab.model = text_of("gpt2");
    v->vocab.pre = text_of("gpt-2");
    v->vocab.tokens = v->tokens;
    v->vocab.types = v->types;
    v->vocab.merges = v->tokens; /* none */
    v->vocab.add_bos = 0;
    for (uint32_t i = 0; i < 4; i++)
        v->tokens[v->vocab.n_tokens++] = text_of(letters[i]);
    for (; *more; more++)
        v->tokens[v->vocab.n_tokens++] = text_of(*more);
    ck_assert_uint_le(v->vocab.n_tokens, MAX_TOKENS);
    for (uint32_t i = 0; i < v->vocab.n_tokens; i++)
        v->types[i] = i < 4 ? NORMAL : type;
    for (int i = 0; i < AK_VOCAB_FIM_COUNT; i++)
        v->fim[i] = -1;
}

static struct ak_tokenizer *create(const struct by_hand *v)
{
    struct ak_tokenizer *t;
    struct ak_error error = { 0 };
    ck_assert_msg(ak_tok_create(&v->vocab, &t, &error) == AKUNU_OK, "%s", error.message);
    return t;
}

/* The prompt of a prefix and a suffix as "4 0 1". */
static const char *prompt(const struct ak_tokenizer *t, struct ak_tok_infill *infill,
                          const char *prefix, const char *suffix)
{
    static char out[1024];
    int32_t ids[MAX_IDS];
    struct ak_error error = { 0 };
    size_t n = 0, at = 0;
    infill->prefix = text_of(prefix);
    infill->suffix = text_of(suffix);
    ck_assert_msg(ak_tok_encode_infill(t, infill, ids, MAX_IDS, &n, &error) == AKUNU_OK, "%s",
                  error.message);
    ck_assert_uint_le(n, MAX_IDS);
    out[0] = '\0';
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(out + at, sizeof out - at, i ? " %d" : "%d", (int)ids[i]);
    return out;
}

static const char *in_order(const struct ak_tokenizer *t, bool suffix_first)
{
    struct ak_tok_infill infill = { .suffix_first = suffix_first };
    return prompt(t, &infill, "ab", "cd");
}

/* ---- Order -------------------------------------------------------------- */
/* Prefix 4, suffix 5, middle 6. */
START_TEST(order_of_families)
{
    static const char first[] = "4 0 1 5 2 3 6", second[] = "5 2 3 4 0 1 6";
    static const struct {
        const char *markers[4], *usual, *suffix_first;
    } families[] = {
        { { "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>" }, first, second },
        { { "<fim_prefix>", "<fim_suffix>", "<fim_middle>" }, first, second },
        { { "<fim-prefix>", "<fim-suffix>", "<fim-middle>" }, first, second },
        { { "<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>" }, first, second },
        { { "▁<PRE>", "▁<SUF>", "▁<MID>" }, first, "4 5 2 3 6 0 1" },
        { { "<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>" }, first, second },
        { { "<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>" }, second, second },
        { { "[PREFIX]", "[SUFFIX]" }, "5 2 3 4 0 1", "5 2 3 4 0 1" },
    };
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        for (int32_t type = CONTROL; type <= ADDED; type++) {
            struct by_hand v = { .types = { 0 } };
            begin(&v, families[i].markers, type);
            struct ak_tokenizer *t = create(&v);
            ck_assert_str_eq(in_order(t, false), families[i].usual);
            ck_assert_str_eq(in_order(t, true), families[i].suffix_first);
            ak_tok_free(t);
        }
}
END_TEST

START_TEST(beginning_and_empty_texts)
{
    static const char *const more[] = { "<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<s>",
                                        NULL };
    struct by_hand v = { .types = { 0 } };
    struct ak_tok_infill infill = { .max_tokens = 0 };
    begin(&v, more, CONTROL);
    v.vocab.bos = v.vocab.eos = 7;
    v.vocab.add_bos = v.vocab.add_eos = 1; /* nothing follows the prompt */
    struct ak_tokenizer *t = create(&v);
    ck_assert_str_eq(in_order(t, false), "7 4 0 1 5 2 3 6");
    ck_assert_str_eq(in_order(t, true), "7 5 2 3 4 0 1 6");
    ck_assert_str_eq(prompt(t, &infill, "", "d"), "7 4 5 3 6");
    ck_assert_str_eq(prompt(t, &infill, "d", ""), "7 4 3 5 6");
    ak_tok_free(t);
}
END_TEST

/* Only the prefix begins a text: no space is put before the suffix. */
START_TEST(space_of_sentencepiece)
{
    static const char *const more[] = {
        "▁<PRE>", "▁<SUF>", "▁<MID>", "▁", "<unk>", "▁a", "▁c", NULL
    };
    static const float scores[MAX_TOKENS] = { -9, -9, -9, -9, 0, 0, 0, -9, 0, -1, -1 };
    struct by_hand v = { .types = { 0 } };
    struct ak_tok_infill infill = { .max_tokens = 0 };
    begin(&v, more, CONTROL);
    v.vocab.model = text_of("llama");
    v.vocab.scores = scores;
    v.vocab.add_space_prefix = 1;
    v.vocab.unknown = 8;
    v.types[7] = v.types[9] = v.types[10] = NORMAL;
    v.types[8] = UNKNOWN;
    struct ak_tokenizer *t = create(&v);
    ck_assert_str_eq(prompt(t, &infill, "ab", "cd"), "4 9 1 5 2 3 6");
    ck_assert_str_eq(prompt(t, &infill, "ab", " cd"), "4 9 1 5 10 3 6");
    ak_tok_free(t);
}
END_TEST

/* ---- The tokens --------------------------------------------------------- */
START_TEST(ids_of_the_file)
{
    static const char *const more[] = { "<x>",          "<y>",          "<z>",
                                        "<fim_prefix>", "<fim_suffix>", "<fim_middle>",
                                        "<file_sep>",   "<fim_pad>",    NULL };
    struct by_hand v = { .types = { 0 } };
    begin(&v, more, CONTROL);
    v.vocab.fim = v.fim;
    v.fim[AK_VOCAB_FIM_PREFIX] = 4;
    v.fim[AK_VOCAB_FIM_SUFFIX] = 5;
    v.fim[AK_VOCAB_FIM_MIDDLE] = 6;
    struct ak_tokenizer *t = create(&v);
    ck_assert_str_eq(in_order(t, false), "4 0 1 5 2 3 6"); /* the file's win */
    ck_assert_int_eq(ak_tok_fim(t, AK_VOCAB_FIM_FILE), 10);
    ck_assert_int_eq(ak_tok_fim(t, AK_VOCAB_FIM_PAD), 11);
    ck_assert_int_eq(ak_tok_fim(t, AK_VOCAB_FIM_REPO), -1);
    ak_tok_free(t);
}
END_TEST

/* What follows a file ends the middle; the markers do not. */
START_TEST(ends_of_the_middle)
{
    static const char *const more[] = { "<|fim_prefix|>",
                                        "<|fim_suffix|>",
                                        "<|fim_middle|>",
                                        "<|fim_pad|>",
                                        "<|repo_name|>",
                                        "<|file_separator|>",
                                        NULL };
    for (int32_t type = CONTROL; type <= ADDED; type++) {
        struct by_hand v = { .types = { 0 } };
        begin(&v, more, type);
        struct ak_tokenizer *t = create(&v);
        for (int32_t id = 0; id < 10; id++)
            ck_assert_msg(ak_tok_is_end(t, id) == (id >= 7), "token %d", (int)id);
        ak_tok_free(t);
    }
}
END_TEST

static void check_refused(const char *const *more)
{
    struct by_hand v = { .types = { 0 } };
    struct ak_tok_infill infill = { .prefix = { "a", 1 } };
    struct ak_error error = { 0 };
    int32_t ids[8];
    size_t n;
    begin(&v, more, CONTROL);
    struct ak_tokenizer *t = create(&v);
    ck_assert_int_eq(ak_tok_encode_infill(t, &infill, ids, 8, &n, &error), AKUNU_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(error.message, "tokenizer.ggml.fim_pre_token_id"));
    ck_assert_ptr_nonnull(strstr(error.message, "<|fim_prefix|>, <fim_prefix>, <fim-prefix>"));
    ck_assert_ptr_nonnull(strstr(error.message, "[PREFIX]"));
    ak_tok_free(t);
}

START_TEST(no_such_tokens)
{
    check_refused((const char *const[]){ "<|im_end|>", NULL });
    check_refused((const char *const[]){ "<|fim_prefix|>", "<|fim_suffix|>", NULL });
    check_refused((const char *const[]){ "<|fim_prefix|>", "<fim_suffix>", "<fim_middle>", NULL });
}
END_TEST

/* Code about these tokens has them as text, also if the vocabulary matches them in any text. */
START_TEST(markers_in_the_text)
{
    static const char *const more[] = { "<|fim_prefix|>", "<|fim_suffix|>",
                                        "<|fim_middle|>", "<",
                                        "|fim_prefix|>",  NULL };
    struct ak_tok_infill infill = { .max_tokens = 0 };
    for (int32_t type = CONTROL; type <= ADDED; type++) {
        struct by_hand v = { .types = { 0 } };
        int n_markers = 0;
        begin(&v, more, type);
        v.types[7] = v.types[8] = ADDED; /* so that they are matched */
        struct ak_tokenizer *t = create(&v);
        const char *ids = prompt(t, &infill, "a<|fim_prefix|>b", "c<|fim_prefix|>");
        ck_assert_str_eq(ids, "4 0 7 8 1 5 2 7 8 6");
        for (const char *at = ids; (at = strchr(at, '4')) != NULL; at++)
            n_markers++;
        ck_assert_int_eq(n_markers, 1);
        ak_tok_free(t);
    }
}
END_TEST

/* As Qwen's folders have them: added tokens that are not special. */
START_TEST(tokenizer_json)
{
    static const char json[] =
        "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"c\": 2, \"d\": 3}, "
        "\"merges\": []}, \"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": "
        "false}, \"decoder\": {\"type\": \"ByteLevel\"}, \"added_tokens\": ["
        "{\"id\": 4, \"content\": \"<|fim_prefix|>\", \"special\": false, \"normalized\": true}, "
        "{\"id\": 5, \"content\": \"<|fim_suffix|>\", \"special\": false}, "
        "{\"id\": 6, \"content\": \"<|fim_middle|>\", \"special\": true}, "
        "{\"id\": 7, \"content\": \"<|file_sep|>\", \"special\": false, \"normalized\": false}]}";
    const struct ak_tok_files files = { .tokenizer = text_of(json) };
    struct ak_tokenizer *t;
    struct ak_error error = { 0 };
    ck_assert_msg(ak_tok_from_json(&files, &t, &error) == AKUNU_OK, "%s", error.message);
    ck_assert_str_eq(in_order(t, false), "4 0 1 5 2 3 6");
    ck_assert_int_eq(ak_tok_fim(t, AK_VOCAB_FIM_FILE), 7);
    ck_assert(ak_tok_is_end(t, 7));
    ak_tok_free(t);
}
END_TEST

/* ---- Length ------------------------------------------------------------- */
START_TEST(too_long)
{
    static const char *const more[] = { "<fim_prefix>", "<fim_suffix>", "<fim_middle>", NULL };
    static const struct {
        const char *prefix, *suffix;
        size_t max_tokens, n_prefix, n_suffix;
        const char *ids;
    } cases[] = {
        { "aaaabbbb", "ccccdddd", 19, 0, 0, "4 0 0 0 0 1 1 1 1 5 2 2 2 2 3 3 3 3 6" },
        { "aaaabbbb", "ccccdddd", 11, 2, 6, "4 0 0 1 1 1 1 5 2 2 6" },
        { "aaaabbbb", "cd", 11, 2, 0, "4 0 0 1 1 1 1 5 2 3 6" },
        { "aaaabbbb", "c", 11, 1, 0, "4 0 0 0 1 1 1 1 5 2 6" },
        { "ab", "ccccdddd", 11, 0, 2, "4 0 1 5 2 2 2 2 3 3 6" },
        { "aaaabbbb", "ccccdddd", 4, 7, 8, "4 1 5 6" },
        { "aaaabbbb", "ccccdddd", 3, 8, 8, "4 5 6" },
    };
    struct by_hand v = { .types = { 0 } };
    struct ak_error error = { 0 };
    begin(&v, more, CONTROL);
    struct ak_tokenizer *t = create(&v);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ak_tok_infill infill = { .max_tokens = cases[i].max_tokens };
        ck_assert_str_eq(prompt(t, &infill, cases[i].prefix, cases[i].suffix), cases[i].ids);
        ck_assert_uint_eq(infill.n_prefix_dropped, cases[i].n_prefix);
        ck_assert_uint_eq(infill.n_suffix_dropped, cases[i].n_suffix);
    }
    struct ak_tok_infill infill = { .prefix = { "a", 1 }, .max_tokens = 2 };
    size_t n;
    ck_assert_int_eq(ak_tok_encode_infill(t, &infill, NULL, 0, &n, &error), AKUNU_ERROR_CONTEXT);
    infill.max_tokens = 0; /* counts without writing */
    ck_assert_int_eq(ak_tok_encode_infill(t, &infill, NULL, 0, &n, &error), AKUNU_OK);
    ck_assert_uint_eq(n, 4);
    ak_tok_free(t);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("fim");
    TCase *c = tcase_create("fim");
    tcase_add_test(c, order_of_families);
    tcase_add_test(c, beginning_and_empty_texts);
    tcase_add_test(c, space_of_sentencepiece);
    tcase_add_test(c, ids_of_the_file);
    tcase_add_test(c, ends_of_the_middle);
    tcase_add_test(c, no_such_tokens);
    tcase_add_test(c, markers_in_the_text);
    tcase_add_test(c, tokenizer_json);
    tcase_add_test(c, too_long);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return test_run(suite());
}
