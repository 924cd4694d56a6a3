/* Every kernel of every ISA that this machine can run gives the bits of its
 * scalar counterpart, and the packed layout loses nothing. */
#include "tests/test.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/half.h"
#include "base/mem.h"
#include "engine/cpu/blas.h"
#include "engine/cpu/kernels.h"
#include "engine/cpu/slices.h"
#include "engine/cpu/tile256.h"
#include "files/quant/block.h"
#include "tests/engine/cpu/evex.h"
#include "files/weights/provider.h"

static const enum ak_quant_type tiled_types[] = {
    AK_QUANT_Q4_0,   AK_QUANT_Q4_1,    AK_QUANT_Q5_0,   AK_QUANT_Q5_1,  AK_QUANT_Q8_0,
    AK_QUANT_Q2_K,   AK_QUANT_Q3_K,    AK_QUANT_Q4_K,   AK_QUANT_Q5_K,  AK_QUANT_Q6_K,
    AK_QUANT_IQ4_NL, AK_QUANT_IQ4_XS,  AK_QUANT_MXFP4,  AK_QUANT_A4,    AK_QUANT_A5,
    AK_QUANT_A8,     AK_QUANT_V2,      AK_QUANT_V3,     AK_QUANT_V4,    AK_QUANT_IQ1_S,
    AK_QUANT_IQ1_M,  AK_QUANT_IQ2_XXS, AK_QUANT_IQ2_XS, AK_QUANT_IQ2_S, AK_QUANT_IQ3_XXS,
    AK_QUANT_IQ3_S,  AK_QUANT_TQ1_0,   AK_QUANT_TQ2_0,  AK_QUANT_Q1_0,  AK_QUANT_Q2_0
};
enum { N_TILED = sizeof tiled_types / sizeof *tiled_types };

/* ---- Random input ------------------------------------------------------- */
static uint64_t random_state;

static uint64_t random_bits(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static size_t random_below(size_t n)
{
    return (size_t)(random_bits() >> 16) % n;
}

/* −1 … 1, small magnitudes more often. */
static float random_float(void)
{
    float a = (float)(random_bits() >> 40) * 0x1p-24f,
          b = (float)(random_bits() >> 40) * 0x1p-23f - 1.0f;
    return a * b;
}

static void random_bytes(void *out, size_t n)
{
    uint8_t *bytes = out;
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)(random_bits() >> 32);
}

/* Q8_0 rows with ordinary scales. */
static void random_q8_0(uint8_t *rows, size_t n_blocks)
{
    random_bytes(rows, n_blocks * sizeof(struct ak_quant_block_q8_0));
    for (size_t i = 0; i < n_blocks; i++)
        rows[i * sizeof(struct ak_quant_block_q8_0) + 1] &= 0x3b;
}

/* ---- Memory ------------------------------------------------------------- */
/* Where a buffer's pages begin, and how many bytes of them are usable. */
struct mapping {
    uint8_t *start;
    size_t capacity;
    struct mapping *next;
};
static struct mapping *free_mappings, *used_mappings;

/* `capacity` bytes, whole pages, with a page behind them that cannot be read. */
static struct mapping *map_guarded(size_t capacity, size_t page)
{
    struct mapping *m = malloc(sizeof *m);
    ck_assert_ptr_nonnull(m);
    *m = (struct mapping){ mmap(NULL, capacity + page, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                           capacity, NULL };
    ck_assert(m->start != MAP_FAILED);
    ck_assert_int_eq(mprotect(m->start + capacity, page, PROT_NONE), 0);
    return m;
}

/* Memory of exactly `bytes` bytes that ends where a guard page begins, so that every read
 * beyond it is a fault. It starts at a cache line if `bytes` is a multiple of one. */
static void *exact(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), capacity = ak_round_up(bytes ? bytes : 1, page);
    struct mapping **at = &free_mappings;
    while (*at && (*at)->capacity != capacity)
        at = &(*at)->next;
    struct mapping *m = *at;
    if (m)
        *at = m->next;
    else
        m = map_guarded(capacity, page);
    m->next = used_mappings;
    used_mappings = m;
    return memset(m->start + capacity - bytes, 0x5a, bytes);
}

/* Ends the use of what exact() gave; its pages serve the next buffer of their size. */
static void release(void *p)
{
    uintptr_t address = (uintptr_t)p;
    struct mapping **at = &used_mappings;
    while (*at && (address < (uintptr_t)(*at)->start ||
                   address > (uintptr_t)(*at)->start + (*at)->capacity))
        at = &(*at)->next;
    struct mapping *m = *at;
    ck_assert_ptr_nonnull(m);
    *at = m->next;
    m->next = free_mappings;
    free_mappings = m;
}

