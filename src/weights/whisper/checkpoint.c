/* Reads OpenAI's checkpoints: the archive, its pickle, the sizes and the tensors, whose data stay
 * where they are in the map. The vocabulary comes from a file beside the checkpoint. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "weights/composed.h"
#include "weights/torch/torch.h"
#include "weights/whisper/whisper.h"

enum { PATH_BYTES = 256, ENGLISH_VOCAB_MAX = 51864 };

/* State of opening one. */
struct reading {
    struct ak_whisper *w;
    struct ak_zip zip;
    struct ak_pickle pickle;
    char folder[PATH_BYTES]; /* of the archive's entries: "archive" */
    struct ak_error *error;
};

bool ak_whisper_checkpoint_probe(const char *path)
{
    static const uint8_t magic[] = { 'P', 'K', 3, 4 };
    struct ak_file file;
    if (ak_file_open(path, &file, NULL) != AKUNU_OK)
        return false;
    bool found = file.bytes >= sizeof magic && memcmp(file.data, magic, sizeof magic) == 0;
    ak_file_close(&file);
    return found;
}

/* ---- Archive ------------------------------------------------------------ */
/* The pickle is FOLDER/data.pkl, of whatever folder. */
static ak_status find_pickle(struct reading *r, const struct ak_zip_entry **out)
{
    static const char name[] = "/data.pkl";
    for (size_t i = 0; i < r->zip.n; i++) {
        const char *slash = strchr(r->zip.entries[i].name, '/');
        size_t n = slash ? (size_t)(slash - r->zip.entries[i].name) : 0;
        if (n == 0 || n >= sizeof r->folder || strcmp(slash, name) != 0)
            continue;
        memcpy(r->folder, r->zip.entries[i].name, n);
        *out = &r->zip.entries[i];
        return AKUNU_OK;
    }
    return ak_fail(
        r->error, AKUNU_ERROR_UNSUPPORTED,
        "a ZIP archive of %zu entries without a data.pkl in a folder; expected a Whisper "
        "checkpoint as torch.save() writes it",
        r->zip.n);
}

static ak_status check_byte_order(const struct reading *r)
{
    static const char little[] = "little";
    char name[PATH_BYTES + 16], shown[AK_SHOW_BYTES];
    snprintf(name, sizeof name, "%s/byteorder", r->folder);
    const struct ak_zip_entry *entry = ak_zip_find(&r->zip, name);
    const uint8_t *data = r->w->file.data;
    if (!entry || (entry->bytes == strlen(little) &&
                   memcmp(data + entry->offset, little, strlen(little)) == 0))
        return AKUNU_OK;
    size_t n = entry->bytes < 16 ? (size_t)entry->bytes : 16;
    return ak_fail(r->error, AKUNU_ERROR_UNSUPPORTED, "byteorder is \"%s\"; supported: little",
                   ak_show(data + entry->offset, n, shown));
}

static ak_status read_archive(struct reading *r)
{
    const struct ak_zip_entry *entry = NULL;
    struct ak_whisper *w = r->w;
    AK_TRY(ak_zip_read(w->file.data, w->file.bytes, &r->zip, r->error));
    AK_TRY(find_pickle(r, &entry));
    AK_TRY(check_byte_order(r));
    w->index_offset = entry->offset;
    w->index_bytes = entry->bytes;
    return ak_pickle_read(w->file.data + entry->offset, entry->bytes, &r->pickle, r->error);
}

/* ---- Sizes -------------------------------------------------------------- */
static ak_status find_dict(const struct reading *r, const char *key, uint32_t *out)
{
    const struct ak_pickle_value *value = ak_pickle_get(&r->pickle, r->pickle.root, key);
    if (!value || value->kind != AK_PICKLE_DICT)
        return ak_fail(r->error, AKUNU_ERROR_UNSUPPORTED,
                       "the checkpoint has no dict \"%s\"; of PyTorch's checkpoints only OpenAI's "
                       "Whisper models, with \"dims\" and \"model_state_dict\", are supported",
                       key);
    *out = (uint32_t)(value - r->pickle.values);
    return AKUNU_OK;
}

static ak_status read_sizes(const struct reading *r)
{
    struct ak_whisper *w = r->w;
    uint32_t dims = 0;
    AK_TRY(find_dict(r, "dims", &dims));
    w->n_params = AK_WHISPER_FTYPE;
    for (size_t i = 0; i < w->n_params; i++) {
        const struct ak_whisper_param_info *info = &ak_whisper_params[i];
        const struct ak_pickle_value *value = ak_pickle_get(&r->pickle, dims, info->name);
        if (!value || value->kind != AK_PICKLE_INT)
            return ak_fail(r->error, AKUNU_ERROR_FORMAT, "dims has no integer %s", info->name);
        if (value->as.integer < info->min || value->as.integer > info->max)
            return ak_fail(r->error, AKUNU_ERROR_FORMAT, "%s is %lld; expected %u to %u",
                           info->name, (long long)value->as.integer, info->min, info->max);
        w->params[i] = (uint32_t)value->as.integer;
    }
    return ak_whisper_check_params(w, r->error);
}

