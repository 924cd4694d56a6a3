/* Copies of tensors that lie at odd addresses, for kernels read rows in place. */
#ifndef AK_WEIGHTS_COPIES_H
#define AK_WEIGHTS_COPIES_H

#include <pthread.h>

#include "base/error.h"
#include "quant/type.h"

struct ak_tensor_copies {
    void **data; /* [n]; NULL: not wanted yet */
    size_t n;
    pthread_mutex_t lock;
};

ak_status ak_tensor_copies_begin(struct ak_tensor_copies *copies, size_t n_tensors,
                                 struct ak_error *error);
void ak_tensor_copies_end(struct ak_tensor_copies *copies); /* accepts an all-zero struct */

/* `data` itself where it is aligned, else a copy of its `bytes` bytes, made when tensor
 * `i` is first wanted. By any thread. Without memory for that, `data`: slower, or a
 * fault on some machines, but not on those that there are kernels for. */
const void *ak_tensor_copies_align(struct ak_tensor_copies *copies, size_t i,
                                   enum ak_quant_type type, const void *data, uint64_t bytes);

#endif
