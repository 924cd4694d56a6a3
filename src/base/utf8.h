/* UTF-8 (The Unicode Standard, table 3-7). Text of files and users may be malformed, so it is
 * validated while it is decoded, and escaped before a message shows it. */
#ifndef AK_BASE_UTF8_H
#define AK_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ak_utf8 {
    uint32_t code; /* if valid */
    /* length of the character; if invalid, of the longest prefix that could begin one, min 1 */
    uint8_t bytes;
    bool valid;
    bool truncated; /* invalid only because the text ends inside the character */
};

/* Decodes the first character of n ≥ 1 bytes. */
struct ak_utf8 ak_utf8_next(const char *text, size_t n);

/* Length of the longest prefix that is valid UTF-8. */
size_t ak_utf8_valid_bytes(const char *text, size_t n);
bool ak_is_utf8(const void *bytes, size_t n);

/* ---- Text for messages -------------------------------------------------- */
enum { AK_SHOW_BYTES = 512 };

/* Writes n bytes as printable text into out[AK_SHOW_BYTES] and returns it. Control characters and
 * invalid UTF-8 become \xNN; input beyond about 100 bytes is dropped. */
const char *ak_show(const void *bytes, size_t n, char *out);

/* The same for a path with a NUL; a long one keeps its last 300 bytes or so. */
const char *ak_show_path(const char *path, char *out);

#endif
