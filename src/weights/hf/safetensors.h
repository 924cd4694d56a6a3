/* One SafeTensors file: a JSON header that says where raw tensors lie.
 *
 *     u64 little-endian   bytes of the header, n
 *     n bytes             an object: name → {"dtype", "shape", "data_offsets": [begin, end]};
 *                         "__metadata__" → an object of strings; spaces may follow
 *     the rest            the data; offsets count from here, and every byte is some tensor's
 *
 * https://github.com/huggingface/safetensors#format
 */
#ifndef AK_WEIGHTS_HF_SAFETENSORS_H
#define AK_WEIGHTS_HF_SAFETENSORS_H

#include "weights/provider.h"

struct ak_hf_tensor {
    char *name;
    uint32_t part; /* as the caller numbers its files */
    enum ak_quant_type type;
    unsigned n_dims;                    /* at least 1: a scalar is given as [1] */
    uint64_t shape[AK_TENSOR_DIMS_MAX]; /* row-major; a dimension may be 0 */
    uint64_t offset, bytes;             /* from the start of the file */
};

struct ak_hf_tensor_list {
    struct ak_hf_tensor *tensors;
    size_t n;
};

/* Whether the file begins as SafeTensors do: a length, then "{". */
bool ak_hf_safetensors_probe(const struct ak_file *file);

/* Checks the whole header and appends its tensors in the order of their data, whose
 * beginning goes to *data. What was appended is the caller's, also after a failure. */
ak_status ak_hf_safetensors_read(const struct ak_file *file, uint32_t part,
                                 struct ak_hf_tensor_list *list, uint64_t *data,
                                 struct ak_error *error);
void ak_hf_tensor_list_free(struct ak_hf_tensor_list *list);

#endif
