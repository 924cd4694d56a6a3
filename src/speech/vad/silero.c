/* The network. A step sees 576 samples, of which four frames are transformed; strides leave one
 * frame for the LSTM:
 *
 *     64 + 512 samples, 64 mirrored  →  4 × 129 magnitudes  →  4 × 128  →  2 × 64  →  1 × 64
 *     →  1 × 128 features  →  LSTM  →  1 probability
 *
 * Frames of a convolution's input lie one after another, so its taps are one row of inputs. */
#include "speech/vad/silero.h"

#include <math.h>
#include <string.h>

#include "base/math.h"

enum {
    FRAMES = 4,
    HOP = 128, /* samples between frames */
    ROWS = AK_SILERO_ROWS,
    PADDED = AK_SILERO_CONTEXT + AK_SILERO_WINDOW + 64,
    FOURIER_ROWS = 264,
    WIDTH = AK_SILERO_WIDTH
};

/* Four floats that are added and multiplied at once, at any address of a float. */
typedef float lanes __attribute__((vector_size(16), aligned(4), may_alias));

/* BLOCKS blocks of rows times COLUMNS vectors of n inputs, `stride` apart: out[column][row], of
 * which columns are `out_stride` apart. Both are constants for the compiler; with BLOCKS · COLUMNS
 * of 4 the sums fill half of the 16 registers. Each is from the first input to the last. */
static inline __attribute__((always_inline)) void multiply(const float *restrict w, size_t n,
                                                           const float *restrict x, size_t stride,
                                                           float *restrict out, size_t out_stride,
                                                           const int blocks, const int columns)
{
    lanes sums[4][2] = { { { 0 } } };
    for (size_t i = 0; i < n; i++)
        for (int b = 0; b < blocks; b++) {
            const lanes *row = (const lanes *)(w + ((size_t)b * n + i) * ROWS);
            for (int c = 0; c < columns; c++) {
                sums[b * columns + c][0] += row[0] * x[(size_t)c * stride + i];
                sums[b * columns + c][1] += row[1] * x[(size_t)c * stride + i];
            }
        }
    for (int b = 0; b < blocks; b++)
        for (int c = 0; c < columns; c++)
            memcpy(out + (size_t)c * out_stride + (size_t)b * ROWS, sums[b * columns + c],
                   ROWS * sizeof *out);
}

/* A matrix of `rows` rows times four vectors, two or one. */
static void multiply_4(const float *w, size_t rows, size_t n, const float *x, size_t stride,
                       float *out, size_t out_stride)
{
    for (size_t r = 0; r < rows; r += ROWS)
        multiply(w + r * n, n, x, stride, out + r, out_stride, 1, 4);
}

static void multiply_2(const float *w, size_t rows, size_t n, const float *x, size_t stride,
                       float *out, size_t out_stride)
{
    for (size_t r = 0; r < rows; r += 2 * ROWS)
        multiply(w + r * n, n, x, stride, out + r, out_stride, 2, 2);
}

static void multiply_1(const float *w, size_t rows, size_t n, const float *x, float *out)
{
    for (size_t r = 0; r < rows; r += 4 * ROWS)
        multiply(w + r * n, n, x, 0, out + r, 0, 4, 1);
}

/* max(x + bias, 0), for each of n_frames. */
static void add_and_clip(float *x, const float *bias, size_t n, size_t n_frames)
{
    for (size_t f = 0; f < n_frames; f++)
        for (size_t i = 0; i < n; i++) {
            float y = x[f * n + i] + bias[i];
            x[f * n + i] = y > 0.0f ? y : 0.0f;
        }
}

/* Magnitudes, [FRAMES][AK_SILERO_BINS]. */
static void transform(const struct ak_silero *s, const float *padded, float *out)
{
    float parts[FRAMES][FOURIER_ROWS];
    multiply_4(s->fourier, FOURIER_ROWS, AK_SILERO_FOURIER, padded, HOP, parts[0], FOURIER_ROWS);
    for (int f = 0; f < FRAMES; f++)
        for (int i = 0; i < AK_SILERO_BINS; i++) {
            float real = parts[f][i], imaginary = parts[f][AK_SILERO_BINS + i];
            out[f * AK_SILERO_BINS + i] = sqrtf(real * real + imaginary * imaginary);
        }
}

/* Features, [WIDTH]. */
static void run_encoder(const struct ak_silero *s, const float *padded, float *out)
{
    /* a frame of zeros before, and one after where a tap reads it */
    float magnitudes[(1 + FRAMES + 1) * AK_SILERO_BINS] = { 0 };
    float first[(1 + FRAMES) * 128] = { 0 }, second[2 * 64], third[64];
    transform(s, padded, magnitudes + AK_SILERO_BINS);
    multiply_4(s->conv0, 128, 3 * AK_SILERO_BINS, magnitudes, AK_SILERO_BINS, first + 128, 128);
    add_and_clip(first + 128, s->bias0, 128, FRAMES);
    multiply_2(s->conv1, 64, 3 * 128, first, 2 * 128, second, 64);
    add_and_clip(second, s->bias1, 64, 2);
    multiply_1(s->conv2, 64, 2 * 64, second, third);
    add_and_clip(third, s->bias2, 64, 1);
    multiply_1(s->conv3, 128, 64, third, out);
    add_and_clip(out, s->bias3, 128, 1);
}

static inline float sigmoid(float x)
{
    float e = ak_expf_unfused(-fabsf(x));
    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

static inline float hyperbolic_tangent(float x)
{
    float e = ak_expf_unfused(-2.0f * fabsf(x));
    return copysignf((1.0f - e) / (1.0f + e), x);
}

static void remember(const struct ak_silero *s, struct ak_silero_state *state,
                     const float *features)
{
    float inputs[2 * WIDTH], gates[4 * WIDTH];
    memcpy(inputs, features, WIDTH * sizeof *inputs);
    memcpy(inputs + WIDTH, state->hidden, WIDTH * sizeof *inputs);
    multiply_1(s->gates, 4 * WIDTH, 2 * WIDTH, inputs, gates);
    for (int i = 0; i < 4 * WIDTH; i++)
        gates[i] += s->gates_bias[i];
    for (int i = 0; i < WIDTH; i++) {
        float kept = sigmoid(gates[WIDTH + i]) * state->cell[i];
        float added = sigmoid(gates[i]) * hyperbolic_tangent(gates[2 * WIDTH + i]);
        state->cell[i] = kept + added;
        state->hidden[i] = sigmoid(gates[3 * WIDTH + i]) * hyperbolic_tangent(state->cell[i]);
    }
}

float ak_silero_step(const struct ak_silero *s, struct ak_silero_state *state, const float *samples)
{
    float padded[PADDED], features[WIDTH], sum = 0.0f;
    enum { SEEN = AK_SILERO_CONTEXT + AK_SILERO_WINDOW };
    memcpy(padded, state->context, sizeof state->context);
    memcpy(padded + AK_SILERO_CONTEXT, samples, AK_SILERO_WINDOW * sizeof *samples);
    for (int i = 0; i < PADDED - SEEN; i++)
        padded[SEEN + i] = padded[SEEN - 2 - i];
    memcpy(state->context, samples + AK_SILERO_WINDOW - AK_SILERO_CONTEXT, sizeof state->context);
    run_encoder(s, padded, features);
    remember(s, state, features);
    for (int i = 0; i < WIDTH; i++)
        sum += s->output[i] * (state->hidden[i] > 0.0f ? state->hidden[i] : 0.0f);
    return sigmoid(sum + s->output_bias);
}
