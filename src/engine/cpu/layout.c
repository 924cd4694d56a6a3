/* The packed layouts of engine/cpu/layout.h as tables of parts: packing stored rows into tiles, and
 * the reverse. Also the bytes of each activation format. */
#include "engine/cpu/layout.h"

#include <string.h>

#include "base/mem.h"
#include "files/quant/block.h"
#include "files/quant/recode.h"

enum {
    STORED_TILE_BYTES_MAX = 8 * 40, /* bytes of one stored row of a tile */
    TABLE_BYTES = 32,               /* of a tile */
    PARTS_MAX = 6
};

/* Contents of a tile part. A part has one element per stored block of a row: one for 256 k in
 * K-types, one for 32 k in the others. */
enum part_kind {
    NOTHING,
    BYTES,      /* one byte per row: 16 bytes */
    HALVES,     /* two bytes per row: 32 bytes */
    WORDS,      /* n words per row: n lines */
    BIASED,     /* WORDS of signed bytes, made unsigned by adding 128 */
    FIFTH_BITS, /* 32 bits per row, as eight 64-bit words: one line */
    THREE_BITS, /* Q3_K's high bits and quants, 96 bytes per row: 24 lines */
    TABLE       /* struct ak_quant_table, that of the first row for all rows: 32 bytes */
};

/* A tile is a sequence of parts, each with the elements of all blocks one after another. A part
 * made of lines begins at a line boundary. */
struct part {
    uint8_t kind;
    uint8_t at;    /* byte offset of the element in a stored block */
    uint8_t words; /* WORDS, BIASED: words per row */
};

static const struct part parts_of[AK_QUANT_COUNT][PARTS_MAX] = {
    [AK_QUANT_Q4_0] = { { HALVES, 0, 0 }, { WORDS, 2, 4 } },
    [AK_QUANT_Q4_1] = { { HALVES, 0, 0 }, { HALVES, 2, 0 }, { WORDS, 4, 4 } },
    [AK_QUANT_Q5_0] = { { HALVES, 0, 0 }, { FIFTH_BITS, 2, 0 }, { WORDS, 6, 4 } },
    [AK_QUANT_Q5_1] = { { HALVES, 0, 0 }, { HALVES, 2, 0 }, { FIFTH_BITS, 4, 0 }, { WORDS, 8, 4 } },
    [AK_QUANT_Q8_0] = { { HALVES, 0, 0 }, { BIASED, 2, 8 } },
    [AK_QUANT_IQ4_NL] = { { HALVES, 0, 0 }, { WORDS, 2, 4 } },
    [AK_QUANT_MXFP4] = { { BYTES, 0, 0 }, { WORDS, 1, 4 } },
    [AK_QUANT_A4] = { { HALVES, 0, 0 }, { HALVES, 2, 0 }, { WORDS, 4, 4 } },
    [AK_QUANT_A5] = { { HALVES, 0, 0 }, { HALVES, 2, 0 }, { FIFTH_BITS, 4, 0 }, { WORDS, 8, 4 } },
    [AK_QUANT_A8] = { { WORDS, 0, 1 }, { WORDS, 4, 1 }, { BIASED, 8, 8 } },
    [AK_QUANT_Q2_K] = { { WORDS, 80, 1 }, { WORDS, 0, 4 }, { WORDS, 16, 16 } },
    [AK_QUANT_Q3_K] = { { HALVES, 108, 0 }, { WORDS, 96, 3 }, { THREE_BITS, 0, 0 } },
    [AK_QUANT_Q4_K] = { { WORDS, 0, 36 } },
    [AK_QUANT_Q5_K] = { { WORDS, 0, 44 } },
    [AK_QUANT_Q6_K] = { { HALVES, 208, 0 },
                        { WORDS, 192, 4 },
                        { WORDS, 128, 8 },
                        { WORDS, 0, 16 },
                        { WORDS, 160, 8 },
                        { WORDS, 64, 16 } },
    [AK_QUANT_IQ4_XS] = { { WORDS, 0, 34 } },
    [AK_QUANT_V2] = { { HALVES, 0, 0 }, { WORDS, 2, 2 } },
    [AK_QUANT_V3] = { { HALVES, 0, 0 }, { TABLE, 106, 0 }, { WORDS, 2, 2 }, { THREE_BITS, 10, 0 } },
    [AK_QUANT_V4] = { { HALVES, 0, 0 }, { TABLE, 134, 0 }, { WORDS, 2, 1 }, { WORDS, 6, 32 } },
};
_Static_assert(offsetof(struct ak_quant_block_v3, table) == 106 &&
                   offsetof(struct ak_quant_block_v3, high) == 10 &&
                   offsetof(struct ak_quant_block_v4, table) == 134,
               "the parts of V3 and V4");

