#include <stdio.h>
#include <string.h>

#include "convert/convert.h"
#include "pack/weights.h"
#include "weights/ggml_type.h"

static ak_status next(struct ak_out_plan *plan, struct ak_out_tensor **out, struct ak_error *error)
{
    if (plan->n == plan->capacity) {
        size_t capacity = plan->capacity ? 2 * plan->capacity : 256;
        void *grown = ak_realloc(plan->tensors, capacity, sizeof *plan->tensors);
        if (!grown)
            return ak_fail_memory(error, "a list of tensors", capacity * sizeof *plan->tensors);
        plan->tensors = grown;
        plan->capacity = capacity;
    }
    *out = &plan->tensors[plan->n++];
    **out = (struct ak_out_tensor){ .layer = AK_NO_LAYER };
    return AKUNU_OK;
}

/* What llama.cpp wants as floats whatever the type of the others. */
static bool stays_float(const struct ak_out_tensor *t, bool has_role)
{
    if (t->n_dims == 1 || !has_role)
        return t->n_dims == 1;
    enum ak_role_kind kind = ak_role_kind(t->role);
    return kind == AK_ROLE_KIND_VECTOR || kind == AK_ROLE_KIND_EXPERT_VECTORS || t->role == AK_ROLE_POSITION_EMBEDDING ||
           t->role == AK_ROLE_FFN_ROUTER;
}

/* Types that GGUF has no number for are widened; rows that do not fill blocks are
 * halves. */
static ak_status choose_type(struct ak_out_plan *plan, struct ak_out_tensor *t, enum ak_type stored, bool has_role, const struct ak_log *log,
                             struct ak_error *error)
{
    uint32_t number;
    uint64_t rows = 1;
    t->type = plan->typed ? plan->type : stored;
    if (!ak_ggml_type_number(t->type, &number))
        t->type = AK_F32;
    if (stays_float(t, has_role) && !(t->stored && !plan->typed))
        t->type = AK_F32;
    if (t->shape[t->n_dims - 1] % ak_type_info(t->type)->block_elems != 0) {
        ak_log_line(log, AKUNU_LOG_WARN, "%s: rows of %llu elements do not fill blocks of %s: written as F16", t->name,
                    (unsigned long long)t->shape[t->n_dims - 1], ak_type_info(t->type)->name);
        t->type = AK_F16;
    }
    for (unsigned d = 0; d + 1 < t->n_dims; d++)
        rows *= t->shape[d]; /* the provider has checked that it fits */
    if (!ak_type_row_bytes(t->type, t->shape[t->n_dims - 1], &t->bytes) || !ak_mul_u64(t->bytes, rows, &t->bytes))
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s: its size overflows 64 bits", t->name);
    plan->bytes += t->bytes;
    plan->type_bytes[t->type] += t->bytes;
    return AKUNU_OK;
}

/* ---- From GGUF: names and shapes stay ------------------------------------------------- */

static ak_status plan_stored(struct ak_out_plan *plan, const struct ak_log *log, struct ak_error *error)
{
    struct ak_tensor tensor;
    struct ak_out_tensor *t = NULL;
    for (size_t i = 0; ak_provider_tensor(plan->source, i, &tensor); i++) {
        AK_TRY(next(plan, &t, error));
        t->stored = true;
        t->at = i;
        t->n_dims = tensor.n_dims;
        t->role = tensor.role;
        memcpy(t->shape, tensor.shape, sizeof t->shape);
        if (snprintf(t->name, sizeof t->name, "%s", tensor.name) >= (int)sizeof t->name)
            return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s: the name is too long for GGUF", t->name);
        AK_TRY(choose_type(plan, t, tensor.type, tensor.has_role, log, error));
    }
    return AKUNU_OK;
}

/* ---- From Hugging Face's names: what the family declares -------------------------------- */

static uint32_t heads_of(const struct ak_spec *spec, enum ak_role role)
{
    if (!spec->family->gguf_interleaved)
        return 0;
    switch (role) {
    case AK_ROLE_ATTENTION_Q:
    case AK_ROLE_ATTENTION_Q_BIAS: return spec->config.n_heads;
    case AK_ROLE_ATTENTION_K:
    case AK_ROLE_ATTENTION_K_BIAS: return spec->config.n_kv_heads;
    default: return 0;
    }
}