static float *random_floats(size_t n)
{
    float *x = exact(n * sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = random_float();
    return x;
}

/* ---- Comparison --------------------------------------------------------- */
static bool same_float(float a, float b)
{
    return ak_float_bits(a) == ak_float_bits(b) || (isnan(a) && isnan(b));
}

static void expect_floats(const float *got, const float *want, size_t n, const char *what,
                          const char *where)
{
    for (size_t i = 0; i < n; i++)
        if (!same_float(got[i], want[i]))
            ck_abort_msg("%s %s: element %zu of %zu is %a, scalar gives %a", what, where, i, n,
                         (double)got[i], (double)want[i]);
}

/* ISA `isa` and the scalar one. False: not usable here. */
static bool fill_both(int isa, struct ak_cpu_kernels *tested, struct ak_cpu_kernels *scalar)
{
    random_state = 0x9e3779b97f4a7c15u + (uint64_t)isa;
    if (!fill_isa(isa, tested))
        return false;
    ak_cpu_fill_kernels(AK_CPU_ISA_SCALAR, scalar);
    return true;
}

/* ---- Weights ------------------------------------------------------------ */
enum weights {
    W_RANDOM,
    W_ZERO_BITS,
    W_ONE_BITS,
    W_LARGE_SCALES,
    W_SMALL_SCALES,
    W_COUNT,
    W_MIN_BYTES = W_COUNT,
    W_MAX_BYTES
};

static void put_scale(uint8_t *at, enum weights kind)
{
    uint16_t bits = (uint16_t)(random_bits() >> 20);
    switch (kind) {
    /* ±65504 */
    case W_LARGE_SCALES: bits = (uint16_t)((bits & 0x8000u) | 0x7bffu); break;
    /* ±0 and subnormal */
    case W_SMALL_SCALES: bits &= 0x8003u; break;
    /* 2^-11 … 2^-5 */
    default: bits = (uint16_t)((bits & 0x83ffu) | (0x1000u + (bits & 0x1800u))); break;
    }
    memcpy(at, &bits, sizeof bits);
}

/* The same in BF16, as the upper half of an F32 whose lower half stays as it is. */
static void put_wide_scale(uint8_t *upper, enum weights kind)
{
    uint16_t bits = (uint16_t)(random_bits() >> 20);
    switch (kind) {
    case W_LARGE_SCALES:
        bits = (uint16_t)((bits & 0x8000u) | 0x477fu);
        break; /* ±65280 */
    /* ±0 and subnormal */
    case W_SMALL_SCALES: bits &= 0x8003u; break;
    /* 2^-11 … 2^-4 */
    default: bits = (uint16_t)((bits & 0x807fu) | (0x3a00u + (bits & 0x300u))); break;
    }
    memcpy(upper, &bits, sizeof bits);
}

/* MXFP4's, a power of two. */
static void put_exponent(uint8_t *at, enum weights kind)
{
    uint8_t bits = (uint8_t)(random_bits() >> 20);
    switch (kind) {
    case W_LARGE_SCALES: *at = bits | 0xfcu; break; /* 2^124 … 2^127 */
    case W_SMALL_SCALES: *at = bits & 3u; break;    /* 2^-128 … 2^-125: two of them subnormal */
    default: *at = (uint8_t)(116 + bits % 8); break;
    }
}

/* IQ1_M: the four nibbles of its scale are the top ones of its last four words. */
static void put_split_scale(uint8_t *words, enum weights kind)
{
    uint8_t half[2];
    put_scale(half, kind);
    for (size_t i = 0; i < 4; i++)
        words[2 * i + 1] =
            (uint8_t)((words[2 * i + 1] & 15) | (half[i / 2] >> i % 2 * 4 & 15) << 4);
}

/* The table of V3 or V4, the same for all rows; the largest values that kernels take are there. */
static void put_table(uint8_t *at, enum ak_quant_type type, enum weights kind)
{
    struct ak_quant_table table = { { -64, -43, -9, 0, 1, 8, 37, 63 }, 0.5f };
    for (int i = 0; i < 8; i++) {
        int value = kind == W_MIN_BYTES ? -64 : kind == W_MAX_BYTES ? 63 : table.values[i];
        table.values[i] = (int8_t)(type == AK_QUANT_V4 ? value / 2 : value);
        table.values[i + 8] =
            (int8_t)(type == AK_QUANT_V4 && kind != W_MIN_BYTES ? 31 - 4 * i : table.values[i]);
    }
    memcpy(at, &table, sizeof table);
}

/* `blocks` stored blocks; scales are finite. */
static void fill_blocks(enum ak_quant_type type, enum weights kind, uint8_t *stored, size_t blocks)
{
    size_t bytes = ak_quant_info(type)->block_bytes;
    for (size_t b = 0; b < blocks; b++, stored += bytes) {
        random_bytes(stored, bytes);
        if (kind == W_ZERO_BITS || kind == W_ONE_BITS)
            memset(stored, kind == W_ONE_BITS ? 0xff : 0, bytes);
        if (kind == W_MIN_BYTES || kind == W_MAX_BYTES)
            memset(stored, kind == W_MIN_BYTES ? 0x80 : 0x7f, bytes);
        switch (type) {
        case AK_QUANT_MXFP4: put_exponent(stored, kind); break;
        case AK_QUANT_Q3_K: put_scale(stored + 108, kind); break;
        case AK_QUANT_Q6_K: put_scale(stored + 208, kind); break;
        case AK_QUANT_TQ1_0: put_scale(stored + 52, kind); break;
        case AK_QUANT_TQ2_0: put_scale(stored + 64, kind); break;
        case AK_QUANT_IQ1_M: put_split_scale(stored + 48, kind); break;
        case AK_QUANT_V3:
        case AK_QUANT_V4:
            put_scale(stored, kind);
            put_table(stored + bytes - sizeof(struct ak_quant_table), type, kind);
            break;
        case AK_QUANT_Q2_K:
            put_scale(stored + 80, kind);
            put_scale(stored + 82, kind);
            break;
        case AK_QUANT_A4:
        case AK_QUANT_A5:
            put_wide_scale(stored, kind);
            put_wide_scale(stored + 2, kind);
            break;
        case AK_QUANT_F8: put_wide_scale(stored + 2, kind); break;
        case AK_QUANT_A8:
            put_wide_scale(stored + 2, kind);
            put_wide_scale(stored + 6, kind);
            break;
        case AK_QUANT_Q4_1:
        case AK_QUANT_Q5_1:
        case AK_QUANT_Q4_K:
        case AK_QUANT_Q5_K:
            put_scale(stored, kind);
            put_scale(stored + 2, kind);
            break;
        default: put_scale(stored, kind); break;
        }
    }
}

struct weight {
    enum ak_quant_type type;
    size_t k, n_tiles, row_bytes;
    uint8_t *stored; /* 16 · n_tiles rows */
    uint8_t *tiles;
};

static struct weight make_weight(enum ak_quant_type type, enum weights kind, size_t n_tiles,
                                 size_t k)
{
    const struct ak_quant_info *info = ak_quant_info(type);
    struct weight w = { .type = type,
                        .k = k,
                        .n_tiles = n_tiles,
                        .row_bytes = k / info->block_elems * info->block_bytes };
    size_t tile_bytes = ak_cpu_tile_row_bytes(type, k);
    w.stored = exact(n_tiles * 16 * w.row_bytes);
    w.tiles = exact(n_tiles * tile_bytes);
    fill_blocks(type, kind, w.stored, n_tiles * 16 * (k / info->block_elems));
    for (size_t i = 0; i < n_tiles; i++) {
        const void *rows[AK_TILE_ROWS];
        for (size_t r = 0; r < AK_TILE_ROWS; r++)
            rows[r] = w.stored + (i * 16 + r) * w.row_bytes;
        ak_cpu_pack_tiles(type, rows, k, w.tiles + i * tile_bytes);
    }
    return w;
}

static void free_weight(struct weight *w)
{
    release(w->stored);
    release(w->tiles);
}

static size_t smallest_k(enum ak_quant_type type)
{
    return ak_quant_info(type)->block_elems;
}

/* ---- Layout ------------------------------------------------------------- */
START_TEST(layout_keeps_every_byte)
{
    enum ak_quant_type type = tiled_types[_i];
    const struct ak_quant_info *info = ak_quant_info(type);
    const bool has_table = type == AK_QUANT_V3 || type == AK_QUANT_V4;
    const size_t table = info->block_bytes - sizeof(struct ak_quant_table);
    if (ak_cpu_tile_type(type) != type)
        return; /* tests/files/quant/test_quant.c, recoded_values */
    random_state = 77;
    for (size_t k = info->block_elems; k <= 576; k += info->block_elems) {
        size_t row_bytes = k / info->block_elems * info->block_bytes,
               bytes = ak_cpu_tile_row_bytes(type, k);
        uint8_t *stored = exact(16 * row_bytes), *tiles = exact(bytes), *back = exact(row_bytes);
        const void *rows[AK_TILE_ROWS];
        random_bytes(stored, 16 * row_bytes);
        for (size_t i = 0; has_table && i < 16 * row_bytes; i += info->block_bytes)
            put_table(stored + i + table, type, W_RANDOM);
        for (size_t r = 0; r < AK_TILE_ROWS; r++)
            rows[r] = stored + r * row_bytes;
        rows[3] = rows[15] = NULL; /* rows that only pad */
        ak_cpu_pack_tiles(type, rows, k, tiles);
        for (size_t r = 0; r < AK_TILE_ROWS; r++) {
            const uint8_t *tile = tiles;
            uint8_t *to = back;
            for (size_t at = 0; at < k; at += AK_TILE_K) {
                size_t elems = ak_min_size(k - at, AK_TILE_K);
                ak_cpu_gather_row(type, tile, elems / AK_BLOCK_K, r, to);
                tile += ak_cpu_tile_bytes(type, elems / AK_BLOCK_K);
                to += elems / info->block_elems * info->block_bytes;
            }
            ck_assert_uint_eq((size_t)(tile - tiles), bytes);
            uint8_t *want = exact(row_bytes);
            memset(want, 0, row_bytes);
            if (rows[r])
                memcpy(want, rows[r], row_bytes);
            for (size_t i = 0; has_table && i < row_bytes; i += info->block_bytes)
                put_table(want + i + table, type, W_RANDOM);
            ck_assert_mem_eq(back, want, row_bytes);
            release(want);
        }
        release(stored);
        release(tiles);
        release(back);
    }
}
END_TEST

START_TEST(layout_dequantizes_as_stored)
{
    enum ak_quant_type type = tiled_types[_i];
    random_state = 78;
    for (size_t k = smallest_k(type); k <= 576; k += smallest_k(type)) {
        struct weight w = make_weight(type, W_RANDOM, 1, k);
        float *got = exact(k * sizeof *got), *want = exact(k * sizeof *want);
        for (size_t r = 0; r < AK_TILE_ROWS; r++) {
            ak_cpu_dequantize_row(type, w.tiles, k, r, got);
            ak_quant_info(type)->dequantize(w.stored + r * w.row_bytes, want, k);
            expect_floats(got, want, k, ak_quant_info(type)->name, "unpacked");
        }
        release(got);
        release(want);
        free_weight(&w);
    }
}
END_TEST

/* The first byte of a part that is set in a stored block is found where kernels look for it. */
START_TEST(layout_agrees_with_kernels)
{
    static const struct {
        enum ak_quant_type type;
        size_t stored, packed;
    } parts[] = {
        { AK_QUANT_Q2_K, 0, AK_K_SCALES_AT },
        { AK_QUANT_Q2_K, 16, AK_Q2_K_QUANTS_AT },
        { AK_QUANT_Q3_K, 96, AK_K_SCALES_AT },
        { AK_QUANT_Q3_K, 32, AK_Q3_K_QUANTS_AT },
        { AK_QUANT_Q4_K, 4, AK_K_SCALES_AT },
        { AK_QUANT_Q4_K, 16, AK_Q4_K_QUANTS_AT },
        { AK_QUANT_Q5_K, 4, AK_K_SCALES_AT },
        { AK_QUANT_Q5_K, 16, AK_Q5_K_HIGH_AT },
        { AK_QUANT_Q5_K, 48, AK_Q5_K_QUANTS_AT },
        { AK_QUANT_Q6_K, 192, AK_K_SCALES_AT },
        { AK_QUANT_Q6_K, 128, AK_Q6_K_HALVES_AT },
        { AK_QUANT_Q6_K, 0, AK_Q6_K_HALVES_AT + AK_Q6_K_LOW_AT },
        { AK_QUANT_Q6_K, 160, AK_Q6_K_HALVES_AT + AK_Q6_K_HALF_BYTES },
        { AK_QUANT_IQ4_XS, 4, AK_K_SCALES_AT },
        { AK_QUANT_IQ4_XS, 8, AK_IQ4_XS_QUANTS_AT },
        { AK_QUANT_V3, 2, AK_K_SCALES_AT },
        { AK_QUANT_V3, 10, AK_V3_QUANTS_AT },
        { AK_QUANT_V3, 106, AK_TABLE_AT },
        { AK_QUANT_V3, 122, AK_TABLE_FACTOR_AT },
        { AK_QUANT_V4, 2, AK_K_SCALES_AT },
        { AK_QUANT_V4, 6, AK_IQ4_XS_QUANTS_AT },
        { AK_QUANT_V4, 134, AK_TABLE_AT },
        { AK_QUANT_V4, 150, AK_TABLE_FACTOR_AT },
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        uint8_t stored[256] = { 0 }, tile[4096];
        const void *rows[AK_TILE_ROWS] = { stored };
        size_t bytes = ak_cpu_tile_bytes(parts[i].type, AK_TILE_BLOCKS), at = 0;
        ck_assert_uint_eq(ak_cpu_tile256_bytes(parts[i].type), bytes);
        stored[parts[i].stored] = 0xff;
        ak_cpu_pack_tiles(parts[i].type, rows, AK_TILE_K, tile);
        while (at < bytes && tile[at] == 0)
            at++;
        ck_assert_uint_eq(at, parts[i].packed);
    }
}
END_TEST

/* ---- Activations -------------------------------------------------------- */
enum activations {
    A_RANDOM,
    A_EXTREME,
    A_ZERO,
    A_TINY,
    A_HUGE,
    A_MIXED,
    A_NOT_FINITE,
    A_TIES,
    A_COUNT,
    A_MIN = A_COUNT,
    A_MAX
};

static float activation(enum activations kind, size_t i)
{
    static const float mixed[] = { 0.0f,      -0.0f,  0x1p-100f, 0x1.fffffep-101f,
                                   -0x1p-99f, 1e-40f, 1.0f,      -1e30f };
    switch (kind) {
    case A_EXTREME: return random_bits() & 1024 ? 3.0f : -3.0f; /* all ±127 */
    case A_MIN: return -3.0f;
    case A_MAX: return 3.0f;
    case A_ZERO: return 0.0f;
    case A_TINY: return random_float() * 0x1p-99f;
    case A_HUGE: return random_float() * FLT_MAX;
    case A_MIXED: return i / 32 % 2 ? mixed[i / 32 % 8] * random_float() : mixed[i % 8];
    case A_NOT_FINITE: return i % 97 == 40 ? (i % 2 ? NAN : -INFINITY) : random_float();
    case A_TIES: return i % 32 == 0 ? 127.0f : (float)random_below(254) - 126.5f;
    default: return random_float();
    }
}

static float *make_activations(enum activations kind, size_t n)
{
    float *x = exact(n * sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = activation(kind, i);
    return x;
}

START_TEST(quantize_is_scalar)
{
    struct ak_cpu_kernels tested, scalar;
    if (!fill_both(_i, &tested, &scalar))
        return;
    for (int kind = 0; kind < A_COUNT; kind++) {
        for (size_t n = 32; n <= 1024; n += n < 256 ? 32 : 256) {
            float *x = make_activations((enum activations)kind, n);
            struct ak_cpu_act32 *got = exact(n / 32 * sizeof *got),
                                *want = exact(n / 32 * sizeof *want);
            tested.quantize32(x, n, got);
            scalar.quantize32(x, n, want);
            for (size_t b = 0; b < n / 32; b++) {
                ck_assert_mem_eq(got[b].q, want[b].q, 32);
                expect_floats(&got[b].scale, &want[b].scale, 1, tested.name, "scale per 32");
                ck_assert_int_eq(got[b].minus8_sum, want[b].minus8_sum);
                expect_floats(&got[b].scaled_sum, &want[b].scaled_sum, 1, tested.name,
                              "sum per 32");
                ck_assert_uint_eq(got[b].unused, 0);
            }
            release(got);
            release(want);
            if (n % 256 == 0) {
                struct ak_cpu_act256 *got_k = exact(n / 256 * sizeof *got_k),
                                     *want_k = exact(n / 256 * sizeof *want_k);
                tested.quantize256(x, n, got_k);
                scalar.quantize256(x, n, want_k);
                for (size_t b = 0; b < n / 256; b++) {
                    expect_floats(&got_k[b].scale, &want_k[b].scale, 1, tested.name,
                                  "scale per 256");
                    got_k[b].scale = want_k[b].scale = 0.0f;
                    ck_assert_mem_eq(&got_k[b], &want_k[b], sizeof *got_k);
                }
                release(got_k);
                release(want_k);
            }
            release(x);
        }
    }
}
END_TEST

/* Records of n tokens, made by the scalar quantizer. */
static uint8_t *quantize_tokens(const struct ak_cpu_kernels *scalar, enum ak_cpu_act_format format,
                                enum activations kind, size_t n, size_t k)
{
    size_t bytes = ak_cpu_act_bytes(format, k);
    uint8_t *records = exact(n * bytes);
    for (size_t t = 0; t < n; t++) {
        float *x = make_activations(kind, k);
        if (format == AK_CPU_ACT_Q8_32)
            scalar->quantize32(x, k, (struct ak_cpu_act32 *)(void *)(records + t * bytes));
        else
            scalar->quantize256(x, k, (struct ak_cpu_act256 *)(void *)(records + t * bytes));
        release(x);
    }
    return records;
}

/* ---- Products ----------------------------------------------------------- */
enum { TOKENS_MAX = 27 }; /* four groups of 6 and a rest, three of 8 and a rest */

/* The first n tokens of `want`, and nothing written between and after them. */
static void expect_product(const float *got, const float *want, size_t stride, size_t rows,
                           size_t n, const char *name, const char *where)
{
    float untouched;
    memset(&untouched, 0x5a, sizeof untouched);
    for (size_t t = 0; t < TOKENS_MAX; t++) {
        if (t < n)
            expect_floats(got + t * stride, want + t * stride, rows, name, where);
        for (size_t r = t < n ? rows : 0; r < stride; r++)
            if (!same_float(got[t * stride + r], untouched))
                ck_abort_msg("%s %s: wrote row %zu of token %zu", name, where, r, t);
    }
}

/* One weight times one batch by every kernel of its type, n = 1 … all. */
static void check_products(const struct ak_cpu_kernels *tested, const struct ak_cpu_kernels *scalar,
                           const struct weight *w, const uint8_t *tokens, size_t act_bytes,
                           const char *where)
{
    size_t rows = w->n_tiles * AK_TILE_ROWS, stride = rows + 5,
           bytes = TOKENS_MAX * stride * sizeof(float);
    size_t panel_tiles = ak_min_size(w->n_tiles, AK_PANEL_I8_TILES_MAX),
           panel_bytes = panel_tiles * ((w->k + 31) / 32) * AK_PANEL_I8_BLOCK_BYTES_MAX;
    float *want = exact(bytes), *got = exact(bytes);
    uint8_t *panel = exact(panel_bytes);
    scalar->tile[w->type].dot_tiles(w->tiles, w->n_tiles, w->k, tokens, act_bytes, TOKENS_MAX, want,
                                    stride, 0);
    for (size_t n = 1; n <= AK_SKINNY_MAX; n++) {
        memset(got, 0x5a, bytes);
        tested->tile[w->type].dot_tiles(w->tiles, w->n_tiles, w->k, tokens, act_bytes, n, got,
                                        stride, n % 3 * 2048);
        expect_product(got, want, stride, rows, n, ak_quant_info(w->type)->name, where);
    }
    tested->tile[w->type].unpack_panel_i8(w->tiles, panel_tiles, w->k, panel);
    for (size_t n = 1; n <= TOKENS_MAX; n++) {
        memset(got, 0x5a, bytes);
        tested->tile[w->type].dot_panel_i8(panel, panel_tiles, w->k, tokens, act_bytes, n, got,
                                           stride);
        expect_product(got, want, stride, panel_tiles * AK_TILE_ROWS, n,
                       ak_quant_info(w->type)->name, where);
    }
    release(want);
    release(got);
    release(panel);
}

START_TEST(products_are_scalar)
{
    static const char *const weight_names[W_COUNT] = { "random", "0 bits", "1 bits", "large scales",
                                                       "small scales" };
    static const size_t ks[] = { 32, 64, 224, 256, 288, 384, 576, 512, 768 };
    struct ak_cpu_kernels tested, scalar;
    int isa = _i / N_TILED;
    if (!fill_both(isa, &tested, &scalar))
        return;
    enum ak_quant_type type = tiled_types[_i % N_TILED];
    enum ak_cpu_act_format format = ak_cpu_type_act_format(type);
    for (size_t j = 0; j < sizeof ks / sizeof *ks; j++) {
        size_t k = ks[j];
        if (k % smallest_k(type) != 0)
            continue;
        for (int i = 0; i < W_COUNT + A_COUNT; i++) {
            enum weights weights = i < W_COUNT ? (enum weights)i : W_RANDOM;
            enum activations activations = i < W_COUNT ? (i == W_ONE_BITS ? A_EXTREME : A_RANDOM) :
                                                         (enum activations)(i - W_COUNT);
            char where[96];
            snprintf(where, sizeof where, "%s: k %zu, weights %s, activations %d", tested.name, k,
                     weight_names[weights], (int)activations);
            struct weight w = make_weight(type, weights, 1 + (size_t)i % 3, k);
            uint8_t *tokens = quantize_tokens(&scalar, format, activations, TOKENS_MAX, k);
            check_products(&tested, &scalar, &w, tokens, ak_cpu_act_bytes(format, k), where);
            release(tokens);
            free_weight(&w);
        }
    }
}
END_TEST

/* The largest sums that there can be, also of two, of four, of all products in a
 * lane: what has 16 bits must not saturate. −128 and 127 are 0x80 and 0x7f. */
START_TEST(slices_are_the_tiles)
{
    enum { ROWS = AK_SLICES_ROWS + 20 }; /* two groups, the second one with part of a tile row */
    struct ak_cpu_kernels tested, scalar;
    if (!fill_both(_i, &tested, &scalar))
        return;
    random_state = 4711;
    for (size_t k = AK_BLOCK_K; k <= 2 * AK_TILE_K + 3 * AK_BLOCK_K; k += AK_BLOCK_K) {
        size_t row_bytes = k / AK_BLOCK_K * sizeof(struct ak_quant_block_q8_0),
               bytes = ak_cpu_tile_row_bytes(AK_QUANT_Q8_0, k), n_tiles = (ROWS + 15) / 16;
        uint8_t *stored = exact(ROWS * row_bytes),
                *packed = exact((size_t)ak_cpu_slices_bytes(ROWS, k)), *want = exact(bytes),
                *got = exact(bytes);
        struct ak_view view = { .type = AK_QUANT_Q8_0,
                                .rows = ROWS,
                                .cols = (uint32_t)k,
                                .plane = { { stored, ROWS * row_bytes } } };
        uint8_t *tokens = quantize_tokens(&scalar, AK_CPU_ACT_Q8_32, A_EXTREME, TOKENS_MAX, k);
        size_t act_bytes = ak_cpu_act_bytes(AK_CPU_ACT_Q8_32, k);
        random_q8_0(stored, ROWS * k / AK_BLOCK_K);
        ak_cpu_pack_slices(&view, 0, ROWS, packed);
        for (size_t i = 0; i < n_tiles; i++) {
            const void *rows[AK_TILE_ROWS];
            float sums[TOKENS_MAX][AK_TILE_ROWS], from_slices[TOKENS_MAX][AK_TILE_ROWS];
            struct ak_cpu_slices slices = ak_cpu_get_slices(packed, k, i);
            const uint8_t *high = slices.high, *low = slices.low;
            uint8_t *to = got;
            for (size_t r = 0; r < AK_TILE_ROWS; r++)
                rows[r] = i * AK_TILE_ROWS + r < ROWS ?
                              stored + (i * AK_TILE_ROWS + r) * row_bytes :
                              NULL;
            ak_cpu_pack_tiles(AK_QUANT_Q8_0, rows, k, want);
            for (size_t left = k / AK_BLOCK_K, blocks; left > 0; left -= blocks) {
                blocks = ak_min_size(left, AK_TILE_BLOCKS);
                tested.join_slices(high, low, blocks, to);
                high += ak_cpu_tile_bytes(AK_QUANT_Q5_0, blocks);
                low += blocks * AK_SLICES_LOW_BLOCK_BYTES;
                to += ak_cpu_tile_bytes(AK_QUANT_Q8_0, blocks);
            }
            for (size_t j = 0; j < bytes; j++)
                ck_assert_msg(got[j] == want[j], "%s: k %zu, tile row %zu, byte %zu of %zu",
                              tested.name, k, i, j, bytes);
            for (size_t n = 1; n <= TOKENS_MAX; n++) {
                scalar.tile[AK_QUANT_Q8_0].dot_tiles(want, 1, k, tokens, act_bytes, n, *sums,
                                                     AK_TILE_ROWS, 0);
                tested.dot_slices(&slices, &slices, k, tokens, act_bytes, n, *from_slices,
                                  AK_TILE_ROWS);
                ck_assert_msg(memcmp(sums, from_slices, n * sizeof *sums) == 0,
                              "%s: k %zu, tile row %zu, %zu tokens", tested.name, k, i, n);
            }
        }
        release(tokens);
        release(stored);
        release(packed);
        release(want);
        release(got);
    }
}
END_TEST

START_TEST(products_do_not_saturate)
{
    static const enum weights weights[] = { W_ZERO_BITS, W_ONE_BITS, W_MIN_BYTES, W_MAX_BYTES };
    static const enum activations activations[] = { A_MIN, A_MAX, A_EXTREME };
    struct ak_cpu_kernels tested, scalar;
    if (!fill_both(_i / N_TILED, &tested, &scalar))
        return;
    enum ak_quant_type type = tiled_types[_i % N_TILED];
    enum ak_cpu_act_format format = ak_cpu_type_act_format(type);
    enum { K = 512 };
    for (size_t i = 0; i < 4; i++) {
        for (size_t j = 0; j < 3; j++) {
            char where[96];
            snprintf(where, sizeof where, "%s: largest sums %zu %zu", tested.name, i, j);
            struct weight w = make_weight(type, weights[i], 1, K);
            uint8_t *tokens = quantize_tokens(&scalar, format, activations[j], TOKENS_MAX, K);
            check_products(&tested, &scalar, &w, tokens, ak_cpu_act_bytes(format, K), where);
            release(tokens);
            free_weight(&w);
        }
    }
}
END_TEST

/* The scalar kernels themselves: against the dequantized weights times the
 * activations that the records stand for, in double. */
START_TEST(scalar_products_are_right)
{
    enum { TOKENS = 3, K = 768, ROWS = 2 * AK_TILE_ROWS };
    enum ak_quant_type type = tiled_types[_i];
    enum ak_cpu_act_format format = ak_cpu_type_act_format(type);
    struct ak_cpu_kernels scalar;
    random_state = 79;
    ak_cpu_fill_kernels(AK_CPU_ISA_SCALAR, &scalar);
    struct weight w = make_weight(type, W_RANDOM, 2, K);
    uint8_t *tokens = quantize_tokens(&scalar, format, A_RANDOM, TOKENS, K);
    float *got = exact(TOKENS * ROWS * sizeof *got), *row = exact(K * sizeof *row);
    scalar.tile[type].dot_tiles(w.tiles, 2, K, tokens, ak_cpu_act_bytes(format, K), TOKENS, got,
                                ROWS, 0);
    for (size_t r = 0; r < ROWS; r++) {
        ak_quant_info(type)->dequantize(w.stored + r * w.row_bytes, row, K);
        for (size_t t = 0; t < TOKENS; t++) {
            const struct ak_cpu_act32 *a32 =
                (const struct ak_cpu_act32 *)(void *)(tokens + t * ak_cpu_act_bytes(format, K));
            const struct ak_cpu_act256 *a256 = (const struct ak_cpu_act256 *)(const void *)a32;
            double sum = 0.0, terms = 0.0;
            for (size_t i = 0; i < K; i++) {
                double a = format == AK_CPU_ACT_Q8_32 ?
                               (double)a32[i / 32].scale * a32[i / 32].q[i % 32] :
                               (double)a256[i / 256].scale * a256[i / 256].q[i % 256];
                sum += (double)row[i] * a;
                terms += fabs((double)row[i] * a);
            }
            ck_assert_msg(fabs((double)got[t * ROWS + r] - sum) <= 2e-6 * terms,
                          "%s row %zu token %zu: %g, not %g", ak_quant_info(type)->name, r, t,
                          (double)got[t * ROWS + r], sum);
        }
    }
    release(got);
    release(row);
    release(tokens);
    free_weight(&w);
}
END_TEST

START_TEST(dot_rows_is_scalar)
{
    struct ak_cpu_kernels tested, scalar;
    if (!fill_both(_i, &tested, &scalar))
        return;
    for (size_t rows = 1; rows <= 17; rows++) {
        for (size_t n = 1; n <= 17; n += n < 9 ? 1 : 4) {
            size_t k = 32 * (1 + random_below(n == 3 ? 40 : 7)), w_stride = k + 3, x_stride = k + 8,
                   y_stride = rows + 2;
            float *w = random_floats(rows * w_stride), *x = random_floats(n * x_stride);
            float *got = exact(n * y_stride * sizeof *got),
                  *want = exact(n * y_stride * sizeof *want);
            if (n == 5) {
                x[x_stride + 1] = NAN;
                w[0] = INFINITY;
            }
            tested.dot_rows(w, w_stride, rows, x, x_stride, n, k, got, y_stride);
            scalar.dot_rows(w, w_stride, rows, x, x_stride, n, k, want, y_stride);
            expect_floats(got, want, n * y_stride, tested.name, "dot_rows");
            release(w);
            release(x);
            release(got);
            release(want);
        }
    }
}
END_TEST

static const enum ak_quant_type stored_types[] = { AK_QUANT_F32, AK_QUANT_F16, AK_QUANT_BF16,
                                                   AK_QUANT_F8 };
enum { N_STORED = sizeof stored_types / sizeof *stored_types };

/* `cols`, or so many more that they fill blocks, and their bytes. */
static size_t stored_cols(enum ak_quant_type type, size_t cols, size_t *bytes)
{
    uint64_t row_bytes = 0;
    cols = ak_round_up(cols, ak_quant_info(type)->block_elems);
    ck_assert(ak_quant_row_bytes(type, cols, &row_bytes));
    *bytes = (size_t)row_bytes;
    return cols;
}

/* Stored rows of `cols` elements, random but finite. */
static uint8_t *random_stored(enum ak_quant_type type, size_t rows, size_t cols, size_t row_bytes)
{
    uint8_t *stored = exact(rows * row_bytes);
    if (type == AK_QUANT_F8) {
        for (size_t r = 0; r < rows; r++)
            fill_blocks(type, r % 3 == 2 ? W_SMALL_SCALES : W_RANDOM, stored + r * row_bytes,
                        cols / ak_quant_info(type)->block_elems);
        return stored;
    }
    for (size_t i = 0; i < rows * cols; i++) {
        float value = random_float();
        uint16_t half = type == AK_QUANT_F16 ? ak_float_to_f16(value) : ak_float_to_bf16(value);
        uint8_t *to = stored + i / cols * row_bytes + i % cols * (type == AK_QUANT_F32 ? 4 : 2);
        memcpy(to, type == AK_QUANT_F32 ? (const void *)&value : (const void *)&half,
               type == AK_QUANT_F32 ? 4 : 2);
    }
    return stored;
}

/* What every way through stored rows has to give: dequantized rows, the scalar product. */
static float *stored_products(const struct ak_cpu_kernels *scalar, enum ak_quant_type type,
                              const uint8_t *stored, size_t rows, size_t cols, size_t row_bytes,
                              const float *x, size_t k, size_t n, float **dequantized)
{
    float *w = exact(rows * k * sizeof *w), *y = exact(n * rows * sizeof *y);
    memset(w, 0, rows * k * sizeof *w);
    for (size_t r = 0; r < rows; r++)
        scalar->dequantize[type](stored + r * row_bytes, w + r * k, cols);
    scalar->dot_rows(w, k, rows, x, k, n, k, y, rows);
    *dequantized = w;
    return y;
}

START_TEST(stored_rows_are_scalar)
{
    struct ak_cpu_kernels tested, scalar;
    if (!fill_both(_i, &tested, &scalar))
        return;
    for (size_t i = 0; i < N_STORED; i++) {
        enum ak_quant_type type = stored_types[i];
        for (size_t rows = 1; rows <= 9 && tested.dot_stored[type]; rows++) {
            for (size_t n = 1; n <= AK_SKINNY_MAX; n++) {
                size_t bytes, cols = stored_cols(type, 1 + random_below(300), &bytes),
                              k = ak_round_up(cols, AK_LANES);
                uint8_t *stored = random_stored(type, rows, cols, bytes);
                float *x = random_floats(n * k), *got = exact(n * rows * sizeof *got), *dequantized;
                for (size_t t = 0; t < n; t++)
                    memset(x + t * k + cols, 0, (k - cols) * sizeof *x);
                if (n == 5)
                    x[0] = INFINITY;
                float *want = stored_products(&scalar, type, stored, rows, cols, bytes, x, k, n,
                                              &dequantized);
                tested.dot_stored[type](stored, bytes, rows, cols, x, k, n, got, rows,
                                        n % 3 * 2048);
                expect_floats(got, want, n * rows, tested.name, "dot_stored");
                release(stored);
                release(x);
                release(got);
                release(want);
                release(dequantized);
            }
        }
    }
}
END_TEST

START_TEST(panels_are_scalar)
{
    struct ak_cpu_kernels tested, scalar;
    if (!fill_both(_i, &tested, &scalar) || !tested.dot_panel_f32)
        return;
    for (size_t rows = 1; rows <= AK_PANEL_ROWS_MAX; rows += rows % 8 < 2 ? 1 : 6) {
        for (size_t n = 1; n <= 53; n += n < 13 ? 1 : 20) {
            enum ak_quant_type type = stored_types[random_below(N_STORED)];
            size_t max_cols = 32 * (1 + random_below(n == 8 ? 40 : 7)), bytes,
                   cols = stored_cols(type, n % 2 ? max_cols : max_cols - random_below(32), &bytes);
            size_t k = ak_round_up(cols, AK_LANES);
            bytes += 4 * random_below(3) + (type == AK_QUANT_F8 ? 0 : 2);
            uint8_t *stored = random_stored(type, rows, cols, bytes);
            float *panel = exact(ak_round_up(rows, 16) * k * sizeof *panel),
                  *tokens = exact(ak_round_up(n, AK_PANEL_TOKEN_STEP) * k * sizeof *tokens);
            float *x = random_floats(n * k), *got = exact(n * rows * sizeof *got), *dequantized;
            /* not read for more than their sums */
            memset(tokens, 0, ak_round_up(n, AK_PANEL_TOKEN_STEP) * k * sizeof *tokens);
            if (n == 5)
                x[0] = INFINITY;
            tested.unpack_panel_f32[type](stored, bytes, rows, cols, panel);
            for (size_t t = 0; t < n; t++)
                tested.interleave_token_f32(x + t * k, k, t, tokens);
            tested.dot_panel_f32(panel, rows, tokens, n, k, got, rows, stored,
                                 n % 3 ? rows * bytes : 0);
            float *want =
                stored_products(&scalar, type, stored, rows, cols, bytes, x, k, n, &dequantized);
            expect_floats(got, want, n * rows, tested.name, "dot_panel_f32");
            release(stored);
            release(panel);
            release(tokens);
            release(x);
            release(got);
            release(want);
            release(dequantized);
        }
    }
}
END_TEST

/* Only the order of the sums is free. */
static void expect_near(const float *got, const float *want, const float *w, size_t rows,
                        const float *x, size_t n, size_t k)
{
    for (size_t i = 0; i < n * rows; i++) {
        double terms = 0.0;
        for (size_t j = 0; j < k; j++)
            terms += fabs((double)x[i / rows * k + j] * (double)w[i % rows * k + j]);
        ck_assert_double_le(fabs((double)got[i] - (double)want[i]), terms * 0x1p-20);
    }
}

/* Stored numbers become BF16. */
static void round_rows(enum ak_quant_type type, uint8_t *stored, size_t n)
{
    uint16_t *numbers = (uint16_t *)(void *)stored;
    for (size_t i = 0; type == AK_QUANT_F16 && i < n; i++)
        numbers[i] = ak_float_to_bf16(ak_f16_to_float(numbers[i]));
}

/* Against products of the rounded values. */
START_TEST(bf16_panels_are_near)
{
    struct ak_cpu_kernels tested, scalar;
    if (!fill_both(_i, &tested, &scalar) || !tested.dot_panel_bf16)
        return;
    for (size_t rows = 1; rows <= tested.panel_bf16_max; rows += rows < 8 ? 1 : 9) {
        for (size_t n = 1; n <= 49; n += n < 9 ? 1 : 8) {
            size_t k = 32 * (1 + random_below(n == 3 ? 110 : 7)), bytes = k * sizeof(uint16_t);
            enum ak_quant_type type = n % 2 ? AK_QUANT_BF16 : AK_QUANT_F16;
            uint8_t *stored = random_stored(type, rows, k, bytes);
            uint16_t *panel = exact(ak_round_up(rows, AK_PANEL_ROWS_MAX) * bytes),
                     *tokens = exact(ak_round_up(n, AK_PANEL_BF16_TOKEN_STEP) * bytes);
            float *x = random_floats(n * k), *got = exact(n * rows * sizeof *got), *dequantized;
            tested.unpack_panel_bf16[type](stored, bytes, rows, k, panel);
            for (size_t t = 0; t < n; t++)
                tested.interleave_token_bf16(x + t * k, k, t, tokens);
            tested.dot_panel_bf16(panel, rows, tokens, n, k, got, rows);
            for (size_t i = 0; i < n * k; i++)
                x[i] = ak_bf16_to_float(ak_float_to_bf16(x[i]));
            round_rows(type, stored, rows * k);
            float *want = stored_products(&scalar, AK_QUANT_BF16, stored, rows, k, bytes, x, k, n,
                                          &dequantized);
            expect_near(got, want, dequantized, rows, x, n, k);
            release(stored);
            release(panel);
            release(tokens);
            release(x);
            release(got);
            release(want);
            release(dequantized);
        }
    }
}
END_TEST

/* Tokens [first, first + n) of x times rows [row, row + n_rows). */
struct bf16_part {
    size_t row, n_rows, first, n;
};

static float *bf16_products(const struct ak_cpu_kernels *tested, const struct bf16_part *part,
                            const uint8_t *stored, const float *x, size_t k)
{
    size_t bytes = k * sizeof(uint16_t);
    uint16_t *panel = exact(ak_round_up(part->n_rows, AK_PANEL_ROWS_MAX) * bytes),
             *tokens = exact(ak_round_up(part->n, AK_PANEL_BF16_TOKEN_STEP) * bytes);
    float *y = exact(part->n * part->n_rows * sizeof *y);
    tested->unpack_panel_bf16[AK_QUANT_BF16](stored + part->row * bytes, bytes, part->n_rows, k,
                                             panel);
    for (size_t t = 0; t < part->n; t++)
        tested->interleave_token_bf16(x + (part->first + t) * k, k, t, tokens);
    tested->dot_panel_bf16(panel, part->n_rows, tokens, part->n, k, y, part->n_rows);
    release(panel);
    release(tokens);
    return y;
}

/* A product is that of its row and its token, however both are divided. */
START_TEST(bf16_products_stand_alone)
{
    enum { N = 53 };
    struct ak_cpu_kernels tested, scalar;
    if (!fill_both(_i, &tested, &scalar) || !tested.dot_panel_bf16)
        return;
    size_t k = 32 * 35, rows = tested.panel_bf16_max;
    uint8_t *stored = random_stored(AK_QUANT_BF16, rows, k, k * sizeof(uint16_t));
    float *x = random_floats(N * k);
    const struct bf16_part all = { 0, rows, 0, N };
    float *want = bf16_products(&tested, &all, stored, x, k);
    for (int i = 0; i < 200; i++) {
        struct bf16_part part = { .row = random_below(rows), .first = random_below(N) };
        part.n_rows = 1 + random_below(rows - part.row);
        part.n = 1 + random_below(N - part.first);
        float *got = bf16_products(&tested, &part, stored, x, k);
        for (size_t t = 0; t < part.n; t++)
            expect_floats(got + t * part.n_rows, want + (part.first + t) * rows + part.row,
                          part.n_rows, tested.name, "dot_panel_bf16");
        release(got);
    }
    release(want);
    release(x);
    release(stored);
}
END_TEST

START_TEST(blas_is_near_or_absent)
{
    struct ak_cpu_kernels scalar;
    struct ak_cpu_blas blas;
    struct ak_error error;
    ck_assert_int_eq(ak_cpu_blas_load("libno-such-blas.so.0", &blas, &error),
                     AKUNU_ERROR_UNSUPPORTED);
    ck_assert_ptr_null((void *)(uintptr_t)blas.sgemm);
    ck_assert_ptr_nonnull(strstr(error.message, "BLAS") ?
                              error.message :
                              strstr(error.message, "libno-such-blas.so.0"));
    if (ak_cpu_blas_load(NULL, &blas, &error) != AKUNU_OK)
        return;
    enum { ROWS = 19, N = 33, K = 96 };
    float *w = random_floats(ROWS * K), *x = random_floats(N * (K + 5)), got[N * (ROWS + 2)],
          want[N * (ROWS + 2)];
    ak_cpu_fill_kernels(AK_CPU_ISA_SCALAR, &scalar);
    scalar.dot_rows(w, K, ROWS, x, K + 5, N, K, want, ROWS + 2);
    ck_assert(!ak_cpu_blas_dot_rows(&blas, w, K, ROWS, x, SIZE_MAX, N, K, got, ROWS + 2));
    ck_assert(ak_cpu_blas_dot_rows(&blas, w, K, ROWS, x, K + 5, N, K, got, ROWS + 2));
    for (size_t i = 0; i < N * (ROWS + 2); i++)
        if (i % (ROWS + 2) < ROWS)
            ck_assert_float_eq_tol(got[i], want[i], 1e-4f);
    release(w);
    release(x);
}
END_TEST

/* ---- Elements ----------------------------------------------------------- */
/* Floats of all kinds: random bits, ordinary numbers, and the edges of exp. */
static float *wild_floats(size_t n)
{
    static const float edges[] = { 0.0f,     -0.0f,     87.0f,     -87.0f,  88.0f,    -88.0f,
                                   88.1f,    -87.1f,    1e-40f,    -1e-40f, 65504.0f, 65520.0f,
                                   INFINITY, -INFINITY, NAN,       FLT_MAX, -FLT_MAX, FLT_MIN,
                                   0x1p-24f, 0x1p-25f,  0x1.8p-25f };
    float *x = exact(n * sizeof *x);
    for (size_t i = 0; i < n; i++) {
        switch (random_below(4)) {
        case 0: x[i] = ak_bits_float((uint32_t)(random_bits() >> 16)); break;
        case 1: x[i] = edges[random_below(sizeof edges / sizeof *edges)]; break;
        default: x[i] = random_float() * 100.0f; break;
        }
    }
    return x;
}

static float *copy_floats(const float *x, size_t n)
{
    return memcpy(exact(n * sizeof *x), x, n * sizeof *x);
}

static void expect_short_conv(const struct ak_cpu_kernels *tested,
                              const struct ak_cpu_kernels *scalar, size_t n)
{
    for (size_t taps = 2; taps < 6; taps++) {
        float *b = wild_floats(n), *c = wild_floats(n), *x = wild_floats(n),
              *kernel = wild_floats(n * taps);
        float *out[2] = { wild_floats(n), wild_floats(n) }, *state[2];
        state[0] = wild_floats((taps - 1) * n);
        state[1] = copy_floats(state[0], (taps - 1) * n);
        tested->short_conv(b, c, x, kernel, taps, state[0], n, out[0], n);
        scalar->short_conv(b, c, x, kernel, taps, state[1], n, out[1], n);
        expect_floats(out[0], out[1], n, tested->name, "short_conv");
        expect_floats(state[0], state[1], (taps - 1) * n, tested->name, "short_conv's state");
        float *all[] = { b, c, x, kernel, out[0], out[1], state[0], state[1] };
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            release(all[i]);
    }
}

static void expect_conv(const struct ak_cpu_kernels *tested, const struct ak_cpu_kernels *scalar,
                        size_t n)
{
    for (size_t taps = 2; taps < 6; taps++) {
        float *x = wild_floats(n), *kernel = wild_floats(n * taps),
              *out[2] = { wild_floats(n), wild_floats(n) }, *state[2];
        state[0] = wild_floats((taps - 1) * n);
        state[1] = copy_floats(state[0], (taps - 1) * n);
        tested->conv(x, kernel, taps, state[0], n, out[0], n);
        scalar->conv(x, kernel, taps, state[1], n, out[1], n);
        expect_floats(out[0], out[1], n, tested->name, "conv");
        expect_floats(state[0], state[1], (taps - 1) * n, tested->name, "conv's state");
        float *all[] = { x, kernel, out[0], out[1], state[0], state[1] };
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            release(all[i]);
    }
}

/* Columns of a state with others beside them, which stay as they are; several tokens, so
 * that what one leaves is the next one's. */
START_TEST(delta_rule_is_scalar)
{
    struct ak_cpu_kernels tested, scalar;
    if (!fill_both(_i, &tested, &scalar))
        return;
    for (size_t n = AK_DELTA_STEP; n <= AK_DELTA_COLUMNS_MAX; n += AK_DELTA_STEP)
        for (size_t rows = 1; rows <= 128; rows += rows < 3 ? 1 : 125) {
            size_t stride = n + 5;
            float *out[2] = { wild_floats(n), wild_floats(n) }, *state[2];
            state[0] = wild_floats(rows * stride);
            state[1] = copy_floats(state[0], rows * stride);
            for (int t = 0; t < 3; t++) {
                float *q = wild_floats(rows), *k = wild_floats(rows), *v = wild_floats(n);
                tested.delta_rule(q, k, rows, v, 0.75f, 0.3f, state[0], stride, out[0], n);
                scalar.delta_rule(q, k, rows, v, 0.75f, 0.3f, state[1], stride, out[1], n);
                expect_floats(out[0], out[1], n, tested.name, "delta_rule");
                expect_floats(state[0], state[1], rows * stride, tested.name, "delta_rule's state");
                release(q);
                release(k);
                release(v);
            }
            for (int i = 0; i < 2; i++) {
                release(out[i]);
                release(state[i]);
            }
        }
}
END_TEST

/* By the paper's formula in doubles. */
START_TEST(delta_rule_is_right)
{
    enum { ROWS = 6, N = AK_DELTA_STEP };
    struct ak_cpu_kernels scalar;
    ak_cpu_fill_kernels(AK_CPU_ISA_SCALAR, &scalar);
    float q[ROWS], k[ROWS], v[N], out[N], state[ROWS * N] = { 0 };
    double s[ROWS][N] = { { 0 } };
    for (int t = 0; t < 5; t++) {
        for (int i = 0; i < ROWS; i++) {
            q[i] = (float)((i * 5 + t * 3) % 7) / 7.0f - 0.4f;
            k[i] = (float)((i * 3 + t * 5) % 11) / 22.0f - 0.2f;
        }
        for (int j = 0; j < N; j++)
            v[j] = (float)((j * 7 + t) % 13) - 6.0f;
        scalar.delta_rule(q, k, ROWS, v, 0.9f, 0.6f, state, N, out, N);
        for (int j = 0; j < N; j++) {
            double predicted = 0.0, answer = 0.0;
            for (int i = 0; i < ROWS; i++)
                predicted += (double)k[i] * (s[i][j] *= (double)0.9f);
            for (int i = 0; i < ROWS; i++) {
                s[i][j] += (double)k[i] * (double)0.6f * ((double)v[j] - predicted);
                answer += (double)q[i] * s[i][j];
            }
            ck_assert_double_eq_tol((double)out[j], answer, 1e-5);
        }
    }
}
END_TEST

START_TEST(elementwise_is_scalar)
{
    struct ak_cpu_kernels tested, scalar;
    if (!fill_both(_i, &tested, &scalar))
        return;
    for (size_t n = 1; n < 600; n += n < 70 ? 1 : 101) {
        float *x = wild_floats(n), *y = wild_floats(n), *a = copy_floats(y, n),
              *b = copy_floats(y, n);
        tested.add(a, x, n);
        scalar.add(b, x, n);
        expect_floats(a, b, n, tested.name, "add");
        memcpy(a, x, n * sizeof *a);
        memcpy(b, x, n * sizeof *b);
        tested.divide(a, 0.3f, n);
        scalar.divide(b, 0.3f, n);
        expect_floats(a, b, n, tested.name, "divide");
        tested.silu_mul(x, y, a, n);
        scalar.silu_mul(x, y, b, n);
        expect_floats(a, b, n, tested.name, "silu_mul");
        expect_short_conv(&tested, &scalar, n);
        expect_conv(&tested, &scalar, n);
        memcpy(a, x, n * sizeof *a);
        memcpy(b, x, n * sizeof *b);
        tested.silu(a, n);
        scalar.silu(b, n);
        expect_floats(a, b, n, tested.name, "silu");
        memcpy(a, x, n * sizeof *a);
        memcpy(b, x, n * sizeof *b);
        tested.sigmoid_mul(a, y, n);
        scalar.sigmoid_mul(b, y, n);
        expect_floats(a, b, n, tested.name, "sigmoid_mul");
        tested.swiglu_clamped(x, y, a, n);
        scalar.swiglu_clamped(x, y, b, n);
        expect_floats(a, b, n, tested.name, "swiglu_clamped");
        tested.gelu_tanh_mul(x, y, a, n);
        scalar.gelu_tanh_mul(x, y, b, n);
        expect_floats(a, b, n, tested.name, "gelu_tanh_mul");
        tested.gelu_tanh(x, a, n);
        scalar.gelu_tanh(x, b, n);
        expect_floats(a, b, n, tested.name, "gelu_tanh");
        tested.gelu_erf_mul(x, y, a, n);
        scalar.gelu_erf_mul(x, y, b, n);
        expect_floats(a, b, n, tested.name, "gelu_erf_mul");
        tested.gelu_erf(x, a, n);
        scalar.gelu_erf(x, b, n);
        expect_floats(a, b, n, tested.name, "gelu_erf");
        tested.add_scaled(a, y, 0.3f, n);
        scalar.add_scaled(b, y, 0.3f, n);
        expect_floats(a, b, n, tested.name, "add_scaled");
        memcpy(a, x, n * sizeof *a);
        memcpy(b, x, n * sizeof *b);
        tested.softcap(a, 50.0f, n);
        scalar.softcap(b, 50.0f, n);
        expect_floats(a, b, n, tested.name, "softcap");
        uint16_t *got = exact(n * sizeof *got), *want = exact(n * sizeof *want);
        tested.f32_to_f16(x, got, n);
        scalar.f32_to_f16(x, want, n);
        for (size_t i = 0; i < n; i++)
            if (got[i] != want[i])
                ck_abort_msg("%s f32_to_f16 of %a: %04x, scalar gives %04x", tested.name,
                             (double)x[i], got[i], want[i]);
        release(got);
        release(want);
        release(a);
        release(b);
        release(x);
        release(y);
    }
}
END_TEST

/* Where it bends, and every length up to one beyond whole vectors. */
START_TEST(gelu_is_scalar)
{
    struct ak_cpu_kernels tested, scalar;
    enum { STEPS = 20000, N = 2 * STEPS + 1 };
    if (!fill_both(_i, &tested, &scalar))
        return;
    float *x = exact(N * sizeof *x), *up = random_floats(N), *got = exact(N * sizeof *got),
          *want = exact(N * sizeof *want);
    for (int i = 0; i < N; i++)
        x[i] = (float)(i - STEPS) * 0x1.3p-11f;
    for (size_t n = N; n > 0; n = n == N ? 70 : n - 1) {
        const float *from = x + (N - n) / 2;
        tested.gelu_erf(from, got, n);
        scalar.gelu_erf(from, want, n);
        expect_floats(got, want, n, tested.name, "gelu_erf");
        tested.gelu_erf_mul(from, up, got, n);
        scalar.gelu_erf_mul(from, up, want, n);
        expect_floats(got, want, n, tested.name, "gelu_erf_mul");
        tested.gelu_tanh(from, got, n);
        scalar.gelu_tanh(from, want, n);
        expect_floats(got, want, n, tested.name, "gelu_tanh");
        tested.gelu_tanh_mul(from, up, got, n);
        scalar.gelu_tanh_mul(from, up, want, n);
        expect_floats(got, want, n, tested.name, "gelu_tanh_mul");
    }
    release(x);
    release(up);
    release(got);
    release(want);
}
END_TEST

/* Against the formulas in double. */
START_TEST(scalar_functions_are_right)
{
    struct ak_cpu_kernels scalar;
    ak_cpu_fill_kernels(AK_CPU_ISA_SCALAR, &scalar);
    for (int i = -40000; i <= 40000; i++) {
        float x = (float)i * 0x1.3p-12f, y = x, gelu;
        double cube = 0.044715 * (double)x * (double)x * (double)x;
        double want = 0.5 * (double)x * (1.0 + tanh(0.79788456080286536 * ((double)x + cube)));
        scalar.softcap(&y, 1.0f, 1);
        ck_assert_double_eq_tol((double)y, tanh((double)x), 3e-7 * fabs(tanh((double)x)) + 1e-30);
        scalar.gelu_tanh(&x, &gelu, 1);
        ck_assert_double_eq_tol((double)gelu, want,
                                4e-7 * (fabs(want) + fabs((double)x) * exp(-fabs((double)x))) +
                                    1e-30);
    }
    for (int i = -40000; i <= 40000; i++) {
        float x = (float)i * 0x1.3p-13f, gelu;
        double want = 0.5 * (double)x * (1.0 + erf((double)x * 0.70710678118654752));
        ck_assert_double_eq_tol((double)ak_erff(x), erf((double)x),
                                3e-7 * fabs(erf((double)x)) + 1e-30);
        scalar.gelu_erf(&x, &gelu, 1);
        ck_assert_double_eq_tol((double)gelu, want, 3e-7 * fabs((double)x) + 1e-30);
    }
    enum { N = 77 };
    float *x = random_floats(N), *weight = random_floats(N), *bias = random_floats(N), got[N];
    double mean = 0.0, square = 0.0;
    for (int i = 0; i < N; i++)
        mean += (double)x[i] / N;
    for (int i = 0; i < N; i++)
        square += ((double)x[i] - mean) * ((double)x[i] - mean) / N;
    scalar.layer_norm(x, weight, bias, N, 1e-5f, got);
    for (int i = 0; i < N; i++)
        ck_assert_double_eq_tol((double)got[i],
                                ((double)x[i] - mean) / sqrt(square + 1e-5) * (double)weight[i] +
                                    (double)bias[i],
                                2e-6);
    release(x);
    release(weight);
    release(bias);
}
END_TEST

START_TEST(norms_are_scalar)
{
    struct ak_cpu_kernels tested, scalar;
    if (!fill_both(_i, &tested, &scalar))
        return;
    for (size_t n = 1; n < 1600; n += n < 70 ? 1 : 158) {
        for (int wild = 0; wild < 2; wild++) {
            float *x = wild ? wild_floats(n) : random_floats(n), *weight = random_floats(n);
            float *got = exact(n * sizeof *got), *want = exact(n * sizeof *want);
            tested.rms_norm(x, weight, n, 1e-5f, got);
            scalar.rms_norm(x, weight, n, 1e-5f, want);
            expect_floats(got, want, n, tested.name, "rms_norm");
            float *bias = random_floats(n);
            tested.layer_norm(x, weight, bias, n, 1e-5f, got);
            scalar.layer_norm(x, weight, bias, n, 1e-5f, want);
            expect_floats(got, want, n, tested.name, "layer_norm");
            release(bias);
            release(x);
            release(weight);
            release(got);
            release(want);
        }
    }
}
END_TEST

START_TEST(rope_is_scalar)
{
    struct ak_cpu_kernels tested, scalar;
    if (!fill_both(_i, &tested, &scalar))
        return;
    for (size_t dims = 2; dims <= 256; dims += dims < 80 ? 2 : 16) {
        for (int interleaved = 0; interleaved < 2; interleaved++) {
            float *got = random_floats(dims), *want = copy_floats(got, dims);
            float *cos = random_floats(dims / 2), *sin = random_floats(dims / 2);
            tested.rope(got, cos, sin, dims, interleaved);
            scalar.rope(want, cos, sin, dims, interleaved);
            expect_floats(got, want, dims, tested.name,
                          interleaved ? "rope, interleaved" : "rope, halves");
            release(got);
            release(want);
            release(cos);
            release(sin);
        }
    }
}
END_TEST

START_TEST(dequantize_is_the_reference)
{
    struct ak_cpu_kernels tested, scalar;
    if (!fill_both(_i, &tested, &scalar))
        return;
    enum { ALL = 65536 };
    uint16_t *halves = exact(ALL * sizeof *halves);
    float *got = exact(ALL * sizeof *got), *want = exact(ALL * sizeof *want);
    for (unsigned i = 0; i < ALL; i++)
        halves[i] = (uint16_t)i;
    for (int type = AK_QUANT_F16; type <= AK_QUANT_BF16; type++) {
        scalar.dequantize[type](halves, want, ALL);
        tested.dequantize[type](halves, got, ALL);
        expect_floats(got, want, ALL, tested.name, "dequantize");
        for (size_t n = 1; n < 70; n++) {
            uint16_t *head = memcpy(exact(n * sizeof *head), halves + 900 * n, n * sizeof *head);
            float *out = exact(n * sizeof *out);
            tested.dequantize[type](head, out, n);
            expect_floats(out, want + 900 * n, n, tested.name, "dequantize, a tail");
            release(head);
            release(out);
        }
    }
    release(halves);
    release(got);
    release(want);
}
END_TEST

/* Every number of E4M3, with scales at which products are subnormal, large or none. */
START_TEST(e4m3_is_the_reference)
{
    enum { BLOCKS = 10, ELEMS = sizeof(((struct ak_quant_block_f8 *)NULL)->q) };
    static const float scales[BLOCKS / 2] = { 1.0f, 0x1.abcdefp-130f, -0x1.fffffep119f, 0.0f, NAN };
    struct ak_cpu_kernels tested, scalar;
    struct ak_quant_block_f8 blocks[BLOCKS];
    float got[BLOCKS * ELEMS], want[BLOCKS * ELEMS];
    if (!fill_both(_i, &tested, &scalar))
        return;
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i].d = scales[i / 2];
        for (int j = 0; j < ELEMS; j++)
            blocks[i].q[j] = (uint8_t)(i % 2 * ELEMS + j);
    }
    scalar.dequantize[AK_QUANT_F8](blocks, want, BLOCKS * ELEMS);
    tested.dequantize[AK_QUANT_F8](blocks, got, BLOCKS * ELEMS);
    expect_floats(got, want, BLOCKS * ELEMS, tested.name, "dequantize F8");
}
END_TEST