enum ak_quant_type ak_cpu_tile_type(enum ak_quant_type type)
{
    return ak_quant_recoded_type(type);
}

bool ak_cpu_is_tiled(enum ak_quant_type type)
{
    return parts_of[ak_cpu_tile_type(type)][0].kind != NOTHING;
}

enum ak_cpu_act_format ak_cpu_type_act_format(enum ak_quant_type type)
{
    if (!ak_cpu_is_tiled(type))
        return AK_CPU_ACT_F32;
    return ak_quant_info(ak_cpu_tile_type(type))->block_elems == AK_TILE_K ? AK_CPU_ACT_Q8_256 :
                                                                             AK_CPU_ACT_Q8_32;
}

size_t ak_cpu_act_bytes(enum ak_cpu_act_format format, size_t k)
{
    switch (format) {
    case AK_CPU_ACT_Q8_32: return ak_round_up(k / 32 * sizeof(struct ak_cpu_act32), AK_LINE_BYTES);
    case AK_CPU_ACT_Q8_256:
        return ak_round_up(k / 256 * sizeof(struct ak_cpu_act256), AK_LINE_BYTES);
    case AK_CPU_ACT_PANEL_BF16: return ak_round_up(k, 32) * sizeof(uint16_t);
    default: return ak_round_up(k, 32) * sizeof(float);
    }
}

/* Bytes of one element of a part, for all 16 rows. */
static size_t element_bytes(const struct part *part)
{
    switch (part->kind) {
    case BYTES: return AK_TILE_ROWS;
    case HALVES: return 2 * AK_TILE_ROWS;
    case WORDS:
    case BIASED: return part->words * (size_t)AK_LINE_BYTES;
    case FIFTH_BITS: return AK_LINE_BYTES;
    case THREE_BITS: return 24 * AK_LINE_BYTES;
    case TABLE: return TABLE_BYTES;
    default: return 0;
    }
}

/* Offset of a part that follows `end` bytes of the tile. */
static size_t part_begin(const struct part *part, size_t end)
{
    return part->kind == BYTES || part->kind == HALVES || part->kind == TABLE ?
               end :
               ak_round_up(end, AK_LINE_BYTES);
}

/* Number of blocks per row of a tile with `blocks` blocks of 32 k. */
static size_t stored_blocks(enum ak_quant_type type, size_t blocks)
{
    return blocks * AK_BLOCK_K / ak_quant_info(type)->block_elems;
}

size_t ak_cpu_tile_bytes(enum ak_quant_type type, size_t blocks)
{
    type = ak_cpu_tile_type(type);
    size_t end = 0, n = stored_blocks(type, blocks);
    for (const struct part *part = parts_of[type];
         part < parts_of[type] + PARTS_MAX && part->kind != NOTHING; part++)
        end = part_begin(part, end) + n * element_bytes(part);
    return end;
}

size_t ak_cpu_tile_row_bytes(enum ak_quant_type type, size_t k)
{
    size_t tail = k % AK_TILE_K / AK_BLOCK_K;
    return k / AK_TILE_K * ak_cpu_tile_bytes(type, AK_TILE_BLOCKS) +
           (tail ? ak_cpu_tile_bytes(type, tail) : 0);
}

void ak_cpu_copy_block(enum ak_quant_type type, const uint8_t *restrict tile, size_t blocks,
                       size_t block, uint8_t *restrict out)
{
    type = ak_cpu_tile_type(type);
    size_t end = 0, end_out = 0;
    for (const struct part *part = parts_of[type];
         part < parts_of[type] + PARTS_MAX && part->kind != NOTHING; part++) {
        size_t bytes = element_bytes(part), begin = part_begin(part, end),
               begin_out = part_begin(part, end_out);
        memcpy(out + begin_out, tile + begin + block * bytes, bytes);
        end = begin + blocks * bytes;
        end_out = begin_out + bytes;
    }
}

/* Copies n 32-bit words of a row to or from consecutive lines. */
static void words_to_lines(const uint8_t *restrict words, size_t n, uint8_t *restrict lines,
                           size_t row)
{
    for (size_t i = 0; i < n; i++)
        memcpy(lines + i * AK_LINE_BYTES + row * 4, words + i * 4, 4);
}

static void lines_to_words(const uint8_t *restrict lines, size_t n, uint8_t *restrict words,
                           size_t row)
{
    for (size_t i = 0; i < n; i++)
        memcpy(words + i * 4, lines + i * AK_LINE_BYTES + row * 4, 4);
}

