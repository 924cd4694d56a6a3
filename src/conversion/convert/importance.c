/* Both forms are maps of names to sums; what is read is copied, so that the file can go. */
#include "conversion/convert/importance.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "files/weights/provider.h"
#include "base/array.h"

static const char sums_suffix[] = ".in_sum2", counts_suffix[] = ".counts",
                  datasets_key[] = "imatrix.datasets";

/* ---- Entries ------------------------------------------------------------ */
static ak_status new_entry(struct ak_importance *im, const char *name, size_t n_name, uint64_t n,
                           uint64_t n_matrices, struct ak_importance_entry **out,
                           struct ak_error *error)
{
    AK_TRY(ak_reserve_or_fail(&im->entries, &im->capacity, im->n, 1, "importance", error));
    struct ak_importance_entry *e = &im->entries[im->n++];
    *e = (struct ak_importance_entry){ .name = ak_strndup(name, n_name),
                                       .values = ak_alloc((size_t)n, sizeof(float)),
                                       .counts = ak_alloc((size_t)n_matrices, sizeof(float)),
                                       .n = n,
                                       .n_matrices = n_matrices };
    *out = e;
    return e->name && e->values && e->counts ?
               AKUNU_OK :
               ak_fail_memory(error, "importance", n * sizeof(float));
}

static ak_status check_numbers(const struct ak_importance_entry *e, const float *numbers,
                               uint64_t n, const char *what, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    for (uint64_t i = 0; i < n; i++)
        if (!isfinite(numbers[i]) || numbers[i] < 0.0f)
            return ak_fail(error, AKUNU_ERROR_FORMAT,
                           "the importance of %s, %s %llu, is %g; expected 0 or more",
                           ak_show(e->name, strlen(e->name), shown), what, (unsigned long long)i,
                           (double)numbers[i]);
    return AKUNU_OK;
}

static ak_status check_entry(const struct ak_importance_entry *e, struct ak_error *error)
{
    AK_TRY(check_numbers(e, e->values, e->n, "column", error));
    return check_numbers(e, e->counts, e->n_matrices, "count", error);
}

ak_status ak_importance_add_entry(struct ak_importance *im, const char *name, uint64_t n,
                                  uint64_t n_matrices, struct ak_error *error)
{
    struct ak_importance_entry *e;
    return new_entry(im, name, strlen(name), n, n_matrices, &e, error);
}

static ak_status add_dataset(struct ak_importance *im, const char *name, size_t n_name,
                             struct ak_error *error)
{
    for (size_t i = 0; i < im->n_datasets; i++)
        if (strlen(im->datasets[i]) == n_name && memcmp(im->datasets[i], name, n_name) == 0)
            return AKUNU_OK;
    AK_TRY(ak_reserve_or_fail(&im->datasets, &im->datasets_capacity, im->n_datasets, 1,
                              "names of texts", error));
    if (!(im->datasets[im->n_datasets] = ak_strndup(name, n_name)))
        return ak_fail_memory(error, "names of texts", n_name);
    im->n_datasets++;
    return AKUNU_OK;
}

ak_status ak_importance_add_dataset(struct ak_importance *im, const char *name,
                                    struct ak_error *error)
{
    return add_dataset(im, name, strlen(name), error);
}

/* ---- GGUF --------------------------------------------------------------- */
static bool ends_in(const char *text, const char *end, size_t *stem)
{
    size_t n = strlen(text), n_end = strlen(end);
    *stem = n - n_end;
    return n > n_end && strcmp(text + n - n_end, end) == 0;
}

static uint64_t count_elems(const struct ak_tensor *t)
{
    uint64_t n = 1;
    for (unsigned d = 0; d < t->n_dims; d++)
        n *= t->shape[d];
    return n;
}

static bool find_tensor(const struct ak_provider *p, const char *name, struct ak_tensor *out)
{
    for (size_t i = 0; ak_provider_tensor(p, i, out); i++)
        if (strcmp(out->name, name) == 0)
            return true;
    return false;
}

/* Sums of squares, and how many rows each matrix has seen. */
static ak_status read_sums(const struct ak_provider *p, const struct ak_tensor *sums, size_t stem,
                           struct ak_importance *im, struct ak_error *error)
{
    char name[256], shown[AK_SHOW_BYTES];
    struct ak_tensor counts;
    struct ak_importance_entry *e = NULL;
    ak_show(sums->name, strlen(sums->name), shown);
    if (snprintf(name, sizeof name, "%.*s%s", (int)stem, sums->name, counts_suffix) >=
            (int)sizeof name ||
        !find_tensor(p, name, &counts))
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s has no %s beside it", shown, counts_suffix);
    uint64_t n = count_elems(sums), n_matrices = count_elems(&counts);
    if (sums->type != AK_QUANT_F32 || counts.type != AK_QUANT_F32 || n_matrices == 0 ||
        n % n_matrices != 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "%s has %llu values of %s for %llu matrices; expected F32, as many for each",
                       shown, (unsigned long long)n, ak_quant_info(sums->type)->name,
                       (unsigned long long)n_matrices);
    AK_TRY(new_entry(im, sums->name, stem, n, n_matrices, &e, error));
    memcpy(e->values, sums->data, n * sizeof(float));
    memcpy(e->counts, counts.data, n_matrices * sizeof(float));
    return check_entry(e, error);
}

