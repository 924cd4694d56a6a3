#include "cpu/layout.h"

#include <string.h>

#include "base/half.h"
#include "base/mem.h"

enum { STORED_TILE_BYTES_MAX = 8 * 34 }; /* one row of a tile, stored */

bool ak_type_is_tiled(enum ak_type type)
{
    switch (type) {
    case AK_Q4_0: case AK_Q4_1: case AK_Q5_0: case AK_Q8_0: case AK_Q4_K: case AK_Q6_K: return true;
    default: return false;
    }
}

enum ak_act_form ak_type_act_form(enum ak_type type)
{
    if (!ak_type_is_tiled(type))
        return AK_ACT_F32;
    return ak_type_info(type)->block_elems == AK_TILE_K ? AK_ACT_256 : AK_ACT_32;
}

size_t ak_act_bytes(enum ak_act_form form, size_t k)
{
    switch (form) {
    case AK_ACT_32: return ak_round_up(k / 32 * sizeof(struct ak_act32), AK_LINE_BYTES);
    case AK_ACT_256: return ak_round_up(k / 256 * sizeof(struct ak_act256), AK_LINE_BYTES);
    default: return ak_round_up(k, 32) * sizeof(float);
    }
}

/* Bytes before the quants of a 32-block tile: scales (and minimums), padded. */
static size_t scales_bytes(enum ak_type type, size_t blocks)
{
    return type == AK_Q4_1 ? 64 * blocks : ak_round_up(32 * blocks, AK_LINE_BYTES);
}

enum { Q4_K_SCALES = 64, Q4_K_QUANTS = 256, Q4_K_TILE = 2304 };
enum { Q6_K_SCALES = 64, Q6_K_HALVES = 320, Q6_K_HALF = 1536, Q6_K_LOW = 512, Q6_K_TILE = 3392 };

size_t ak_tile_bytes(enum ak_type type, size_t blocks)
{
    switch (type) {
    case AK_Q4_0: case AK_Q4_1: return scales_bytes(type, blocks) + 256 * blocks;
    case AK_Q5_0: return scales_bytes(type, blocks) + (64 + 256) * blocks;
    case AK_Q8_0: return scales_bytes(type, blocks) + 512 * blocks;
    case AK_Q4_K: return Q4_K_TILE;
    case AK_Q6_K: return Q6_K_TILE;
    default: return 0;
    }
}

size_t ak_tile_row_bytes(enum ak_type type, size_t k)
{
    size_t tail = k % AK_TILE_K / AK_BLOCK_K;
    return k / AK_TILE_K * ak_tile_bytes(type, AK_TILE_BLOCKS) + (tail ? ak_tile_bytes(type, tail) : 0);
}

/* Copies n 32-bit words of a row to or from consecutive lines. */
static void words_to_lines(const uint8_t *restrict words, size_t n, uint8_t *restrict lines, size_t row)
{
    for (size_t i = 0; i < n; i++)
        memcpy(lines + i * AK_LINE_BYTES + row * 4, words + i * 4, 4);
}

static void lines_to_words(const uint8_t *restrict lines, size_t n, uint8_t *restrict words, size_t row)
{
    for (size_t i = 0; i < n; i++)
        memcpy(words + i * 4, lines + i * AK_LINE_BYTES + row * 4, 4);
}

static void flip_sign_bits(uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        bytes[i] ^= 0x80;
}

/* Spreads the 32 high bits of a Q5_0 block over its 8 words, or back. */
static void pack_high_bits(const uint8_t stored[4], uint8_t *words, size_t row)
{
    for (size_t i = 0; i < 8; i++) {
        unsigned nibble = ((unsigned)stored[i / 2] >> (i % 2 * 4)) & 15u;
        words[i * 8 + row / 2] |= (uint8_t)(nibble << (row % 2 * 4));
    }
}

static void gather_high_bits(const uint8_t *words, uint8_t stored[4], size_t row)
{
    memset(stored, 0, 4);
    for (size_t i = 0; i < 8; i++) {
        unsigned nibble = ((unsigned)words[i * 8 + row / 2] >> (row % 2 * 4)) & 15u;
        stored[i / 2] |= (uint8_t)(nibble << (i % 2 * 4));
    }
}

static void pack_row(enum ak_type type, const uint8_t *restrict stored, size_t blocks, size_t row, uint8_t *restrict tile)
{
    uint8_t *quants = tile + scales_bytes(type, blocks);
    switch (type) {
    case AK_Q4_0:
        for (size_t b = 0; b < blocks; b++, stored += 18) {
            memcpy(tile + (b * 16 + row) * 2, stored, 2);
            words_to_lines(stored + 2, 4, quants + b * 256, row);
        }
        break;
    case AK_Q4_1:
        for (size_t b = 0; b < blocks; b++, stored += 20) {
            memcpy(tile + (b * 16 + row) * 2, stored, 2);
            memcpy(tile + blocks * 32 + (b * 16 + row) * 2, stored + 2, 2);
            words_to_lines(stored + 4, 4, quants + b * 256, row);
        }
        break;
    case AK_Q5_0:
        for (size_t b = 0; b < blocks; b++, stored += 22) {
            memcpy(tile + (b * 16 + row) * 2, stored, 2);
            pack_high_bits(stored + 2, quants + b * 64, row);
            words_to_lines(stored + 6, 4, quants + blocks * 64 + b * 256, row);
        }
        break;
    case AK_Q8_0:
        for (size_t b = 0; b < blocks; b++, stored += 34) {
            uint8_t biased[32];
            memcpy(biased, stored + 2, 32);
            flip_sign_bits(biased, 32);
            memcpy(tile + (b * 16 + row) * 2, stored, 2);
            words_to_lines(biased, 8, quants + b * 512, row);
        }
        break;
    case AK_Q4_K:
        words_to_lines(stored, 36, tile, row);
        break;
    case AK_Q6_K:
        memcpy(tile + row * 2, stored + 208, 2);
        words_to_lines(stored + 192, 4, tile + Q6_K_SCALES, row);
        for (size_t h = 0; h < 2; h++) {
            uint8_t *half = tile + Q6_K_HALVES + h * Q6_K_HALF;
            words_to_lines(stored + 128 + h * 32, 8, half, row);
            words_to_lines(stored + h * 64, 16, half + Q6_K_LOW, row);
        }
        break;
    default:
        break;
    }
}

