#include "session/candidates.h"

#include <assert.h>

#include "base/math.h"

static bool better(struct ak_candidate a, struct ak_candidate b)
{
    return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
}

static void swap(struct ak_candidate *a, struct ak_candidate *b)
{
    struct ak_candidate t = *a;
    *a = *b;
    *b = t;
}

/* Heaps with the best or the worst candidate on top. */
static void sift_down(struct ak_candidate *heap, uint32_t n, uint32_t i, bool best_on_top)
{
    for (uint32_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && better(heap[child + 1], heap[child]) == best_on_top)
            child++;
        if (better(heap[i], heap[child]) == best_on_top)
            return;
        swap(&heap[i], &heap[child]);
    }
}

static void make_heap(struct ak_candidate *heap, uint32_t n, bool best_on_top)
{
    for (uint32_t i = n / 2; i-- > 0;)
        sift_down(heap, n, i, best_on_top);
}

static void collect_all(struct ak_candidates *c, const float *logits, uint32_t n_vocab)
{
    c->n = 0;
    for (uint32_t i = 0; i < n_vocab; i++)
        if (logits[i] > -INFINITY)
            c->items[c->n++] = (struct ak_candidate){ .logit = logits[i], .token = (int32_t)i };
    c->sorted = false;
}

/* A heap of the k best so far, the worst of them on top: most logits are turned
 * away by one comparison. */
static void collect_best(struct ak_candidates *c, const float *logits, uint32_t n_vocab, uint32_t k)
{
    uint32_t i = 0;
    struct ak_candidate *heap = c->items;
    for (c->n = 0; i < n_vocab && c->n < k; i++)
        if (logits[i] > -INFINITY)
            heap[c->n++] = (struct ak_candidate){ .logit = logits[i], .token = (int32_t)i };
    make_heap(heap, c->n, false);
    for (; i < n_vocab; i++) {
        if (logits[i] > heap[0].logit) { /* an equal one has a higher id */
            heap[0] = (struct ak_candidate){ .logit = logits[i], .token = (int32_t)i };
            sift_down(heap, c->n, 0, false);
        }
    }
    for (uint32_t end = c->n; end-- > 1;) {
        swap(&heap[0], &heap[end]);
        sift_down(heap, end, 0, false);
    }
    c->sorted = true;
}

void ak_candidates_collect(struct ak_candidates *c, const float *logits, uint32_t n_vocab, uint32_t k)
{
    if (k > 0 && k < n_vocab)
        collect_best(c, logits, n_vocab, k);
    else
        collect_all(c, logits, n_vocab);
}

static float best_logit(const struct ak_candidates *c)
{
    if (c->sorted)
        return c->items[0].logit;
    float best = c->items[0].logit;
    for (uint32_t i = 1; i < c->n; i++)
        best = c->items[i].logit > best ? c->items[i].logit : best;
    return best;
}

/* exp of x ≤ 0: ak_expf with products and sums that round apart. A fused one is a
 * call on the baseline of x86-64, and a whole vocabulary is weighed for a token. */
static float weight(float x)
{
    float shifted = x * AK_EXP_LOG2E + AK_EXP_ROUND;
    float n = shifted - AK_EXP_ROUND;
    float r = (x - n * AK_EXP_LN2_HIGH) - n * AK_EXP_LN2_LOW;
    float p = AK_EXP_C6 * r + AK_EXP_C5;
    p = p * r + AK_EXP_C4;
    p = p * r + AK_EXP_C3;
    p = p * r + AK_EXP_C2;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    float scale = ak_bits_float((ak_float_bits(shifted) << 23) + 0x3f800000u);
    return x < AK_EXP_LOW ? 0.0f : p * scale;
}

/* Fills the weights with exp((logit − best) / temperature); gives their sum. */
static double weigh(struct ak_candidates *c, float temperature)
{
    float best = best_logit(c);
    double sum = 0.0;
    for (uint32_t i = 0; i < c->n; i++)
        c->weights[i] = weight((c->items[i].logit - best) / temperature);
    for (uint32_t i = 0; i < c->n; i++)
        sum += (double)c->weights[i];
    return sum;
}

/* Leaves out what cannot be among the best that make `wanted`: candidates so
 * light that all of them together weigh no more than what is not wanted. */
static void drop_light(struct ak_candidates *c, double unwanted)
{
    double limit = unwanted / (double)c->n;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c->n; i++)
        if ((double)c->weights[i] >= limit)
            c->items[kept++] = c->items[i];
    c->n = kept;
}

void ak_candidates_top_p(struct ak_candidates *c, float p)
{
    if (c->n == 0)
        return;
    float best = best_logit(c);
    double total = weigh(c, 1.0f), wanted = p > 0.0f ? (double)p * total : 0.0, sum = 0.0;
    uint32_t kept = 0;
    if (c->sorted) {
        do
            sum += (double)c->weights[kept++];
        while (kept < c->n && sum < wanted);
        c->n = kept;
        return;
    }

    /* the best ones leave the heap one by one and gather at the array's end */
    drop_light(c, total - wanted);
    make_heap(c->items, c->n, true);
    do {
        sum += (double)weight(c->items[0].logit - best);
        kept++;
        swap(&c->items[0], &c->items[c->n - kept]);
        sift_down(c->items, c->n - kept, 0, true);
    } while (kept < c->n && sum < wanted);
    for (uint32_t i = 0; i < c->n / 2; i++)
        swap(&c->items[i], &c->items[c->n - 1 - i]);
    c->n = kept;
    c->sorted = true;
}

void ak_candidates_min_p(struct ak_candidates *c, float log_p)
{
    if (c->n == 0)
        return;
    float best = best_logit(c);
    float limit = log_p < 0.0f ? best + log_p : best;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c->n; i++)
        if (c->items[i].logit >= limit)
            c->items[kept++] = c->items[i];
    c->n = kept;
}

int32_t ak_candidates_draw(struct ak_candidates *c, float temperature, double unit)
{
    assert(c->n > 0 && temperature > 0.0f);
    double target = unit * weigh(c, temperature);
    int32_t token = c->items[0].token;
    for (uint32_t i = 0; i < c->n; i++) {
        if (c->weights[i] <= 0.0f)
            continue;
        token = c->items[i].token; /* the last one with a weight, should rounding pass the end */
        target -= (double)c->weights[i];
        if (target < 0.0)
            break;
    }
    return token;
}
