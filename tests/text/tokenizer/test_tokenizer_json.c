/* Tokenizers from tokenizer.json, from tokenizer.model and from the files of slow tokenizers. The
 * tables and who answered them: tests/golden/tokenizer_json.py and slow_tokenizers.py. */
#include "tests/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/st_files.h"
#include "text/tokenizer/tokenizer.h"

enum { MAX_IDS = 1024, MAX_BYTES = 4096 };

static struct ak_text text_of(const char *string)
{
    return (struct ak_text){ string, (uint32_t)strlen(string) };
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

static size_t check_ids(const struct ak_tokenizer *t, const char *text, size_t n, unsigned flags,
                        const char *want, int line, int32_t *ids)
{
    char got[MAX_IDS * 8] = "";
    struct ak_error error = { 0 };
    size_t n_ids, at = 0;

    ck_assert_msg(ak_tok_encode(t, text, n, flags, ids, MAX_IDS, &n_ids, &error) == AKUNU_OK, "%s",
                  error.message);
    for (size_t i = 0; i < n_ids; i++)
        at += (size_t)snprintf(got + at, sizeof got - at, i ? " %d" : "%d", ids[i]);
    ck_assert_msg(strcmp(got, want) == 0, "line %d\n got %s\nwant %s", line, got, want);
    return n_ids;
}

static void check_text(const struct ak_tokenizer *t, const int32_t *ids, size_t n, unsigned flags,
                       char *want, int line)
{
    char got[MAX_BYTES];
    struct ak_error error = { 0 };
    size_t n_got, n_want = unescape(want);

    ck_assert_msg(ak_tok_decode(t, ids, n, flags, got, sizeof got, &n_got, &error) == AKUNU_OK,
                  "%s", error.message);
    ck_assert_msg(n_got == n_want && memcmp(got, want, n_got) == 0,
                  "line %d: got '%.*s', want '%s'", line, (int)n_got, got, want);
}

/* A tokenizer.json with a vocabulary of all bytes, as <0xNN>, in place of "$BYTES". */
static char *fill_in(const char *json)
{
    static const char mark[] = "\"$BYTES\"";
    const char *at = strstr(json, mark);
    char *out = malloc(strlen(json) + 256 * 16), *end = out;

    if (!at)
        return strcpy(out, json);
    memcpy(out, json, (size_t)(at - json));
    end += at - json;
    for (int b = 0; b < 256; b++)
        end += sprintf(end, "%c\"<0x%02X>\":%d", b ? ',' : '{', b, b);
    sprintf(end, "}%s", at + strlen(mark));
    return out;
}

/* A tokenizer.json behind "@", a tokenizer.model behind "%". */
static struct ak_tokenizer *load(char *line, int number)
{
    struct ak_tokenizer *t;
    struct ak_error error = { 0 };
    ak_status status;

