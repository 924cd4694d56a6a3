/* Compressed models: a folder of NumPy arrays named by manifest.json, with the sidecars of a
 * Hugging Face folder. docs/npy-directory.md specifies the format.
 *
 *     tensors/SAFE__q.npy    i8  [rows, cols]          SAFE__s.npy   f32 [rows] or [rows, groups]
 *     tensors/SAFE__q4.npy   u8  [rows, cols / 2]      SAFE__s4.npy  f32 [rows, groups]
 *     tensors/SAFE__q3.npy   u8  [rows, cols · 3 / 8]  SAFE__s3.npy  f32 [rows, groups]
 *     tensors/SAFE__pt.npy   f16 or f32, of the tensor's shape
 *     tensors/SAFE__shape.npy  the tensor's shape
 *
 *     x = scale · q, q signed; 4 and 3 bits are stored as q + 8 and q + 4, lowest bits first
 *
 *     model-metadata.gguf      optional: a GGUF file without tensors, for the vocabulary, the chat
 *                              templates and metadata that the sidecars lack
 *
 * SAFE is the tensor's name with "__" for each dot. A tensor may have several encodings: one of
 * them is read, files of the others are ignored. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "files/weights/hf/quant.h"
#include "files/weights/npy/npy.h"

enum {
    VERSION = 1,
    PROBE_BYTES = 4096, /* the manifest must name its format in these first bytes */
    MAX_MANIFEST = 32 << 20,
    MAX_TENSORS = 1 << 16, /* each takes two maps; Linux allows about 65530 by default */
    ARRAYS = 2,            /* per tensor: numbers and scales */
    NAME_BYTES = 256
};

static const char format_name[] = "akunu-npy";

/* ---- Rows --------------------------------------------------------------- */
/* Unsigned numbers of a row; INT8's signed bytes get half of the range added. */
static void quants(const struct ak_composed_tensor *a, uint64_t row, uint32_t first, uint32_t n,
                   uint8_t *out)
{
    ak_composed_read_bits(a, row, first, n, out);
    for (uint32_t i = 0; a->bits == 8 && i < n; i++)
        out[i] ^= 0x80;
}

static void npy_factors(const struct ak_composed_tensor *a, uint64_t row, uint32_t k, float *scale,
                        float *minimum)
{
    *scale =
        ak_composed_factor(AK_QUANT_F32, &a->plane[1], row * (a->cols / a->group) + k / a->group);
    *minimum = -(*scale * (float)(1 << (a->bits - 1)));
}

static void values(const struct ak_composed_tensor *a, uint64_t row, uint32_t first, uint32_t n,
                   float *out)
{
    uint8_t q[AK_COMPOSED_ELEMS_MAX];
    int half = 1 << (a->bits - 1);
    quants(a, row, first, n, q);
    for (uint32_t i = 0; i < n; i++)
        out[i] = ak_composed_factor(AK_QUANT_F32, &a->plane[1],
                                    row * (a->cols / a->group) + (first + i) / a->group) *
                 (float)(q[i] - half);
}

static const struct ak_composed_scheme scheme = {
    .quants = quants, .factors = npy_factors, .values = values, .is_row_major = true
};

/* ---- Encodings, the best first ------------------------------------------ */
static const struct encoding {
    const char *name, *numbers, *scales; /* key in the manifest; suffixes of the files */
    enum ak_quant_type type;
    uint32_t bits;
} encodings[] = {
    { "int8", "__q", "__s", AK_QUANT_I8, 8 },
    { "int4", "__q4", "__s4", AK_QUANT_U8, 4 },
    { "int3", "__q3", "__s3", AK_QUANT_U8, 3 },
    { "plain", "__pt", NULL, AK_QUANT_F16, 0 },
};
enum { N_ENCODINGS = sizeof encodings / sizeof *encodings };

static const struct encoding *encoding_of(const char *name)
{
    for (size_t i = 0; name && i < N_ENCODINGS; i++)
        if (strcmp(encodings[i].name, name) == 0)
            return &encodings[i];
    return NULL;
}

