/* Fill-in-the-middle (FIM): finds the tokens that mark the text before and after a gap, and encodes
 * the prompt after which a model writes what fills the gap. The markers are not always control
 * tokens: in tokenizer.json some are added tokens, which match in every text.
 * https://arxiv.org/abs/2207.14255 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "text/tokenizer/internal.h"
#include "base/array.h"

/* Markers of prefix, suffix and middle. Models that took over a vocabulary took over its family. */
static const struct family {
    const char *markers[3]; /* the last one is NULL if the prompt ends without a marker */
    bool suffix_first;
    bool joins_markers; /* suffix first is PREFIX SUFFIX suffix MIDDLE prefix */
} families[] = {
    { { "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>" }, false, false },
    { { "<fim_prefix>", "<fim_suffix>", "<fim_middle>" }, false, false },
    { { "<fim-prefix>", "<fim-suffix>", "<fim-middle>" }, false, false },
    { { "<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>" }, false, false },
    { { "▁<PRE>", "▁<SUF>", "▁<MID>" }, false, true },
    { { "<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>" }, false, false },
    { { "<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>" }, true, false },
    { { "[PREFIX]", "[SUFFIX]", NULL }, true, false },
};
enum { N_FAMILIES = sizeof families / sizeof *families };

/* Spellings of the tokens after which a model goes on with something else. */
enum { SPELLINGS_MAX = 5 };
static const char *const endings[AK_VOCAB_FIM_COUNT][SPELLINGS_MAX] = {
    [AK_VOCAB_FIM_PAD] = { "<|fim_pad|>", "<fim_pad>", "<fim-pad>" },
    [AK_VOCAB_FIM_REPO] = { "<|repo_name|>", "<|fim_repo|>", "<repo_name>", "<reponame>",
                            "<fim-repo>" },
    [AK_VOCAB_FIM_FILE] = { "<|file_sep|>", "<|file_separator|>", "<file_sep>", "<filename>" },
};

/* ---- The tokens --------------------------------------------------------- */
static bool has_family(const struct ak_tokenizer *t, const struct family *f)
{
    for (int i = 0; i < 3; i++)
        if (f->markers[i] && ak_tok_find_special(t, f->markers[i]) < 0)
            return false;
    return true;
}

static void set_markers(struct ak_tokenizer *t, const struct family *f)
{
    for (int i = 0; i < 3; i++)
        if (t->fim[i] < 0 && f->markers[i])
            t->fim[i] = ak_tok_find_special(t, f->markers[i]);
}

void ak_tok_find_fim(struct ak_tokenizer *t, const struct ak_vocab *vocab)
{
    for (int i = 0; i < AK_VOCAB_FIM_COUNT; i++)
        t->fim[i] = vocab->fim ? (int32_t)vocab->fim[i] : -1;
    for (size_t i = 0; i < N_FAMILIES; i++)
        if (has_family(t, &families[i])) {
            set_markers(t, &families[i]);
            break;
        }
    if (t->fim[AK_VOCAB_FIM_PREFIX] < 0 || t->fim[AK_VOCAB_FIM_SUFFIX] < 0)
        return;
    for (int i = AK_VOCAB_FIM_PAD; i < AK_VOCAB_FIM_COUNT; i++)
        for (int k = 0; k < SPELLINGS_MAX && t->fim[i] < 0 && endings[i][k]; k++)
            t->fim[i] = ak_tok_find_special(t, endings[i][k]);
}

int32_t ak_tok_fim(const struct ak_tokenizer *t, enum ak_vocab_fim which)
{
    return t->fim[which];
}

/* The bytes of a token as a text has them. */
static struct ak_text written(const struct ak_tokenizer *t, int32_t id)
{
    const struct ak_tok_bytes *table =
        t->pipeline && !t->byte_level ? &t->pipeline->words : &t->token_bytes;
    return ak_tok_bytes_get(table, (uint32_t)id);
}

/* The family whose marker of the prefix is the model's. Without one: Qwen's, the most usual. */
static const struct family *find_family(const struct ak_tokenizer *t)
{
    for (size_t i = 0; i < N_FAMILIES; i++)
        if (ak_tok_find_special(t, families[i].markers[0]) == t->fim[AK_VOCAB_FIM_PREFIX])
            return &families[i];
    return &families[0];
}

