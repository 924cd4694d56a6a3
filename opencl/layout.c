/* Packs stored blocks into the tiles of layout.h: what each type's block holds, and its planes. */
#include "opencl/layout.h"

#include <string.h>

enum { PIECES_MAX = 4 };

/* Bytes of a stored block that are copied unchanged, in units: `bytes` from `at` on. */
struct piece {
    uint8_t at, bytes, unit;
};

typedef void read_fn(const uint8_t *block, uint8_t *out);

struct plane_format {
    uint8_t low, high;               /* bits of a number in each plane */
    read_fn *numbers;                /* unpacks a block's numbers, a byte each */
    struct piece beside[PIECES_MAX]; /* ends at a piece of 0 bytes */
};

/* ---- The numbers of a stored block -------------------------------------- */
static void read_nibbles(const uint8_t *q, uint8_t *out)
{
    for (int j = 0; j < 16; j++) {
        out[j] = q[j] & 15;
        out[16 + j] = q[j] >> 4;
    }
}

static void add_fifth_bits(const uint8_t *high, uint8_t *out)
{
    for (int j = 0; j < 32; j++)
        out[j] |= (uint8_t)((high[j / 8] >> j % 8 & 1) << 4);
}

static void read_biased(const uint8_t *q, uint8_t *out)
{
    for (int j = 0; j < 32; j++)
        out[j] = q[j] ^ 128;
}

static void numbers_q4_0(const uint8_t *block, uint8_t *out)
{
    read_nibbles(block + 2, out);
}
static void numbers_q4_1(const uint8_t *block, uint8_t *out)
{
    read_nibbles(block + 4, out);
}
static void numbers_mxfp4(const uint8_t *block, uint8_t *out)
{
    read_nibbles(block + 1, out);
}
static void numbers_q8_0(const uint8_t *block, uint8_t *out)
{
    read_biased(block + 2, out);
}
static void numbers_a8(const uint8_t *block, uint8_t *out)
{
    read_biased(block + 8, out);
}

static void numbers_f8(const uint8_t *block, uint8_t *out)
{
    memcpy(out, block + 4, 128);
}

static void numbers_q5_0(const uint8_t *block, uint8_t *out)
{
    read_nibbles(block + 6, out);
    add_fifth_bits(block + 2, out);
}

static void numbers_q5_1(const uint8_t *block, uint8_t *out)
{
    read_nibbles(block + 8, out);
    add_fifth_bits(block + 4, out);
}

/* Element 32·s + j of 256: nibble s % 2 of byte 32·(s / 2) + j. */
static void numbers_q4_k(const uint8_t *block, uint8_t *out)
{
    for (int i = 0; i < 256; i++)
        out[i] = block[16 + i / 64 * 32 + i % 32] >> i / 32 % 2 * 4 & 15;
}

static void numbers_q5_k(const uint8_t *block, uint8_t *out)
{
    for (int i = 0; i < 256; i++)
        out[i] = (uint8_t)((block[48 + i / 64 * 32 + i % 32] >> i / 32 % 2 * 4 & 15) |
                           (block[16 + i % 32] >> i / 32 & 1) << 4);
}

/* Per half of 128: nibble s / 2 of byte 32·(s % 2) + j, pair s of byte j. */
static void numbers_q6_k(const uint8_t *block, uint8_t *out)
{
    for (int i = 0; i < 256; i++) {
        int half = i / 128, s = i / 32 % 4, j = i % 32;
        out[i] = (uint8_t)((block[half * 64 + s % 2 * 32 + j] >> s / 2 * 4 & 15) |
                           (block[128 + half * 32 + j] >> s * 2 & 3) << 4);
    }
}

/* Pair s of byte 32·half + j. */
static void read_pairs(const uint8_t *q, uint8_t *out)
{
    for (int i = 0; i < 256; i++)
        out[i] = q[i / 128 * 32 + i % 32] >> i / 32 % 4 * 2 & 3;
}

static void numbers_q2_k(const uint8_t *block, uint8_t *out)
{
    read_pairs(block + 16, out);
}

static void numbers_q3_k(const uint8_t *block, uint8_t *out)
{
    read_pairs(block + 32, out);
    for (int i = 0; i < 256; i++)
        out[i] |= (uint8_t)((block[i % 32] >> i / 32 & 1) << 2);
}

static void numbers_iq4_xs(const uint8_t *block, uint8_t *out)
{
    for (int s = 0; s < 8; s++)
        read_nibbles(block + 8 + s * 16, out + s * 32);
}

