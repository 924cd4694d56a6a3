/* A backend without arithmetic: a token's cache entry is its id and position, and a logit is a hash
 * of all that the token's page table holds up to its position. So a wrong page, position or order
 * shows in every logit behind it. */
#ifndef AK_TESTS_FAKE_BACKEND_H
#define AK_TESTS_FAKE_BACKEND_H

#include "tests/test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/backend/backend.h"
#include "engine/dispatch/table.h"

enum { FAKE_VOCAB = 97 };

/* One layer, one head of one element, K and V in F32: a K and a V of a token take
 * 4 bytes each, in which its id and position are kept. */
struct fake_entry {
    int32_t token;
    uint32_t position;
};

struct fake_backend {
    struct ak_backend base;
    uint64_t allocated; /* bytes of KV memory held now */
    uint64_t copied;    /* pages */
    int n_prepared;
    bool refuse_alloc, refuse_prepare, lose_pass, inexact;
    bool hollow; /* whatever is asked for, a few bytes are given: nothing may run */
};

struct fake_prepared {
    struct fake_backend *backend;
    const struct ak_table *table;
    struct ak_backend_table_options options;
    struct fake_entry *pool;
    float *logits;
    int32_t *sampled; /* of each row of logits */
    uint64_t runs;
    /* of the last pass */
    struct ak_gumbel_params gumbel;
    uint32_t n_logits, n_best;
};

static uint64_t fake_mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 29);
}

/* What the logits of a token must be whose sequence is ids[0 … n). */
static float fake_logit(const int32_t *ids, uint32_t n, uint32_t v)
{
    uint64_t hash = 1;
    for (uint32_t i = 0; i < n; i++)
        hash = fake_mix(fake_mix(hash, (uint64_t)ids[i]), i);
    return (float)(fake_mix(hash, v) >> 40) * 0x1p-20f;
}

static ak_status fake_alloc(struct ak_backend *b, const struct ak_kv_shape *shape, void **kv,
                            struct ak_error *error)
{
    struct fake_backend *fake = (struct fake_backend *)b;
    uint64_t bytes = ak_kv_pool_bytes(shape);
    *kv = fake->refuse_alloc ? NULL : calloc(1, fake->hollow ? 1 : bytes);
    fake->allocated += *kv ? bytes : 0;
    return *kv ? AKUNU_OK : ak_fail_memory(error, "the KV cache", bytes);
}

static void fake_free(struct ak_backend *b, void *kv, const struct ak_kv_shape *shape)
{
    ((struct fake_backend *)b)->allocated -= ak_kv_pool_bytes(shape);
    free(kv);
}

static void fake_copy_page(struct ak_backend *b, void *kv, const struct ak_kv_shape *shape,
                           uint32_t to, uint32_t from)
{
    ck_assert_uint_eq(ak_kv_page_bytes(shape), AK_KV_PAGE_TOKENS * sizeof(struct fake_entry));
    ck_assert(to < shape->n_pages && from < shape->n_pages);
    memcpy((struct fake_entry *)kv + to * AK_KV_PAGE_TOKENS,
           (struct fake_entry *)kv + from * AK_KV_PAGE_TOKENS, ak_kv_page_bytes(shape));
    ((struct fake_backend *)b)->copied++;
}

static ak_status fake_prepare(struct ak_backend *b, const struct ak_table *table,
                              const struct ak_weights *weights, const struct ak_spec *spec,
                              const struct ak_backend_table_options *options, void *kv,
                              struct ak_backend_table **out, struct ak_error *error)
{
    struct fake_backend *fake = (struct fake_backend *)b;
    (void)weights, (void)spec;
    if (fake->refuse_prepare)
        return ak_fail(error, AKUNU_ERROR_MEMORY, "refused");
    struct fake_prepared *p = calloc(1, sizeof *p);
    ck_assert_ptr_nonnull(p);
    *p = (struct fake_prepared){ .backend = fake, .table = table, .options = *options, .pool = kv };
    p->logits = calloc((size_t)options->max_logits * FAKE_VOCAB, sizeof *p->logits);
    p->sampled = calloc(options->max_logits, sizeof *p->sampled);
    ck_assert(p->logits && p->sampled);
    fake->n_prepared++;
    *out = (struct ak_backend_table *)p;
    return AKUNU_OK;
}

static void fake_release(struct ak_backend_table *prepared)
{
    struct fake_prepared *p = (struct fake_prepared *)prepared;
    p->backend->n_prepared--;
    free(p->logits);
    free(p->sampled);
    free(p);
}

static struct fake_entry *fake_entry(const struct fake_prepared *p, const uint32_t *pages,
                                     uint32_t position)
{
    uint32_t page = pages[position / AK_KV_PAGE_TOKENS];
    ck_assert_uint_lt(page, p->options.kv.n_pages);
    return p->pool + (size_t)page * AK_KV_PAGE_TOKENS + position % AK_KV_PAGE_TOKENS;
}

