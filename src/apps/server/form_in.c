/* Bodies of requests as forms: fields become members of an object, as if they had come as JSON. */
#include "apps/server/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "apps/server/form.h"

enum { FIELD_BYTES_MAX = 64 << 10, NAME_BYTES_MAX = 64 };

/* A member of the object: the part's name, without the "[]" that lists have. */
struct field {
    const struct http_form_part *part;
    char name[NAME_BYTES_MAX];
    bool is_list;
};

static bool read_field_name(struct http_exchange *x, const struct http_form_part *part,
                            struct field *out)
{
    size_t n = part->n_name;
    *out = (struct field){ .part = part };
    if (n >= sizeof out->name) {
        server_fail(x, 400, NULL, NULL, "a part has a name of %zu bytes; expected at most %d", n,
                    NAME_BYTES_MAX - 1);
        return false;
    }
    memcpy(out->name, part->name, n);
    out->is_list = n > 2 && strcmp(out->name + n - 2, "[]") == 0;
    if (out->is_list)
        out->name[n - 2] = '\0';
    return true;
}

/* {"at": …, "n": …, "name": …}: where the file is in the body, and its name for messages. */
static json_t *describe_file(const struct http_form_part *part, const char *body)
{
    json_t *name = part->file ? json_stringn(part->file, part->n_file) : NULL;
    return json_pack("{s:I, s:I, s:o*}", "at", (json_int_t)(part->bytes - body), "n",
                     (json_int_t)part->n, "name", name);
}

/* NULL: it has answered. */
static json_t *describe_text(struct http_exchange *x, const struct field *f)
{
    if (f->part->n > FIELD_BYTES_MAX) {
        server_fail(x, 400, f->name, NULL, "%s has %zu bytes; expected at most %d", f->name,
                    f->part->n, FIELD_BYTES_MAX);
        return NULL;
    }
    bool has_nul = memchr(f->part->bytes, '\0', f->part->n) != NULL;
    json_t *text = has_nul ? NULL : json_stringn(f->part->bytes, f->part->n);
    if (!text)
        server_fail(x, 400, f->name, NULL, "%s is not a text in UTF-8", f->name);
    return text;
}

static bool add_field(struct http_exchange *x, json_t *object, const struct field *f,
                      const char *body)
{
    char shown[APP_SHOWN_BYTES];
    bool is_file = strcmp(f->name, "file") == 0 && !f->is_list;
    json_t *list = json_object_get(object, f->name);
    if (list && !(f->is_list && json_is_array(list))) {
        server_fail(x, 400, NULL, NULL, "the form has two parts %s; expected one",
                    app_show_text(f->name, shown));
        return false;
    }
    json_t *value = is_file ? describe_file(f->part, body) : describe_text(x, f);
    if (!value && http_code(x) != 0)
        return false;
    if (f->is_list && !list) {
        list = json_array();
        json_object_set_new(object, f->name, list);
    }
    int code = f->is_list ? json_array_append_new(list, value) :
                            json_object_set_new(object, f->name, value);
    if (code != 0)
        server_fail(x, 400, NULL, NULL, "a part has a name that is not a text in UTF-8");
    return code == 0;
}

bool server_is_form(const struct http_exchange *x)
{
    static const char expected[] = "multipart/form-data";
    const char *type = http_header(x, "Content-Type");
    size_t n = type ? strcspn(type, "; ") : 0;
    return n == strlen(expected) && strncasecmp(type, expected, n) == 0;
}

json_t *server_read_form(struct http_exchange *x)
{
    char why[HTTP_FORM_WHY_BYTES];
    struct http_form form;
    struct field field;
    size_t n;
    const char *body = http_body(x, &n), *type = http_header(x, "Content-Type");
    json_t *object = json_object();
    bool good = http_form_parse(type ? type : "", body, n, &form, why);
    if (!good)
        server_fail(x, 400, NULL, NULL, "%s", why);
    else if (!object)
        server_fail_memory(x);
    for (size_t i = 0; http_code(x) == 0 && i < form.n; i++)
        if (read_field_name(x, &form.parts[i], &field))
            add_field(x, object, &field, body);
    if (http_code(x) == 0)
        return object;
    json_decref(object);
    return NULL;
}

/* ---- Members ------------------------------------------------------------ */
bool server_form_get_bool(struct http_exchange *x, const json_t *form, const char *name, bool *out)
{
    const json_t *found = json_object_get(form, name);
    const char *text = json_string_value(found);
    bool yes = text && (strcasecmp(text, "true") == 0 || strcmp(text, "1") == 0),
         no = text && (strcasecmp(text, "false") == 0 || strcmp(text, "0") == 0);
    if (found && !yes && !no) {
        server_fail_member(x, name, found, "true or false");
        return false;
    }
    *out = found ? yes : *out;
    return true;
}

bool server_form_get_real(struct http_exchange *x, const json_t *form, const char *name, double low,
                          double high, double *out)
{
    char expected[96], *end = NULL;
    const json_t *found = json_object_get(form, name);
    const char *text = json_string_value(found);
    double value = text ? strtod(text, &end) : 0.0;
    bool good = text && *text && !*end && value >= low && value <= high;
    if (found && !good) {
        snprintf(expected, sizeof expected, "a number from %g to %g", low, high);
        server_fail_member(x, name, found, expected);
        return false;
    }
    *out = found ? value : *out;
    return true;
}
