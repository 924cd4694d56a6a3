/* Parser of the .npy header, which is a Python dictionary literal. Only the three keys of the
 * format and the literals that NumPy writes are accepted. */
#include "files/weights/npy/npy.h"

#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

static const uint8_t magic[] = { 0x93, 'N', 'U', 'M', 'P', 'Y' };

static const struct {
    const char *descr;
    enum ak_quant_type type;
} dtypes[] = {
    { "<f4", AK_QUANT_F32 },  { "<f2", AK_QUANT_F16 }, { "<f8", AK_QUANT_F64 },
    { "|b1", AK_QUANT_BOOL }, { "|i1", AK_QUANT_I8 },  { "|u1", AK_QUANT_U8 },
    { "<i2", AK_QUANT_I16 },  { "<u2", AK_QUANT_U16 }, { "<i4", AK_QUANT_I32 },
    { "<u4", AK_QUANT_U32 },  { "<i8", AK_QUANT_I64 }, { "<u8", AK_QUANT_U64 },
};

bool ak_npy_probe(const struct ak_file *file)
{
    return file->bytes >= sizeof magic && memcmp(file->data, magic, sizeof magic) == 0;
}

/* ---- The header's text: Python's literals, as far as the format uses them -- */
struct scan {
    const char *next, *end;
};

static void skip_whitespace(struct scan *s)
{
    while (s->next < s->end && *s->next && strchr(" \t\r\n", *s->next))
        s->next++;
}

static bool take_word(struct scan *s, const char *word)
{
    skip_whitespace(s);
    size_t n = strlen(word);
    if ((size_t)(s->end - s->next) < n || memcmp(s->next, word, n) != 0)
        return false;
    s->next += n;
    return true;
}

/* A string in single or double quotes, without escapes. */
static bool take_string(struct scan *s, struct ak_text *out)
{
    skip_whitespace(s);
    if (s->next >= s->end || (*s->next != '\'' && *s->next != '"'))
        return false;
    const char *begin = s->next + 1, *close = memchr(begin, *s->next, (size_t)(s->end - begin));
    if (!close || memchr(begin, '\\', (size_t)(close - begin)))
        return false;
    *out = (struct ak_text){ begin, (uint32_t)(close - begin) };
    s->next = close + 1;
    return true;
}

/* Shows the value at the position, for a message. */
static const char *show_value(const struct scan *s, char out[AK_SHOW_BYTES])
{
    const char *end = s->next;
    for (int depth = 0; end < s->end && *end != '\n' && *end != '}' && !(depth == 0 && *end == ',');
         end++)
        depth += (*end == '(' || *end == '[') - (*end == ')' || *end == ']');
    return ak_show(s->next, (size_t)(end - s->next), out);
}

static ak_status read_descr(struct scan *s, struct ak_npy *out, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    struct ak_text descr;
    struct scan before = *s;
    skip_whitespace(&before);
    if (!take_string(s, &descr))
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "header: descr is %s, where a string is expected",
                       show_value(&before, shown));
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (strlen(dtypes[i].descr) == descr.n &&
            memcmp(dtypes[i].descr, descr.bytes, descr.n) == 0) {
            out->type = dtypes[i].type;
            return AKUNU_OK;
        }
    ak_show(descr.bytes, descr.n, shown);
    if (memchr(descr.bytes, 'O', descr.n))
        return ak_fail(
            error, AKUNU_ERROR_UNSUPPORTED,
            "header: descr is %s: arrays of Python objects are programs, and are not read", shown);
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "header: descr is %s, which is not supported",
                   shown);
}

static ak_status fail_shape(const struct scan *at, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    return ak_fail(
        error, AKUNU_ERROR_FORMAT,
        "header: shape is %s, where counts in parentheses, at most %d below 2^32, are expected",
        show_value(at, shown), AK_TENSOR_DIMS_MAX);
}

static bool take_count(struct scan *s, uint64_t *out)
{
    skip_whitespace(s);
    const char *first = s->next;
    for (*out = 0; s->next < s->end && *s->next >= '0' && *s->next <= '9' && *out <= UINT32_MAX;
         s->next++)
        *out = *out * 10 + (uint64_t)(*s->next - '0');
    return s->next > first && *out <= UINT32_MAX;
}

