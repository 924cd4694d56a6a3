/* SHA-256 (FIPS 180-4), a piece at a time. */
#ifndef AK_BASE_SHA256_H
#define AK_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { AK_SHA256_BYTES = 32, AK_SHA256_HEX_BYTES = 65 };

struct ak_sha256 {
    uint32_t state[8];
    uint64_t n_bytes;
    uint8_t block[64];
};

void ak_sha256_begin(struct ak_sha256 *h);
void ak_sha256_add(struct ak_sha256 *h, const void *data, size_t bytes);
void ak_sha256_end(struct ak_sha256 *h, uint8_t digest[AK_SHA256_BYTES]);

/* The digest as lower-case hexadecimal digits and a NUL. */
void ak_sha256_end_hex(struct ak_sha256 *h, char hex[AK_SHA256_HEX_BYTES]);

#endif