void ak_gather_row(enum ak_type type, const uint8_t *restrict tile, size_t blocks, size_t row, uint8_t *restrict stored)
{
    const uint8_t *quants = tile + scales_bytes(type, blocks);
    switch (type) {
    case AK_Q4_0:
        for (size_t b = 0; b < blocks; b++, stored += 18) {
            memcpy(stored, tile + (b * 16 + row) * 2, 2);
            lines_to_words(quants + b * 256, 4, stored + 2, row);
        }
        break;
    case AK_Q4_1:
        for (size_t b = 0; b < blocks; b++, stored += 20) {
            memcpy(stored, tile + (b * 16 + row) * 2, 2);
            memcpy(stored + 2, tile + blocks * 32 + (b * 16 + row) * 2, 2);
            lines_to_words(quants + b * 256, 4, stored + 4, row);
        }
        break;
    case AK_Q5_0:
        for (size_t b = 0; b < blocks; b++, stored += 22) {
            memcpy(stored, tile + (b * 16 + row) * 2, 2);
            gather_high_bits(quants + b * 64, stored + 2, row);
            lines_to_words(quants + blocks * 64 + b * 256, 4, stored + 6, row);
        }
        break;
    case AK_Q8_0:
        for (size_t b = 0; b < blocks; b++, stored += 34) {
            memcpy(stored, tile + (b * 16 + row) * 2, 2);
            lines_to_words(quants + b * 512, 8, stored + 2, row);
            flip_sign_bits(stored + 2, 32);
        }
        break;
    case AK_Q4_K:
        lines_to_words(tile, 36, stored, row);
        break;
    case AK_Q6_K:
        memcpy(stored + 208, tile + row * 2, 2);
        lines_to_words(tile + Q6_K_SCALES, 4, stored + 192, row);
        for (size_t h = 0; h < 2; h++) {
            const uint8_t *half = tile + Q6_K_HALVES + h * Q6_K_HALF;
            lines_to_words(half, 8, stored + 128 + h * 32, row);
            lines_to_words(half + Q6_K_LOW, 16, stored + h * 64, row);
        }
        break;
    default:
        break;
    }
}

void ak_pack_tiles(enum ak_type type, const void *const rows[AK_TILE_ROWS], size_t k, uint8_t *restrict tiles)
{
    const struct ak_type_info *info = ak_type_info(type);
    static const uint8_t zeros[STORED_TILE_BYTES_MAX];
    size_t stored_offset = 0;
    for (size_t at = 0; at < k; at += AK_TILE_K) {
        size_t elems = ak_min_size(k - at, AK_TILE_K), blocks = elems / AK_BLOCK_K;
        size_t bytes = ak_tile_bytes(type, blocks);
        memset(tiles, 0, bytes);
        for (size_t r = 0; r < AK_TILE_ROWS; r++) {
            const uint8_t *stored = rows[r] ? (const uint8_t *)rows[r] + stored_offset : zeros;
            pack_row(type, stored, blocks, r, tiles);
        }
        tiles += bytes;
        stored_offset += elems / info->block_elems * info->block_bytes;
    }
}

void ak_pack_row(enum ak_type type, const void *restrict stored, size_t k, size_t row, uint8_t *restrict tiles)
{
    const struct ak_type_info *info = ak_type_info(type);
    const uint8_t *from = stored;
    for (size_t at = 0; at < k; at += AK_TILE_K) {
        size_t elems = ak_min_size(k - at, AK_TILE_K), blocks = elems / AK_BLOCK_K;
        pack_row(type, from, blocks, row, tiles);
        tiles += ak_tile_bytes(type, blocks);
        from += elems / info->block_elems * info->block_bytes;
    }
}

void ak_unpack_row(enum ak_type type, const uint8_t *restrict tiles, size_t k, size_t row, float *restrict out)
{
    uint8_t stored[STORED_TILE_BYTES_MAX];
    for (size_t at = 0; at < k; at += AK_TILE_K) {
        size_t elems = ak_min_size(k - at, AK_TILE_K), blocks = elems / AK_BLOCK_K;
        ak_gather_row(type, tiles, blocks, row, stored);
        ak_type_info(type)->dequantise(stored, out + at, elems);
        tiles += ak_tile_bytes(type, blocks);
    }
}