static void flip_sign_bits(uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        bytes[i] ^= 0x80;
}

/* Distributes the 32 fifth bits of a block over its 8 words, or collects them. Rows 2i and 2i + 1
 * share bytes. */
static void pack_fifth_bits(const uint8_t stored[4], uint8_t *words, size_t row)
{
    for (size_t i = 0; i < 8; i++) {
        unsigned shift = row % 2 * 4, nibble = ((unsigned)stored[i / 2] >> (i % 2 * 4)) & 15u;
        uint8_t *byte = &words[i * 8 + row / 2];
        *byte = (uint8_t)((*byte & ~(15u << shift)) | nibble << shift);
    }
}

static void gather_fifth_bits(const uint8_t *words, uint8_t stored[4], size_t row)
{
    memset(stored, 0, 4);
    for (size_t i = 0; i < 8; i++) {
        unsigned nibble = ((unsigned)words[i * 8 + row / 2] >> (row % 2 * 4)) & 15u;
        stored[i / 2] |= (uint8_t)(nibble << (i % 2 * 4));
    }
}

/* Packs eight 3-bit numbers (k = i, 32 + i, … 224 + i) into three bytes: each has two whole
 * numbers, then come the upper bits of the last two, then their lowest bits. Layout in
 * engine/cpu/layout.h. */
static void pack_three_bits(const uint8_t stored[96], uint8_t *lines, size_t row)
{
    for (size_t i = 0; i < 32; i++) {
        unsigned high = stored[i], first = stored[32 + i], second = stored[64 + i], v[8];
        for (size_t s = 0; s < 8; s++)
            v[s] = ((s < 4 ? first : second) >> (s % 4 * 2) & 3u) | (high >> s & 1u) << 2;
        uint8_t *out = lines + i / 4 * 3 * AK_LINE_BYTES + row * 4 + i % 4;
        out[0] = (uint8_t)(v[0] | v[1] << 3 | v[6] >> 1 << 6);
        out[AK_LINE_BYTES] = (uint8_t)(v[2] | v[3] << 3 | v[7] >> 1 << 6);
        out[2 * AK_LINE_BYTES] = (uint8_t)(v[4] | v[5] << 3 | (v[6] & 1u) << 6 | (v[7] & 1u) << 7);
    }
}

static void gather_three_bits(const uint8_t *lines, uint8_t stored[96], size_t row)
{
    for (size_t i = 0; i < 32; i++) {
        const uint8_t *in = lines + i / 4 * 3 * AK_LINE_BYTES + row * 4 + i % 4;
        unsigned a = in[0], b = in[AK_LINE_BYTES], c = in[2 * AK_LINE_BYTES], high = 0,
                 low[2] = { 0, 0 };
        const unsigned v[8] = { a & 7u,
                                a >> 3 & 7u,
                                b & 7u,
                                b >> 3 & 7u,
                                c & 7u,
                                c >> 3 & 7u,
                                a >> 6 << 1 | (c >> 6 & 1u),
                                b >> 6 << 1 | c >> 7 };
        for (size_t s = 0; s < 8; s++) {
            low[s / 4] |= (v[s] & 3u) << (s % 4 * 2);
            high |= v[s] >> 2 << s;
        }
        stored[i] = (uint8_t)high;
        stored[32 + i] = (uint8_t)low[0];
        stored[64 + i] = (uint8_t)low[1];
    }
}

static void pack_element(const struct part *part, const uint8_t *restrict stored,
                         uint8_t *restrict lines, size_t row)
{
    switch (part->kind) {
    case BYTES: lines[row] = stored[0]; break;
    case HALVES: memcpy(lines + row * 2, stored, 2); break;
    case WORDS: words_to_lines(stored, part->words, lines, row); break;
    case FIFTH_BITS: pack_fifth_bits(stored, lines, row); break;
    case THREE_BITS: pack_three_bits(stored, lines, row); break;
    case TABLE:
        if (row == 0)
            memcpy(lines, stored, sizeof(struct ak_quant_table));
        break;
    case BIASED: {
        uint8_t biased[32];
        memcpy(biased, stored, 32);
        flip_sign_bits(biased, 32);
        words_to_lines(biased, part->words, lines, row);
        break;
    }
    default: break;
    }
}

