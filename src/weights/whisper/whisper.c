/* Whisper's GGML files: header, vocabulary and tensors, read from first to last because the file
 * has no index; and the provider's functions. */
#include "weights/whisper/whisper.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "weights/formats.h"

static const uint8_t magic[] = { 0x6c, 0x6d, 0x67, 0x67 };

enum {
    N_METAS = 1 + AK_WHISPER_PARAMS + 4,
    MAX_NAME = 256,
    QUANTIZATION_VERSIONS = 1000,
    KERNEL_WIDTH = 3
};

struct tensor {
    char *name;
    enum ak_quant_type type;
    unsigned n_dims;
    uint64_t shape[AK_TENSOR_DIMS_MAX];
    uint64_t offset, bytes;
    enum ak_role role;
    int layer;
};

struct whisper {
    struct ak_provider provider;
    struct ak_file file;
    uint32_t params[AK_WHISPER_PARAMS];
    uint64_t ffn_width; /* from the first tensor that has it; 0: not known yet */
    uint32_t filter_rows, filter_cols;
    const uint8_t *filters; /* float32, little-endian, at any address */
    struct ak_text *tokens; /* [n_tokens]: text tokens; the file has no others */
    uint32_t n_tokens;
    struct tensor *tensors;
    size_t n, capacity;
    uint64_t header_bytes; /* offset of the first tensor */
    struct ak_name_index index;
    struct ak_tensor_copies copies;
};

static const struct whisper *whisper(const struct ak_provider *p)
{
    return (const struct whisper *)p;
}

static bool probe(const char *path)
{
    struct ak_file file;
    if (ak_file_open(path, &file, NULL) != AKUNU_OK)
        return false;
    bool found = file.bytes >= sizeof magic && memcmp(file.data, magic, sizeof magic) == 0;
    ak_file_close(&file);
    return found;
}

static void close_provider(struct ak_provider *p)
{
    struct whisper *w = (struct whisper *)p;
    ak_tensor_copies_end(&w->copies);
    ak_name_index_free(&w->index);
    for (size_t i = 0; i < w->n; i++)
        ak_free(w->tensors[i].name);
    ak_free(w->tensors);
    ak_free(w->tokens);
    ak_file_close(&w->file);
    ak_free(w);
}

/* ---- Reading ------------------------------------------------------------ */
/* The file has no keys: these are those of GGUF. */
static const struct {
    const char *name, *key;
    uint32_t min, max;
} params[AK_WHISPER_PARAMS] = {
    [AK_WHISPER_VOCAB] = { "n_vocab", "whisper.vocab_size", 1, 1 << 24 },
    [AK_WHISPER_AUDIO_CTX] = { "n_audio_ctx", "whisper.encoder.context_length", 1, 1 << 20 },
    [AK_WHISPER_AUDIO_STATE] = { "n_audio_state", "whisper.encoder.embedding_length", 1, 1 << 20 },
    [AK_WHISPER_AUDIO_HEAD] = { "n_audio_head", "whisper.encoder.attention.head_count", 1,
                                1 << 14 },
    [AK_WHISPER_AUDIO_LAYER] = { "n_audio_layer", "whisper.encoder.block_count", 1, 1 << 12 },
    [AK_WHISPER_TEXT_CTX] = { "n_text_ctx", "whisper.decoder.context_length", 1, 1 << 20 },
    [AK_WHISPER_TEXT_STATE] = { "n_text_state", "whisper.decoder.embedding_length", 1, 1 << 20 },
    [AK_WHISPER_TEXT_HEAD] = { "n_text_head", "whisper.decoder.attention.head_count", 1, 1 << 14 },
    [AK_WHISPER_TEXT_LAYER] = { "n_text_layer", "whisper.decoder.block_count", 1, 1 << 12 },
    [AK_WHISPER_MELS] = { "n_mels", "whisper.encoder.mels_count", 1, 1 << 10 },
    [AK_WHISPER_FTYPE] = { "ftype", "ftype", 0, INT32_MAX },
};

static ak_status fail_end(const struct whisper *w, const char *what, struct ak_error *error)
{
    return ak_fail(error, AKUNU_ERROR_FORMAT, "the end of the file (%llu bytes) is inside the %s",
                   (unsigned long long)w->file.bytes, what);
}

