/* JSON files of a checkpoint as flat metadata: nested objects become dotted keys, so that callers
 * read config.json as they read GGUF's metadata. */
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "base/json/wide.h"
#include "files/weights/hf/hf.h"
#include "base/array.h"

/* Dotted keys repeat the outer keys: the limit keeps deep nesting from making a small file large.
 */
enum { MAX_KEY_BYTES = 16 << 20, MAX_CONFIG_BYTES = 64 << 20 };

/* Entries that are also found under GGUF's key. */
static const struct {
    const char *key, *hf;
} aliases[] = {
    { "general.architecture", "model_type" },
    { "general.name", "_name_or_path" },
};

/* Makes "OUTER.KEY"; counts it against MAX_KEY_BYTES. */
static ak_status join_key(struct ak_hf_metadata *m, const char *outer, const char *key, char **out,
                          struct ak_error *error)
{
    size_t n_outer = strlen(outer), n = strlen(key);
    m->key_bytes += n_outer + n + 2;
    if (m->key_bytes > MAX_KEY_BYTES)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "keys of more than %d bytes together",
                       MAX_KEY_BYTES);
    *out = ak_alloc(n_outer + n + 2, 1);
    if (!*out)
        return ak_fail_memory(error, "a metadata key", n_outer + n + 2);
    memcpy(*out, outer, n_outer);
    memcpy(*out + n_outer, key, n);
    return AKUNU_OK;
}

static ak_status add_json_entry(struct ak_hf_metadata *m, const char *outer, const char *key,
                                const json_t *value, struct ak_error *error)
{
    AK_TRY(ak_reserve_or_fail(&m->entries, &m->capacity, m->n, 1, "metadata", error));
    AK_TRY(join_key(m, outer, key, &m->entries[m->n].key, error));
    m->entries[m->n++].value = value;
    return AKUNU_OK;
}

static ak_status add_null(struct ak_hf_metadata *m, const char *outer, const char *key,
                          struct ak_error *error)
{
    AK_TRY(ak_reserve_or_fail(&m->nulls, &m->nulls_capacity, m->n_nulls, 1, "metadata", error));
    AK_TRY(join_key(m, outer, key, &m->nulls[m->n_nulls], error));
    m->n_nulls++;
    return AKUNU_OK;
}

/* Adds the entries of an object. null is no entry, but its key is kept: it says "none" where an
 * absent key would have a default. Skips the list of added tokens, which the tokenizer reads
 * itself. The parser has limited the depth. */
static ak_status flatten(struct ak_hf_metadata *m, const char *outer, json_t *object,
                         struct ak_error *error)
{
    const char *key;
    json_t *value;
    json_object_foreach (object, key, value) {
        if (strcmp(key, "added_tokens_decoder") == 0)
            continue;
        if (json_is_null(value)) {
            AK_TRY(add_null(m, outer, key, error));
            continue;
        }
        if (!json_is_object(value) || ak_wide_text(value)) {
            AK_TRY(add_json_entry(m, outer, key, value, error));
            continue;
        }
        char *inner, *dotted;
        AK_TRY(join_key(m, outer, key, &inner, error));
        ak_status status = join_key(m, inner, ".", &dotted, error);
        ak_free(inner);
        AK_TRY(status);
        status = flatten(m, dotted, value, error);
        ak_free(dotted);
        AK_TRY(status);
    }
    return AKUNU_OK;
}

static ak_status read_object(struct ak_hf_metadata *m, const struct ak_file *file,
                             const char *outer, struct ak_error *error)
{
    json_t *root;
    if (file->bytes == 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "an empty file, where JSON is expected");
    if (file->bytes > MAX_CONFIG_BYTES)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%llu bytes, where at most %d are possible",
                       (unsigned long long)file->bytes, MAX_CONFIG_BYTES);
    AK_TRY(ak_json_parse_file(file->data, (size_t)file->bytes, &root, error));
    m->roots[m->n_roots++] = root;
    if (!json_is_object(root))
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s, where an object is expected",
                       ak_json_kind(root));
    return flatten(m, outer, root, error);
}

static ak_status index_entries(struct ak_hf_metadata *m, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    AK_TRY(ak_name_index_alloc(&m->index, m->n, error));
    for (uint32_t i = 0; i < m->index.n; i++)
        m->index.entries[i] = (struct ak_name_index_entry){ m->entries[i].key, i };
    const char *duplicate = ak_name_index_sort(&m->index);
    if (duplicate)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "metadata %s is there twice",
                       ak_show(duplicate, strlen(duplicate), shown));
    return AKUNU_OK;
}

