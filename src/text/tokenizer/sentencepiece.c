/* Reader of SentencePiece models, protobuf messages (sentencepiece_model.proto) of pieces, trainer
 * settings and normalizer settings. ak_tok_from_sentencepiece builds the vocabulary that a GGUF
 * file of the same model has, so both load alike. */
#include "text/tokenizer/sentencepiece.h"

#include <string.h>

#include "base/mem.h"
#include "text/tokenizer/internal.h"

/* The rest of a message. */
struct reader {
    const char *pos, *end;
};

struct field {
    uint32_t number, wire;
    uint64_t value;      /* wire 0 */
    struct reader bytes; /* wire 1, 2, 5 */
};

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

/* ModelProto */
enum { MODEL_PIECE = 1, MODEL_TRAINER = 2, MODEL_NORMALIZER = 3 };
/* SentencePiece */
enum { PIECE_TEXT = 1, PIECE_SCORE = 2, PIECE_TYPE = 3 };
/* TrainerSpec */
enum {
    TRAINER_TYPE = 3,
    TRAINER_BYTES = 35,
    TRAINER_UNKNOWN = 40,
    TRAINER_BOS = 41,
    TRAINER_EOS = 42
};
/* NormalizerSpec */
enum { NORMALIZER_CHARSMAP = 2, NORMALIZER_PREFIX = 3, NORMALIZER_EXTRA = 4 };

static bool read_varint(struct reader *r, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; shift < 64 && r->pos < r->end; shift += 7) {
        unsigned char byte = (unsigned char)*r->pos++;
        *out |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

static bool take_bytes(struct reader *r, uint64_t n, struct reader *out)
{
    if (n > (uint64_t)(r->end - r->pos) || n > INT32_MAX)
        return false;
    *out = (struct reader){ r->pos, r->pos + n };
    r->pos += n;
    return true;
}

/* Reads the next field; false: the message is damaged. */
static bool read_field(struct reader *r, struct field *f)
{
    uint64_t key, n;

    *f = (struct field){ .value = 0 };
    if (!read_varint(r, &key) || key >> 3 > UINT32_MAX)
        return false;
    f->number = (uint32_t)(key >> 3);
    f->wire = (uint32_t)(key & 7);
    switch (f->wire) {
    case WIRE_VARINT: return read_varint(r, &f->value);
    case WIRE_64: return take_bytes(r, 8, &f->bytes);
    case WIRE_32: return take_bytes(r, 4, &f->bytes);
    case WIRE_BYTES: return read_varint(r, &n) && take_bytes(r, n, &f->bytes);
    default: return false;
    }
}

static struct ak_text make_text(struct reader r)
{
    return (struct ak_text){ r.pos, (uint32_t)(r.end - r.pos) };
}

static ak_status fail_damaged(const char *file, const char *where, struct ak_error *error)
{
    return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: %s is damaged", file, where);
}

/* Token types have the same numbers in GGUF and SentencePiece. */
static bool read_piece(struct reader r, struct ak_tok_spm *m, uint32_t id)
{
    struct field f;

    m->types[id] = 1;
    m->pieces[id] = (struct ak_text){ "", 0 };
    while (r.pos < r.end) {
        if (!read_field(&r, &f))
            return false;
        if (f.number == PIECE_TEXT && f.wire == WIRE_BYTES)
            m->pieces[id] = make_text(f.bytes);
        else if (f.number == PIECE_SCORE && f.wire == WIRE_32)
            memcpy(&m->scores[id], f.bytes.pos,
                   sizeof(float)); /* little-endian, as all supported CPUs */
        else if (f.number == PIECE_TYPE && f.wire == WIRE_VARINT && f.value <= INT32_MAX)
            m->types[id] = (int32_t)f.value;
    }
    return true;
}

static bool read_trainer(struct reader r, struct ak_tok_spm *m)
{
    struct field f;

    while (r.pos < r.end) {
        if (!read_field(&r, &f))
            return false;
        if (f.wire != WIRE_VARINT)
            continue;
        int64_t id = (int32_t)(uint32_t)f.value; /* -1 is stored as a ten-byte varint */
        switch (f.number) {
        case TRAINER_TYPE: m->type = f.value; break;
        case TRAINER_BYTES: m->byte_fallback = f.value != 0; break;
        case TRAINER_UNKNOWN: m->unknown = id; break;
        case TRAINER_BOS: m->bos = id; break;
        case TRAINER_EOS: m->eos = id; break;
        default: break;
        }
    }
    return true;
}

static bool read_normalizer(struct reader r, struct ak_tok_spm *m)
{
    struct field f;

    while (r.pos < r.end) {
        if (!read_field(&r, &f))
            return false;
        if (f.number == NORMALIZER_CHARSMAP && f.wire == WIRE_BYTES)
            m->charsmap = make_text(f.bytes);
        else if (f.number == NORMALIZER_PREFIX && f.wire == WIRE_VARINT)
            m->add_space_prefix = f.value != 0;
        else if (f.number == NORMALIZER_EXTRA && f.wire == WIRE_VARINT)
            m->remove_extra_whitespaces = f.value != 0;
    }
    return true;
}

static ak_status count_pieces(struct reader r, const char *file, struct ak_tok_spm *m,
                              struct ak_error *error)
{
    struct field f;

    while (r.pos < r.end) {
        if (!read_field(&r, &f))
            return fail_damaged(file, "the file", error);
        m->n += f.number == MODEL_PIECE && f.wire == WIRE_BYTES;
    }
    if (m->n == 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: there are no pieces", file);
    m->pieces = ak_alloc(m->n, sizeof *m->pieces);
    m->scores = ak_alloc(m->n, sizeof *m->scores);
    m->types = ak_alloc(m->n, sizeof *m->types);
    if (!m->pieces || !m->scores || !m->types)
        return ak_fail_memory(error, "the vocabulary", m->n * sizeof *m->pieces);
    return AKUNU_OK;
}

ak_status ak_tok_spm_read(struct ak_text bytes, const char *file, struct ak_tok_spm *m,
                          struct ak_error *error)
{
    struct reader r = { bytes.bytes, bytes.bytes + bytes.n };
    struct field f;
    uint32_t id = 0;

    /* defaults of sentencepiece_model.proto */
    *m = (struct ak_tok_spm){ .type = AK_TOK_SPM_UNIGRAM,
                              .unknown = 0,
                              .bos = 1,
                              .eos = 2,
                              .add_space_prefix = true,
                              .remove_extra_whitespaces = true };
    AK_TRY(count_pieces(r, file, m, error));
    while (r.pos < r.end && read_field(&r, &f)) { /* cannot fail: count_pieces has read it */
        if (f.wire != WIRE_BYTES)
            continue;
        if (f.number == MODEL_PIECE && !read_piece(f.bytes, m, id++))
            return fail_damaged(file, "a piece", error);
        if (f.number == MODEL_TRAINER && !read_trainer(f.bytes, m))
            return fail_damaged(file, "trainer_spec", error);
        if (f.number == MODEL_NORMALIZER && !read_normalizer(f.bytes, m))
            return fail_damaged(file, "normalizer_spec", error);
    }
    if (m->type != AK_TOK_SPM_BPE && m->type != AK_TOK_SPM_UNIGRAM)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "%s: the model type %llu is not supported; UNIGRAM (1) and BPE (2) are",
                       file, (unsigned long long)m->type);
    if (m->type == AK_TOK_SPM_BPE && (m->charsmap.n > 0 || m->remove_extra_whitespaces))
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "%s: a normalizer_spec that changes text is not supported with BPE", file);
    return AKUNU_OK;
}