static void gather_element(const struct part *part, const uint8_t *restrict lines,
                           uint8_t *restrict stored, size_t row)
{
    switch (part->kind) {
    case BYTES: stored[0] = lines[row]; break;
    case HALVES: memcpy(stored, lines + row * 2, 2); break;
    case WORDS: lines_to_words(lines, part->words, stored, row); break;
    case FIFTH_BITS: gather_fifth_bits(lines, stored, row); break;
    case THREE_BITS: gather_three_bits(lines, stored, row); break;
    case TABLE: memcpy(stored, lines, sizeof(struct ak_quant_table)); break;
    case BIASED:
        lines_to_words(lines, part->words, stored, row);
        flip_sign_bits(stored, 32);
        break;
    default: break;
    }
}

static void pack_row(enum ak_quant_type type, const uint8_t *restrict stored, size_t blocks,
                     size_t row, uint8_t *restrict tile)
{
    size_t end = 0, n = stored_blocks(type, blocks), block_bytes = ak_quant_info(type)->block_bytes;
    for (const struct part *part = parts_of[type];
         part < parts_of[type] + PARTS_MAX && part->kind != NOTHING; part++) {
        size_t begin = part_begin(part, end), bytes = element_bytes(part);
        for (size_t b = 0; b < n; b++)
            pack_element(part, stored + b * block_bytes + part->at, tile + begin + b * bytes, row);
        end = begin + n * bytes;
    }
}

void ak_cpu_gather_row(enum ak_quant_type type, const uint8_t *restrict tile, size_t blocks,
                       size_t row, uint8_t *restrict stored)
{
    type = ak_cpu_tile_type(type);
    size_t end = 0, n = stored_blocks(type, blocks), block_bytes = ak_quant_info(type)->block_bytes;
    for (const struct part *part = parts_of[type];
         part < parts_of[type] + PARTS_MAX && part->kind != NOTHING; part++) {
        size_t begin = part_begin(part, end), bytes = element_bytes(part);
        for (size_t b = 0; b < n; b++)
            gather_element(part, tile + begin + b * bytes, stored + b * block_bytes + part->at,
                           row);
        end = begin + n * bytes;
    }
}

void ak_cpu_pack_tiles(enum ak_quant_type type, const void *const rows[AK_TILE_ROWS], size_t k,
                       uint8_t *restrict tiles)
{
    const struct ak_quant_info *info = ak_quant_info(type);
    const enum ak_quant_type tile_type = ak_cpu_tile_type(type);
    static const uint8_t zeros[STORED_TILE_BYTES_MAX];
    uint8_t recoded[STORED_TILE_BYTES_MAX];
    size_t stored_offset = 0;
    for (size_t at = 0; at < k; at += AK_TILE_K) {
        size_t elems = ak_min_size(k - at, AK_TILE_K), blocks = elems / AK_BLOCK_K;
        size_t bytes = ak_cpu_tile_bytes(type, blocks);
        memset(tiles, 0, bytes);
        for (size_t r = 0; r < AK_TILE_ROWS; r++) {
            const uint8_t *stored = rows[r] ? (const uint8_t *)rows[r] + stored_offset : zeros;
            if (rows[r] && tile_type != type) {
                ak_quant_recode(type, stored, recoded, elems);
                stored = recoded;
            }
            pack_row(tile_type, stored, blocks, r, tiles);
        }
        tiles += bytes;
        stored_offset += elems / info->block_elems * info->block_bytes;
    }
}

void ak_cpu_pack_row(enum ak_quant_type type, const void *restrict stored, size_t k, size_t row,
                     uint8_t *restrict tiles)
{
    const struct ak_quant_info *info = ak_quant_info(type);
    const uint8_t *from = stored;
    for (size_t at = 0; at < k; at += AK_TILE_K) {
        size_t elems = ak_min_size(k - at, AK_TILE_K), blocks = elems / AK_BLOCK_K;
        pack_row(type, from, blocks, row, tiles);
        tiles += ak_cpu_tile_bytes(type, blocks);
        from += elems / info->block_elems * info->block_bytes;
    }
}

void ak_cpu_dequantize_row(enum ak_quant_type type, const uint8_t *restrict tiles, size_t k,
                           size_t row, float *restrict out)
{
    uint8_t stored[STORED_TILE_BYTES_MAX];
    for (size_t at = 0; at < k; at += AK_TILE_K) {
        size_t elems = ak_min_size(k - at, AK_TILE_K), blocks = elems / AK_BLOCK_K;
        ak_cpu_gather_row(type, tiles, blocks, row, stored);
        ak_quant_info(ak_cpu_tile_type(type))->dequantize(stored, out + at, elems);
        tiles += ak_cpu_tile_bytes(type, blocks);
    }
}
