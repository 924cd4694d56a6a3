/* Calibration: measures, on a model's own weights, the prefetch distance of each weight type, the
 * number of tokens from which GEMM is faster than skinny GEMM, and the cost of one more token in a
 * small pass. Takes at most 0.2 s. What a model computes does not depend on it, to the last bit. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/system.h"
#include "base/thread.h"
#include "engine/cpu/backend.h"
#include "engine/cpu/cpu.h"
#include "base/math.h"

enum {
    REGION_BYTES = 64 << 20,    /* of a type: more than most caches hold */
    REGION_BYTES_MIN = 8 << 20, /* less stays in a cache, and says nothing about large models */
    SLICE_BYTES = 1 << 20,      /* per thread and measurement: 25 to 100 µs */
    GEMM_SLICE_BYTES = 1 << 17,
    ROUNDS = 16, /* after each 16 it is asked whether they suffice */
    ROUNDS_MAX = 64,
    TOKENS = 4 /* of the skinny passes that prefetch distances are measured with */
};
static const uint32_t distances[] = { AK_BACKEND_PREFETCH_OFF, 1024, 2048, 4096, 8192, 16384 };
static const uint32_t counts[] = { 4, 6, 8, 10, 12, 14, 16 };
enum {
    N_DISTANCES = sizeof distances / sizeof *distances,
    N_COUNTS = sizeof counts / sizeof *counts
};
static const double budget = 0.18;   /* seconds */
static const double gain_min = 0.02; /* over the default, for another value to be taken */

/* 16 rows in the form that kernels read. */
struct unit {
    const uint8_t *data;
    uint32_t cols;
};

/* The weights of one type. */
struct region {
    enum ak_quant_type type;
    struct unit *units;
    size_t n;
    uint64_t bytes;
};

struct probe {
    const struct ak_cpu *cpu;
    struct ak_pool *pool;
    double end; /* of the budget, as ak_seconds */
    size_t cols_max;
    uint8_t *activations; /* AK_SKINNY_MAX tokens in the region's format */
    float *x, *y;         /* one token; [threads][AK_SKINNY_MAX][16] */
    uint8_t *panels;      /* panel_bytes per thread */
    size_t panel_bytes;
    /* the current measurement */
    const struct region *region;
    size_t first, n_units, n_tokens, distance;
    bool is_skinny;
};

static size_t unit_bytes(enum ak_quant_type type, size_t cols)
{
    uint64_t row = 0;
    if (ak_cpu_is_tiled(type))
        return ak_cpu_tile_row_bytes(type, cols);
    (void)ak_quant_row_bytes(type, cols, &row);
    return (size_t)row * AK_TILE_ROWS;
}

static void multiply_unit(const struct probe *p, const struct unit *u, unsigned thread)
{
    const struct ak_cpu_kernels *k = &p->cpu->kernels;
    enum ak_quant_type type = p->region->type;
    size_t act_bytes = ak_cpu_act_bytes(ak_cpu_type_act_format(type), u->cols);
    float *y = p->y + (size_t)thread * AK_SKINNY_MAX * AK_TILE_ROWS;
    if (!ak_cpu_is_tiled(type)) {
        k->dot_stored[type](u->data, unit_bytes(type, u->cols) / AK_TILE_ROWS, AK_TILE_ROWS,
                            u->cols, (const float *)(const void *)p->activations,
                            ak_round_up(u->cols, AK_LANES), p->n_tokens, y, AK_TILE_ROWS,
                            p->distance);
    } else if (p->is_skinny) {
        k->tile[type].dot_tiles(u->data, 1, u->cols, p->activations, act_bytes, p->n_tokens, y,
                                AK_TILE_ROWS, p->distance);
    } else {
        uint8_t *panel = p->panels + thread * p->panel_bytes;
        k->tile[type].unpack_panel_i8(u->data, 1, u->cols, panel);
        k->tile[type].dot_panel_i8(panel, 1, u->cols, p->activations, act_bytes, p->n_tokens, y,
                                   AK_TILE_ROWS);
    }
}