    if (line[0] == '@') {
        char *json = fill_in(line + 1);
        struct ak_tok_files of = { .tokenizer = text_of(json) };
        status = ak_tok_from_json(&of, &t, &error);
        free(json);
    } else {
        struct ak_text model = { line + 1, (uint32_t)unescape(line + 1) };
        status = ak_tok_from_sentencepiece(model, &t, &error);
    }
    ck_assert_msg(status == AKUNU_OK, "line %d: %s", number, error.message);
    ck_assert_uint_gt(ak_tok_memory_bytes(t), 1000);
    return t;
}

/* Five columns, or text and ids. */
static void check_row(const struct ak_tokenizer *t, char *line, int number)
{
    char *rest = line, *text = strsep(&rest, "\t"), *ids = strsep(&rest, "\t"),
         *added = strsep(&rest, "\t");
    char *decoded = strsep(&rest, "\t");
    int32_t got[MAX_IDS];
    size_t n = unescape(text);

    if (added)
        check_ids(t, text, n, AKUNU_ADD_SPECIAL, added, number, got);
    size_t n_ids = check_ids(t, text, n, AKUNU_PARSE_SPECIAL, ids, number, got);
    if (added) {
        check_text(t, got, n_ids, 0, decoded, number);
        check_text(t, got, n_ids, AKUNU_SKIP_SPECIAL, rest, number);
    }
}

/* Gives how many files the table has. */
static int check_table(const char *name)
{
    char path[4096], *line = NULL;
    size_t capacity = 0;
    int number = 0, files = 0;
    struct ak_tokenizer *t = NULL;

    snprintf(path, sizeof path, "%s/tokenizer/%s", getenv("AK_TEST_DATA"), name);
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s is missing", path);
    while (getline(&line, &capacity, file) > 0) {
        line[strcspn(line, "\n")] = '\0';
        number++;
        if (line[0] != '@' && line[0] != '%') {
            check_row(t, line, number);
            continue;
        }
        ak_tok_free(t);
        t = load(line, number);
        files++;
    }
    ak_tok_free(t);
    free(line);
    fclose(file);
    return files;
}

START_TEST(every_part)
{
    ck_assert_int_ge(check_table("json.tsv"), 30);
}
END_TEST

/* Ties, unknown characters, merges and pieces that are there twice. The table and who answered it:
 * tests/golden/rare_vocabularies.py. */
START_TEST(rare_vocabularies)
{
    ck_assert_int_eq(check_table("rare.tsv"), 16);
}
END_TEST

/* Normalizers, pre-tokenizers, models, decoders, added tokens and post-processors, each at its
 * edges. The table and who answered it: tests/golden/tokenizer_edges.py. */
START_TEST(edges_of_every_part)
{
    ck_assert_int_ge(check_table("edges.tsv"), 100);
}
END_TEST

#define BPE_OF(vocab, merges)                                                                      \
    "{\"model\":{\"type\":\"BPE\",\"vocab\":" vocab ",\"merges\":" merges "}}"
#define WORDPIECE_OF(max_chars)                                                                    \
    "{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0},\"continuing_subword_prefix\":\"##\"," \
    "\"max_input_chars_per_word\":" max_chars "}}"
#define WITH(part)                                                                                 \
    "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]}," part "}"

/* Nine steps, each of which writes sixteen times what it reads. */
#define NINE(step) step "," step "," step "," step "," step "," step "," step "," step "," step
#define GROWING                                                                                    \
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"aaaaaaaaaaaaaaaa\"}"
#define GROWING_BLANKS                                                                             \
    "{\"type\":\"Metaspace\",\"replacement\":\"                \",\"split\":false}"
#define GROWING_NORMALIZER                                                                         \
    "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[" NINE(GROWING) "]}"

static const struct {
    const char *json, *word;
    ak_status status;
} damaged[] = {
    { "{\"model\":", "tokenizer.json: no JSON", AKUNU_ERROR_FORMAT },
    { "[]", "a list", AKUNU_ERROR_FORMAT },
    { "{}", "model is nothing", AKUNU_ERROR_FORMAT },
    { "{\"model\":{\"type\":\"Quipu\"}}", "Quipu", AKUNU_ERROR_UNSUPPORTED },
    { BPE_OF("{}", "[]"), "vocab is empty", AKUNU_ERROR_FORMAT },
    { BPE_OF("[]", "[]"), "vocab is a list", AKUNU_ERROR_FORMAT },
    { BPE_OF("{\"a\":2147483648}", "[]"), "'a' is out of range", AKUNU_ERROR_FORMAT },
    { BPE_OF("{\"a\":-1}", "[]"), "'a' is out of range", AKUNU_ERROR_FORMAT },
    { BPE_OF("{\"a\":\"0\"}", "[]"), "'a' is a string", AKUNU_ERROR_FORMAT },
    { BPE_OF("{\"a\":0}", "{}"), "merges", AKUNU_ERROR_FORMAT },
    { BPE_OF("{\"a\":0}", "[1]"), "model.merges[0]", AKUNU_ERROR_FORMAT },
    { BPE_OF("{\"a\":0,\"aa\":1}", "[\"a a\",\"a b\"]"), "model.merges[1] 'a b'",
      AKUNU_ERROR_FORMAT },
    { BPE_OF("{\"a\":0,\"aa\":1}", "[\"a a\",\"aa\"]"), "model.merges[1]", AKUNU_ERROR_FORMAT },
    { BPE_OF("{\"a\":0,\"b\":1,\"bb\":2}", "[\"b b\",\"a b\"]"),
      "model.merges[1] 'a b' is not a pair of tokens that together are a token",
      AKUNU_ERROR_FORMAT },
    { "{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\"]]}}", "model.vocab[0]",
      AKUNU_ERROR_FORMAT },
    { "{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",0]],\"unk_id\":1}}", "unk_id",
      AKUNU_ERROR_FORMAT },
    { "{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",0]],\"unk_id\":-1}}", "unk_id",
      AKUNU_ERROR_FORMAT },
    { "{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",0]],\"unk_id\":\"a\"}}", "unk_id",
      AKUNU_ERROR_FORMAT },
    { "{\"model\":{\"type\":\"Unigram\",\"vocab\":[[1,0]]}}", "model.vocab[0]",
      AKUNU_ERROR_FORMAT },
    { "{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0}}}", "continuing_subword_prefix",
      AKUNU_ERROR_FORMAT },
    { WORDPIECE_OF("0"), "max_input_chars_per_word", AKUNU_ERROR_FORMAT },
    { WORDPIECE_OF("2147483648"), "max_input_chars_per_word", AKUNU_ERROR_FORMAT },
    { WORDPIECE_OF("\"5\""), "max_input_chars_per_word", AKUNU_ERROR_FORMAT },
    { WITH("\"normalizer\":{\"type\":\"NFX\"}"), "normalizer: the type 'NFX'",
      AKUNU_ERROR_UNSUPPORTED },
    { WITH("\"normalizer\":3"), "normalizer is an integer", AKUNU_ERROR_FORMAT },
    { WITH("\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"AAAA\"}"),
      "character map", AKUNU_ERROR_FORMAT },
    { WITH("\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"!\"}"), "base64",
      AKUNU_ERROR_FORMAT },
    { WITH("\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"\"},\"content\":\"\"}"),
      "pattern", AKUNU_ERROR_FORMAT },
    { WITH("\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(\"}}"), "pattern '('",
      AKUNU_ERROR_FORMAT },
    { WITH("\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\C\"}}"),
      "pattern '\\C'", AKUNU_ERROR_FORMAT },
    { WITH("\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[a&&b]\"}}"), "[a&&b]",
      AKUNU_ERROR_UNSUPPORTED },
    { WITH("\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a\"},\"behavior\":"
           "\"Odd\"}"),
      "behavior 'Odd'", AKUNU_ERROR_UNSUPPORTED },
    { WITH("\"decoder\":{\"type\":\"CTC\"}"), "decoder: the type 'CTC'", AKUNU_ERROR_UNSUPPORTED },
    { WITH("\"post_processor\":{\"type\":\"BertProcessing\",\"cls\":[\"a\",9],\"sep\":[\"b\",1]}"),
      "9 is not an id", AKUNU_ERROR_FORMAT },
    { WITH("\"post_processor\":{\"type\":\"BertProcessing\"}"), "post_processor",
      AKUNU_ERROR_FORMAT },
    { WITH("\"added_tokens\":[{\"id\":99999999,\"content\":\"x\"}]"), "added_tokens: the id of 'x'",
      AKUNU_ERROR_FORMAT },
    { WITH("\"added_tokens\":[{\"id\":2}]"), "added_tokens: content", AKUNU_ERROR_FORMAT },
    { WITH("\"decoder\":{\"type\":\"Sequence\",\"decoders\":[" NINE(GROWING) "]}"), "the limit",
      AKUNU_ERROR_UNSUPPORTED },
    { WITH("\"added_tokens\":[{\"id\":2,\"content\":\"a\",\"normalized\":true}]"
           "," GROWING_NORMALIZER),
      "the limit", AKUNU_ERROR_UNSUPPORTED },
};

