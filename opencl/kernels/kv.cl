/* Keys and values of a page and head, by the types K_… and V_… that the host defines. For keys each
 * lane reads a token, for values an element, so these are contiguous:
 *
 *            keys                                    values
 *   floats   [head_dim][PAGE]                        [PAGE][head_dim]
 *   Q8_0     words of 4 elements [head_dim/4][PAGE]  bytes [PAGE][head_dim]
 *   Q4_0     words of 8 elements [head_dim/8][PAGE]  bytes of 2 elements [PAGE][head_dim/2]
 *
 * Scales follow quantized elements: a half per 32 elements of a token, [head_dim/32][PAGE] and
 * [PAGE][head_dim/32]. Keys are quantized after a Hadamard transform and minus the first key of
 * their page, which follows the scales as floats: otherwise a few large elements, nearly the same
 * in neighboring tokens, would cost the others precision. */

/* ---- Floats ------------------------------------------------------------- */
#define F16_READ(from, i) vload_half(i, (global const half *)(from))
#define F16_WRITE(x, to, i) vstore_half_rte(x, i, (global half *)(to))
#define F32_READ(from, i) ((global const float *)(from))[i]
#define F32_WRITE(x, to, i) ((global float *)(to))[i] = (x)
#define BF16_READ(from, i) as_float((uint)((global const ushort *)(from))[i] << 16)
#define BF16_WRITE(x, to, i) ((global ushort *)(to))[i] = bf16_of(x)

/* Rounds to nearest even; NaN stays NaN. */
ushort bf16_of(float x)
{
    uint bits = as_uint(x);
    return isnan(x) ? bits >> 16 | 64 : (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
}

/* ---- Blocks of 32 ------------------------------------------------------- */
/* The element of largest magnitude. */
float extreme_of(local const float *x)
{
    float extreme = 0.0f;
    for (uint i = 0; i < 32; i++)
        extreme = fabs(x[i]) > fabs(extreme) ? x[i] : extreme;
    return extreme;
}

float inverse_of(float x)
{
    return x == 0.0f ? 0.0f : 1.0f / x;
}

/* Quantizes x to `bits` bits; `inverse` is 1 / scale. 4 bits: 8 stands for zero. */
uint quantize_number(float x, float inverse, uint bits)
{
    return bits == 8 ? (uint)(int)clamp(round(x * inverse), -127.0f, 127.0f) & 255 :
                       (uint)clamp(x * inverse + 8.5f, 0.0f, 15.0f);
}

float scale_of(local const float *x, uint bits)
{
    float extreme = extreme_of(x);
    return bits == 8 ? fabs(extreme) / 127.0f : extreme / -8.0f;
}

/* Number i of a word of `bits`-bit numbers. */
float read_quantized(uint word, uint i, uint bits)
{
    word >>= i * bits;
    return bits == 8 ? (float)(char)word : (float)(word & 15) - 8.0f;
}

/* ---- Keys --------------------------------------------------------------- */
#if defined K_Q8_0 || defined K_Q4_0
#define K_QUANTIZED
#ifdef K_Q8_0
enum { KEY_BITS = 8, KEYS_OF_WORD = 32 / KEY_BITS };
#else
enum { KEY_BITS = 4, KEYS_OF_WORD = 32 / KEY_BITS };
#endif

uint key_scales(uint n)
{
    return PAGE * n * KEY_BITS / 8;
}

uint first_key(uint n)
{
    return key_scales(n) + PAGE * n / 32 * 2;
}

/* Scale of the 32 elements from d on of a token. */
float key_scale(global const uchar *keys, uint n, uint d, uint token)
{
    return F16_READ(keys + key_scales(n), d / 32 * PAGE + token);
}

float key_at(global const uchar *keys, uint n, uint d, uint token, float scale)
{
    uint word = ((global const uint *)keys)[d / KEYS_OF_WORD * PAGE + token];
    return fma(scale, read_quantized(word, d % KEYS_OF_WORD, KEY_BITS),
               F32_READ(keys + first_key(n), d));
}

/* Each lane quantizes a block. */
void put_key(local const float *key, uint n, uint lane, global uchar *keys, uint token)
{
    for (uint b = lane; b < n / 32; b += GROUP) {
        float scale = scale_of(key + b * 32, KEY_BITS), inverse = inverse_of(scale);
        F16_WRITE(scale, keys + key_scales(n), b * PAGE + token);
        for (uint d = b * 32; d < b * 32 + 32; d += KEYS_OF_WORD) {
            uint word = 0;
            for (uint i = 0; i < KEYS_OF_WORD; i++)
                word |= quantize_number(key[d + i], inverse, KEY_BITS) << i * KEY_BITS;
            ((global uint *)keys)[d / KEYS_OF_WORD * PAGE + token] = word;
        }
    }
}
#else
#if defined K_F16
#define K_READ F16_READ
#define K_WRITE F16_WRITE
#elif defined K_BF16
#define K_READ BF16_READ
#define K_WRITE BF16_WRITE
#else
#define K_READ F32_READ
#define K_WRITE F32_WRITE
#endif

float key_scale(global const uchar *keys, uint n, uint d, uint token)
{
    return 1.0f;
}

float key_at(global const uchar *keys, uint n, uint d, uint token, float scale)
{
    return K_READ(keys, d * PAGE + token);
}

void put_key(local const float *key, uint n, uint lane, global uchar *keys, uint token)
{
    for (uint d = lane; d < n; d += GROUP)
        K_WRITE(key[d], keys, d * PAGE + token);
}
#endif

/* ---- Values ------------------------------------------------------------- */
#if defined V_Q8_0 || defined V_Q4_0
#ifdef V_Q8_0
enum { VALUE_BITS = 8 };
#else
enum { VALUE_BITS = 4 };
#endif
enum { VALUES_OF_BYTE = 8 / VALUE_BITS };

float value_at(global const uchar *values, uint n, uint token, uint i)
{
    float scale = F16_READ(values + PAGE * n / VALUES_OF_BYTE, token * n / 32 + i / 32);
    return scale *
           read_quantized(values[(token * n + i) / VALUES_OF_BYTE], i % VALUES_OF_BYTE, VALUE_BITS);
}

void put_value(local const float *value, uint n, uint lane, global uchar *values, uint token)
{
    for (uint b = lane; b < n / 32; b += GROUP) {
        float scale = scale_of(value + b * 32, VALUE_BITS), inverse = inverse_of(scale);
        F16_WRITE(scale, values + PAGE * n / VALUES_OF_BYTE, token * n / 32 + b);
        for (uint d = b * 32; d < b * 32 + 32; d += VALUES_OF_BYTE) {
            uint byte = 0;
            for (uint i = 0; i < VALUES_OF_BYTE; i++)
                byte |= quantize_number(value[d + i], inverse, VALUE_BITS) << i * VALUE_BITS;
            values[(token * n + d) / VALUES_OF_BYTE] = byte;
        }
    }
}
#else
#if defined V_F16
#define V_READ F16_READ
#define V_WRITE F16_WRITE
#elif defined V_BF16
#define V_READ BF16_READ
#define V_WRITE BF16_WRITE
#else
#define V_READ F32_READ
#define V_WRITE F32_WRITE
#endif

float value_at(global const uchar *values, uint n, uint token, uint i)
{
    return V_READ(values, token * n + i);
}

void put_value(local const float *value, uint n, uint lane, global uchar *values, uint token)
{
    for (uint i = lane; i < n; i += GROUP)
        V_WRITE(value[i], values, token * n + i);
}
#endif
