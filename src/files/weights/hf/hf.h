/* Hugging Face checkpoints as a provider: a folder of SafeTensors files with config.json, one such
 * file beside its config.json, or a folder of NumPy arrays with the same sidecars. Shared by all
 * files of this folder, and used by files/weights/peft.c; the quantization schemes (mlx.c, gptq.c,
 * awq.c, …) are listed in quant.h.
 *
 *     hf.c            the provider's functions
 *     folder.c        the files of a checkpoint
 *     meta.c          its JSON files as metadata
 *     quant.c         which tensors form one quantized weight
 *     quant_method.c  which quantization scheme there is
 *     safetensors.c   one file of tensors
 *     npy_dir.c       arrays named by manifest.json, in place of SafeTensors
 */
#ifndef AK_FILES_WEIGHTS_HF_HF_H
#define AK_FILES_WEIGHTS_HF_HF_H

#include <jansson.h>

#include "base/name_index.h"
#include "files/weights/composed.h"
#include "files/weights/formats.h"

enum { AK_HF_NAME_BYTES = 256 }; /* of a module's name, with the NUL */

struct ak_hf_tensor {
    char *name;
    /* NULL, or the file's word, escaped, for a type that akunu lacks: `type` is then U8, and
     * `bytes` does not follow from the shape */
    char *dtype;
    uint32_t part; /* index of its file */
    enum ak_quant_type type;
    unsigned n_dims;                    /* at least 1: a scalar is given as [1] */
    uint64_t shape[AK_TENSOR_DIMS_MAX]; /* row-major; a dimension may be 0 */
    uint64_t offset, bytes;             /* from the start of the file */
};

struct ak_hf_tensor_list {
    struct ak_hf_tensor *tensors;
    size_t n;
};

struct ak_hf_part {
    struct ak_file file;
    const char *name; /* in the folder */
    uint64_t data;    /* offset of the tensor data: the end of the header */
};

/* A file beside the weights (sidecar). file.path NULL: absent. */
struct ak_hf_sidecar {
    const char *name;
    struct ak_file file;
};

/* A metadata entry. Nested objects become dotted keys: "rope_scaling.factor". */
struct ak_hf_entry {
    char *key;
    const json_t *value;
};

struct ak_hf_metadata {
    json_t **roots; /* parsed files, into which the entries point */
    size_t n_roots;
    struct ak_hf_entry *entries;
    size_t n, capacity;
    char **nulls; /* keys whose value is null; they are no entries */
    size_t n_nulls, nulls_capacity;
    size_t key_bytes;
    struct ak_name_index index;
};

/* A weight: a stored tensor or a composed tensor. */
struct ak_hf_weight {
    const char *name;
    char *own_name;    /* owned `name`, if no tensor has that name; else NULL */
    uint32_t position; /* in the list of tensors; composed: the tensor of the quants */
    struct ak_composed_tensor *composed_tensor; /* NULL: a stored tensor */
};

struct ak_hf {
    struct ak_provider provider;
    char *folder;
    struct ak_hf_sidecar *sidecars;
    size_t n_sidecars;
    struct ak_hf_part *parts;
    uint32_t n_parts;
    json_t *shards; /* the index file; NULL: none */
    struct ak_hf_tensor_list list;
    struct ak_name_index tensor_index; /* by names of tensors */
    struct ak_hf_weight *weights;
    uint32_t n_weights;
    struct ak_name_index index; /* by names of weights */
    struct ak_error refusal;    /* why the weights are unreadable; AKUNU_OK: they are readable */
    struct ak_hf_metadata metadata;
    struct ak_tensor_copies copies;
    struct ak_provider *gguf; /* AK_HF_METADATA: the vocabulary, and further metadata; NULL: none */
};

/* ---- folder.c ----------------------------------------------------------- */
/* Whether `path` is a folder that contains SafeTensors or their index, or a SafeTensors file. */
bool ak_hf_probe(const char *path);