static ak_status read_datasets(const struct ak_provider *p, struct ak_importance *im,
                               struct ak_error *error)
{
    struct ak_meta meta, element;
    if (!ak_provider_find_meta(p, datasets_key, &meta) || meta.kind != AK_META_ARRAY ||
        meta.element_kind != AK_META_STRING)
        return AKUNU_OK; /* optional */
    for (uint64_t i = 0; i < meta.n && ak_provider_element(p, &meta, i, &element); i++)
        AK_TRY(add_dataset(im, element.as.string, (size_t)element.n, error));
    return AKUNU_OK;
}

static ak_status read_gguf(const char *path, struct ak_importance *out, struct ak_error *error)
{
    struct ak_provider *p;
    struct ak_tensor tensor;
    size_t stem;
    AK_TRY(ak_provider_open(path, &p, error));
    ak_status status = read_datasets(p, out, error);
    for (size_t i = 0; status == AKUNU_OK && ak_provider_tensor(p, i, &tensor); i++)
        if (ends_in(tensor.name, sums_suffix, &stem))
            status = read_sums(p, &tensor, stem, out, error);
    ak_provider_close(p);
    if (status == AKUNU_OK && out->n == 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "no tensor ends in %s", sums_suffix);
    return status;
}

/* ---- The older form ----------------------------------------------------- */
/* Number of entries; of each the length of a name, the name, a number of calls, a number of values,
 * and the values, as sums over the calls. Then may follow the number of all calls, and the text's
 * name with its length. Integers have 32 bits. */
static ak_status read_importance_entry(struct ak_cursor *c, struct ak_importance *out,
                                       struct ak_error *error)
{
    uint32_t n_name, n_calls, n;
    const uint8_t *name, *values;
    struct ak_importance_entry *e = NULL;
    if (!ak_cursor_read_u32(c, &n_name) || !ak_cursor_read_bytes(c, n_name, &name) ||
        !ak_cursor_read_u32(c, &n_calls) || !ak_cursor_read_u32(c, &n) ||
        !ak_cursor_read_bytes(c, (uint64_t)n * sizeof(float), &values))
        return ak_fail(error, AKUNU_ERROR_FORMAT, "the file ends within entry %zu", out->n);
    AK_TRY(new_entry(out, (const char *)name, n_name, n, 1, &e, error));
    memcpy(e->values, values, (size_t)n * sizeof(float));
    e->counts[0] = n_calls > 0 ? (float)n_calls : 1.0f;
    return check_entry(e, error);
}

static ak_status read_binary(const struct ak_file *file, struct ak_importance *out,
                             struct ak_error *error)
{
    enum { ENTRIES_MAX = 1 << 20 };
    struct ak_cursor c = ak_cursor_init(file->data, file->bytes);
    uint32_t n, n_calls, n_name;
    const uint8_t *name;
    if (!ak_cursor_read_u32(&c, &n) || n == 0 || n > ENTRIES_MAX)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "neither GGUF nor the older form of an importance matrix");
    out->has_calls = true;
    for (uint32_t i = 0; i < n; i++)
        AK_TRY(read_importance_entry(&c, out, error));
    if (ak_cursor_read_u32(&c, &n_calls) && ak_cursor_read_u32(&c, &n_name) && n_name > 0 &&
        ak_cursor_read_bytes(&c, n_name, &name))
        return add_dataset(out, (const char *)name, n_name, error);
    return AKUNU_OK;
}

/* ---- Both --------------------------------------------------------------- */
ak_status ak_importance_index(struct ak_importance *im, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    ak_name_index_free(&im->index);
    AK_TRY(ak_name_index_alloc(&im->index, im->n, error));
    for (uint32_t i = 0; i < im->index.n; i++)
        im->index.entries[i] = (struct ak_name_index_entry){ im->entries[i].name, i };
    const char *twice = ak_name_index_sort(&im->index);
    return twice ? ak_fail(error, AKUNU_ERROR_FORMAT, "%s is there twice",
                           ak_show(twice, strlen(twice), shown)) :
                   AKUNU_OK;
}

ak_status ak_importance_read(const char *path, struct ak_importance *out, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    struct ak_file file;
    *out = (struct ak_importance){ .n = 0 };
    AK_TRY(ak_file_open(path, &file, error));
    ak_status status = file.bytes >= 4 && memcmp(file.data, "GGUF", 4) == 0 ?
                           read_gguf(path, out, error) :
                           read_binary(&file, out, error);
    if (status == AKUNU_OK)
        status = ak_importance_index(out, error);
    ak_file_close(&file);
    if (status != AKUNU_OK)
        ak_error_prefix(error, ak_show_path(path, shown));
    return status;
}

