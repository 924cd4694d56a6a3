/* A SentencePiece model as the "model" of a tokenizer.json. The file has no merges: a piece is made
 * of any two pieces, and the one that comes first in the file is merged first. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "text/tokenizer/slow.h"

/* The number of merges to try grows with the square of a piece's length. */
enum { PIECE_BYTES_MAX = 512 };

/* Copies a piece, to end it with NUL. */
static ak_status copy_piece(const struct ak_tok_slow *s, uint32_t id, char out[PIECE_BYTES_MAX + 1])
{
    struct ak_text piece = s->spm.pieces[id];

    if (piece.n > PIECE_BYTES_MAX)
        return ak_fail(s->error, AKUNU_ERROR_UNSUPPORTED, "%s: piece %u has %u bytes, more than %d",
                       s->vocab_file, id, piece.n, PIECE_BYTES_MAX);
    if (!ak_is_utf8(piece.bytes, piece.n) || memchr(piece.bytes, '\0', piece.n))
        return ak_fail(s->error, AKUNU_ERROR_FORMAT, "%s: piece %u is not text in UTF-8",
                       s->vocab_file, id);
    memcpy(out, piece.bytes, piece.n);
    out[piece.n] = '\0';
    return AKUNU_OK;
}

/* ---- BPE ---------------------------------------------------------------- */
/* Adds each pair of pieces that together are this one, the shortest left one first. */
static ak_status add_merges_of(const struct ak_tok_slow *s, const json_t *vocab, const char *piece,
                               uint32_t n, json_t *merges)
{
    char pair[PIECE_BYTES_MAX + 2];

    for (uint32_t at = 1; at < n; at++) {
        if (((unsigned char)piece[at] & 0xC0) == 0x80 || !json_object_get(vocab, piece + at))
            continue;
        memcpy(pair, piece, at);
        pair[at] = '\0';
        if (!json_object_get(vocab, pair))
            continue;
        memcpy(pair + at + 1, piece + at, n - at);
        if (json_array_append_new(merges, json_stringn_nocheck(pair, (size_t)n + 1)) != 0)
            return ak_tok_slow_fail_memory(s);
    }
    return AKUNU_OK;
}

/* Control pieces and bytes never come from text. */
static bool is_mergeable(const struct ak_tok_slow *s, uint32_t id)
{
    return s->spm.types[id] == AK_TOK_PIECE_NORMAL || s->spm.types[id] == AK_TOK_PIECE_ADDED;
}

static ak_status add_bpe(struct ak_tok_slow *s, json_t *model)
{
    char piece[PIECE_BYTES_MAX + 1];
    json_t *vocab = json_object(), *merges = json_array();

    if (json_object_set_new(model, "vocab", vocab) != 0 ||
        json_object_set_new(model, "merges", merges) != 0)
        return ak_tok_slow_fail_memory(s);
    for (uint32_t id = 0; id < s->spm.n; id++) {
        AK_TRY(copy_piece(s, id, piece));
        if (json_object_set_new_nocheck(vocab, piece, json_integer(id)) != 0)
            return ak_tok_slow_fail_memory(s);
    }
    for (uint32_t id = 0; id < s->spm.n; id++) {
        AK_TRY(copy_piece(s, id, piece));
        if (is_mergeable(s, id))
            AK_TRY(add_merges_of(s, vocab, piece, s->spm.pieces[id].n, merges));
    }
    return AKUNU_OK;
}

/* ---- Unigram ------------------------------------------------------------ */
static ak_status add_unigram(struct ak_tok_slow *s, json_t *model)
{
    char piece[PIECE_BYTES_MAX + 1];
    json_t *vocab = json_array();

    if (json_object_set_new(model, "vocab", vocab) != 0 ||
        json_object_set_new(model, "unk_id", json_integer((json_int_t)s->spm.unknown)) != 0)
        return ak_tok_slow_fail_memory(s);
    for (uint32_t id = 0; id < s->spm.n; id++) {
        AK_TRY(copy_piece(s, id, piece));
        if (json_array_append_new(vocab, json_pack("[s,f]", piece, (double)s->spm.scores[id])) != 0)
            return ak_tok_slow_fail_memory(s);
    }
    return AKUNU_OK;
}

/* ---- Ids of the classes --------------------------------------------------- */
static ak_status add_scored(struct ak_tok_slow *s, json_t *vocab, const char *text, double score)
{
    return json_array_append_new(vocab, json_pack("[s,f]", text, score)) == 0 ?
               AKUNU_OK :
               ak_tok_slow_fail_memory(s);
}

/* Puts `first` before the pieces, of which the first `n_dropped` go, and the mask token after
 * them. */
