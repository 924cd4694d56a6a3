/* Opens a model file by trying the formats in order, and forwards calls to the format. Overrides of
 * metadata are applied here, so that no format knows of them. */
#include "files/weights/provider.h"

#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "files/weights/formats.h"

static const struct ak_provider_format *const formats[] = {
    &ak_gguf_format,   &ak_whisper_format, &ak_whisper_checkpoint_format,
    &ak_hf_npy_format, &ak_hf_format,      &ak_npy_format
};

const struct ak_vocab ak_vocab_none = {
    .bos = -1,
    .eos = -1,
    .eot = -1,
    .unknown = -1,
    .separator = -1,
    .padding = -1,
    .cls = -1,
    .mask = -1,
    .add_bos = -1,
    .add_eos = -1,
    .add_space_prefix = -1,
    .remove_extra_whitespaces = -1,
    .lowercase = -1,
    .strip_accents = -1,
};

void ak_provider_fingerprint_begin(struct ak_provider_fingerprint *fingerprint,
                                   const struct ak_file *first)
{
    *fingerprint = (struct ak_provider_fingerprint){ .path = first->path,
                                                     .bytes = first->bytes,
                                                     .mtime_ns = first->mtime_ns };
}

void ak_provider_fingerprint_add(struct ak_provider_fingerprint *fingerprint,
                                 const struct ak_file *file, uint64_t bytes)
{
    const uint64_t facts[2] = { file->bytes, (uint64_t)file->mtime_ns };
    ak_hash128(facts, sizeof facts, fingerprint->hash);
    ak_hash128(file->data, bytes < file->bytes ? bytes : file->bytes, fingerprint->hash);
}

static const struct ak_provider_format *detect(const char *path)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i]->probe(path))
            return formats[i];
    return NULL;
}

const struct ak_provider_format *ak_provider_format_at(size_t i)
{
    return i < sizeof formats / sizeof *formats ? formats[i] : NULL;
}

ak_status ak_provider_open(const char *path, struct ak_provider **out, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    *out = NULL;
    const struct ak_provider_format *format = detect(path);
    if (!format)
        return ak_provider_fail_unknown_format(path, error);
    ak_status status = format->open(path, out, error);
    if (status != AKUNU_OK)
        ak_error_prefix(error, ak_show_path(path, shown));
    return status;
}

void ak_provider_close(struct ak_provider *p)
{
    if (!p)
        return;
    ak_meta_overrides_free(p->overrides);
    ak_ignored_keys_free(p->ignored);
    p->format->close(p);
}

enum ak_provider_naming ak_provider_naming(const struct ak_provider *p)
{
    return p->format->naming;
}

ak_status ak_provider_check_weights(const struct ak_provider *p, struct ak_error *error)
{
    return p->format->check_weights ? p->format->check_weights(p, error) : AKUNU_OK;
}

bool ak_provider_find(const struct ak_provider *p, enum ak_role role, int layer, const char *hf,
                      struct ak_view *out)
{
    return p->format->find(p, role, layer, hf, out);
}

size_t ak_provider_n_tensors(const struct ak_provider *p)
{
    return p->format->n_tensors(p);
}

bool ak_provider_tensor(const struct ak_provider *p, size_t i, struct ak_tensor *out)
{
    return p->format->tensor(p, i, out);
}

/* The i-th override with a key that the file does not have; each key counts once. */
static bool find_added_meta(const struct ak_provider *p, size_t i, struct ak_meta *out)
{
    struct ak_meta other;
    for (size_t at = 0; ak_meta_overrides_at(p->overrides, at, out); at++) {
        size_t earlier = 0;
        while (earlier < at && ak_meta_overrides_at(p->overrides, earlier, &other) &&
               strcmp(other.key, out->key) != 0)
            earlier++;
        if (earlier == at && !p->format->find_meta(p, out->key, &other) && i-- == 0)
            return true;
    }
    return false;
}

size_t ak_provider_n_metas(const struct ak_provider *p)
{
    struct ak_meta unused;
    size_t n = p->format->n_metas(p), more = 0;
    while (find_added_meta(p, more, &unused))
        more++;
    return n + more;
}

/* Replaces a value of the file by its override, if any. Keeps the file's width and, if the value
 * fits, its signedness. */
static void apply_override(const struct ak_provider *p, struct ak_meta *meta)
{
    struct ak_meta own;
    if (!ak_meta_overrides_find(p->overrides, meta->key, &own))
        return;
    if (own.kind == AK_META_INT && meta->kind == AK_META_UINT && own.as.integer >= 0) {
        own.kind = AK_META_UINT;
        own.as.unsigned_integer = (uint64_t)own.as.integer;
    }
    if (own.kind == meta->kind)
        own.width = meta->width;
    *meta = own;
}

