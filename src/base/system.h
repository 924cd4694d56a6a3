/* What the kernel tells: the time, and small text files under /proc and /sys. */
#ifndef AK_BASE_SYSTEM_H
#define AK_BASE_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>

/* The time in seconds since some moment, by a clock that is never set. */
double ak_seconds(void);

/* Reads the beginning of the file at `path`, up to `capacity` − 1 bytes, as a string.
 * False, and "" in `text`, where there is nothing to read. */
bool ak_system_read(const char *path, char *text, size_t capacity);

/* Takes the first range off a list of CPUs such as "0-7,64-71": [*first, *last].
 * False where there is none. */
bool ak_system_parse_range(const char **list, unsigned long *first, unsigned long *last);

#endif