/* `wanted` if the tensor has it, else the best encoding that it has. */
static const struct encoding *choose_encoding(const json_t *info, const struct encoding *wanted)
{
    if (wanted && json_object_get(info, wanted->name))
        return wanted;
    for (size_t i = 0; i < N_ENCODINGS; i++)
        if (json_object_get(info, encodings[i].name))
            return &encodings[i];
    return NULL;
}

/* ---- Arrays ------------------------------------------------------------- */
/* Context of reading one tensor. */
struct entry {
    struct ak_hf *h;
    const char *name; /* escaped for messages */
    char safe[NAME_BYTES];
    const json_t *info;
    const struct encoding *encoding;
    const json_t *settings; /* the encoding's object */
    uint64_t shape[AK_TENSOR_DIMS_MAX], rows, cols;
    unsigned n_dims;
    uint32_t group; /* columns that share a scale */
    struct ak_error *error;
};

/* Maps tensors/SAFE + SUFFIX and releases its descriptor, because there may be thousands. */
static ak_status open_array(const struct entry *e, const char *suffix, struct ak_file *file,
                            struct ak_npy *array)
{
    char path[NAME_BYTES + 32];
    snprintf(path, sizeof path, "tensors/%s%s.npy", e->safe, suffix);
    AK_TRY(ak_hf_open_file(e->h, path, file, e->error));
    ak_status status = ak_npy_probe(file) ? ak_npy_read(file, array, e->error) :
                                            ak_fail(e->error, AKUNU_ERROR_FORMAT, "no NumPy array");
    if (status != AKUNU_OK) {
        ak_error_prefix(e->error, path);
        ak_file_close(file);
        return status;
    }
    ak_file_release(file);
    return AKUNU_OK;
}

/* Adds the array to the list of tensors, under the name of its file. */
static ak_status add_array(const struct entry *e, const char *suffix,
                           const struct ak_hf_tensor **out)
{
    struct ak_hf_part *part = &e->h->parts[e->h->n_parts];
    struct ak_hf_tensor *t = &e->h->list.tensors[e->h->list.n];
    struct ak_npy array;
    char name[NAME_BYTES + 16];
    AK_TRY(open_array(e, suffix, &part->file, &array));
    snprintf(name, sizeof name, "%s%s", e->safe, suffix);
    *t = (struct ak_hf_tensor){ .name = ak_strndup(name, strlen(name)),
                                .part = e->h->n_parts,
                                .type = array.type,
                                .n_dims = array.n_dims,
                                .offset = array.offset,
                                .bytes = array.bytes };
    memcpy(t->shape, array.shape, sizeof t->shape);
    part->name = strrchr(part->file.path, '/') + 1;
    part->data = array.offset;
    e->h->n_parts++;
    if (!t->name)
        return ak_fail_memory(e->error, "a tensor's name", strlen(name) + 1);
    e->h->list.n++;
    *out = t;
    return AKUNU_OK;
}

static ak_status expect_type(const struct entry *e, const struct ak_hf_tensor *t,
                             enum ak_quant_type type)
{
    if (t->type == type)
        return AKUNU_OK;
    return ak_fail(e->error, AKUNU_ERROR_FORMAT, "%s is %s; expected %s", t->name,
                   ak_quant_info(t->type)->name, ak_quant_info(type)->name);
}

static uint64_t npy_number(const struct ak_npy *array, const uint8_t *data, uint64_t i)
{
    struct ak_cursor c = ak_cursor_init(data + i * ak_quant_info(array->type)->block_bytes, 8);
    uint64_t value64 = UINT64_MAX;
    uint32_t value32 = UINT32_MAX;
    if (ak_quant_info(array->type)->block_bytes == 8) {
        ak_cursor_read_u64(&c, &value64);
        return value64;
    }
    ak_cursor_read_u32(&c, &value32);
    return value32;
}

