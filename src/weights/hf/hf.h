/* A Hugging Face checkpoint: a folder of SafeTensors files with config.json, or one
 * such file beside its config.json; or a folder of NumPy arrays with the same files beside
 * them. What its parts share:
 *
 *     hf.c          the provider's functions
 *     hf_folder.c   which files a checkpoint has
 *     hf_meta.c     its JSON files as metadata
 *     hf_quant.c    which of its tensors together are a quantized weight
 *     safetensors.c one file of tensors
 *     npy_dir.c     the arrays that a manifest.json names, in place of SafeTensors
 */
#ifndef AK_WEIGHTS_HF_HF_H
#define AK_WEIGHTS_HF_HF_H

#include <jansson.h>

#include "weights/composed.h"
#include "weights/copies.h"
#include "base/name_index.h"
#include "weights/hf/safetensors.h"

enum { AK_HF_NAME_BYTES = 256 }; /* of the names that tensors of one weight share */
#define AK_HF_MANIFEST "manifest.json"

struct ak_hf_part {
    struct ak_file file;
    const char *name; /* within the folder */
    uint64_t data;    /* where the header ends */
};

/* A file beside the weights; not there: file.path is NULL. */
struct ak_hf_sidecar {
    const char *name;
    struct ak_file file;
};

/* A metadata entry; nested objects are entries of their own, "rope_scaling.factor". */
struct ak_hf_entry {
    char *key;
    const json_t *value;
};

struct ak_hf_metadata {
    json_t **roots; /* what the entries point into */
    size_t n_roots;
    struct ak_hf_entry *entries;
    size_t n, capacity;
    size_t key_bytes;
    struct ak_name_index index;
};

/* A tensor as the model sees it: one of the file's, or a weight that several make up. */
struct ak_hf_weight {
    const char *name;
    char *own_name; /* where no tensor is called so */
    /* in the list of tensors; of a composed tensor, the one with its numbers */
    uint32_t position;
    struct ak_composed_tensor *composed_tensor; /* NULL: a tensor */
};

struct ak_hf {
    struct ak_provider provider;
    char *folder;
    struct ak_hf_sidecar *sidecars;
    size_t n_sidecars;
    struct ak_hf_part *parts;
    uint32_t n_parts;
    json_t *shards; /* the index file; NULL where there is none */
    struct ak_hf_tensor_list list;
    struct ak_name_index tensor_index; /* of the tensors' names */
    struct ak_hf_weight *weights;
    uint32_t n_weights;
    struct ak_name_index index; /* of the weights' names */
    struct ak_error refusal; /* why no weights are to be had, of a folder that can be looked at */
    struct ak_hf_metadata metadata;
    struct ak_tensor_copies copies;
};

/* ---- hf_folder.c -------------------------------------------------------- */
/* Whether `path` is a folder with SafeTensors or their index in it, or such a file. */
bool ak_hf_probe(const char *path);

/* Fills folder, sidecars, and parts with their files, all open and named, no tensor
 * read. What was opened is in h also after a failure. */
ak_status ak_hf_open_files(struct ak_hf *h, const char *path, struct ak_error *error);

/* Keeps the folder's name, of n bytes, and opens the files beside the weights. */
ak_status ak_hf_open_sidecars(struct ak_hf *h, const char *folder, size_t n,
                              struct ak_error *error);

/* A file of the folder. */
ak_status ak_hf_open_file(const struct ak_hf *h, const char *name, struct ak_file *file,
                          struct ak_error *error);

/* Each tensor that the index names is where it says. */
ak_status ak_hf_check_index(const struct ak_hf *h, struct ak_error *error);

/* The file of that name beside the weights; NULL where there is none. */
const struct ak_file *ak_hf_sidecar(const struct ak_hf *h, const char *name);

void ak_hf_close_files(struct ak_hf *h);

/* ---- hf_quant.c --------------------------------------------------------- */
/* Fills weights, index and refusal from the tensors and the metadata. What was made is in
 * h also after a failure. */
ak_status ak_hf_list_weights(struct ak_hf *h, struct ak_error *error);
void ak_hf_free_weights(struct ak_hf *h);

/* Fills index from weights, whose names must be different ones. */
ak_status ak_hf_index_weights(struct ak_hf *h, struct ak_error *error);

/* ---- npy_dir.c ---------------------------------------------------------- */
/* Whether `path` is a folder with a manifest of arrays. */
bool ak_hf_npy_probe(const char *path);

/* Fills all of h but what is made of it later: files, metadata, tensors, weights. What was
 * made is in h also after a failure. */
ak_status ak_hf_npy_read(struct ak_hf *h, const char *path, struct ak_error *error);

/* ---- hf_meta.c ---------------------------------------------------------- */
/* Reads config.json, which must be there, and generation_config.json and
 * tokenizer_config.json under "generation_config." and "tokenizer_config.". */
ak_status ak_hf_read_metadata(struct ak_hf *h, struct ak_error *error);
void ak_hf_meta(const struct ak_hf_metadata *m, size_t i, struct ak_meta *out);
bool ak_hf_find_meta(const struct ak_hf_metadata *m, const char *key, struct ak_meta *out);
bool ak_hf_element(const struct ak_meta *array, uint64_t i, struct ak_meta *out);
void ak_hf_metadata_free(struct ak_hf_metadata *m);

#endif
