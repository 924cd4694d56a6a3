/* Helpers of the programs in bench/: repeated runs, input data, command-line options. */
#ifndef AK_BENCH_MEASURE_H
#define AK_BENCH_MEASURE_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/chip.h"
#include "base/mem.h"
#include "base/system.h"
#include "base/thread.h"
#include "engine/cpu/backend.h"

/* Seconds of the fastest of the runs that fit into `budget` seconds, three at least. */
static inline double best_seconds(struct ak_pool *pool, ak_task *task, void *context, double budget)
{
    double best = 1e9, begin = ak_seconds(), end = begin;
    for (int i = 0; i < 3 || end - begin < budget; i++) {
        double start = ak_seconds();
        ak_pool_run(pool, task, context);
        end = ak_seconds();
        best = end - start < best ? end - start : best;
        if (end - begin > 8.0 * budget) /* slow: one run is enough */
            break;
    }
    return best;
}

/* These end the program on failure. */
static inline struct ak_pool *start_threads(unsigned n)
{
    struct ak_error error = { 0 };
    struct ak_pool *pool;
    if (ak_pool_create(n, &pool, &error) != AKUNU_OK) {
        fprintf(stderr, "%s\n", error.message);
        exit(1);
    }
    return pool;
}

static inline void *new_pages(size_t bytes)
{
    void *p = ak_pages_alloc(bytes);
    if (!p) {
        fprintf(stderr, "no memory for %zu bytes\n", bytes);
        exit(1);
    }
    return p;
}

static inline struct akunu_roofline measure_roofline(enum ak_cpu_isa isa, unsigned threads,
                                                     unsigned what)
{
    struct ak_error error = { 0 };
    struct akunu_roofline roof;
    if (ak_cpu_measure_roofline(isa, threads, what, &roof, &error) != AKUNU_OK) {
        fprintf(stderr, "%s\n", error.message);
        exit(1);
    }
    return roof;
}

static inline void fill_random(void *p, size_t bytes)
{
    uint64_t *words = p, state = 88172645463325252u;
    for (size_t i = 0; i < bytes / sizeof *words; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        words[i] = state;
    }
}

static inline void fill_floats(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)((i * 2654435761u >> 8) % 2001) * 0.001f - 1.0f;
}

/* ---- Options ------------------------------------------------------------ */
/* Value after option `name` in argv, or `otherwise` if it is missing. Removes both words from argv,
 * so that take_nothing_else reports only unknown ones. */
static inline const char *take_option(char **argv, const char *name, const char *otherwise)
{
    for (char **word = argv + 1; *word; word++) {
        if (strcmp(*word, name) != 0)
            continue;
        if (!word[1]) {
            fprintf(stderr, "%s needs a value\n", name);
            exit(2);
        }
        const char *value = word[1];
        for (char **to = word; (*to = to[2]) != NULL; to++)
            ;
        return value;
    }
    return otherwise;
}

static inline void take_nothing_else(char **argv, const char *usage)
{
    if (argv[0] && argv[1]) {
        fprintf(stderr, "usage: %s\n", usage);
        exit(strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ? 0 : 2);
    }
}

static inline double number_option(char **argv, const char *name, double otherwise, double low,
                                   double high)
{
    const char *text = take_option(argv, name, NULL);
    char *end = NULL;
    double value = text ? strtod(text, &end) : otherwise;
    if (text && (end == text || *end || !(value >= low && value <= high))) {
        fprintf(stderr, "%s %s: expected a number from %g to %g\n", name, text, low, high);
        exit(2);
    }
    return value;
}

/* Whether `name` is one of the comma-separated words of `list`, or the list is "all". */
static inline bool is_listed(const char *list, const char *name)
{
    size_t n = strlen(name);
    if (strcmp(list, "all") == 0)
        return true;
    for (const char *p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
        if (strncasecmp(p, name, n) == 0 && (p[n] == '\0' || p[n] == ','))
            return true;
    return false;
}

/* Prints a number, or "-" (JSON: null) for NaN. */
static inline void print_cell(const char *format, int width, double value, bool json)
{
    if (isnan(value))
        printf(json ? "null" : "%*s", json ? 0 : width, "-");
    else
        printf(format, value);
}

static inline void print_chip(void)
{
    struct ak_chip chip;
    ak_chip_detect(&chip);
    printf("%s, %u cores, %u threads, L1d %.0f KiB, L2 %.0f KiB, L3 %.0f MiB, %.1f GiB, %u NUMA "
           "node%s\n",
           chip.name, chip.cores, chip.hardware_threads, (double)chip.l1d_bytes / 1024,
           (double)chip.l2_bytes / 1024, (double)chip.l3_bytes / (1 << 20),
           (double)chip.memory_bytes / (1 << 30), chip.numa_nodes, chip.numa_nodes > 1 ? "s" : "");
}

#endif
