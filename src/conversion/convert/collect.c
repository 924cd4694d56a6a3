/* Names come from the plan of a conversion, so they are those that convert and quantize write. A
 * text's sums are doubles and become part of the entries, which are floats as in the file, at its
 * end: so a run that reads its file back goes on with the same numbers. */
#include "conversion/convert/collect.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

/* ---- Tensors and packed weights ----------------------------------------- */
/* Whether the tensor is multiplied as this part. Tensors of GGUF keep their names; a merged one is
 * several parts. */
static bool is_part(const struct ak_convert_collector *c, const struct ak_convert_tensor *t,
                    const struct ak_pack_weight *packed, const struct ak_pack_part *part)
{
    if (!c->plan.spec)
        return strcmp(part->view->name, t->name) == 0;
    if (part->role == AK_ROLE_OUTPUT && c->is_tied)
        return t->has_role && t->role == AK_ROLE_TOKEN_EMBEDDING;
    return !t->is_stored && t->n_parts > 0 && t->parts[0].rule->role == part->role &&
           t->layer == packed->layer;
}

/* The packed weight that the tensor is part of; AK_OP_NONE: it is multiplied with nothing. */
static uint32_t find_packed(const struct ak_convert_collector *c, const struct ak_convert_tensor *t)
{
    for (uint32_t i = 0; i < c->weights->n_packed; i++) {
        const struct ak_pack_weight *packed = &c->weights->packed[i];
        if (packed->linear == AK_OP_LINEAR_ADAPTER ||
            (packed->linear == AK_OP_LINEAR_OUTPUT && !c->wants_output))
            continue;
        for (uint32_t j = 0; j < packed->n_parts; j++)
            if (is_part(c, t, packed, &packed->parts[j]))
                return i;
    }
    return AK_OP_NONE;
}

static size_t count_matrices(const struct ak_pack_weight *packed)
{
    return packed->n_experts ? packed->n_experts : 1;
}

static ak_status alloc_sums(struct ak_convert_collector *c, uint32_t packed, struct ak_error *error)
{
    const struct ak_pack_weight *w = &c->weights->packed[packed];
    struct ak_backend_input_sums *sums = &c->sums[packed];
    if (sums->squares)
        return AKUNU_OK;
    sums->squares = ak_alloc(count_matrices(w) * w->cols, sizeof *sums->squares);
    sums->counts = ak_alloc(count_matrices(w), sizeof *sums->counts);
    return sums->squares && sums->counts ?
               AKUNU_OK :
               ak_fail_memory(error, "input sums",
                              count_matrices(w) * w->cols * sizeof *sums->squares);
}

static ak_status collect_tensor(struct ak_convert_collector *c, const struct ak_convert_tensor *t,
                                struct ak_importance *im, struct ak_error *error)
{
    uint32_t packed = find_packed(c, t);
    if (packed == AK_OP_NONE)
        return AKUNU_OK;
    const struct ak_pack_weight *w = &c->weights->packed[packed];
    AK_TRY(alloc_sums(c, packed, error));
    c->collected[c->n++] =
        (struct ak_convert_collected){ .packed = packed, .entry = im->n, .cols = t->cols };
    return ak_importance_add_entry(im, t->name, count_matrices(w) * w->cols, count_matrices(w),
                                   error);
}

ak_status ak_convert_collector_create(const struct ak_convert_collect_source *source,
                                      bool wants_output, struct ak_importance *im,
                                      struct ak_convert_collector *out, struct ak_error *error)
{
    bool is_gguf = ak_provider_naming(source->provider) == AK_PROVIDER_NAMING_GGUF;
    *out = (struct ak_convert_collector){ .plan.source = source->provider,
                                          .plan.spec = is_gguf ? NULL : source->spec,
                                          .weights = source->weights,
                                          .is_tied = source->is_tied,
                                          .wants_output = wants_output };
    AK_TRY(ak_convert_plan_tensors(&out->plan, NULL, error));
    out->sums = ak_alloc(source->weights->n_packed, sizeof *out->sums);
    out->collected = ak_alloc(out->plan.n, sizeof *out->collected);
    if (!out->sums || !out->collected)
        return ak_fail_memory(error, "input sums", out->plan.n * sizeof *out->collected);
    for (size_t i = 0; i < out->plan.n; i++)
        AK_TRY(collect_tensor(out, &out->plan.tensors[i], im, error));
    return ak_importance_index(im, error);
}

void ak_convert_collector_free(struct ak_convert_collector *c)
{
    for (uint32_t i = 0; c->sums && i < c->weights->n_packed; i++) {
        ak_free(c->sums[i].squares);
        ak_free(c->sums[i].counts);
    }
    ak_free(c->sums);
    ak_free(c->collected);
    ak_free(c->plan.tensors);
    *c = (struct ak_convert_collector){ .n = 0 };
}

bool ak_convert_collector_has(const struct ak_convert_collector *c, const char *name)
{
    for (size_t i = 0; i < c->plan.n; i++)
        if (strcmp(c->plan.tensors[i].name, name) == 0)
            return true;
    return false;
}

/* ---- Sums --------------------------------------------------------------- */
/* What value i of the entry becomes. */
static float add_sum(const struct ak_convert_collector *c, const struct ak_convert_collected *from,
                     const struct ak_importance_entry *e, uint64_t i)
{
    uint64_t cols = c->weights->packed[from->packed].cols, matrix = i / cols;
    uint64_t at = matrix * cols + ak_convert_map_index(&from->cols, i % cols);
    return (float)((double)e->values[i] + c->sums[from->packed].squares[at]);
}

static ak_status check_sums(const struct ak_convert_collector *c, const struct ak_importance *im,
                            struct ak_error *error)
{
    for (size_t k = 0; k < c->n; k++) {
        const struct ak_importance_entry *e = &im->entries[c->collected[k].entry];
        for (uint64_t i = 0; i < e->n; i++)
            if (!isfinite(add_sum(c, &c->collected[k], e, i)))
                return ak_fail(
                    error, AKUNU_ERROR_NUMERIC,
                    "%s: inputs of column %llu are not finite, or their squares "
                    "overflow",
                    e->name,
                    (unsigned long long)(i % c->weights->packed[c->collected[k].packed].cols));
    }
    return AKUNU_OK;
}

void ak_convert_collector_clear_sums(struct ak_convert_collector *c)
{
    for (uint32_t i = 0; i < c->weights->n_packed; i++) {
        const struct ak_pack_weight *w = &c->weights->packed[i];
        if (!c->sums[i].squares)
            continue;
        memset(c->sums[i].squares, 0, count_matrices(w) * w->cols * sizeof *c->sums[i].squares);
        memset(c->sums[i].counts, 0, count_matrices(w) * sizeof *c->sums[i].counts);
    }
}

ak_status ak_convert_collector_take(struct ak_convert_collector *c, struct ak_importance *im,
                                    struct ak_error *error)
{
    AK_TRY(check_sums(c, im, error));
    for (size_t k = 0; k < c->n; k++) {
        const struct ak_convert_collected *from = &c->collected[k];
        struct ak_importance_entry *e = &im->entries[from->entry];
        for (uint64_t i = 0; i < e->n; i++)
            e->values[i] = add_sum(c, from, e, i);
        for (uint64_t m = 0; m < e->n_matrices; m++)
            e->counts[m] = (float)((double)e->counts[m] + (double)c->sums[from->packed].counts[m]);
    }
    ak_convert_collector_clear_sums(c);
    return AKUNU_OK;
}