START_TEST(dequantized_blocks_are_the_reference)
{
    static const enum weights kinds[] = { W_RANDOM, W_LARGE_SCALES, W_SMALL_SCALES, W_MIN_BYTES,
                                          W_MAX_BYTES };
    struct ak_cpu_kernels tested, scalar;
    if (!fill_both(_i, &tested, &scalar))
        return;
    for (int type = 0; type < AK_QUANT_COUNT; type++) {
        const struct ak_quant_info *info = ak_quant_info((enum ak_quant_type)type);
        ck_assert_ptr_nonnull(tested.dequantize[type]);
        for (size_t blocks = 1; blocks < 6 && ak_cpu_is_tiled((enum ak_quant_type)type); blocks++) {
            size_t n = blocks * info->block_elems;
            uint8_t *stored = exact(blocks * info->block_bytes);
            float *got = exact(n * sizeof *got), *want = exact(n * sizeof *want);
            fill_blocks((enum ak_quant_type)type, kinds[blocks - 1], stored, blocks);
            scalar.dequantize[type](stored, want, n);
            tested.dequantize[type](stored, got, n);
            expect_floats(got, want, n, tested.name, info->name);
            release(stored);
            release(got);
            release(want);
        }
    }
}
END_TEST

/* ---- Attention ---------------------------------------------------------- */
struct page {
    size_t head_dim;
    bool half;
    void *k, *v;
};