/* Fills folder, sidecars and parts; opens all files, reads no tensor. After a failure too, h owns
 * what was opened. */
ak_status ak_hf_open_files(struct ak_hf *h, const char *path, struct ak_error *error);

/* Copies the folder's name, of n bytes, and opens the sidecars. */
ak_status ak_hf_open_sidecars(struct ak_hf *h, const char *folder, size_t n,
                              struct ak_error *error);

/* Opens a file of the folder. */
ak_status ak_hf_open_file(const struct ak_hf *h, const char *name, struct ak_file *file,
                          struct ak_error *error);

/* Checks that each tensor of the index is in the file that the index names. */
ak_status ak_hf_check_index(const struct ak_hf *h, struct ak_error *error);

/* Whether the folder has a file of that name. */
bool ak_hf_has_file(const struct ak_hf *h, const char *name);

/* The sidecar of that name; NULL: absent. */
const struct ak_file *ak_hf_sidecar(const struct ak_hf *h, const char *name);

void ak_hf_close_files(struct ak_hf *h);

/* ---- quant.c ------------------------------------------------------------ */
/* Fills weights, index and refusal from the tensors and the metadata. After a failure too, h owns
 * what was made. */
ak_status ak_hf_list_weights(struct ak_hf *h, struct ak_error *error);
void ak_hf_free_weights(struct ak_hf *h);

/* Fills `index` from the weights. A duplicate name is an error. */
ak_status ak_hf_index_weights(struct ak_hf *h, struct ak_error *error);

/* ---- quant_method.c ------------------------------------------------------ */
/* Files beside config.json that may have the settings of the quantization; ends in NULL. */
extern const char *const ak_hf_settings_files[];

/* ---- npy_dir.c ---------------------------------------------------------- */
/* Whether `path` is a folder with a manifest of arrays. */
bool ak_hf_npy_probe(const char *path);

/* Fills files, metadata, tensors and weights. After a failure too, h owns what was made. */
ak_status ak_hf_npy_read(struct ak_hf *h, const char *path, const char *manifest,
                         struct ak_error *error);

/* ---- meta.c ------------------------------------------------------------- */
/* Reads config.json, which is required, and generation_config.json and tokenizer_config.json with
 * the prefixes "generation_config." and "tokenizer_config.". */
ak_status ak_hf_read_metadata(struct ak_hf *h, struct ak_error *error);
void ak_hf_meta(const struct ak_hf_metadata *m, size_t i, struct ak_meta *out);
bool ak_hf_find_meta(const struct ak_hf_metadata *m, const char *key, struct ak_meta *out);
/* The i-th key with the value null; NULL past the last one. */
const char *ak_hf_null(const struct ak_hf_metadata *m, size_t i);
bool ak_hf_element(const struct ak_meta *array, uint64_t i, struct ak_meta *out);
void ak_hf_metadata_free(struct ak_hf_metadata *m);

/* ---- safetensors.c ------------------------------------------------------ */
/* One SafeTensors file: a JSON header that locates raw tensors.
 *
 *     u64 little-endian   bytes of the header, n
 *     n bytes             an object: name → {"dtype", "shape", "data_offsets": [begin, end]};
 *                         "__metadata__" → an object of strings; spaces may follow
 *     the rest            the data; offsets count from here, and every byte is some tensor's
 *
 * https://github.com/huggingface/safetensors#format
 */

/* Whether the file begins with a length, then "{". */
bool ak_hf_safetensors_probe(const struct ak_file *file);

/* Checks the whole header and appends its tensors in the order of their data. *data: offset of the
 * data. After a failure too, the caller owns what was appended. */
ak_status ak_hf_safetensors_read(const struct ak_file *file, uint32_t part,
                                 struct ak_hf_tensor_list *list, uint64_t *data,
                                 struct ak_error *error);
void ak_hf_tensor_list_free(struct ak_hf_tensor_list *list);

#endif
