/* Dequantizes one type of weights. The host defines one TYPE_… (opencl/layout.h has the layout).
 * Tiles have 16 rows × 256 k, or the rest of a row: `nb` blocks of 32 k. `at` = 16 · block + row.
 *
 * Part p (0 … 3) of a block is elements 4p … 4p+3 and 16+4p … 16+4p+3, four of each half. A weight
 * is scale · number + offset, or scale · value of the number. The halves may have different scales:
 * .x and .y. */

float bf16(ushort bits)
{
    return as_float((uint)bits << 16);
}

/* Element i of a plane of halves: d of 16 rows, or of the 16 rows of a block. */
float half_at(global const uchar *plane, uint i)
{
    return vload_half(i, (global const half *)plane);
}

/* Moves bits 0 … 3 of x to bytes 0 … 3; below, pairs of bits. */
uint deposit_bits1(uint x)
{
    return (x & 15u) * 0x00204081u & 0x01010101u;
}

uint deposit_bits2(uint x)
{
    return (x & 3u) | (x & 12u) << 6 | (x & 48u) << 12 | (x & 192u) << 18;
}

/* ---- Numbers: LOW bits in one plane, HIGH bits in a second one ---------- */
#if defined TYPE_Q4_0 || defined TYPE_Q4_1 || defined TYPE_Q4_K || defined TYPE_IQ4_NL ||          \
    defined TYPE_IQ4_XS || defined TYPE_MXFP4 || defined TYPE_A4
#define LOW 4
#define HIGH 0
#elif defined TYPE_Q5_0 || defined TYPE_Q5_1 || defined TYPE_Q5_K || defined TYPE_A5
#define LOW 4
#define HIGH 1
#elif defined TYPE_Q6_K
#define LOW 4
#define HIGH 2
#elif defined TYPE_Q8_0 || defined TYPE_A8 || defined TYPE_F8
#define LOW 8
#define HIGH 0
#elif defined TYPE_Q2_K
#define LOW 2
#define HIGH 0
#elif defined TYPE_Q3_K
#define LOW 2
#define HIGH 1
#endif

#ifdef LOW
#define LOW_BYTES (16 * 4 * LOW) /* of a block of 16 rows */
#define HIGH_BYTES (16 * 4 * HIGH)
#define SCALES(tile, nb) ((tile) + (nb) * (LOW_BYTES + HIGH_BYTES)) /* after the numbers */

/* The numbers of part p, a byte each. */
void numbers(global const uchar *tile, uint nb, uint at, uint p, uint *lo, uint *hi)
{
#if LOW == 8
    *lo = ((global const uint *)tile)[at * 8 + p];
    *hi = ((global const uint *)tile)[at * 8 + 4 + p];
#elif LOW == 4
    uint q = ((global const uint *)tile)[at * 4 + p];
    *lo = q & 0x0f0f0f0fu;
    *hi = q >> 4 & 0x0f0f0f0fu;
#else
    *lo = deposit_bits2(((global const uint *)tile)[at * 2] >> 8 * p);
    *hi = deposit_bits2(((global const uint *)tile)[at * 2 + 1] >> 8 * p);
#endif
#if HIGH == 1
    uint bits = ((global const uint *)(tile + nb * LOW_BYTES))[at];
    *lo |= deposit_bits1(bits >> 4 * p) << LOW;
    *hi |= deposit_bits1(bits >> (16 + 4 * p)) << LOW;
#elif HIGH == 2
    global const uint *pairs = (global const uint *)(tile + nb * LOW_BYTES);
    *lo |= deposit_bits2(pairs[at * 2] >> 8 * p) << LOW;
    *hi |= deposit_bits2(pairs[at * 2 + 1] >> 8 * p) << LOW;
#endif
}

/* The same for all four parts, with wide loads. */
void all_numbers(global const uchar *tile, uint nb, uint at, uint lo[4], uint hi[4])
{
#if LOW == 8
    uint4 a = ((global const uint4 *)tile)[at * 2], b = ((global const uint4 *)tile)[at * 2 + 1];
    lo[0] = a.s0;
    lo[1] = a.s1;
    lo[2] = a.s2;
    lo[3] = a.s3;
    hi[0] = b.s0;
    hi[1] = b.s1;
    hi[2] = b.s2;
    hi[3] = b.s3;
#elif LOW == 4
    uint4 q = ((global const uint4 *)tile)[at], a = q & 0x0f0f0f0fu, b = q >> 4 & 0x0f0f0f0fu;
    lo[0] = a.s0;
    lo[1] = a.s1;
    lo[2] = a.s2;
    lo[3] = a.s3;
    hi[0] = b.s0;
    hi[1] = b.s1;
    hi[2] = b.s2;
    hi[3] = b.s3;
#else
    uint2 q = ((global const uint2 *)tile)[at];
    for (uint p = 0; p < 4; p++) {
        lo[p] = deposit_bits2(q.x >> 8 * p);
        hi[p] = deposit_bits2(q.y >> 8 * p);
    }
#endif
#if HIGH == 1
    uint bits = ((global const uint *)(tile + nb * LOW_BYTES))[at];
    for (uint p = 0; p < 4; p++) {
        lo[p] |= deposit_bits1(bits >> 4 * p) << LOW;
        hi[p] |= deposit_bits1(bits >> (16 + 4 * p)) << LOW;
    }
#elif HIGH == 2
    uint2 pairs = ((global const uint2 *)(tile + nb * LOW_BYTES))[at];
    for (uint p = 0; p < 4; p++) {
        lo[p] |= deposit_bits2(pairs.x >> 8 * p) << LOW;
        hi[p] |= deposit_bits2(pairs.y >> 8 * p) << LOW;
    }
#endif
}
#endif

