/* Reads the header of a SafeTensors file. The file is untrusted: every shape, type and offset is
 * checked, and all bytes of the data must belong to exactly one tensor. */
#include "files/weights/hf/hf.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"

enum { LENGTH_BYTES = 8, HEADER_BYTES_MAX = 100000000 /* limit of the reference implementation */ };

static const struct {
    const char *name;
    enum ak_quant_type type;
} dtypes[] = {
    { "F32", AK_QUANT_F32 },         { "F16", AK_QUANT_F16 },
    { "BF16", AK_QUANT_BF16 },       { "F64", AK_QUANT_F64 },
    { "BOOL", AK_QUANT_BOOL },       { "I8", AK_QUANT_I8 },
    { "U8", AK_QUANT_U8 },           { "I16", AK_QUANT_I16 },
    { "U16", AK_QUANT_U16 },         { "I32", AK_QUANT_I32 },
    { "U32", AK_QUANT_U32 },         { "I64", AK_QUANT_I64 },
    { "U64", AK_QUANT_U64 },         { "F8_E4M3", AK_QUANT_F8_E4M3 },
    { "F8_E5M2", AK_QUANT_F8_E5M2 }, { "F8_E8M0", AK_QUANT_F8_E8M0 },
};

/* Context of checking one tensor. */
struct entry {
    const char *name; /* escaped for messages */
    const json_t *info;
    uint64_t data, data_bytes; /* offset and size of the file's tensor data */
    struct ak_error *error;
};

bool ak_hf_safetensors_probe(const struct ak_file *file)
{
    struct ak_cursor c = ak_cursor_init(file->data, file->bytes);
    uint64_t header;
    uint8_t first;
    return ak_cursor_read_u64(&c, &header) && ak_cursor_read_u8(&c, &first) && header >= 2 &&
           header < UINT64_C(1) << 32 && first == '{';
}

/* The format has dtypes that akunu lacks, such as complex numbers, and gets new ones. The model may
 * not use such a tensor. */
static ak_status read_type(const struct entry *e, struct ak_hf_tensor *t)
{
    char shown[AK_SHOW_BYTES];
    const json_t *dtype = json_object_get(e->info, "dtype");
    const char *name = json_string_value(dtype);
    if (!name)
        return ak_fail(e->error, AKUNU_ERROR_FORMAT,
                       "tensor %s: dtype is %s, where a string is expected", e->name,
                       ak_json_kind(dtype));
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (strcmp(dtypes[i].name, name) == 0) {
            t->type = dtypes[i].type;
            return AKUNU_OK;
        }
    t->type = AK_QUANT_U8;
    ak_show(name, json_string_length(dtype), shown);
    t->dtype = ak_strndup(shown, strlen(shown));
    return t->dtype ? AKUNU_OK : ak_fail_memory(e->error, "the name of a type", strlen(shown) + 1);
}

/* Reads element i of a list of counts. */
static ak_status read_list_count(const struct entry *e, const json_t *list, const char *what,
                                 size_t i, uint64_t *out)
{
    const json_t *value = json_array_get(list, i);
    if (!json_is_integer(value))
        return ak_fail(e->error, AKUNU_ERROR_FORMAT,
                       "tensor %s: %s has %s, where integers are expected", e->name, what,
                       ak_json_kind(value));
    if (json_integer_value(value) < 0)
        return ak_fail(e->error, AKUNU_ERROR_FORMAT,
                       "tensor %s: %s has %lld, where at least 0 is expected", e->name, what,
                       (long long)json_integer_value(value));
    *out = (uint64_t)json_integer_value(value);
    return AKUNU_OK;
}

/* Each dimension must fit in 32 bits, and so must the product of all except the last. */
static ak_status read_shape(const struct entry *e, struct ak_hf_tensor *t)
{
    const json_t *shape = json_object_get(e->info, "shape");
    if (!json_is_array(shape))
        return ak_fail(e->error, AKUNU_ERROR_FORMAT,
                       "tensor %s: shape is %s, where a list is expected", e->name,
                       ak_json_kind(shape));
    size_t n = json_array_size(shape);
    if (n > AK_TENSOR_DIMS_MAX)
        return ak_fail(e->error, AKUNU_ERROR_UNSUPPORTED,
                       "tensor %s has %zu dimensions, where at most %d are supported", e->name, n,
                       AK_TENSOR_DIMS_MAX);
    uint64_t rows = 1;
    t->n_dims = n ? (unsigned)n : 1;
    t->shape[0] = 1;
    for (size_t d = 0; d < n; d++) {
        AK_TRY(read_list_count(e, shape, "shape", d, &t->shape[d]));
        if (t->shape[d] > UINT32_MAX || (d + 1 < n && (rows *= t->shape[d]) > UINT32_MAX))
            return ak_fail(e->error, AKUNU_ERROR_FORMAT,
                           "tensor %s: dimension %zu is %llu, which is too large", e->name, d,
                           (unsigned long long)t->shape[d]);
    }
    return AKUNU_OK;
}

