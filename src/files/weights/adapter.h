/* LoRA adapter file: pairs of small matrices, each of which adds factor · b · a to a weight. It is
 * a GGUF file (adapter.c) or a PEFT folder (peft.c). engine/session/ opens it, and
 * engine/pack/adapter.c binds the pairs to a model. */
#ifndef AK_FILES_WEIGHTS_ADAPTER_H
#define AK_FILES_WEIGHTS_ADAPTER_H

#include "files/weights/provider.h"

struct ak_peft; /* peft.c */

struct ak_adapter_pair {
    char *name;            /* of the weight, in the adapter's naming convention */
    struct ak_tensor a, b; /* [rank, cols] and [rows, rank] */
    float factor;
};

struct ak_adapter {
    enum ak_provider_naming naming;
    struct ak_text architecture; /* GGUF's name; n = 0: not stated */
    struct ak_adapter_pair *pairs;
    uint32_t n_pairs;
    struct ak_provider_fingerprint fingerprint;
    /* what the rest points into */
    struct ak_provider *gguf; /* NULL: a PEFT folder */
    struct ak_peft *peft;     /* NULL: a GGUF file */
};

/* Opens an adapter and checks that its tensors are pairs of one rank each. Messages begin with the
 * path. The caller passes *out to ak_adapter_close(), after a failure too. */
ak_status ak_adapter_open(const char *path, struct ak_adapter *out, struct ak_error *error);
void ak_adapter_close(struct ak_adapter *adapter);

/* Rows of a tensor as a matrix, and its columns. */
uint64_t ak_adapter_rows(const struct ak_tensor *tensor);
uint64_t ak_adapter_cols(const struct ak_tensor *tensor);

/* ---- For the formats ---------------------------------------------------- */
/* Adds one of a pair's tensors, for the weight whose name is the n bytes at `name` and `ending`. */
ak_status ak_adapter_add(struct ak_adapter *adapter, const char *name, size_t n, const char *ending,
                         bool is_b, const struct ak_tensor *tensor, struct ak_error *error);

/* Opens the files of a PEFT folder; messages have their paths. Then reads them. */
ak_status ak_adapter_open_peft(const char *folder, struct ak_adapter *out, struct ak_error *error);
ak_status ak_adapter_read_peft(struct ak_adapter *out, struct ak_error *error);
void ak_adapter_close_peft(struct ak_peft *peft); /* NULL allowed */

#endif
