/* Collects, sorts and pops candidates. Most requests need only the best few of a large vocabulary,
 * which a heap finds without sorting all of it. */
#include "engine/sample/candidates.h"

#include <float.h>
#include <math.h>
#include <stddef.h>

static void swap(struct ak_sample_candidate *a, struct ak_sample_candidate *b)
{
    struct ak_sample_candidate t = *a;
    *a = *b;
    *b = t;
}

/* Restores a heap below node i. `best_on_top` selects the order. */
static void sift_down(struct ak_sample_candidate *heap, uint32_t n, uint32_t i, bool best_on_top)
{
    for (uint32_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && ak_sample_is_better(heap[child + 1], heap[child]) == best_on_top)
            child++;
        if (ak_sample_is_better(heap[i], heap[child]) == best_on_top)
            return;
        swap(&heap[i], &heap[child]);
    }
}

static void make_heap(struct ak_sample_candidate *heap, uint32_t n, bool best_on_top)
{
    for (uint32_t i = n / 2; i-- > 0;)
        sift_down(heap, n, i, best_on_top);
}

/* Turns a heap with the worst on top into an array sorted best first. */
static void sort_heap(struct ak_sample_candidate *heap, uint32_t n)
{
    for (uint32_t end = n; end-- > 1;) {
        swap(&heap[0], &heap[end]);
        sift_down(heap, end, 0, false);
    }
}

void ak_sample_make_heap(struct ak_sample_candidates *c)
{
    make_heap(c->items, c->n, true);
}

struct ak_sample_candidate ak_sample_pop(struct ak_sample_candidates *c, uint32_t popped)
{
    uint32_t last = c->n - popped - 1;
    swap(&c->items[0], &c->items[last]);
    sift_down(c->items, last, 0, true);
    return c->items[last];
}

void ak_sample_keep_popped(struct ak_sample_candidates *c, uint32_t popped)
{
    for (uint32_t i = 0; i < c->n / 2; i++)
        swap(&c->items[i], &c->items[c->n - 1 - i]);
    c->n = popped;
    c->sorted = true;
}

/* Adds a token unless its logit is NaN or minus infinity. */
static void add_candidate(struct ak_sample_candidates *c, float logit, uint32_t token)
{
    if (logit > -INFINITY)
        c->items[c->n++] = (struct ak_sample_candidate){ .logit = logit < FLT_MAX ? logit : FLT_MAX,
                                                         .token = (int32_t)token };
}

enum { BLOCK = 32 }; /* tokens per word of a mask */

/* Largest logit of a block; NaN is skipped. Maxima per lane come first, because compilers vectorize
 * them. */
static float block_best(const float *logits)
{
    enum { LANES = 16 };
    float lane[LANES], best = -INFINITY;
    for (int j = 0; j < LANES; j++)
        lane[j] = logits[j] > -INFINITY ? logits[j] : -INFINITY;
    for (int j = 0; j < LANES; j++)
        lane[j] = logits[LANES + j] > lane[j] ? logits[LANES + j] : lane[j];
    for (int j = 0; j < LANES; j++)
        best = lane[j] > best ? lane[j] : best;
    return best;
}

/* Bit i: token first + i is in the vocabulary and allowed. */
static uint32_t block_bits(const uint32_t *allowed, uint32_t n_vocab, uint32_t first)
{
    uint32_t there = n_vocab - first < BLOCK ? (1u << (n_vocab - first)) - 1 : UINT32_MAX;
    return allowed ? allowed[first / BLOCK] & there : there;
}

static void collect_all(struct ak_sample_candidates *c, const float *logits,
                        const uint32_t *allowed, uint32_t n_vocab)
{
    c->n = 0;
    c->sorted = false;
    for (uint32_t first = 0; first < n_vocab; first += BLOCK)
        for (uint32_t bits = block_bits(allowed, n_vocab, first); bits; bits &= bits - 1) {
            uint32_t token = first + (uint32_t)__builtin_ctz(bits);
            add_candidate(c, logits[token], token);
        }
}