/* SAFE__shape.npy must agree with the manifest. */
static ak_status check_shape_file(const struct entry *e)
{
    struct ak_file file;
    struct ak_npy array;
    ak_status status = AKUNU_OK;
    AK_TRY(open_array(e, "__shape", &file, &array));
    bool whole = array.type == AK_QUANT_I64 || array.type == AK_QUANT_U64 ||
                 array.type == AK_QUANT_I32 || array.type == AK_QUANT_U32;
    if (!whole || array.n_dims != 1 || array.shape[0] != e->n_dims)
        status = ak_fail(
            e->error, AKUNU_ERROR_FORMAT,
            "%s__shape is %s of %llu in %u dimensions; expected %u whole numbers of 32 or 64 bits",
            e->safe, ak_quant_info(array.type)->name, (unsigned long long)array.shape[0],
            array.n_dims, e->n_dims);
    for (unsigned d = 0; status == AKUNU_OK && d < e->n_dims; d++) {
        uint64_t found = npy_number(&array, file.data + array.offset, d);
        if (found != e->shape[d])
            status = ak_fail(e->error, AKUNU_ERROR_FORMAT,
                             "%s__shape has %llu at %u, where the manifest has %llu", e->safe,
                             (unsigned long long)found, d, (unsigned long long)e->shape[d]);
    }
    ak_file_close(&file);
    return status;
}

/* ---- One tensor of the manifest ----------------------------------------- */
/* Makes SAFE. Only letters, digits, '.', '_' and '-' are accepted, so the path stays in the
 * folder. */
static ak_status make_safe(struct entry *e, const char *name)
{
    size_t n = 0;
    for (const char *c = name; *c; c++) {
        bool fine = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                    (*c >= '0' && *c <= '9') || strchr("._-", *c);
        if (!fine)
            return ak_fail(e->error, AKUNU_ERROR_FORMAT,
                           "tensors: the name %s is not of letters, digits, '.', '_' and '-' alone",
                           e->name);
        if (n + 16 > sizeof e->safe) /* leaves room for a suffix */
            return ak_fail(e->error, AKUNU_ERROR_FORMAT,
                           "tensors: the name %s is too long for a file", e->name);
        e->safe[n++] = *c == '.' ? '_' : *c;
        if (*c == '.')
            e->safe[n++] = '_';
    }
    e->safe[n] = '\0';
    return n > 0 ? AKUNU_OK : ak_fail(e->error, AKUNU_ERROR_FORMAT, "tensors: a name is empty");
}

static ak_status read_shape(struct entry *e)
{
    const json_t *shape = json_object_get(e->info, "shape");
    size_t n = json_array_size(shape);
    if (n < 1 || n > AK_TENSOR_DIMS_MAX)
        return ak_fail(e->error, AKUNU_ERROR_FORMAT,
                       "%s: shape is %s of %zu, where a list of 1 to %d sizes is expected", e->name,
                       ak_json_kind(shape), n, AK_TENSOR_DIMS_MAX);
    e->n_dims = (unsigned)n;
    e->rows = 1;
    for (unsigned d = 0; d < n; d++) {
        const json_t *size = json_array_get(shape, d);
        json_int_t value = json_integer_value(size);
        if (!json_is_integer(size) || value < 1 || value > UINT32_MAX ||
            (d + 1 < n && (e->rows *= (uint64_t)value) > UINT32_MAX))
            return ak_fail(
                e->error, AKUNU_ERROR_FORMAT,
                "%s: dimension %u of shape is %s %lld; expected 1 to 2^32 - 1, and rows below 2^32",
                e->name, d, ak_json_kind(size), (long long)value);
        e->shape[d] = (uint64_t)value;
    }
    e->cols = e->shape[n - 1];
    return AKUNU_OK;
}

static ak_status read_json_count(const struct entry *e, const char *key, uint64_t *out)
{
    const json_t *value = json_object_get(e->settings, key);
    if (!json_is_integer(value) || json_integer_value(value) < 1)
        return ak_fail(e->error, AKUNU_ERROR_FORMAT,
                       "%s: %s of %s is %s; expected a whole number above 0", e->name, key,
                       e->encoding->name, ak_json_kind(value));
    *out = (uint64_t)json_integer_value(value);
    return AKUNU_OK;
}

/* INT8 without a group: one scale per row. */
static ak_status read_group(struct entry *e)
{
    uint64_t group = e->cols;
    if (json_object_get(e->settings, "group") || e->encoding->bits != 8)
        AK_TRY(read_json_count(e, "group", &group));
    if (group % 32 != 0 || e->cols % group != 0)
        return ak_fail(
            e->error, AKUNU_ERROR_FORMAT,
            "%s: rows of %llu elements in groups of %llu; expected multiples of 32 that fit",
            e->name, (unsigned long long)e->cols, (unsigned long long)group);
    e->group = (uint32_t)group; /* divides 32 bits */
    return AKUNU_OK;
}

