/* Narrows the bound weights to the rows of one rank: views of the same tensors, so that nothing of
 * the other rows is read. */
#include <string.h>

#include "base/mem.h"
#include "engine/pack/bind.h"
#include "engine/spec/arch.h"
#include "files/weights/composed.h"

/* Rows of one matrix, or elements of one vector, that a rank has. */
struct range {
    uint32_t first, n, all;
    uint32_t n_matrices; /* or vectors */
};

static uint32_t index_of(const struct ak_binding *b, const struct ak_view *view)
{
    return (uint32_t)(view - b->views);
}

/* Narrows one matrix, whose rows begin at `first` of the tensor. */
static struct ak_view narrow_matrix(const struct ak_view *view, uint32_t first,
                                    const struct range *range)
{
    struct ak_view out = *view;
    out.rows = range->n;
    out.n_dims = 2;
    out.expert_views = NULL;
    out.first_row += (first + range->first) * (view->is_interleaved ? 2u : 1u);
    if (view->composed_tensor)
        return out;
    out.first_row = 0;
    uint64_t row_bytes = view->plane[0].bytes / view->rows;
    out.plane[0].data =
        (const uint8_t *)view->plane[0].data + row_bytes * ((uint64_t)first + range->first);
    out.plane[0].bytes = row_bytes * range->n;
    return out;
}

/* A list of the experts' matrices. */
static ak_status narrow_experts(struct ak_binding *b, const struct ak_view *view,
                                const struct range *range, struct ak_view *out,
                                struct ak_error *error)
{
    struct ak_view *matrices = ak_alloc(range->n_matrices, sizeof *matrices);
    if (!matrices)
        return ak_fail_memory(error, "a list of experts", range->n_matrices * sizeof *matrices);
    AK_TRY(ak_bind_own_buffer(b, NULL, matrices, error));
    *out = *view;
    out->rows = range->n * range->n_matrices;
    out->expert_views = matrices;
    for (uint32_t e = 0; e < range->n_matrices; e++)
        matrices[e] = view->expert_views ? narrow_matrix(&view->expert_views[e], 0, range) :
                                           narrow_matrix(view, e * range->all, range);
    if (!view->composed_tensor)
        out->plane[0] = (struct ak_plane){ matrices[0].plane[0].data,
                                           matrices[0].plane[0].bytes * range->n_matrices };
    return AKUNU_OK;
}

/* Vectors are few bytes: the rank's elements are copied as floats. */
static ak_status narrow_vectors(struct ak_binding *b, const struct ak_view *view,
                                const struct range *range, struct ak_view *out,
                                struct ak_error *error)
{
    size_t n = (size_t)range->n_matrices * range->n;
    float *row = ak_alloc(range->all, sizeof *row), *data = ak_alloc(n ? n : 1, sizeof *data);
    if (!row || !data) {
        ak_free(row);
        ak_free(data);
        return ak_fail_memory(error, "a vector", n * sizeof *data);
    }
    for (uint32_t v = 0; v < range->n_matrices; v++) {
        ak_pack_read_vector(view, v, row);
        memcpy(data + (size_t)v * range->n, row + range->first, range->n * sizeof *data);
    }
    ak_free(row);
    *out = (struct ak_view){ .type = AK_QUANT_F32,
                             .rows = range->n_matrices,
                             .cols = range->n,
                             .plane = { { data, n * sizeof *data } },
                             .name = view->name,
                             .n_dims = view->n_dims };
    return ak_bind_own_buffer(b, NULL, data, error);
}

