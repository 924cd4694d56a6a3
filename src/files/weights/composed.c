/* Makes blocks of composed tensors: encoders of the block types, the MXFP4 scheme, and the walk
 * over a row in pieces of at most AK_COMPOSED_ELEMS_MAX elements. */
#include "files/weights/composed.h"

#include <string.h>

#include "base/mem.h"
#include "files/quant/block.h"

enum { BLOCK = 32 };

void ak_composed_free(struct ak_composed_tensor *a)
{
    if (a)
        ak_free(a->order);
    ak_free(a);
}

enum ak_quant_type ak_composed_affine_type(uint32_t bits, enum ak_quant_type factor_type)
{
    if (bits > 5 || factor_type == AK_QUANT_F32)
        return AK_QUANT_A8;
    if (factor_type == AK_QUANT_BF16)
        return bits > 4 ? AK_QUANT_A5 : AK_QUANT_A4;
    return bits > 4 ? AK_QUANT_Q5_1 : AK_QUANT_Q4_1;
}

enum ak_quant_type ak_composed_symmetric_type(uint32_t bits, enum ak_quant_type factor_type)
{
    if (factor_type != AK_QUANT_F16)
        return ak_composed_affine_type(bits, factor_type);
    return bits > 4 ? AK_QUANT_Q8_0 : AK_QUANT_Q4_0;
}

float ak_composed_factor(enum ak_quant_type type, const struct ak_plane *plane, uint64_t i)
{
    const uint8_t *at = (const uint8_t *)plane->data + i * ak_quant_info(type)->block_bytes;
    float x;
    ak_quant_info(type)->dequantize(at, &x, 1);
    return x;
}

uint32_t ak_composed_word(const struct ak_plane *plane, uint64_t i)
{
    const uint8_t *at = (const uint8_t *)plane->data + 4 * i;
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

bool ak_composed_fits_f16(enum ak_quant_type type, const struct ak_plane *plane, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        float x = ak_composed_factor(type, plane, i);
        if (ak_f16_to_float(ak_float_to_f16(x)) != x)
            return false;
    }
    return true;
}

/* Reads no byte beyond those of the n numbers: the last row may end the file. */
void ak_composed_read_bits(const struct ak_composed_tensor *a, uint64_t row, uint32_t first,
                           uint32_t n, uint8_t *out)
{
    const uint8_t *at =
        (const uint8_t *)a->plane[0].data + (row * a->cols + first) / 32 * 4 * a->bits;
    const unsigned bits = a->bits, mask = (1u << bits) - 1;
    unsigned held = 0, n_held = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (n_held < bits) {
            held |= (unsigned)*at++ << n_held;
            n_held += 8;
        }
        out[i] = (uint8_t)(held & mask);
        held >>= bits;
        n_held -= bits;
    }
}

/* ---- x = scale · q + minimum -------------------------------------------- */
static void put_factor(enum ak_quant_type type, float x, uint8_t out[2])
{
    uint16_t bits =
        type == AK_QUANT_A4 || type == AK_QUANT_A5 ? ak_float_to_bf16(x) : ak_float_to_f16(x);
    out[0] = (uint8_t)bits;
    out[1] = (uint8_t)(bits >> 8);
}

static void put_nibbles(const uint8_t *q, uint8_t out[BLOCK / 2])
{
    for (int i = 0; i < BLOCK / 2; i++)
        out[i] = (uint8_t)((q[i] & 15) | (q[i + BLOCK / 2] & 15) << 4);
}

static void put_fifth_bits(const uint8_t *q, uint8_t out[4])
{
    for (int i = 0; i < 4; i++) {
        unsigned bits = 0;
        for (unsigned j = 0; j < 8; j++)
            bits |= (q[8 * i + (int)j] >> 4 & 1u) << j;
        out[i] = (uint8_t)bits;
    }
}

