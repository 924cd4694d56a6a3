/* Typed access to metadata, with messages that show what was found. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "files/weights/provider.h"

/* Describes a value for a message: the string "abc", an array of 3 × float. */
static const char *describe_value(const struct ak_meta *meta, char *out)
{
    static const char *const kinds[] = { "nothing", "bool",   "integer", "unsigned integer",
                                         "float",   "string", "array" };
    char shown[AK_SHOW_BYTES];
    switch (meta->kind) {
    case AK_META_BOOL:
        snprintf(out, AK_SHOW_BYTES, "the bool %s", meta->as.boolean ? "true" : "false");
        break;
    case AK_META_INT:
        snprintf(out, AK_SHOW_BYTES, "the integer %lld", (long long)meta->as.integer);
        break;
    case AK_META_UINT:
        snprintf(out, AK_SHOW_BYTES, "the integer %llu",
                 (unsigned long long)meta->as.unsigned_integer);
        break;
    case AK_META_FLOAT: snprintf(out, AK_SHOW_BYTES, "the float %g", meta->as.number); break;
    case AK_META_STRING:
        ak_show(meta->as.string, (size_t)meta->n, shown);
        snprintf(out, AK_SHOW_BYTES, "the string \"%.400s\"", shown);
        break;
    default:
        snprintf(out, AK_SHOW_BYTES, "an array of %llu × %s", (unsigned long long)meta->n,
                 kinds[meta->element_kind]);
        break;
    }
    return out;
}

const char *ak_meta_show(const struct ak_meta *meta, char out[AK_META_SHOWN_BYTES])
{
    char shown[AK_SHOW_BYTES];
    switch (meta->kind) {
    case AK_META_BOOL: return meta->as.boolean ? "true" : "false";
    case AK_META_INT:
        snprintf(out, AK_META_SHOWN_BYTES, "%lld", (long long)meta->as.integer);
        return out;
    case AK_META_UINT:
        snprintf(out, AK_META_SHOWN_BYTES, "%llu", (unsigned long long)meta->as.unsigned_integer);
        return out;
    case AK_META_FLOAT: snprintf(out, AK_META_SHOWN_BYTES, "%g", meta->as.number); return out;
    case AK_META_STRING:
        snprintf(out, AK_META_SHOWN_BYTES, "\"%.200s\"",
                 ak_show(meta->as.string, (size_t)meta->n, shown));
        return out;
    default: return describe_value(meta, out);
    }
}

static ak_status refuse_value(const char *key, const struct ak_meta *meta, const char *expected,
                              struct ak_error *error)
{
    char shown_key[AK_SHOW_BYTES], shown[AK_SHOW_BYTES];
    return ak_fail(error, AKUNU_ERROR_FORMAT, "metadata %s is %s, where %s is expected",
                   ak_show(key, strlen(key), shown_key), describe_value(meta, shown), expected);
}

ak_status ak_meta_to_u32(const struct ak_meta *meta, uint32_t *out, struct ak_error *error)
{
    bool is_integer =
        meta->kind == AK_META_UINT || (meta->kind == AK_META_INT && meta->as.integer >= 0);
    uint64_t value =
        meta->kind == AK_META_UINT ? meta->as.unsigned_integer : (uint64_t)meta->as.integer;
    if (!is_integer || value > UINT32_MAX)
        return refuse_value(meta->key, meta, "an integer from 0 to 4294967295", error);
    *out = (uint32_t)value;
    return AKUNU_OK;
}

ak_status ak_meta_to_float(const struct ak_meta *meta, float *out, struct ak_error *error)
{
    switch (meta->kind) {
    case AK_META_UINT: *out = (float)meta->as.unsigned_integer; return AKUNU_OK;
    case AK_META_INT: *out = (float)meta->as.integer; return AKUNU_OK;
    case AK_META_FLOAT:
        if (isnan(meta->as.number))
            return refuse_value(meta->key, meta, "a number", error);
        if (isfinite(meta->as.number) && fabs(meta->as.number) > (double)FLT_MAX)
            return refuse_value(meta->key, meta, "a number that fits 32-bit floats", error);
        *out = (float)meta->as.number;
        return AKUNU_OK;
    default: return refuse_value(meta->key, meta, "a number", error);
    }
}

ak_status ak_meta_to_bool(const struct ak_meta *meta, bool *out, struct ak_error *error)
{
    if (meta->kind != AK_META_BOOL)
        return refuse_value(meta->key, meta, "a bool", error);
    *out = meta->as.boolean;
    return AKUNU_OK;
}

ak_status ak_meta_to_text(const struct ak_meta *meta, struct ak_text *out, struct ak_error *error)
{
    if (meta->kind != AK_META_STRING || meta->n > UINT32_MAX)
        return refuse_value(meta->key, meta, "a string", error);
    *out = (struct ak_text){ meta->as.string, (uint32_t)meta->n };
    return AKUNU_OK;
}

ak_status ak_meta_u32(const struct ak_provider *p, const char *key, uint32_t fallback,
                      uint32_t *out, struct ak_error *error)
{
    struct ak_meta meta;
    *out = fallback;
    return ak_provider_find_meta(p, key, &meta) ? ak_meta_to_u32(&meta, out, error) : AKUNU_OK;
}

ak_status ak_meta_float(const struct ak_provider *p, const char *key, float fallback, float *out,
                        struct ak_error *error)
{
    struct ak_meta meta;
    *out = fallback;
    return ak_provider_find_meta(p, key, &meta) ? ak_meta_to_float(&meta, out, error) : AKUNU_OK;
}

ak_status ak_meta_bool(const struct ak_provider *p, const char *key, bool fallback, bool *out,
                       struct ak_error *error)
{
    struct ak_meta meta;
    *out = fallback;
    return ak_provider_find_meta(p, key, &meta) ? ak_meta_to_bool(&meta, out, error) : AKUNU_OK;
}

ak_status ak_meta_text(const struct ak_provider *p, const char *key, struct ak_text *out,
                       struct ak_error *error)
{
    struct ak_meta meta;
    *out = (struct ak_text){ NULL, 0 };
    return ak_provider_find_meta(p, key, &meta) ? ak_meta_to_text(&meta, out, error) : AKUNU_OK;
}

bool ak_meta_equals(const struct ak_meta *meta, const char *text)
{
    return meta->kind == AK_META_STRING && meta->n == strlen(text) &&
           memcmp(meta->as.string, text, (size_t)meta->n) == 0;
}
