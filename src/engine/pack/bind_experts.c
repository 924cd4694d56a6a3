/* Experts in Hugging Face checkpoints, which store them
 *
 *   one by one    a tensor per expert: Mixtral, Qwen
 *   stacked       one [experts, rows, cols]: MLX's conversions
 *   concatenated  gate rows, then up rows in one expert stack: Qwen3.5
 *   interleaved   gate and up rows alternating in one expert stack: gpt-oss. As
 *                 floats transposed, [experts, cols, rows of both]; as MXFP4 two
 *                 tensors, NAME_blocks [experts, rows of both, cols / 32, 16] with two
 *                 numbers per byte, NAME_scales [experts, rows of both, cols / 32] */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "engine/pack/bind.h"
#include "files/weights/composed.h"

enum { BLOCK = 32, BLOCK_BYTES = 16 }; /* MXFP4 */

/* ---- One by one --------------------------------------------------------- */
static bool find_expert(const struct ak_provider *p, const struct ak_arch_rule *rule, int layer,
                        const char *name, uint32_t expert, struct ak_view *view)
{
    char pattern[AK_ROLE_NAME_BYTES];
    return ak_provider_find(p, rule->role, layer, ak_role_expand_expert(name, expert, pattern),
                            view);
}

static ak_status fail_missing(const char *name, int layer, uint32_t expert, struct ak_error *error)
{
    char pattern[AK_ROLE_NAME_BYTES], shown[AK_ROLE_NAME_BYTES];
    return ak_fail(error, AKUNU_ERROR_FORMAT, "%s is missing",
                   ak_role_expand(ak_role_expand_expert(name, expert, pattern), layer, shown));
}

/* Experts with input orders of their own become rows of F16, since one input is prepared for all
 * experts. */
static ak_status convert_ordered(struct ak_binding *b, struct ak_view *matrices, uint64_t n,
                                 struct ak_error *error)
{
    bool ordered = true;
    for (uint64_t e = 0; e < n; e++)
        ordered = ordered && !ak_composed_order(&matrices[e]);
    if (ordered)
        return AKUNU_OK;
    struct ak_composed_tensor *copies = ak_alloc((size_t)n, sizeof *copies);
    if (!copies)
        return ak_fail_memory(error, "a list of experts", n * sizeof *copies);
    for (uint64_t e = 0; e < n; e++) {
        if (!matrices[e].composed_tensor)
            continue;
        copies[e] = *matrices[e].composed_tensor;
        copies[e].order = NULL;
        copies[e].type = AK_QUANT_F16;
        matrices[e].composed_tensor = &copies[e];
        matrices[e].type = AK_QUANT_F16;
    }
    return ak_bind_own_buffer(b, NULL, copies, error);
}

static ak_status fill_separate(const struct ak_provider *p, const struct ak_arch_rule *rule,
                               int layer, const char *name, const struct ak_bind_shape *all,
                               struct ak_binding *b, struct ak_view *matrices,
                               struct ak_error *error)
{
    struct ak_bind_shape one = *all;
    one.n_matrices = 1;
    for (uint32_t e = 0; e < all->n_matrices; e++) {
        if (!find_expert(p, rule, layer, name, e, &matrices[e]))
            return fail_missing(name, layer, e, error);
        AK_TRY(ak_bind_doubles(b, &matrices[e], error));
    }
    AK_TRY(convert_ordered(b, matrices, all->n_matrices, error));
    for (uint32_t e = 0; e < all->n_matrices; e++) {
        AK_TRY(ak_bind_check_shape(&matrices[e], &one, error));
        if (matrices[e].type != matrices[0].type)
            return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                           "%s is %s, and the first expert's is %s; one type for all is supported",
                           matrices[e].name, ak_quant_info(matrices[e].type)->name,
                           ak_quant_info(matrices[0].type)->name);
        if (!matrices[e].composed_tensor != !matrices[0].composed_tensor)
            return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                           "%s is %s, and the first expert's is %s; all or none are supported",
                           matrices[e].name,
                           matrices[e].composed_tensor ? "quantized" : "not quantized",
                           matrices[0].composed_tensor ? "quantized" : "not quantized");
    }
    return AKUNU_OK;
}

