/* Two hashes. ak_hash128 is fast and detects accidental changes, but not forged ones; used by
 * files/weights/, engine/persist/, text/toolcall/, conversion/compress/ and opencl/. SHA-256
 * resists forgery. engine/pack/ and engine/persist/ make cache keys with it, conversion/convert/
 * identifies models that are quantized at load, engine/session/ uses it in the name of a measured
 * chip profile, files/store/ checks headers with it, engine/generate/ chains tokens, and api/
 * hashes tensors and files. */
#ifndef AK_BASE_HASH_H
#define AK_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Adds data to the running hash in `state`, which starts as any two numbers. The division into
 * calls matters: "ab", "c" differs from "a", "bc". */
void ak_hash128(const void *data, size_t bytes, uint64_t state[2]);

/* ---- SHA-256 ------------------------------------------------------------ */
enum { AK_SHA256_BYTES = 32, AK_SHA256_HEX_BYTES = 65 };

/* SHA-256 (FIPS 180-4), fed in pieces of any size. */
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
