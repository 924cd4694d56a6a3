/* Bodies of multipart/form-data (RFC 7578), as clients send files. Parts are views into the body;
 * nothing is copied. */
#ifndef AK_APPS_SERVER_FORM_H
#define AK_APPS_SERVER_FORM_H

#include <stdbool.h>
#include <stddef.h>

enum {
    HTTP_FORM_PARTS_MAX = 64,
    HTTP_FORM_HEADER_BYTES_MAX = 4096, /* of a part */
    HTTP_FORM_WHY_BYTES = 256
};

struct http_form_part {
    const char *name, *file; /* as between the quotes; file NULL: no file's name */
    size_t n_name, n_file;
    const char *bytes;
    size_t n;
};

struct http_form {
    struct http_form_part parts[HTTP_FORM_PARTS_MAX];
    size_t n;
};

/* `type` is the value of Content-Type, which has the boundary; `body` has n bytes. False: `why`
 * says what was found and what was expected. */
bool http_form_parse(const char *type, const char *body, size_t n, struct http_form *out,
                     char why[HTTP_FORM_WHY_BYTES]);

#endif
