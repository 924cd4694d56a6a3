/* Tokenizers and text. The first byte says what the definition is, the second holds flags and
 * how often the text is repeated, the third is the length of the text, which follows, and the
 * rest is the definition:
 *
 *     j  a tokenizer.json             m  SentencePiece's tokenizer.model
 *     g  a GGUF file                  v  a vocabulary as lines (read_vocab)
 *
 * Any other first byte chooses one of our own that lose nothing; the text is then all from the
 * third byte on. Whatever the tokenizer: counts are those that are filled in, ids are of the
 * vocabulary, less room gives the beginning, and a stream gives what all tokens at once give. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "akunu/akunu.h"
#include "base/utf8.h"
#include "text/tokenizer/internal.h"
#include "text/tokenizer/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    ADD = 1,
    PARSE = 2,
    SKIP = 4,
    CONTINUE = 8,
    EXPORT = 16,
    TEXT_BYTES_MAX = 1 << 16,
    LINES_MAX = 1024
};

static void must(bool holds)
{
    if (!holds)
        abort();
}

static struct ak_text text_of(const char *string)
{
    return (struct ak_text){ string, (uint32_t)strlen(string) };
}

/* ---- What holds of any tokenizer ---------------------------------------- */
/* `text` with U+FFFD for what is not UTF-8; from malloc. */
static char *readable(const char *text, size_t n, size_t *n_out)
{
    char *out = malloc(3 * n + 1);

    *n_out = 0;
    for (size_t at = 0; at < n;) {
        struct ak_utf8 c = ak_utf8_next(text + at, n - at);
        memcpy(out + *n_out, c.valid ? text + at : "\xEF\xBF\xBD", c.valid ? c.bytes : 3);
        *n_out += c.valid ? c.bytes : 3;
        at += c.bytes;
    }
    return out;
}

static void check_stream(struct ak_tokenizer *t, const int32_t *ids, size_t n_ids, unsigned flags,
                         const char *text, size_t n)
{
    struct ak_tok_stream *s;
    struct ak_error error;
    const char *part;
    size_t n_part, at = 0, n_want;
    char *want = readable(text, n, &n_want);

    must(ak_tok_stream_create(t, flags, &s, &error) == AKUNU_OK);
    for (size_t i = 0; i <= n_ids; i++) {
        if (i < n_ids)
            must(ak_tok_stream_push(s, ids[i], &part, &n_part, &error) == AKUNU_OK);
        else
            ak_tok_stream_end(s, &part, &n_part);
        must(n_part <= n_want - at && memcmp(part, want + at, n_part) == 0);
        at += n_part;
    }
    must(at == n_want);
    ak_tok_stream_free(s);
    free(want);
}

/* Gives the text of the ids, from malloc. */
static char *check_text(struct ak_tokenizer *t, const int32_t *ids, size_t n_ids, unsigned flags,
                        size_t *n_text)
{
    size_t n, again;
    struct ak_error error;

    must(ak_tok_decode(t, ids, n_ids, flags, NULL, 0, &n, &error) == AKUNU_OK);
    char *text = malloc(n + 1), *half = malloc(n / 2 + 1);
    must(ak_tok_decode(t, ids, n_ids, flags, text, n, &again, &error) == AKUNU_OK && again == n);
    must(ak_tok_decode(t, ids, n_ids, flags, half, n / 2, &again, &error) == AKUNU_OK &&
         again == n);
    must(memcmp(text, half, n / 2) == 0);
    check_stream(t, ids, n_ids, flags, text, n);
    free(half);
    *n_text = n;
    return text;
}

/* Any numbers as ids. */
static void check_hostile_ids(struct ak_tokenizer *t, const char *text, size_t n)
{
    int32_t ids[16], n_tokens = (int32_t)ak_tok_n_tokens(t);
    size_t n_ids = ak_min_size(n / sizeof *ids, 16), n_text;
    bool inside = true;
    struct ak_error error;

    for (size_t i = 0; i < n_ids; i++) {
        memcpy(&ids[i], text + i * sizeof *ids, sizeof *ids);
        ids[i] = ids[i] % 3 == 0 ? ids[i] : ids[i] % (n_tokens + 1);
        inside = inside && ids[i] >= 0 && ids[i] < n_tokens;
        must(ak_tok_is_end(t, ids[i]) + ak_tok_is_control(t, ids[i]) == 0 ||
             (ids[i] >= 0 && ids[i] < n_tokens));
    }
    if (inside)
        free(check_text(t, ids, n_ids, 0, &n_text));
    else
        must(ak_tok_decode(t, ids, n_ids, 0, NULL, 0, &n_text, &error) == AKUNU_ERROR_ARGUMENT);
}