static ak_status fail_missing(struct ak_error *error)
{
    char looked[512];
    size_t n = 0;
    for (size_t i = 0; i < N_FAMILIES; i++)
        n += (size_t)snprintf(looked + n, sizeof looked - n, "%s%s", i ? ", " : "",
                              families[i].markers[0]);
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                   "the model has no tokens for fill-in-the-middle: neither the metadata "
                   "tokenizer.ggml.fim_pre_token_id, fim_suf_token_id and fim_mid_token_id, nor "
                   "any of %s, each with those of suffix and middle, among the vocabulary's "
                   "special tokens",
                   looked);
}

/* ---- The texts ---------------------------------------------------------- */
struct part {
    int32_t *ids;
    size_t n, capacity;
};

static ak_status reserve_ids(struct part *p, size_t n, struct ak_error *error)
{
    return ak_reserve_or_fail(&p->ids, &p->capacity, p->n, n, "a prompt", error);
}

static ak_status append_ids(const struct ak_tokenizer *t, const char *text, size_t n,
                            struct part *p, struct ak_error *error)
{
    size_t n_ids;
    AK_TRY(reserve_ids(p, n + 1, error)); /* nearly always enough */
    AK_TRY(ak_tok_encode(t, text, n, 0, p->ids + p->n, p->capacity - p->n, &n_ids, error));
    if (n_ids > p->capacity - p->n) {
        AK_TRY(reserve_ids(p, n_ids, error));
        AK_TRY(ak_tok_encode(t, text, n, 0, p->ids + p->n, n_ids, &n_ids, error));
    }
    p->n += n_ids;
    return AKUNU_OK;
}

/* Adds a text that does not begin one, so that the tokenizer puts no space before it: encodes it
 * behind a character that merges with nothing, whose tokens are removed. */
static ak_status add_continued(const struct ak_tokenizer *t, const char *text, size_t n,
                               struct part *p, struct ak_error *error)
{
    static const char lead[] = "\u263a";
    struct ak_buffer joined = { .what = "a prompt" };
    struct part alone = { .n = 0 }, both = { .n = 0 };
    if (t->byte_level)
        return append_ids(t, text, n, p, error);
    ak_status status = ak_buffer_add(&joined, lead, sizeof lead - 1, error);
    if (status == AKUNU_OK)
        status = append_ids(t, lead, sizeof lead - 1, &alone, error);
    if (status == AKUNU_OK)
        status = ak_buffer_add(&joined, text, n, error);
    if (status == AKUNU_OK)
        status = append_ids(t, joined.bytes, joined.n, &both, error);
    if (status == AKUNU_OK && both.n >= alone.n &&
        memcmp(both.ids, alone.ids, alone.n * sizeof *alone.ids) == 0) {
        status = reserve_ids(p, both.n - alone.n, error);
        if (status == AKUNU_OK) {
            memcpy(p->ids + p->n, both.ids + alone.n, (both.n - alone.n) * sizeof *both.ids);
            p->n += both.n - alone.n;
        }
    } else if (status == AKUNU_OK) {
        status = append_ids(t, text, n, p, error);
    }
    ak_buffer_free(&joined);
    ak_free(alone.ids);
    ak_free(both.ids);
    return status;
}

/* Offset behind the first character of the first marker in the text; 0: none. Control tokens are
 * not matched in a text, so only added tokens count. */
static size_t find_cut(const struct ak_tokenizer *t, const char *text, size_t n)
{
    size_t cut = 0;
    for (int i = 0; i < AK_VOCAB_FIM_COUNT; i++) {
        if (t->fim[i] < 0 || ak_tok_kind(t, (uint32_t)t->fim[i]) != AK_TOK_KIND_ADDED)
            continue;
        struct ak_text marker = written(t, t->fim[i]);
        const char *found = marker.n ? memmem(text, n, marker.bytes, marker.n) : NULL;
        if (!found)
            continue;
        size_t at = (size_t)(found - text) + ak_utf8_next(marker.bytes, marker.n).bytes;
        if (cut == 0 || at < cut)
            cut = at;
    }
    return cut;
}

/* Encodes the prefix or the suffix. A text that holds a marker is cut inside it. */
static ak_status encode_part(const struct ak_tokenizer *t, struct ak_text text, bool continues,
                             struct part *p, struct ak_error *error)
{
    const char *at = text.bytes;
    size_t left = text.n, cut;
    while (left > 0) {
        cut = find_cut(t, at, left);
        size_t n = cut ? cut : left;
        AK_TRY(continues ? add_continued(t, at, n, p, error) : append_ids(t, at, n, p, error));
        at += n;
        left -= n;
        continues = true;
    }
    return AKUNU_OK;
}

/* ---- The prompt --------------------------------------------------------- */
struct prompt {
    int32_t *ids;
    size_t n, capacity; /* n goes on counting past the capacity */
};