static ak_status bind_separate(const struct ak_provider *p, const struct ak_arch_rule *rule,
                               int layer, const char *name, struct ak_binding *b,
                               struct ak_view *view, bool *found, struct ak_error *error)
{
    struct ak_bind_shape shape = ak_bind_expected_shape(b->spec, rule);
    *found = find_expert(p, rule, layer, name, 0, view);
    if (!*found)
        return AKUNU_OK;
    AK_TRY(ak_bind_doubles(b, view, error));
    struct ak_view *matrices = ak_alloc((size_t)shape.n_matrices, sizeof *matrices);
    if (!matrices)
        return ak_fail_memory(error, "a list of experts", shape.n_matrices * sizeof *matrices);
    AK_TRY(ak_bind_own_buffer(b, NULL, matrices, error));
    AK_TRY(fill_separate(p, rule, layer, name, &shape, b, matrices, error));
    view->type = matrices[0].type;
    view->composed_tensor = matrices[0].composed_tensor;
    view->expert_views = matrices;
    /* fits: checked by engine/spec/validate.c */
    view->rows = (uint32_t)(shape.n_matrices * shape.rows);
    for (int i = 0; i < AK_VIEW_PLANES_MAX; i++)
        view->plane[i].bytes *= shape.n_matrices;
    return AKUNU_OK;
}

/* ---- Stacked ------------------------------------------------------------ */
/* Index of a rule among the n rules that share its tensor. */
struct interleave {
    uint32_t index, n;
};

static struct interleave find_interleave(const struct ak_arch *arch,
                                         const struct ak_arch_rule *rule, const char *name)
{
    struct interleave part = { 0, 0 };
    for (uint32_t i = 0; i < arch->n_weights; i++) {
        if (&arch->weights[i] == rule)
            part.index = part.n;
        part.n += arch->weights[i].hf && strcmp(arch->weights[i].hf, name) == 0;
    }
    return part.n > 0 ? part : (struct interleave){ 0, 1 }; /* an alias names one weight */
}

/* A composed tensor has no bytes to transpose or share. */
static ak_status check_float(const struct ak_view *view, const struct ak_bind_shape *shape,
                             struct ak_error *error)
{
    if (view->composed_tensor)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s is quantized; expected F32, F16 or BF16",
                       view->name);
    return ak_bind_check_shape(view, shape, error);
}

/* Each expert's matrix transposed into an owned buffer. */
static ak_status copy_transposed(const struct ak_bind_shape *shape, struct interleave part,
                                 struct ak_binding *b, struct ak_view *view, struct ak_error *error)
{
    size_t size = ak_quant_info(view->type)->block_bytes,
           bytes = (size_t)view->plane[0].bytes / part.n, each = bytes / shape->n_matrices;
    uint8_t *data = ak_alloc_aligned(bytes);
    if (!data)
        return ak_fail_memory(error, view->name, bytes);
    for (size_t e = 0; e < shape->n_matrices; e++) {
        struct ak_bind_strided_matrix one = { (const uint8_t *)view->plane[0].data +
                                                  e * each * part.n + part.index * size,
                                              shape->cols,
                                              shape->rows,
                                              shape->rows * part.n,
                                              part.n,
                                              size };
        ak_bind_transpose(&one, data + e * each);
    }
    view->plane[0] = (struct ak_plane){ data, bytes };
    return ak_bind_own_buffer(b, NULL, data, error);
}