static ak_status count_bytes(const struct entry *e, struct ak_hf_tensor *t)
{
    t->bytes = ak_quant_info(t->type)->block_bytes;
    for (unsigned d = 0; d < t->n_dims; d++)
        if (!ak_mul_u64(t->bytes, t->shape[d], &t->bytes))
            return ak_fail(e->error, AKUNU_ERROR_FORMAT,
                           "tensor %s: the size of its shape overflows 64 bits", e->name);
    return AKUNU_OK;
}

static ak_status read_offsets(const struct entry *e, struct ak_hf_tensor *t)
{
    const json_t *offsets = json_object_get(e->info, "data_offsets");
    uint64_t begin, end;
    if (json_array_size(offsets) != 2)
        return ak_fail(e->error, AKUNU_ERROR_FORMAT,
                       "tensor %s: data_offsets is %s of %zu elements, where a list of two offsets "
                       "is expected",
                       e->name, ak_json_kind(offsets), json_array_size(offsets));
    AK_TRY(read_list_count(e, offsets, "data_offsets", 0, &begin));
    AK_TRY(read_list_count(e, offsets, "data_offsets", 1, &end));
    if (end < begin)
        return ak_fail(e->error, AKUNU_ERROR_FORMAT,
                       "tensor %s: data_offsets end at %llu, before they begin at %llu", e->name,
                       (unsigned long long)end, (unsigned long long)begin);
    if (end > e->data_bytes)
        return ak_fail(e->error, AKUNU_ERROR_FORMAT,
                       "tensor %s: data_offsets are %llu to %llu, beyond the end of the file "
                       "(which has %llu bytes of data)",
                       e->name, (unsigned long long)begin, (unsigned long long)end,
                       (unsigned long long)e->data_bytes);
    if (t->dtype)
        t->bytes = end - begin;
    if (end - begin != t->bytes)
        return ak_fail(
            e->error, AKUNU_ERROR_FORMAT,
            "tensor %s: data_offsets span %llu bytes, but its shape and dtype (%s) need %llu",
            e->name, (unsigned long long)(end - begin), ak_quant_info(t->type)->name,
            (unsigned long long)t->bytes);
    t->offset = e->data + begin;
    return AKUNU_OK;
}

static ak_status read_st_tensor(const struct entry *e, struct ak_hf_tensor *t)
{
    if (!json_is_object(e->info))
        return ak_fail(e->error, AKUNU_ERROR_FORMAT, "tensor %s is %s, where an object is expected",
                       e->name, ak_json_kind(e->info));
    AK_TRY(read_type(e, t));
    AK_TRY(read_shape(e, t));
    AK_TRY(count_bytes(e, t));
    return read_offsets(e, t);
}

static ak_status check_metadata(json_t *metadata, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    const char *key;
    json_t *value;
    if (!json_is_object(metadata))
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "header: __metadata__ is %s, where an object is expected",
                       ak_json_kind(metadata));
    json_object_foreach (metadata, key, value)
        if (!json_is_string(value))
            return ak_fail(error, AKUNU_ERROR_FORMAT,
                           "header: __metadata__ has %s under %s, where strings are expected",
                           ak_json_kind(value), ak_show(key, strlen(key), shown));
    return AKUNU_OK;
}