static ak_status check_bytes(const struct entry *e, uint64_t found)
{
    uint64_t bytes = 0;
    AK_TRY(read_json_count(e, "bytes", &bytes));
    if (bytes == found)
        return AKUNU_OK;
    return ak_fail(e->error, AKUNU_ERROR_FORMAT,
                   "%s: the arrays of %s have %llu bytes, where the manifest says %llu", e->name,
                   e->encoding->name, (unsigned long long)found, (unsigned long long)bytes);
}

/* Whether "scales" of the manifest promises that F16 represents all scales exactly. */
static ak_status read_precision(const struct entry *e, bool *halves)
{
    const json_t *value = json_object_get(e->settings, "scales");
    const char *text = json_string_value(value);
    *halves = text && strcmp(text, "f16") == 0;
    if (!value || *halves || (text && strcmp(text, "f32") == 0))
        return AKUNU_OK;
    return ak_fail(e->error, AKUNU_ERROR_FORMAT,
                   "%s: scales of %s is %s; expected \"f32\" or \"f16\"", e->name,
                   e->encoding->name, text ? "another text" : ak_json_kind(value));
}

/* 4-bit and 3-bit scales are always rounded to F16: weights move by at most 1/128 of half a
 * quantization step. INT8 weights could move by 1/8, so their scales stay F32 unless the manifest
 * says that F16 is exact. */
static ak_status npy_compose(const struct entry *e, const struct ak_hf_tensor *numbers,
                             const struct ak_hf_tensor *scales, struct ak_composed_tensor *out)
{
    char group[16] = "ROWS";
    bool halves;
    AK_TRY(read_precision(e, &halves));
    if (e->group != e->cols || e->encoding->bits != 8)
        snprintf(group, sizeof group, "G%u", e->group);
    *out = (struct ak_composed_tensor){
        .scheme = &scheme,
        .type = e->encoding->bits == 8 && !halves ?
                    AK_QUANT_A8 :
                    ak_composed_symmetric_type(e->encoding->bits, AK_QUANT_F16),
        .factor_type = AK_QUANT_F32,
        .n_dims = e->n_dims,
        .rows = (uint32_t)e->rows,
        .cols = (uint32_t)e->cols,
        .bits = e->encoding->bits,
        .group = e->group,
        .plane = { ak_hf_tensor_plane(e->h, numbers), ak_hf_tensor_plane(e->h, scales) },
    };
    memcpy(out->shape, e->shape, sizeof out->shape);
    snprintf(out->name, sizeof out->name, "INT%u_%s", out->bits, group);
    return AKUNU_OK;
}

static ak_status read_quantized(struct entry *e, struct ak_hf_weight *w)
{
    const struct ak_hf_tensor *numbers, *scales;
    AK_TRY(read_group(e));
    AK_TRY(add_array(e, e->encoding->numbers, &numbers));
    AK_TRY(add_array(e, e->encoding->scales, &scales));
    AK_TRY(expect_type(e, numbers, e->encoding->type));
    AK_TRY(expect_type(e, scales, AK_QUANT_F32));
    AK_TRY(ak_hf_expect_shape(numbers, (uint64_t[]){ e->rows, e->cols / 8 * e->encoding->bits }, 2,
                              e->error));
    bool flat = e->group == e->cols && scales->n_dims == 1;
    AK_TRY(ak_hf_expect_shape(scales, (uint64_t[]){ e->rows, e->cols / e->group }, flat ? 1 : 2,
                              e->error));
    AK_TRY(check_bytes(e, numbers->bytes + scales->bytes));
    w->composed_tensor = ak_alloc(1, sizeof *w->composed_tensor);
    if (!w->composed_tensor)
        return ak_fail_memory(e->error, "a quantized weight", sizeof *w->composed_tensor);
    return npy_compose(e, numbers, scales, w->composed_tensor);
}

static ak_status read_plain(const struct entry *e)
{
    const struct ak_hf_tensor *t;
    AK_TRY(add_array(e, e->encoding->numbers, &t));
    if (t->type != AK_QUANT_F32)
        AK_TRY(expect_type(e, t, AK_QUANT_F16));
    AK_TRY(ak_hf_expect_shape(t, e->shape, e->n_dims, e->error));
    return check_bytes(e, t->bytes);
}