/* Reads a count. The file stores it as int32, so the message shows it signed. */
static ak_status read_count(const struct whisper *w, struct ak_cursor *c, const char *what,
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

static ak_status check_heads(const struct whisper *w, enum ak_whisper_param heads,
                             enum ak_whisper_param state, struct ak_error *error)
{
    if (w->params[state] % w->params[heads] == 0)
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_FORMAT, "%s is %u, which does not divide %s %u",
                   params[heads].name, w->params[heads], params[state].name, w->params[state]);
}

static ak_status read_params(struct whisper *w, struct ak_cursor *c, struct ak_error *error)
{
    for (int i = 0; i < AK_WHISPER_PARAMS; i++)
        AK_TRY(
            read_count(w, c, params[i].name, params[i].min, params[i].max, &w->params[i], error));
    if (!is_known_ftype(w->params[AK_WHISPER_FTYPE]))
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "ftype is %u; supported: 0 to 4 and 7 to 14",
                       w->params[AK_WHISPER_FTYPE]);
    AK_TRY(check_version(w->params[AK_WHISPER_FTYPE], error));
    if (w->params[AK_WHISPER_AUDIO_STATE] != w->params[AK_WHISPER_TEXT_STATE])
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "n_text_state is %u and n_audio_state %u; expected the same",
                       w->params[AK_WHISPER_TEXT_STATE], w->params[AK_WHISPER_AUDIO_STATE]);
    AK_TRY(check_heads(w, AK_WHISPER_AUDIO_HEAD, AK_WHISPER_AUDIO_STATE, error));
    return check_heads(w, AK_WHISPER_TEXT_HEAD, AK_WHISPER_TEXT_STATE, error);
}

static ak_status read_filters(struct whisper *w, struct ak_cursor *c, struct ak_error *error)
{
    AK_TRY(read_count(w, c, "mel filters: the number of rows", 1, 1 << 16, &w->filter_rows, error));
    AK_TRY(
        read_count(w, c, "mel filters: the number of columns", 1, 1 << 16, &w->filter_cols, error));
    if (w->filter_rows != w->params[AK_WHISPER_MELS])
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "n_mels is %u, but there are mel filters of %u rows",
                       w->params[AK_WHISPER_MELS], w->filter_rows);
    if (!ak_cursor_read_bytes(c, (uint64_t)w->filter_rows * w->filter_cols * sizeof(float),
                              &w->filters))
        return fail_end(w, "mel filters", error);
    return AKUNU_OK;
}

static ak_status read_tokens(struct whisper *w, struct ak_cursor *c, struct ak_error *error)
{
    uint32_t n, bytes;
    const uint8_t *text;
    AK_TRY(read_count(w, c, "the number of tokens", 0, INT32_MAX, &n, error));
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

static uint64_t dim_of(const struct whisper *w, int dim)
{
    switch (dim) {
    case AK_WHISPER_FFN: return w->ffn_width;
    case AK_WHISPER_KERNEL: return KERNEL_WIDTH;
    case AK_WHISPER_NONE: return 1;
    default: return w->params[dim];
    }
}

/* "2 × 3" */
static const char *show_shape(const uint64_t *shape, unsigned n_dims, char out[AK_SHOW_BYTES])
{
    size_t used = 0;
    out[0] = '\0';
    for (unsigned d = 0; d < n_dims && used < AK_SHOW_BYTES; d++)
        used += (size_t)snprintf(out + used, AK_SHOW_BYTES - used, "%s%llu", d ? " × " : "",
                                 (unsigned long long)shape[d]);
    return out;
}

/* Drops dimensions of 1: biases of convolutions are stored as [n, 1]. */
static unsigned squeeze(const uint64_t *shape, unsigned n_dims, uint64_t *out)
{
    unsigned n = 0;
    for (unsigned d = 0; d < n_dims; d++)
        if (shape[d] != 1)
            out[n++] = shape[d];
    return n;
}

/* The header lacks the width of the feed-forward: the first tensor that has it sets it. */
static void learn_ffn_width(struct whisper *w, const struct ak_whisper_rule *rule,
                            const struct tensor *t)
{
    for (unsigned d = 0; w->ffn_width == 0 && d < 3 && d < t->n_dims; d++)
        if (rule->dims[d] == AK_WHISPER_FFN)
            w->ffn_width = t->shape[d];
}

static ak_status check_shape(struct whisper *w, const struct ak_whisper_rule *rule,
                             const struct tensor *t, struct ak_error *error)
{
    learn_ffn_width(w, rule, t);
    char found[AK_SHOW_BYTES], wanted[AK_SHOW_BYTES];
    uint64_t expected[3], a[AK_TENSOR_DIMS_MAX], b[AK_TENSOR_DIMS_MAX];
    unsigned n_expected = 0;
    for (; n_expected < 3 && rule->dims[n_expected] != AK_WHISPER_NONE; n_expected++)
        expected[n_expected] = dim_of(w, rule->dims[n_expected]);
    unsigned n = squeeze(t->shape, t->n_dims, a);
    if (n == squeeze(expected, n_expected, b) && memcmp(a, b, n * sizeof *a) == 0)
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_FORMAT, "tensor %s has the shape %s; expected %s", t->name,
                   show_shape(t->shape, t->n_dims, found),
                   show_shape(expected, n_expected, wanted));
}

