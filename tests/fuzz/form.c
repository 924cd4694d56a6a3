/* Forms: a Content-Type in the first line, then the body. What passes has parts that stand in the
 * body one after another, none of which has a boundary in it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "apps/server/form.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_inside(const char *from, size_t n, const char *begin, const char *end)
{
    if (from < begin || from > end || n > (size_t)(end - from))
        abort();
}

static void check_form(const struct http_form *form, const char *body, size_t n)
{
    const char *end = body + n, *behind = body;
    if (form->n > HTTP_FORM_PARTS_MAX)
        abort();
    for (size_t i = 0; i < form->n; i++) {
        const struct http_form_part *p = &form->parts[i];
        check_inside(p->name, p->n_name, behind, end);
        if (p->n_name == 0)
            abort();
        if (p->file)
            check_inside(p->file, p->n_file, behind, end);
        check_inside(p->bytes, p->n, p->name + p->n_name, end);
        behind = p->bytes + p->n;
        if (memmem(p->bytes, p->n, "\r\n--b--", 7) || memmem(p->bytes, p->n, "\r\n--b\r\n", 7))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char why[HTTP_FORM_WHY_BYTES] = "";
    struct http_form form;
    char *type = malloc(n + 1), *body;
    size_t n_type, n_body;
    if (!type)
        abort();
    memcpy(type, data, n);
    type[n] = '\0';
    n_type = strcspn(type, "\n");
    n_body = n - n_type - (n_type < n);
    body = malloc(n_body + 1); /* of its own, so that a read beyond it is seen */
    if (!body)
        abort();
    memcpy(body, type + n - n_body, n_body);
    type[n_type] = '\0';
    bool good = http_form_parse(type, body, n_body, &form, why);
    if (good != (why[0] == '\0'))
        abort();
    if (good && strcmp(type, "a/b; boundary=b") == 0)
        check_form(&form, body, n_body);
    else if (good && form.n > HTTP_FORM_PARTS_MAX)
        abort();
    free(body);
    free(type);
    return 0;
}