START_TEST(damaged_files)
{
    struct ak_tok_files files = { .tokenizer = text_of(damaged[_i].json) };
    struct ak_tokenizer *t;
    struct ak_error error = { 0 };
    ak_status status = ak_tok_from_json(&files, &t, &error);

    ck_assert_msg(status == damaged[_i].status, "%s: %d", damaged[_i].json, (int)status);
    ck_assert_ptr_null(t);
    ck_assert_msg(strstr(error.message, damaged[_i].word) != NULL, "'%s' lacks '%s'", error.message,
                  damaged[_i].word);
}
END_TEST

START_TEST(files_beside_it)
{
    struct ak_tok_files files = {
        .tokenizer = text_of(
            WITH("\"added_tokens\":[{\"id\":2,\"content\":\"<s>\",\"special\":true},{\"id\":3,"
                 "\"content\":\"<e>\","
                 "\"special\":true},{\"id\":4,\"content\":\"<|im_end|>\",\"special\":true},"
                 "{\"id\":5,\"content\":\"[PREFIX]\",\"normalized\":true},"
                 "{\"id\":6,\"content\":\"[SUFFIX]\",\"normalized\":false}]")),
        .config = text_of("{\"bos_token\":\"<s>\",\"eos_token\":{\"content\":\"<e>\"},"
                          "\"pad_token\":\"<e>\"}"),
        .generation = text_of("{\"eos_token_id\":[0,77]}"),
    };
    struct ak_tokenizer *t;
    struct ak_error error = { 0 };

    ck_assert_msg(ak_tok_from_json(&files, &t, &error) == AKUNU_OK, "%s", error.message);
    static const int32_t special[] = { -1, 2, 3, 4, 3, 5, 6, -1, -1, -1, -1, -1 };
    ck_assert_int_eq(ak_tok_bos(t), 2);
    for (int i = 0; i < 12; i++)
        ck_assert_int_eq(ak_tok_special(t, (enum akunu_special_token)i), special[i]);
    for (int32_t id = 0; id < 5; id++) {
        ck_assert(ak_tok_is_end(t, id) == (id == 0 || id >= 3));
        ck_assert(ak_tok_is_control(t, id) == (id >= 2));
    }
    ak_tok_free(t);
    files.config = text_of("{");
    ck_assert_int_eq(ak_tok_from_json(&files, &t, &error), AKUNU_ERROR_FORMAT);
    ck_assert_ptr_nonnull(strstr(error.message, "tokenizer_config.json"));
}
END_TEST

/* ---- SentencePiece's tokenizer.model, by hand --------------------------- */
/* Appends a field of bytes. */
static size_t put(char *out, unsigned number, const char *bytes, size_t n)
{
    out[0] = (char)(number << 3 | 2);
    out[1] = (char)n;
    memcpy(out + 2, bytes, n);
    return n + 2;
}

static size_t put_piece(char *out, const char *text, float score, unsigned type)
{
    char piece[64];
    size_t n = put(piece, 1, text, strlen(text));

    piece[n++] = 2 << 3 | 5;
    memcpy(piece + n, &score, sizeof score);
    n += sizeof score;
    piece[n++] = 3 << 3;
    piece[n++] = (char)type;
    return put(out, 1, piece, n);
}

/* Of type 1 (Unigram) or 2 (BPE), without normalization. */
static size_t put_model(char *out, char type)
{
    static const char normalizer[] = { 3 << 3, 1, 4 << 3, 0 };
    const char trainer[] = { 3 << 3, type };
    size_t n = 0;

    n += put_piece(out + n, "<unk>", 0, 2);
    n += put_piece(out + n, "<s>", 0, 3);
    n += put_piece(out + n, "</s>", 0, 3);
    n += put_piece(out + n, "▁", -3, 1);
    n += put_piece(out + n, "a", -2, 1);
    n += put_piece(out + n, "b", -2, 1);
    n += put_piece(out + n, "ab", -1, 1);
    n += put_piece(out + n, "▁▁▁", 0, 4);
    n += put(out + n, 2, trainer, sizeof trainer);
    return n + put(out + n, 3, normalizer, sizeof normalizer);
}

