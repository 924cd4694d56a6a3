/* Plans the packed block: which parts of a linear operator fuse into one weight, and where each
 * packed weight goes. Reads the vectors as float32. */
#include <string.h>

#include "base/math.h"
#include "base/mem.h"
#include "engine/pack/pack.h"
#include "engine/spec/arch.h"
#include "files/weights/composed.h"

enum {
    PART_ALIGN = 16,    /* elements: parts of an output start at tiles */
    WEIGHT_ALIGN = 4096 /* bytes of the packed block */
};

/* Operators of layers come first, layer by layer; the others last. */
static bool is_per_layer(enum ak_op_linear linear)
{
    const struct ak_op_linear_info *info = ak_op_linear_info(linear);
    return info->n_parts > 0 && ak_role_has_layer(info->parts[0].weight);
}

static uint32_t operator_index(const struct ak_weights *w, enum ak_op_linear linear, int layer)
{
    return (uint32_t)linear * w->n_layers + (uint32_t)(layer == AK_ROLE_NO_LAYER ? 0 : layer);
}

void ak_pack_find_linear(const struct ak_weights *w, enum ak_op_linear linear, int layer,
                         uint32_t *first, uint32_t *n)
{
    uint32_t count = 0;
    *first = w->first_packed[operator_index(w, linear, layer)];
    while (*first + count < w->n_packed && w->packed[*first + count].linear == linear &&
           w->packed[*first + count].layer == layer)
        count++;
    *n = count;
}

uint32_t ak_pack_linear_width(const struct ak_weights *w, enum ak_op_linear linear, int layer)
{
    return w->widths[operator_index(w, linear, layer)];
}

uint32_t ak_pack_find_vector(const struct ak_weights *w, enum ak_role role, int layer)
{
    for (uint32_t i = 0; i < w->n_vectors; i++)
        if (w->vectors[i].role == role && w->vectors[i].layer == layer)
            return i;
    return AK_OP_NONE;
}

/* Most operator parts and vectors that the model can have. */
struct limits {
    uint32_t packed, vectors;
    uint64_t vector_elems;
};

static ak_status count_limits(const struct ak_binding *binding, struct limits *out,
                              struct ak_error *error)
{
    const struct ak_spec *spec = binding->spec;
    *out = (struct limits){ 0 };
    for (uint32_t i = 0; i < spec->arch->n_weights; i++) {
        const struct ak_arch_rule *rule = &spec->arch->weights[i];
        uint64_t layers = ak_spec_role_layers(spec, rule->role);
        if (ak_role_is_vector(rule->role)) {
            /* a bias is padded as its operator's output */
            uint64_t vectors =
                ak_role_is_expert(rule->role) ? layers * spec->config.n_experts : layers;
            out->vectors += (uint32_t)layers;
            out->vector_elems +=
                vectors * ((uint64_t)ak_spec_dim(spec, rule->rows) * ak_spec_dim(spec, rule->cols) +
                           AK_OP_LINEAR_PARTS_MAX * PART_ALIGN + ak_spec_dim(spec, AK_SPEC_DIM_Q) +
                           2u * ak_spec_dim(spec, AK_SPEC_DIM_KV));
        } else {
            out->packed += (uint32_t)layers;
        }
    }
    if (out->vector_elems > UINT32_MAX)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%llu elements in norms and biases",
                       (unsigned long long)out->vector_elems);
    return AKUNU_OK;
}

static struct ak_pack_vector *add_vector(struct ak_weights *w, enum ak_role role, int layer,
                                         uint32_t n)
{
    struct ak_pack_vector *v = &w->vectors[w->n_vectors++];
    *v = (struct ak_pack_vector){ .role = role,
                                  .layer = layer,
                                  .n = n,
                                  .data = w->vector_block + w->vector_bytes / sizeof(float) };
    w->vector_bytes += ak_round_up(n, PART_ALIGN) * sizeof(float);
    return v;
}

void ak_pack_read_vector(const struct ak_view *view, size_t row, float *out)
{
    const struct ak_quant_info *info = ak_quant_info(view->type);
    size_t step = view->is_interleaved ? 2 : 1;
    if (view->composed_tensor) {
        ak_composed_dequantize(view->composed_tensor, row, 0, view->cols, out);
        return;
    }
    const uint8_t *from =
        (const uint8_t *)view->plane[0].data + row * view->cols * step * info->block_bytes;
    for (size_t i = 0; step > 1 && i < view->cols; i++)
        info->dequantize(from + i * step * info->block_bytes, out + i, 1);
    if (step == 1)
        info->dequantize(from, out, view->cols);
}

