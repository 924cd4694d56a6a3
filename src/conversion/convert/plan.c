/* Plans the tensors of the new file: their names, types and shapes, and the rows of the source
 * that each takes. Shapes must be known before the data, since GGUF lists tensors first. */
#include <stdio.h>
#include <string.h>

#include "conversion/convert/convert.h"
#include "engine/pack/pack.h"
#include "engine/spec/arch.h"
#include "files/weights/composed.h"
#include "files/weights/formats.h"
#include "base/array.h"

static ak_status new_tensor(struct ak_convert_plan *plan, struct ak_convert_tensor **out,
                            struct ak_error *error)
{
    AK_TRY(ak_reserve_or_fail(&plan->tensors, &plan->capacity, plan->n, 1, "a list of tensors",
                              error));
    *out = &plan->tensors[plan->n++];
    **out = (struct ak_convert_tensor){ .layer = AK_ROLE_NO_LAYER };
    return AKUNU_OK;
}

/* Kernels of convolutions have rows of 3 elements and are never quantized. */
static bool is_kernel(const struct ak_convert_tensor *t, bool has_role)
{
    return has_role && (t->role == AK_ROLE_ENCODER_CONV1 || t->role == AK_ROLE_ENCODER_CONV2);
}

/* Types without a GGUF number become F32, and so does F64, which llama.cpp does not run; 8-bit
 * floats become F16. Rows that do not fill blocks become F16. Integers, which no model uses, stay.
 */
static ak_status choose_type(struct ak_convert_plan *plan, struct ak_convert_tensor *t,
                             enum ak_quant_type stored, bool has_role, struct ak_error *error)
{
    uint32_t number;
    uint64_t rows = 1;
    t->has_role = has_role;
    t->stored = stored;
    t->type = plan->has_type && !ak_convert_is_integer(stored) ? plan->type : stored;
    if (t->type == AK_QUANT_F64 || !ak_ggml_type_number(t->type, &number))
        t->type = t->type == AK_QUANT_F8 ? AK_QUANT_F16 : AK_QUANT_F32;
    if (ak_convert_stays_float(t) && !ak_convert_is_integer(stored) &&
        !(t->is_stored && !plan->has_type))
        t->type = AK_QUANT_F32;
    if (is_kernel(t, has_role) && ak_quant_info(t->type)->block_elems > 1)
        t->type = AK_QUANT_F16;
    t->wanted = t->type;
    if (t->shape[t->n_dims - 1] % ak_quant_info(t->type)->block_elems != 0)
        t->type = AK_QUANT_F16;
    for (unsigned d = 0; d + 1 < t->n_dims; d++)
        rows *= t->shape[d]; /* the provider has checked for overflow */
    if (!ak_quant_row_bytes(t->type, t->shape[t->n_dims - 1], &t->bytes) ||
        !ak_mul_u64(t->bytes, rows, &t->bytes))
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s: its size overflows 64 bits", t->name);
    plan->type_bytes[t->type] += t->bytes;
    return AKUNU_OK;
}

/* ---- From GGUF: names and shapes stay ----------------------------------- */
static ak_status plan_stored(struct ak_convert_plan *plan, struct ak_error *error)
{
    struct ak_tensor tensor;
    struct ak_convert_tensor *t = NULL;
    for (size_t i = 0; ak_provider_tensor(plan->source, i, &tensor); i++) {
        AK_TRY(new_tensor(plan, &t, error));
        t->is_stored = true;
        t->index = i;
        t->n_dims = tensor.n_dims;
        t->role = tensor.role;
        memcpy(t->shape, tensor.shape, sizeof t->shape);
        if (snprintf(t->name, sizeof t->name, "%s", tensor.name) >= (int)sizeof t->name)
            return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s: the name is too long for GGUF",
                           t->name);
        AK_TRY(choose_type(plan, t, tensor.type, tensor.has_role, error));
    }
    return AKUNU_OK;
}

/* ---- From Hugging Face's names: what the architecture declares ---------- */
/* Two orders differ. Rotated pairs of a head: Hugging Face stores all first elements, then all
 * second ones; GGUF stores the two of a pair side by side. Value heads of one key head: neighbors
 * in Hugging Face, n_k_heads apart in GGUF. */