/* ---- Matrices column after column --------------------------------------- */
/* Rows of floats, each element from another column. Neighboring rows share cache lines. */
static void make_row(const struct ak_composed_tensor *a, uint64_t row, uint32_t first, uint32_t n,
                     uint8_t *out)
{
    size_t size = ak_quant_info(a->type)->block_bytes;
    const uint8_t *from =
        (const uint8_t *)a->plane[0].data + ((uint64_t)first * a->rows + row) * size;
    for (uint32_t i = 0; i < n; i++, from += a->rows * size, out += size)
        memcpy(out, from, size);
}

static void dequantize_row(const struct ak_composed_tensor *a, uint64_t row, uint32_t first,
                           uint32_t n, float *out)
{
    uint8_t blocks[AK_COMPOSED_ELEMS_MAX * sizeof *out];
    make_row(a, row, first, n, blocks);
    ak_quant_info(a->type)->dequantize(blocks, out, n);
}

static const struct ak_composed_scheme columns = { .values = dequantize_row, .blocks = make_row };

static ak_status compose_columns(const struct reading *r, struct ak_whisper_tensor *t)
{
    struct ak_composed_tensor *a = ak_alloc(1, sizeof *a);
    if (!a)
        return ak_fail_memory(r->error, t->name, sizeof *a);
    *a = (struct ak_composed_tensor){ .scheme = &columns,
                                      .type = t->type,
                                      .factor_type = t->type,
                                      .shape = { t->shape[0], t->shape[1] },
                                      .n_dims = 2,
                                      .rows = (uint32_t)t->shape[0],
                                      .cols = (uint32_t)t->shape[1],
                                      .bits = 8 * (uint32_t)ak_quant_info(t->type)->block_bytes,
                                      .group = (uint32_t)t->shape[1],
                                      .plane = { { r->w->file.data + t->offset, t->bytes } } };
    snprintf(a->name, sizeof a->name, "%s_COLUMNS", ak_quant_info(t->type)->name);
    t->composed_tensor = a;
    return AKUNU_OK;
}

/* ---- Tensors ------------------------------------------------------------ */
/* Finds the entry of a storage, which holds just its elements. */
static ak_status find_storage(const struct reading *r, const struct ak_pickle_value *storage,
                              const char *shown, const struct ak_zip_entry **out)
{
    const struct ak_pickle_value *key = &r->pickle.values[storage->as.storage.key];
    char name[2 * PATH_BYTES];
    uint64_t bytes;
    uint32_t n = key->as.string.n < 64 ? key->as.string.n : 64;
    snprintf(name, sizeof name, "%s/data/%.*s", r->folder, (int)n, key->as.string.bytes);
    *out = ak_zip_find(&r->zip, name);
    if (!*out)
        return ak_fail(r->error, AKUNU_ERROR_FORMAT,
                       "tensor %s: the archive has no entry of its data, %s", shown, name);
    if (!ak_mul_u64(storage->as.storage.n, ak_quant_info(storage->as.storage.type)->block_bytes,
                    &bytes) ||
        bytes != (*out)->bytes)
        return ak_fail(r->error, AKUNU_ERROR_FORMAT,
                       "tensor %s: its data, %s, has %llu bytes; expected %llu elements of %s",
                       shown, name, (unsigned long long)(*out)->bytes,
                       (unsigned long long)storage->as.storage.n,
                       ak_quant_info(storage->as.storage.type)->name);
    return AKUNU_OK;
}

/* The pickle has checked that the product of the sizes is inside the storage. */
static ak_status check_sizes(const struct reading *r, const struct ak_pickle_value *value,
                             const char *shown)
{
    uint64_t rows = 1;
    for (uint32_t d = 0; d < value->as.tensor.n_dims; d++) {
        uint64_t size = value->as.tensor.shape[d];
        if (size > INT32_MAX || (d + 1 < value->as.tensor.n_dims && (rows *= size) > UINT32_MAX))
            return ak_fail(r->error, AKUNU_ERROR_FORMAT,
                           "tensor %s: dimension %u is %llu, which is too large", shown, d,
                           (unsigned long long)size);
    }
    return AKUNU_OK;
}

