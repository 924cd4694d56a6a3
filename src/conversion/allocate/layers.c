/* Sensitivities change little from a layer to the next one, so not all are measured. */
#include <string.h>

#include "conversion/allocate/allocate.h"
#include "base/math.h"

enum {
    STEP = 2,    /* every second layer is measured */
    ALL_MAX = 8, /* of so few layers, all are */
};

/* Whether both are the same part of layers. */
static bool is_same(const struct ak_allocate_tensor *a, const struct ak_allocate_tensor *b)
{
    unsigned layer;
    return strcmp(ak_convert_find_part(a->tensor->name, &layer),
                  ak_convert_find_part(b->tensor->name, &layer)) == 0;
}

static unsigned get_layer(const struct ak_allocate_tensor *t)
{
    unsigned layer = 0;
    ak_convert_find_part(t->tensor->name, &layer);
    return layer;
}

void ak_allocate_count_layers(struct ak_allocate_tensor *tensors, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++)
            if (is_same(&tensors[i], &tensors[k])) {
                tensors[i].n_same++;
                tensors[i].index += get_layer(&tensors[k]) < get_layer(&tensors[i]);
            }
}

bool ak_allocate_is_measured(const struct ak_allocate_tensor *t)
{
    return t->n_same <= ALL_MAX || t->index == 0 || t->index + 1 == t->n_same ||
           t->index % STEP == 1;
}

/* The nearest measured tensor of the same part, below or above. The first and the last one are. */
static const struct ak_allocate_tensor *find_nearest(const struct ak_allocate_tensor *tensors,
                                                     size_t n, const struct ak_allocate_tensor *t,
                                                     bool above)
{
    const struct ak_allocate_tensor *nearest = NULL;
    for (size_t i = 0; i < n; i++) {
        const struct ak_allocate_tensor *other = &tensors[i];
        bool is_there = above ? other->index > t->index : other->index < t->index;
        if (is_there && ak_allocate_is_measured(other) && is_same(other, t) &&
            (!nearest || (above ? other->index < nearest->index : other->index > nearest->index)))
            nearest = other;
    }
    return nearest;
}

void ak_allocate_interpolate(struct ak_allocate_tensor *tensors, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct ak_allocate_tensor *t = &tensors[i];
        if (ak_allocate_is_measured(t))
            continue;
        const struct ak_allocate_tensor *below = find_nearest(tensors, n, t, false),
                                        *above = find_nearest(tensors, n, t, true);
        double low = below->sensitivity, high = above->sensitivity,
               share = (double)(t->index - below->index) / (double)(above->index - below->index);
        t->sensitivity = low > 0.0 && high > 0.0 ? ak_pow(low, 1.0 - share) * ak_pow(high, share) :
                                                   low + (high - low) * share;
    }
}