/* The contract of struct ak_batch. */
static void fake_check(const struct fake_prepared *p, const struct ak_batch *b)
{
    ck_assert(b->n >= 1 && b->n <= p->options.max_tokens && b->n_logits <= p->options.max_logits);
    for (uint32_t i = 1; i < b->n; i++) {
        if (b->sequences[i] == b->sequences[i - 1]) {
            ck_assert_uint_eq(b->positions[i], b->positions[i - 1] + 1);
            continue;
        }
        for (uint32_t j = 0; j < i; j++)
            ck_assert_uint_ne(b->sequences[i], b->sequences[j]);
    }
    for (uint32_t i = 0; i < b->n_logits; i++) {
        ck_assert_uint_lt(b->logit_rows[i], b->n);
        ck_assert(i == 0 || b->logit_rows[i] > b->logit_rows[i - 1]);
    }
}

/* The most likely token; at a temperature, one that its seed and position decide. */
static int32_t fake_sample(const float *logits, const struct ak_gumbel_params *gumbel,
                           uint32_t position)
{
    uint32_t best = 0;
    for (uint32_t v = 1; v < FAKE_VOCAB; v++)
        best = logits[v] > logits[best] ? v : best;
    return (int32_t)(gumbel->temperature > 0.0f ? (gumbel->seed + position) % FAKE_VOCAB : best);
}

/* The n_best largest logits, and those that equal the last of them, are all that is there. */
static void fake_keep_best(float *logits, uint32_t n_best)
{
    float last = INFINITY;
    for (uint32_t n = 0; n < n_best && n < FAKE_VOCAB;) {
        float next = -INFINITY;
        for (uint32_t v = 0; v < FAKE_VOCAB; v++)
            next = logits[v] < last && logits[v] > next ? logits[v] : next;
        for (uint32_t v = 0; v < FAKE_VOCAB; v++)
            n += logits[v] == next;
        last = next;
    }
    for (uint32_t v = 0; n_best > 0 && v < FAKE_VOCAB; v++)
        logits[v] = logits[v] < last ? -INFINITY : logits[v];
}

static void fake_run(struct ak_backend_table *prepared, const struct ak_batch *b)
{
    struct fake_prepared *p = (struct fake_prepared *)prepared;
    fake_check(p, b);
    for (uint32_t i = 0; i < b->n; i++)
        *fake_entry(p, b->pages[b->sequences[i]], b->positions[i]) =
            (struct fake_entry){ b->tokens[i], b->positions[i] };
    for (uint32_t row = 0; row < b->n_logits; row++) {
        uint32_t i = b->logit_rows[row], n = b->positions[i] + 1;
        int32_t *ids = calloc(n, sizeof *ids);
        ck_assert_ptr_nonnull(ids);
        for (uint32_t at = 0; at < n; at++) {
            const struct fake_entry *entry = fake_entry(p, b->pages[b->sequences[i]], at);
            ck_assert_uint_eq(entry->position, at);
            ids[at] = entry->token;
        }
        for (uint32_t v = 0; v < FAKE_VOCAB; v++)
            p->logits[(size_t)row * FAKE_VOCAB + v] = fake_logit(ids, n, v);
        p->sampled[row] =
            fake_sample(p->logits + (size_t)row * FAKE_VOCAB, &b->gumbel, b->positions[i]);
        fake_keep_best(p->logits + (size_t)row * FAKE_VOCAB, b->n_best);
        free(ids);
    }
    p->gumbel = b->gumbel;
    p->n_logits = b->n_logits;
    p->n_best = b->n_best;
    p->runs++;
}

static ak_status fake_sync(struct ak_backend_table *p, struct ak_error *error)
{
    return ((struct fake_prepared *)p)->backend->lose_pass ?
               ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "the device is lost") :
               AKUNU_OK;
}

static const float *fake_logits(const struct ak_backend_table *p, uint32_t i)
{
    return ((const struct fake_prepared *)p)->logits + (size_t)i * FAKE_VOCAB;
}

static const int32_t *fake_chosen(const struct ak_backend_table *p)
{
    return ((const struct fake_prepared *)p)->sampled;
}

static uint64_t fake_bytes(const struct ak_backend_table *p)
{
    return (uint64_t)((const struct fake_prepared *)p)->options.max_logits * FAKE_VOCAB *
           sizeof(float);
}

static void fake_counts(const struct ak_backend_table *p, struct ak_backend_counts *out)
{
    *out = (struct ak_backend_counts){ .gemv = ((const struct fake_prepared *)p)->runs };
}

static bool fake_exact(const struct ak_backend *b)
{
    return !((const struct fake_backend *)b)->inexact;
}

static const struct ak_backend_ops fake_ops = {
    .name = "fake",
    .is_batch_invariant = fake_exact,
    .alloc_kv = fake_alloc,
    .free_kv = fake_free,
    .copy_page = fake_copy_page,
    .prepare = fake_prepare,
    .release = fake_release,
    .run = fake_run,
    .sync = fake_sync,
    .logits = fake_logits,
    .sampled = fake_chosen,
    .memory_bytes = fake_bytes,
    .counts = fake_counts,
};

#endif
