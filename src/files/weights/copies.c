/* Aligned copies of tensors at odd addresses, made when a tensor is first used. */
#include "files/weights/formats.h"

#include <string.h>

#include "base/mem.h"

ak_status ak_tensor_copies_begin(struct ak_tensor_copies *copies, size_t n_tensors,
                                 struct ak_error *error)
{
    copies->data = ak_alloc(n_tensors, sizeof *copies->data);
    if (!copies->data)
        return ak_fail_memory(error, "a list of tensors", n_tensors * sizeof *copies->data);
    copies->n = n_tensors;
    pthread_mutex_init(&copies->lock, NULL);
    return AKUNU_OK;
}

void ak_tensor_copies_end(struct ak_tensor_copies *copies)
{
    if (!copies->data)
        return;
    for (size_t i = 0; i < copies->n; i++)
        ak_free(copies->data[i]);
    ak_free(copies->data);
    pthread_mutex_destroy(&copies->lock);
    *copies = (struct ak_tensor_copies){ 0 };
}

/* Alignment that kernels need to read a number, or the first field of a block. */
static size_t alignment(enum ak_quant_type type)
{
    const struct ak_quant_info *info = ak_quant_info(type);
    return info->block_elems == 1 ? info->block_bytes : 2;
}

const void *ak_tensor_copies_align(const struct ak_provider *p, struct ak_tensor_copies *copies,
                                   size_t i, enum ak_quant_type type, const void *data,
                                   uint64_t bytes)
{
    if ((uintptr_t)data % alignment(type) == 0)
        return data;
    pthread_mutex_lock(&copies->lock);
    if (!copies->data[i] && (copies->data[i] = ak_alloc_aligned((size_t)bytes))) {
        memcpy(copies->data[i], data, (size_t)bytes);
        ak_provider_advise(p, data, bytes, AK_FILE_COPIED);
    }
    if (copies->data[i])
        data = copies->data[i];
    pthread_mutex_unlock(&copies->lock);
    return data;
}