static void multiply_slice(void *context, unsigned thread)
{
    const struct probe *p = context;
    size_t begin, end;
    ak_chunk_range(p->n_units, ak_pool_threads(p->pool), thread, &begin, &end);
    for (size_t i = begin; i < end; i++)
        multiply_unit(p, &p->region->units[(p->first + i) % p->region->n], thread);
}

/* Seconds of one pass over the next slice. */
static double time_slice(struct probe *p)
{
    double start = ak_seconds();
    ak_pool_run(p->pool, multiply_slice, p);
    p->first = (p->first + p->n_units) % p->region->n;
    return ak_seconds() - start;
}

/* Sorts the samples. */
static double median(double *samples, size_t n)
{
    qsort(samples, n, sizeof *samples, ak_compare_doubles);
    return samples[n / 2];
}

static void set_slice(struct probe *p, size_t bytes)
{
    size_t all = bytes * ak_pool_threads(p->pool), unit = (size_t)(p->region->bytes / p->region->n);
    p->n_units = ak_min_size(p->region->n, ak_max_size(all / unit, ak_pool_threads(p->pool)));
}

/* Whether a distance is faster than the default by gain_min: 1, -1 if it is not, 0 if that is not
 * known yet. `ratios` are its times divided by the default's, of the same rounds; they are sorted.
 * A sign test bounds their median; a bound is wrong once in a hundred times. */
static int is_faster(double *ratios, size_t n)
{
    size_t k = (size_t)((double)n / 2 - 1.163 * sqrt((double)n));
    qsort(ratios, n, sizeof *ratios, ak_compare_doubles);
    return ratios[n - 1 - k] < 1.0 - gain_min ? 1 : ratios[k] > 1.0 - gain_min ? -1 : 0;
}

/* Times a slice with each distance that is not rejected, and with the default before and after
 * them; stores the ratios. */
static void time_round(struct probe *p, size_t round, uint32_t standard, const bool *is_rejected,
                       double ratios[N_DISTANCES][ROUNDS_MAX])
{
    p->distance = ak_backend_prefetch_bytes(standard);
    double around = time_slice(p);
    for (size_t i = 0; i < N_DISTANCES; i++) {
        size_t candidate = (i + round) % N_DISTANCES;
        p->distance = ak_backend_prefetch_bytes(distances[candidate]);
        if (!is_rejected[candidate])
            ratios[candidate][round] = time_slice(p);
    }
    p->distance = ak_backend_prefetch_bytes(standard);
    around = (around + time_slice(p)) / 2;
    for (size_t i = 0; i < N_DISTANCES; i++)
        ratios[i][round] /= around;
}

/* The prefetch distance for passes of n tokens: the default, or the one that beats it the most. 0:
 * the budget ended before it was known. Memory bandwidth changes within milliseconds, so only times
 * of the same round are compared, and rounds go on, with the distances that may still win, until
 * all are known to be faster than the default or not. Distances take turns, slice by slice, so that
 * none meets data that another left in a cache. */
static uint32_t choose_distance(struct probe *p, size_t n)
{
    double ratios[N_DISTANCES][ROUNDS_MAX] = { { 0 } }, best = 1.0 - gain_min;
    uint32_t standard = ak_backend_prefetch_default(p->region->type, n), chosen = standard;
    bool is_rejected[N_DISTANCES], is_known = false;
    size_t round = 0;
    for (size_t i = 0; i < N_DISTANCES; i++)
        is_rejected[i] = distances[i] == standard;
    p->n_tokens = n;
    p->is_skinny = true;
    set_slice(p, SLICE_BYTES);
    while (!is_known && round < ROUNDS_MAX) {
        time_round(p, round, standard, is_rejected, ratios);
        if (ak_seconds() > p->end)
            return 0;
        if (++round % ROUNDS != 0)
            continue;
        is_known = true;
        for (size_t i = 0; i < N_DISTANCES; i++) {
            int faster = is_rejected[i] ? -1 : is_faster(ratios[i], round);
            is_rejected[i] = faster < 0;
            is_known = is_known && faster != 0;
        }
    }
    for (size_t i = 0; i < N_DISTANCES; i++)
        if (!is_rejected[i] && ratios[i][round / 2] < best) {
            best = ratios[i][round / 2];
            chosen = distances[i];
        }
    return chosen;
}