START_TEST(sentencepiece_model)
{
    char model[512];
    struct ak_error error = { 0 };
    struct ak_tokenizer *t;
    int32_t ids[MAX_IDS];
    struct ak_text bytes = { model, 0 };

    for (char type = 1; type <= 2; type++) {
        bytes.n = (uint32_t)put_model(model, type);
        ck_assert_msg(ak_tok_from_sentencepiece(bytes, &t, &error) == AKUNU_OK, "%s",
                      error.message);
        size_t n = check_ids(t, "aba b", 5, 0, "3 6 4 3 5", type, ids);
        char text[] = "aba b";
        check_text(t, ids, n, 0, text, type);
        check_ids(t, "a   ", 4, 0, "3 4 7", type, ids);
        check_ids(t, "a", 1, AKUNU_ADD_SPECIAL, type == 1 ? "3 4 2" : "1 3 4", type, ids);
        ak_tok_free(t);
    }
    for (uint32_t n = 1; n < bytes.n; n++) { /* ends early: a shorter model, or refused */
        struct ak_text cut = { model, n };
        if (ak_tok_from_sentencepiece(cut, &t, &error) == AKUNU_OK)
            ak_tok_free(t);
        else
            ck_assert_ptr_nonnull(strstr(error.message, "tokenizer.model"));
    }
    bytes.n = (uint32_t)put_model(model, 3);
    ck_assert_int_eq(ak_tok_from_sentencepiece(bytes, &t, &error), AKUNU_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(error.message, "type 3"));
}
END_TEST

/* A length that leads outside of its message, and what no model has. */
START_TEST(damaged_models)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *says;
    } models[] = {
        { "\x0A\x04\x0A\x01"
          "a",
          5, "tokenizer.model: the file is damaged" },
        { "\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"
          "a",
          12, "tokenizer.model: the file is damaged" },
        { "\x0A\x03\x0A\x02"
          "a",
          5, "tokenizer.model: a piece is damaged" },
        { "\x0A\x03\x0A\x01"
          "a"
          "\x12\x02\x1A\x01",
          9, "tokenizer.model: trainer_spec is damaged" },
        { "\x0A\x03\x0A\x01"
          "a"
          "\x1A\x02\x12\x01",
          9, "tokenizer.model: normalizer_spec is damaged" },
        { "\x12\x02\x18\x01", 4, "tokenizer.model: there are no pieces" },
        { "\x0A\x03\x0A\x01"
          "a"
          "\x12\x02\x18\x02"
          "\x1A\x02\x20\x01",
          13, "a normalizer_spec that changes text is not supported with BPE" },
        { "\x0A\x03\x0A\x01"
          "a"
          "\x12\x02\x18\x02"
          "\x1A\x05\x12\x01"
          "x"
          "\x20\x00",
          16, "a normalizer_spec that changes text is not supported" },
    };
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        struct ak_text bytes = { models[i].bytes, (uint32_t)models[i].n };
        struct ak_tokenizer *t;
        struct ak_error error = { 0 };
        ck_assert_int_ne(ak_tok_from_sentencepiece(bytes, &t, &error), AKUNU_OK);
        ck_assert_msg(strstr(error.message, models[i].says), "model %zu: '%s' lacks '%s'", i,
                      error.message, models[i].says);
    }
}
END_TEST

/* ---- Definitions that ask for too much ---------------------------------- */
#define DOTS " . . . . . . . . . . . . . . . . . . . . . . . . . . . . . . . . . . . ."

/* WordPiece writes a first word otherwise than the same word later, and longer. */
START_TEST(first_words_of_streams)
{
    static const char *const vocabularies[] = {
        "{\"model\":{\"type\":\"WordPiece\",\"continuing_subword_prefix\":\"##\",\"vocab\":{\"<"
        "0x0A>\":0}},"
        "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"WordPiece\",\"cleanup\":"
        "false},{\"type\":\"ByteFallback\"}]}}",
        "{\"model\":{\"type\":\"WordPiece\",\"continuing_subword_prefix\":\"##\",\"vocab\":{"
        "\"x" DOTS "\":0}},"
        "\"decoder\":{\"type\":\"WordPiece\",\"cleanup\":true}}",
    };
    static const char *const texts[] = { "<0x0A>", "x" DOTS };

    for (int i = 0; i < 2; i++) {
        struct ak_tok_files files = { .tokenizer = text_of(vocabularies[i]) };
        struct ak_tokenizer *t;
        struct ak_tok_stream *s;
        struct ak_error error = { 0 };
        const char *text;
        size_t n;

        ck_assert_msg(ak_tok_from_json(&files, &t, &error) == AKUNU_OK, "%s", error.message);
        ck_assert_int_eq(ak_tok_stream_create(t, 0, &s, &error), AKUNU_OK);
        ck_assert_int_eq(ak_tok_stream_push(s, 0, &text, &n, &error), AKUNU_OK);
        ck_assert(n == strlen(texts[i]) && memcmp(text, texts[i], n) == 0);
        ak_tok_stream_free(s);
        ak_tok_free(t);
    }
}
END_TEST

static const char *const growing[] = {
    WITH(GROWING_NORMALIZER),
    WITH("\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[" NINE(GROWING_BLANKS) "]}"),
};

START_TEST(texts_that_grow)
{
    struct ak_tok_files files = { .tokenizer = text_of(growing[_i]) };
    struct ak_tokenizer *t;
    struct ak_error error = { 0 };
    size_t n;

    ck_assert_msg(ak_tok_from_json(&files, &t, &error) == AKUNU_OK, "%s", error.message);
    ck_assert_int_eq(ak_tok_encode(t, "a b", 3, 0, NULL, 0, &n, &error), AKUNU_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(error.message, "the limit"));
    ak_tok_free(t);
}
END_TEST