/* Shapes from the views of the parts; what binding copies for them is given back. */
static ak_status shape_of_parts(const struct ak_out_plan *plan, struct ak_out_tensor *t, enum ak_type *stored, bool *present,
                                struct ak_error *error)
{
    const struct ak_spec *spec = plan->spec;
    struct ak_binding binding = { .spec = spec };
    struct ak_view view;
    uint64_t rows = 0;
    ak_status status = AKUNU_OK;
    *present = true;
    for (uint32_t i = 0; i < t->n_parts && *present && status == AKUNU_OK; i++) {
        status = ak_bind_weight(plan->source, t->parts[i], t->layer, &binding, &view, error);
        *present = status == AKUNU_OK && view.plane[0].data != NULL;
        if (!*present)
            break;
        rows += view.n_dims == 1 ? view.cols : view.rows;
        t->n_dims = view.n_dims;
        t->shape[t->n_dims - 1] = view.cols;
        *stored = view.type;
    }
    ak_binding_clear(&binding);
    if (status != AKUNU_OK || !*present)
        return status;
    t->shape[0] = rows;
    if (ak_role_kind(t->role) == AK_ROLE_KIND_EXPERTS) { /* whether or not they are tensors of their own */
        t->n_dims = 3;
        t->shape[0] = spec->config.n_experts;
        t->shape[1] = rows / spec->config.n_experts;
        t->shape[2] = view.cols;
    } else if (t->n_dims > 2) {
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s has %u dimensions; expected 1 or 2", view.name, t->n_dims);
    }
    return AKUNU_OK;
}

static ak_status name_of(struct ak_out_tensor *t, enum ak_role stored, const struct ak_spec *spec, struct ak_error *error)
{
    const char *pattern = ak_gguf_name(stored);
    char role[AK_ROLE_NAME_BYTES];
    if (!pattern)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "GGUF has no name for %s of architecture %s", ak_role_name(stored, t->layer, role),
                       spec->family->names[0]);
    ak_role_expand(pattern, t->layer, t->name);
    return AKUNU_OK;
}

static ak_status plan_weight(struct ak_out_plan *plan, const struct ak_weight_rule *rule, int layer, const struct ak_log *log,
                             struct ak_error *error)
{
    const struct ak_spec *spec = plan->spec;
    const struct ak_whole *whole = ak_family_whole(spec->family, rule->role);
    struct ak_out_tensor *t = NULL;
    enum ak_type stored = AK_F32;
    bool present;
    if (whole && whole->parts[0] != rule->role)
        return AKUNU_OK; /* written with the first of them */
    AK_TRY(next(plan, &t, error));
    t->layer = layer;
    t->role = rule->role;
    t->n_parts = whole ? whole->n_parts : 1;
    for (uint32_t i = 0; i < t->n_parts; i++)
        t->parts[i] = whole ? ak_family_rule(spec->family, whole->parts[i]) : rule;
    AK_TRY(shape_of_parts(plan, t, &stored, &present, error));
    if (!present) {
        plan->n--;
        return AKUNU_OK;
    }
    AK_TRY(name_of(t, whole ? whole->stored : rule->role, spec, error));
    t->heads = heads_of(spec, rule->role);
    t->offset = ak_role_is_norm(rule->role) ? spec->family->hf_norm_offset : 0.0f;
    return choose_type(plan, t, stored, true, log, error);
}

/* Tensors of divisors that Hugging Face has as numbers of the configuration. */
static ak_status plan_divisors(struct ak_out_plan *plan, const struct ak_log *log, struct ak_error *error)
{
    static const enum ak_role roles[] = { AK_ROLE_ROPE_FREQS, AK_ROLE_ROPE_FACTORS_LONG, AK_ROLE_ROPE_FACTORS_SHORT };
    struct ak_out_tensor *t = NULL;
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        if (!ak_rope_is_stored(plan->spec, roles[i]))
            continue;
        if (!ak_family_rule(plan->spec->family, roles[i]))
            return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "GGUF has no place for the rope scaling of this model: architecture %s has no %s",
                           plan->spec->family->names[0], ak_gguf_name(roles[i]));
        AK_TRY(next(plan, &t, error));
        t->role = roles[i];
        t->n_dims = 1;
        t->shape[0] = plan->spec->config.rope_dims / 2;
        AK_TRY(name_of(t, roles[i], plan->spec, error));
        AK_TRY(choose_type(plan, t, AK_F32, true, log, error));
    }
    return AKUNU_OK;
}

static bool in_layers(const struct ak_weight_rule *rule)
{
    return ak_role_in_layer(rule->role);
}

ak_status ak_plan_tensors(struct ak_out_plan *plan, const struct ak_log *log, struct ak_error *error)
{
    if (!plan->spec)
        return plan_stored(plan, log, error);
    const struct ak_family *family = plan->spec->family;
    const struct ak_config *c = &plan->spec->config;
    if (family->gguf_interleaved && c->rope_dims != c->head_dim)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%u of a head's %u dimensions turn; GGUF permutes those of this architecture all alike",
                       c->rope_dims, c->head_dim);
    AK_TRY(plan_divisors(plan, log, error));
    for (uint32_t i = 0; i < family->n_weights; i++)
        if (!in_layers(&family->weights[i]))
            AK_TRY(plan_weight(plan, &family->weights[i], AK_NO_LAYER, log, error));
    for (uint32_t layer = 0; layer < c->n_layers; layer++)
        for (uint32_t i = 0; i < family->n_weights; i++)
            if (in_layers(&family->weights[i]))
                AK_TRY(plan_weight(plan, &family->weights[i], (int)layer, log, error));
    return AKUNU_OK;
}