/* A copy, since no kernel reads columns. */
static ak_status transpose_experts(const struct ak_bind_shape *shape, struct interleave part,
                                   struct ak_binding *b, struct ak_view *view,
                                   struct ak_error *error)
{
    struct ak_bind_shape stored = { shape->n_matrices, shape->cols, shape->rows * part.n, false };
    AK_TRY(check_float(view, &stored, error));
    if (ak_quant_info(view->type)->block_elems != 1)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "%s has the type %s; expected F32, F16 or BF16", view->name,
                       ak_quant_info(view->type)->name);
    if (!b->shapes_only)
        AK_TRY(copy_transposed(shape, part, b, view, error));
    view->rows = (uint32_t)(shape->n_matrices * shape->rows);
    view->cols = (uint32_t)shape->cols;
    return AKUNU_OK;
}

/* Each expert's rows of one weight are contiguous: a list of views, one per expert. */
static ak_status bind_concatenated(const struct ak_bind_shape *shape, struct interleave part,
                                   struct ak_binding *b, struct ak_view *view,
                                   struct ak_error *error)
{
    struct ak_bind_shape stored = *shape;
    stored.rows *= part.n;
    AK_TRY(ak_bind_check_shape(view, &stored, error));
    struct ak_view *matrices = ak_alloc((size_t)shape->n_matrices, sizeof *matrices);
    if (!matrices)
        return ak_fail_memory(error, "a list of experts", shape->n_matrices * sizeof *matrices);
    AK_TRY(ak_bind_own_buffer(b, NULL, matrices, error));
    uint64_t bytes = view->plane[0].bytes / (shape->n_matrices * part.n);
    for (uint64_t e = 0, half = part.index; e < shape->n_matrices; e++, half += part.n) {
        matrices[e] = *view;
        matrices[e].rows = (uint32_t)shape->rows;
        matrices[e].n_dims = 2;
        if (view->composed_tensor)
            matrices[e].first_row = (uint32_t)(half * shape->rows);
        else
            matrices[e].plane[0] =
                (struct ak_plane){ (const uint8_t *)view->plane[0].data + half * bytes, bytes };
    }
    view->expert_views = matrices;
    /* fits: checked by engine/spec/validate.c */
    view->rows = (uint32_t)(shape->n_matrices * shape->rows);
    if (!view->composed_tensor)
        view->plane[0] = (struct ak_plane){ matrices[0].plane[0].data, bytes * shape->n_matrices };
    return AKUNU_OK;
}

static ak_status check_bytes(const struct ak_view *view, uint64_t rows, uint64_t cols,
                             struct ak_error *error)
{
    if (view->type == AK_QUANT_U8 && view->rows == rows && view->cols == cols)
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_FORMAT,
                   "%s is %s with %u rows of %u; expected U8 with %llu rows of %llu", view->name,
                   ak_quant_info(view->type)->name, view->rows, view->cols,
                   (unsigned long long)rows, (unsigned long long)cols);
}

static struct ak_plane plane_part(const struct ak_view *view, uint64_t row_bytes,
                                  struct interleave part)
{
    return (struct ak_plane){ (const uint8_t *)view->plane[0].data + part.index * row_bytes,
                              view->plane[0].bytes / part.n };
}

