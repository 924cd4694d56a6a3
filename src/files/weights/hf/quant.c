/* Quantized checkpoints: groups stored tensors into weights, and has helpers that the schemes
 * share. An unsupported scheme does not keep the folder from opening: the refusal is reported to
 * those who read weights. */
#include "files/weights/hf/quant.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"

/* ---- What the schemes share --------------------------------------------- */
struct ak_plane ak_hf_tensor_plane(const struct ak_hf *h, const struct ak_hf_tensor *t)
{
    return (struct ak_plane){ h->parts[t->part].file.data + t->offset, t->bytes };
}

const struct ak_hf_tensor *ak_hf_find_plane(const struct ak_hf_quant *q, const char *module,
                                            const char *suffix, struct ak_plane *plane)
{
    char name[AK_HF_NAME_BYTES];
    uint32_t i;
    int n = snprintf(name, sizeof name, "%s%s", module, suffix);
    if (n < 0 || (size_t)n >= sizeof name || !ak_name_index_find(&q->h->tensor_index, name, &i))
        return NULL;
    if (q->h->list.tensors[i].dtype) /* its size does not follow from its shape */
        return NULL;
    *plane = ak_hf_tensor_plane(q->h, &q->h->list.tensors[i]);
    return &q->h->list.tensors[i];
}

ak_status ak_hf_find_factors(const struct ak_hf_quant *q, const char *module, const char *suffix,
                             const struct ak_hf_tensor **tensor, struct ak_plane *plane,
                             struct ak_error *error)
{
    *tensor = ak_hf_find_plane(q, module, suffix, plane);
    if (!*tensor)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s%s is missing", module, suffix);
    enum ak_quant_type type = (*tensor)->type;
    if (type != AK_QUANT_F32 && type != AK_QUANT_F16 && type != AK_QUANT_BF16)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s is %s; expected F32, F16 or BF16",
                       (*tensor)->name, ak_quant_info(type)->name);
    return AKUNU_OK;
}

static void print_shape(const uint64_t *shape, unsigned n, char *out, size_t capacity)
{
    size_t at = 0;
    for (unsigned d = 0; d < n && at < capacity; d++)
        at += (size_t)snprintf(out + at, capacity - at, "%s%llu", d ? ", " : "",
                               (unsigned long long)shape[d]);
}

ak_status ak_hf_expect_shape(const struct ak_hf_tensor *t, const uint64_t *shape, unsigned n,
                             struct ak_error *error)
{
    char found[96], expected[96];
    if (t->n_dims == n && memcmp(t->shape, shape, n * sizeof *shape) == 0)
        return AKUNU_OK;
    print_shape(t->shape, t->n_dims, found, sizeof found);
    print_shape(shape, n, expected, sizeof expected);
    return ak_fail(error, AKUNU_ERROR_FORMAT, "%s has the shape [%s]; expected [%s]", t->name,
                   found, expected);
}

ak_status ak_hf_quant_integer(const struct ak_hf_quant *q, const json_t *object, const char *key,
                              int64_t fallback, int64_t *out, struct ak_error *error)
{
    const json_t *value = json_object_get(object, key);
    *out = fallback;
    if (!value || json_is_null(value))
        return AKUNU_OK;
    if (!json_is_integer(value))
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: %s is %s, where a whole number is expected",
                       q->where, key, ak_json_kind(value));
    *out = json_integer_value(value);
    return AKUNU_OK;
}

const char *ak_hf_quant_text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

ak_status ak_hf_read_group_size(const struct ak_hf_quant *q, const json_t *object,
                                uint32_t fallback, uint32_t *out, struct ak_error *error)
{
    int64_t group;
    AK_TRY(ak_hf_quant_integer(q, object, "group_size", fallback ? (int64_t)fallback : -1, &group,
                               error));
    if (group != -1 && (group < 32 || group > UINT32_MAX || group % 32 != 0))
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "%s: group_size %lld; expected -1 or a multiple of 32", q->where,
                       (long long)group);
    *out = group == -1 ? 0 : (uint32_t)group;
    return AKUNU_OK;
}

