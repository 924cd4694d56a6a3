/* How long the header of a GGUF file is, from its first bytes alone: lengths are followed, nothing
 * is interpreted. */
#ifndef AK_APPS_COMMON_PULL_GGUF_HEADER_H
#define AK_APPS_COMMON_PULL_GGUF_HEADER_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of header, metadata and tensor list, given the first `n` bytes of the file. More than n:
 * at least that many are needed to tell. 0: it is no GGUF file of version 2 or 3. */
uint64_t app_gguf_header_size(const unsigned char *bytes, size_t n);

#endif