static ak_status bind_mxfp4(const struct ak_provider *p, const struct ak_arch_rule *rule, int layer,
                            const char *name, const struct ak_bind_shape *shape,
                            struct interleave part, struct ak_binding *b, struct ak_view *view,
                            bool *found, struct ak_error *error)
{
    char pattern[AK_ROLE_NAME_BYTES];
    struct ak_view blocks, scales;
    uint64_t groups = shape->cols / BLOCK, rows = shape->n_matrices * shape->rows * part.n;
    snprintf(pattern, sizeof pattern, "%s_blocks", name);
    *found = ak_provider_find(p, rule->role, layer, pattern, &blocks);
    if (!*found)
        return AKUNU_OK;
    snprintf(pattern, sizeof pattern, "%s_scales", name);
    if (!ak_provider_find(p, rule->role, layer, pattern, &scales))
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s is there, but not its %s", blocks.name,
                       pattern);
    if (shape->cols % BLOCK != 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "%s belongs to rows of %llu elements; expected a multiple of %d",
                       blocks.name, (unsigned long long)shape->cols, BLOCK);
    AK_TRY(check_bytes(&blocks, rows * groups, BLOCK_BYTES, error));
    AK_TRY(check_bytes(&scales, rows, groups, error));
    struct ak_composed_tensor *a = ak_alloc(1, sizeof *a);
    if (!a)
        return ak_fail_memory(error, blocks.name, sizeof *a);
    *a = (struct ak_composed_tensor){ .scheme = &ak_composed_mxfp4,
                                      .type = AK_QUANT_MXFP4,
                                      .factor_type = AK_QUANT_U8,
                                      .rows = (uint32_t)rows,
                                      .cols = (uint32_t)shape->cols,
                                      .bits = 4,
                                      .group = BLOCK,
                                      .plane = { blocks.plane[0], scales.plane[0] } };
    *view = (struct ak_view){ .type = AK_QUANT_MXFP4,
                              .rows = (uint32_t)(shape->n_matrices * shape->rows),
                              .cols = (uint32_t)shape->cols,
                              .plane = { blocks.plane[0], scales.plane[0] },
                              .name = blocks.name,
                              .n_dims = 3,
                              .composed_tensor = a,
                              .first_row = part.index,
                              .is_interleaved = part.n > 1 };
    return ak_bind_own_buffer(b, NULL, a, error);
}

/* One vector per expert. */
static ak_status bind_vectors(const struct ak_bind_shape *shape, struct interleave part,
                              struct ak_view *view, struct ak_error *error)
{
    struct ak_bind_shape stored = { shape->n_matrices, 1, shape->cols * part.n, true };
    AK_TRY(check_float(view, &stored, error));
    view->plane[0] = plane_part(view, ak_quant_info(view->type)->block_bytes, part);
    view->cols = (uint32_t)shape->cols;
    view->is_interleaved = part.n > 1;
    return AKUNU_OK;
}

static ak_status bind_stacked(const struct ak_provider *p, const struct ak_arch_rule *rule,
                              int layer, const char *name, struct ak_binding *b,
                              struct ak_view *view, bool *found, struct ak_error *error)
{
    const struct ak_arch *arch = b->spec->arch;
    struct ak_bind_shape shape = ak_bind_expected_shape(b->spec, rule);
    struct interleave part = find_interleave(arch, rule, name);
    *found = ak_provider_find(p, rule->role, layer, name, view);
    if (!*found)
        return shape.vector ? AKUNU_OK :
                              bind_mxfp4(p, rule, layer, name, &shape, part, b, view, found, error);
    AK_TRY(ak_bind_doubles(b, view, error));
    if (shape.vector)
        return bind_vectors(&shape, part, view, error);
    if (arch->hf_experts_concatenated && part.n > 1)
        return bind_concatenated(&shape, part, b, view, error);
    return arch->hf_experts_transposed ? transpose_experts(&shape, part, b, view, error) :
                                         ak_bind_check_shape(view, &shape, error);
}

/* ---- Whichever there is ------------------------------------------------- */
static ak_status bind_named(const struct ak_provider *p, const struct ak_arch_rule *rule, int layer,
                            const char *name, struct ak_binding *b, struct ak_view *view,
                            bool *found, struct ak_error *error)
{
    *found = false;
    if (!name)
        return AKUNU_OK;
    return (ak_role_has_expert(name) ? bind_separate : bind_stacked)(p, rule, layer, name, b, view,
                                                                     found, error);
}

ak_status ak_bind_experts(const struct ak_provider *p, const struct ak_arch_rule *rule, int layer,
                          struct ak_binding *b, struct ak_view *view, bool *found,
                          struct ak_error *error)
{
    const struct ak_arch *arch = b->spec->arch;
    AK_TRY(bind_named(p, rule, layer, rule->hf, b, view, found, error));
    for (uint32_t i = 0; !*found && i < arch->n_aliases; i++)
        if (arch->aliases[i].role == rule->role)
            AK_TRY(bind_named(p, rule, layer, arch->aliases[i].hf, b, view, found, error));
    return AKUNU_OK;
}
