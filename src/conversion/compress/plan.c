/* Plans the tensors of the folder: those of the source, under Hugging Face's names, and which rows
 * of the source each takes. Tensors that no rule names keep their place in a folder, and are left
 * out of a GGUF file, whose names nobody else knows. */
#include <stdio.h>
#include <string.h>

#include "conversion/compress/compress.h"
#include "base/array.h"
#include "engine/spec/arch.h"

uint64_t ak_compress_count_elems(const struct ak_compress_tensor *t)
{
    return t->rows * t->cols;
}

static ak_status new_tensor(struct ak_compress_job *j, struct ak_compress_tensor **out)
{
    AK_TRY(ak_reserve_or_fail(&j->tensors, &j->capacity, j->n, 1, "a list of tensors", j->error));
    *out = &j->tensors[j->n++];
    **out = (struct ak_compress_tensor){ .layer = AK_ROLE_NO_LAYER };
    return AKUNU_OK;
}

/* ---- Names -------------------------------------------------------------- */
static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

static ak_status set_name(struct ak_compress_job *j, struct ak_compress_tensor *t, const char *name)
{
    char safe[AK_COMPRESS_NAME_BYTES];
    for (const char *c = name; *c; c++)
        if (!is_letter(*c) && *c != '.')
            return ak_fail(j->error, AKUNU_ERROR_UNSUPPORTED,
                           "%s: the name has other characters than letters, digits, '.', '_', '-'",
                           name);
    if (!ak_compress_make_safe(name, safe))
        return ak_fail(j->error, AKUNU_ERROR_UNSUPPORTED, "%s: the name is too long for a file",
                       name);
    t->name = ak_strndup(name, strlen(name));
    t->safe = ak_strndup(safe, strlen(safe));
    return t->name && t->safe ? AKUNU_OK : ak_fail_memory(j->error, "a tensor's name", sizeof safe);
}

/* ---- Shapes ------------------------------------------------------------- */
static void set_shape(struct ak_compress_tensor *t, unsigned n_dims, const uint64_t *shape)
{
    t->n_dims = n_dims;
    t->rows = 1;
    memcpy(t->shape, shape, n_dims * sizeof *shape);
    for (unsigned d = 0; d + 1 < n_dims; d++)
        t->rows *= shape[d];
    t->cols = shape[n_dims - 1];
}

/* Matrices that stay floats: read by row, or small and sensitive. */
static bool stays_plain(enum ak_role role)
{
    return role == AK_ROLE_TOKEN_EMBEDDING || role == AK_ROLE_POSITION_EMBEDDING ||
           role == AK_ROLE_TOKEN_TYPE_EMBEDDING || role == AK_ROLE_OUTPUT ||
           role == AK_ROLE_FFN_ROUTER || role == AK_ROLE_DELTA_GATES ||
           role == AK_ROLE_DELTA_BETA || role == AK_ROLE_DELTA_ALPHA;
}

static bool is_matrix(const struct ak_compress_tensor *t)
{
    enum ak_role_kind kind = t->has_role ? ak_role_kind(t->role) : AK_ROLE_KIND_VECTOR;
    return (kind == AK_ROLE_KIND_MATRIX || kind == AK_ROLE_KIND_EXPERTS) && !stays_plain(t->role) &&
           t->n_dims >= 2 && t->rows > 1;
}

/* The group that is asked for, or 32 if only that divides the rows. */
static void choose_group(const struct ak_compress_job *j, struct ak_compress_tensor *t)
{
    uint32_t group = j->options->group ? j->options->group : 64;
    t->group = t->cols % group == 0 ? group : 32;
    t->quantizes = is_matrix(t) && t->cols % t->group == 0;
    if (is_matrix(t) && !t->quantizes)
        ak_log_line(j->options->log, AKUNU_LOG_WARN,
                    "%s: rows of %llu elements do not divide into groups of 32: it stays F16",
                    t->name, (unsigned long long)t->cols);
}

static ak_status check_stored(const struct ak_compress_job *j, const struct ak_compress_tensor *t)
{
    struct ak_tensor tensor;
    for (uint32_t i = 0; t->quantizes && i < t->n_parts; i++) {
        ak_provider_tensor(j->source, t->parts[i], &tensor);
        bool is_float = !tensor.composed_tensor && ak_quant_info(tensor.type)->block_elems == 1;
        if (!is_float && !j->options->requantize)
            return ak_fail(j->error, AKUNU_ERROR_ARGUMENT,
                           "%s is %s already; quantizing it again loses more than quantizing "
                           "floats does, and must be allowed (--allow-requantize)",
                           tensor.name, ak_tensor_type_name(&tensor));
    }
    return AKUNU_OK;
}