static void choose_order(const struct ak_spec *spec, struct ak_convert_tensor *t)
{
    const struct ak_spec_config *c = &spec->config;
    struct ak_convert_order pairs = { 0 }, heads = { 0 }, gates = { 0 };
    if (spec->arch->gguf_interleaved)
        pairs = (struct ak_convert_order){ .a = 2, .b = c->head_dim / 2, .size = 1 };
    if (spec->arch->gguf_tiled && c->delta_v_heads > c->delta_k_heads) {
        heads = (struct ak_convert_order){ .a = c->delta_k_heads,
                                           .b = c->delta_v_heads / c->delta_k_heads,
                                           .size = c->delta_v_dim };
        gates = heads;
        gates.size = 1;
    }
    switch (t->role) {
    case AK_ROLE_ATTENTION_Q:
    case AK_ROLE_ATTENTION_Q_BIAS:
    case AK_ROLE_ATTENTION_K:
    case AK_ROLE_ATTENTION_K_BIAS: t->rows = pairs; break;
    case AK_ROLE_ATTENTION_QKV:
    case AK_ROLE_DELTA_KERNEL:
        t->rows = heads;
        t->rows.first = heads.size > 0 ? 2 * c->delta_k_heads * c->delta_k_dim : 0;
        break;
    case AK_ROLE_ATTENTION_GATE: t->rows = heads; break;
    case AK_ROLE_DELTA_OUTPUT: t->cols = heads; break;
    case AK_ROLE_DELTA_BETA:
    case AK_ROLE_DELTA_ALPHA:
    case AK_ROLE_DELTA_ALPHA_BIAS:
    case AK_ROLE_DELTA_DECAY: t->rows = gates; break;
    default: break;
    }
}

/* Sets the shape from the parts, which binding has checked. False: the model has no such weight. */
static bool set_shape_from_parts(const struct ak_binding *bound, struct ak_convert_tensor *t,
                                 enum ak_quant_type *stored)
{
    enum ak_role_kind kind = ak_role_kind(t->role);
    uint64_t rows = 0, cols = 0;
    if (t->role == AK_ROLE_OUTPUT && bound->tied)
        return false;
    for (uint32_t i = 0; i < t->n_parts; i++) {
        const struct ak_convert_part *part = &t->parts[i];
        const struct ak_view *view = ak_bind_find(bound, part->rule->role, t->layer);
        if (!view)
            return false;
        /* a matrix of one row has 2 dimensions, too */
        t->n_dims = kind == AK_ROLE_KIND_EXPERTS ? 3 :
                    kind == AK_ROLE_KIND_MATRIX  ? 2 :
                                                   view->n_dims;
        rows += t->n_dims == 1 ? view->cols :
                part->step > 0 ? view->rows / part->step * part->n :
                                 view->rows;
        cols = view->cols;
        *stored =
            ak_composed_order(view) ? AK_QUANT_F16 : view->type; /* GGUF has no order of columns */
    }
    /* whether the source stores the experts as one tensor or as many */
    uint32_t matrices = t->n_dims == 3 ? bound->spec->config.n_experts : 1;
    if (t->role == AK_ROLE_POSITION_EMBEDDING)
        t->first_row = bound->spec->config.first_position; /* GGUF has none before it */
    t->shape[0] = matrices;
    t->shape[t->n_dims - 1] = cols;
    t->shape[t->n_dims == 3] = (rows - t->first_row) / matrices;
    return true;
}

static ak_status set_name(struct ak_convert_tensor *t, enum ak_role stored,
                          const struct ak_spec *spec, struct ak_error *error)
{
    const char *pattern = ak_arch_gguf_tensor(spec->arch, stored);
    char role[AK_ROLE_NAME_BYTES];
    if (!pattern)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "GGUF has no name for %s of architecture %s",
                       ak_role_name(stored, t->layer, role), spec->arch->names[0]);
    ak_role_expand(pattern, t->layer, t->name);
    return AKUNU_OK;
}

/* Arguments of planning: the bound weights. */
struct planner {
    struct ak_convert_plan *plan;
    const struct ak_binding *bound;
    struct ak_error *error;
};

/* Completes the new tensor t; its parts are set. `stored`: the role of its name in GGUF, which may
 * be a merged one. Drops t if the model has no such weights. */
static ak_status finish_tensor(const struct planner *p, struct ak_convert_tensor *t,
                               enum ak_role stored)
{
    const struct ak_spec *spec = p->plan->spec;
    enum ak_quant_type type = AK_QUANT_F32;
    if (!set_shape_from_parts(p->bound, t, &type)) {
        p->plan->n--;
        return AKUNU_OK;
    }
    AK_TRY(set_name(t, stored, spec, p->error));
    choose_order(spec, t);
    t->offset = ak_arch_norm_offset(spec->arch, t->role);
    t->decay = t->role == AK_ROLE_DELTA_DECAY;
    AK_TRY(choose_type(p->plan, t, type, true, p->error));
    if (t->cols.size > 0 && ak_quant_info(type)->block_elems > 1)
        return ak_fail(
            p->error, AKUNU_ERROR_UNSUPPORTED,
            "%s is quantized, and GGUF has its columns in another order; expected floats", t->name);
    return AKUNU_OK;
}