static ak_status check_role(struct whisper *w, struct tensor *t, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    const struct ak_whisper_rule *rule = ak_whisper_find_rule_by_name(t->name, &t->layer);
    uint32_t layers = rule ? w->params[ak_role_is_encoder(rule->role) ? AK_WHISPER_AUDIO_LAYER :
                                                                        AK_WHISPER_TEXT_LAYER] :
                             0;
    if (!rule || (t->layer != AK_ROLE_NO_LAYER && (uint32_t)t->layer >= layers))
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "tensor %s: a Whisper model of these sizes has none of that name",
                       ak_show(t->name, strlen(t->name), shown));
    t->role = rule->role;
    return check_shape(w, rule, t, error);
}

/* Dimensions fit 32 bits; each row holds whole blocks. */
static ak_status read_shape(struct tensor *t, const uint32_t *dims, const char *shown,
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
static bool find_name(struct ak_cursor *c, uint32_t n_dims, uint32_t n_name, const uint8_t **name)
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

static ak_status read_tensor(struct whisper *w, struct ak_cursor *c, struct tensor *t,
                             struct ak_error *error)
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
    if (!find_name(&name_cursor, n_dims, n_name, &name))
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

/* Grows with the tensors read, never with a count that the file claims. */
static ak_status reserve(struct whisper *w, struct ak_error *error)
{
    if (w->n < w->capacity)
        return AKUNU_OK;
    size_t capacity = w->capacity ? 2 * w->capacity : 64;
    void *grown = ak_realloc(w->tensors, capacity, sizeof *w->tensors);
    if (!grown)
        return ak_fail_memory(error, "a list of tensors", capacity * sizeof *w->tensors);
    w->tensors = grown;
    w->capacity = capacity;
    return AKUNU_OK;
}

static ak_status read_tensors(struct whisper *w, struct ak_cursor *c, struct ak_error *error)
{
    while (ak_cursor_bytes_left(c) > 0) {
        AK_TRY(reserve(w, error));
        struct tensor *t = &w->tensors[w->n];
        *t = (struct tensor){ 0 };
        AK_TRY(read_tensor(w, c, t, error));
        w->n++; /* from here on close_provider frees it */
        AK_TRY(check_role(w, t, error));
    }
    return AKUNU_OK;
}

/* Checks that each tensor of such a model is there, once. */
static ak_status check_complete(struct whisper *w, struct ak_error *error)
{
    char name[AK_ROLE_NAME_BYTES];
    uint32_t at;
    AK_TRY(ak_name_index_alloc(&w->index, w->n, error));
    for (uint32_t i = 0; i < w->index.n; i++)
        w->index.entries[i] = (struct ak_name_index_entry){ w->tensors[i].name, i };
    const char *duplicate = ak_name_index_sort(&w->index);
    if (duplicate)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "tensor %s is there twice", duplicate);
    for (size_t i = 0; i < ak_whisper_n_rules; i++) {
        const struct ak_whisper_rule *rule = &ak_whisper_rules[i];
        bool encoder = ak_role_is_encoder(rule->role), layered = ak_role_has_layer(rule->role);
        int layers =
            layered ? (int)w->params[encoder ? AK_WHISPER_AUDIO_LAYER : AK_WHISPER_TEXT_LAYER] : 1;
        for (int layer = 0; layer < layers; layer++)
            if (!ak_name_index_find(&w->index, ak_role_expand(rule->name, layer, name), &at))
                return ak_fail(error, AKUNU_ERROR_FORMAT, "tensor %s is missing", name);
    }
    return AKUNU_OK;
}