/* The most tokens for which skinny GEMM is as fast as GEMM; 0: the budget ended. */
static uint32_t choose_skinny_max(struct probe *p)
{
    enum { RUNS = 9, LOSSES_MIN = 8 };
    uint32_t chosen = 2;
    set_slice(p, GEMM_SLICE_BYTES);
    for (size_t i = 0; i < N_COUNTS; i++) {
        size_t losses = 0;
        p->n_tokens = counts[i];
        for (size_t run = 0; run < RUNS; run++) {
            p->is_skinny = true;
            double skinny = time_slice(p);
            p->is_skinny = false;
            losses += skinny > time_slice(p) * (1.0 + gain_min);
        }
        if (ak_seconds() > p->end)
            return 0;
        if (losses >= LOSSES_MIN)
            return chosen;
        chosen = counts[i];
    }
    return AK_SKINNY_MAX;
}

/* What one more token adds to the time of one, in thousandths, at least 1; 0: the budget ended. */
static uint32_t measure_token_price(struct probe *p, const struct ak_backend_profile *profile)
{
    static const size_t tokens[] = { 1, TOKENS };
    double seconds[2], ratios[ROUNDS];
    p->is_skinny = true;
    set_slice(p, SLICE_BYTES);
    for (size_t round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < 2; i++) {
            p->n_tokens = tokens[i];
            p->distance = ak_backend_profile_prefetch(profile, p->region->type, tokens[i]);
            seconds[i] = time_slice(p);
        }
        ratios[round] = seconds[1] / seconds[0];
        if (ak_seconds() > p->end)
            return 0;
    }
    double price = 1000.0 * (median(ratios, ROUNDS) - 1.0) / (TOKENS - 1);
    return price < 1.0 ? 1 : price > 1000.0 ? 1000 : (uint32_t)price;
}

/* ---- Weights ------------------------------------------------------------ */
static bool has_skinny_kernel(const struct ak_cpu *cpu, enum ak_quant_type type)
{
    return ak_cpu_is_tiled(type) || cpu->kernels.dot_stored[type];
}

/* Up to REGION_BYTES of a type's weights. False: out of memory. */
static bool collect(const struct ak_cpu *cpu, const struct ak_weights *weights,
                    enum ak_quant_type type, struct region *out, size_t *cols_max)
{
    *out = (struct region){ .type = type };
    for (int pass = 0; pass < 2; pass++) {
        size_t n = 0;
        uint64_t total = 0;
        for (uint32_t i = 0; i < weights->n_packed && has_skinny_kernel(cpu, type); i++) {
            const struct ak_pack_weight *w = &weights->packed[i];
            size_t bytes = w->type == type && w->layout != AK_CPU_LAYOUT_SLICES_1 ?
                               unit_bytes(type, w->cols) :
                               0;
            for (uint32_t j = 0; bytes && j < w->n_parts; j++)
                for (uint32_t row = 0;
                     row + AK_TILE_ROWS <= w->parts[j].rows && total < REGION_BYTES;
                     row += AK_TILE_ROWS, total += bytes, n++)
                    if (pass)
                        out->units[n] =
                            (struct unit){ w->parts[j].data + row / AK_TILE_ROWS * bytes, w->cols };
            if (bytes && w->cols > *cols_max)
                *cols_max = w->cols;
        }
        out->bytes = total;
        out->n = n;
        if (pass || n == 0)
            return true;
        if (!(out->units = ak_alloc(n, sizeof *out->units)))
            return false;
    }
    return true;
}

static void set_activations(struct probe *p, enum ak_quant_type type)
{
    enum ak_cpu_act_format format = ak_cpu_type_act_format(type);
    size_t bytes = ak_cpu_act_bytes(format, p->cols_max);
    for (size_t t = 0; t < AK_SKINNY_MAX; t++) {
        uint8_t *to = p->activations + t * bytes;
        if (format == AK_CPU_ACT_Q8_32)
            p->cpu->kernels.quantize32(p->x, p->cols_max, (struct ak_cpu_act32 *)(void *)to);
        else if (format == AK_CPU_ACT_Q8_256)
            p->cpu->kernels.quantize256(p->x, p->cols_max, (struct ak_cpu_act256 *)(void *)to);
        else
            memcpy(to, p->x, p->cols_max * sizeof *p->x);
    }
}

