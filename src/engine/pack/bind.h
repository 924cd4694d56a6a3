/* Helpers that bind a file's tensors to the roles of the model (files/weights/role.h): they check
 * shapes, transpose matrices, find experts' weights and keep copies where a weight is no view of
 * the file. Private to bind.c, bind_copies.c, bind_experts.c, bind_convolution.c, bind_output.c and
 * shard.c.
 */
#ifndef AK_ENGINE_PACK_BIND_H
#define AK_ENGINE_PACK_BIND_H

#include "engine/pack/pack.h"

/* Shape of a weight. A vector has one row; experts' weights are n_matrices of rows × cols. */
struct ak_bind_shape {
    uint64_t n_matrices, rows, cols;
    bool vector;
};

struct ak_bind_shape ak_bind_expected_shape(const struct ak_spec *spec,
                                            const struct ak_arch_rule *rule);

/* Checks the view's shape, and that its type can be computed with. The message names the tensor,
 * what was found and what was expected. */
ak_status ak_bind_check_shape(const struct ak_view *view, const struct ak_bind_shape *shape,
                              struct ak_error *error);

/* Owned buffer: memory that the binding frees. `source`: what it copies, NULL: none. */
struct ak_bind_buffer {
    const void *source;
    void *data;
};

/* Gives `data` to the binding, which frees it; on failure it is freed at once. */
ak_status ak_bind_own_buffer(struct ak_binding *b, const void *source, void *data,
                             struct ak_error *error);

/* The rows of one rank; all 0: the weight has none of its own. */
struct ak_bind_shard {
    struct ak_view view;
    uint32_t first, all;
};

/* Matrix of elements of `size` bytes. A transpose copies in[r · stride + c · step] to
 * out[c · rows + r]. */
struct ak_bind_strided_matrix {
    const uint8_t *in;
    size_t rows, cols, stride, step, size;
};
void ak_bind_transpose(const struct ak_bind_strided_matrix *t, uint8_t *out);

/* Replaces the view of a matrix of floats that is stored as [cols, rows] by one of a transposed
 * copy, which the parts of one tensor share (bind_copies.c). */
ak_status ak_bind_columns(struct ak_binding *b, struct ak_view *view, struct ak_error *error);

/* Replaces a view of F64 by one of a copy in F32; other views stay (bind_copies.c). */
ak_status ak_bind_doubles(struct ak_binding *b, struct ak_view *view, struct ak_error *error);

/* Replaces the view of a convolution or its bias by what a product over whole positions needs
 * (bind_convolution.c); views of other roles stay. */
ak_status ak_bind_convolution(struct ak_binding *b, enum ak_role role, struct ak_view *view,
                              struct ak_error *error);

/* Experts' weights of a Hugging Face checkpoint, in any of its layouts (bind_experts.c). *found is
 * false if there are none. */
ak_status ak_bind_experts(const struct ak_provider *p, const struct ak_arch_rule *rule, int layer,
                          struct ak_binding *b, struct ak_view *view, bool *found,
                          struct ak_error *error);

/* Fails because the weight of a rule is missing; the message says what is there (bind_missing.c).
 */
ak_status ak_bind_fail_missing(const struct ak_provider *p, const struct ak_binding *b,
                               const struct ak_arch_rule *rule, enum ak_role stored, int layer,
                               struct ak_error *error);
/* Adds to the failure `status` of the tensor of that name that it is a quantized matrix without
 * settings, if the tensors next to it tell so. Returns the status of both. */
ak_status ak_bind_explain_quantized(const struct ak_provider *p, const char *name, ak_status status,
                                    struct ak_error *error);

/* Decides what serves as output matrix, after the search for one: `found` says whether *view is it
 * (bind_output.c). Sets b->tied and clears *view if the embedding serves as one. */
ak_status ak_bind_output(const struct ak_provider *p, bool found, struct ak_binding *b,
                         struct ak_view *view, struct ak_error *error);

#endif