/* Replaces the worst candidate of the heap if the token is better. The heap holds lower ids, so
 * equal logits do not replace. */
static void replace_worst(struct ak_sample_candidates *c, float logit, uint32_t token)
{
    float worst = c->items[0].logit, bounded = logit < FLT_MAX ? logit : FLT_MAX;
    if (!(logit > worst) || bounded == worst) /* NaN, or infinity next to FLT_MAX */
        return;
    c->items[0] = (struct ak_sample_candidate){ .logit = bounded, .token = (int32_t)token };
    sift_down(c->items, c->n, 0, false);
}

/* Keeps a heap of the k best so far, the worst on top. Once it is full, one comparison rejects most
 * blocks, masked or not. */
static void collect_best(struct ak_sample_candidates *c, const float *logits,
                         const uint32_t *allowed, uint32_t n_vocab, uint32_t k)
{
    c->n = 0;
    for (uint32_t first = 0; first < n_vocab; first += BLOCK) {
        uint32_t bits = block_bits(allowed, n_vocab, first);
        bool full = bits && c->n == k && n_vocab - first >= BLOCK;
        if (full && !(block_best(logits + first) > c->items[0].logit))
            continue;
        for (; bits; bits &= bits - 1) {
            uint32_t token = first + (uint32_t)__builtin_ctz(bits);
            if (c->n == k) {
                replace_worst(c, logits[token], token);
                continue;
            }
            add_candidate(c, logits[token], token);
            if (c->n == k)
                make_heap(c->items, k, false);
        }
    }
    if (c->n < k)
        make_heap(c->items, c->n, false);
    sort_heap(c->items, c->n);
    c->sorted = true;
}

void ak_sample_collect_masked(struct ak_sample_candidates *c, const float *logits,
                              const uint32_t *allowed, uint32_t n_vocab, uint32_t k)
{
    if (k > 0 && k < n_vocab)
        collect_best(c, logits, allowed, n_vocab, k);
    else
        collect_all(c, logits, allowed, n_vocab);
}

void ak_sample_collect(struct ak_sample_candidates *c, const float *logits, uint32_t n_vocab,
                       uint32_t k)
{
    ak_sample_collect_masked(c, logits, NULL, n_vocab, k);
}

void ak_sample_refresh(struct ak_sample_candidates *c, const float *by_token)
{
    uint32_t n = c->n;
    c->n = 0;
    c->sorted = false;
    for (uint32_t i = 0; i < n; i++)
        add_candidate(c, by_token[c->items[i].token], (uint32_t)c->items[i].token);
}

void ak_sample_top_k(struct ak_sample_candidates *c, uint32_t k)
{
    if (c->n <= k)
        return;
    if (!c->sorted) {
        make_heap(c->items, k, false);
        for (uint32_t i = k; i < c->n; i++)
            if (ak_sample_is_better(c->items[i], c->items[0])) {
                c->items[0] = c->items[i];
                sift_down(c->items, k, 0, false);
            }
        sort_heap(c->items, k);
    }
    c->n = k;
    c->sorted = true;
}

void ak_sample_sort(struct ak_sample_candidates *c)
{
    if (!c->sorted) {
        make_heap(c->items, c->n, false);
        sort_heap(c->items, c->n);
    }
    c->sorted = true;
}

/* Maxima per lane come first, as in block_best. */
float ak_sample_best_logit(const struct ak_sample_candidates *c)
{
    enum { LANES = 8 };
    float lane[LANES], best = c->items[0].logit;
    uint32_t i = 0;
    if (c->sorted)
        return best;
    for (int j = 0; j < LANES; j++)
        lane[j] = best;
    for (; c->n - i >= LANES; i += LANES)
        for (uint32_t j = 0; j < LANES; j++)
            lane[j] = c->items[i + j].logit > lane[j] ? c->items[i + j].logit : lane[j];
    for (; i < c->n; i++)
        lane[0] = c->items[i].logit > lane[0] ? c->items[i].logit : lane[0];
    for (int j = 0; j < LANES; j++)
        best = lane[j] > best ? lane[j] : best;
    return best;
}