/* ---- Importance --------------------------------------------------------- */
/* The expert whose tensor this is; -1: no expert's. */
static long find_expert(const char *name)
{
    long expert;
    const char *at = strstr(name, "experts.");
    return at && sscanf(at, "experts.%ld", &expert) == 1 ? expert : -1;
}

/* The values of a file for the tensor; NULL: it has none. Files have the names of GGUF. */
static const float *find_values(const struct ak_compress_job *j, const struct ak_importance *im,
                                const struct ak_compress_tensor *t, uint64_t *n)
{
    char name[AK_ROLE_NAME_BYTES];
    const char *pattern = ak_arch_gguf_tensor(j->spec.arch, t->role);
    const struct ak_importance_entry *e =
        pattern ? ak_importance_find(im, ak_role_expand(pattern, t->layer, name)) : NULL;
    /* Hugging Face has these columns in another order */
    if (t->role == AK_ROLE_DELTA_OUTPUT && j->spec.arch->gguf_tiled && !j->is_gguf)
        return NULL;
    uint64_t matrices = t->n_dims == 3 ? t->shape[0] : 1;
    long expert = t->n_dims == 2 ? find_expert(t->name) : -1;
    if (!e || e->n % t->cols != 0)
        return NULL;
    *n = t->cols;
    if (expert >= 0)
        return (uint64_t)expert < e->n / t->cols ? e->values + (uint64_t)expert * t->cols : NULL;
    *n = e->n;
    return e->n == t->cols || e->n == matrices * t->cols ? e->values : NULL;
}

static void set_importance(const struct ak_compress_job *j, struct ak_compress_tensor *t)
{
    if (!t->has_role)
        return;
    t->importance = find_values(j, &j->importance, t, &t->n_importance);
    t->inputs = find_values(j, &j->inputs, t, &t->n_inputs);
    if (!t->importance) {
        t->importance = t->inputs;
        t->n_importance = t->n_inputs;
    }
}

static ak_status finish_tensor(struct ak_compress_job *j, struct ak_compress_tensor *t)
{
    choose_group(j, t);
    AK_TRY(check_stored(j, t));
    set_importance(j, t);
    j->result->n_matrices += t->quantizes;
    return AKUNU_OK;
}

/* ---- From Hugging Face's names ------------------------------------------ */
static ak_status plan_same(struct ak_compress_job *j, size_t i, const struct ak_tensor *tensor)
{
    struct ak_compress_tensor *t = NULL;
    if (tensor->type >= AK_QUANT_COUNT && !tensor->composed_tensor) {
        ak_log_line(j->options->log, AKUNU_LOG_WARN, "%s: left out, since it is %s", tensor->name,
                    ak_quant_info(tensor->type)->name);
        return AKUNU_OK;
    }
    AK_TRY(new_tensor(j, &t));
    AK_TRY(set_name(j, t, tensor->name));
    t->has_role = ak_arch_find_role(j->spec.arch, tensor->name, &t->role, &t->layer);
    t->parts[t->n_parts++] = i;
    set_shape(t, tensor->n_dims, tensor->shape);
    return finish_tensor(j, t);
}

/* ---- From GGUF ---------------------------------------------------------- */
/* What GGUF has as [groups][b][a] is [groups][a][b] here. */
static void set_order(const struct ak_spec *spec, struct ak_compress_tensor *t)
{
    bool turns = t->role == AK_ROLE_ATTENTION_Q || t->role == AK_ROLE_ATTENTION_Q_BIAS ||
                 t->role == AK_ROLE_ATTENTION_K || t->role == AK_ROLE_ATTENTION_K_BIAS;
    if (turns && spec->arch->gguf_interleaved)
        t->order = (struct ak_convert_order){ .a = spec->config.head_dim / 2, .b = 2, .size = 1 };
}

static bool find_stored(const struct ak_compress_job *j, enum ak_role role, int layer, size_t *out)
{
    struct ak_tensor tensor;
    for (size_t i = 0; ak_provider_tensor(j->source, i, &tensor); i++)
        if (tensor.has_role && tensor.role == role && tensor.layer == layer) {
            *out = i;
            return true;
        }
    return false;
}

/* Adds the other parts of a tensor that is one in Hugging Face and several in the file. */
static ak_status add_parts(struct ak_compress_job *j, struct ak_compress_tensor *t,
                           const struct ak_arch_merged_tensor *merged)
{
    struct ak_tensor tensor;
    uint64_t rows = 0;
    t->n_parts = 0;
    for (uint32_t i = 0; i < merged->n_parts; i++) {
        if (!find_stored(j, merged->parts[i], t->layer, &t->parts[t->n_parts]))
            return ak_fail(j->error, AKUNU_ERROR_FORMAT, "%s: a part of it is missing", t->name);
        ak_provider_tensor(j->source, t->parts[t->n_parts++], &tensor);
        rows += tensor.shape[0];
    }
    t->shape[0] = rows;
    t->role = merged->stored;
    set_shape(t, t->n_dims, t->shape);
    return AKUNU_OK;
}