static ak_status read_model(struct whisper *w, const char *path, struct ak_error *error)
{
    AK_TRY(ak_file_open(path, &w->file, error));
    struct ak_cursor c = ak_cursor_init(w->file.data, w->file.bytes);
    const uint8_t *skipped;
    ak_cursor_read_bytes(&c, sizeof magic, &skipped);
    AK_TRY(read_params(w, &c, error));
    AK_TRY(read_filters(w, &c, error));
    AK_TRY(read_tokens(w, &c, error));
    w->header_bytes = ak_cursor_offset(&c);
    AK_TRY(read_tensors(w, &c, error));
    AK_TRY(check_complete(w, error));
    return ak_tensor_copies_begin(&w->copies, w->n, error);
}

static ak_status open_whisper(const char *path, struct ak_provider **out, struct ak_error *error)
{
    *out = NULL;
    struct whisper *w = ak_alloc(1, sizeof *w);
    if (!w)
        return ak_fail_memory(error, "a Whisper model", sizeof *w);
    w->provider.format = &ak_whisper_format;
    ak_status status = read_model(w, path, error);
    if (status != AKUNU_OK) {
        close_provider(&w->provider);
        return status;
    }
    *out = &w->provider;
    return AKUNU_OK;
}

/* ---- The provider's functions ------------------------------------------- */
static const void *data_of(const struct whisper *w, const struct tensor *t)
{
    return w->file.data + t->offset;
}

static bool find(const struct ak_provider *p, enum ak_role role, int layer, const char *hf,
                 struct ak_view *out)
{
    (void)hf; /* names follow from roles */
    const struct whisper *w = whisper(p);
    const struct ak_whisper_rule *rule = ak_whisper_find_rule_by_role(role);
    char name[AK_ROLE_NAME_BYTES];
    uint32_t i;
    if (!rule || ak_role_has_layer(role) != (layer >= 0) ||
        !ak_name_index_find(&w->index, ak_role_expand(rule->name, layer, name), &i))
        return false;

    const struct tensor *t = &w->tensors[i];
    /* a vector even if stored as [n, 1], as biases of convolutions are */
    bool vector = ak_role_kind(role) == AK_ROLE_KIND_VECTOR;
    uint32_t rows = 1, cols = (uint32_t)t->shape[t->n_dims - 1];
    for (unsigned d = 0; d + 1 < t->n_dims; d++)
        *(vector ? &cols : &rows) *= (uint32_t)t->shape[d];
    struct ak_tensor_copies *copies = (struct ak_tensor_copies *)(uintptr_t)&w->copies;
    *out = (struct ak_view){
        .type = t->type,
        .rows = rows,
        .cols = cols,
        .plane = { { ak_tensor_copies_align(copies, i, t->type, data_of(w, t), t->bytes),
                     t->bytes } },
        .name = t->name,
        .n_dims = vector ? 1 : t->n_dims,
    };
    return true;
}

static size_t n_tensors(const struct ak_provider *p)
{
    return whisper(p)->n;
}

static bool tensor(const struct ak_provider *p, size_t i, struct ak_tensor *out)
{
    const struct whisper *w = whisper(p);
    if (i >= w->n)
        return false;
    const struct tensor *t = &w->tensors[i];
    *out = (struct ak_tensor){
        .name = t->name,
        .type = t->type,
        .n_dims = t->n_dims,
        .bytes = t->bytes,
        .offset = t->offset,
        .data = data_of(w, t),
        .has_role = true,
        .role = t->role,
        .layer = t->layer,
    };
    memcpy(out->shape, t->shape, sizeof out->shape);
    return true;
}

static size_t n_metas(const struct ak_provider *p)
{
    (void)p;
    return N_METAS;
}

