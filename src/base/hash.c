/* A 128-bit hash of four multiply-rotate lanes, and SHA-256. */
#include "base/hash.h"

#include <string.h>

/* ---- Fast hash ---------------------------------------------------------- */
enum { LANES = 4, STEP = LANES * 8 };

/* Odd numbers without a pattern: fractional parts of square roots of primes. */
static const uint64_t factors[LANES] = { UINT64_C(0x6a09e667f3bcc909), UINT64_C(0xbb67ae8584caa73b),
                                         UINT64_C(0x3c6ef372fe94f82b),
                                         UINT64_C(0xa54ff53a5f1d36f1) };

static uint64_t rotate_left64(uint64_t x, int n)
{
    return x << n | x >> (64 - n);
}

static uint64_t mix_bits(uint64_t x)
{
    x = (x ^ x >> 32) * factors[0];
    x = (x ^ x >> 29) * factors[1];
    return x ^ x >> 32;
}

static void mix(uint64_t lanes[LANES], const uint8_t *block)
{
    for (int i = 0; i < LANES; i++) {
        uint64_t word;
        memcpy(&word, block + 8 * i, 8);
        lanes[i] = rotate_left64(lanes[i] ^ word * factors[3 - i], 31) * factors[i];
    }
}

void ak_hash128(const void *data, size_t bytes, uint64_t state[2])
{
    const uint8_t *p = data;
    uint8_t tail[STEP] = { 0 };
    uint64_t lanes[LANES] = { state[0], state[1], rotate_left64(state[0], 17) ^ bytes, ~state[1] };
    size_t left = bytes;
    for (; left >= STEP; left -= STEP, p += STEP)
        mix(lanes, p);
    if (left > 0)
        memcpy(tail, p, left);
    mix(lanes, tail);
    uint64_t a = lanes[0] ^ rotate_left64(lanes[1], 21), b = lanes[2] ^ rotate_left64(lanes[3], 43);
    state[0] = mix_bits(a + rotate_left64(b, 11));
    state[1] = mix_bits(b ^ mix_bits(a));
}

/* ---- SHA-256 ------------------------------------------------------------ */
/* The first 32 bits of the fractional parts of the cube roots of the first 64
 * primes (FIPS 180-4, 4.2.2). */
static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static inline uint32_t rotate_right32(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

static void schedule(uint32_t w[64], const uint8_t *block)
{
    for (int i = 0; i < 16; i++, block += 4)
        w[i] = (uint32_t)block[0] << 24 | (uint32_t)block[1] << 16 | (uint32_t)block[2] << 8 |
               block[3];
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        uint32_t s0 = rotate_right32(a, 7) ^ rotate_right32(a, 18) ^ a >> 3;
        uint32_t s1 = rotate_right32(b, 17) ^ rotate_right32(b, 19) ^ b >> 10;
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
}

/* FIPS 180-4, 6.2.2; the names are the standard's. */
static void compress(uint32_t state[8], const uint8_t *block)
{
    uint32_t w[64];
    schedule(w, block);
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (int i = 0; i < 64; i++) {
        uint32_t s1 = rotate_right32(e, 6) ^ rotate_right32(e, 11) ^ rotate_right32(e, 25);
        uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + constants[i] + w[i];
        uint32_t s0 = rotate_right32(a, 2) ^ rotate_right32(a, 13) ^ rotate_right32(a, 22);
        uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
        h = g, g = f, f = e, e = d + t1;
        d = c, c = b, b = a, a = t1 + t2;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
    state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

void ak_sha256_begin(struct ak_sha256 *h)
{
    static const uint32_t initial[8] = {
        0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
    };
    memset(h, 0, sizeof *h);
    memcpy(h->state, initial, sizeof initial);
}

void ak_sha256_add(struct ak_sha256 *h, const void *data, size_t bytes)
{
    const uint8_t *next = data;
    size_t held = h->n_bytes % 64;
    h->n_bytes += bytes;
    if (held) {
        size_t n = bytes < 64 - held ? bytes : 64 - held;
        memcpy(h->block + held, next, n);
        if (held + n < 64)
            return;
        compress(h->state, h->block);
        next += n;
        bytes -= n;
    }
    for (; bytes >= 64; bytes -= 64, next += 64)
        compress(h->state, next);
    if (bytes)
        memcpy(h->block, next, bytes);
}

void ak_sha256_end(struct ak_sha256 *h, uint8_t digest[AK_SHA256_BYTES])
{
    static const uint8_t padding[64] = { 0x80 };
    uint8_t length[8];
    uint64_t n_bits = h->n_bytes * 8;
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(n_bits >> (56 - 8 * i));
    size_t held = h->n_bytes % 64;
    ak_sha256_add(h, padding, held < 56 ? 56 - held : 120 - held);
    ak_sha256_add(h, length, sizeof length);
    for (int i = 0; i < AK_SHA256_BYTES; i++)
        digest[i] = (uint8_t)(h->state[i / 4] >> (24 - 8 * (i % 4)));
}

void ak_sha256_end_hex(struct ak_sha256 *h, char hex[AK_SHA256_HEX_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t digest[AK_SHA256_BYTES];
    ak_sha256_end(h, digest);
    for (int i = 0; i < AK_SHA256_BYTES; i++) {
        hex[2 * i] = digits[digest[i] >> 4];
        hex[2 * i + 1] = digits[digest[i] & 15];
    }
    hex[2 * AK_SHA256_BYTES] = '\0';
}