/* Splits the matrix that computes q, k, v and z of each key head side by side into two tensors:
 * q, k, v; and z. */
static ak_status plan_split_qkvz(const struct planner *p, const struct ak_arch_rule *rule,
                                 int layer)
{
    const struct ak_spec_config *c = &p->plan->spec->config;
    uint32_t keys = c->delta_k_dim, values = c->delta_v_heads / c->delta_k_heads * c->delta_v_dim,
             step = 2 * (keys + values);
    const struct ak_convert_part parts[] = { { rule, 0, keys, step },
                                             { rule, keys, keys, step },
                                             { rule, 2 * keys, values, step },
                                             { rule, 2 * keys + values, values, step } };
    struct ak_convert_tensor *t = NULL;
    for (int i = 0; i < 2; i++) {
        AK_TRY(new_tensor(p->plan, &t, p->error));
        t->layer = layer;
        t->role = i == 0 ? AK_ROLE_ATTENTION_QKV : AK_ROLE_ATTENTION_GATE;
        t->n_parts = i == 0 ? 3 : 1;
        memcpy(t->parts, parts + (i == 0 ? 0 : 3), t->n_parts * sizeof *parts);
        AK_TRY(finish_tensor(p, t, t->role));
    }
    return AKUNU_OK;
}

static bool is_convolution(enum ak_role role)
{
    return role == AK_ROLE_ENCODER_CONV1 || role == AK_ROLE_ENCODER_CONV1_BIAS ||
           role == AK_ROLE_ENCODER_CONV2;
}

/* A kernel of a convolution, [outputs][inputs][taps], or its bias: binding has made other matrices
 * of them, GGUF has them as they were. */
static ak_status plan_convolution(const struct planner *p, const struct ak_arch_rule *rule)
{
    const struct ak_spec_config *c = &p->plan->spec->config;
    struct ak_view view;
    struct ak_tensor tensor = { 0 };
    struct ak_convert_tensor *t = NULL;
    size_t i = 0;
    bool is_bias = rule->role == AK_ROLE_ENCODER_CONV1_BIAS;
    ak_provider_find(p->plan->source, rule->role, AK_ROLE_NO_LAYER, rule->hf, &view);
    while (ak_provider_tensor(p->plan->source, i, &tensor) && strcmp(tensor.name, view.name) != 0)
        i++;
    AK_TRY(new_tensor(p->plan, &t, p->error));
    t->is_stored = true;
    t->index = i;
    t->role = rule->role;
    t->n_dims = is_bias ? 1 : 3;
    t->shape[0] = c->width;
    if (!is_bias) {
        t->shape[1] = rule->role == AK_ROLE_ENCODER_CONV1 ? c->n_mels : c->width;
        t->shape[2] = view.cols;
    }
    AK_TRY(set_name(t, rule->role, p->plan->spec, p->error));
    return choose_type(p->plan, t, tensor.type, true, p->error);
}

static ak_status plan_weight(const struct planner *p, const struct ak_arch_rule *rule, int layer)
{
    const struct ak_spec *spec = p->plan->spec;
    const struct ak_arch_merged_tensor *whole = ak_arch_find_merged(spec->arch, rule->role);
    struct ak_convert_tensor *t = NULL;
    if (whole && whole->parts[0] != rule->role)
        return AKUNU_OK; /* written with the first of them */
    if (rule->role == AK_ROLE_DELTA_QKVZ)
        return plan_split_qkvz(p, rule, layer);
    if (is_convolution(rule->role))
        return plan_convolution(p, rule);
    AK_TRY(new_tensor(p->plan, &t, p->error));
    t->layer = layer;
    t->role = rule->role;
    t->n_parts = whole ? whole->n_parts : 1;
    for (uint32_t i = 0; i < t->n_parts; i++)
        t->parts[i].rule = whole ? ak_arch_find_rule(spec->arch, whole->parts[i]) : rule;
    return finish_tensor(p, t, whole ? whole->stored : rule->role);
}

