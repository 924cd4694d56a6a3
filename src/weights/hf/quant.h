/* Quantized checkpoints: which tensors of one together are a weight, by the scheme that
 * config.json names. One file a scheme:
 *
 *     mlx.c     "quantization": affine and MXFP4, as MLX has them
 *     gptq.c    quant_method gptq; gptq_dynamic.c its settings of single modules
 *     awq.c     quant_method awq
 *     fp8.c     quant_method fp8, fbgemm_fp8; compressed-tensors of that kind
 *     compressed_tensors.c  compressed-tensors of whole numbers
 *
 * Private to the files that read Hugging Face folders. */
#ifndef AK_WEIGHTS_HF_QUANT_H
#define AK_WEIGHTS_HF_QUANT_H

#include "weights/composed.h"
#include "weights/hf/hf.h"

struct ak_hf_scheme;

struct ak_hf_quant {
    const struct ak_hf *h;
    const struct ak_hf_scheme *scheme;
    const json_t *config;   /* the object of config.json that describes the quantization */
    const char *config_key; /* its key */
    uint32_t bits, group;   /* as it says for all */
    bool scheme_flag;       /* the scheme's own */
    void *scheme_data;      /* the same; `end` frees it */
};

struct ak_hf_scheme {
    const char *quants_suffix;     /* how the names of tensors with quants end: ".qweight" */
    const char *plane_suffixes[7]; /* and those of what belongs to them; NULL ends */
    unsigned types;                /* of the quants: bit (1 << (type − AK_QUANT_STORED_FIRST)) */
    const char *weight_suffix;     /* how the name of the weight ends: ".weight" */
    /* Checks the configuration. */
    ak_status (*read)(struct ak_hf_quant *q, struct ak_error *error);
    /* after read, failed or not; NULL: nothing is to be freed */
    void (*end)(struct ak_hf_quant *q);
    /* Fills `out` from the tensors of `module`, whose shapes it checks. *plain: it has no
     * planes, and is a tensor like any other. */
    ak_status (*compose)(const struct ak_hf_quant *q, const char *module,
                         const struct ak_hf_tensor *weight, struct ak_composed_tensor *out,
                         bool *plain, struct ak_error *error);
};

extern const struct ak_hf_scheme ak_hf_mlx, ak_hf_gptq, ak_hf_awq, ak_hf_fp8, ak_hf_pack_quantized,
    ak_hf_int_quantized;

/* The tensor MODULE + SUFFIX; NULL where there is none. */
const struct ak_hf_tensor *ak_hf_find_plane(const struct ak_hf_quant *q, const char *module,
                                            const char *suffix, struct ak_plane *plane);

/* As ak_hf_find_plane for one that must be there, of a type of floats. */
ak_status ak_hf_find_factors(const struct ak_hf_quant *q, const char *module, const char *suffix,
                             const struct ak_hf_tensor **tensor, struct ak_plane *plane,
                             struct ak_error *error);

/* The tensor's shape is `n` of these; the message names it. */
ak_status ak_hf_expect_shape(const struct ak_hf_tensor *t, const uint64_t *shape, unsigned n,
                             struct ak_error *error);

/* What GPTQ and AWQ share: `weight`, the numbers of `rows` outputs and `in` inputs, has
 * MODULE.scales [groups, rows] and MODULE.qzeros [groups, rows · bits / 32] beside it.
 * Fills all but scheme and name from these and from q's bits and group (0: all inputs). */
ak_status ak_hf_read_linear(const struct ak_hf_quant *q, const char *module,
                            const struct ak_hf_tensor *weight, uint64_t rows, uint64_t in,
                            struct ak_composed_tensor *out, struct ak_error *error);

/* Which group each input is of, by MODULE + SUFFIX, plane 3. Where that is not in order,
 * *is_ordered is false, and out->order is such that 32 neighbors are of one group; where
 * there is none, out->type becomes F16. */
ak_status ak_hf_read_groups(const struct ak_hf_quant *q, const char *module, const char *suffix,
                            struct ak_composed_tensor *out, bool *is_ordered,
                            struct ak_error *error);

/* group_size of an object of the configuration, 0 for −1. */
ak_status ak_hf_read_group_size(const struct ak_hf_quant *q, const json_t *object,
                                uint32_t fallback, uint32_t *out, struct ak_error *error);

/* The whole number under `key`; absent: the fallback. */
ak_status ak_hf_quant_integer(const struct ak_hf_quant *q, const json_t *object, const char *key,
                              int64_t fallback, int64_t *out, struct ak_error *error);

/* The string under `key`; absent or no string: NULL. */
const char *ak_hf_quant_text(const json_t *object, const char *key);

/* The data of a tensor, as it lies. */
struct ak_plane ak_hf_tensor_plane(const struct ak_hf *h, const struct ak_hf_tensor *t);

#endif
