/* The order of partial sums in products of panels.
 *
 * A float product is 32 partial sums, of which the upper half is added to the lower
 * until one is left (cpu/kernels.h). Read as a tree, that is sum(j, w) = sum(j, 2w) +
 * sum(j + w, 2w) with sum(j, 32) a partial sum: taken from left to right, partial sum
 * number `rev` is the one whose 5 bits are those of `rev` from behind, and after it as
 * many sums that wait can be added as `rev` has ones at its end. So one partial sum is
 * in the making at a time and at most AK_PANEL_LEVELS others wait. */
#ifndef AK_CPU_PANEL_H
#define AK_CPU_PANEL_H

#include "cpu/generic.h"

enum { AK_PANEL_LEVELS = 5 };
_Static_assert(AK_LANES == 1 << AK_PANEL_LEVELS, "one level a bit");

/* The rev of partial sum j, and the partial sum of rev j. */
AK_KERNEL size_t ak_panel_reverse_bits(size_t j)
{
    return (j & 1) << 4 | (j & 2) << 2 | (j & 4) | (j & 8) >> 2 | (j & 16) >> 4;
}

/* What a product asks memory for while it computes, a part each time. */
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

/* The next part's first byte; it has *bytes. */
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

/* A part that is asked for line by line, each beside a step of arithmetic: many at once
 * would wait for each other, and the arithmetic for them. */
struct ak_panel_prefetch_lines {
    const uint8_t *at;
    size_t n;
};

/* The next part; of more lines than steps the rest is asked for at once. */
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

/* Puts a token of k floats in its place among groups of `count`: [group][rev][step][token]. */
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
