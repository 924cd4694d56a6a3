/* Reads whisper.cpp's GGML files: header, vocabulary and tensors, from first to last because the
 * file has no index. */
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "files/weights/whisper/whisper.h"

static const uint8_t magic[] = { 0x6c, 0x6d, 0x67, 0x67 };

enum { MAX_NAME = 256, QUANTIZATION_VERSIONS = 1000 };

bool ak_whisper_ggml_probe(const char *path)
{
    struct ak_file file;
    if (ak_file_open(path, &file, NULL) != AKUNU_OK)
        return false;
    bool found = file.bytes >= sizeof magic && memcmp(file.data, magic, sizeof magic) == 0;
    ak_file_close(&file);
    return found;
}

static ak_status fail_end(const struct ak_whisper *w, const char *what, struct ak_error *error)
{
    return ak_fail(error, AKUNU_ERROR_FORMAT, "the end of the file (%llu bytes) is inside the %s",
                   (unsigned long long)w->file.bytes, what);
}

/* Reads a count. The file stores it as int32, so the message shows it signed. */
static ak_status read_ggml_count(const struct ak_whisper *w, struct ak_cursor *c, const char *what,
                                 uint32_t min, uint32_t max, uint32_t *out, struct ak_error *error)
{
    if (!ak_cursor_read_u32(c, out))
        return ak_fail(error, AKUNU_ERROR_FORMAT, "the end of the file (%llu bytes) is inside %s",
                       (unsigned long long)w->file.bytes, what);
    if (*out < min || *out > max)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s is %d; expected %u to %u", what,
                       (int32_t)*out, min, max);
    return AKUNU_OK;
}

/* ftype is 1000 times the quantization version plus the type. */
static bool is_known_ftype(uint32_t ftype)
{
    /* floats, 4 to 8 bits, K */
    static const uint8_t known_ftypes[] = { 0, 1, 2, 3, 4, 7, 8, 9, 10, 11, 12, 13, 14 };
    for (size_t i = 0; i < sizeof known_ftypes; i++)
        if (ftype % QUANTIZATION_VERSIONS == known_ftypes[i])
            return true;
    return false;
}

/* Version 1 changed the order of the quants of the types of before, version 2 the scales of those
 * with 4 and 8 bits. Floats have no version, K-types only this one. */
static ak_status check_version(uint32_t ftype, struct ak_error *error)
{
    static const uint8_t minimum[] = { [2] = 2, [3] = 2, [4] = 2, [7] = 2, [8] = 1, [9] = 1 };
    uint32_t type = ftype % QUANTIZATION_VERSIONS, version = ftype / QUANTIZATION_VERSIONS;
    if (type >= sizeof minimum || version >= minimum[type])
        return AKUNU_OK;
    return ak_fail(
        error, AKUNU_ERROR_UNSUPPORTED,
        "ftype is %u: quants of version %u, from before May 2023; this type is supported "
        "from version %u on. Quantize the model again",
        ftype, version, minimum[type]);
}

static ak_status read_ggml_params(struct ak_whisper *w, struct ak_cursor *c, struct ak_error *error)
{
    for (int i = 0; i < AK_WHISPER_PARAMS; i++)
        AK_TRY(read_ggml_count(w, c, ak_whisper_params[i].name, ak_whisper_params[i].min,
                               ak_whisper_params[i].max, &w->params[i], error));
    if (!is_known_ftype(w->params[AK_WHISPER_FTYPE]))
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "ftype is %u; supported: 0 to 4 and 7 to 14",
                       w->params[AK_WHISPER_FTYPE]);
    AK_TRY(check_version(w->params[AK_WHISPER_FTYPE], error));
    return ak_whisper_check_params(w, error);
}

static ak_status read_filters(struct ak_whisper *w, struct ak_cursor *c, struct ak_error *error)
{
    AK_TRY(read_ggml_count(w, c, "mel filters: the number of rows", 1, 1 << 16, &w->filter_rows,
                           error));
    AK_TRY(read_ggml_count(w, c, "mel filters: the number of columns", 1, 1 << 16, &w->filter_cols,
                           error));
    if (w->filter_rows != w->params[AK_WHISPER_MELS])
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "n_mels is %u, but there are mel filters of %u rows",
                       w->params[AK_WHISPER_MELS], w->filter_rows);
    if (!ak_cursor_read_bytes(c, (uint64_t)w->filter_rows * w->filter_cols * sizeof(float),
                              &w->filters))
        return fail_end(w, "mel filters", error);
    return AKUNU_OK;
}