/* A8's numbers are signed: half of the range moves from the numbers to the minimum. */
static void put_bytes(uint32_t bits, const uint8_t *q, float scale, float minimum, uint8_t *out)
{
    int half = 1 << (bits - 1);
    struct ak_quant_block_a8 block = { .d = scale, .m = fmaf((float)half, scale, minimum) };
    for (int i = 0; i < BLOCK; i++)
        block.q[i] = (int8_t)(q[i] - half);
    memcpy(out, &block, sizeof block);
}

/* Q4_0 and Q8_0 have no minimum: recenters the numbers as these types expect. */
static void put_symmetric(const struct ak_composed_tensor *a, const uint8_t *q, float scale,
                          uint8_t *out)
{
    uint8_t shifted[BLOCK];
    int half = 1 << (a->bits - 1), middle = a->type == AK_QUANT_Q4_0 ? 8 : 0;
    put_factor(a->type, scale, out);
    for (int i = 0; i < BLOCK; i++)
        shifted[i] = (uint8_t)(q[i] - half + middle);
    if (a->type == AK_QUANT_Q4_0)
        put_nibbles(shifted, out + 2);
    else
        memcpy(out + 2, shifted, BLOCK);
}

/* A4, Q4_1, A5 and Q5_1 begin with scale and minimum and end with sixteen bytes of nibbles. */
static void put_block(const struct ak_composed_tensor *a, const uint8_t *q, float scale,
                      float minimum, uint8_t *out)
{
    if (a->type == AK_QUANT_A8) {
        put_bytes(a->bits, q, scale, minimum, out);
        return;
    }
    if (a->type == AK_QUANT_Q4_0 || a->type == AK_QUANT_Q8_0) {
        put_symmetric(a, q, scale, out);
        return;
    }
    put_factor(a->type, scale, out);
    put_factor(a->type, minimum, out + 2);
    if (a->type == AK_QUANT_A5 || a->type == AK_QUANT_Q5_1)
        put_fifth_bits(q, out + 4);
    put_nibbles(q, out + ak_quant_info(a->type)->block_bytes - BLOCK / 2);
}

static void affine_blocks(const struct ak_composed_tensor *a, uint64_t row, uint32_t first,
                          uint32_t n, uint8_t *out)
{
    uint8_t q[AK_COMPOSED_ELEMS_MAX];
    a->scheme->quants(a, row, first, n, q);
    for (uint32_t i = 0; i < n; i += BLOCK, out += ak_quant_info(a->type)->block_bytes) {
        float scale, minimum;
        a->scheme->factors(a, row, first + i, &scale, &minimum);
        put_block(a, q + i, scale, minimum, out);
    }
}

static void affine_values(const struct ak_composed_tensor *a, uint64_t row, uint32_t first,
                          uint32_t n, float *out)
{
    uint8_t q[AK_COMPOSED_ELEMS_MAX];
    a->scheme->quants(a, row, first, n, q);
    for (uint32_t i = 0; i < n; i += BLOCK) {
        float scale, minimum;
        a->scheme->factors(a, row, first + i, &scale, &minimum);
        for (uint32_t j = i; j < i + BLOCK; j++)
            out[j] = scale * (float)q[j] + minimum;
    }
}

/* ---- MXFP4 -------------------------------------------------------------- */
/* Planes have neighbors in one byte; blocks have elements i and i + 16 in one byte. */
static void mxfp4_blocks(const struct ak_composed_tensor *a, uint64_t row, uint32_t first,
                         uint32_t n, uint8_t *out)
{
    const uint64_t at = (row * a->cols + first) / BLOCK;
    const uint8_t *scales = (const uint8_t *)a->plane[1].data + at,
                  *pairs = (const uint8_t *)a->plane[0].data + at * (BLOCK / 2);
    for (uint32_t i = 0; i < n; i += BLOCK, pairs += BLOCK / 2) {
        *out++ = *scales++;
        for (int j = 0; j < BLOCK / 4; j++) {
            *out++ = (uint8_t)((pairs[j] & 15) | (pairs[BLOCK / 4 + j] & 15) << 4);
            *out++ = (uint8_t)(pairs[j] >> 4 | (pairs[BLOCK / 4 + j] & 0xf0));
        }
    }
}

