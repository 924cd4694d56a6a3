/* Both forms are maps of names to sums; what is read is copied, so that the file can go. */
#include "convert/importance.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "weights/provider.h"

static const char sums_suffix[] = ".in_sum2", counts_suffix[] = ".counts";

static ak_status add_entry(struct ak_importance *im, const char *name, size_t n_name, uint64_t n,
                           struct ak_importance_entry **out, struct ak_error *error)
{
    if (im->n == im->capacity) {
        size_t capacity = im->capacity ? 2 * im->capacity : 64;
        struct ak_importance_entry *entries = ak_realloc(im->entries, capacity, sizeof *entries);
        if (!entries)
            return ak_fail_memory(error, "importance", capacity * sizeof *entries);
        im->entries = entries;
        im->capacity = capacity;
    }
    *out = &im->entries[im->n++];
    **out = (struct ak_importance_entry){ .name = ak_strndup(name, n_name),
                                          .values = ak_alloc((size_t)n, sizeof(float)),
                                          .n = n };
    return (*out)->name && (*out)->values ? AKUNU_OK :
                                            ak_fail_memory(error, "importance", n * sizeof(float));
}

static ak_status check_values(const struct ak_importance_entry *e, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    for (uint64_t i = 0; i < e->n; i++)
        if (!isfinite(e->values[i]) || e->values[i] < 0.0f)
            return ak_fail(error, AKUNU_ERROR_FORMAT,
                           "the importance of %s, column %llu, is %g; expected 0 or more",
                           ak_show(e->name, strlen(e->name), shown), (unsigned long long)i,
                           (double)e->values[i]);
    return AKUNU_OK;
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

/* Sums of squares, divided by how many rows each matrix has seen. One that has seen none: all
 * columns count alike. */
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
    if (sums->type != AK_QUANT_F32 || counts.type != AK_QUANT_F32 || n % n_matrices != 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "%s has %llu values of %s for %llu matrices; expected F32, as many for each",
                       shown, (unsigned long long)n, ak_quant_info(sums->type)->name,
                       (unsigned long long)n_matrices);
    AK_TRY(add_entry(im, sums->name, stem, n, &e, error));
    memcpy(e->values, sums->data, n * sizeof(float));
    for (uint64_t i = 0; i < n; i++) {
        float count;
        memcpy(&count, (const uint8_t *)counts.data + i / (n / n_matrices) * sizeof count,
               sizeof count);
        e->values[i] = count > 0.0f ? e->values[i] / count : 1.0f;
    }
    return check_values(e, error);
}

static ak_status read_gguf(const char *path, struct ak_importance *out, struct ak_error *error)
{
    struct ak_provider *p;
    struct ak_tensor tensor;
    size_t stem;
    AK_TRY(ak_provider_open(path, &p, error));
    ak_status status = AKUNU_OK;
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
 * and the values, as sums over the calls. Integers have 32 bits. More may follow. */
static ak_status read_entry(struct ak_cursor *c, struct ak_importance *out, struct ak_error *error)
{
    uint32_t n_name, n_calls, n;
    const uint8_t *name, *values;
    struct ak_importance_entry *e = NULL;
    if (!ak_cursor_read_u32(c, &n_name) || !ak_cursor_read_bytes(c, n_name, &name) ||
        !ak_cursor_read_u32(c, &n_calls) || !ak_cursor_read_u32(c, &n) ||
        !ak_cursor_read_bytes(c, (uint64_t)n * sizeof(float), &values))
        return ak_fail(error, AKUNU_ERROR_FORMAT, "the file ends within entry %zu", out->n);
    AK_TRY(add_entry(out, (const char *)name, n_name, n, &e, error));
    memcpy(e->values, values, (size_t)n * sizeof(float));
    for (uint32_t i = 0; n_calls > 0 && i < n; i++)
        e->values[i] /= (float)n_calls;
    return check_values(e, error);
}

static ak_status read_binary(const struct ak_file *file, struct ak_importance *out,
                             struct ak_error *error)
{
    enum { ENTRIES_MAX = 1 << 20 };
    struct ak_cursor c = ak_cursor_init(file->data, file->bytes);
    uint32_t n;
    if (!ak_cursor_read_u32(&c, &n) || n == 0 || n > ENTRIES_MAX)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "neither GGUF nor the older form of an importance matrix");
    for (uint32_t i = 0; i < n; i++)
        AK_TRY(read_entry(&c, out, error));
    return AKUNU_OK;
}

/* ---- Both --------------------------------------------------------------- */
static ak_status index_entries(struct ak_importance *im, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
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
        status = index_entries(out, error);
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
    }
    ak_free(importance->entries);
    ak_name_index_free(&importance->index);
    *importance = (struct ak_importance){ .n = 0 };
}

const struct ak_importance_entry *ak_importance_find(const struct ak_importance *importance,
                                                     const char *name)
{
    uint32_t i;
    return importance->n > 0 && ak_name_index_find(&importance->index, name, &i) ?
               &importance->entries[i] :
               NULL;
}