static void put(const struct page *p, void *base, size_t i, float x)
{
    if (p->half)
        ((uint16_t *)base)[i] = ak_float_to_f16(x);
    else
        ((float *)base)[i] = x;
}

/* Tokens outside [first, end) are NaN: nothing may depend on them. */
static struct page make_page(size_t head_dim, bool half, size_t first, size_t end)
{
    struct page p = { .head_dim = head_dim, .half = half };
    size_t elems = AK_KV_PAGE_TOKENS * head_dim,
           bytes = elems * (half ? sizeof(uint16_t) : sizeof(float));
    p.k = exact(bytes);
    p.v = exact(bytes);
    for (size_t t = 0; t < AK_KV_PAGE_TOKENS; t++) {
        bool seen = t >= first && t < end;
        for (size_t d = 0; d < head_dim; d++) {
            put(&p, p.k,
                (t / AK_KV_GROUP_TOKENS * head_dim + d) * AK_KV_GROUP_TOKENS +
                    t % AK_KV_GROUP_TOKENS,
                seen ? random_float() : NAN);
            put(&p, p.v, t * head_dim + d, seen ? random_float() : NAN);
        }
    }
    return p;
}

enum queries { Q_ORDINARY, Q_ZERO, Q_LARGE, Q_OVERFLOW, Q_COUNT };