ak_status ak_hf_read_metadata(struct ak_hf *h, struct ak_error *error)
{
    static const struct {
        const char *name, *outer;
    } files[] = {
        { "config.json", "" },
        { "generation_config.json", "generation_config." },
        { "tokenizer_config.json", "tokenizer_config." },
    };
    enum { N = sizeof files / sizeof *files };
    h->metadata.roots = ak_alloc(N, sizeof *h->metadata.roots);
    if (!h->metadata.roots)
        return ak_fail_memory(error, "metadata", N * sizeof *h->metadata.roots);
    for (size_t i = 0; i < N; i++) {
        const struct ak_file *file = ak_hf_sidecar(h, files[i].name);
        if (!file && i == 0)
            return ak_fail(error, AKUNU_ERROR_FORMAT,
                           "config.json is missing, which says what the tensors are");
        ak_status status = file ? read_object(&h->metadata, file, files[i].outer, error) : AKUNU_OK;
        if (status != AKUNU_OK) {
            ak_error_prefix(error, files[i].name);
            return status;
        }
    }
    return index_entries(&h->metadata, error);
}

/* Kind of an array's elements; of mixed numbers the wider one. */
static enum ak_meta_kind element_kind(const json_t *array)
{
    struct ak_meta element,
        list = { .kind = AK_META_ARRAY, .n = json_array_size(array), .as.elements = array };
    enum ak_meta_kind kind = AK_META_NONE;
    for (uint64_t i = 0; ak_hf_element(&list, i, &element); i++)
        if (i == 0 || (kind == AK_META_INT && element.kind == AK_META_FLOAT))
            kind = element.kind;
    return kind;
}

/* Converts a value. A value that is not a number, string, bool or list becomes an empty array. */
static void fill_value(const json_t *value, struct ak_meta *out)
{
    const char *wide = ak_wide_text(value);
    out->n = 1;
    if (wide) {
        out->kind = AK_META_FLOAT;
        out->as.number = ak_wide_double(wide);
    } else if (json_is_integer(value)) {
        out->kind = AK_META_INT;
        out->as.integer = json_integer_value(value);
    } else if (json_is_real(value)) {
        out->kind = AK_META_FLOAT;
        out->as.number = json_real_value(value);
    } else if (json_is_boolean(value)) {
        out->kind = AK_META_BOOL;
        out->as.boolean = json_is_true(value);
    } else if (json_is_string(value)) {
        out->kind = AK_META_STRING;
        out->n = json_string_length(value);
        out->as.string = json_string_value(value);
    } else {
        out->kind = AK_META_ARRAY;
        out->n = json_array_size(value);
        out->as.elements = value;
    }
}

void ak_hf_meta(const struct ak_hf_metadata *m, size_t i, struct ak_meta *out)
{
    *out = (struct ak_meta){ .key = m->entries[i].key };
    fill_value(m->entries[i].value, out);
    if (out->kind == AK_META_ARRAY)
        out->element_kind = element_kind(m->entries[i].value);
}

bool ak_hf_find_meta(const struct ak_hf_metadata *m, const char *key, struct ak_meta *out)
{
    uint32_t i;
    for (size_t a = 0; a < sizeof aliases / sizeof *aliases; a++)
        if (strcmp(key, aliases[a].key) == 0)
            key = aliases[a].hf;
    if (!ak_name_index_find(&m->index, key, &i))
        return false;
    ak_hf_meta(m, i, out);
    return true;
}

const char *ak_hf_null(const struct ak_hf_metadata *m, size_t i)
{
    return i < m->n_nulls ? m->nulls[i] : NULL;
}

bool ak_hf_element(const struct ak_meta *array, uint64_t i, struct ak_meta *out)
{
    const json_t *value = array->kind == AK_META_ARRAY && i < array->n ?
                              json_array_get(array->as.elements, (size_t)i) :
                              NULL;
    if (!value)
        return false;
    *out = (struct ak_meta){ .key = "" };
    fill_value(value, out);
    return true;
}

void ak_hf_metadata_free(struct ak_hf_metadata *m)
{
    ak_name_index_free(&m->index);
    for (size_t i = 0; i < m->n; i++)
        ak_free(m->entries[i].key);
    ak_free(m->entries);
    for (size_t i = 0; i < m->n_nulls; i++)
        ak_free(m->nulls[i]);
    ak_free(m->nulls);
    for (size_t i = 0; i < m->n_roots; i++)
        json_decref(m->roots[i]);
    ak_free(m->roots);
    *m = (struct ak_hf_metadata){ 0 };
}