/* The header as metadata. The file has no keys, so these are ours. */
static bool meta(const struct ak_provider *p, size_t i, struct ak_meta *out)
{
    static const char architecture[] = "whisper";
    const struct whisper *w = whisper(p);
    if (i >= N_METAS)
        return false;
    if (i == 0)
        *out = (struct ak_meta){ .key = "general.architecture",
                                 .kind = AK_META_STRING,
                                 .n = strlen(architecture),
                                 .as.string = architecture };
    else if (i <= AK_WHISPER_PARAMS)
        *out = (struct ak_meta){ .key = params[i - 1].key,
                                 .kind = AK_META_UINT,
                                 .n = 1,
                                 .as.unsigned_integer = w->params[i - 1] };
    else if (i <= AK_WHISPER_PARAMS + 2)
        *out = (struct ak_meta){ .key = i == AK_WHISPER_PARAMS + 1 ?
                                            "whisper.encoder.feed_forward_length" :
                                            "whisper.decoder.feed_forward_length",
                                 .kind = AK_META_UINT,
                                 .n = 1,
                                 .as.unsigned_integer = w->ffn_width };
    else if (i == AK_WHISPER_PARAMS + 3)
        *out = (struct ak_meta){ .key = "whisper.encoder.mel_filters",
                                 .kind = AK_META_ARRAY,
                                 .element_kind = AK_META_FLOAT,
                                 .n = (uint64_t)w->filter_rows * w->filter_cols,
                                 .as.elements = w->filters };
    else
        *out = (struct ak_meta){ .key = "tokens",
                                 .kind = AK_META_ARRAY,
                                 .element_kind = AK_META_STRING,
                                 .n = w->n_tokens,
                                 .as.elements = w->tokens };
    return true;
}

static bool find_meta(const struct ak_provider *p, const char *key, struct ak_meta *out)
{
    for (size_t i = 0; meta(p, i, out); i++)
        if (strcmp(out->key, key) == 0)
            return true;
    return false;
}

static bool element(const struct ak_provider *p, const struct ak_meta *array, uint64_t i,
                    struct ak_meta *out)
{
    const struct whisper *w = whisper(p);
    if (array->kind != AK_META_ARRAY || i >= array->n)
        return false;
    *out = (struct ak_meta){ .key = "", .kind = array->element_kind, .n = 1 };
    if (array->element_kind == AK_META_STRING) {
        out->n = w->tokens[i].n;
        out->as.string = w->tokens[i].bytes;
    } else {
        float x;
        ak_quant_info(AK_QUANT_F32)->dequantize(w->filters + i * sizeof x, &x, 1);
        out->as.number = (double)x;
    }
    return true;
}

/* Tokens are those of OpenAI's tiktoken, in the order of their ranks. */
static ak_status vocab(const struct ak_provider *p, struct ak_vocab *out, struct ak_error *error)
{
    static const char model[] = "tiktoken", pre[] = "gpt-2";
    (void)error;
    if (whisper(p)->n_tokens == 0)
        return AKUNU_OK;
    out->model = (struct ak_text){ model, sizeof model - 1 };
    out->pre = (struct ak_text){ pre, sizeof pre - 1 };
    out->n_tokens = whisper(p)->n_tokens;
    out->tokens = whisper(p)->tokens;
    return AKUNU_OK;
}

static uint64_t bytes(const struct ak_provider *p)
{
    return whisper(p)->file.bytes;
}

static const struct ak_file *part(const struct ak_provider *p, size_t i)
{
    return i == 0 ? &whisper(p)->file : NULL;
}

static void fingerprint(const struct ak_provider *p, struct ak_provider_fingerprint *out)
{
    ak_provider_fingerprint_begin(out, &whisper(p)->file);
    ak_provider_fingerprint_add(out, &whisper(p)->file, whisper(p)->header_bytes);
}

static void advise(const struct ak_provider *p, const void *data, uint64_t n,
                   enum ak_file_advice use)
{
    ak_file_advise_at(&whisper(p)->file, data, n, use);
}

const struct ak_provider_format ak_whisper_format = {
    .name = "whisper-ggml",
    .about = "Whisper models in the GGML format of whisper.cpp",
    .naming = AK_PROVIDER_NAMING_GGUF,
    .probe = probe,
    .open = open_whisper,
    .close = close_provider,
    .find = find,
    .n_tensors = n_tensors,
    .tensor = tensor,
    .n_metas = n_metas,
    .meta = meta,
    .find_meta = find_meta,
    .element = element,
    .vocab = vocab,
    .bytes = bytes,
    .part = part,
    .fingerprint = fingerprint,
    .advise = advise,
};