static void check_page(const struct ak_cpu_kernels *tested, const struct ak_cpu_kernels *scalar,
                       size_t head_dim, bool half, size_t rows, enum queries kind)
{
    static const float factor[Q_COUNT] = { 4.0f, 0.0f, 1000.0f, FLT_MAX };
    size_t q_stride = head_dim + 3, out_stride = head_dim + 7, low = AK_KV_PAGE_TOKENS, high = 0;
    uint16_t first[32], end[32];
    bool ragged = random_below(2);
    for (size_t i = 0; i < rows; i++) {
        first[i] = (uint16_t)(ragged ? random_below(AK_KV_PAGE_TOKENS) :
                              i      ? first[0] :
                                       random_below(3) * 9);
        end[i] = (uint16_t)(ragged ? first[i] + 1 + random_below(AK_KV_PAGE_TOKENS - first[i]) :
                                     ak_min_size(AK_KV_PAGE_TOKENS, 40 + i / 2 * 3));
        low = ak_min_size(low, first[i]);
        high = ak_max_size(high, end[i]);
    }
    struct page page = make_page(head_dim, half, low, high);
    float *q = random_floats(rows * q_stride),
          *weights = exact(rows * AK_KV_PAGE_TOKENS * sizeof *weights);
    for (size_t i = 0; i < rows * q_stride; i++)
        q[i] *= factor[kind];
    float *got = exact(rows * out_stride * sizeof *got),
          *want = exact(rows * out_stride * sizeof *want);
    float max[2][32], sum[2][32];
    const struct ak_cpu_kernels *both[2] = { tested, scalar };
    for (int i = 0; i < 2; i++) {
        (half ? both[i]->attn_qk_f16 : both[i]->attn_qk_f32)(q, q_stride, rows, head_dim, page.k,
                                                             low, high, weights);
        (half ? both[i]->attn_pv_f16 : both[i]->attn_pv_f32)(weights, rows, head_dim, page.v, first,
                                                             end, max[i], sum[i],
                                                             i == 0 ? got : want, out_stride);
    }
    char where[96];
    snprintf(where, sizeof where, "%s: head %zu, %zu rows, queries %d", half ? "F16" : "F32",
             head_dim, rows, (int)kind);
    expect_floats(max[0], max[1], rows, tested->name, where);
    expect_floats(sum[0], sum[1], rows, tested->name, where);
    expect_floats(got, want, rows * out_stride, tested->name, where);
    release(page.k);
    release(page.v);
    release(q);
    release(weights);
    release(got);
    release(want);
}