static const struct plane_format plane_formats[AK_QUANT_COUNT] = {
    [AK_QUANT_Q4_0] = { 4, 0, numbers_q4_0, { { 0, 2, 2 } } },
    [AK_QUANT_Q4_1] = { 4, 0, numbers_q4_1, { { 0, 2, 2 }, { 2, 2, 2 } } },
    [AK_QUANT_Q5_0] = { 4, 1, numbers_q5_0, { { 0, 2, 2 } } },
    [AK_QUANT_Q5_1] = { 4, 1, numbers_q5_1, { { 0, 2, 2 }, { 2, 2, 2 } } },
    [AK_QUANT_Q8_0] = { 8, 0, numbers_q8_0, { { 0, 2, 2 } } },
    [AK_QUANT_Q2_K] = { 2, 0, numbers_q2_k, { { 80, 2, 2 }, { 82, 2, 2 }, { 0, 16, 2 } } },
    [AK_QUANT_Q3_K] = { 2, 1, numbers_q3_k, { { 108, 2, 2 }, { 96, 12, 4 } } },
    [AK_QUANT_Q4_K] = { 4, 0, numbers_q4_k, { { 0, 2, 2 }, { 2, 2, 2 }, { 4, 12, 4 } } },
    [AK_QUANT_Q5_K] = { 4, 1, numbers_q5_k, { { 0, 2, 2 }, { 2, 2, 2 }, { 4, 12, 4 } } },
    [AK_QUANT_Q6_K] = { 4, 2, numbers_q6_k, { { 208, 2, 2 }, { 192, 16, 2 } } },
    [AK_QUANT_IQ4_NL] = { 4, 0, numbers_q4_0, { { 0, 2, 2 } } },
    [AK_QUANT_IQ4_XS] = { 4, 0, numbers_iq4_xs, { { 0, 2, 2 }, { 2, 2, 2 }, { 4, 4, 4 } } },
    [AK_QUANT_MXFP4] = { 4, 0, numbers_mxfp4, { { 0, 1, 1 } } },
    [AK_QUANT_A4] = { 4, 0, numbers_q4_1, { { 0, 2, 2 }, { 2, 2, 2 } } },
    [AK_QUANT_A5] = { 4, 1, numbers_q5_1, { { 0, 2, 2 }, { 2, 2, 2 } } },
    [AK_QUANT_A8] = { 8, 0, numbers_a8, { { 0, 4, 4 }, { 4, 4, 4 } } },
    [AK_QUANT_F8] = { 8, 0, numbers_f8, { { 0, 4, 4 } } },
};

bool ak_ocl_is_tiled(enum ak_quant_type type)
{
    return plane_formats[type].numbers != NULL;
}

size_t ak_ocl_tile_bytes(enum ak_quant_type type, size_t blocks)
{
    const struct ak_quant_info *info = ak_quant_info(type);
    return AK_OCL_TILE_ROWS * (blocks * AK_OCL_BLOCK_K / info->block_elems) * info->block_bytes;
}

/* Writes bits [from, from + bits) of 32 numbers as the plane stores them. */
static void put_bits(const uint8_t *numbers, unsigned from, unsigned bits, uint8_t *out)
{
    memset(out, 0, 4 * bits);
    for (unsigned j = 0; j < 32; j++) {
        unsigned x = numbers[j] >> from & ((1u << bits) - 1);
        if (bits == 8)
            out[j] = (uint8_t)x;
        else if (bits == 4)
            out[j % 16] |= (uint8_t)(x << j / 16 * 4);
        else
            out[j * bits / 8] |= (uint8_t)(x << j * bits % 8);
    }
}

void ak_ocl_pack_tile(enum ak_quant_type type, const uint8_t *const rows[AK_OCL_TILE_ROWS],
                      size_t k, uint8_t *tile)
{
    const struct plane_format *format = &plane_formats[type];
    const struct ak_quant_info *info = ak_quant_info(type);
    size_t blocks = k / AK_OCL_BLOCK_K, stored = k / info->block_elems,
           low_bytes = 4u * format->low, high_bytes = 4u * format->high;
    uint8_t *high = tile + AK_OCL_TILE_ROWS * blocks * low_bytes;
    memset(tile, 0, ak_ocl_tile_bytes(type, blocks));
    for (size_t r = 0; r < AK_OCL_TILE_ROWS; r++) {
        uint8_t numbers[AK_OCL_TILE_K];
        if (!rows[r])
            continue;
        for (size_t i = 0; i < stored; i++)
            format->numbers(rows[r] + i * info->block_bytes, numbers + i * info->block_elems);
        for (size_t b = 0; b < blocks; b++) {
            size_t at = b * AK_OCL_TILE_ROWS + r;
            put_bits(numbers + b * AK_OCL_BLOCK_K, 0, format->low, tile + at * low_bytes);
            if (format->high)
                put_bits(numbers + b * AK_OCL_BLOCK_K, format->low, format->high,
                         high + at * high_bytes);
        }
        uint8_t *to = high + AK_OCL_TILE_ROWS * blocks * high_bytes;
        for (const struct piece *piece = format->beside;
             piece < format->beside + PIECES_MAX && piece->bytes; piece++)
            for (size_t i = 0; i < stored; i++)
                for (size_t j = 0; j < piece->bytes;
                     j += piece->unit, to += AK_OCL_TILE_ROWS * piece->unit)
                    memcpy(to + r * piece->unit, rows[r] + i * info->block_bytes + piece->at + j,
                           piece->unit);
    }
}