static void calibrate_type(struct probe *p, const struct region *region, bool is_main,
                           struct ak_backend_profile *profile)
{
    enum ak_cpu_act_format format = ak_cpu_type_act_format(region->type);
    uint32_t *prefetch = profile->prefetch[region->type];
    if (region->bytes < REGION_BYTES_MIN)
        return;
    p->region = region;
    p->first = 0;
    set_activations(p, region->type);
    p->n_tokens = 1;
    p->distance = 0;
    p->is_skinny = true;
    p->n_units = region->n;
    time_slice(p); /* its pages are mapped */
    if (!prefetch[0])
        prefetch[0] = choose_distance(p, 1);
    if (!prefetch[1])
        prefetch[1] = choose_distance(p, TOKENS);
    p->distance = ak_backend_profile_prefetch(profile, region->type, TOKENS);
    if (is_main && ak_cpu_is_tiled(region->type) && !profile->skinny_max[format])
        profile->skinny_max[format] = choose_skinny_max(p);
    if (is_main && !profile->token_price)
        profile->token_price = measure_token_price(p, profile);
}

static bool is_done(const struct ak_backend_profile *profile, enum ak_quant_type type)
{
    return profile->prefetch[type][0] && profile->prefetch[type][1] &&
           profile->skinny_max[ak_cpu_type_act_format(type)] && profile->token_price;
}

ak_status ak_cpu_calibrate(struct ak_backend *b, const struct ak_weights *weights,
                           struct ak_pool *pool, struct ak_backend_profile *profile,
                           struct ak_error *error)
{
    const struct ak_cpu *cpu = (const struct ak_cpu *)b;
    struct region regions[AK_QUANT_COUNT] = { { 0 } };
    const struct region *largest[AK_CPU_ACT_TYPE_COUNT] = { NULL };
    struct probe p = { .cpu = cpu, .pool = pool };
    bool is_enough = true;
    for (int type = 0; type < AK_QUANT_COUNT && is_enough; type++) {
        const struct region **main = &largest[ak_cpu_type_act_format((enum ak_quant_type)type)];
        if (is_done(profile, (enum ak_quant_type)type))
            continue;
        is_enough = collect(cpu, weights, (enum ak_quant_type)type, &regions[type], &p.cols_max);
        if (regions[type].n && (!*main || regions[type].bytes > (*main)->bytes))
            *main = &regions[type];
    }
    unsigned threads = ak_pool_threads(pool);
    size_t act_bytes = 0;
    p.cols_max = ak_round_up(p.cols_max, AK_TILE_K);
    for (int format = 0; format < AK_CPU_ACT_TYPE_COUNT; format++)
        act_bytes =
            ak_max_size(act_bytes, ak_cpu_act_bytes((enum ak_cpu_act_format)format, p.cols_max));
    p.panel_bytes = p.cols_max / AK_LANES * AK_PANEL_I8_BLOCK_BYTES_MAX;
    p.activations = ak_alloc_aligned(AK_SKINNY_MAX * act_bytes);
    p.panels = ak_alloc_aligned(threads * p.panel_bytes);
    p.x = ak_alloc(p.cols_max, sizeof *p.x);
    p.y = ak_alloc((size_t)threads * AK_SKINNY_MAX * AK_TILE_ROWS, sizeof *p.y);
    is_enough = is_enough && p.activations && p.panels && p.x && p.y;
    p.end = ak_seconds() + budget;
    for (size_t i = 0; is_enough && i < p.cols_max; i++)
        p.x[i] = (float)(i % 7) - 3.0f;
    for (int type = 0; type < AK_QUANT_COUNT && is_enough; type++)
        if (regions[type].n && ak_seconds() < p.end)
            calibrate_type(&p, &regions[type],
                           largest[ak_cpu_type_act_format((enum ak_quant_type)type)] ==
                               &regions[type],
                           profile);
    for (int type = 0; type < AK_QUANT_COUNT; type++)
        ak_free(regions[type].units);
    ak_free(p.activations);
    ak_free(p.panels);
    ak_free(p.x);
    ak_free(p.y);
    return is_enough ? AKUNU_OK : ak_fail_memory(error, "calibration", act_bytes);
}