/* ---- Scales ------------------------------------------------------------- */
#if defined TYPE_Q4_K || defined TYPE_Q5_K
/* Six bits each: block b < 4 in bytes b and b + 4; others in a nibble of byte b + 4 and the upper
 * bits of byte b − 4. */
void scales(global const uchar *tile, uint nb, uint b, uint r, float2 *d, float2 *m)
{
    global const uchar *at = SCALES(tile, nb);
    float base = half_at(at, r), base_min = half_at(at + 32, r);
    global const uint *words = (global const uint *)(at + 64);
    uint low = words[r], mid = words[16 + r], high = words[32 + r], shift = 8 * (b & 3);
    low >>= shift;
    mid >>= shift;
    high >>= shift;
    uint scale = b < 4 ? low & 63 : (high & 15) | (low >> 6 & 3) << 4;
    uint min = b < 4 ? mid & 63 : (high >> 4 & 15) | (mid >> 6 & 3) << 4;
    *d = base * (float)scale;
    *m = -base_min * (float)min;
}
#elif defined TYPE_Q6_K
void scales(global const uchar *tile, uint nb, uint b, uint r, float2 *d, float2 *m)
{
    global const uchar *at = SCALES(tile, nb);
    char2 s = ((global const char2 *)(at + 32))[b * 16 + r];
    *d = half_at(at, r) * convert_float2(s);
    *m = -32.0f * *d;
}
#elif defined TYPE_Q3_K
/* Low four bits of scale i in the nibbles of bytes 0 … 7, all lower nibbles first; upper two bits
 * in bytes 8 … 11. */
void scales(global const uchar *tile, uint nb, uint b, uint r, float2 *d, float2 *m)
{
    global const uchar *at = SCALES(tile, nb);
    global const uint *words = (global const uint *)(at + 32);
    uint i = 2 * b;
    uint low = words[(i >> 2 & 1) * 16 + r] >> (8 * (i & 3) + (i < 8 ? 0 : 4)),
         high = words[32 + r] >> (8 * (i & 3) + 2 * (i >> 2));
    uint2 s = (uint2)((low & 15) | (high & 3) << 4, (low >> 8 & 15) | (high >> 8 & 3) << 4);
    *d = half_at(at, r) * (convert_float2(s) - 32.0f);
    *m = -4.0f * *d;
}
#elif defined TYPE_Q2_K
void scales(global const uchar *tile, uint nb, uint b, uint r, float2 *d, float2 *m)
{
    global const uchar *at = SCALES(tile, nb);
    uchar2 s = ((global const uchar2 *)(at + 64))[b * 16 + r];
    *d = half_at(at, r) * convert_float2(s & (uchar2)15);
    *m = -half_at(at + 32, r) * convert_float2(s >> (uchar2)4);
}
#elif defined TYPE_IQ4_XS
void scales(global const uchar *tile, uint nb, uint b, uint r, float2 *d, float2 *m)
{
    global const uchar *at = SCALES(tile, nb);
    uint high = ((global const ushort *)(at + 32))[r], low = ((global const uint *)(at + 64))[r];
    uint scale = (low >> 4 * b & 15) | (high >> 2 * b & 3) << 4;
    *d = half_at(at, r) * ((float)scale - 32.0f);
    *m = 0.0f;
}
#elif defined TYPE_Q4_0 || defined TYPE_Q5_0 || defined TYPE_Q8_0 || defined TYPE_IQ4_NL
void scales(global const uchar *tile, uint nb, uint b, uint r, float2 *d, float2 *m)
{
    *d = half_at(SCALES(tile, nb), b * 16 + r);
#if defined TYPE_IQ4_NL
    *m = 0.0f;
#elif defined TYPE_Q4_0
    *m = -8.0f * *d;
#elif defined TYPE_Q5_0
    *m = -16.0f * *d;
#else
    *m = -128.0f * *d;
#endif
}
#elif defined TYPE_Q4_1 || defined TYPE_Q5_1
void scales(global const uchar *tile, uint nb, uint b, uint r, float2 *d, float2 *m)
{
    *d = half_at(SCALES(tile, nb), b * 16 + r);
    *m = half_at(SCALES(tile, nb) + nb * 32, b * 16 + r);
}
#elif defined TYPE_A4 || defined TYPE_A5
void scales(global const uchar *tile, uint nb, uint b, uint r, float2 *d, float2 *m)
{
    global const ushort *at = (global const ushort *)SCALES(tile, nb);
    *d = bf16(at[b * 16 + r]);
    *m = bf16(at[(nb + b) * 16 + r]);
}
#elif defined TYPE_A8
void scales(global const uchar *tile, uint nb, uint b, uint r, float2 *d, float2 *m)
{
    global const float *at = (global const float *)SCALES(tile, nb);
    float scale = at[b * 16 + r];
    *d = scale;
    *m = at[(nb + b) * 16 + r] - 128.0f * scale;
}
#elif defined TYPE_F8
/* One scale per 128 k. */
void scales(global const uchar *tile, uint nb, uint b, uint r, float2 *d, float2 *m)
{
    *d = ((global const float *)SCALES(tile, nb))[b / 4 * 16 + r];
    *m = 0.0f;
}
#elif defined TYPE_MXFP4
/* Half of 2^(e − 127), since the values are doubled. */
void scales(global const uchar *tile, uint nb, uint b, uint r, float2 *d, float2 *m)
{
    uint e = SCALES(tile, nb)[b * 16 + r];
    *d = e < 2 ? as_float(0x00200000u << e) : as_float(e - 1 << 23);
    *m = 0.0f;
}
#endif