/* The parts of an operator that the model has. */
struct parts {
    uint32_t n, width; /* width: elements of the output */
    uint32_t n_experts;
    struct ak_op_linear_part of[AK_OP_LINEAR_PARTS_MAX];
    struct ak_bind_rows rows[AK_OP_LINEAR_PARTS_MAX];
    uint32_t at[AK_OP_LINEAR_PARTS_MAX];
};

/* A composed tensor is always packed. */
uint64_t ak_pack_bytes(const struct ak_backend *backend, uint32_t layout,
                       const struct ak_view *view, uint32_t rows)
{
    uint64_t row_bytes = 0,
             bytes = backend->ops->packed_bytes(backend, layout, view->type, rows, view->cols);
    if (bytes > 0 || !view->composed_tensor)
        return bytes;
    (void)ak_quant_row_bytes(view->type, view->cols,
                             &row_bytes); /* cannot fail: checked when the file was opened */
    return ak_round_up(rows, PART_ALIGN) * row_bytes;
}

/* Adds one weight of parts [first, first + n) of an operator. */
static void add_packed(struct ak_weights *w, struct ak_backend *backend, enum ak_op_linear linear,
                       int layer, const struct parts *parts, uint32_t first, uint32_t n,
                       uint32_t bias)
{
    const struct ak_view *view = parts->rows[first].view;
    struct ak_pack_weight *packed = &w->packed[w->n_packed++];
    *packed = (struct ak_pack_weight){ .backend = backend,
                                       .linear = linear,
                                       .layer = layer,
                                       .type = view->type,
                                       .cols = view->cols,
                                       .n_experts = parts->n_experts,
                                       .n_parts = n,
                                       .bias = bias,
                                       .layout = backend->ops->layout(backend, linear, view),
                                       .order = ak_composed_order(view) };
    for (uint32_t i = 0; i < n; i++) {
        const struct ak_view *part = parts->rows[first + i].view;
        packed->parts[i] = (struct ak_pack_part){ .role = parts->of[first + i].weight,
                                                  .view = part,
                                                  .rows = part->rows,
                                                  .first_row = parts->rows[first + i].first,
                                                  .all_rows = parts->rows[first + i].all,
                                                  .output_offset = parts->at[first + i],
                                                  .offset = w->block_bytes + packed->bytes,
                                                  .data = part->plane[0].data };
        packed->bytes += ak_pack_bytes(backend, packed->layout, part, part->rows);
    }
    w->block_bytes += ak_round_up(packed->bytes, WEIGHT_ALIGN);
}

/* Bias of an operator; experts' biases one after another, each as wide as the whole output. */
static uint32_t plan_bias(struct ak_weights *w, const struct ak_binding *binding, int layer,
                          const struct parts *parts)
{
    struct ak_pack_vector *bias = NULL;
    uint32_t n = parts->n_experts ? parts->n_experts : 1;
    for (uint32_t i = 0; i < parts->n; i++) {
        struct ak_bind_rows rows;
        if (!ak_bind_find_rows(binding, parts->of[i].bias, layer, &rows))
            continue;
        if (!bias)
            bias = add_vector(w, parts->of[i].bias, layer, n * parts->width);
        for (uint32_t e = 0; e < n; e++)
            ak_pack_read_vector(rows.view, e, bias->data + (size_t)e * parts->width + parts->at[i]);
    }
    return bias ? (uint32_t)(bias - w->vectors) : AK_OP_NONE;
}

static ak_status find_parts(const struct ak_binding *binding, struct ak_backend *backend,
                            const struct ak_op_linear_info *info, int layer, struct parts *out,
                            struct ak_error *error)
{
    *out = (struct parts){ 0 };
    for (uint32_t i = 0; i < info->n_parts; i++) {
        struct ak_bind_rows rows;
        if (!ak_bind_find_rows(binding, info->parts[i].weight, layer, &rows))
            continue;
        const struct ak_view *view = rows.view;
        if (!backend->ops->supports(backend, AK_OP_LINEAR, view->type))
            return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                           "%s: the %s backend has no kernel for %s", view->name,
                           backend->ops->name, ak_quant_info(view->type)->name);
        if (ak_role_kind(info->parts[i].weight) == AK_ROLE_KIND_EXPERTS)
            out->n_experts = binding->spec->config.n_experts;
        out->of[out->n] = info->parts[i];
        out->rows[out->n] = rows;
        out->at[out->n++] = out->width;
        out->width +=
            (uint32_t)ak_round_up(view->rows / (out->n_experts ? out->n_experts : 1), PART_ALIGN);
    }
    return AKUNU_OK;
}