/* ---- Slow tokenizers ---------------------------------------------------- */
static void begin_folder(struct test_folder *folder)
{
    struct test_st st = { 0 };

    *folder = test_folder_begin();
    test_st_add(&st, "x", "F32", "1", "\0\0\0\0", 4);
    test_st_write(&st, folder, "model.safetensors", 0);
}

static ak_status open_folder(const struct test_folder *folder, struct ak_tokenizer **t,
                             struct ak_error *error)
{
    struct ak_provider *p;

    ck_assert_msg(ak_provider_open(folder->path, &p, error) == AKUNU_OK, "%s", error->message);
    ak_status status = ak_tok_open(p, t, error);
    ak_provider_close(p);
    return status;
}

/* Text, ids, ids with what is added, and the text of the former, with control tokens and
 * without. */
static void check_slow_row(const struct ak_tokenizer *t, char *line, int number)
{
    char *rest = line, *text = strsep(&rest, "\t"), *ids = strsep(&rest, "\t"),
         *added = strsep(&rest, "\t"), *decoded = strsep(&rest, "\t");
    int32_t got[MAX_IDS];
    size_t n = unescape(text);

    check_ids(t, text, n, AKUNU_PARSE_SPECIAL | AKUNU_ADD_SPECIAL, added, number, got);
    size_t n_ids = check_ids(t, text, n, AKUNU_PARSE_SPECIAL, ids, number, got);
    check_text(t, got, n_ids, 0, decoded, number);
    check_text(t, got, n_ids, AKUNU_SKIP_SPECIAL, rest, number);
}

/* Every class, and its options. */
START_TEST(slow_folders)
{
    char path[4096], *line = NULL;
    size_t capacity = 0;
    int number = 0, folders = 0;
    struct ak_tokenizer *t = NULL;
    struct test_folder folder = { "" };
    struct ak_error error = { 0 };

    snprintf(path, sizeof path, "%s/tokenizer/slow.tsv", getenv("AK_TEST_DATA"));
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s is missing", path);
    while (getline(&line, &capacity, file) > 0) {
        line[strcspn(line, "\n")] = '\0';
        number++;
        if (line[0] == '@') {
            if (folders++)
                test_folder_end(&folder);
            ak_tok_free(t);
            t = NULL;
            begin_folder(&folder);
        } else if (line[0] == '+') {
            char *bytes = line + 1, *name = strsep(&bytes, "\t");
            test_write(&folder, name, bytes, unescape(bytes));
        } else {
            if (!t)
                ck_assert_msg(open_folder(&folder, &t, &error) == AKUNU_OK, "line %d: %s", number,
                              error.message);
            check_slow_row(t, line, number);
        }
    }
    ck_assert_int_eq(folders, 19);
    test_folder_end(&folder);
    ak_tok_free(t);
    free(line);
    fclose(file);
}
END_TEST

#define VOCAB "{\"<|endoftext|>\": 0, \"a\": 1, \"b\": 2, \"ab\": 3}"
#define NAME_CLASS(NAME) "{\"tokenizer_class\": \"" NAME "\"}"

