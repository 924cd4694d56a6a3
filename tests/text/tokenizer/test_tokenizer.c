/* Tokenizers from GGUF vocabularies. The tables and who answered
 * them: tests/golden/tokenizer.py. */
#include "tests/test.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/tokenizer/pretokenize.h"
#include "text/tokenizer/tokenizer.h"

enum { MAX_IDS = 4096, MAX_BYTES = 4096 };

/* ---- Vocabularies ------------------------------------------------------- */
static const char *data_path(const char *name, const char *ending)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/tokenizer/%s%s", getenv("AK_TEST_DATA"), name, ending);
    return path;
}

static struct ak_provider *open_provider(const char *path, struct ak_vocab *vocab)
{
    struct ak_provider *provider;
    struct ak_error error = { 0 };

    ck_assert_msg(ak_provider_open(path, &provider, &error) == AKUNU_OK, "%s", error.message);
    ck_assert_msg(ak_provider_vocab(provider, vocab, &error) == AKUNU_OK, "%s", error.message);
    return provider;
}

static struct ak_tokenizer *create(const struct ak_vocab *vocab)
{
    struct ak_tokenizer *t;
    struct ak_error error = { 0 };

    ck_assert_msg(ak_tok_create(vocab, &t, &error) == AKUNU_OK, "%s", error.message);
    return t;
}

static struct ak_text text_of(const char *string)
{
    return (struct ak_text){ string, (uint32_t)strlen(string) };
}

/* The vocabulary of a file of ours, with another pre-tokenizer's name if pre. */
static struct ak_tokenizer *load(const char *file, const char *pre)
{
    struct ak_vocab vocab;
    struct ak_provider *provider = open_provider(data_path(file, ".gguf"), &vocab);

    if (pre)
        vocab.pre = text_of(pre);
    struct ak_tokenizer *t = create(&vocab);
    ak_provider_close(provider); /* the tokenizer needs nothing of it */
    return t;
}

/* ---- Tables ------------------------------------------------------------- */
static size_t tokenize(struct ak_tokenizer *t, const char *text, size_t n, unsigned flags,
                       int32_t *ids, size_t capacity)
{
    struct ak_error error = { 0 };
    size_t n_ids;

    ck_assert_msg(ak_tok_encode(t, text, n, flags, ids, capacity, &n_ids, &error) == AKUNU_OK, "%s",
                  error.message);
    return n_ids;
}

static size_t detokenize(struct ak_tokenizer *t, const int32_t *ids, size_t n_ids, unsigned flags,
                         char *text, size_t capacity)
{
    struct ak_error error = { 0 };
    size_t n;

    ck_assert_msg(ak_tok_decode(t, ids, n_ids, flags, text, capacity, &n, &error) == AKUNU_OK, "%s",
                  error.message);
    return n;
}

/* Undoes \xNN in place and gives the number of bytes. */
static size_t unescape(char *s)
{
    char *out = s, *begin = s;

    while (*s) {
        if (*s == '\\') {
            char hex[3] = { s[2], s[3], '\0' };
            *out++ = (char)strtol(hex, NULL, 16);
            s += 4;
        } else {
            *out++ = *s++;
        }
    }
    return (size_t)(out - begin);
}

static void check_ids(struct ak_tokenizer *t, const char *text, size_t n, unsigned flags,
                      const char *want, const char *row)
{
    int32_t ids[MAX_IDS];
    char got[MAX_IDS * 8] = "";
    size_t n_ids = tokenize(t, text, n, flags, ids, MAX_IDS), at = 0;

    for (size_t i = 0; i < n_ids; i++)
        at += (size_t)snprintf(got + at, sizeof got - at, i ? " %d" : "%d", ids[i]);
    ck_assert_msg(strcmp(got, want) == 0, "row %s\n got %s\nwant %s", row, got, want);
}

static void check_text(struct ak_tokenizer *t, const char *ids, unsigned flags, const char *want,
                       size_t n_want, const char *row)
{
    int32_t numbers[MAX_IDS];
    char got[MAX_BYTES], *end = NULL;
    size_t n = 0;

    for (const char *at = ids; *at; at = end)
        numbers[n++] = (int32_t)strtol(at, &end, 10);
    size_t n_got = detokenize(t, numbers, n, flags, got, sizeof got);
    ck_assert_msg(n_got == n_want && memcmp(got, want, n_got) == 0, "row %s: got '%.*s', %zu bytes",
                  row, (int)n_got, got, n_got);
}

/* The five columns as in tests/golden/tokenizer.py. */
static void check_row(struct ak_tokenizer *t, char *line)
{
    char *column[5], *row = strdup(line), *rest = line;

    for (int i = 0; i < 5; i++)
        column[i] = strsep(&rest, "\t");
    ck_assert_ptr_nonnull(column[4]);
    const char *ids = column[1], *plain = strcmp(column[2], "=") ? column[2] : ids;
    size_t n = unescape(column[0]), n_decoded, n_skipped;
    bool same = strcmp(column[3], "=") == 0, same_skipped = strcmp(column[4], "=") == 0;
    n_decoded = same ? n : unescape(column[3]);
    const char *decoded = same ? column[0] : column[3];
    n_skipped = same_skipped ? n_decoded : unescape(column[4]);
    const char *skipped = same_skipped ? decoded : column[4];

    check_ids(t, column[0], n, AKUNU_PARSE_SPECIAL, ids, row);
    check_ids(t, column[0], n, 0, plain, row);
    check_text(t, ids, 0, decoded, n_decoded, row);
    if (strcmp(skipped, "-") != 0)
        check_text(t, ids, AKUNU_SKIP_SPECIAL, skipped, n_skipped, row);
    free(row);
}