static bool same_order(const uint32_t *a, const uint32_t *b, uint32_t n)
{
    return a == b || (a && b && memcmp(a, b, n * sizeof *a) == 0);
}

bool ak_pack_has_same_order(const struct ak_pack_weight *a, const struct ak_pack_weight *b)
{
    return same_order(a->order, b->order, a->cols);
}

const uint8_t *ak_pack_matrix(const struct ak_pack_weight *packed, const struct ak_pack_part *part,
                              uint32_t e, uint64_t bytes)
{
    if (packed->bytes == 0 && part->view->expert_views)
        return part->view->expert_views[e].plane[0].data;
    return part->data + e * bytes;
}

uint64_t ak_pack_read_bytes(const struct ak_pack_weight *packed)
{
    uint64_t bytes = packed->bytes;
    for (uint32_t i = 0; packed->bytes == 0 && i < packed->n_parts; i++)
        for (int plane = 0; plane < AK_VIEW_PLANES_MAX; plane++)
            bytes += packed->parts[i].view->plane[plane].bytes;
    return bytes;
}

uint64_t ak_pack_token_bytes(const struct ak_pack_weight *packed, uint32_t n_experts_used)
{
    uint64_t bytes = ak_pack_read_bytes(packed);
    uint32_t n = packed->n_experts;
    return n > 0 && n_experts_used < n ? bytes / n * n_experts_used : bytes;
}

/* True if two parts fuse into one weight. A composed tensor never fuses with a stored one, since it
 * is packed even if its type, read from the file, is not. */
static bool can_fuse(const struct ak_view *a, const struct ak_view *b)
{
    return a->type == b->type && a->cols == b->cols && !a->composed_tensor == !b->composed_tensor &&
           same_order(ak_composed_order(a), ak_composed_order(b), a->cols);
}

static ak_status plan_operator(struct ak_weights *w, const struct ak_binding *binding,
                               struct ak_backend *backend, enum ak_op_linear linear, int layer,
                               struct ak_error *error)
{
    struct parts parts;
    backend = ak_backend_for_layer(backend, layer);
    AK_TRY(find_parts(binding, backend, ak_op_linear_info(linear), layer, &parts, error));
    if (parts.n == 0)
        return AKUNU_OK; /* the architecture has no such operator */
    uint32_t index = operator_index(w, linear, layer);
    w->first_packed[index] = w->n_packed;
    w->widths[index] = parts.width;
    uint32_t bias = plan_bias(w, binding, layer, &parts);
    for (uint32_t first = 0, n; first < parts.n; first += n) {
        n = 1;
        while (first + n < parts.n && can_fuse(parts.rows[first].view, parts.rows[first + n].view))
            n++;
        add_packed(w, backend, linear, layer, &parts, first, n, bias);
    }
    return AKUNU_OK;
}

static bool is_bias(enum ak_role role)
{
    for (int linear = 0; linear < AK_OP_LINEAR_COUNT; linear++)
        for (uint32_t i = 0; i < ak_op_linear_info((enum ak_op_linear)linear)->n_parts; i++)
            if (ak_op_linear_info((enum ak_op_linear)linear)->parts[i].bias == role)
                return true;
    return false;
}

/* Converters to GGUF have already added the norm offset and replaced logarithms of decays. */
static void read_vector(const struct ak_spec *spec, enum ak_role role, const struct ak_view *view,
                        float *out)
{
    size_t n = (size_t)view->rows * view->cols;
    float offset = ak_arch_norm_offset(spec->arch, role);
    for (uint32_t row = 0; row < view->rows; row++)
        ak_pack_read_vector(view, row, out + (size_t)row * view->cols);
    if (spec->config.naming != AK_PROVIDER_NAMING_HF)
        return;
    for (size_t i = 0; offset != 0.0f && i < n; i++)
        out[i] += offset;
    for (size_t i = 0; role == AK_ROLE_DELTA_DECAY && i < n; i++)
        out[i] = (float)-ak_exp((double)out[i]);
}

