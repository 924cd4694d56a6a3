/* What Whisper's GGML files and checkpoints share: the checks of sizes and tensors, and the
 * provider's functions. */
#include "files/weights/whisper/whisper.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "files/weights/composed.h"
#include "files/weights/formats.h"
#include "base/array.h"

enum { KERNEL_WIDTH = 3 };

static const struct ak_whisper *whisper(const struct ak_provider *p)
{
    return (const struct ak_whisper *)p;
}

void ak_whisper_close(struct ak_provider *p)
{
    struct ak_whisper *w = (struct ak_whisper *)p;
    ak_tensor_copies_end(&w->copies);
    ak_name_index_free(&w->index);
    for (size_t i = 0; i < w->n; i++) {
        ak_free(w->tensors[i].name);
        ak_composed_free(w->tensors[i].composed_tensor);
    }
    ak_free(w->tensors);
    ak_free(w->tokens);
    ak_free(w->token_bytes);
    ak_free(w->vocab_advice);
    for (size_t i = 0; i < w->n_sidecars; i++)
        ak_file_close(&w->sidecars[i].file);
    ak_file_close(&w->file);
    ak_free(w);
}

/* ---- Checks ------------------------------------------------------------- */
const struct ak_whisper_param_info ak_whisper_params[AK_WHISPER_PARAMS] = {
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

static ak_status check_heads(const struct ak_whisper *w, enum ak_whisper_param heads,
                             enum ak_whisper_param state, struct ak_error *error)
{
    if (w->params[state] % w->params[heads] == 0)
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_FORMAT, "%s is %u, which does not divide %s %u",
                   ak_whisper_params[heads].name, w->params[heads], ak_whisper_params[state].name,
                   w->params[state]);
}

ak_status ak_whisper_check_params(const struct ak_whisper *w, struct ak_error *error)
{
    if (w->params[AK_WHISPER_AUDIO_STATE] != w->params[AK_WHISPER_TEXT_STATE])
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "n_text_state is %u and n_audio_state %u; expected the same",
                       w->params[AK_WHISPER_TEXT_STATE], w->params[AK_WHISPER_AUDIO_STATE]);
    AK_TRY(check_heads(w, AK_WHISPER_AUDIO_HEAD, AK_WHISPER_AUDIO_STATE, error));
    return check_heads(w, AK_WHISPER_TEXT_HEAD, AK_WHISPER_TEXT_STATE, error);
}

static uint64_t dim_of(const struct ak_whisper *w, int dim)
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
static void learn_ffn_width(struct ak_whisper *w, const struct ak_whisper_rule *rule,
                            const struct ak_whisper_tensor *t)
{
    for (unsigned d = 0; w->ffn_width == 0 && d < 3 && d < t->n_dims; d++)
        if (rule->dims[d] == AK_WHISPER_FFN)
            w->ffn_width = t->shape[d];
}

static ak_status check_shape(struct ak_whisper *w, const struct ak_whisper_rule *rule,
                             const struct ak_whisper_tensor *t, struct ak_error *error)
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

static ak_status check_role(struct ak_whisper *w, struct ak_whisper_tensor *t,
                            struct ak_error *error)
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

/* Grows with the tensors read, never with a count that the file claims. */
static ak_status reserve_tensor(struct ak_whisper *w, struct ak_error *error)
{
    return ak_reserve_or_fail(&w->tensors, &w->capacity, w->n, 1, "a list of tensors", error);
}

ak_status ak_whisper_add_tensor(struct ak_whisper *w, const struct ak_whisper_tensor *t,
                                struct ak_error *error)
{
    ak_status status = reserve_tensor(w, error);
    if (status != AKUNU_OK) {
        ak_free(t->name);
        ak_composed_free(t->composed_tensor);
        return status;
    }
    w->tensors[w->n++] = *t; /* from here on ak_whisper_close frees it */
    return check_role(w, &w->tensors[w->n - 1], error);
}

ak_status ak_whisper_check_complete(struct ak_whisper *w, struct ak_error *error)
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
    return ak_tensor_copies_begin(&w->copies, w->n, error);
}

/* ---- The provider's functions ------------------------------------------- */
static const void *data_of(const struct ak_whisper *w, const struct ak_whisper_tensor *t)
{
    return w->file.data + t->offset;
}