bool ak_provider_meta(const struct ak_provider *p, size_t i, struct ak_meta *out)
{
    size_t n = p->format->n_metas(p);
    if (i >= n)
        return find_added_meta(p, i - n, out);
    if (!p->format->meta(p, i, out))
        return false;
    apply_override(p, out);
    return true;
}

bool ak_provider_find_meta(const struct ak_provider *p, const char *key, struct ak_meta *out)
{
    return !ak_provider_ignores(p, key) &&
           (ak_meta_overrides_find(p->overrides, key, out) || p->format->find_meta(p, key, out));
}

const char *ak_provider_null(const struct ak_provider *p, size_t i)
{
    return p->format->null_meta ? p->format->null_meta(p, i) : NULL;
}

bool ak_provider_element(const struct ak_provider *p, const struct ak_meta *array, uint64_t i,
                         struct ak_meta *out)
{
    return p->format->element(p, array, i, out);
}

ak_status ak_provider_read_floats(const struct ak_provider *p, const char *key, float **out,
                                  uint32_t *n, struct ak_error *error)
{
    struct ak_meta meta, element;
    *out = NULL;
    *n = 0;
    if (!ak_provider_find_meta(p, key, &meta) || meta.kind != AK_META_ARRAY ||
        meta.element_kind != AK_META_FLOAT || meta.n > UINT32_MAX)
        return AKUNU_OK;
    float *values = ak_alloc(meta.n, sizeof *values);
    if (!values)
        return ak_fail_memory(error, key, meta.n * sizeof *values);
    for (uint64_t i = 0; i < meta.n; i++)
        values[i] = ak_provider_element(p, &meta, i, &element) ? (float)element.as.number : 0.0f;
    *out = values;
    *n = (uint32_t)meta.n;
    return AKUNU_OK;
}

ak_status ak_provider_vocab(const struct ak_provider *p, struct ak_vocab *out,
                            struct ak_error *error)
{
    *out = ak_vocab_none;
    return p->format->vocab ? p->format->vocab(p, out, error) : AKUNU_OK;
}

ak_status ak_provider_fail_vocab(const struct ak_provider *p, struct ak_error *error)
{
    struct ak_vocab vocab;
    AK_TRY(ak_provider_vocab(p, &vocab, error));
    if (vocab.advice)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "the model has no vocabulary: %s", vocab.advice);
    if (ak_provider_naming(p) == AK_PROVIDER_NAMING_HF)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "the folder has no vocabulary: put tokenizer.json into it, or the files of "
                       "its tokenizer class, such as vocab.json and merges.txt, vocab.txt or "
                       "tokenizer.model");
    return ak_fail(error, AKUNU_ERROR_FORMAT, "the file has no vocabulary (tokenizer.ggml.model)");
}

bool ak_provider_has_vocab_file(const struct ak_provider *p)
{
    static const char *const names[] = {
        "tokenizer.json", "tokenizer.model", "sentencepiece.bpe.model",
        "spiece.model",   "vocab.json",      "merges.txt",
        "vocab.txt"
    };
    struct ak_text text;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (ak_provider_file(p, names[i], &text))
            return true;
    return false;
}

bool ak_provider_file(const struct ak_provider *p, const char *name, struct ak_text *out)
{
    *out = (struct ak_text){ NULL, 0 };
    return p->format->file && p->format->file(p, name, out);
}

ak_status ak_provider_json(const struct ak_provider *p, const char *name, struct json_t **out,
                           struct ak_error *error)
{
    struct ak_text text;
    *out = NULL;
    if (!ak_provider_file(p, name, &text))
        return AKUNU_OK;
    ak_status status = ak_json_parse_file(text.bytes, text.n, out, error);
    if (status != AKUNU_OK)
        ak_error_prefix(error, name);
    return status;
}

uint64_t ak_provider_bytes(const struct ak_provider *p)
{
    return p->format->bytes(p);
}

const struct ak_file *ak_provider_part(const struct ak_provider *p, size_t i)
{
    return p->format->part ? p->format->part(p, i) : NULL;
}

void ak_provider_fingerprint(const struct ak_provider *p, struct ak_provider_fingerprint *out)
{
    p->format->fingerprint(p, out);
}

void ak_provider_advise(const struct ak_provider *p, const void *data, uint64_t bytes,
                        enum ak_file_advice use)
{
    p->format->advise(p, data, bytes, use);
}