/* Narrows the weight or bias of a role; linear AK_OP_LINEAR_COUNT: a vector of heads. */
static ak_status narrow(struct ak_binding *b, const struct ak_spec *spec, enum ak_op_linear linear,
                        enum ak_role role, int layer, struct ak_bind_shard *out,
                        struct ak_error *error)
{
    const struct ak_view *view = ak_bind_find(b, role, layer);
    const struct ak_arch_rule *rule = ak_arch_find_rule(spec->arch, role);
    bool is_vector = ak_role_is_vector(role);
    enum ak_spec_dim dim = !rule ? AK_SPEC_DIM_VOCAB /* a tied output */
                           :
                           is_vector ? rule->cols :
                                       rule->rows;
    struct range range = { .n_matrices = ak_role_is_expert(role) ? spec->config.n_experts : 1 };
    range.all = is_vector ? view->cols : view->rows / range.n_matrices;
    if (linear < AK_OP_LINEAR_COUNT) {
        ak_spec_shard_rows(spec, linear, dim, range.all, &range.first, &range.n);
    } else {
        range.first = spec->first_head;
        range.n = spec->config.n_heads;
    }
    out->first = range.first;
    out->all = range.all;
    if (range.n == range.all) {
        out->view = *view;
        return AKUNU_OK;
    }
    if (is_vector)
        return narrow_vectors(b, view, &range, &out->view, error);
    if (ak_role_kind(role) == AK_ROLE_KIND_EXPERTS)
        return narrow_experts(b, view, &range, &out->view, error);
    out->view = narrow_matrix(view, 0, &range);
    return AKUNU_OK;
}

static ak_status add_shard(struct ak_binding *b, const struct ak_spec *spec,
                           enum ak_op_linear linear, enum ak_role role, struct ak_error *error)
{
    bool is_layered = role < AK_ROLE_COUNT && ak_role_has_layer(role),
         is_tied = role == AK_ROLE_OUTPUT && b->tied;
    uint32_t n = role < AK_ROLE_COUNT ? ak_spec_role_layers(spec, role) : 0;
    for (uint32_t i = 0; i < n; i++) {
        int layer = is_layered ? (int)i : AK_ROLE_NO_LAYER;
        const struct ak_view *view = ak_bind_find(b, role, layer);
        if (view)
            AK_TRY(narrow(b, spec, linear, role, layer,
                          &b->shards[is_tied ? b->n_views : index_of(b, view)], error));
    }
    return AKUNU_OK;
}

ak_status ak_bind_take_shard(struct ak_binding *b, const struct ak_spec *spec,
                             struct ak_error *error)
{
    b->own = spec;
    if (!ak_spec_has_shards(spec))
        return AKUNU_OK;
    b->shards = ak_alloc(b->n_views + 1u, sizeof *b->shards);
    if (!b->shards)
        return ak_fail_memory(error, "a list of weights", (b->n_views + 1u) * sizeof *b->shards);
    for (int linear = 0; linear < AK_OP_LINEAR_COUNT; linear++) {
        const struct ak_op_linear_info *info = ak_op_linear_info((enum ak_op_linear)linear);
        for (uint32_t i = 0; i < info->n_parts; i++) {
            AK_TRY(add_shard(b, spec, (enum ak_op_linear)linear, info->parts[i].weight, error));
            AK_TRY(add_shard(b, spec, (enum ak_op_linear)linear, info->parts[i].bias, error));
        }
    }
    return add_shard(b, spec, AK_OP_LINEAR_COUNT, AK_ROLE_ATTENTION_SINKS, error);
}

bool ak_bind_find_rows(const struct ak_binding *b, enum ak_role role, int layer,
                       struct ak_bind_rows *out)
{
    const struct ak_view *view = ak_bind_find(b, role, layer);
    if (!view || (b->own && !ak_spec_has_weight(b->own, role, layer)))
        return false;
    uint32_t i = role == AK_ROLE_OUTPUT && b->tied ? b->n_views : index_of(b, view);
    const struct ak_bind_shard *shard = b->shards ? &b->shards[i] : NULL;
    *out = (struct ak_bind_rows){ .view = view,
                                  .all = ak_role_is_vector(role) ? view->cols :
                                         ak_role_is_expert(role) ? view->rows /
                                                                       b->spec->config.n_experts :
                                                                   view->rows };
    if (shard && shard->view.plane[0].data)
        *out = (struct ak_bind_rows){ &shard->view, shard->first, shard->all };
    return true;
}