static ak_status add_tensor(const struct reading *r, const struct ak_pickle_item *item)
{
    const struct ak_pickle_value *key = &r->pickle.values[item->key],
                                 *value = &r->pickle.values[item->value];
    const struct ak_zip_entry *entry;
    char shown[AK_SHOW_BYTES];
    if (key->kind != AK_PICKLE_STRING || key->as.string.n == 0 ||
        key->as.string.n >= AK_ROLE_NAME_BYTES)
        return ak_fail(r->error, AKUNU_ERROR_FORMAT,
                       "pickle: byte %llu: the key of a tensor is no name of 1 to %d bytes",
                       (unsigned long long)key->at, AK_ROLE_NAME_BYTES - 1);
    ak_show(key->as.string.bytes, key->as.string.n, shown);
    if (value->kind != AK_PICKLE_TENSOR)
        return ak_fail(r->error, AKUNU_ERROR_FORMAT, "pickle: byte %llu: %s is no tensor",
                       (unsigned long long)value->at, shown);
    const struct ak_pickle_value *storage = &r->pickle.values[value->as.tensor.storage];
    AK_TRY(find_storage(r, storage, shown, &entry));
    AK_TRY(check_sizes(r, value, shown));
    uint64_t n = 1, size = ak_quant_info(storage->as.storage.type)->block_bytes;
    struct ak_whisper_tensor t = { .type = storage->as.storage.type,
                                   .n_dims = value->as.tensor.n_dims };
    for (uint32_t d = 0; d < t.n_dims; d++)
        n *= t.shape[d] = value->as.tensor.shape[d];
    t.offset = entry->offset + value->as.tensor.first * size;
    t.bytes = n * size;
    t.name = ak_strndup(key->as.string.bytes, key->as.string.n);
    if (!t.name)
        return ak_fail_memory(r->error, "a tensor's name", key->as.string.n);
    ak_status status = value->as.tensor.is_transposed ? compose_columns(r, &t) : AKUNU_OK;
    if (status == AKUNU_OK)
        return ak_whisper_add_tensor(r->w, &t, r->error);
    ak_free(t.name);
    return status;
}

static ak_status read_tensors(const struct reading *r)
{
    uint32_t state = 0;
    AK_TRY(find_dict(r, "model_state_dict", &state));
    for (size_t i = 0; i < r->pickle.n_items; i++)
        if (r->pickle.items[i].dict == state)
            AK_TRY(add_tensor(r, &r->pickle.items[i]));
    return ak_whisper_check_complete(r->w, r->error);
}

/* ---- Files beside it ---------------------------------------------------- */
/* Opens the file `name` in the folder of the checkpoint. *out NULL: there is none. */
static ak_status open_sidecar(const struct reading *r, const char *name, const struct ak_file **out)
{
    struct ak_whisper *w = r->w;
    const char *slash = strrchr(w->file.path, '/');
    size_t n = slash ? (size_t)(slash - w->file.path) + 1 : 0, bytes = n + strlen(name) + 1;
    struct stat st;
    *out = NULL;
    char *path = ak_alloc(bytes, 1);
    if (!path)
        return ak_fail_memory(r->error, "a file's path", bytes);
    snprintf(path, bytes, "%.*s%s", (int)n, w->file.path, name);
    ak_status status = AKUNU_OK;
    if (stat(path, &st) == 0 || (errno != ENOENT && errno != ENOTDIR)) {
        status = ak_file_open(path, &w->sidecars[w->n_sidecars].file, r->error);
        if (status == AKUNU_OK) {
            w->sidecars[w->n_sidecars].name = name;
            *out = &w->sidecars[w->n_sidecars++].file;
        }
    }
    ak_free(path);
    return status;
}

static ak_status give_advice(const struct reading *r, const char *name)
{
    static const char before[] = "put ",
                      after[] = " beside it, which the Python package openai-whisper has in "
                                "whisper/assets, or the tokenizer.json of the same model";
    size_t bytes = sizeof before + strlen(name) + sizeof after;
    r->w->vocab_advice = ak_alloc(bytes, 1);
    if (!r->w->vocab_advice)
        return ak_fail_memory(r->error, "a message", bytes);
    snprintf(r->w->vocab_advice, bytes, "%s%s%s", before, name, after);
    return AKUNU_OK;
}

/* tokenizer.json, which the tokenizer reads itself, else the ranks that openai-whisper has. */
static ak_status open_vocabulary(const struct reading *r)
{
    const char *name = r->w->params[AK_WHISPER_VOCAB] > ENGLISH_VOCAB_MAX ?
                           "multilingual.tiktoken" :
                           "gpt2.tiktoken";
    const struct ak_file *file;
    AK_TRY(open_sidecar(r, "tokenizer.json", &file));
    if (file)
        return AKUNU_OK;
    AK_TRY(open_sidecar(r, name, &file));
    return file ? ak_whisper_read_tiktoken(r->w, file, r->error) : give_advice(r, name);
}

/* ---- Opening ------------------------------------------------------------ */
static ak_status read_model(struct reading *r, const char *path)
{
    AK_TRY(ak_file_open(path, &r->w->file, r->error));
    AK_TRY(read_archive(r));
    AK_TRY(read_sizes(r));
    AK_TRY(read_tensors(r));
    return open_vocabulary(r);
}

ak_status ak_whisper_checkpoint_open(const char *path, struct ak_provider **out,
                                     struct ak_error *error)
{
    *out = NULL;
    struct reading r = { .w = ak_alloc(1, sizeof *r.w), .error = error };
    if (!r.w)
        return ak_fail_memory(error, "a Whisper model", sizeof *r.w);
    r.w->provider.format = &ak_whisper_checkpoint_format;
    ak_status status = read_model(&r, path);
    ak_pickle_free(&r.pickle);
    ak_zip_free(&r.zip);
    if (status != AKUNU_OK) {
        ak_whisper_close(&r.w->provider);
        return status;
    }
    *out = &r.w->provider;
    return AKUNU_OK;
}
