/* Files of a checkpoint: which SafeTensors files belong to it, from the index or by their names,
 * and its sidecars. Names from the index are untrusted and must stay in the folder. */
#include "files/weights/hf/hf.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"

static const char index_name[] = "model.safetensors.index.json", suffix[] = ".safetensors";

/* Sidecars that ak_provider_file offers. */
const char *const ak_hf_sidecar_names[] = {
    "config.json",
    index_name,
    AK_HF_MANIFEST,
    "generation_config.json",
    "quantize_config.json",
    "quant_config.json",
    "hf_quant_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "tokenizer.model",
    "sentencepiece.bpe.model",
    "spiece.model",
    "vocab.json",
    "merges.txt",
    "vocab.txt",
    "chat_template.jinja",
    "chat_template.json",
    "additional_chat_templates/tool_use.jinja",
    "additional_chat_templates/rag.jinja",
    "preprocessor_config.json",
    "modules.json",
    "1_Pooling/config.json",
    "sentence_bert_config.json",
    "sentence_roberta_config.json",
    "sentence_distilbert_config.json",
    "sentence_camembert_config.json",
    "sentence_albert_config.json",
    "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json",
    "config_sentence_transformers.json",
    NULL,
};
enum { N_SIDECARS = sizeof ak_hf_sidecar_names / sizeof *ak_hf_sidecar_names - 1 };

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool is_weights_name(const char *name)
{
    size_t n = strlen(name), n_suffix = strlen(suffix);
    return n > n_suffix && name[0] != '.' && strcmp(name + n - n_suffix, suffix) == 0;
}

bool ak_hf_probe(const char *path)
{
    if (!is_folder(path)) {
        struct ak_file file;
        if (ak_file_open(path, &file, NULL) != AKUNU_OK)
            return false;
        bool found = ak_hf_safetensors_probe(&file);
        ak_file_close(&file);
        return found;
    }
    bool found = false;
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && !found && (entry = readdir(dir));)
        found = is_weights_name(entry->d_name) || strcmp(entry->d_name, index_name) == 0;
    if (dir)
        closedir(dir);
    return found;
}

/* FOLDER/NAME; the caller frees it. */
static char *join_path(const char *folder, const char *name)
{
    size_t n_folder = strlen(folder), n = strlen(name);
    char *path = ak_alloc(n_folder + n + 2, 1);
    if (path) {
        memcpy(path, folder, n_folder);
        path[n_folder] = '/';
        memcpy(path + n_folder + 1, name, n);
    }
    return path;
}

ak_status ak_hf_open_file(const struct ak_hf *h, const char *name, struct ak_file *file,
                          struct ak_error *error)
{
    char *path = join_path(h->folder, name);
    if (!path)
        return ak_fail_memory(error, "a file's path", strlen(h->folder) + strlen(name) + 2);
    ak_status status = ak_file_open(path, file, error);
    ak_free(path);
    return status;
}

static bool is_there(const char *folder, const char *name)
{
    struct stat st;
    char *path = join_path(folder, name);
    /* other errors: opening the file reports them */
    bool there = !path || lstat(path, &st) == 0 || (errno != ENOENT && errno != ENOTDIR);
    ak_free(path);
    return there;
}

ak_status ak_hf_open_sidecars(struct ak_hf *h, const char *folder, size_t n, struct ak_error *error)
{
    h->folder = ak_strndup(folder, n);
    if (!h->folder)
        return ak_fail_memory(error, "a folder's path", n);
    h->sidecars = ak_alloc(N_SIDECARS, sizeof *h->sidecars);
    if (!h->sidecars)
        return ak_fail_memory(error, "the files of a checkpoint", N_SIDECARS * sizeof *h->sidecars);
    h->n_sidecars = N_SIDECARS;
    for (size_t i = 0; i < N_SIDECARS; i++) {
        h->sidecars[i].name = ak_hf_sidecar_names[i];
        if (is_there(h->folder, ak_hf_sidecar_names[i]))
            AK_TRY(ak_hf_open_file(h, ak_hf_sidecar_names[i], &h->sidecars[i].file, error));
    }
    return AKUNU_OK;
}

bool ak_hf_has_file(const struct ak_hf *h, const char *name)
{
    return is_there(h->folder, name);
}