/* A folder of model_type gpt2 with up to four files, and what is said of it. */
static const struct {
    const char *files[4][2];
    ak_status status;
    const char *said;
} bad_folders[] = {
    { { { "vocab.json", VOCAB } },
      AKUNU_ERROR_FORMAT,
      "merges.txt is missing: GPT2Tokenizer needs vocab.json and merges.txt, or tokenizer.json" },
    { { { "merges.txt", "a b\n" } }, AKUNU_ERROR_FORMAT, "vocab.json is missing: GPT2Tokenizer" },
    { { { "vocab.json", VOCAB }, { "tokenizer_config.json", NAME_CLASS("BertTokenizerFast") } },
      AKUNU_ERROR_FORMAT,
      "vocab.txt is missing: BertTokenizer needs vocab.txt, or tokenizer.json" },
    { { { "vocab.txt", "a\n" }, { "tokenizer_config.json", NAME_CLASS("XLMRobertaTokenizer") } },
      AKUNU_ERROR_FORMAT,
      "sentencepiece.bpe.model is missing" },
    { { { "vocab.txt", "a\n" }, { "tokenizer_config.json", NAME_CLASS("BertJapaneseTokenizer") } },
      AKUNU_ERROR_UNSUPPORTED,
      "tokenizers of the class BertJapaneseTokenizer are not supported; those of the classes "
      "BertTokenizer, " },
    { { { "vocab.json", VOCAB },
        { "merges.txt", "a b\n" },
        { "tokenizer_config.json", NAME_CLASS("PreTrainedTokenizerFast") } },
      AKUNU_ERROR_UNSUPPORTED,
      "class PreTrainedTokenizerFast" },
    { { { "vocab.txt", "a\n" }, { "config.json", "{\"model_type\": \"lfm2\"}" } },
      AKUNU_ERROR_UNSUPPORTED,
      "model type lfm2" },
    { { { "vocab.json", "[]" }, { "merges.txt", "a b\n" } },
      AKUNU_ERROR_FORMAT,
      "vocab.json is a list, where an object is expected" },
    { { { "vocab.json", "{\"a\": 1, " }, { "merges.txt", "a b\n" } },
      AKUNU_ERROR_FORMAT,
      "vocab.json" },
    { { { "vocab.json", "{\"a\": \"x\"}" }, { "merges.txt", "\n" } },
      AKUNU_ERROR_FORMAT,
      "vocab.json: the id of 'a' is a string" },
    { { { "vocab.json", "{}" },
        { "merges.txt", "\n" },
        { "tokenizer_config.json",
          "{\"unk_token\": null, \"bos_token\": null, \"eos_token\": null}" } },
      AKUNU_ERROR_FORMAT,
      "vocab.json is empty" },
    { { { "vocab.json", VOCAB }, { "merges.txt", "#version: 0.2\n\na b\na a\n" } },
      AKUNU_ERROR_FORMAT,
      "merges.txt: line 4 is \"a a\", where a pair of tokens of vocab.json that together are a "
      "token is expected" },
    { { { "vocab.json", VOCAB }, { "merges.txt", "a b c\n" } },
      AKUNU_ERROR_FORMAT,
      "merges.txt: line 1 is \"a b c\"" },
    { { { "vocab.json", VOCAB }, { "merges.txt", "ab\n" } },
      AKUNU_ERROR_FORMAT,
      "merges.txt: line 1 is \"ab\"" },
    { { { "vocab.json", VOCAB }, { "merges.txt", "" } },
      AKUNU_ERROR_FORMAT,
      "merges.txt is empty" },
    { { { "vocab.txt", "a\nb\xff\n" }, { "tokenizer_config.json", NAME_CLASS("BertTokenizer") } },
      AKUNU_ERROR_FORMAT,
      "vocab.txt: line 2 is \"b\\xff\", where a token in UTF-8 is expected" },
    { { { "vocab.json", VOCAB },
        { "merges.txt", "a b\n" },
        { "added_tokens.json", "{\"x\": -1}" } },
      AKUNU_ERROR_FORMAT,
      "added_tokens.json: the id of \"x\" is not an integer from 0 on" },
    { { { "vocab.json", VOCAB },
        { "merges.txt", "a b\n" },
        { "added_tokens.json", "{\"x\": 2000000}" } },
      AKUNU_ERROR_FORMAT,
      "added_tokens.json: the id of 'x' is out of range" },
    { { { "vocab.json", VOCAB }, { "merges.txt", "a b\n" }, { "added_tokens.json", "[1]" } },
      AKUNU_ERROR_FORMAT,
      "added_tokens.json is a list" },
    { { { "vocab.json", VOCAB },
        { "merges.txt", "a b\n" },
        { "tokenizer_config.json", "{\"added_tokens_decoder\": {\"4x\": {\"content\": \"x\"}}}" } },
      AKUNU_ERROR_FORMAT,
      "tokenizer_config.json: added_tokens_decoder: the id of \"x\"" },
    { { { "vocab.json", VOCAB },
        { "merges.txt", "a b\n" },
        { "tokenizer_config.json", "{\"bos_token\": 5}" } },
      AKUNU_ERROR_FORMAT,
      "tokenizer_config.json: a token is an integer" },
    { { { "vocab.json", VOCAB },
        { "merges.txt", "a b\n" },
        { "tokenizer_config.json", "{\"add_prefix_space\": \"yes\"}" } },
      AKUNU_ERROR_FORMAT,
      "tokenizer_config.json: add_prefix_space is a string, where a bool is expected" },
    { { { "vocab.txt", "a\n" },
        { "tokenizer_config.json",
          "{\"tokenizer_class\": \"BertTokenizer\", \"sep_token\": null}" } },
      AKUNU_ERROR_FORMAT,
      "sep_token is not set, which BertTokenizer needs" },
    { { { "tokenizer.model", "\x0A\x03\x0A\x01x" },
        { "tokenizer_config.json", NAME_CLASS("LlamaTokenizer") } },
      AKUNU_ERROR_FORMAT,
      "tokenizer.model is a Unigram model, where LlamaTokenizer needs BPE" },
    { { { "spiece.model", "\x0A\x03\x0A\x01" },
        { "tokenizer_config.json", NAME_CLASS("T5Tokenizer") } },
      AKUNU_ERROR_FORMAT,
      "spiece.model: " },
};

START_TEST(damaged_folders)
{
    struct ak_tokenizer *t;
    struct test_folder folder;
    struct ak_error error = { 0 };

    begin_folder(&folder);
    test_write_text(&folder, "config.json", "{\"model_type\": \"gpt2\"}");
    for (int i = 0; i < 4 && bad_folders[_i].files[i][0]; i++)
        test_write_text(&folder, bad_folders[_i].files[i][0], bad_folders[_i].files[i][1]);
    ck_assert_int_eq(open_folder(&folder, &t, &error), bad_folders[_i].status);
    ck_assert_msg(strstr(error.message, bad_folders[_i].said), "'%s' lacks '%s'", error.message,
                  bad_folders[_i].said);
    ck_assert_ptr_null(t);
    test_folder_end(&folder);
}
END_TEST