static void check_table(struct ak_tokenizer *t, const char *name)
{
    char *line = NULL;
    size_t capacity = 0;
    int rows = 0;
    FILE *file = fopen(data_path(name, ".tsv"), "r");

    ck_assert_msg(file != NULL, "%s.tsv is missing", name);
    while (getline(&line, &capacity, file) > 0) {
        line[strcspn(line, "\n")] = '\0';
        check_row(t, line);
        rows++;
    }
    ck_assert_int_ge(rows, 20);
    free(line);
    fclose(file);
}

/* The pre-tokenizers over one vocabulary that merges across their cuts, and
 * SentencePiece. */
static const struct {
    const char *file, *pre, *table;
} tables[] = {
    { "llama", NULL, "llama" },
    { "cuts", "gpt-2", "gpt-2" },
    { "cuts", "smollm", "smollm" },
    { "cuts", "qwen2", "qwen2" },
    /* other names of the same */
    { "cuts", "default", "default" },
    { "cuts", "llama-bpe", "llama-bpe" },
    { "cuts", "", "default" },
    { "cuts", "llama3", "llama-bpe" },
    { "cuts", "llama-v3", "llama-bpe" },
};
enum { N_DISTINCT = 6 };
enum { N_TABLES = sizeof tables / sizeof tables[0] };

START_TEST(same_ids_and_text)
{
    struct ak_tokenizer *t = load(tables[_i].file, tables[_i].pre);

    check_table(t, tables[_i].table);
    ak_tok_free(t);
}
END_TEST

static void check_long(struct ak_tokenizer *t, const char *part, size_t n);

/* Tables of a name, a text and ids: `name` is a file's, or a pre-tokenizer's over a vocabulary. */
static void check_named(const char *table, const char *over, unsigned flags, int min_rows)
{
    struct ak_tokenizer *t = NULL;
    char *line = NULL, last[64] = "";
    size_t capacity = 0;
    int rows = 0;
    FILE *file = fopen(data_path(table, ".tsv"), "r");

    ck_assert_msg(file != NULL, "%s.tsv is missing", table);
    while (getline(&line, &capacity, file) > 0) {
        char *rest = line;
        line[strcspn(line, "\n")] = '\0';
        const char *name = strsep(&rest, "\t");
        char *text = strsep(&rest, "\t");
        if (strcmp(name, last) != 0) {
            ak_tok_free(t);
            t = over ? load(over, name) : load(name, NULL);
            snprintf(last, sizeof last, "%s", name);
        }
        size_t n = unescape(text);
        check_ids(t, text, n, flags, rest, name);
        rows++;
    }
    ck_assert_int_ge(rows, min_rows);
    ak_tok_free(t);
    free(line);
    fclose(file);
}

/* One name a rule, as tests/golden/pretokenizers.py wrote them. */
START_TEST(every_rule)
{
    check_named("rules", "cuts", AKUNU_PARSE_SPECIAL, 300);
}
END_TEST

/* WordPiece and Unigram of GGUF: tests/golden/pipelines.py. */
START_TEST(bert_and_t5)
{
    check_named("pipelines", NULL, AKUNU_PARSE_SPECIAL | AKUNU_ADD_SPECIAL, 30);
}
END_TEST

/* BPE over characters: tests/golden/raw_bpe.py. */
START_TEST(characters)
{
    check_named("raw", "raw", AKUNU_PARSE_SPECIAL | AKUNU_ADD_SPECIAL, 30);
    check_named("whitespace", NULL, AKUNU_PARSE_SPECIAL | AKUNU_ADD_SPECIAL, 15);
}
END_TEST

START_TEST(wordpiece_and_unigram_texts)
{
    static const char *const files[] = { "wordpiece", "unigram" };
    static const char hello[] = "hello, world's end.";

    for (int i = 0; i < 2; i++) {
        struct ak_tokenizer *t = load(files[i], NULL);
        int32_t ids[64];
        char text[64];
        size_t n = tokenize(t, hello, sizeof hello - 1, 0, ids, 64);
        const char *want = i == 0 ? "hello, world ' s end." : hello;
        ck_assert_uint_eq(detokenize(t, ids, n, 0, text, sizeof text), strlen(want));
        ck_assert_mem_eq(text, want, strlen(want));
        ak_tok_free(t);
    }
}
END_TEST

START_TEST(pipelines_take_linear_time)
{
    static const char *const files[] = { "wordpiece", "unigram" };
    static const char *const parts[] = { "a",        " ",    "1", "\xC3\xA9",
                                         "\xCC\x81", "\xFF", "!", "\xE6\xBC\xA2",
                                         "the " };

    for (int i = 0; i < 2; i++) {
        struct ak_tokenizer *t = load(files[i], NULL);
        for (size_t k = 0; k < sizeof parts / sizeof parts[0]; k++) {
            size_t n = 1 << 20, length = strlen(parts[k]);
            char *text = malloc(n);
            for (size_t at = 0; at < n; at++)
                text[at] = parts[k][at % length];
            ck_assert_uint_le(tokenize(t, text, n, AKUNU_PARSE_SPECIAL, NULL, 0), n + 1);
            free(text);
        }
        ak_tok_free(t);
    }
}
END_TEST

