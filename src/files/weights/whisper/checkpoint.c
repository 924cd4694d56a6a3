/* Reads OpenAI's checkpoints, and those that trainers save of such models: the archive, its pickle,
 * the sizes and the tensors, whose data stay where they are in the map. The vocabulary comes from a
 * file beside the checkpoint. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "files/weights/composed.h"
#include "files/weights/torch/torch.h"
#include "files/weights/whisper/whisper.h"

enum { PATH_BYTES = 256, ENGLISH_VOCAB_MAX = 51864 };

/* State of opening one. */
struct reading {
    struct ak_whisper *w;
    struct ak_zip zip;
    struct ak_pickle pickle;
    uint32_t dims, state;    /* dicts: the sizes, the tensors */
    char folder[PATH_BYTES]; /* of the archive's entries: "archive" */
    struct ak_error *error;
};

static bool begins_with(const struct ak_file *file, const uint8_t *magic, size_t n)
{
    return file->bytes >= n && memcmp(file->data, magic, n) == 0;
}

static const uint8_t zip_magic[] = { 'P', 'K', 3, 4 };
/* A pickle of 0x1950a86a20f9469cfc6c, with which torch.save() began until version 1.6. */
static const uint8_t old_magic[] = { 0x80, 2,    0x8a, 10,   0x6c, 0xfc, 0x9c,
                                     0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19 };