static ak_status set_linear_shape(const struct ak_hf_quant *q, const struct ak_hf_tensor *weight,
                                  uint64_t rows, uint64_t in, struct ak_composed_tensor *out,
                                  struct ak_error *error)
{
    uint32_t per_word = 32 / q->bits;
    if (weight->n_dims != 2 || rows == 0 || in == 0 || rows > UINT32_MAX || in > UINT32_MAX ||
        rows % per_word != 0)
        return ak_fail(
            error, AKUNU_ERROR_FORMAT,
            "%s has %u dimensions, %llu outputs and %llu inputs; expected a matrix and a multiple "
            "of %u outputs",
            weight->name, weight->n_dims, (unsigned long long)rows, (unsigned long long)in,
            per_word);
    out->bits = q->bits;
    out->group = q->group ? q->group : (uint32_t)in;
    if (in % 32 != 0)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "%s has %llu inputs; expected a multiple of 32", weight->name,
                       (unsigned long long)in);
    out->rows = (uint32_t)rows;
    out->cols = (uint32_t)in;
    out->n_dims = 2;
    out->shape[0] = rows;
    out->shape[1] = in;
    return AKUNU_OK;
}

/* The minimum is −scale · zero. It is exact in F32 and close enough in F16, but not in BF16, so
 * scales in BF16 become F16; their values seldom leave its range. */
ak_status ak_hf_read_linear(const struct ak_hf_quant *q, const char *module,
                            const struct ak_hf_tensor *weight, uint64_t rows, uint64_t in,
                            struct ak_composed_tensor *out, struct ak_error *error)
{
    const struct ak_hf_tensor *scales,
        *zeros = ak_hf_find_plane(q, module, ".qzeros", &out->plane[2]);
    out->plane[0] = ak_hf_tensor_plane(q->h, weight);
    AK_TRY(set_linear_shape(q, weight, rows, in, out, error));
    AK_TRY(ak_hf_find_factors(q, module, ".scales", &scales, &out->plane[1], error));
    if (!zeros || zeros->type != AK_QUANT_I32)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s.qzeros is %s; expected I32", module,
                       zeros ? ak_quant_info(zeros->type)->name : "missing");
    uint64_t groups = ak_composed_n_groups(out); /* the last one may be short */
    AK_TRY(ak_hf_expect_shape(scales, (uint64_t[]){ groups, rows }, 2, error));
    AK_TRY(ak_hf_expect_shape(zeros, (uint64_t[]){ groups, rows / (32 / q->bits) }, 2, error));
    out->factor_type = scales->type;
    out->type = ak_composed_affine_type(out->bits,
                                        scales->type == AK_QUANT_F32 ? AK_QUANT_F32 : AK_QUANT_F16);
    return AKUNU_OK;
}

/* ---- Inputs out of order ------------------------------------------------ */
/* Sorts the inputs by group, stably. False: a group is not a multiple of 32 inputs, so a block of
 * 32 would span two groups. */
static bool sort_by_group(const struct ak_composed_tensor *a, uint32_t *begin, uint32_t *order)
{
    uint32_t groups = ak_composed_n_groups(a);
    for (uint32_t k = 0; k < a->cols; k++)
        begin[ak_composed_word(&a->plane[3], k) + 1]++;
    for (uint32_t g = 0; g < groups; g++) {
        if (begin[g + 1] % 32 != 0)
            return false;
        begin[g + 1] += begin[g];
    }
    for (uint32_t k = 0; k < a->cols; k++)
        order[begin[ak_composed_word(&a->plane[3], k)]++] = k;
    return true;
}

