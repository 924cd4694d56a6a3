/* Makes text from files and users fit for a message. */
#ifndef AK_BASE_SHOW_H
#define AK_BASE_SHOW_H

#include <stdbool.h>
#include <stddef.h>

enum { AK_SHOW_BYTES = 512 };

/* Writes the n bytes into `out`, which is AK_SHOW_BYTES long, and returns it:
 * control characters and what is no UTF-8 as \xNN, cut after some 100 bytes. */
const char *ak_show(const void *bytes, size_t n, char *out);

/* The same for a terminated path, which is cut at its front. */
const char *ak_show_path(const char *path, char *out);

bool ak_is_utf8(const void *bytes, size_t n);

#endif