static void push(struct prompt *p, const int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++, p->n++)
        if (p->n < p->capacity)
            p->ids[p->n] = ids[i];
}

static void push_one(struct prompt *p, int32_t id)
{
    if (id >= 0)
        push(p, &id, 1);
}

/* The special tokens that precede a text. */
static void push_beginning(const struct ak_tokenizer *t, struct prompt *p)
{
    if (t->add_bos)
        push_one(p, t->bos);
    if (t->pipeline)
        push(p, t->pipeline->prefix_ids, t->pipeline->n_prefix);
}

/* Shortens prefix and suffix, three to one, so that the prompt has at most max_tokens. */
static ak_status shorten(const struct ak_tokenizer *t, struct ak_tok_infill *infill,
                         size_t *n_prefix, size_t *n_suffix, struct ak_error *error)
{
    struct prompt markers = { .n = 0 };
    push_beginning(t, &markers);
    for (int i = 0; i <= AK_VOCAB_FIM_MIDDLE; i++)
        push_one(&markers, t->fim[i]);
    size_t prefix = *n_prefix, suffix = *n_suffix;
    if (infill->max_tokens > 0 && infill->max_tokens < markers.n + prefix + suffix) {
        if (infill->max_tokens < markers.n)
            return ak_fail(error, AKUNU_ERROR_CONTEXT,
                           "the prompt may have %zu tokens, and its markers alone are %zu",
                           infill->max_tokens, markers.n);
        size_t left = infill->max_tokens - markers.n;
        prefix = ak_min_size(prefix, left - left / 4);
        suffix = ak_min_size(suffix, left - prefix);
        prefix = ak_min_size(*n_prefix, left - suffix);
    }
    infill->n_prefix_dropped = *n_prefix - prefix;
    infill->n_suffix_dropped = *n_suffix - suffix;
    *n_prefix = prefix;
    *n_suffix = suffix;
    return AKUNU_OK;
}

static void push_all(const struct ak_tokenizer *t, const struct family *f, bool suffix_first,
                     const struct part *prefix, size_t n_prefix, const struct part *suffix,
                     size_t n_suffix, struct prompt *p)
{
    const int32_t *prefix_ids = n_prefix ? prefix->ids + (prefix->n - n_prefix) : NULL;
    push_beginning(t, p);
    if (!suffix_first || f->joins_markers)
        push_one(p, t->fim[AK_VOCAB_FIM_PREFIX]);
    if (!suffix_first)
        push(p, prefix_ids, n_prefix);
    push_one(p, t->fim[AK_VOCAB_FIM_SUFFIX]);
    push(p, suffix->ids, n_suffix);
    if (suffix_first && !f->joins_markers)
        push_one(p, t->fim[AK_VOCAB_FIM_PREFIX]);
    if (suffix_first && !f->joins_markers)
        push(p, prefix_ids, n_prefix);
    push_one(p, t->fim[AK_VOCAB_FIM_MIDDLE]);
    if (suffix_first && f->joins_markers)
        push(p, prefix_ids, n_prefix);
}

ak_status ak_tok_encode_infill(const struct ak_tokenizer *t, struct ak_tok_infill *infill,
                               int32_t *ids, size_t capacity, size_t *n_ids, struct ak_error *error)
{
    struct part prefix = { .n = 0 }, suffix = { .n = 0 };
    struct prompt prompt = { .ids = ids, .capacity = capacity };
    *n_ids = 0;
    if (t->fim[AK_VOCAB_FIM_PREFIX] < 0 || t->fim[AK_VOCAB_FIM_SUFFIX] < 0)
        return fail_missing(error);
    const struct family *f = find_family(t);
    if (f->markers[AK_VOCAB_FIM_MIDDLE] && t->fim[AK_VOCAB_FIM_MIDDLE] < 0)
        return fail_missing(error);
    bool suffix_first = infill->suffix_first || f->suffix_first;
    ak_status status = encode_part(t, infill->prefix, false, &prefix, error);
    if (status == AKUNU_OK)
        status = encode_part(t, infill->suffix, true, &suffix, error);
    size_t n_prefix = prefix.n, n_suffix = suffix.n;
    if (status == AKUNU_OK)
        status = shorten(t, infill, &n_prefix, &n_suffix, error);
    if (status == AKUNU_OK)
        push_all(t, f, suffix_first, &prefix, n_prefix, &suffix, n_suffix, &prompt);
    if (status == AKUNU_OK)
        *n_ids = prompt.n;
    ak_free(prefix.ids);
    ak_free(suffix.ids);
    return status;
}