void ak_tok_spm_free(struct ak_tok_spm *m)
{
    ak_free(m->pieces);
    ak_free(m->scores);
    ak_free(m->types);
    *m = (struct ak_tok_spm){ .n = 0 };
}

/* SentencePiece matches user-defined pieces after spaces have become ▁. Here they are matched
 * before, so their ▁ becomes a space. */
static ak_status decode_added(struct ak_tok_spm *m, struct ak_buffer *decoded,
                              struct ak_error *error)
{
    size_t bytes = 0;

    for (uint32_t id = 0; id < m->n; id++)
        bytes += m->types[id] == AK_TOK_PIECE_ADDED ? m->pieces[id].n : 0;
    AK_TRY(ak_buffer_reserve(decoded, bytes + 1, error));
    for (uint32_t id = 0; id < m->n; id++) {
        if (m->types[id] != AK_TOK_PIECE_ADDED || m->pieces[id].n == 0)
            continue;
        char *out = decoded->bytes + decoded->n;
        m->pieces[id] = (struct ak_text){ out, ak_tok_decode_metaspace(m->pieces[id].bytes,
                                                                       m->pieces[id].n, out) };
        decoded->n += m->pieces[id].n;
    }
    return AKUNU_OK;
}

/* The format does not state which tokens are added: BPE models by convention add BOS, Unigram
 * models EOS. */
static ak_status create_tokenizer(const struct ak_tok_spm *m, struct ak_tokenizer **out,
                                  struct ak_error *error)
{
    struct ak_vocab vocab = ak_vocab_none;

    vocab.model =
        m->type == AK_TOK_SPM_BPE ? (struct ak_text){ "llama", 5 } : (struct ak_text){ "t5", 2 };
    vocab.n_tokens = m->n;
    vocab.tokens = m->pieces;
    vocab.scores = m->scores;
    vocab.types = m->types;
    vocab.unknown = m->unknown;
    vocab.bos = m->bos;
    vocab.eos = m->eos;
    vocab.charsmap = m->charsmap;
    vocab.add_space_prefix = m->add_space_prefix;
    vocab.remove_extra_whitespaces = m->remove_extra_whitespaces;
    AK_TRY(ak_tok_create(&vocab, out, error));
    if ((*out)->pipeline)
        (*out)->pipeline->byte_fallback = m->byte_fallback;
    return AKUNU_OK;
}

ak_status ak_tok_from_sentencepiece(struct ak_text bytes, struct ak_tokenizer **out,
                                    struct ak_error *error)
{
    struct ak_tok_spm m;
    struct ak_buffer decoded = { .n = 0 };

    *out = NULL;
    ak_status status = ak_tok_spm_read(bytes, "tokenizer.model", &m, error);
    if (status == AKUNU_OK)
        status = decode_added(&m, &decoded, error);
    if (status == AKUNU_OK)
        status = create_tokenizer(&m, out, error);
    ak_buffer_free(&decoded);
    ak_tok_spm_free(&m);
    return status;
}