static ak_status make_order(struct ak_composed_tensor *a, const char *module,
                            struct ak_error *error)
{
    uint32_t *begin = ak_alloc((size_t)ak_composed_n_groups(a) + 1, sizeof *begin);
    a->order = ak_alloc(a->cols, sizeof *a->order);
    if (!begin || !a->order) {
        ak_free(begin);
        return ak_fail_memory(error, module, a->cols * sizeof *a->order);
    }
    if (!sort_by_group(a, begin, a->order)) {
        ak_free(a->order);
        a->order = NULL;
        a->type = AK_QUANT_F16;
    }
    ak_free(begin);
    return AKUNU_OK;
}

static ak_status check_groups(const struct ak_hf_tensor *index, const struct ak_composed_tensor *a,
                              bool *is_ordered, struct ak_error *error)
{
    for (uint32_t k = 0; k < a->cols; k++) {
        uint32_t group = ak_composed_word(&a->plane[3], k);
        if (group >= ak_composed_n_groups(a))
            return ak_fail(error, AKUNU_ERROR_FORMAT,
                           "%s has the group %d at %u, where there are %u groups", index->name,
                           (int)group, k, ak_composed_n_groups(a));
        *is_ordered = *is_ordered && group == k / a->group;
    }
    return AKUNU_OK;
}

static bool is_unused(const struct ak_composed_tensor *a)
{
    uint32_t k = 0;
    while (k < a->cols && ak_composed_word(&a->plane[3], k) == UINT32_MAX)
        k++;
    return k == a->cols;
}

/* Checks every index once, so that later reads need not. */
ak_status ak_hf_read_groups(const struct ak_hf_quant *q, const char *module, const char *suffix,
                            struct ak_composed_tensor *out, bool *is_ordered,
                            struct ak_error *error)
{
    const struct ak_hf_tensor *index = ak_hf_find_plane(q, module, suffix, &out->plane[3]);
    *is_ordered = true;
    if (!index)
        return AKUNU_OK;
    if (index->type != AK_QUANT_I32)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s is %s; expected I32", index->name,
                       ak_quant_info(index->type)->name);
    AK_TRY(ak_hf_expect_shape(index, (uint64_t[]){ out->cols }, 1, error));
    if (is_unused(out))
        return AKUNU_OK;
    AK_TRY(check_groups(index, out, is_ordered, error));
    return *is_ordered ? AKUNU_OK : make_order(out, module, error);
}

/* ---- Which tensors ------------------------------------------------------ */
static bool ends_in(const char *name, const char *suffix, size_t *stem)
{
    size_t n = strlen(name), n_suffix = strlen(suffix);
    if (n <= n_suffix || strcmp(name + n - n_suffix, suffix) != 0)
        return false;
    *stem = n - n_suffix;
    return true;
}

static bool has_quants(const struct ak_hf_scheme *scheme, const struct ak_hf_tensor *t)
{
    return t->type >= AK_QUANT_STORED_FIRST &&
           (scheme->types >> (t->type - AK_QUANT_STORED_FIRST) & 1u) != 0;
}

static bool module_of(const struct ak_hf_tensor *t, const char *suffix,
                      char module[AK_HF_NAME_BYTES])
{
    size_t stem;
    if (!ends_in(t->name, suffix, &stem) || stem >= AK_HF_NAME_BYTES)
        return false;
    memcpy(module, t->name, stem);
    module[stem] = '\0';
    return true;
}

/* Whether the tensor is a plane (scales, zero points) of a weight that exists. */
static bool is_plane(const struct ak_hf_quant *q, const struct ak_hf_tensor *t)
{
    char module[AK_HF_NAME_BYTES];
    struct ak_plane plane;
    for (size_t i = 0; q->scheme->plane_suffixes[i]; i++) {
        if (!module_of(t, q->scheme->plane_suffixes[i], module))
            continue;
        const struct ak_hf_tensor *weight =
            ak_hf_find_plane(q, module, q->scheme->quants_suffix, &plane);
        if (weight && weight != t && has_quants(q->scheme, weight))
            return true;
    }
    return false;
}

