/* The types with the least sum of divergences for a number of bytes. */
#include <stdlib.h>

#include "conversion/allocate/allocate.h"

static int by_bytes(const void *a, const void *b)
{
    const struct ak_allocate_type *x = a, *y = b;
    int order = (x->bytes > y->bytes) - (x->bytes < y->bytes);
    if (order == 0)
        order = (x->divergence > y->divergence) - (x->divergence < y->divergence);
    return order ? order : (int)x->type - (int)y->type;
}

/* What a byte more gains from `less` to `more`. */
static double slope(const struct ak_allocate_type *less, const struct ak_allocate_type *more)
{
    return (less->divergence - more->divergence) / (double)(more->bytes - less->bytes);
}

void ak_allocate_prune(struct ak_allocate_tensor *tensor)
{
    struct ak_allocate_type *hull = tensor->types;
    size_t n = 0;
    qsort(hull, tensor->n_types, sizeof *hull, by_bytes);
    for (size_t i = 0; i < tensor->n_types; i++) {
        struct ak_allocate_type next = hull[i];
        if (n > 0 && next.divergence >= hull[n - 1].divergence)
            continue;
        while (n > 1 && slope(&hull[n - 2], &hull[n - 1]) <= slope(&hull[n - 1], &next))
            n--;
        hull[n++] = next;
    }
    tensor->n_types = n;
}

/* The tensor that gains most per byte from its next type, among those for which `left` bytes
 * suffice. NULL: there is none. */
static struct ak_allocate_tensor *find_best(struct ak_allocate_tensor *tensors, size_t n,
                                            uint64_t left)
{
    struct ak_allocate_tensor *best = NULL;
    double most = 0.0;
    for (size_t i = 0; i < n; i++) {
        const struct ak_allocate_type *now = &tensors[i].types[tensors[i].choice];
        if (tensors[i].choice + 1 == tensors[i].n_types || now[1].bytes - now->bytes > left ||
            (best && slope(now, now + 1) <= most))
            continue;
        best = &tensors[i];
        most = slope(now, now + 1);
    }
    return best;
}

bool ak_allocate_solve(struct ak_allocate_tensor *tensors, size_t n, uint64_t bytes)
{
    struct ak_allocate_tensor *best;
    for (size_t i = 0; i < n; i++) {
        tensors[i].choice = 0;
        if (tensors[i].types[0].bytes > bytes)
            return false;
        bytes -= tensors[i].types[0].bytes;
    }
    while ((best = find_best(tensors, n, bytes)) != NULL) {
        const struct ak_allocate_type *now = &best->types[best->choice++];
        bytes -= now[1].bytes - now->bytes;
    }
    return true;
}
