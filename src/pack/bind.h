/* What the files that bind weights share; private to this folder. */
#ifndef AK_PACK_BIND_H
#define AK_PACK_BIND_H

#include "pack/pack.h"

/* Of a weight; a vector has one row. Those of experts are `n_matrices` of them. */
struct ak_bind_shape {
    uint64_t n_matrices, rows, cols;
    bool vector;
};

struct ak_bind_shape ak_bind_expected_shape(const struct ak_spec *spec,
                                            const struct ak_family_rule *rule);

/* Whether the view has that shape, and a type that is computed with; the message
 * names the tensor, what was found and what was expected. */
ak_status ak_bind_check_shape(const struct ak_view *view, const struct ak_bind_shape *shape,
                              struct ak_error *error);

/* Memory of the binding's own: a copy of what lies at `source`, or a list (NULL). */
struct ak_bind_buffer {
    const void *source;
    void *data;
};

/* Gives `data` to the binding, which frees it; on failure it is freed at once. */
ak_status ak_bind_own_buffer(struct ak_binding *b, const void *source, void *data,
                             struct ak_error *error);

/* Elements of `size` bytes at in[r · stride + c · step] go to out[c · rows + r]. */
struct ak_bind_strided_matrix {
    const uint8_t *in;
    size_t rows, cols, stride, step, size;
};
void ak_bind_transpose(const struct ak_bind_strided_matrix *t, uint8_t *out);

/* bind_experts.c: the weights of all experts in a Hugging Face checkpoint, whichever
 * way it has them. *found is false where there are none. */
ak_status ak_bind_experts(const struct ak_provider *p, const struct ak_family_rule *rule, int layer,
                          struct ak_binding *b, struct ak_view *view, bool *found,
                          struct ak_error *error);

#endif