static ak_status read_ggml_tokens(struct ak_whisper *w, struct ak_cursor *c, struct ak_error *error)
{
    uint32_t n, bytes;
    const uint8_t *text;
    AK_TRY(read_ggml_count(w, c, "the number of tokens", 0, INT32_MAX, &n, error));
    if (n > w->params[AK_WHISPER_VOCAB])
        return ak_fail(error, AKUNU_ERROR_FORMAT, "n_vocab is %u, but there are %u tokens",
                       w->params[AK_WHISPER_VOCAB], n);
    if (n > ak_cursor_bytes_left(c) / sizeof bytes)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%u tokens, where the file has %llu bytes left",
                       n, (unsigned long long)ak_cursor_bytes_left(c));
    w->tokens = ak_alloc(n, sizeof *w->tokens);
    if (!w->tokens)
        return ak_fail_memory(error, "the tokens", n * sizeof *w->tokens);
    for (; w->n_tokens < n; w->n_tokens++) {
        if (!ak_cursor_read_u32(c, &bytes))
            return fail_end(w, "tokens", error);
        if (!ak_cursor_read_bytes(c, bytes, &text))
            return ak_fail(error, AKUNU_ERROR_FORMAT,
                           "token %u has %u bytes, beyond the end of the file (%llu bytes)",
                           w->n_tokens, bytes, (unsigned long long)w->file.bytes);
        w->tokens[w->n_tokens] = (struct ak_text){ (const char *)text, bytes };
    }
    return AKUNU_OK;
}

/* Dimensions fit 32 bits; each row holds whole blocks. */
static ak_status read_shape(struct ak_whisper_tensor *t, const uint32_t *dims, const char *shown,
                            struct ak_error *error)
{
    uint64_t rows = 1, row_bytes;
    for (unsigned d = 0; d < t->n_dims; d++) {
        if (dims[d] == 0 || dims[d] > INT32_MAX)
            return ak_fail(error, AKUNU_ERROR_FORMAT,
                           "tensor %s: dimension %u is %d, where at least 1 is expected", shown, d,
                           (int32_t)dims[d]);
        t->shape[t->n_dims - 1 - d] = dims[d];
        if (d > 0 && (rows *= dims[d]) > UINT32_MAX)
            return ak_fail(error, AKUNU_ERROR_FORMAT,
                           "tensor %s: dimension %u is %u, which is too large", shown, d, dims[d]);
    }
    if (!ak_quant_row_bytes(t->type, dims[0], &row_bytes))
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "tensor %s has rows of %u elements, where %s needs a multiple of %u", shown,
                       dims[0], ak_quant_info(t->type)->name, ak_quant_info(t->type)->block_elems);
    if (!ak_mul_u64(rows, row_bytes, &t->bytes))
        return ak_fail(error, AKUNU_ERROR_FORMAT, "tensor %s: its size overflows 64 bits", shown);
    return AKUNU_OK;
}

static bool is_known(const uint8_t *name, uint32_t n)
{
    char text[MAX_NAME + 1];
    int layer;
    memcpy(text, name, n);
    text[n] = '\0';
    return ak_whisper_find_rule_by_name(text, &layer) != NULL;
}

/* Skips the dimensions and the name after them. If the number of dimensions is impossible, tries
 * each possible one until a known name follows, for the message. */
static bool find_tensor_name(struct ak_cursor *c, uint32_t n_dims, uint32_t n_name,
                             const uint8_t **name)
{
    const struct ak_cursor begin = *c;
    const uint8_t *skipped;
    bool possible = n_dims >= 1 && n_dims <= AK_TENSOR_DIMS_MAX;
    for (uint32_t n = possible ? n_dims : 1; n <= (possible ? n_dims : AK_TENSOR_DIMS_MAX); n++) {
        *c = begin;
        if (!ak_cursor_read_bytes(c, n * sizeof(uint32_t), &skipped) ||
            !ak_cursor_read_bytes(c, n_name, name))
            return false;
        if (possible || is_known(*name, n_name))
            break;
    }
    return true;
}