/* `same`: that the text comes back. */
static void check(struct ak_tokenizer *t, const char *text, size_t n, unsigned bits, bool same)
{
    unsigned flags =
        (bits & ADD ? AKUNU_ADD_SPECIAL : 0) | (bits & PARSE ? AKUNU_PARSE_SPECIAL : 0);
    unsigned back = (bits & SKIP ? AKUNU_SKIP_SPECIAL : 0) | (bits & CONTINUE ? AKUNU_CONTINUE : 0);
    size_t n_ids, again, n_got;
    struct ak_error error;

    if (ak_tok_encode(t, text, n, flags, NULL, 0, &n_ids, &error) !=
        AKUNU_OK) /* a pattern's limit */
        return;
    int32_t *ids = malloc((n_ids + 1) * sizeof *ids), *half = malloc((n_ids / 2 + 1) * sizeof *ids);
    must(ak_tok_encode(t, text, n, flags, ids, n_ids, &again, &error) == AKUNU_OK &&
         again == n_ids);
    must(ak_tok_encode(t, text, n, flags, half, n_ids / 2, &again, &error) == AKUNU_OK &&
         again == n_ids);
    must(memcmp(ids, half, n_ids / 2 * sizeof *ids) == 0);
    for (size_t i = 0; i < n_ids; i++)
        must(ids[i] >= 0 && (size_t)ids[i] < ak_tok_n_tokens(t));
    char *got = check_text(t, ids, n_ids, back, &n_got);
    must(!same || (n_got == n && memcmp(got, text, n) == 0));
    check_hostile_ids(t, text, n);
    free(got);
    free(half);
    free(ids);
}

/* ---- Our own ------------------------------------------------------------ */
/* All bytes, a few longer tokens, one that is control and one that was added. */
enum { N_BYTES = 256, N_OURS = 266 };
static const char *const longer[2][N_OURS - N_BYTES] = {
    { "th", "he", "the", "Ġt", "Ġthe", "Ã©", "ĠĠ", "ĊĊ", "<s>", "<add>" },
    { "th", "he", "the", "▁t", "▁the", "é", "▁▁", "▁", "<s>", "<add>" },
};
static const char *const merges[2][4] = { { "t h", "Ġ t", "th e", "Ġt he" },
                                          { "t h", "▁ t", "th e", "▁t he" } };

static struct ak_tokenizer *create_own(const char *model, const char *pre, bool printable,
                                       bool space_first)
{
    char written[N_BYTES][8];
    struct ak_text tokens[N_OURS], lines[4];
    float scores[N_OURS] = { 0 };
    int32_t types[N_OURS];
    struct ak_vocab vocab = ak_vocab_none;
    struct ak_error error;
    struct ak_tokenizer *t;

    for (unsigned i = 0; i < N_OURS; i++) {
        types[i] = i >= N_BYTES ? 1 : printable ? 1 : 6;
        if (i < N_BYTES && printable)
            written[i][ak_tok_encode_printable((unsigned char)i, written[i])] = '\0';
        else if (i < N_BYTES)
            snprintf(written[i], sizeof written[i], "<0x%02X>", i);
        tokens[i] = text_of(i < N_BYTES ? written[i] : longer[!printable][i - N_BYTES]);
        scores[i] = -(float)i;
    }
    types[N_OURS - 2] = 3;
    types[N_OURS - 1] = space_first ? 1 : 4;
    for (unsigned i = 0; i < 4; i++)
        lines[i] = text_of(merges[!printable][i]);
    vocab.model = text_of(model);
    vocab.pre = text_of(pre);
    vocab.n_tokens = N_OURS;
    vocab.tokens = tokens;
    vocab.scores = scores;
    vocab.types = types;
    vocab.n_merges = 4;
    vocab.merges = lines;
    vocab.bos = N_OURS - 2;
    vocab.add_space_prefix = space_first;
    must(ak_tok_create(&vocab, &t, &error) == AKUNU_OK);
    return t;
}

static struct ak_tokenizer *create_own_json(const char *splits)
{
    char json[1 << 14];
    struct ak_error error;
    struct ak_tokenizer *t;
    size_t at = (size_t)snprintf(json, sizeof json,
                                 "{\"added_tokens\":[{\"id\":256,\"content\":\"<s>\",\"special\":"
                                 "true},{\"id\":257,\"content\":\"<add>\"}],"
                                 "\"pre_tokenizer\":%s,\"decoder\":{\"type\":\"ByteLevel\"},"
                                 "\"model\":{\"type\":\"BPE\",\"merges\":[],\"vocab\":{",
                                 splits);