static ak_status plan_renamed(struct ak_compress_job *j, size_t i, const struct ak_tensor *tensor,
                              const char *pattern, const struct ak_arch_merged_tensor *apart)
{
    struct ak_compress_tensor *t = NULL;
    char name[AK_ROLE_NAME_BYTES];
    AK_TRY(new_tensor(j, &t));
    AK_TRY(set_name(j, t, ak_role_expand(pattern, tensor->layer, name)));
    t->has_role = true;
    t->role = tensor->role;
    t->layer = tensor->layer;
    t->parts[t->n_parts++] = i;
    t->offset = -ak_arch_norm_offset(j->spec.arch, t->role);
    set_shape(t, tensor->n_dims, tensor->shape);
    set_order(&j->spec, t);
    if (apart)
        AK_TRY(add_parts(j, t, apart));
    return finish_tensor(j, t);
}

/* Name of a role in checkpoints; of an expert stack that of the whole stack, which every
 * architecture has (MLX's, unless it has one of its own). */
static const char *find_pattern(const struct ak_arch *arch, enum ak_role role)
{
    const struct ak_arch_rule *rule = ak_arch_find_rule(arch, role);
    for (uint32_t i = 0; ak_role_is_expert(role) && i < arch->n_aliases; i++)
        if (arch->aliases[i].role == role && !ak_role_has_expert(arch->aliases[i].hf))
            return arch->aliases[i].hf;
    return rule ? rule->hf : NULL;
}

/* The merged tensor that is stored under this role; NULL: none, or the file has its parts. */
static const struct ak_arch_merged_tensor *find_whole(const struct ak_compress_job *j,
                                                      const struct ak_tensor *tensor)
{
    const struct ak_arch *arch = j->spec.arch;
    size_t part;
    for (uint32_t i = 0; i < arch->n_merged_tensors; i++)
        if (arch->merged_tensors[i].stored == tensor->role &&
            !find_stored(j, arch->merged_tensors[i].parts[0], tensor->layer, &part))
            return &arch->merged_tensors[i];
    return NULL;
}

static ak_status plan_gguf(struct ak_compress_job *j, size_t i, const struct ak_tensor *tensor)
{
    const struct ak_arch *arch = j->spec.arch;
    const struct ak_arch_merged_tensor *whole = tensor->has_role ? find_whole(j, tensor) : NULL,
                                       *apart = NULL;
    if (tensor->has_role && !whole)
        apart = ak_arch_find_merged(arch, tensor->role);
    if (apart && apart->parts[0] != tensor->role)
        return AKUNU_OK; /* comes with the first part */
    const char *pattern =
        !tensor->has_role ? NULL : find_pattern(arch, whole ? whole->parts[0] : tensor->role);
    if (!pattern) {
        ak_log_line(j->options->log, AKUNU_LOG_WARN,
                    "%s: left out, since %s models have no such tensor", tensor->name,
                    arch->names[0]);
        return AKUNU_OK;
    }
    return plan_renamed(j, i, tensor, pattern, apart);
}

/* Divisors of the rotation, which config.json has, and what is no model's. */
static bool is_skipped(const struct ak_compress_job *j, const struct ak_tensor *tensor)
{
    if (!tensor->has_role)
        return false;
    return tensor->role == AK_ROLE_ROPE_FREQS || tensor->role == AK_ROLE_ROPE_FACTORS_LONG ||
           tensor->role == AK_ROLE_ROPE_FACTORS_SHORT ||
           (ak_role_has_layer(tensor->role) && tensor->layer >= (int)j->spec.config.n_layers);
}

ak_status ak_compress_plan(struct ak_compress_job *j)
{
    struct ak_tensor tensor;
    for (size_t i = 0; ak_provider_tensor(j->source, i, &tensor); i++) {
        j->result->source_bytes += tensor.bytes;
        if (!j->is_gguf)
            AK_TRY(plan_same(j, i, &tensor));
        else if (!is_skipped(j, &tensor))
            AK_TRY(plan_gguf(j, i, &tensor));
    }
    return j->result->n_matrices > 0 ? AKUNU_OK :
                                       ak_fail(j->error, AKUNU_ERROR_UNSUPPORTED,
                                               "the model has no matrix that could be quantized");
}

void ak_compress_free_plan(struct ak_compress_job *j)
{
    for (size_t i = 0; i < j->n; i++) {
        ak_free(j->tensors[i].name);
        ak_free(j->tensors[i].safe);
    }
    ak_free(j->tensors);
}