static int by_offset(const void *a, const void *b)
{
    const struct ak_hf_tensor *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static const char *show_name(const struct ak_hf_tensor *t, char *out)
{
    return ak_show(t->name, strlen(t->name), out);
}

/* Checks that every byte of the data belongs to exactly one tensor, as the format requires. */
static ak_status check_cover(const struct ak_hf_tensor *tensors, size_t n, uint64_t begin,
                             uint64_t end, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES], other[AK_SHOW_BYTES];
    uint64_t next = begin;
    for (size_t i = 0; i < n; i++) {
        const struct ak_hf_tensor *t = &tensors[i];
        if (t->offset < next)
            return ak_fail(error, AKUNU_ERROR_FORMAT,
                           "tensors %s and %s (data_offsets from %llu) share bytes",
                           show_name(&tensors[i - 1], other), show_name(t, shown),
                           (unsigned long long)(t->offset - begin));
        if (t->offset > next)
            return ak_fail(
                error, AKUNU_ERROR_FORMAT,
                "bytes %llu to %llu of the data, between %s and %s, belong to no tensor",
                (unsigned long long)(next - begin), (unsigned long long)(t->offset - begin),
                i ? show_name(&tensors[i - 1], other) : "the header", show_name(t, shown));
        next = t->offset + t->bytes;
    }
    if (next != end)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "the file has %llu bytes, but its last tensor ends at %llu",
                       (unsigned long long)end, (unsigned long long)next);
    return AKUNU_OK;
}

static ak_status reserve_tensors(struct ak_hf_tensor_list *list, size_t more,
                                 struct ak_error *error)
{
    void *grown = ak_realloc(list->tensors, list->n + more, sizeof *list->tensors);
    if (!grown)
        return ak_fail_memory(error, "a list of tensors", more * sizeof *list->tensors);
    list->tensors = grown;
    return AKUNU_OK;
}

static ak_status read_st_header(const struct ak_file *file, json_t *header, uint64_t data,
                                uint32_t part, struct ak_hf_tensor_list *list,
                                struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    const char *name;
    json_t *info;
    if (!json_is_object(header))
        return ak_fail(error, AKUNU_ERROR_FORMAT, "header: %s, where an object is expected",
                       ak_json_kind(header));
    AK_TRY(reserve_tensors(list, json_object_size(header), error));
    size_t first = list->n;
    json_object_foreach (header, name, info) {
        if (strcmp(name, "__metadata__") == 0) {
            AK_TRY(check_metadata(info, error));
            continue;
        }
        struct ak_hf_tensor t = { .part = part };
        struct entry e = { ak_show(name, strlen(name), shown), info, data, file->bytes - data,
                           error };
        ak_status status = read_st_tensor(&e, &t);
        t.name = ak_strndup(name, strlen(name));
        list->tensors[list->n++] = t; /* what it owns is freed with the list */
        AK_TRY(status);
        if (!t.name)
            return ak_fail_memory(error, "a tensor's name", strlen(name) + 1);
    }
    qsort(list->tensors + first, list->n - first, sizeof *list->tensors, by_offset);
    return check_cover(list->tensors + first, list->n - first, data, file->bytes, error);
}

/* Finds the header's text. Fails if the file is shorter than the stated length. */
static ak_status find_header(const struct ak_file *file, const uint8_t **text, uint64_t *n,
                             struct ak_error *error)
{
    struct ak_cursor c = ak_cursor_init(file->data, file->bytes);
    if (file->bytes == 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "an empty file, where a SafeTensors file is expected");
    if (!ak_cursor_read_u64(&c, n))
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "the end of the file (%llu bytes) is inside the header length of %d bytes",
                       (unsigned long long)file->bytes, LENGTH_BYTES);
    if (*n < 2)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "header length of %llu bytes, where at least 2 are expected",
                       (unsigned long long)*n);
    if (*n > ak_cursor_bytes_left(&c))
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "header length of %llu bytes, beyond the end of the file (%llu bytes)",
                       (unsigned long long)*n, (unsigned long long)file->bytes);
    if (*n > HEADER_BYTES_MAX)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "header length of %llu bytes, where at most %d are possible",
                       (unsigned long long)*n, HEADER_BYTES_MAX);
    ak_cursor_read_bytes(&c, *n, text);
    return AKUNU_OK;
}

ak_status ak_hf_safetensors_read(const struct ak_file *file, uint32_t part,
                                 struct ak_hf_tensor_list *list, uint64_t *data,
                                 struct ak_error *error)
{
    const uint8_t *text;
    uint64_t n;
    json_t *header;
    AK_TRY(find_header(file, &text, &n, error));
    ak_status status = ak_json_parse_file(text, (size_t)n, &header, error);
    if (status != AKUNU_OK) {
        ak_error_prefix(error, "header");
        return status;
    }
    *data = LENGTH_BYTES + n;
    status = read_st_header(file, header, *data, part, list, error);
    json_decref(header);
    return status;
}

void ak_hf_tensor_list_free(struct ak_hf_tensor_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        ak_free(list->tensors[i].name);
        ak_free(list->tensors[i].dtype);
    }
    ak_free(list->tensors);
    *list = (struct ak_hf_tensor_list){ 0 };
}
