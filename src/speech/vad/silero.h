/* Silero VAD, a small network that says how probable speech is in each 32 ms of a clip: a short
 * Fourier transform, four convolutions, an LSTM. Weights of versions 5 and 6 come from
 * whisper.cpp's GGML files (ggml-silero-v6.2.0.bin), little-endian without alignment:
 *
 *     magic      u32 0x67676d6c
 *     type       i32 bytes, the bytes: "silero-16k"
 *     version    3 × i32
 *     sizes      i32 window 512, i32 context 64, i32 convolutions 4; of each i32 channels read,
 *                i32 channels written, i32 kernel 3; i32 LSTM input 128, i32 hidden 128,
 *                i32 final input 128, i32 final output 1
 *     tensors    to the end of the file, each: i32 dimensions, i32 bytes of the name, i32 type
 *                (0: F32, 1: F16), the dimensions as i32 (the contiguous one first), the name,
 *                the data
 *
 * https://github.com/ggml-org/whisper.cpp/blob/master/models/convert-silero-vad-to-ggml.py
 *
 * The same bits on every machine: products and sums are rounded one by one, in one order.
 *
 *     file.c     the reader: checks, and the layout that the products read
 *     silero.c   the network */
#ifndef AK_SPEECH_VAD_SILERO_H
#define AK_SPEECH_VAD_SILERO_H

#include "base/error.h"

enum {
    AK_SILERO_WINDOW = 512, /* samples of a step */
    AK_SILERO_CONTEXT = 64, /* samples of the step before that it sees */
    AK_SILERO_FOURIER = 256,
    AK_SILERO_BINS = AK_SILERO_FOURIER / 2 + 1,
    AK_SILERO_WIDTH = 128, /* of the LSTM, its input, and the widest convolutions */
    AK_SILERO_ROWS = 8     /* of a block */
};

/* Matrices are [rows / 8][inputs][8], zeros after the last row; convolutions have [tap][channel]
 * as inputs, without the taps that would meet padding alone. Convolution biases follow PyTorch's
 * order, as do the LSTM's gates: input, forget, cell, output. */
struct ak_silero {
    float fourier[264 * AK_SILERO_FOURIER]; /* 129 rows of cosines, 129 of sines */
    float conv0[128 * 3 * AK_SILERO_BINS], bias0[128];
    float conv1[64 * 3 * 128], bias1[64];
    float conv2[64 * 2 * 64], bias2[64];                    /* taps 1 and 2 */
    float conv3[128 * 64], bias3[128];                      /* tap 1 */
    float gates[4 * AK_SILERO_WIDTH * 2 * AK_SILERO_WIDTH]; /* inputs: features, hidden state */
    float gates_bias[4 * AK_SILERO_WIDTH];
    float output[AK_SILERO_WIDTH], output_bias;
};

/* AKUNU_ERROR_FORMAT: not such a file, damaged, or of other sizes. The caller frees *out with
 * ak_free. */
ak_status ak_silero_open(const char *path, struct ak_silero **out, struct ak_error *error);

/* What a clip's samples so far leave behind; begin with zeros. */
struct ak_silero_state {
    float context[AK_SILERO_CONTEXT];
    float hidden[AK_SILERO_WIDTH], cell[AK_SILERO_WIDTH];
};

/* Probability of speech in the next AK_SILERO_WINDOW samples, of 16,000 a second. */
float ak_silero_step(const struct ak_silero *silero, struct ak_silero_state *state,
                     const float *samples);

#endif
