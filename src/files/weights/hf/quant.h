/* Interface of quantization schemes, which compose weights from stored tensors. quant.c finds the
 * scheme that config.json names. Private to this folder; npy_dir.c uses only the helpers. One file
 * per scheme:
 *
 *     mlx.c                  "quantization": MLX's affine and MXFP4 modes
 *     gptq.c                 quant_method gptq; gptq_dynamic.c: its per-module settings
 *     awq.c                  quant_method awq
 *     fp8.c                  quant_method fp8, fbgemm_fp8; compressed-tensors with floats
 *     compressed_tensors.c   compressed-tensors with integers
 */
#ifndef AK_FILES_WEIGHTS_HF_QUANT_H
#define AK_FILES_WEIGHTS_HF_QUANT_H

#include "files/weights/composed.h"
#include "files/weights/hf/hf.h"

struct ak_hf_scheme;

struct ak_hf_quant {
    const struct ak_hf *h;
    const struct ak_hf_scheme *scheme;
    const json_t *config; /* the object that describes the quantization */
    const char *where;    /* its file and key, for messages */
    json_t *own_config;   /* that of a file of its own; NULL: config.json has it */
    uint32_t bits, group; /* defaults for all modules */
    bool scheme_flag;     /* private to the scheme */
    void *scheme_data;    /* private to the scheme; freed by `end` */
};

struct ak_hf_scheme {
    const char *quants_suffix;     /* suffix of tensors with quants: ".qweight" */
    const char *plane_suffixes[7]; /* suffixes of their planes; NULL ends */
    unsigned types;                /* of the quants: bits 1 << (type − AK_QUANT_STORED_FIRST) */
    const char *weight_suffix;     /* suffix of the weight's name: ".weight" */
    /* Reads and checks the configuration. */
    ak_status (*read)(struct ak_hf_quant *q, struct ak_error *error);
    /* Frees scheme_data; called even if `read` failed. NULL: nothing to free. */
    void (*end)(struct ak_hf_quant *q);
    /* Fills `out` from the tensors of `module` and checks their shapes. *plain: the module has no
     * planes; the tensor is not quantized. */
    ak_status (*compose)(const struct ak_hf_quant *q, const char *module,
                         const struct ak_hf_tensor *weight, struct ak_composed_tensor *out,
                         bool *plain, struct ak_error *error);
};

extern const struct ak_hf_scheme ak_hf_mlx, ak_hf_gptq, ak_hf_awq, ak_hf_fp8, ak_hf_pack_quantized,
    ak_hf_int_quantized;

/* Finds the settings and the scheme, and reads them (quant_method.c). No scheme: nothing is known
 * to be quantized. After a failure too, the caller frees own_config. */
ak_status ak_hf_find_scheme(struct ak_hf_quant *q, struct ak_error *error);

/* The tensor MODULE + SUFFIX, and its data in *plane; NULL: no such tensor. */
const struct ak_hf_tensor *ak_hf_find_plane(const struct ak_hf_quant *q, const char *module,
                                            const char *suffix, struct ak_plane *plane);

/* The same for a required tensor of floats. */
ak_status ak_hf_find_factors(const struct ak_hf_quant *q, const char *module, const char *suffix,
                             const struct ak_hf_tensor **tensor, struct ak_plane *plane,
                             struct ak_error *error);

/* Fails unless the tensor has this shape of `n` dimensions. The message names the tensor. */
ak_status ak_hf_expect_shape(const struct ak_hf_tensor *t, const uint64_t *shape, unsigned n,
                             struct ak_error *error);

/* GPTQ and AWQ: `weight` has the numbers of `rows` outputs and `in` inputs. Beside it are
 * MODULE.scales [groups, rows] and MODULE.qzeros [groups, rows · bits / 32]. Fills `out`, except
 * scheme and name, from these and from q's bits and group (0: one group of all inputs). */
ak_status ak_hf_read_linear(const struct ak_hf_quant *q, const char *module,
                            const struct ak_hf_tensor *weight, uint64_t rows, uint64_t in,
                            struct ak_composed_tensor *out, struct ak_error *error);

/* Reads the group of each input from MODULE + SUFFIX, into plane 3. If the groups are not in order,
 * sets *is_ordered to false and out->order so that any 32 columns share one group; if there is no
 * such order, out->type becomes F16. */
ak_status ak_hf_read_groups(const struct ak_hf_quant *q, const char *module, const char *suffix,
                            struct ak_composed_tensor *out, bool *is_ordered,
                            struct ak_error *error);

/* group_size of an object of the configuration; −1 gives 0. */
ak_status ak_hf_read_group_size(const struct ak_hf_quant *q, const json_t *object,
                                uint32_t fallback, uint32_t *out, struct ak_error *error);

/* The integer under `key`; absent: `fallback`. */
ak_status ak_hf_quant_integer(const struct ak_hf_quant *q, const json_t *object, const char *key,
                              int64_t fallback, int64_t *out, struct ak_error *error);

/* The string under `key`; NULL: absent, or not a string. */
const char *ak_hf_quant_text(const json_t *object, const char *key);

/* The tensor's data in the map. */
struct ak_plane ak_hf_tensor_plane(const struct ak_hf *h, const struct ak_hf_tensor *t);

/* ---- gptq_dynamic.c ----------------------------------------------------- */
/* GPTQModel's per-module settings: "dynamic" is an object of regular expressions, which are matched
 * from the start of a module's name, and of the settings for modules that match.
 *
 *     "+:PATTERN", "PATTERN"   {"bits", "group_size", ...} replace the settings of config.json
 *     "-:PATTERN"              the module is not quantized
 *
 * The first match counts. Used by gptq.c only. */
struct ak_hf_gptq_dynamic;

/* *out = NULL: there are no such settings. */
ak_status ak_hf_gptq_dynamic_read(const struct ak_hf_quant *q, struct ak_hf_gptq_dynamic **out,
                                  struct ak_error *error);

/* *settings = NULL: the module has none. d may be NULL. */
ak_status ak_hf_gptq_dynamic_find(const struct ak_hf_gptq_dynamic *d, const char *where,
                                  const char *module, const json_t **settings,
                                  struct ak_error *error);
void ak_hf_gptq_dynamic_free(struct ak_hf_gptq_dynamic *d); /* NULL allowed */

#endif