/* A megabyte of one letter, digit, space, mark, for every rule. */
START_TEST(every_rule_takes_linear_time)
{
    static const char *const parts[] = { "a",         "A",  "1",        " ",
                                         "\n",        "!",  "\xC3\xA9", "\xE6\xBC\xA2",
                                         "aB",        "a ", "'",        "\xCC\x81",
                                         "<sentinel:" };

    for (const struct ak_tok_pre_rule *rule = ak_tok_pre_rules; rule->names; rule++) {
        char name[64] = "";
        memcpy(name, rule->names + 1, strcspn(rule->names + 1, " "));
        struct ak_tokenizer *t = load("cuts", name);
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
            check_long(t, parts[i], 50000);
        ak_tok_free(t);
    }
}
END_TEST

START_TEST(real_vocabulary) /* 49152 tokens, 48900 merges */
{
    char path[4096];
    struct ak_vocab vocab;
    const char *models = getenv("AK_TEST_MODELS"), *required = getenv("AKUNU_REQUIRE_MODEL");

    snprintf(path, sizeof path, "%s/SmolLM2-135M-Instruct.Q4_1.gguf", models ? models : "");
    FILE *file = fopen(path, "rb");
    if (!file) {
        ck_assert_msg(!required || strcmp(required, "1") != 0, "%s is missing", path);
        return;
    }
    fclose(file);
    struct ak_provider *provider = open_provider(path, &vocab);
    struct ak_tokenizer *t = create(&vocab);
    ak_provider_close(provider);
    check_table(t, "smollm2");
    ck_assert_uint_eq(ak_tok_n_tokens(t), 49152);
    ck_assert_int_eq(ak_tok_bos(t), 1);
    for (int32_t id = 0; id < 49152; id++)
        ck_assert_msg(ak_tok_is_end(t, id) == (id == 0 || id == 2), "token %d", id);
    ck_assert_uint_lt(ak_tok_memory_bytes(t), 4 << 20);
    ak_tok_free(t);
}
END_TEST

/* A tokenizer is immutable: eight threads use one. */
static const char shared_text[] = "It's 1234 caf\xC3\xA9s,\n\n  <|im_start|>they'LL \xFF open.";

struct reader {
    struct ak_tokenizer *t;
    const int32_t *ids;
    size_t n_ids;
    bool same;
};

static void *read_shared_text(void *context)
{
    struct reader *r = context;

    r->same = true;
    for (int i = 0; i < 200; i++) {
        int32_t ids[100];
        size_t n;
        ak_status status = ak_tok_encode(r->t, shared_text, sizeof shared_text - 1,
                                         AKUNU_PARSE_SPECIAL, ids, 100, &n, NULL);
        r->same = r->same && status == AKUNU_OK && n == r->n_ids &&
                  memcmp(ids, r->ids, n * sizeof *ids) == 0;
    }
    return NULL;
}

START_TEST(threads_share_one)
{
    struct ak_tokenizer *t = load("cuts", "llama-bpe");
    pthread_t threads[8];
    struct reader readers[8];
    int32_t ids[100];
    size_t n = tokenize(t, shared_text, sizeof shared_text - 1, AKUNU_PARSE_SPECIAL, ids, 100);

    for (int i = 0; i < 8; i++) {
        readers[i] = (struct reader){ t, ids, n, false };
        ck_assert_int_eq(pthread_create(&threads[i], NULL, read_shared_text, &readers[i]), 0);
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
        ck_assert(readers[i].same);
    }
    ak_tok_free(t);
}
END_TEST

/* ---- Any bytes ---------------------------------------------------------- */
static uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

/* Bytes of all kinds: letters and spaces, whole characters, stray bytes, NUL. */
static size_t random_bytes(uint32_t *state, char *out, size_t capacity)
{
    static const char *const parts[] = { " ",
                                         "  ",
                                         "\n",
                                         "a",
                                         "the",
                                         "'ll",
                                         "12",
                                         "\xC3\xA9",
                                         "\xE2\x82\xAC",
                                         "\xF0\x9F\x98\x80",
                                         "<tool",
                                         "\t" };
    size_t n = 0;

    while (n + 8 < capacity) {
        uint32_t kind = next_random(state) % 16;
        if (kind < 12) {
            n += strlen(strcpy(out + n, parts[kind]));
        } else {
            out[n++] = (char)next_random(state);
        }
    }
    return n;
}

START_TEST(any_bytes_survive)
{
    struct ak_tokenizer *t = load(tables[_i].file, tables[_i].pre);
    uint32_t state = 42;

    for (size_t length = 9; length < 300; length++) {
        char text[300], back[600];
        int32_t ids[600];
        size_t n = random_bytes(&state, text, length), n_ids = tokenize(t, text, n, 0, ids, 600);
        ck_assert_uint_eq(detokenize(t, ids, n_ids, 0, back, sizeof back), n);
        ck_assert_mem_eq(text, back, n);
    }
    ak_tok_free(t);
}
END_TEST