static ak_status read_shape(struct scan *s, struct ak_npy *out, struct ak_error *error)
{
    skip_whitespace(s);
    struct scan before = *s;
    uint64_t rows = 1;
    out->n_dims = 0;
    if (!take_word(s, "("))
        return fail_shape(&before, error);
    while (!take_word(s, ")")) {
        if (out->n_dims == AK_TENSOR_DIMS_MAX || !take_count(s, &out->shape[out->n_dims++]))
            return fail_shape(&before, error);
        if (!take_word(s, ",") && !take_word(s, ")"))
            return fail_shape(&before, error);
        if (s->next[-1] == ')')
            break;
    }
    if (out->n_dims == 0)
        out->shape[out->n_dims++] = 1;
    for (unsigned d = 0; d + 1 < out->n_dims; d++)
        if ((rows *= out->shape[d]) > UINT32_MAX)
            return fail_shape(&before, error);
    return AKUNU_OK;
}

static ak_status read_order(struct scan *s, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    if (take_word(s, "False"))
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                   "header: fortran_order is %s, where False is expected", show_value(s, shown));
}

static bool is_key(struct ak_text key, const char *name)
{
    return key.n == strlen(name) && memcmp(key.bytes, name, key.n) == 0;
}

static ak_status read_npy_entry(struct scan *s, struct ak_text key, struct ak_npy *out,
                                unsigned *seen, struct ak_error *error)
{
    static const char *const keys[] = { "descr", "fortran_order", "shape" };
    char shown[AK_SHOW_BYTES];
    unsigned k = 0;
    while (k < 3 && !is_key(key, keys[k]))
        k++;
    if (k == 3 || *seen & 1u << k)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "header: the key %s %s",
                       ak_show(key.bytes, key.n, shown),
                       k == 3 ? "is none of the format's" : "is there twice");
    *seen |= 1u << k;
    return k == 0 ? read_descr(s, out, error) :
           k == 1 ? read_order(s, error) :
                    read_shape(s, out, error);
}

static ak_status read_npy_header(struct scan *s, struct ak_npy *out, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    unsigned seen = 0;
    struct ak_text key;
    struct scan begin = *s;
    if (!take_word(s, "{"))
        return ak_fail(error, AKUNU_ERROR_FORMAT, "header: %s, where a dictionary is expected",
                       show_value(&begin, shown));
    while (!take_word(s, "}")) {
        if (!take_string(s, &key) || !take_word(s, ":"))
            return ak_fail(error, AKUNU_ERROR_FORMAT,
                           "header: %s, where a key and its value are expected",
                           show_value(s, shown));
        AK_TRY(read_npy_entry(s, key, out, &seen, error));
        if (take_word(s, "}"))
            break;
        if (!take_word(s, ","))
            return ak_fail(error, AKUNU_ERROR_FORMAT,
                           "header: %s, where a comma or the end is expected",
                           show_value(s, shown));
    }
    if (seen != 7)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "header: %s is missing",
                       !(seen & 1) ? "descr" :
                       !(seen & 4) ? "shape" :
                                     "fortran_order");
    skip_whitespace(s);
    return s->next == s->end ?
               AKUNU_OK :
               ak_fail(error, AKUNU_ERROR_FORMAT, "header: text behind the dictionary");
}

ak_status ak_npy_read(const struct ak_file *file, struct ak_npy *out, struct ak_error *error)
{
    struct ak_cursor c = ak_cursor_init(file->data, file->bytes);
    const uint8_t *text;
    uint8_t major, minor;
    uint16_t short_length;
    uint32_t length;
    ak_cursor_read_bytes(&c, sizeof magic, &text);
    if (!ak_cursor_read_u8(&c, &major) || !ak_cursor_read_u8(&c, &minor))
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "the end of the file (%llu bytes) is inside the version",
                       (unsigned long long)file->bytes);
    if (major < 1 || major > 3)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "version %d.%d; supported: 1, 2 and 3",
                       major, minor);
    bool fine =
        major == 1 ? ak_cursor_read_u16(&c, &short_length) : ak_cursor_read_u32(&c, &length);
    if (fine && major == 1)
        length = short_length;
    if (!fine || !ak_cursor_read_bytes(&c, length, &text))
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "the end of the file (%llu bytes) is inside the header",
                       (unsigned long long)file->bytes);
    struct scan s = { (const char *)text, (const char *)text + length };
    AK_TRY(read_npy_header(&s, out, error));

    out->offset = ak_cursor_offset(&c);
    out->bytes = ak_quant_info(out->type)->block_bytes;
    for (unsigned d = 0; d < out->n_dims; d++)
        if (!ak_mul_u64(out->bytes, out->shape[d], &out->bytes))
            return ak_fail(error, AKUNU_ERROR_FORMAT,
                           "header: the size of the shape overflows 64 bits");
    if (out->bytes != ak_cursor_bytes_left(&c))
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "the shape asks for a size of %llu bytes, where the file has %llu of data",
                       (unsigned long long)out->bytes,
                       (unsigned long long)ak_cursor_bytes_left(&c));
    return AKUNU_OK;
}
