/* Bit-reversed order of partial sums in f32 panels, so that few sums are pending in a product. Also
 * prefetching during products.
 *
 * A float product has 32 partial sums, and the upper half is added to the lower half until one is
 * left (engine/cpu/kernels.h). As a tree: sum(j, w) = sum(j, 2w) + sum(j + w, 2w), with partial
 * sums as the leaves sum(j, 32). From left to right, the index of partial sum number `rev` is the
 * bit reversal of `rev`; after it, as many pending sums are added as `rev` has trailing ones. So
 * one partial sum is computed at a time, and at most AK_PANEL_LEVELS others are pending. */
#ifndef AK_ENGINE_CPU_PANEL_H
#define AK_ENGINE_CPU_PANEL_H

#include "engine/cpu/generic.h"

enum { AK_PANEL_LEVELS = 5 };
_Static_assert(AK_LANES == 1 << AK_PANEL_LEVELS, "one level per bit");

/* Bit reversal of a 5-bit index; its own inverse. */
AK_KERNEL size_t ak_panel_reverse_bits(size_t j)
{
    return (j & 1) << 4 | (j & 2) << 2 | (j & 4) | (j & 8) >> 2 | (j & 16) >> 4;
}

/* Prefetch state of one product: next address, bytes left, bytes per part. */
struct ak_panel_prefetch {
    const uint8_t *at;
    size_t left, part;
};

AK_KERNEL struct ak_panel_prefetch ak_panel_init_prefetch(const uint8_t *next, size_t bytes,
                                                          size_t times)
{
    return (struct ak_panel_prefetch){
        next, bytes, bytes / times / AK_LINE_BYTES * AK_LINE_BYTES + AK_LINE_BYTES
    };
}

/* Takes the next part: returns its address and sets *bytes. */
AK_KERNEL const uint8_t *ak_panel_next_part(struct ak_panel_prefetch *a, size_t *bytes)
{
    const uint8_t *at = a->at;
    *bytes = a->left < a->part ? a->left : a->part;
    a->at += *bytes;
    a->left -= *bytes;
    return at;
}

AK_KERNEL void ak_panel_prefetch_part(struct ak_panel_prefetch *a)
{
    size_t bytes;
    const uint8_t *at = ak_panel_next_part(a, &bytes);
    for (size_t i = 0; i < bytes; i += AK_LINE_BYTES)
        __builtin_prefetch(at + i, 0, 2);
}

/* One part, prefetched line by line beside the arithmetic: a burst would stall it. */
struct ak_panel_prefetch_lines {
    const uint8_t *at;
    size_t n;
};

/* Takes the next part. Lines in excess of `steps` are prefetched at once. */
AK_KERNEL struct ak_panel_prefetch_lines ak_panel_prefetch_lines(struct ak_panel_prefetch *a,
                                                                 size_t steps)
{
    size_t bytes, n;
    const uint8_t *at = ak_panel_next_part(a, &bytes);
    for (n = (bytes + AK_LINE_BYTES - 1) / AK_LINE_BYTES; n > steps; n--)
        __builtin_prefetch(at + (n - 1) * AK_LINE_BYTES, 0, 2);
    return (struct ak_panel_prefetch_lines){ at, n };
}

AK_KERNEL void ak_panel_prefetch_line(const struct ak_panel_prefetch_lines *lines, size_t step)
{
    if (step < lines->n)
        __builtin_prefetch(lines->at + step * AK_LINE_BYTES, 0, 2);
}

/* Interleaves one token of k floats into groups of `count`: [group][bit-reversed
 * sum][step][token]. */
AK_KERNEL void ak_panel_interleave_token(const float *x, size_t k, size_t token, size_t count,
                                         float *tokens)
{
    float *to = tokens + token / count * count * k + token % count;
    for (size_t rev = 0; rev < AK_LANES; rev++) {
        const float *from = x + ak_panel_reverse_bits(rev);
        for (size_t i = 0; i < k; i += AK_LANES, to += count)
            *to = from[i];
    }
}

#endif