static ak_status add_word(void *context, const char *word, size_t n, struct ak_error *error)
{
    (void)error;
    strncat(context, word, n);
    strcat(context, "|");
    return AKUNU_OK;
}

START_TEST(bytes_that_are_no_utf8_are_symbols) /* words as with U+FFFD in their place */
{
    struct ak_tok_pretokenizer *p;
    struct ak_tok_matcher *c;
    struct ak_error error = { 0 };
    char words[100] = "";
    static const char text[] = "ab\xFF\xFF!c \xE2\x82"
                               "d 1\xC3";

    ck_assert_int_eq(ak_tok_pretokenizer_create(text_of("gpt-2"), &p, &error), AKUNU_OK);
    ck_assert_int_eq(ak_tok_matcher_create(&c, &error), AKUNU_OK);
    ck_assert_int_eq(ak_tok_pretokenize(p, c, text, sizeof text - 1, add_word, words, &error),
                     AKUNU_OK);
    ck_assert(strcmp(words, "ab|\xFF\xFF!|c| \xE2\x82|d| 1|\xC3|") == 0);
    ak_tok_matcher_free(c);
    ak_tok_pretokenizer_free(p);
}
END_TEST

/* Each would take minutes or hours, not a moment, if time grew with the square. */
static void check_long(struct ak_tokenizer *t, const char *part, size_t n)
{
    size_t length = strlen(part);
    char *text = malloc(n), *back = malloc(n);
    int32_t *ids = malloc((n + 1) * sizeof *ids);

    for (size_t i = 0; i < n; i++)
        text[i] = part[i % length];
    size_t n_ids = tokenize(t, text, n, AKUNU_PARSE_SPECIAL, ids, n + 1);
    ck_assert_uint_le(n_ids, n + 1);
    ck_assert_uint_eq(detokenize(t, ids, n_ids, 0, back, n), n);
    ck_assert(memcmp(text, back, n) == 0);
    free(text);
    free(back);
    free(ids);
}

START_TEST(long_words_take_linear_time)
{
    static const char *const parts[] = { " ",  "1",   "\n",       "ab",         "\xFF",
                                         "!?", " \n", "\xC3\xA9", "<tool_call", "'" };
    struct ak_tokenizer *t = load(tables[_i].file, tables[_i].pre);

    check_long(t, "a", 1 << 20);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        check_long(t, parts[i], 100000);
    ak_tok_free(t);
}
END_TEST

START_TEST(capacity_is_respected)
{
    struct ak_tokenizer *t = load("llama", NULL);
    int32_t all[16], some[16];
    char text[32], part[32];
    size_t n = tokenize(t, "hello world", 11, 0, all, 16);

    ck_assert_uint_gt(n, 4);
    ck_assert_uint_eq(tokenize(t, "hello world", 11, 0, NULL, 0), n);
    memset(some, 0x55, sizeof some);
    ck_assert_uint_eq(tokenize(t, "hello world", 11, 0, some, 3), n);
    ck_assert_mem_eq(all, some, 3 * sizeof *all);
    ck_assert_int_eq(some[3], 0x55555555);

    ck_assert_uint_eq(detokenize(t, all, n, 0, text, sizeof text), 11);
    memset(part, 'x', sizeof part);
    ck_assert_uint_eq(detokenize(t, all, n, 0, part, 5), 11);
    ck_assert_mem_eq(part, "hellox", 6);
    ck_assert_uint_eq(detokenize(t, all, n, 0, NULL, 0), 11);
    ak_tok_free(t);
}
END_TEST

/* ---- Streams ------------------------------------------------------------ */
static size_t push(struct ak_tok_stream *s, int32_t id, char *out)
{
    const char *text;
    size_t n;
    struct ak_error error = { 0 };

    ck_assert_msg(ak_tok_stream_push(s, id, &text, &n, &error) == AKUNU_OK, "%s", error.message);
    ck_assert_uint_eq(ak_utf8_valid_bytes(text, n), n);
    memcpy(out, text, n);
    return n;
}

static size_t end(struct ak_tok_stream *s, char *out)
{
    const char *text;
    size_t n;

    ak_tok_stream_end(s, &text, &n);
    memcpy(out, text, n);
    return n;
}

static struct ak_tok_stream *stream(struct ak_tokenizer *t, unsigned flags)
{
    struct ak_tok_stream *s;
    struct ak_error error = { 0 };

    ck_assert_msg(ak_tok_stream_create(t, flags, &s, &error) == AKUNU_OK, "%s", error.message);
    return s;
}

START_TEST(stream_is_the_text_in_whole_characters)
{
    static const char text[] =
        " caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80\xF0\x9F\x98\x80 <|im_end|> \xE0\xB8\xAA";
    struct ak_tokenizer *t = load(tables[_i].file, tables[_i].pre);

    for (unsigned flags = 0; flags <= (AKUNU_SKIP_SPECIAL | AKUNU_CONTINUE); flags++) {
        struct ak_tok_stream *s = stream(t, flags);
        int32_t ids[100];
        char whole[200], streamed[200];
        size_t n_ids = tokenize(t, text, sizeof text - 1, AKUNU_PARSE_SPECIAL, ids, 100);
        size_t n = detokenize(t, ids, n_ids, flags, whole, sizeof whole);
        for (int round = 0; round < 2; round++) { /* the end makes it ready for the next text */
            size_t n_streamed = 0;
            for (size_t i = 0; i < n_ids; i++)
                n_streamed += push(s, ids[i], streamed + n_streamed);
            n_streamed += end(s, streamed + n_streamed);
            ck_assert_uint_eq(n_streamed, n);
            ck_assert_mem_eq(streamed, whole, n);
        }
        ak_tok_stream_free(s);
    }
    ak_tok_free(t);
}
END_TEST