/* Values as the cache stores them against the scalar kernel over the same ones dequantized. */
static void check_q8_0_values(const struct ak_cpu_kernels *tested,
                              const struct ak_cpu_kernels *scalar, size_t head_dim, size_t rows)
{
    const struct ak_quant_info *type = ak_quant_info(AK_QUANT_Q8_0);
    size_t n = AK_KV_PAGE_TOKENS * head_dim;
    uint16_t first[32], end[32];
    float *values = random_floats(n), *scores = random_floats(rows * AK_KV_PAGE_TOKENS);
    float *weights = exact(rows * AK_KV_PAGE_TOKENS * sizeof *weights);
    uint8_t *stored = exact(n / type->block_elems * type->block_bytes);
    float *got = exact(rows * head_dim * sizeof *got),
          *want = exact(rows * head_dim * sizeof *want);
    float max[2][32], sum[2][32];
    type->quantize(values, stored, n);
    type->dequantize(stored, values, n);
    for (size_t i = 0; i < rows; i++) {
        first[i] = (uint16_t)random_below(AK_KV_PAGE_TOKENS);
        end[i] = (uint16_t)(first[i] + 1 + random_below(AK_KV_PAGE_TOKENS - first[i]));
    }
    memcpy(weights, scores, rows * AK_KV_PAGE_TOKENS * sizeof *weights);
    tested->attn_pv_q8_0(weights, rows, head_dim, stored, first, end, max[0], sum[0], got,
                         head_dim);
    memcpy(weights, scores, rows * AK_KV_PAGE_TOKENS * sizeof *weights);
    scalar->attn_pv_f32(weights, rows, head_dim, values, first, end, max[1], sum[1], want,
                        head_dim);
    expect_floats(max[0], max[1], rows, tested->name, "Q8_0 values");
    expect_floats(sum[0], sum[1], rows, tested->name, "Q8_0 values");
    expect_floats(got, want, rows * head_dim, tested->name, "Q8_0 values");
    release(values);
    release(scores);
    release(weights);
    release(stored);
    release(got);
    release(want);
}

