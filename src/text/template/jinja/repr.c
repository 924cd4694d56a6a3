/* str() and repr() of values, as in Python. */
#include <string.h>
#include <utf8proc.h>

#include "text/template/jinja/string.h"

/* str.isprintable of one character. */
static bool is_printable(uint32_t c)
{
    utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
    if (c == ' ')
        return true;
    return k != UTF8PROC_CATEGORY_CN && k != UTF8PROC_CATEGORY_CC && k != UTF8PROC_CATEGORY_CF &&
           k != UTF8PROC_CATEGORY_CS && k != UTF8PROC_CATEGORY_CO && k != UTF8PROC_CATEGORY_ZL &&
           k != UTF8PROC_CATEGORY_ZP && k != UTF8PROC_CATEGORY_ZS;
}

static void put_hex(struct ak_jenv *j, struct ak_jout *out, const char *prefix, uint32_t c,
                    int digits)
{
    static const char hex[] = "0123456789abcdef";
    ak_j_put_text(j, out, prefix);
    for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4)
        ak_j_put_bytes(j, out, &hex[(c >> shift) & 15], 1);
}

static void put_escaped(struct ak_jenv *j, struct ak_jout *out, uint32_t c, uint32_t quote)
{
    if (c == quote || c == '\\') {
        ak_j_put_text(j, out, "\\");
        ak_j_put_char(j, out, c);
    } else if (c == '\n' || c == '\r' || c == '\t') {
        ak_j_put_text(j, out, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t");
    } else if (is_printable(c)) {
        ak_j_put_char(j, out, c);
    } else if (c < 0x100) {
        put_hex(j, out, "\\x", c, 2);
    } else {
        put_hex(j, out, c < 0x10000 ? "\\u" : "\\U", c, c < 0x10000 ? 4 : 8);
    }
}

static void put_quoted(struct ak_jenv *j, struct ak_jout *out, const struct ak_jstr *s)
{
    bool has_single = s->n && memchr(s->bytes, '\'', s->n),
         has_double = s->n && memchr(s->bytes, '"', s->n);
    const char *quote = has_single && !has_double ? "\"" : "'";
    ak_j_put_text(j, out, quote);
    for (size_t at = 0; at < s->n;)
        put_escaped(j, out, ak_j_char_at(s, at, &at), (unsigned char)quote[0]);
    ak_j_put_text(j, out, quote);
}

static void put_items(struct ak_jenv *j, struct ak_jout *out, const struct ak_jlist *list,
                      const char *open, const char *close)
{
    ak_j_put_text(j, out, open);
    for (size_t i = 0; i < list->n; i++) {
        ak_j_put_text(j, out, i ? ", " : "");
        ak_j_put_repr(j, out, list->items[i]);
    }
    ak_j_put_text(j, out, close);
}

static void put_range(struct ak_jenv *j, struct ak_jout *out, const struct ak_jlist *list)
{
    ak_j_put_text(j, out, "range(");
    ak_j_put_int(j, out, list->start);
    ak_j_put_text(j, out, ", ");
    ak_j_put_int(j, out, list->stop);
    if (list->step != 1) {
        ak_j_put_text(j, out, ", ");
        ak_j_put_int(j, out, list->step);
    }
    ak_j_put_text(j, out, ")");
}

static void put_list(struct ak_jenv *j, struct ak_jout *out, const struct ak_jlist *list)
{
    switch (list->form) {
    case AK_J_PLAIN_LIST: put_items(j, out, list, "[", "]"); break;
    case AK_J_TUPLE: put_items(j, out, list, "(", list->n == 1 ? ",)" : ")"); break;
    case AK_J_KEYS: put_items(j, out, list, "dict_keys([", "])"); break;
    case AK_J_VALUES: put_items(j, out, list, "dict_values([", "])"); break;
    case AK_J_ITEMS: put_items(j, out, list, "dict_items([", "])"); break;
    case AK_J_RANGE: put_range(j, out, list); break;
    case AK_J_GENERATOR: ak_j_put_text(j, out, "<generator object>"); break;
    }
}

static void put_dict(struct ak_jenv *j, struct ak_jout *out, const struct ak_jdict *dict)
{
    ak_j_put_text(j, out, "{");
    for (size_t i = 0; i < dict->n; i++) {
        ak_j_put_text(j, out, i ? ", " : "");
        ak_j_put_repr(j, out, dict->pairs[i].key);
        ak_j_put_text(j, out, ": ");
        ak_j_put_repr(j, out, dict->pairs[i].value);
    }
    ak_j_put_text(j, out, "}");
}

void ak_j_put_repr(struct ak_jenv *j, struct ak_jout *out, struct ak_jval v)
{
    ak_j_enter(j);
    ak_j_spend(j, 1);
    switch (v.kind) {
    case AK_J_MISSING:
    case AK_J_UNDEFINED: ak_j_put_text(j, out, "Undefined"); break;
    case AK_J_NONE: ak_j_put_text(j, out, "None"); break;
    case AK_J_BOOL: ak_j_put_text(j, out, v.as.boolean ? "True" : "False"); break;
    case AK_J_INT: ak_j_put_int(j, out, v.as.integer); break;
    case AK_J_BIG_INT: ak_j_put_str(j, out, v.as.string); break;
    case AK_J_FLOAT: ak_j_put_float(j, out, v.as.number); break;
    case AK_J_STRING: put_quoted(j, out, v.as.string); break;
    case AK_J_LIST: put_list(j, out, v.as.list); break;
    case AK_J_DICT: put_dict(j, out, v.as.dict); break;
    case AK_J_NAMESPACE:
        ak_j_put_text(j, out, "<Namespace ");
        put_dict(j, out, v.as.dict);
        ak_j_put_text(j, out, ">");
        break;
    default:
        ak_j_put_text(j, out, "<");
        ak_j_put_text(j, out, ak_j_type_name(v));
        ak_j_put_text(j, out, ">");
    }
    ak_j_leave(j);
}

void ak_j_put_value(struct ak_jenv *j, struct ak_jout *out, struct ak_jval v)
{
    if (v.kind == AK_J_STRING)
        ak_j_put_str(j, out, v.as.string);
    else if (v.kind != AK_J_UNDEFINED)
        ak_j_put_repr(j, out, v);
}

struct ak_jstr *ak_j_str(struct ak_jenv *j, struct ak_jval v)
{
    struct ak_jout out = { 0 };
    if (v.kind == AK_J_STRING)
        return v.as.string;
    ak_j_put_value(j, &out, v);
    return ak_j_finish(j, &out).as.string;
}

const char *ak_j_show(struct ak_jenv *j, struct ak_jval v)
{
    enum { BYTES_MAX = 100 };
    struct ak_jout out = { 0 };
    ak_j_put_repr(j, &out, v);
    if (out.n > BYTES_MAX) {
        for (out.n = BYTES_MAX; ((unsigned char)out.bytes[out.n] & 0xC0) == 0x80; out.n--)
            ;
        ak_j_put_text(j, &out, "…");
    }
    ak_j_put_bytes(j, &out, "", 1);
    return out.bytes;
}
