/* The bytes of a file, read with pread through a window, and numbers in them. Scanners of audio
 * files use it: what they read may be shorter than its headers say, and may change. */
#ifndef AK_SPEECH_AUDIO_BYTES_H
#define AK_SPEECH_AUDIO_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { AK_BYTES_WINDOW = 1 << 16, AK_BYTES_MAX = AK_BYTES_WINDOW / 2 };

struct ak_bytes {
    int fd;
    int64_t size;  /* of the file */
    int64_t first; /* offset of the window */
    size_t n;      /* bytes in the window */
    unsigned char window[AK_BYTES_WINDOW];
};

void ak_bytes_open(struct ak_bytes *b, int fd, int64_t size);

/* The n bytes at `at`, valid until the next call. NULL: the file ends before, `at` is negative, or
 * n is larger than AK_BYTES_MAX. */
const unsigned char *ak_bytes_at(struct ak_bytes *b, int64_t at, size_t n);

/* Whether the file has these n bytes at `at`. */
bool ak_bytes_are(struct ak_bytes *b, int64_t at, const void *expected, size_t n);

/* Offset of the first occurrence of these n bytes (at least 1) at or after `at`. −1: none. */
int64_t ak_bytes_find(struct ak_bytes *b, int64_t at, const void *wanted, size_t n);

/* Offset of the first byte at or after `at` that is one of the n of `set`. −1: none. */
int64_t ak_bytes_find_any(struct ak_bytes *b, int64_t at, const char *set, size_t n);

/* An unsigned number of n bytes, at most 8. */
uint64_t ak_bytes_big(const unsigned char *from, size_t n);
uint64_t ak_bytes_little(const unsigned char *from, size_t n);
void ak_bytes_put(unsigned char *to, size_t n, uint64_t value, bool big);

#endif