START_TEST(stream_holds_back_and_replaces)
{
    struct ak_tokenizer *t = load("llama", NULL);
    struct ak_tok_stream *s = stream(t, AKUNU_CONTINUE);
    char out[16];
    const int32_t byte = 3; /* <0x00> is token 3 of this vocabulary */

    ck_assert_uint_eq(push(s, byte + 0xF0, out), 0);
    ck_assert_uint_eq(push(s, byte + 0x9F, out), 0);
    ck_assert_uint_eq(push(s, byte + 0x98, out), 0);
    ck_assert_uint_eq(push(s, byte + 0x80, out), 4);
    ck_assert_mem_eq(out, "\xF0\x9F\x98\x80", 4);

    ck_assert_uint_eq(push(s, byte + 0xE2, out), 0);
    ck_assert_uint_eq(push(s, byte + 'x', out), 4);
    ck_assert_mem_eq(out, "\xEF\xBF\xBDx", 4);
    ck_assert_uint_eq(push(s, byte + 0xFF, out), 3);

    ck_assert_uint_eq(push(s, byte + 0xE2, out), 0);
    ck_assert_uint_eq(push(s, byte + 0x82, out), 0);
    ck_assert_uint_eq(end(s, out), 3);
    ck_assert_mem_eq(out, "\xEF\xBF\xBD", 3);
    ck_assert_uint_eq(end(s, out), 0);
    ak_tok_stream_free(s);
    ak_tok_free(t);
}
END_TEST

START_TEST(first_space) /* a prefix space is removed, another one stays */
{
    struct ak_tokenizer *t = load("llama", NULL);
    int32_t ids[8];
    char text[32];

    size_t n = tokenize(t, "hello", 5, 0, ids, 8);
    ck_assert_uint_eq(detokenize(t, ids, n, 0, text, sizeof text), 5);
    ck_assert_uint_eq(detokenize(t, ids, n, AKUNU_CONTINUE, text, sizeof text), 6);
    ck_assert_mem_eq(text, " hello", 6);
    ak_tok_free(t);

    struct ak_vocab vocab;
    struct ak_provider *provider = open_provider(data_path("llama", ".gguf"), &vocab);
    vocab.add_space_prefix = 0;
    t = create(&vocab);
    n = tokenize(t, " hello", 6, 0, ids, 8);
    ck_assert_uint_eq(detokenize(t, ids, n, 0, text, sizeof text), 6);
    ak_tok_free(t);
    ak_provider_close(provider);
}
END_TEST

/* ---- What is added, what ends a text ------------------------------------ */
static void check_added(const struct ak_vocab *vocab, bool bos, bool eos)
{
    struct ak_tokenizer *t = create(vocab);
    int32_t ids[8], want = ak_tok_bos(t);
    size_t n = tokenize(t, "a", 1, AKUNU_ADD_SPECIAL, ids, 8);

    ck_assert_uint_eq(n, 1u + bos + eos);
    ck_assert(bos == (ids[0] == want));
    ck_assert(!eos || ids[n - 1] == vocab->eos);
    ck_assert_uint_eq(tokenize(t, "", 0, AKUNU_ADD_SPECIAL, NULL, 0), 0u + bos + eos);
    ck_assert_uint_eq(tokenize(t, "a", 1, 0, NULL, 0), 1);
    ak_tok_free(t);
}

START_TEST(what_is_added)
{
    struct ak_vocab vocab;
    struct ak_provider *provider = open_provider(data_path("llama", ".gguf"), &vocab);

    check_added(&vocab, true, false); /* the file says so */
    vocab.add_bos = vocab.add_eos = -1;
    check_added(&vocab, true, false); /* SentencePiece's custom */
    vocab.bos = vocab.unknown = -1;
    check_added(&vocab, true, false);
    vocab.add_bos = 0;
    vocab.add_eos = 1;
    check_added(&vocab, false, true);
    ak_provider_close(provider);

    provider = open_provider(data_path("cuts", ".gguf"), &vocab);
    check_added(&vocab, false, false);
    vocab.add_bos = 1;
    check_added(&vocab, true, false);
    vocab.add_bos = -1;
    vocab.pre = text_of("llama-bpe");
    check_added(&vocab, true, false);
    vocab.bos = -1;
    check_added(&vocab, false, false);
    ak_provider_close(provider);
}
END_TEST