/* Where transformers 4 and 5 differ, and files that count before others. */
START_TEST(choices_of_slow_folders)
{
    struct ak_tokenizer *t;
    struct test_folder folder;
    struct ak_error error = { 0 };
    int32_t ids[8];

    begin_folder(&folder);
    test_write_text(&folder, "config.json", "{\"model_type\": \"gpt2\"}");
    ck_assert_int_eq(open_folder(&folder, &t, &error), AKUNU_OK);
    ck_assert_ptr_null(t); /* no file of a vocabulary */
    test_write_text(&folder, "vocab.json", VOCAB);
    test_write_text(&folder, "merges.txt", "\r\na b\r\n\r\n");
    /* ids keep their gaps; a token of the vocabulary keeps its id */
    test_write_text(&folder, "added_tokens.json", "{\"x\": 9, \"b\": 7}");
    ck_assert_msg(open_folder(&folder, &t, &error) == AKUNU_OK, "%s", error.message);
    ck_assert_uint_eq(ak_tok_n_tokens(t), 10);
    check_ids(t, "abxba", 5, 0, "1 2 9 2 1", 0, ids);
    ak_tok_free(t);
    unlink(test_in(&folder, "added_tokens.json"));
    ck_assert_int_eq(open_folder(&folder, &t, &error), AKUNU_OK);
    check_ids(t, "abx<|endoftext|>", 16, AKUNU_PARSE_SPECIAL, "3 0", 0, ids);
    ck_assert(ak_tok_is_end(t, 0) && ak_tok_special(t, AKUNU_TOKEN_BOS) == 0);
    ak_tok_free(t);
    /* tokenizer.json counts before them */
    test_write_text(&folder, "tokenizer.json",
                    "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"b\": 0, \"a\": 1}, "
                    "\"merges\": []}, \"pre_tokenizer\": {\"type\": \"ByteLevel\", "
                    "\"add_prefix_space\": false}}");
    ck_assert_int_eq(open_folder(&folder, &t, &error), AKUNU_OK);
    check_ids(t, "ab", 2, 0, "1 0", 0, ids);
    ak_tok_free(t);
    test_folder_end(&folder);
}
END_TEST

/* A token that no file has comes after the vocabulary, whether that has an odd or an even number of
 * tokens: ids of transformers 5.24. */
START_TEST(ids_after_the_vocabulary)
{
    static const struct {
        const char *vocab, *ids;
        size_t n;
    } cases[] = { { "{\"a\": 0, \"b\": 1, \"ab\": 2}", "2 3 1", 4 },
                  { "{\"a\": 0, \"b\": 1, \"ab\": 2, \"c\": 3}", "2 4 1", 5 } };
    struct test_folder folder;
    struct ak_error error = { 0 };
    int32_t ids[8];

    begin_folder(&folder);
    test_write_text(&folder, "config.json", "{\"model_type\": \"gpt2\"}");
    test_write_text(&folder, "merges.txt", "a b\n");
    for (int i = 0; i < 2; i++) {
        struct ak_tokenizer *t;
        test_write_text(&folder, "vocab.json", cases[i].vocab);
        ck_assert_msg(open_folder(&folder, &t, &error) == AKUNU_OK, "%s", error.message);
        ck_assert_uint_eq(ak_tok_n_tokens(t), cases[i].n);
        check_ids(t, "ab<|endoftext|>b", 16, AKUNU_PARSE_SPECIAL, cases[i].ids, i, ids);
        ak_tok_free(t);
    }
    test_folder_end(&folder);
}
END_TEST

/* T5 may have no sentinels: ids of transformers 5.24. */
START_TEST(numbers_of_sentinels)
{
    static const char pieces[] = "\x0A\x09\x0A\x05<pad>\x18\x03\x0A\x08\x0A\x04</s>\x18\x03"
                                 "\x0A\x09\x0A\x05<unk>\x18\x02\x0A\x06\x0A\x04\xE2\x96\x81"
                                 "a\x12\x06\xC0\x02\x02\xD0\x02\x01";
    static const char *const expected[] = { "3 2 1", "3 4 1" };
    struct test_folder folder;
    struct ak_error error = { 0 };
    int32_t ids[8];

    begin_folder(&folder);
    test_write_text(&folder, "config.json", "{\"model_type\": \"t5\"}");
    test_write_text(&folder, "spiece.model", pieces);
    for (int n = 0; n < 2; n++) {
        struct ak_tokenizer *t;
        char config[128];
        sprintf(config, "{\"tokenizer_class\": \"T5Tokenizer\", \"extra_ids\": %d}", n);
        test_write_text(&folder, "tokenizer_config.json", config);
        ck_assert_msg(open_folder(&folder, &t, &error) == AKUNU_OK, "%d: %s", n, error.message);
        ck_assert_uint_eq(ak_tok_n_tokens(t), 4 + (size_t)n);
        check_ids(t, "a <extra_id_0>", 14, AKUNU_ADD_SPECIAL | AKUNU_PARSE_SPECIAL, expected[n], n,
                  ids);
        ak_tok_free(t);
    }
    test_folder_end(&folder);
}
END_TEST

/* Qwen3.5 divides before a mark that follows punctuation, Qwen2 does not: a merge of "!" and the
 * first byte of U+0301 shows it. Ids of transformers 5.24. */
START_TEST(marks_after_punctuation)
{
    static const char *const classes[][2] = { { "Qwen3_5Tokenizer", "1 1 2 3" },
                                              { "Qwen2Tokenizer", "1 4 3" } };
    struct test_folder folder;
    struct ak_error error = { 0 };
    int32_t ids[8];

    begin_folder(&folder);
    test_write_text(&folder, "config.json", "{\"model_type\": \"gpt2\"}");
    test_write_text(&folder, "vocab.json",
                    "{\"<|endoftext|>\": 0, \"!\": 1, \"\xC3\x8C\": 2, \"\xC4\xA3\": 3, "
                    "\"!\xC3\x8C\": 4}");
    test_write_text(&folder, "merges.txt", "! \xC3\x8C\n");
    for (int i = 0; i < 2; i++) {
        struct ak_tokenizer *t;
        char config[64];
        snprintf(config, sizeof config, "{\"tokenizer_class\": \"%s\"}", classes[i][0]);
        test_write_text(&folder, "tokenizer_config.json", config);
        ck_assert_msg(open_folder(&folder, &t, &error) == AKUNU_OK, "%s", error.message);
        check_ids(t, "!!\xCC\x81", 4, 0, classes[i][1], i, ids);
        ak_tok_free(t);
    }
    test_folder_end(&folder);
}
END_TEST