const struct ak_file *ak_hf_sidecar(const struct ak_hf *h, const char *name)
{
    for (size_t i = 0; i < h->n_sidecars; i++)
        if (strcmp(h->sidecars[i].name, name) == 0)
            return h->sidecars[i].file.path ? &h->sidecars[i].file : NULL;
    return NULL;
}

/* ---- Which files have the weights --------------------------------------- */
/* Adds to a set of names: the keys of an object, in order of insertion. */
static ak_status add_name(json_t *names, const char *name, struct ak_error *error)
{
    return json_object_set_new_nocheck(names, name, json_true()) == 0 ?
               AKUNU_OK :
               ak_fail_memory(error, "a file's name", strlen(name));
}

/* A shard must be in the folder itself: a name that leads elsewhere is refused before any file is
 * opened. */
static ak_status check_shard_name(const json_t *value, const char *tensor, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES], shown_tensor[AK_SHOW_BYTES];
    const char *name = json_string_value(value);
    ak_show(tensor, strlen(tensor), shown_tensor);
    if (!name)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "weight_map: %s is in %s, where a file's name is expected", shown_tensor,
                       ak_json_kind(value));
    if (strchr(name, '/') || !is_weights_name(name))
        return ak_fail(
            error, AKUNU_ERROR_FORMAT,
            "weight_map: %s is in \"%s\", where the name of a .safetensors file in the same folder "
            "is expected",
            shown_tensor, ak_show(name, strlen(name), shown));
    return AKUNU_OK;
}

static ak_status names_of_map(json_t *map, json_t *names, struct ak_error *error)
{
    const char *tensor;
    json_t *value;
    json_object_foreach (map, tensor, value) {
        AK_TRY(check_shard_name(value, tensor, error));
        AK_TRY(add_name(names, json_string_value(value), error));
    }
    return AKUNU_OK;
}

static ak_status read_index(struct ak_hf *h, const struct ak_file *file, json_t *names,
                            struct ak_error *error)
{
    if (file->bytes == 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "an empty file, where JSON is expected");
    AK_TRY(ak_json_parse_file(file->data, (size_t)file->bytes, &h->shards, error));
    json_t *map = json_object_get(h->shards, "weight_map");
    if (json_object_size(map) == 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "weight_map is %s of %zu, where an object of tensors' names is expected",
                       ak_json_kind(map),
                       json_is_array(map) ? json_array_size(map) : json_object_size(map));
    return names_of_map(map, names, error);
}

static ak_status names_of_index(struct ak_hf *h, const struct ak_file *file, json_t *names,
                                struct ak_error *error)
{
    ak_status status = read_index(h, file, names, error);
    if (status != AKUNU_OK)
        ak_error_prefix(error, index_name);
    return status;
}

/* Without an index: model.safetensors if it exists, else all SafeTensors files. */
static ak_status names_of_folder(const char *folder, json_t *names, struct ak_error *error)
{
    static const char whole[] = "model.safetensors";
    if (is_there(folder, whole))
        return add_name(names, whole, error);
    DIR *dir = opendir(folder);
    if (!dir)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "the folder cannot be read: %s", strerror(errno));
    ak_status status = AKUNU_OK;
    for (struct dirent *entry; status == AKUNU_OK && (entry = readdir(dir));)
        if (is_weights_name(entry->d_name))
            status = add_name(names, entry->d_name, error);
    closedir(dir);
    return status;
}

/* "…-00002-of-00003.safetensors" gives 2 and 3. */
static bool shard_number(const char *name, unsigned *no, unsigned *count)
{
    enum { TAIL = sizeof "-00001-of-00002" - 1 };
    size_t n = strlen(name) - strlen(suffix);
    int used = 0;
    return n > TAIL && sscanf(name + n - TAIL, "-%5u-of-%5u%n", no, count, &used) == 2 &&
           used == TAIL;
}

/* Without an index: if the names of shards say how many there are, all must be there. */
static ak_status check_complete(json_t *names, struct ak_error *error)
{
    const char *name;
    json_t *value;
    unsigned no, count;
    json_object_foreach (names, name, value) {
        if (!shard_number(name, &no, &count) || count == json_object_size(names))
            continue;
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "the folder has %zu SafeTensors files without an index, but %s is one of %u",
                       json_object_size(names), name, count);
    }
    return AKUNU_OK;
}

