/* Headers: lines "name: value". What passes has at most one length, one encoding and one host, and
 * names and values that no program reads in another way. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "apps/server/headers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct http_headers headers = { 0 };
    size_t n_lengths = 0;
    char *text = malloc(n + 1);
    if (!text)
        abort();
    memcpy(text, data, n);
    text[n] = '\0';
    for (char *line = text; *line;) {
        char *end = line + strcspn(line, "\n"), *colon = memchr(line, ':', (size_t)(end - line));
        char *next = *end ? end + 1 : end;
        *end = '\0';
        if (colon)
            *colon = '\0';
        http_headers_add(&headers, line, colon ? colon + 1 : NULL);
        n_lengths += strcmp(line, "content-length") == 0;
        if (!http_headers_check(&headers, false) &&
            (n_lengths > 1 || strpbrk(line, " \t\r\v\f") || (colon && strpbrk(colon + 1, "\r\v"))))
            abort();
        line = next;
    }
    free(text);
    return 0;
}