START_TEST(what_ends_a_text)
{
    struct ak_vocab vocab;
    struct ak_provider *provider = open_provider(data_path("cuts", ".gguf"), &vocab);
    int32_t first = (int32_t)vocab.n_tokens - 6; /* <|endoftext|>, <|im_start|>, <|im_end|> */
    int32_t *types = malloc(vocab.n_tokens * sizeof *types);

    memcpy(types, vocab.types, vocab.n_tokens * sizeof *types);
    vocab.types = types;
    vocab.eos = -1;
    struct ak_tokenizer *t = create(&vocab);
    for (int32_t id = -1; id <= (int32_t)vocab.n_tokens; id++) {
        ck_assert(ak_tok_is_end(t, id) == (id == first || id == first + 2));
        ck_assert(ak_tok_is_control(t, id) == (id >= first && id < first + 3));
    }
    ak_tok_free(t);

    types[first] = types[first + 2] = 4; /* by name only where they are control tokens */
    vocab.eot = first + 1;
    t = create(&vocab);
    for (int32_t id = 0; id < (int32_t)vocab.n_tokens; id++)
        ck_assert(ak_tok_is_end(t, id) == (id == first + 1));
    ak_tok_free(t);

    vocab.eos = 0; /* what the file names counts whatever it is */
    t = create(&vocab);
    ck_assert(ak_tok_is_end(t, 0));
    ak_tok_free(t);
    free(types);
    ak_provider_close(provider);
}
END_TEST

/* In the harmony format <|end|> ends a message, after which more come; <|return|> and <|call|> end
 * the text. */
START_TEST(ends_of_harmony)
{
    static const struct ak_text tokens[] = {
        { "a", 1 }, { "<|end|>", 7 }, { "<|return|>", 10 }, { "<|call|>", 8 }
    };
    static const int32_t types[] = { 1, 3, 3, 3 };
    struct ak_vocab vocab = ak_vocab_none;
    vocab.model = text_of("gpt2");
    vocab.pre = text_of("gpt-2");
    vocab.tokens = tokens;
    vocab.types = types;
    vocab.merges = tokens; /* none */
    for (vocab.n_tokens = 2; vocab.n_tokens <= 4; vocab.n_tokens++) {
        struct ak_tokenizer *t = create(&vocab);
        ck_assert(!ak_tok_is_end(t, 0));
        /* without the others it ends the text */
        ck_assert(ak_tok_is_end(t, 1) == (vocab.n_tokens < 4));
        ck_assert(ak_tok_is_end(t, 2) == (vocab.n_tokens > 2));
        ck_assert(ak_tok_is_end(t, 3) == (vocab.n_tokens > 3));
        ak_tok_free(t);
    }
}
END_TEST

/* What the file states comes first, then names; a name that ends no text is no end of a turn, and
 * an ordinary token is no marker. */
START_TEST(special_tokens_by_name)
{
    static const struct ak_text tokens[] = {
        { "<|end|>", 7 },       { "<|return|>", 10 },    { "<|call|>", 8 },
        { "<fim-prefix>", 12 }, { "<fim_prefix>", 12 },  { "<fim_suffix>", 12 },
        { "<|file_sep|>", 12 }, { "<|repo_name|>", 13 }, { "<fim_middle>", 12 },
    };
    static const int64_t stated[AK_VOCAB_FIM_COUNT] = { 3, -1, -1, -1, -1, -1 };
    int32_t types[] = { 3, 3, 3, 3, 3, 4, 3, 3, 3 };
    struct ak_vocab vocab = ak_vocab_none;
    vocab.model = text_of("gpt2");
    vocab.pre = text_of("gpt-2");
    vocab.tokens = tokens;
    vocab.types = types;
    vocab.merges = tokens; /* none */
    vocab.n_tokens = 9;
    vocab.padding = 9; /* outside */
    struct ak_tokenizer *t = create(&vocab);
    ck_assert_int_eq(ak_tok_special(t, AKUNU_TOKEN_EOT), 1);
    ck_assert_int_eq(ak_tok_special(t, AKUNU_TOKEN_PAD), -1);
    ck_assert_int_eq(ak_tok_special(t, AKUNU_TOKEN_FIM_PREFIX), 4);
    ck_assert_int_eq(ak_tok_special(t, AKUNU_TOKEN_FIM_SUFFIX), 5);
    ck_assert_int_eq(ak_tok_special(t, AKUNU_TOKEN_FIM_MIDDLE), 8);
    ck_assert_int_eq(ak_tok_special(t, AKUNU_TOKEN_FIM_REPO), 7);
    ck_assert_int_eq(ak_tok_special(t, AKUNU_TOKEN_FIM_FILE), 6);
    ak_tok_free(t);
    vocab.eot = 2;
    vocab.fim = stated;
    types[8] = 1;
    vocab.padding = 8;
    t = create(&vocab);
    ck_assert_int_eq(ak_tok_special(t, AKUNU_TOKEN_EOT), 2);
    ck_assert_int_eq(ak_tok_special(t, AKUNU_TOKEN_PAD), 8);
    ck_assert_int_eq(ak_tok_special(t, AKUNU_TOKEN_FIM_PREFIX), 3);
    ck_assert_int_eq(ak_tok_special(t, AKUNU_TOKEN_FIM_SUFFIX), -1);
    ak_tok_free(t);
}
END_TEST

/* ---- SentencePiece by hand ---------------------------------------------- */
/* The whole array, and its beginning without pieces that span words. */
static const struct ak_text hand_tokens[] = {
    { "<unk>", 5 }, { "<s>", 3 }, { "</s>", 4 }, { "a", 1 },   { "b", 1 },  { "ab", 2 },
    { "ba", 2 },    { "<", 1 },   { "s", 1 },    { ">", 1 },   { "<s", 2 }, { "aab", 3 },
    { "▁", 3 },     { "▁▁", 6 },  { "b▁", 4 },   { "b▁a", 5 },
};
static const float hand_scores[] = { 0,  0,  0,  -9,    -9, -1, -1,    -9,
                                     -9, -9, -2, -0.5f, -9, -3, -1.5f, -0.2f };
