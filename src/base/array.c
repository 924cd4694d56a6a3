/* Growing arrays. */
#include "base/array.h"

enum { ELEMENTS_MIN = 16 };

bool ak_reserve_size(void *array, size_t *capacity, size_t n, size_t more, size_t size)
{
    void **at = array, *grown;
    size_t wanted;
    if (*capacity - n >= more)
        return true;
    if (!ak_add_size(n, more, &wanted) || wanted > SIZE_MAX / 2)
        return false;
    wanted = ak_max_size(2 * wanted, ELEMENTS_MIN);
    grown = ak_realloc(*at, wanted, size);
    if (!grown)
        return false;
    *at = grown;
    *capacity = wanted;
    return true;
}

bool ak_reserve_u32(void *array, uint32_t *capacity, size_t n, size_t more, size_t size)
{
    size_t wide = *capacity;
    if (wide - n >= more)
        return true;
    if (more > UINT32_MAX / 2 - n || !ak_reserve_size(array, &wide, n, more, size))
        return false;
    *capacity = (uint32_t)wide;
    return true;
}