static bool whisper_find(const struct ak_provider *p, enum ak_role role, int layer, const char *hf,
                         struct ak_view *out)
{
    (void)hf; /* names follow from roles */
    const struct ak_whisper *w = whisper(p);
    const struct ak_whisper_rule *rule = ak_whisper_find_rule_by_role(role);
    char name[AK_ROLE_NAME_BYTES];
    uint32_t i;
    if (!rule || ak_role_has_layer(role) != (layer >= 0) ||
        !ak_name_index_find(&w->index, ak_role_expand(rule->name, layer, name), &i))
        return false;

    const struct ak_whisper_tensor *t = &w->tensors[i];
    /* a vector even if stored as [n, 1], as biases of convolutions are */
    bool vector = ak_role_kind(role) == AK_ROLE_KIND_VECTOR;
    uint32_t rows = 1, cols = (uint32_t)t->shape[t->n_dims - 1];
    for (unsigned d = 0; d + 1 < t->n_dims; d++)
        *(vector ? &cols : &rows) *= (uint32_t)t->shape[d];
    struct ak_tensor_copies *copies = (struct ak_tensor_copies *)(uintptr_t)&w->copies;
    const void *data = data_of(w, t);
    if (!t->composed_tensor)
        data = ak_tensor_copies_align(p, copies, i, t->type, data, t->bytes);
    *out = (struct ak_view){
        .type = t->type,
        .rows = rows,
        .cols = cols,
        .plane = { { data, t->bytes } },
        .name = t->name,
        .n_dims = vector ? 1 : t->n_dims,
        .composed_tensor = t->composed_tensor,
    };
    return true;
}

static size_t whisper_n_tensors(const struct ak_provider *p)
{
    return whisper(p)->n;
}

static bool whisper_tensor(const struct ak_provider *p, size_t i, struct ak_tensor *out)
{
    const struct ak_whisper *w = whisper(p);
    if (i >= w->n)
        return false;
    const struct ak_whisper_tensor *t = &w->tensors[i];
    *out = (struct ak_tensor){
        .name = t->name,
        .type = t->type,
        .n_dims = t->n_dims,
        .bytes = t->bytes,
        .offset = t->offset,
        .data = data_of(w, t),
        .composed_tensor = t->composed_tensor,
        .has_role = true,
        .role = t->role,
        .layer = t->layer,
    };
    memcpy(out->shape, t->shape, sizeof out->shape);
    return true;
}

/* Metadata in order: the architecture, the sizes, and what the file has besides. */
static size_t whisper_n_metas(const struct ak_provider *p)
{
    const struct ak_whisper *w = whisper(p);
    return 1 + w->n_params + 2 + (w->filters != NULL) + (w->tokens != NULL);
}

static struct ak_meta make_number(const char *key, uint64_t value)
{
    return (
        struct ak_meta){ .key = key, .kind = AK_META_UINT, .n = 1, .as.unsigned_integer = value };
}

static struct ak_meta make_array(const char *key, enum ak_meta_kind kind, uint64_t n,
                                 const void *elements)
{
    return (struct ak_meta){
        .key = key, .kind = AK_META_ARRAY, .element_kind = kind, .n = n, .as.elements = elements
    };
}

/* The file has no keys: those of sizes are GGUF's, the others akunu's own. */
static bool whisper_meta(const struct ak_provider *p, size_t i, struct ak_meta *out)
{
    static const char architecture[] = "whisper";
    const struct ak_whisper *w = whisper(p);
    if (i >= whisper_n_metas(p))
        return false;
    if (i == 0)
        *out = (struct ak_meta){ .key = "general.architecture",
                                 .kind = AK_META_STRING,
                                 .n = strlen(architecture),
                                 .as.string = architecture };
    else if (i <= w->n_params)
        *out = make_number(ak_whisper_params[i - 1].key, w->params[i - 1]);
    else if (i == w->n_params + 1)
        *out = make_number("whisper.encoder.feed_forward_length", w->ffn_width);
    else if (i == w->n_params + 2)
        *out = make_number("whisper.decoder.feed_forward_length", w->ffn_width);
    else if (i == w->n_params + 3 && w->filters)
        *out = make_array("whisper.encoder.mel_filters", AK_META_FLOAT,
                          (uint64_t)w->filter_rows * w->filter_cols, w->filters);
    else
        *out = make_array("tokens", AK_META_STRING, w->n_tokens, w->tokens);
    return true;
}