/* ---- Values ------------------------------------------------------------- */
#if defined TYPE_IQ4_NL || defined TYPE_IQ4_XS
#define TABLE_0 0xbfad9881u /* −127 −104 −83 −65 */
#define TABLE_1 0xf6eaddcfu /* −49 −35 −22 −10 */
#define TABLE_2 0x26190d01u /* 1 13 25 38 */
#define TABLE_3 0x71594535u /* 53 69 89 113 */
#elif defined TYPE_MXFP4
#define TABLE_0 0x03020100u /* 0 1 2 3 */
#define TABLE_1 0x0c080604u /* 4 6 8 12 */
#define TABLE_2 0xfdfeff00u /* 0 −1 −2 −3 */
#define TABLE_3 0xf4f8fafcu /* −4 −6 −8 −12 */
#endif

#ifdef TABLE_0
/* In registers, since lanes take turns at reading a table in memory. */
float value(uint q)
{
    uint word = q & 8 ? (q & 4 ? TABLE_3 : TABLE_2) : (q & 4 ? TABLE_1 : TABLE_0);
    return (float)(char)(word >> 8 * (q & 3));
}

float4 dequantize4(uint bytes, float d, float m)
{
    return d * (float4)(value(bytes & 15), value(bytes >> 8 & 15), value(bytes >> 16 & 15),
                        value(bytes >> 24));
}
#elif defined TYPE_F8
/* Builds floats from the bits of F8: a float's exponent bias is 112 larger than a half's.
 * Subnormals take an exponent of 2^-14, which is then subtracted. */
float4 dequantize4(uint bytes, float d, float m)
{
    uint4 q = convert_uint4(as_uchar4(bytes)), bits = (q & 127u) << 20u;
    float4 normal = as_float4(bits + (112u << 23)),
           small = as_float4(bits + (113u << 23)) - 0x1p-14f;
    return d * as_float4(as_uint4(select(small, normal, bits >= (1u << 23))) | (q & 128u) << 24u);
}
#elif defined LOW
float4 dequantize4(uint bytes, float d, float m)
{
    return fma(convert_float4(as_uchar4(bytes)), (float4)d, (float4)m);
}
#endif

#ifndef LOW
/* Elements k … k + 3 of a token. Weight rows are padded with zeros; elements past the token's n may
 * be anything. */
float4 token_values(global const float *x, uint k, uint n)
{
    return select((float4)0.0f, vload4(0, x + k), k + (uint4)(0, 1, 2, 3) < n);
}
#endif

#if defined TYPE_F16
float4 row_values(global const uchar *weights, ulong i)
{
    return vload_half4(0, (global const half *)weights + i);
}
#elif defined TYPE_BF16
float4 row_values(global const uchar *weights, ulong i)
{
    return as_float4(convert_uint4(vload4(0, (global const ushort *)weights + i)) << 16u);
}
#elif defined TYPE_F32
float4 row_values(global const uchar *weights, ulong i)
{
    return vload4(0, (global const float *)weights + i);
}
#endif