/* ---- Opening ------------------------------------------------------------ */
static int by_name(const void *a, const void *b)
{
    const struct ak_hf_part *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static ak_status open_parts(struct ak_hf *h, json_t *names, struct ak_error *error)
{
    const char *name;
    json_t *value;
    size_t n = json_object_size(names);
    struct ak_hf_part *parts = ak_alloc(n, sizeof *parts);
    h->parts = parts;
    if (!parts)
        return ak_fail_memory(error, "the parts of a checkpoint", n * sizeof *parts);
    json_object_foreach (names, name, value) {
        struct ak_hf_part *part = &parts[h->n_parts];
        AK_TRY(ak_hf_open_file(h, name, &part->file, error));
        part->name = strrchr(part->file.path, '/') + 1;
        h->n_parts++;
    }
    qsort(parts, h->n_parts, sizeof *parts, by_name);
    return AKUNU_OK;
}

static ak_status open_folder(struct ak_hf *h, struct ak_error *error)
{
    const struct ak_file *index = ak_hf_sidecar(h, index_name);
    json_t *names = json_object();
    if (!names)
        return ak_fail_memory(error, "the names of files", 0);
    ak_status status =
        index ? names_of_index(h, index, names, error) : names_of_folder(h->folder, names, error);
    if (status == AKUNU_OK && !index)
        status = check_complete(names, error);
    if (status == AKUNU_OK)
        status = open_parts(h, names, error);
    json_decref(names);
    return status;
}

static ak_status open_bare(struct ak_hf *h, const char *name, struct ak_error *error)
{
    unsigned no, count;
    if (is_weights_name(name) && shard_number(name, &no, &count) && count > 1)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "one of %u files of a checkpoint; give their folder", count);
    json_t *names = json_object();
    ak_status status =
        names ? add_name(names, name, error) : ak_fail_memory(error, "the names of files", 0);
    if (status == AKUNU_OK)
        status = open_parts(h, names, error);
    json_decref(names);
    return status;
}

ak_status ak_hf_open_files(struct ak_hf *h, const char *path, struct ak_error *error)
{
    bool folder = is_folder(path);
    const char *slash = folder ? NULL : strrchr(path, '/');
    if (folder)
        AK_TRY(ak_hf_open_sidecars(h, path, strlen(path), error));
    else
        AK_TRY(slash ? ak_hf_open_sidecars(h, path, (size_t)(slash - path), error) :
                       ak_hf_open_sidecars(h, ".", 1, error));
    return folder ? open_folder(h, error) : open_bare(h, slash ? slash + 1 : path, error);
}

/* ---- The index, once the tensors are known ------------------------------ */
static ak_status check_place(const struct ak_hf *h, const char *tensor, const char *file,
                             struct ak_error *error)
{
    char shown[AK_SHOW_BYTES], shown_file[AK_SHOW_BYTES];
    uint32_t i;
    if (ak_name_index_find(&h->tensor_index, tensor, &i) &&
        strcmp(h->parts[h->list.tensors[i].part].name, file) == 0)
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_FORMAT, "weight_map: %s is in %s, which does not have it",
                   ak_show(tensor, strlen(tensor), shown), ak_show(file, strlen(file), shown_file));
}

ak_status ak_hf_check_index(const struct ak_hf *h, struct ak_error *error)
{
    const char *tensor;
    json_t *value;
    json_object_foreach (json_object_get(h->shards, "weight_map"), tensor, value) {
        ak_status status = check_place(h, tensor, json_string_value(value), error);
        if (status != AKUNU_OK) {
            ak_error_prefix(error, index_name);
            return status;
        }
    }
    return AKUNU_OK;
}

void ak_hf_close_files(struct ak_hf *h)
{
    for (uint32_t i = 0; i < h->n_parts; i++)
        ak_file_close(&h->parts[i].file);
    for (size_t i = 0; i < h->n_sidecars; i++)
        ak_file_close(&h->sidecars[i].file);
    json_decref(h->shards);
    ak_free(h->parts);
    ak_free(h->sidecars);
    ak_free(h->folder);
}
