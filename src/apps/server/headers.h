/* Checks of a request's headers: what another program on the way could read in another way, so that
 * it would see other requests than this server does (RFC 9112, 11.2). */
#ifndef AK_APPS_SERVER_HEADERS_H
#define AK_APPS_SERVER_HEADERS_H

#include <stdbool.h>
#include <stddef.h>

/* All zero: before the first header. */
struct http_headers {
    unsigned n_lengths, n_encodings, n_hosts;
    size_t bytes;
    const char *wrong; /* NULL: nothing */
};

/* Adds a header; value NULL: an empty one. */
void http_headers_add(struct http_headers *h, const char *name, const char *value);
/* What is wrong with all of them; NULL: nothing. */
const char *http_headers_check(const struct http_headers *h, bool is_1_0);

#endif