static ak_status read_npy_tensor(struct ak_hf *h, const char *name, const json_t *info,
                                 const struct encoding *wanted, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    struct entry e = {
        .h = h, .name = ak_show(name, strlen(name), shown), .info = info, .error = error
    };
    struct ak_hf_weight *w = &h->weights[h->n_weights];
    AK_TRY(make_safe(&e, name));
    e.encoding = choose_encoding(info, wanted);
    if (!e.encoding)
        return ak_fail(
            error, AKUNU_ERROR_FORMAT,
            "%s is %s without int8, int4, int3 or plain; expected an object with one of them",
            e.name, ak_json_kind(info));
    e.settings = json_object_get(info, e.encoding->name);
    if (!json_is_object(e.settings))
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: %s is %s; expected an object", e.name,
                       e.encoding->name, ak_json_kind(e.settings));
    AK_TRY(read_shape(&e));
    AK_TRY(check_shape_file(&e));
    *w = (struct ak_hf_weight){ .own_name = ak_strndup(name, strlen(name)),
                                .position = (uint32_t)h->list.n };
    if (!w->own_name)
        return ak_fail_memory(error, "a tensor's name", strlen(name) + 1);
    w->name = w->own_name;
    h->n_weights++;
    return e.encoding->bits ? read_quantized(&e, w) : read_plain(&e);
}

/* ---- The manifest ------------------------------------------------------- */
static ak_status expect_text(const json_t *manifest, const char *key, const char *expected,
                             struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    const json_t *value = json_object_get(manifest, key);
    const char *text = json_string_value(value);
    if (text && strcmp(text, expected) == 0)
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_FORMAT, "%s is %s; expected \"%s\"", key,
                   text ? ak_show(text, strlen(text), shown) : ak_json_kind(value), expected);
}

static ak_status check_head(const json_t *manifest, const struct encoding **wanted,
                            struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    const json_t *version = json_object_get(manifest, "version"),
                 *use = json_object_get(manifest, "use");
    const char *text = json_string_value(use);
    AK_TRY(expect_text(manifest, "format", format_name, error));
    if (!json_is_integer(version) || json_integer_value(version) != VERSION)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "version is %s %lld; expected %d",
                       ak_json_kind(version), (long long)json_integer_value(version), VERSION);
    AK_TRY(expect_text(manifest, "names", "huggingface", error));
    *wanted = encoding_of(text);
    if (use && !*wanted)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "use is %s; expected int8, int4, int3 or plain",
                       text ? ak_show(text, strlen(text), shown) : ak_json_kind(use));
    return AKUNU_OK;
}

static ak_status allocate_tensors(struct ak_hf *h, const json_t *tensors, struct ak_error *error)
{
    size_t n = json_object_size(tensors);
    if (n == 0 || n > MAX_TENSORS)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "tensors is %s of %zu; expected an object of 1 to %d", ak_json_kind(tensors),
                       n, MAX_TENSORS);
    h->parts = ak_alloc(n, ARRAYS * sizeof *h->parts);
    h->list.tensors = ak_alloc(n, ARRAYS * sizeof *h->list.tensors);
    h->weights = ak_alloc(n, sizeof *h->weights);
    if (!h->parts || !h->list.tensors || !h->weights)
        return ak_fail_memory(error, "the tensors of a manifest",
                              n * ARRAYS * sizeof *h->list.tensors);
    return AKUNU_OK;
}

static ak_status read_tensors(struct ak_hf *h, json_t *manifest, struct ak_error *error)
{
    const struct encoding *wanted;
    const char *name;
    json_t *info, *tensors = json_object_get(manifest, "tensors");
    AK_TRY(check_head(manifest, &wanted, error));
    AK_TRY(allocate_tensors(h, tensors, error));
    json_object_foreach (tensors, name, info)
        AK_TRY(read_npy_tensor(h, name, info, wanted, error));
    return AKUNU_OK;
}