    for (unsigned i = 0; i < N_BYTES; i++) {
        char byte[4];
        struct ak_utf8 c = ak_utf8_next(byte, ak_tok_encode_printable((unsigned char)i, byte));
        at += (size_t)snprintf(json + at, sizeof json - at, "\"\\u%04x\":%u%s", c.code, i,
                               i < N_BYTES - 1 ? "," : "}}}");
    }
    const struct ak_tok_files files = { .tokenizer = { json, (uint32_t)at } };
    must(ak_tok_from_json(&files, &t, &error) == AKUNU_OK);
    return t;
}

static const char *const own_splits[] = {
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}",
    "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Digits\",\"individual_digits\":true},{"
    "\"type\":\"Punctuation\",\"behavior\":\"Contiguous\"},"
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}]}",
    "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\s+|"
    "[a-f]|(?<=x).\"},\"behavior\":\"MergedWithNext\"},"
    "{\"type\":\"Split\",\"pattern\":{\"String\":\"th\"},\"behavior\":\"MergedWithPrevious\","
    "\"invert\":true},"
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}]}",
};
enum { N_SPLITS = sizeof own_splits / sizeof *own_splits, RULES_MAX = 64 };

/* Tokenizers of a small vocabulary: every pre-tokenizer rule, and metaspace. */
static struct ak_tokenizer *own(unsigned i, bool *marks, bool *space_first)
{
    static struct ak_tokenizer *made[RULES_MAX];
    unsigned n_rules = 0, n_raw = 0;
    char name[64];

    while (ak_tok_pre_rules[n_rules].names)
        n_rules++;
    while (ak_tok_char_rules[n_raw].names &&
           ak_tok_char_rules[n_raw].pattern) /* the one without removes spaces */
        n_raw++;
    must(n_rules + n_raw + N_SPLITS + 2 <= RULES_MAX);
    i %= n_rules + n_raw + N_SPLITS + 2;
    *marks = i >= n_rules && i < n_rules + n_raw + 2;
    *space_first = i == n_rules + n_raw;
    if (made[i])
        return made[i];
    if (i < n_rules + n_raw) {
        sscanf(i < n_rules ? ak_tok_pre_rules[i].names : ak_tok_char_rules[i - n_rules].names,
               "%63s", name);
        made[i] = create_own("gpt2", name, i < n_rules, false);
    } else if (i < n_rules + n_raw + 2) {
        made[i] = create_own("llama", "", false, *space_first);
    } else {
        made[i] = create_own_json(own_splits[i - n_rules - n_raw - 2]);
    }
    return made[i];
}

/* ▁ decodes to a space. A prefix space is added after control tokens too. */
static void check_own(unsigned which, const char *text, size_t n, unsigned bits)
{
    bool marks, space_first;
    struct ak_tokenizer *t = own(which, &marks, &space_first);
    char *plain = malloc(n + 1);
    size_t n_plain = n;

    if (marks)
        n_plain = ak_tok_decode_metaspace(text, n, plain);
    else
        memcpy(plain, text, n);
    bits &= ~(unsigned)SKIP;
    if (bits & ADD)
        bits = (bits | SKIP) & ~(unsigned)PARSE;
    check(t, plain, n_plain, bits, !space_first || !(bits & (PARSE | CONTINUE)));
    free(plain);
}

/* ---- Definitions -------------------------------------------------------- */
/* model TAB pre-tokenizer TAB name
 * nine characters: six flags, "0" for -1, "1" and "2" for 0 and 1, then bos, eos and unknown
 *   as the character's distance from "0"
 * each token: a character for its type, one for its score, its text
 * (nothing), then each merge, (nothing), then the character map up to the end */