void ak_importance_free(struct ak_importance *importance)
{
    for (size_t i = 0; i < importance->n; i++) {
        ak_free(importance->entries[i].name);
        ak_free(importance->entries[i].values);
        ak_free(importance->entries[i].counts);
    }
    for (size_t i = 0; i < importance->n_datasets; i++)
        ak_free(importance->datasets[i]);
    ak_free(importance->datasets);
    ak_free(importance->entries);
    ak_name_index_free(&importance->index);
    *importance = (struct ak_importance){ .n = 0 };
}

ak_status ak_importance_average(struct ak_importance *importance, struct ak_error *error)
{
    for (size_t i = 0; i < importance->n; i++) {
        struct ak_importance_entry *e = &importance->entries[i];
        for (uint64_t j = 0; j < e->n; j++) {
            float count = e->counts[j / (e->n / e->n_matrices)];
            e->values[j] = count > 0.0f ? e->values[j] / count : 1.0f;
        }
        AK_TRY(check_entry(e, error));
    }
    return AKUNU_OK;
}

const struct ak_importance_entry *ak_importance_find(const struct ak_importance *importance,
                                                     const char *name)
{
    uint32_t i;
    return importance->n > 0 && ak_name_index_find(&importance->index, name, &i) ?
               &importance->entries[i] :
               NULL;
}

uint64_t ak_importance_tokens(const struct ak_importance *im)
{
    float largest = 0.0f;
    for (size_t i = 0; i < im->n; i++)
        for (uint64_t m = 0; m < im->entries[i].n_matrices; m++)
            largest = fmaxf(largest, im->entries[i].counts[m]);
    return largest < 0x1p63f ? (uint64_t)largest : INT64_MAX;
}

/* ---- Merging ------------------------------------------------------------ */
/* Entries of one tensor that have one count stand for any number of matrices. */
static ak_status check_pair(const struct ak_importance_entry *a,
                            const struct ak_importance_entry *b, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    bool counts_fit = a->n_matrices == b->n_matrices || a->n_matrices == 1 || b->n_matrices == 1;
    if (a->n == b->n && counts_fit)
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                   "%s: %llu values of %llu matrices, where %llu of %llu are expected; it is of "
                   "another model",
                   ak_show(b->name, strlen(b->name), shown), (unsigned long long)b->n,
                   (unsigned long long)b->n_matrices, (unsigned long long)a->n,
                   (unsigned long long)a->n_matrices);
}

/* Gives an entry a count per matrix, all of which are the one that it has. */
static ak_status broadcast_count(struct ak_importance_entry *e, uint64_t n_matrices,
                                 struct ak_error *error)
{
    if (e->n_matrices >= n_matrices)
        return AKUNU_OK;
    float *counts = ak_realloc(e->counts, (size_t)n_matrices, sizeof *counts);
    if (!counts)
        return ak_fail_memory(error, "importance", n_matrices * sizeof *counts);
    for (uint64_t m = e->n_matrices; m < n_matrices; m++)
        counts[m] = counts[0];
    e->counts = counts;
    e->n_matrices = n_matrices;
    return AKUNU_OK;
}

/* Adds in double, so that a sum is rounded once. */
static float add_scaled(float sum, float more, double factor)
{
    return (float)((double)sum + (double)more * factor);
}

/* The entry of `to` that b is added to, a new one if there is none. */
static ak_status find_or_add(struct ak_importance *to, const struct ak_importance_entry *b,
                             struct ak_importance_entry **out, struct ak_error *error)
{
    uint32_t i;
    if (to->index.n > 0 && ak_name_index_find(&to->index, b->name, &i))
        *out = &to->entries[i];
    else
        AK_TRY(new_entry(to, b->name, strlen(b->name), b->n, b->n_matrices, out, error));
    return broadcast_count(*out, b->n_matrices, error);
}

ak_status ak_importance_merge(struct ak_importance *to, const struct ak_importance *from,
                              uint32_t chunk_size, struct ak_error *error)
{
    double factor = from->has_calls ? chunk_size : 1.0;
    for (size_t i = 0; i < from->n; i++) {
        const struct ak_importance_entry *b = &from->entries[i],
                                         *a = ak_importance_find(to, b->name);
        if (a)
            AK_TRY(check_pair(a, b, error));
    }
    for (size_t i = 0; i < from->n_datasets; i++)
        AK_TRY(ak_importance_add_dataset(to, from->datasets[i], error));
    for (size_t i = 0; i < from->n; i++) {
        const struct ak_importance_entry *b = &from->entries[i];
        struct ak_importance_entry *a = NULL;
        AK_TRY(find_or_add(to, b, &a, error));
        for (uint64_t j = 0; j < b->n; j++)
            a->values[j] = add_scaled(a->values[j], b->values[j], factor);
        for (uint64_t m = 0; m < a->n_matrices; m++)
            a->counts[m] = add_scaled(a->counts[m], b->counts[b->n_matrices == 1 ? 0 : m], factor);
        AK_TRY(check_entry(a, error));
    }
    return ak_importance_index(to, error);
}