static ak_status read_manifest(struct ak_hf *h, struct ak_error *error)
{
    const struct ak_file *file = ak_hf_sidecar(h, AK_HF_MANIFEST);
    json_t *manifest;
    if (!file || file->bytes > MAX_MANIFEST)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%llu bytes, where at most %d are possible",
                       (unsigned long long)(file ? file->bytes : 0), MAX_MANIFEST);
    AK_TRY(ak_json_parse_file(file->data, (size_t)file->bytes, &manifest, error));
    ak_status status = read_tensors(h, manifest, error);
    json_decref(manifest);
    return status;
}

/* Names that differ only in "." and "__" would share files: a duplicate is an error. */
static ak_status index_arrays(struct ak_hf *h, struct ak_error *error)
{
    AK_TRY(ak_name_index_alloc(&h->tensor_index, h->list.n, error));
    for (uint32_t i = 0; i < h->tensor_index.n; i++)
        h->tensor_index.entries[i] = (struct ak_name_index_entry){ h->list.tensors[i].name, i };
    const char *duplicate = ak_name_index_sort(&h->tensor_index);
    return duplicate ?
               ak_fail(error, AKUNU_ERROR_FORMAT, "%s is the array of two tensors", duplicate) :
               AKUNU_OK;
}

/* Reads a draft in the place of the manifest. */
static ak_status open_draft(struct ak_hf *h, const char *manifest, struct ak_error *error)
{
    for (size_t i = 0; i < h->n_sidecars; i++) {
        struct ak_hf_sidecar *sidecar = &h->sidecars[i];
        if (strcmp(sidecar->name, AK_HF_MANIFEST) != 0 || strcmp(manifest, AK_HF_MANIFEST) == 0)
            continue;
        ak_file_close(&sidecar->file);
        AK_TRY(ak_hf_open_file(h, manifest, &sidecar->file, error));
    }
    return AKUNU_OK;
}

/* A folder that was made from GGUF keeps what no file of Hugging Face has. */
static ak_status open_gguf(struct ak_hf *h, struct ak_error *error)
{
    char path[4096];
    struct ak_file probed;
    if (!ak_hf_has_file(h, AK_HF_METADATA))
        return AKUNU_OK;
    int n = snprintf(path, sizeof path, "%s/" AK_HF_METADATA, h->folder);
    if (n < 0 || (size_t)n >= sizeof path)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: the path is too long", AK_HF_METADATA);
    AK_TRY(ak_hf_open_file(h, AK_HF_METADATA, &probed, error));
    ak_file_close(&probed); /* says what is wrong with a file that cannot be read */
    ak_status status = ak_gguf_format.probe(path) ?
                           ak_gguf_format.open(path, &h->gguf, error) :
                           ak_fail(error, AKUNU_ERROR_FORMAT, "no GGUF file");
    if (status != AKUNU_OK)
        ak_error_prefix(error, AK_HF_METADATA);
    return status;
}

ak_status ak_hf_npy_read(struct ak_hf *h, const char *path, const char *manifest,
                         struct ak_error *error)
{
    AK_TRY(ak_hf_open_sidecars(h, path, strlen(path), error));
    AK_TRY(open_draft(h, manifest, error));
    AK_TRY(ak_hf_read_metadata(h, error));
    AK_TRY(open_gguf(h, error));
    ak_status status = read_manifest(h, error);
    if (status == AKUNU_OK)
        status = index_arrays(h, error);
    if (status != AKUNU_OK) {
        ak_error_prefix(error, AK_HF_MANIFEST);
        return status;
    }
    AK_TRY(ak_tensor_copies_begin(&h->copies, h->list.n, error));
    return ak_hf_index_weights(h, error);
}

/* Reads the manifest's first bytes: other programs write a manifest.json too. */
bool ak_hf_npy_probe(const char *path)
{
    struct stat st;
    struct ak_file file;
    char name[4096];
    int n = snprintf(name, sizeof name, "%s/" AK_HF_MANIFEST, path);
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode) || n < 0 || (size_t)n >= sizeof name ||
        ak_file_open(name, &file, NULL) != AKUNU_OK)
        return false;
    size_t bytes = ak_min_size((size_t)file.bytes, PROBE_BYTES);
    bool found = file.data && memmem(file.data, bytes, format_name, strlen(format_name)) != NULL;
    ak_file_close(&file);
    return found;
}
