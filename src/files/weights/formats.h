/* Interface of the formats to provider.c, and their common helpers: quantization methods, GGML's
 * type numbers, aligned copies of tensors. Private to files/weights/, except that api/registry.c
 * lists quantizations and types, conversion/convert/ writes type numbers, and conversion/compress/
 * writes folders of arrays. */
#ifndef AK_FILES_WEIGHTS_FORMATS_H
#define AK_FILES_WEIGHTS_FORMATS_H

#include <pthread.h>

#include "files/weights/provider.h"

/* One instance per format. provider.c lists them in the order of detection. */
extern const struct ak_provider_format ak_gguf_format, ak_hf_format, ak_whisper_format,
    ak_whisper_checkpoint_format, ak_hf_npy_format, ak_npy_format;

/* hf/. Names of the files beside the weights of a Hugging Face folder; ends in NULL. */
extern const char *const ak_hf_sidecar_names[];
#define AK_HF_MANIFEST "manifest.json"
/* Metadata of a folder of arrays that has no tokenizer of its own: a GGUF file without tensors. */
#define AK_HF_METADATA "model-metadata.gguf"
/* Opens a folder of arrays whose manifest has another name: that of one in the making. Error
 * messages begin with the path. */
ak_status ak_hf_npy_open_draft(const char *path, const char *manifest, struct ak_provider **out,
                               struct ak_error *error);

/* unknown.c. Fills `error` with what was found at `path`, which no format opens, and with what is
 * accepted. */
ak_status ak_provider_fail_unknown_format(const char *path, struct ak_error *error);

/* Quantization methods of Hugging Face folders: name in config.json, what is supported. NULL past
 * the end. */
struct ak_hf_quantization {
    const char *name, *about;
};
const struct ak_hf_quantization *ak_hf_quantization_at(size_t i);

/* ---- GGML's type numbers, of GGUF and older files ----------------------- */
/* The type of a number. AKUNU_ERROR_UNSUPPORTED: akunu does not have it. `tensor` is the name for
 * messages, already escaped. */
ak_status ak_ggml_type_find(uint32_t number, const char *tensor, enum ak_quant_type *out,
                            struct ak_error *error);

/* The number of a type; false: it has none. */
bool ak_ggml_type_number(enum ak_quant_type type, uint32_t *out);

/* ---- Aligned copies ----------------------------------------------------- */
/* Copies of tensors that files have at odd addresses, for kernels that read rows in place. */
struct ak_tensor_copies {
    void **data; /* [n]; NULL: not copied yet */
    size_t n;
    pthread_mutex_t lock;
};

ak_status ak_tensor_copies_begin(struct ak_tensor_copies *copies, size_t n_tensors,
                                 struct ak_error *error);
void ak_tensor_copies_end(struct ak_tensor_copies *copies); /* accepts an all-zero struct */

/* Returns `data` if it is aligned for `type`, else a copy of its `bytes` bytes, made on the first
 * call for tensor `i`. Thread-safe. If out of memory, returns the unaligned `data`: reading it is
 * slow, but faults on no machine that has kernels. */
const void *ak_tensor_copies_align(const struct ak_provider *p, struct ak_tensor_copies *copies,
                                   size_t i, enum ak_quant_type type, const void *data,
                                   uint64_t bytes);

#endif