START_TEST(q8_0_values_are_scalar)
{
    static const size_t dims[] = { 32, 64, 96, 128, 256 };
    struct ak_cpu_kernels tested, scalar;
    if (!fill_both(_i, &tested, &scalar) || !tested.attn_pv_q8_0)
        return;
    for (size_t j = 0; j < sizeof dims / sizeof *dims; j++)
        for (size_t rows = 1; rows <= 32; rows += rows < 10 ? 1 : 11)
            check_q8_0_values(&tested, &scalar, dims[j], rows);
}
END_TEST

START_TEST(attention_is_scalar)
{
    static const size_t dims[] = { 1, 2, 8, 15, 16, 24, 32, 40, 64, 80, 96, 112, 128, 256 };
    struct ak_cpu_kernels tested, scalar;
    if (!fill_both(_i, &tested, &scalar))
        return;
    for (size_t j = 0; j < sizeof dims / sizeof *dims; j++)
        for (size_t rows = 1; rows <= 32; rows += rows < 10 ? 1 : 11)
            for (int half = 0; half < 2; half++)
                check_page(&tested, &scalar, dims[j], half, rows,
                           (enum queries)((rows + j) % Q_COUNT));
}
END_TEST

START_TEST(attention_is_scalar_for_every_range)
{
    struct ak_cpu_kernels tested, scalar;
    if (!fill_both(_i, &tested, &scalar))
        return;
    for (int i = 0; i < 100; i++)
        check_page(&tested, &scalar, 16, i % 2, 1 + random_below(9), Q_ORDINARY);
}
END_TEST