static ak_status read_ggml_tensor(struct ak_whisper *w, struct ak_cursor *c,
                                  struct ak_whisper_tensor *t, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    uint32_t n_dims, n_name, number, dims[AK_TENSOR_DIMS_MAX] = { 0 };
    const uint8_t *name = NULL, *data;
    if (!ak_cursor_read_u32(c, &n_dims) || !ak_cursor_read_u32(c, &n_name) ||
        !ak_cursor_read_u32(c, &number))
        return fail_end(w, "header of a tensor", error);
    if (n_name == 0 || n_name > MAX_NAME)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "the name of tensor %zu has %d bytes; expected 1 to %d", w->n,
                       (int32_t)n_name, MAX_NAME);

    struct ak_cursor name_cursor = *c;
    if (!find_tensor_name(&name_cursor, n_dims, n_name, &name))
        return fail_end(w, "header of a tensor", error);
    ak_show(name, n_name, shown);
    if (n_dims == 0 || n_dims > AK_TENSOR_DIMS_MAX)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "tensor %s has %d dimensions; expected 1 to %d",
                       shown, (int32_t)n_dims, AK_TENSOR_DIMS_MAX);
    for (uint32_t d = 0; d < n_dims; d++)
        ak_cursor_read_u32(c, &dims[d]);
    *c = name_cursor;

    t->n_dims = n_dims;
    AK_TRY(ak_ggml_type_find(number, shown, &t->type, error));
    AK_TRY(read_shape(t, dims, shown, error));
    t->offset = ak_cursor_offset(c);
    if (!ak_cursor_read_bytes(c, t->bytes, &data))
        return ak_fail(
            error, AKUNU_ERROR_FORMAT,
            "tensor %s lies at bytes %llu to %llu, beyond the end of the file (%llu bytes)", shown,
            (unsigned long long)t->offset, (unsigned long long)(t->offset + t->bytes),
            (unsigned long long)w->file.bytes);
    t->name = ak_strndup((const char *)name, n_name);
    if (!t->name)
        return ak_fail_memory(error, "a tensor's name", n_name);
    return AKUNU_OK;
}

static ak_status read_tensors(struct ak_whisper *w, struct ak_cursor *c, struct ak_error *error)
{
    while (ak_cursor_bytes_left(c) > 0) {
        struct ak_whisper_tensor t = { 0 };
        AK_TRY(read_ggml_tensor(w, c, &t, error));
        AK_TRY(ak_whisper_add_tensor(w, &t, error));
    }
    return AKUNU_OK;
}

static ak_status read_model(struct ak_whisper *w, const char *path, struct ak_error *error)
{
    AK_TRY(ak_file_open(path, &w->file, error));
    struct ak_cursor c = ak_cursor_init(w->file.data, w->file.bytes);
    const uint8_t *skipped;
    ak_cursor_read_bytes(&c, sizeof magic, &skipped);
    AK_TRY(read_ggml_params(w, &c, error));
    AK_TRY(read_filters(w, &c, error));
    AK_TRY(read_ggml_tokens(w, &c, error));
    w->header_bytes = ak_cursor_offset(&c);
    AK_TRY(read_tensors(w, &c, error));
    return ak_whisper_check_complete(w, error);
}

ak_status ak_whisper_ggml_open(const char *path, struct ak_provider **out, struct ak_error *error)
{
    *out = NULL;
    struct ak_whisper *w = ak_alloc(1, sizeof *w);
    if (!w)
        return ak_fail_memory(error, "a Whisper model", sizeof *w);
    w->provider.format = &ak_whisper_format;
    w->n_params = AK_WHISPER_PARAMS;
    ak_status status = read_model(w, path, error);
    if (status != AKUNU_OK) {
        ak_whisper_close(&w->provider);
        return status;
    }
    *out = &w->provider;
    return AKUNU_OK;
}