/* A token that the options name is special even where added_tokens_decoder says that it is not, and
 * where added_tokens.json says nothing: texts of transformers 5.24. */
START_TEST(named_tokens_are_special)
{
    static const char *const configs[] = {
        "{\"eos_token\": \"<x>\", \"added_tokens_decoder\": {\"3\": {\"content\": \"<x>\", "
        "\"special\": false}, \"4\": {\"content\": \"<y>\", \"special\": false}}}",
        "{\"eos_token\": \"<x>\"}",
    };
    struct test_folder folder;
    struct ak_error error = { 0 };
    int32_t ids[8];

    begin_folder(&folder);
    test_write_text(&folder, "config.json", "{\"model_type\": \"gpt2\"}");
    test_write_text(&folder, "vocab.json", "{\"a\": 0, \"b\": 1, \"ab\": 2}");
    test_write_text(&folder, "merges.txt", "a b\n");
    test_write_text(&folder, "added_tokens.json", "{\"<x>\": 3, \"<y>\": 4}");
    for (int i = 0; i < 2; i++) {
        struct ak_tokenizer *t;
        char shown[] = "ab<x>b<y>a", hidden[] = "abb<y>a";
        test_write_text(&folder, "tokenizer_config.json", configs[i]);
        ck_assert_msg(open_folder(&folder, &t, &error) == AKUNU_OK, "%s", error.message);
        size_t n = check_ids(t, shown, strlen(shown), AKUNU_PARSE_SPECIAL, "2 3 1 4 0", i, ids);
        check_text(t, ids, n, 0, shown, i);
        check_text(t, ids, n, AKUNU_SKIP_SPECIAL, hidden, i);
        ak_tok_free(t);
    }
    test_folder_end(&folder);
}
END_TEST

/* Pieces "<unk>" (unknown), "<s>" and "</s>" (control), "▁" and "a"; BPE without a normalizer. */
#define LLAMA_PIECES                                                                               \
    "\x0A\x09\x0A\x05<unk>\x18\x02\x0A\x07\x0A\x03<s>\x18\x03\x0A\x08\x0A\x04</s>"                 \
    "\x18\x03\x0A\x05\x0A\x03\xE2\x96\x81\x0A\x03\x0A\x01"                                         \
    "a\x12\x02\x18\x02\x1A\x02 \x00"

/* Tokenizers of Llama follow transformers 4 if their folder says nothing: BOS, and a space before
 * each text. */
START_TEST(llama_defaults)
{
    static const char pieces[] = LLAMA_PIECES;
    struct ak_tokenizer *t;
    struct test_folder folder;
    struct ak_error error = { 0 };
    int32_t ids[16];

    begin_folder(&folder);
    test_write_text(&folder, "config.json", "{\"model_type\": \"llama\"}");
    test_write(&folder, "tokenizer.model", pieces, sizeof pieces - 1);
    ck_assert_msg(open_folder(&folder, &t, &error) == AKUNU_OK, "%s", error.message);
    check_ids(t, " a</s>a", 7, AKUNU_PARSE_SPECIAL | AKUNU_ADD_SPECIAL, "1 3 3 4 2 3 4", 0, ids);
    ak_tok_free(t);
    test_write_text(&folder, "tokenizer_config.json",
                    "{\"legacy\": false, \"add_bos_token\": false}");
    ck_assert_int_eq(open_folder(&folder, &t, &error), AKUNU_OK);
    check_ids(t, "a</s>a", 6, AKUNU_PARSE_SPECIAL | AKUNU_ADD_SPECIAL, "3 4 2 4", 0, ids);
    ak_tok_free(t);
    test_folder_end(&folder);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tokenizer_json");
    TCase *tcase = tcase_create("tokenizer_json");

    tcase_add_test(tcase, every_part);
    tcase_add_test(tcase, rare_vocabularies);
    tcase_add_test(tcase, edges_of_every_part);
    tcase_add_loop_test(tcase, damaged_files, 0, sizeof damaged / sizeof damaged[0]);
    tcase_add_test(tcase, files_beside_it);
    tcase_add_test(tcase, sentencepiece_model);
    tcase_add_test(tcase, damaged_models);
    tcase_add_test(tcase, first_words_of_streams);
    tcase_add_loop_test(tcase, texts_that_grow, 0, sizeof growing / sizeof growing[0]);
    tcase_add_test(tcase, slow_folders);
    tcase_add_loop_test(tcase, damaged_folders, 0, sizeof bad_folders / sizeof bad_folders[0]);
    tcase_add_test(tcase, choices_of_slow_folders);
    tcase_add_test(tcase, ids_after_the_vocabulary);
    tcase_add_test(tcase, numbers_of_sentinels);
    tcase_add_test(tcase, marks_after_punctuation);
    tcase_add_test(tcase, named_tokens_are_special);
    tcase_add_test(tcase, llama_defaults);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
