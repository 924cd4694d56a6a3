/* Growing arrays: a pointer and a capacity in elements, both zero for an empty one. */
#ifndef AK_BASE_ARRAY_H
#define AK_BASE_ARRAY_H

#include "base/error.h"
#include "base/mem.h"

/* Makes room for `more` elements after the first n of *array, and at least doubles an array that
 * has to grow. False: out of memory; the array is as it was. `capacity` points to a size_t or a
 * uint32_t; free the array with ak_free. */
#define ak_reserve(array, capacity, n, more)                                                       \
    _Generic(*(capacity), size_t                                                                   \
             : ak_reserve_size, uint32_t                                                           \
             : ak_reserve_u32)((array), (capacity), (n), (more), sizeof **(array))

/* The same as a status; the message names `what` the array holds. */
#define ak_reserve_or_fail(array, capacity, n, more, what, error)                                  \
    (ak_reserve(array, capacity, n, more) ? AKUNU_OK : ak_fail_memory(error, what, 0))

/* For elements of `size` bytes. */
bool ak_reserve_size(void *array, size_t *capacity, size_t n, size_t more, size_t size);
bool ak_reserve_u32(void *array, uint32_t *capacity, size_t n, size_t more, size_t size);

#endif