static void plan_vectors(struct ak_weights *w, const struct ak_binding *binding)
{
    const struct ak_spec *spec = binding->spec;
    for (uint32_t i = 0; i < spec->arch->n_weights; i++) {
        enum ak_role role = spec->arch->weights[i].role;
        if (ak_role_kind(role) != AK_ROLE_KIND_VECTOR || is_bias(role))
            continue;
        bool layered = ak_role_has_layer(role);
        for (uint32_t layer = 0; layer < ak_spec_role_layers(spec, role); layer++) {
            struct ak_bind_rows rows;
            int of = layered ? (int)layer : AK_ROLE_NO_LAYER;
            if (ak_bind_find_rows(binding, role, of, &rows))
                read_vector(spec, role, rows.view,
                            add_vector(w, role, of, rows.view->rows * rows.view->cols)->data);
        }
    }
}

static ak_status plan_weights(const struct ak_binding *binding, struct ak_backend *backend,
                              struct ak_weights *w, struct ak_error *error)
{
    struct limits limits;
    AK_TRY(count_limits(binding, &limits, error));
    w->n_layers = (uint32_t)ak_max_size(binding->spec->config.n_layers,
                                        binding->spec->config.n_encoder_layers);
    w->packed = ak_alloc(limits.packed + 1u, sizeof *w->packed); /* and a tied output */
    w->vectors = ak_alloc(limits.vectors, sizeof *w->vectors);
    w->vector_block = ak_pages_alloc(ak_max_size(limits.vector_elems, 1) * sizeof(float));
    w->vector_bytes = 0;
    w->vector_capacity = ak_max_size(limits.vector_elems, 1) * sizeof(float);
    w->first_packed = ak_alloc((size_t)AK_OP_LINEAR_COUNT * w->n_layers, sizeof *w->first_packed);
    w->widths = ak_alloc((size_t)AK_OP_LINEAR_COUNT * w->n_layers, sizeof *w->widths);
    if (!w->packed || !w->vectors || !w->vector_block || !w->first_packed || !w->widths)
        return ak_fail_memory(error, "the weight plan", limits.vector_elems * sizeof(float));
    w->embedding = ak_bind_find(binding, AK_ROLE_TOKEN_EMBEDDING, AK_ROLE_NO_LAYER);
    w->positions = ak_bind_find(binding, AK_ROLE_POSITION_EMBEDDING, AK_ROLE_NO_LAYER);
    w->encoder_positions =
        ak_bind_find(binding, AK_ROLE_ENCODER_POSITION_EMBEDDING, AK_ROLE_NO_LAYER);
    w->types = ak_bind_find(binding, AK_ROLE_TOKEN_TYPE_EMBEDDING, AK_ROLE_NO_LAYER);
    plan_vectors(w, binding);
    for (int layer = 0; layer < (int)w->n_layers; layer++)
        for (int linear = 0; linear < AK_OP_LINEAR_COUNT; linear++)
            if (is_per_layer((enum ak_op_linear)linear))
                AK_TRY(plan_operator(w, binding, backend, (enum ak_op_linear)linear, layer, error));
    for (int linear = 0; linear < AK_OP_LINEAR_COUNT; linear++)
        if (!is_per_layer((enum ak_op_linear)linear))
            AK_TRY(plan_operator(w, binding, backend, (enum ak_op_linear)linear, AK_ROLE_NO_LAYER,
                                 error));
    return AKUNU_OK;
}

ak_status ak_pack_plan(const struct ak_binding *binding, struct ak_backend *backend,
                       struct ak_weights *out, struct ak_error *error)
{
    *out = (struct ak_weights){ 0 };
    ak_status status = plan_weights(binding, backend, out, error);
    if (status != AKUNU_OK)
        ak_pack_clear(out);
    return status;
}

void ak_pack_clear(struct ak_weights *w)
{
    if (w->block && w->block_mapped)
        ak_unmap(w->block, w->block_bytes);
    else if (w->block)
        ak_pages_free(w->block, w->block_bytes);
    if (w->vector_block)
        ak_pages_free(w->vector_block, w->vector_capacity);
    ak_pack_clear_adapters(w);
    ak_free(w->packed);
    ak_free(w->vectors);
    ak_free(w->first_packed);
    ak_free(w->widths);
    *w = (struct ak_weights){ 0 };
}