static bool read_vocab(const char *text, size_t n, struct ak_vocab *vocab, struct ak_text *tokens,
                       float *scores, int32_t *types, struct ak_text *lines)
{
    const char *end = text + n;
    unsigned part = 0;

    *vocab = ak_vocab_none;
    for (const char *next; text < end && part < 4; text = next) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        struct ak_text line = { text, (uint32_t)((stop ? stop : end) - text) };
        next = stop ? stop + 1 : end;
        if (part == 0) {
            struct ak_text *const fields[] = { &vocab->model, &vocab->pre, &vocab->name };
            for (unsigned i = 0; i < 3; i++) {
                const char *tab = memchr(line.bytes, '\t', line.n);
                *fields[i] =
                    (struct ak_text){ line.bytes, tab ? (uint32_t)(tab - line.bytes) : line.n };
                line = tab ? (struct ak_text){ tab + 1, line.n - fields[i]->n - 1 } :
                             (struct ak_text){ end, 0 };
            }
            part++;
        } else if (part == 1) {
            int *const flags[] = { &vocab->add_bos,          &vocab->add_eos,
                                   &vocab->add_space_prefix, &vocab->remove_extra_whitespaces,
                                   &vocab->lowercase,        &vocab->strip_accents };
            int64_t *const ids[] = { &vocab->bos, &vocab->eos, &vocab->unknown };
            if (line.n < 9)
                return false;
            for (unsigned i = 0; i < 6; i++)
                *flags[i] = (unsigned char)line.bytes[i] % 3 - 1;
            for (unsigned i = 0; i < 3; i++)
                *ids[i] = line.bytes[6 + i] - '0';
            part++;
        } else if (line.n == 0) {
            part++;
            if (part == 4)
                vocab->charsmap = (struct ak_text){ next, (uint32_t)(end - next) };
        } else if (part == 2 && line.n >= 2 && vocab->n_tokens < LINES_MAX) {
            types[vocab->n_tokens] = line.bytes[0] - '0';
            scores[vocab->n_tokens] = (float)('a' - line.bytes[1]) / 4;
            tokens[vocab->n_tokens++] = (struct ak_text){ line.bytes + 2, line.n - 2 };
        } else if (part == 3 && vocab->n_merges < LINES_MAX) {
            lines[vocab->n_merges++] = line;
        }
    }
    vocab->tokens = tokens;
    vocab->scores = scores;
    vocab->types = types;
    vocab->merges = lines;
    return true;
}

static struct ak_tokenizer *create_of_lines(const char *text, size_t n, struct ak_error *error)
{
    static struct ak_text tokens[LINES_MAX], lines[LINES_MAX];
    static float scores[LINES_MAX];
    static int32_t types[LINES_MAX];
    struct ak_vocab vocab;
    struct ak_tokenizer *t = NULL;

    if (read_vocab(text, n, &vocab, tokens, scores, types, lines))
        ak_tok_create(&vocab, &t, error);
    return t;
}

static struct ak_tokenizer *create_of_gguf(const char *bytes, size_t n, struct ak_error *error)
{
    char path[64];
    struct ak_provider *p;
    struct ak_tokenizer *t = NULL;
    int file = memfd_create("tokenizer", 0);

    must(file >= 0 && write(file, bytes, n) == (ssize_t)n);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (ak_provider_open(path, &p, error) == AKUNU_OK) {
        ak_tok_open(p, &t, error);
        ak_provider_close(p);
    }
    close(file);
    return t;
}

static struct ak_tokenizer *create(char kind, const char *bytes, size_t n)
{
    struct ak_text text = { bytes, (uint32_t)n };
    const struct ak_tok_files files = {
        .tokenizer = text,
        .config = text_of("{\"bos_token\":\"<s>\",\"eos_token\":{\"content\":\"</s>\"}}"),
        .generation = text_of("{\"eos_token_id\":[1,2,99]}"),
    };
    struct ak_error error;
    struct ak_tokenizer *t = NULL;

    switch (kind) {
    case 'j': ak_tok_from_json(&files, &t, &error); break;
    case 'm': ak_tok_from_sentencepiece(text, &t, &error); break;
    case 'g': t = create_of_gguf(bytes, n, &error); break;
    default: t = create_of_lines(bytes, n, &error); break;
    }
    return t;
}

/* A vocabulary that was written can be read again. */
static void check_export(struct ak_tokenizer *t)
{
    struct ak_tok_export e = { .add_separator = -1 };
    struct ak_tokenizer *again = NULL;
    struct ak_error error;

    if (ak_tok_export_vocab(t, (uint32_t)ak_tok_n_tokens(t) + 1, text_of("gpt-2"), &e, &error) ==
        AKUNU_OK)
        ak_tok_create(&e.vocab, &again, &error);
    ak_tok_free(again);
    ak_tok_export_free(&e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t often[] = { 1, 4, 64, 512 };

    if (size < 3)
        return 0;
    bool defined = data[0] && strchr("jmgv", data[0]);
    size_t begin = defined ? 3 : 2, n = size - begin;
    if (defined && data[2] < n)
        n = data[2];
    size_t repeat = ak_min_size(often[data[1] >> 6], TEXT_BYTES_MAX / (n + 1) + 1);
    char *text = malloc(n * repeat + 1);
    for (size_t i = 0; i < repeat; i++)
        memcpy(text + i * n, data + begin, n);
    if (defined) {
        struct ak_tokenizer *t =
            create((char)data[0], (const char *)data + begin + n, size - begin - n);
        if (t) {
            must(ak_tok_memory_bytes(t) > 0 && ak_tok_bos(t) < (int64_t)ak_tok_n_tokens(t));
            check(t, text, n * repeat, data[1], false);
            if (data[1] & EXPORT)
                check_export(t);
        }
        ak_tok_free(t);
    } else {
        check_own(data[0], text, n * repeat, data[1]);
    }
    free(text);
    return 0;
}