static const int32_t hand_types[] = { 2, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };

static struct ak_tokenizer *by_hand(uint32_t n_tokens)
{
    struct ak_vocab vocab = { .model = { "llama", 5 },
                              .n_tokens = n_tokens,
                              .tokens = hand_tokens,
                              .scores = hand_scores,
                              .types = hand_types };

    vocab.bos = vocab.eos = vocab.eot = vocab.unknown = vocab.add_bos = vocab.add_eos = -1;
    vocab.add_space_prefix = 0;
    return create(&vocab);
}

START_TEST(sentencepiece_rules)
{
    static const struct {
        const char *text, *ids;
    } cases[] = {
        { "aba", "5 3" }, /* the leftmost of equal scores */
        { "bab", "6 4" },
        { "ababab", "5 5 5" },
        { "aab", "11" }, /* the best score, where its parts come about */
        { "a\xC3\xA9\xC3\xA9x\xFF"
          "b",
          "3 0 4" }, /* one unknown token for a run */
        { "x", "0" },
        { "<s>", "10 9" }, /* no control token without asking */
        { "a  b", "3 13 4" },
        { "a▁ b", "3 13 4" },
        { "a   b", "3 13 12 4" },
    };
    struct ak_tokenizer *t = by_hand(14), *spanning = by_hand(16);

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_ids(t, cases[i].text, strlen(cases[i].text), 0, cases[i].ids, cases[i].text);
    check_ids(t, "a<s>b", 5, AKUNU_PARSE_SPECIAL, "3 1 4", "a<s>b");
    check_ids(t, "b a", 3, 0, "4 12 3", "b a");
    check_ids(spanning, "b a", 3, 0, "15", "b a");
    ak_tok_free(t);
    ak_tok_free(spanning);
}
END_TEST

/* ---- Byte-level BPE by hand --------------------------------------------- */
/* What the merges make of the text, with the pieces that are tokens. */
static void check_merges(const char *const *merges, const char *text, const char *want)
{
    static const struct ak_text tokens[] = {
        { "a", 1 }, { "b", 1 }, { "c", 1 }, { "ab", 2 }, { "bc", 2 }
    };
    struct ak_text lines[4];
    struct ak_vocab vocab = ak_vocab_none;

    vocab.model = text_of("gpt2");
    vocab.pre = text_of("gpt-2");
    vocab.tokens = tokens;
    vocab.n_tokens = sizeof tokens / sizeof tokens[0];
    vocab.merges = lines;
    for (; merges[vocab.n_merges]; vocab.n_merges++)
        lines[vocab.n_merges] = text_of(merges[vocab.n_merges]);
    struct ak_tokenizer *t = create(&vocab);
    check_ids(t, text, strlen(text), 0, want, merges[0]);
    ak_tok_free(t);
}

/* As llama.cpp, which keeps the rank that it reads first. `tokenizers` keeps the last one:
 * tests/text/tokenizer/test_tokenizer_json.c. */
START_TEST(merges_that_are_there_twice)
{
    check_merges((const char *const[]){ "a b", "b c", NULL }, "abc", "3 2");
    check_merges((const char *const[]){ "a b", "b c", "a b", NULL }, "abc", "3 2");
    check_merges((const char *const[]){ "b c", "a b", "b c", NULL }, "abc", "0 4");
}
END_TEST

START_TEST(merges_without_a_token)
{
    /* the others are merged as ever */
    check_merges((const char *const[]){ "c a", "a b", "c c", "x y", NULL }, "ab", "3");
    check_merges((const char *const[]){ "c a", NULL }, "ca", "2 0");
    check_merges((const char *const[]){ "b c", "a b", "c c", NULL }, "bccc", "4 2 2");
}
END_TEST

/* ---- Errors ------------------------------------------------------------- */
static void check_refused(const struct ak_vocab *vocab, ak_status status, const char *word)
{
    struct ak_tokenizer *t;
    struct ak_error error = { 0 };

    ck_assert_int_eq(ak_tok_create(vocab, &t, &error), status);
    ck_assert_ptr_null(t);
    ck_assert_msg(strstr(error.message, word) != NULL, "'%s' lacks '%s'", error.message, word);
}

START_TEST(refusals)
{
    struct ak_vocab vocab, changed;
    struct ak_provider *provider = open_provider(data_path("cuts", ".gguf"), &vocab);

    changed = vocab;
    changed.pre = text_of("no-such");
    check_refused(&changed, AKUNU_ERROR_UNSUPPORTED, "'no-such'");
    check_refused(&changed, AKUNU_ERROR_UNSUPPORTED, "smollm");
    check_refused(&changed, AKUNU_ERROR_UNSUPPORTED, "--override-kv tokenizer.ggml.pre=str:NAME");
    changed.pre = text_of("gpt-2 smollm");
    check_refused(&changed, AKUNU_ERROR_UNSUPPORTED, "gpt-2 smollm");
    changed.pre = (struct ak_text){ "gpt-2\0", 6 };
    check_refused(&changed, AKUNU_ERROR_UNSUPPORTED, "pre-tokenizer");
    changed = vocab;
    changed.model = text_of("rwkv");
    check_refused(&changed, AKUNU_ERROR_UNSUPPORTED, "'rwkv'");
    changed.model.n = 0;
    check_refused(&changed, AKUNU_ERROR_FORMAT, "no vocabulary");
    changed = vocab;
    changed.merges = NULL;
    changed.n_merges = 0;
    check_refused(&changed, AKUNU_ERROR_FORMAT, "merges");
    changed = vocab;
    changed.model = text_of("llama");
    changed.scores = NULL;
    check_refused(&changed, AKUNU_ERROR_FORMAT, "scores");
    ak_provider_close(provider);
}
END_TEST