static ak_status add_weight(const struct ak_hf_quant *q, const struct ak_hf_tensor *t,
                            struct ak_hf_weight *w, struct ak_error *error)
{
    char module[AK_HF_NAME_BYTES], name[AK_HF_NAME_BYTES + 16];
    bool plain = false;
    if (!q->scheme || !has_quants(q->scheme, t) || !module_of(t, q->scheme->quants_suffix, module))
        return AKUNU_OK;
    struct ak_composed_tensor *a = ak_alloc(1, sizeof *a);
    if (!a)
        return ak_fail_memory(error, "a quantized weight", sizeof *a);
    ak_status status = q->scheme->compose(q, module, t, a, &plain, error);
    if (status != AKUNU_OK || plain) {
        ak_composed_free(a);
        return status;
    }
    snprintf(name, sizeof name, "%s%s", module, q->scheme->weight_suffix);
    w->composed_tensor = a;
    if (strcmp(name, t->name) != 0) {
        w->own_name = ak_strndup(name, strlen(name));
        if (!w->own_name)
            return ak_fail_memory(error, "a tensor's name", strlen(name) + 1);
        w->name = w->own_name;
    }
    return AKUNU_OK;
}

/* Keeps the first refusal of a weight; loading reports it. Inspection ignores it and shows the
 * stored tensors. */
static void record_refusal(struct ak_hf *h, ak_status status, const struct ak_error *error)
{
    if (h->refusal.status == AKUNU_OK) {
        h->refusal = *error;
        h->refusal.status = status;
    }
}

static ak_status list_weights(struct ak_hf *h, const struct ak_hf_quant *q, struct ak_error *error)
{
    for (uint32_t i = 0; i < h->list.n; i++) {
        const struct ak_hf_tensor *t = &h->list.tensors[i];
        struct ak_error refused = { 0 };
        if (q->scheme && is_plane(q, t))
            continue;
        struct ak_hf_weight *w = &h->weights[h->n_weights++];
        *w = (struct ak_hf_weight){ .name = t->name, .position = i };
        ak_status status = add_weight(q, t, w, &refused);
        if (status == AKUNU_ERROR_MEMORY) {
            *error = refused;
            return status;
        }
        if (status != AKUNU_OK)
            record_refusal(h, status, &refused);
    }
    return AKUNU_OK;
}

ak_status ak_hf_index_weights(struct ak_hf *h, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    AK_TRY(ak_name_index_alloc(&h->index, h->n_weights, error));
    for (uint32_t i = 0; i < h->n_weights; i++)
        h->index.entries[i] = (struct ak_name_index_entry){ h->weights[i].name, i };
    const char *duplicate = ak_name_index_sort(&h->index);
    if (duplicate)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "tensor %s is there twice, quantized and not",
                       ak_show(duplicate, strlen(duplicate), shown));
    return AKUNU_OK;
}

ak_status ak_hf_list_weights(struct ak_hf *h, struct ak_error *error)
{
    struct ak_hf_quant q = { .h = h };
    struct ak_error refused = { 0 };
    h->weights = ak_alloc(h->list.n, sizeof *h->weights);
    if (!h->weights)
        return ak_fail_memory(error, "a list of weights", h->list.n * sizeof *h->weights);
    ak_status status = ak_hf_find_scheme(&q, &refused);
    const struct ak_hf_scheme *scheme = q.scheme;
    if (status != AKUNU_OK) {
        record_refusal(h, status, &refused);
        q.scheme = NULL;
    }
    status = list_weights(h, &q, error);
    if (scheme && scheme->end)
        scheme->end(&q);
    json_decref(q.own_config);
    return status == AKUNU_OK ? ak_hf_index_weights(h, error) : status;
}

void ak_hf_free_weights(struct ak_hf *h)
{
    for (uint32_t i = 0; i < h->n_weights; i++) {
        ak_free(h->weights[i].own_name);
        ak_composed_free(h->weights[i].composed_tensor);
    }
    ak_free(h->weights);
}