static bool whisper_find_meta(const struct ak_provider *p, const char *key, struct ak_meta *out)
{
    for (size_t i = 0; whisper_meta(p, i, out); i++)
        if (strcmp(out->key, key) == 0)
            return true;
    return false;
}

static bool whisper_element(const struct ak_provider *p, const struct ak_meta *array, uint64_t i,
                            struct ak_meta *out)
{
    const struct ak_whisper *w = whisper(p);
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
static ak_status whisper_vocab(const struct ak_provider *p, struct ak_vocab *out,
                               struct ak_error *error)
{
    static const char model[] = "tiktoken", pre[] = "gpt-2";
    (void)error;
    out->advice = whisper(p)->vocab_advice;
    if (whisper(p)->n_tokens == 0)
        return AKUNU_OK;
    out->model = (struct ak_text){ model, sizeof model - 1 };
    out->pre = (struct ak_text){ pre, sizeof pre - 1 };
    out->n_tokens = whisper(p)->n_tokens;
    out->tokens = whisper(p)->tokens;
    return AKUNU_OK;
}

static uint64_t whisper_bytes(const struct ak_provider *p)
{
    return whisper(p)->file.bytes;
}

static const struct ak_file *whisper_part(const struct ak_provider *p, size_t i)
{
    const struct ak_whisper *w = whisper(p);
    if (i == 0)
        return &w->file;
    return i - 1 < w->n_sidecars ? &w->sidecars[i - 1].file : NULL;
}

static bool find_file(const struct ak_provider *p, const char *name, struct ak_text *out)
{
    const struct ak_whisper *w = whisper(p);
    for (size_t i = 0; i < w->n_sidecars; i++) {
        const struct ak_file *file = &w->sidecars[i].file;
        if (strcmp(w->sidecars[i].name, name) != 0 || file->bytes > UINT32_MAX)
            continue;
        *out =
            (struct ak_text){ file->data ? (const char *)file->data : "", (uint32_t)file->bytes };
        return true;
    }
    return false;
}

static void whisper_fingerprint(const struct ak_provider *p, struct ak_provider_fingerprint *out)
{
    const struct ak_whisper *w = whisper(p);
    ak_provider_fingerprint_begin(out, &w->file);
    ak_provider_fingerprint_add(out, &w->file, w->header_bytes);
    if (w->index_bytes > 0)
        ak_hash128(w->file.data + w->index_offset, w->index_bytes, out->hash);
}

static void whisper_advise(const struct ak_provider *p, const void *data, uint64_t n,
                           enum ak_file_advice use)
{
    ak_file_advise_at(&whisper(p)->file, data, n, use);
}

const struct ak_provider_format ak_whisper_format = {
    .name = "whisper-ggml",
    .about = "Whisper models in the GGML format of whisper.cpp",
    .naming = AK_PROVIDER_NAMING_GGUF,
    .probe = ak_whisper_ggml_probe,
    .open = ak_whisper_ggml_open,
    .close = ak_whisper_close,
    .find = whisper_find,
    .n_tensors = whisper_n_tensors,
    .tensor = whisper_tensor,
    .n_metas = whisper_n_metas,
    .meta = whisper_meta,
    .find_meta = whisper_find_meta,
    .element = whisper_element,
    .vocab = whisper_vocab,
    .bytes = whisper_bytes,
    .part = whisper_part,
    .fingerprint = whisper_fingerprint,
    .advise = whisper_advise,
};

const struct ak_provider_format ak_whisper_checkpoint_format = {
    .name = "whisper-pt",
    .about = "Whisper models in the format of OpenAI's checkpoints (.pt)",
    .naming = AK_PROVIDER_NAMING_GGUF,
    .probe = ak_whisper_checkpoint_probe,
    .open = ak_whisper_checkpoint_open,
    .close = ak_whisper_close,
    .find = whisper_find,
    .n_tensors = whisper_n_tensors,
    .tensor = whisper_tensor,
    .n_metas = whisper_n_metas,
    .meta = whisper_meta,
    .find_meta = whisper_find_meta,
    .element = whisper_element,
    .vocab = whisper_vocab,
    .bytes = whisper_bytes,
    .part = whisper_part,
    .fingerprint = whisper_fingerprint,
    .advise = whisper_advise,
    .file = find_file,
};