/* Tensors of rotation divisors; Hugging Face has these numbers in config.json. */
static ak_status plan_divisors(struct ak_convert_plan *plan, struct ak_error *error)
{
    static const enum ak_role roles[] = { AK_ROLE_ROPE_FREQS, AK_ROLE_ROPE_FACTORS_LONG,
                                          AK_ROLE_ROPE_FACTORS_SHORT };
    struct ak_convert_tensor *t = NULL;
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        if (!ak_spec_has_rope_divisors(plan->spec, roles[i]))
            continue;
        if (!ak_arch_find_rule(plan->spec->arch, roles[i]))
            return ak_fail(
                error, AKUNU_ERROR_UNSUPPORTED,
                "GGUF cannot express the rope scaling of this model: architecture %s has no %s",
                plan->spec->arch->names[0], ak_gguf_name(roles[i]));
        AK_TRY(new_tensor(plan, &t, error));
        t->role = roles[i];
        t->n_dims = 1;
        t->shape[0] = plan->spec->config.rope_dims / 2;
        AK_TRY(set_name(t, roles[i], plan->spec, error));
        AK_TRY(choose_type(plan, t, AK_QUANT_F32, true, error));
    }
    return AKUNU_OK;
}

/* The head for scores, under llama.cpp's names. */
static ak_status plan_head(struct ak_convert_plan *plan, struct ak_error *error)
{
    const struct ak_spec_head *h = &plan->spec->head;
    const struct {
        int64_t index;
        const char *name;
    } parts[] = { { h->dense, "cls.weight" },
                  { h->dense_bias, "cls.bias" },
                  { h->out, "cls.output.weight" },
                  { h->out_bias, "cls.output.bias" } };
    struct ak_convert_tensor *t = NULL;
    struct ak_tensor tensor;
    for (size_t i = 0; h->n_labels > 0 && i < sizeof parts / sizeof *parts; i++) {
        if (parts[i].index < 0)
            continue;
        ak_provider_tensor(plan->source, (size_t)parts[i].index, &tensor);
        AK_TRY(new_tensor(plan, &t, error));
        t->is_stored = true;
        t->index = (size_t)parts[i].index;
        t->n_dims = tensor.n_dims;
        memcpy(t->shape, tensor.shape, sizeof t->shape);
        snprintf(t->name, sizeof t->name, "%s", parts[i].name);
        AK_TRY(choose_type(plan, t, tensor.type, false, error));
    }
    return AKUNU_OK;
}

static ak_status plan_layers(const struct planner *p, uint32_t n, bool of_encoder)
{
    const struct ak_arch *arch = p->plan->spec->arch;
    for (uint32_t layer = 0; layer < n; layer++)
        for (uint32_t i = 0; i < arch->n_weights; i++) {
            enum ak_role role = arch->weights[i].role;
            if (ak_role_has_layer(role) && ak_role_is_encoder(role) == of_encoder)
                AK_TRY(plan_weight(p, &arch->weights[i], (int)layer));
        }
    return AKUNU_OK;
}

static ak_status plan_weights(const struct planner *p)
{
    const struct ak_arch *arch = p->plan->spec->arch;
    for (uint32_t i = 0; i < arch->n_weights; i++)
        if (!ak_role_has_layer(arch->weights[i].role))
            AK_TRY(plan_weight(p, &arch->weights[i], AK_ROLE_NO_LAYER));
    AK_TRY(plan_layers(p, p->plan->spec->config.n_encoder_layers, true));
    return plan_layers(p, p->plan->spec->config.n_layers, false);
}

ak_status ak_convert_plan_tensors(struct ak_convert_plan *plan, const struct ak_log *log,
                                  struct ak_error *error)
{
    struct ak_binding bound;
    if (!plan->spec)
        return plan_stored(plan, error);
    const struct ak_spec_config *c = &plan->spec->config;
    if (plan->spec->arch->gguf_interleaved && c->rope_dims != c->head_dim)
        return ak_fail(
            error, AKUNU_ERROR_UNSUPPORTED,
            "%u of a head's %u dimensions turn; GGUF permutes those of this architecture all alike",
            c->rope_dims, c->head_dim);
    AK_TRY(plan_divisors(plan, error));
    ak_status status = ak_bind(plan->source, plan->spec, AK_BIND_SHAPES, log, &bound, error);
    if (status == AKUNU_ERROR_FORMAT)
        ak_spec_explain_sizes(plan->source, plan->spec, error);
    AK_TRY(status);
    status = plan_weights(&(struct planner){ plan, &bound, error });
    if (status == AKUNU_OK)
        status = plan_head(plan, error);
    ak_binding_clear(&bound);
    return status;
}