START_TEST(attn_merge_is_scalar)
{
    static const float maxima[] = { -INFINITY, -3.0f, 0.0f, 2.5f, 200.0f, INFINITY, NAN };
    enum { N = sizeof maxima / sizeof *maxima };
    struct ak_cpu_kernels tested, scalar;
    if (!fill_both(_i, &tested, &scalar))
        return;
    for (size_t dim = 1; dim <= 130; dim += dim < 40 ? 1 : 17) {
        for (int i = 0; i < N * N; i++) {
            float max[2] = { maxima[i % N], maxima[i % N] }, sum[2] = { 3.25f, 3.25f };
            float *got = random_floats(dim), *want = copy_floats(got, dim),
                  *page_out = random_floats(dim);
            tested.attn_merge(&max[0], &sum[0], got, maxima[i / N], 1.5f, page_out, dim);
            scalar.attn_merge(&max[1], &sum[1], want, maxima[i / N], 1.5f, page_out, dim);
            expect_floats(&max[0], &max[1], 1, tested.name, "merged max");
            expect_floats(&sum[0], &sum[1], 1, tested.name, "merged sum");
            expect_floats(got, want, dim, tested.name, "merged out");
            release(got);
            release(want);
            release(page_out);
        }
    }
}
END_TEST

/* The probes count what they did. */
START_TEST(probes_count)
{
    struct ak_cpu_kernels tested, scalar;
    if (!fill_both(_i, &tested, &scalar))
        return;
    uint8_t *memory = exact(4096);
    uint64_t sink, once = tested.probe_int8(1, &sink);
    ck_assert_uint_gt(once, 0);
    ck_assert_uint_eq(tested.probe_int8(1000, &sink), 1000 * once);
    (void)tested.probe_read(memory, 4096); /* within bounds, as tools see */
    release(memory);
}
END_TEST

/* The best ISA is the last usable one, and names go both ways. What is not usable is missing
 * from the build, or else from the machine. */
START_TEST(isas_have_names)
{
    static const bool built[] = {
#define HAVE_AK_SCALAR 1
#define ISA(NAME, name, PARENT, detect) [AK_CPU_ISA_##NAME] = HAVE_AK_##NAME,
#include "engine/cpu/isa.def"
    };
    enum ak_cpu_isa isa;
    ck_assert(ak_cpu_isa_is_usable(ak_cpu_best_isa()));
    for (int i = 0; i < AK_CPU_ISA_COUNT; i++) {
        ck_assert_int_eq(ak_cpu_parse_isa(ak_cpu_isa_name((enum ak_cpu_isa)i), &isa),
                         ak_cpu_isa_is_usable((enum ak_cpu_isa)i));
        if (ak_cpu_isa_is_usable((enum ak_cpu_isa)i)) {
            struct ak_cpu_kernels k;
            ak_cpu_fill_kernels((enum ak_cpu_isa)i, &k);
            ck_assert_str_eq(k.name, ak_cpu_isa_name((enum ak_cpu_isa)i));
            ck_assert_int_le(i, (int)ak_cpu_best_isa());
            ck_assert(built[i]);
            ck_assert_ptr_null(ak_cpu_isa_problem(k.name));
        } else {
            ck_assert_str_eq(ak_cpu_isa_problem(ak_cpu_isa_name((enum ak_cpu_isa)i)),
                             built[i] ? "this machine cannot run its kernels" :
                                        "this build does not contain its kernels");
        }
    }
    ck_assert(!ak_cpu_parse_isa("sse9", &isa));
    ck_assert_str_eq(ak_cpu_isa_problem("sse9"), "there is no such instruction set");
    ck_assert_str_eq(ak_cpu_isa_problem(""), "there is no such instruction set");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernels");
    TCase *layout = tcase_create("layout");
    tcase_add_loop_test(layout, layout_keeps_every_byte, 0, N_TILED);
    tcase_add_loop_test(layout, layout_dequantizes_as_stored, 0, N_TILED);
    tcase_add_test(layout, layout_agrees_with_kernels);
    tcase_add_test(layout, isas_have_names);
    suite_add_tcase(suite, layout);
    /* the loop's index is the ISA; for products, times the type */
    TCase *kernels = tcase_create("kernels");
    tcase_add_loop_test(kernels, quantize_is_scalar, 1, AK_CPU_ISA_COUNT);
    tcase_add_loop_test(kernels, products_are_scalar, N_TILED, N_ISAS * N_TILED);
    tcase_add_loop_test(kernels, products_do_not_saturate, N_TILED, N_ISAS * N_TILED);
    tcase_add_loop_test(kernels, scalar_products_are_right, 0, N_TILED);
    tcase_add_loop_test(kernels, slices_are_the_tiles, 0, N_ISAS);
    tcase_add_loop_test(kernels, dot_rows_is_scalar, 1, AK_CPU_ISA_COUNT);
    tcase_add_loop_test(kernels, stored_rows_are_scalar, 1, AK_CPU_ISA_COUNT);
    tcase_add_loop_test(kernels, e4m3_is_the_reference, 1, AK_CPU_ISA_COUNT);
    tcase_add_loop_test(kernels, panels_are_scalar, 1, AK_CPU_ISA_COUNT);
    tcase_add_loop_test(kernels, bf16_panels_are_near, 1, AK_CPU_ISA_COUNT);
    tcase_add_loop_test(kernels, bf16_products_stand_alone, 1, AK_CPU_ISA_COUNT);
    tcase_add_test(kernels, blas_is_near_or_absent);
    tcase_add_loop_test(kernels, elementwise_is_scalar, 1, AK_CPU_ISA_COUNT);
    tcase_add_loop_test(kernels, gelu_is_scalar, 1, AK_CPU_ISA_COUNT);
    tcase_add_loop_test(kernels, delta_rule_is_scalar, 1, AK_CPU_ISA_COUNT);
    tcase_add_test(kernels, delta_rule_is_right);
    tcase_add_test(kernels, scalar_functions_are_right);
    tcase_add_loop_test(kernels, norms_are_scalar, 1, AK_CPU_ISA_COUNT);
    tcase_add_loop_test(kernels, rope_is_scalar, 1, AK_CPU_ISA_COUNT);
    tcase_add_loop_test(kernels, dequantize_is_the_reference, 1, AK_CPU_ISA_COUNT);
    tcase_add_loop_test(kernels, dequantized_blocks_are_the_reference, 1, AK_CPU_ISA_COUNT);
    tcase_add_loop_test(kernels, q8_0_values_are_scalar, 1, AK_CPU_ISA_COUNT);
    tcase_add_loop_test(kernels, attention_is_scalar, 1, AK_CPU_ISA_COUNT);
    tcase_add_loop_test(kernels, attention_is_scalar_for_every_range, 1, AK_CPU_ISA_COUNT);
    tcase_add_loop_test(kernels, attn_merge_is_scalar, 1, AK_CPU_ISA_COUNT);
    tcase_add_loop_test(kernels, probes_count, 1, AK_CPU_ISA_COUNT);
    suite_add_tcase(suite, kernels);
    return test_run(suite);
}
