/* Metadata overrides of the user, and keys that he has ignored: parsing and lookup. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "files/weights/provider.h"

struct ak_meta_override {
    struct ak_meta_override *next;
    struct ak_meta meta; /* its strings point into `text` */
    char text[];         /* "KEY", NUL, "TYPE:VALUE" */
};

static bool parse_bool(const char *value, struct ak_meta *out)
{
    out->kind = AK_META_BOOL;
    out->as.boolean = strcmp(value, "true") == 0;
    return out->as.boolean || strcmp(value, "false") == 0;
}

static bool parse_int(const char *value, struct ak_meta *out)
{
    char *end;

    out->kind = AK_META_INT;
    out->as.integer = strtoll(value, &end, 10);
    return *value != '\0' && *end == '\0' && out->as.integer != INT64_MAX &&
           out->as.integer != INT64_MIN;
}

static bool parse_float(const char *value, struct ak_meta *out)
{
    char *end;

    out->kind = AK_META_FLOAT;
    out->as.number = strtod(value, &end);
    return *value != '\0' && *end == '\0';
}

static bool parse_string(const char *value, struct ak_meta *out)
{
    out->kind = AK_META_STRING;
    out->as.string = value;
    out->n = strlen(value);
    return true;
}

/* "TYPE:VALUE" */
static bool parse_override(const char *typed, struct ak_meta *out)
{
    static const struct {
        const char *type;
        bool (*parse)(const char *value, struct ak_meta *out);
    } types[] = { { "int:", parse_int },
                  { "float:", parse_float },
                  { "bool:", parse_bool },
                  { "str:", parse_string } };

    out->n = 1;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strncmp(typed, types[i].type, strlen(types[i].type)) == 0)
            return types[i].parse(typed + strlen(types[i].type), out);
    return false;
}

ak_status ak_provider_override(struct ak_provider *p, const char *text, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    size_t n = strlen(text);
    const char *equals = strchr(text, '=');
    struct ak_meta_override *o = ak_alloc(1, sizeof *o + n + 1);

    if (!o)
        return ak_fail_memory(error, "metadata that is overridden", sizeof *o + n + 1);
    memcpy(o->text, text, n + 1);
    if (equals)
        o->text[equals - text] = '\0';
    if (!equals || equals == text || !parse_override(o->text + (equals - text) + 1, &o->meta)) {
        ak_free(o);
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "%s overrides no metadata: KEY=TYPE:VALUE is expected, where TYPE is int, "
                       "float, bool or str",
                       ak_show_path(text, shown));
    }
    o->meta.key = o->text;
    o->next = p->overrides; /* of several with the same key the last one counts */
    p->overrides = o;
    return AKUNU_OK;
}

bool ak_meta_overrides_find(const struct ak_meta_override *list, const char *key,
                            struct ak_meta *out)
{
    for (; list; list = list->next) {
        if (strcmp(list->meta.key, key) != 0)
            continue;
        *out = list->meta;
        return true;
    }
    return false;
}

bool ak_meta_overrides_at(const struct ak_meta_override *list, size_t i, struct ak_meta *out)
{
    for (; list && i > 0; i--)
        list = list->next;
    if (list)
        *out = list->meta;
    return list != NULL;
}

void ak_meta_overrides_free(struct ak_meta_override *list)
{
    while (list) {
        struct ak_meta_override *next = list->next;
        ak_free(list);
        list = next;
    }
}

/* ---- Ignored keys ------------------------------------------------------- */
struct ak_ignored_key {
    struct ak_ignored_key *next;
    char key[];
};

ak_status ak_provider_ignore(struct ak_provider *p, const char *key, struct ak_error *error)
{
    size_t n = strlen(key);
    struct ak_ignored_key *ignored = ak_alloc(1, sizeof *ignored + n + 1);
    if (!ignored)
        return ak_fail_memory(error, "a key that is ignored", sizeof *ignored + n + 1);
    memcpy(ignored->key, key, n + 1);
    ignored->next = p->ignored;
    p->ignored = ignored;
    return AKUNU_OK;
}

ak_status ak_provider_adjust(struct ak_provider *p, const char *const *override_kv,
                             const char *const *ignore_keys, struct ak_error *error)
{
    for (; override_kv && *override_kv; override_kv++)
        AK_TRY(ak_provider_override(p, *override_kv, error));
    for (; ignore_keys && *ignore_keys; ignore_keys++)
        AK_TRY(ak_provider_ignore(p, *ignore_keys, error));
    return AKUNU_OK;
}

bool ak_provider_ignores(const struct ak_provider *p, const char *key)
{
    const struct ak_ignored_key *ignored = p->ignored;
    while (ignored && strcmp(ignored->key, key) != 0)
        ignored = ignored->next;
    return ignored != NULL;
}

void ak_ignored_keys_free(struct ak_ignored_key *list)
{
    while (list) {
        struct ak_ignored_key *next = list->next;
        ak_free(list);
        list = next;
    }
}