const struct ak_composed_scheme ak_composed_mxfp4 = { .blocks = mxfp4_blocks,
                                                      .is_row_major = true };

/* ---- All schemes -------------------------------------------------------- */
static void part_values(const struct ak_composed_tensor *a, uint64_t row, uint32_t first,
                        uint32_t n, float *out)
{
    uint8_t blocks[AK_COMPOSED_ELEMS_MAX / BLOCK * sizeof(struct ak_quant_block_a8)];
    if (a->scheme->values) {
        a->scheme->values(a, row, first, n, out);
    } else if (a->scheme->blocks) {
        a->scheme->blocks(a, row, first, n, blocks);
        ak_quant_info(a->type)->dequantize(blocks, out, n);
    } else {
        affine_values(a, row, first, n, out);
    }
}

static void part_blocks(const struct ak_composed_tensor *a, uint64_t row, uint32_t first,
                        uint32_t n, uint8_t *out)
{
    float values[AK_COMPOSED_ELEMS_MAX];
    if (a->scheme->blocks) {
        a->scheme->blocks(a, row, first, n, out);
    } else if (a->scheme->quants && a->type != AK_QUANT_F16) {
        affine_blocks(a, row, first, n, out);
    } else {
        part_values(a, row, first, n, values);
        for (uint32_t i = 0; i < n; i++)
            ak_quant_put_f16(out + 2 * i, values[i]);
    }
}

/* Elements [first, first + n) of a row that is made whole. */
struct part {
    const struct ak_composed_tensor *a;
    uint32_t first, n;
    void *out;
};

static const uint8_t *find_part(const struct part *p, const void *const *rows)
{
    const struct ak_quant_info *info = ak_quant_info(p->a->type);
    return (const uint8_t *)rows[0] + p->first / info->block_elems * info->block_bytes;
}

static void copy_part(const void *const *rows, void *user)
{
    const struct part *p = user;
    const struct ak_quant_info *info = ak_quant_info(p->a->type);
    memcpy(p->out, find_part(p, rows), p->n / info->block_elems * info->block_bytes);
}

static void dequantize_part(const void *const *rows, void *user)
{
    const struct part *p = user;
    ak_quant_info(p->a->type)->dequantize(find_part(p, rows), p->out, p->n);
}

void ak_composed_make_blocks(const struct ak_composed_tensor *a, uint64_t row, uint32_t first,
                             uint32_t n, void *out)
{
    const struct ak_quant_info *info = ak_quant_info(a->type);
    uint8_t *to = out;
    struct part all = { a, first, n, out };
    if (a->scheme->rows) {
        a->scheme->rows(a, row, 1, 1, copy_part, &all);
        return;
    }
    for (uint32_t end = first + n, part; first < end;
         first += part, to += part / info->block_elems * info->block_bytes) {
        part = end - first < AK_COMPOSED_ELEMS_MAX ? end - first : AK_COMPOSED_ELEMS_MAX;
        part_blocks(a, row, first, part, to);
    }
}

void ak_composed_dequantize(const struct ak_composed_tensor *a, uint64_t row, uint32_t first,
                            uint32_t n, float *out)
{
    struct part all = { a, first, n, out };
    if (a->scheme->rows) {
        a->scheme->rows(a, row, 1, 1, dequantize_part, &all);
        return;
    }
    for (uint32_t end = first + n, part; first < end; first += part, out += part) {
        part = end - first < AK_COMPOSED_ELEMS_MAX ? end - first : AK_COMPOSED_ELEMS_MAX;
        part_values(a, row, first, part, out);
    }
}