static ak_status arrange_fairseq(struct ak_tok_slow *s, const char *const *first, size_t n_first,
                                 size_t n_dropped, double last_score)
{
    json_t *model = json_object_get(s->root, "model"), *pieces = json_object_get(model, "vocab"),
           *vocab = json_array();
    const char *mask = ak_tok_slow_name(s, "mask_token");
    ak_status status = vocab ? AKUNU_OK : ak_tok_slow_fail_memory(s);

    for (size_t i = 0; i < n_first && status == AKUNU_OK; i++)
        status = add_scored(s, vocab, first[i], i == 4 ? last_score : 0);
    for (size_t i = n_dropped; i < json_array_size(pieces) && status == AKUNU_OK; i++)
        if (json_array_append(vocab, json_array_get(pieces, i)) != 0)
            status = ak_tok_slow_fail_memory(s);
    if (status == AKUNU_OK)
        status = add_scored(s, vocab, mask ? mask : "<mask>", 0);
    if (status != AKUNU_OK) {
        json_decref(vocab);
        return status;
    }
    enum { UNKNOWN = 3 };
    return json_object_set_new(model, "vocab", vocab) == 0 &&
                   json_object_set_new(model, "unk_id", json_integer(UNKNOWN)) == 0 ?
               AKUNU_OK :
               ak_tok_slow_fail_memory(s);
}

static const char *name_or(const struct ak_tok_slow *s, const char *key, const char *fallback)
{
    const char *name = ak_tok_slow_name(s, key);
    return name ? name : fallback;
}

/* fairseq's order of the special tokens, which the file does not have. */
ak_status ak_tok_slow_arrange_xlm_roberta(struct ak_tok_slow *s)
{
    const char *const first[] = { name_or(s, "bos_token", "<s>"), name_or(s, "pad_token", "<pad>"),
                                  name_or(s, "eos_token", "</s>"),
                                  name_or(s, "unk_token", "<unk>") };
    return arrange_fairseq(s, first, sizeof first / sizeof *first, 3, 0);
}

ak_status ak_tok_slow_arrange_camembert(struct ak_tok_slow *s)
{
    const char *const first[] = { "<s>NOTUSED", name_or(s, "pad_token", "<pad>"), "</s>NOTUSED",
                                  name_or(s, "unk_token", "<unk>"), "<unk>NOTUSED" };
    return arrange_fairseq(s, first, sizeof first / sizeof *first, 1, -100);
}

/* The sentinels, the last one first. */
ak_status ak_tok_slow_arrange_t5(struct ak_tok_slow *s)
{
    enum { SENTINELS_MAX = 10000 };
    json_t *model = json_object_get(s->root, "model");
    const json_t *value = json_object_get(s->options, "extra_ids");
    int64_t n = json_is_integer(value) ? json_integer_value(value) : -1;

    if (n < 0 || n > SENTINELS_MAX)
        return ak_fail(s->error, AKUNU_ERROR_FORMAT,
                       "tokenizer_config.json: extra_ids is not a number of tokens up to %d",
                       SENTINELS_MAX);
    for (int64_t i = n; i-- > 0;) {
        char text[32];
        snprintf(text, sizeof text, "<extra_id_%d>", (int)i);
        AK_TRY(add_scored(s, json_object_get(model, "vocab"), text, 0));
        if (!json_object_get(s->options, "additional_special_tokens") &&
            json_array_append_new(json_object_get(s->options, "extra_special_tokens"),
                                  json_string(text)) != 0)
            return ak_tok_slow_fail_memory(s);
    }
    return AKUNU_OK;
}

/* ---- The whole ------------------------------------------------------------ */
ak_status ak_tok_slow_add_pieces(struct ak_tok_slow *s)
{
    json_t *model = json_object_get(s->root, "model");
    AK_TRY(s->spm.type == AK_TOK_SPM_BPE ? add_bpe(s, model) : add_unigram(s, model));
    return s->class->arrange ? s->class->arrange(s) : AKUNU_OK;
}

/* ---- Character map ------------------------------------------------------ */
/* Base64 (RFC 4648, section 4) without padding; `out` has room for 4 bytes per 3. */
static size_t encode64(struct ak_text bytes, char *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t bits = 0, n_bits = 0;
    size_t n = 0;

    for (uint32_t i = 0; i < bytes.n; i++) {
        bits = bits << 8 | (unsigned char)bytes.bytes[i];
        for (n_bits += 8; n_bits >= 6; n_bits -= 6)
            out[n++] = digits[bits >> (n_bits - 6) & 63];
    }
    if (n_bits > 0)
        out[n++] = digits[bits << (6 - n_bits) & 63];
    return n;
}

json_t *ak_tok_slow_charsmap(const struct ak_tok_slow *s)
{
    struct ak_text map = s->spm.charsmap;

    if (map.n == 0)
        return json_null();
    char *text = ak_alloc((size_t)map.n / 3 * 4 + 4, 1);
    json_t *out = text ? json_pack("{s:s,s:s%}", "type", "Precompiled", "precompiled_charsmap",
                                   text, encode64(map, text)) :
                         NULL;
    ak_free(text);
    return out;
}