bool ak_whisper_checkpoint_probe(const char *path)
{
    struct ak_file file;
    if (ak_file_open(path, &file, NULL) != AKUNU_OK)
        return false;
    bool found = begins_with(&file, zip_magic, sizeof zip_magic) ||
                 begins_with(&file, old_magic, sizeof old_magic);
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
/* The dict under `key`: a dict, or the attributes of an object. False: there is none. */
static bool find_dict(const struct reading *r, uint32_t dict, const char *key, uint32_t *out)
{
    const struct ak_pickle *p = &r->pickle;
    const struct ak_pickle_value *value = ak_pickle_get(p, dict, key);
    if (value && value->kind == AK_PICKLE_OBJECT && value->as.state != AK_PICKLE_NO_STATE)
        value = &p->values[value->as.state];
    if (!value || value->kind != AK_PICKLE_DICT)
        return false;
    *out = (uint32_t)(value - p->values);
    return true;
}

static ak_status fail_missing(const struct reading *r, const char *key)
{
    return ak_fail(r->error, AKUNU_ERROR_UNSUPPORTED,
                   "the checkpoint has no dict \"%s\"; of PyTorch's checkpoints only those of "
                   "OpenAI's Whisper models, with \"dims\" and \"model_state_dict\", are supported",
                   key);
}

/* OpenAI's checkpoints have both dicts at the top. Trainers name the tensors otherwise, or put both
 * into a dict of the model's. */
static ak_status find_dicts(struct reading *r)
{
    static const char *const names[] = { "model_state_dict", "state_dict", "model" };
    enum { LEVELS = 3 };
    bool has_dims = false, goes_on = true;
    uint32_t dict = r->pickle.root;
    for (int level = 0; goes_on && level < LEVELS; level++) {
        has_dims = has_dims || find_dict(r, dict, "dims", &r->dims);
        goes_on = false;
        for (size_t i = 0; !goes_on && i < sizeof names / sizeof *names; i++)
            goes_on = find_dict(r, dict, names[i], &dict);
    }
    r->state = dict; /* the root: there is none */
    return has_dims ? AKUNU_OK : fail_missing(r, "dims");
}

static ak_status read_sizes(const struct reading *r)
{
    struct ak_whisper *w = r->w;
    w->n_params = AK_WHISPER_FTYPE;
    for (size_t i = 0; i < w->n_params; i++) {
        const struct ak_whisper_param_info *info = &ak_whisper_params[i];
        const struct ak_pickle_value *value = ak_pickle_get(&r->pickle, r->dims, info->name);
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

/* The name without what wrappers of modules put before it. */
static struct ak_text strip_name(const struct ak_pickle_value *key)
{
    static const char *const prefixes[] = { "module.", "_orig_mod.", "model." };
    struct ak_text name = { key->as.string.bytes, key->as.string.n };
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        uint32_t n = (uint32_t)strlen(prefixes[i]);
        if (name.n > n && memcmp(name.bytes, prefixes[i], n) == 0)
            name = (struct ak_text){ name.bytes + n, name.n - n };
    }
    return name;
}

/* Adds a tensor; takes `name`. */
static ak_status add_named(const struct reading *r, const struct ak_pickle_value *value, char *name)
{
    const struct ak_zip_entry *entry = NULL;
    const struct ak_pickle_value *storage = &r->pickle.values[value->as.tensor.storage];
    char shown[AK_SHOW_BYTES];
    uint64_t n = 1, size = ak_quant_info(storage->as.storage.type)->block_bytes;
    struct ak_whisper_tensor t = { .name = name,
                                   .type = storage->as.storage.type,
                                   .n_dims = value->as.tensor.n_dims };
    ak_show(name, strlen(name), shown);
    ak_status status = find_storage(r, storage, shown, &entry);
    if (status == AKUNU_OK)
        status = check_sizes(r, value, shown);
    if (status == AKUNU_OK) {
        for (uint32_t d = 0; d < t.n_dims; d++)
            n *= t.shape[d] = value->as.tensor.shape[d];
        t.offset = entry->offset + value->as.tensor.first * size;
        t.bytes = n * size;
        status = value->as.tensor.is_transposed ? compose_columns(r, &t) : AKUNU_OK;
    }
    if (status == AKUNU_OK)
        return ak_whisper_add_tensor(r->w, &t, r->error);
    ak_free(name);
    return status;
}

/* Adds what the model needs. Counters and the like, which it has no name for, are left out. */
static ak_status add_checkpoint_tensor(const struct reading *r, const struct ak_pickle_item *item)
{
    const struct ak_pickle_value *key = &r->pickle.values[item->key],
                                 *value = &r->pickle.values[item->value];
    char shown[AK_SHOW_BYTES];
    int layer;
    if (key->kind != AK_PICKLE_STRING || key->as.string.n == 0 ||
        key->as.string.n >= AK_ROLE_NAME_BYTES)
        return ak_fail(r->error, AKUNU_ERROR_FORMAT,
                       "pickle: byte %llu: the key of a tensor is no name of 1 to %d bytes",
                       (unsigned long long)key->at, AK_ROLE_NAME_BYTES - 1);
    struct ak_text text = strip_name(key);
    char *name = ak_strndup(text.bytes, text.n);
    if (!name)
        return ak_fail_memory(r->error, "a tensor's name", text.n);
    bool is_tensor = value->kind == AK_PICKLE_TENSOR && value->as.tensor.n_dims > 0,
         is_known = ak_whisper_find_rule_by_name(name, &layer) != NULL;
    if (is_tensor)
        return add_named(r, value, name);
    ak_free(name);
    if (!is_known)
        return AKUNU_OK;
    return ak_fail(r->error, AKUNU_ERROR_FORMAT, "pickle: byte %llu: %s is %s",
                   (unsigned long long)value->at, ak_show(text.bytes, text.n, shown),
                   value->kind == AK_PICKLE_OTHER ? value->as.what : "no tensor");
}

static ak_status read_tensors(const struct reading *r)
{
    if (r->state == r->pickle.root)
        return fail_missing(r, "model_state_dict");
    for (size_t i = 0; i < r->pickle.n_items; i++)
        if (r->pickle.items[i].dict == r->state)
            AK_TRY(add_checkpoint_tensor(r, &r->pickle.items[i]));
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
    if (!begins_with(&r->w->file, zip_magic, sizeof zip_magic))
        return ak_fail(r->error, AKUNU_ERROR_UNSUPPORTED,
                       "it is in the format that PyTorch wrote before version 1.6; save it again: "
                       "torch.save(torch.load(OLD, map_location=\"cpu\"), NEW)");
    AK_TRY(read_archive(r));
    AK_TRY(find_dicts(r));
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