/* What the user says stands in place of the file's metadata. */
START_TEST(overridden_metadata)
{
    static const char *const bad[] = { "",         "a",        "=str:x",   "a=x",    "a=int:",
                                       "a=int:1x", "a=bool:1", "a=float:", "a=nat:1" };
    struct ak_vocab vocab;
    struct ak_error error = { 0 };
    struct ak_provider *provider;
    uint32_t number;
    float real;

    ck_assert_int_eq(ak_provider_open(data_path("cuts", ".gguf"), &provider, &error), AKUNU_OK);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_int_eq(ak_provider_override(provider, bad[i], &error), AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(ak_provider_override(provider, "tokenizer.ggml.pre=str:qwen2", &error),
                     AKUNU_OK);
    ck_assert_int_eq(ak_provider_override(provider, "tokenizer.ggml.pre=str:llama-bpe", &error),
                     AKUNU_OK);
    ck_assert_int_eq(
        ak_provider_override(provider, "tokenizer.ggml.add_bos_token=bool:false", &error),
        AKUNU_OK);
    ck_assert_int_eq(ak_provider_override(provider, "x.y=int:7", &error), AKUNU_OK);
    ck_assert_int_eq(ak_provider_override(provider, "x.z=float:0.5", &error), AKUNU_OK);
    ck_assert_int_eq(ak_provider_vocab(provider, &vocab, &error), AKUNU_OK);
    /* the last one counts */
    ck_assert(vocab.pre.n == 9 && memcmp(vocab.pre.bytes, "llama-bpe", 9) == 0);
    ck_assert_int_eq(vocab.add_bos, 0);
    ck_assert(ak_meta_u32(provider, "x.y", 0, &number, &error) == AKUNU_OK && number == 7);
    ck_assert(ak_meta_float(provider, "x.z", 0, &real, &error) == AKUNU_OK && real == 0.5f);
    ck_assert_int_eq(ak_meta_u32(provider, "x.z", 0, &number, &error), AKUNU_ERROR_FORMAT);
    ak_provider_close(provider);
}
END_TEST

START_TEST(ids_outside)
{
    struct ak_tokenizer *t = load("llama", NULL);
    struct ak_tok_stream *s = stream(t, 0);
    const int32_t ids[] = { -1, 480, INT32_MAX, INT32_MIN };
    struct ak_error error;
    const char *text;
    size_t n;

    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(ak_tok_decode(t, &ids[i], 1, 0, NULL, 0, &n, &error),
                         AKUNU_ERROR_ARGUMENT);
        ck_assert_ptr_nonnull(strstr(error.message, "480"));
        ck_assert_int_eq(ak_tok_stream_push(s, ids[i], &text, &n, &error), AKUNU_ERROR_ARGUMENT);
        ck_assert_uint_eq(n, 0);
    }
    ak_tok_stream_free(s);
    ak_tok_free(t);
    ak_tok_stream_free(NULL);
    ak_tok_free(NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tokenizer");
    TCase *tcase = tcase_create("tokenizer");

    tcase_add_loop_test(tcase, same_ids_and_text, 0, N_TABLES);
    tcase_add_test(tcase, every_rule);
    tcase_add_test(tcase, bert_and_t5);
    tcase_add_test(tcase, wordpiece_and_unigram_texts);
    tcase_add_test(tcase, characters);
    tcase_add_test(tcase, pipelines_take_linear_time);
    tcase_add_test(tcase, every_rule_takes_linear_time);
    tcase_add_test(tcase, real_vocabulary);
    tcase_add_test(tcase, threads_share_one);
    tcase_add_loop_test(tcase, any_bytes_survive, 0, N_DISTINCT);
    tcase_add_loop_test(tcase, long_words_take_linear_time, 0, N_DISTINCT);
    tcase_add_test(tcase, capacity_is_respected);
    tcase_add_loop_test(tcase, stream_is_the_text_in_whole_characters, 0, N_DISTINCT);
    tcase_add_test(tcase, stream_holds_back_and_replaces);
    tcase_add_test(tcase, first_space);
    tcase_add_test(tcase, what_is_added);
    tcase_add_test(tcase, what_ends_a_text);
    tcase_add_test(tcase, ends_of_harmony);
    tcase_add_test(tcase, special_tokens_by_name);
    tcase_add_test(tcase, sentencepiece_rules);
    tcase_add_test(tcase, merges_that_are_there_twice);
    tcase_add_test(tcase, merges_without_a_token);
    tcase_add_test(tcase, bytes_that_are_no_utf8_are_symbols);
    tcase_add_test(tcase, refusals);
    tcase_add_test(tcase, overridden_metadata);
    tcase_add_test(tcase, ids_outside);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
