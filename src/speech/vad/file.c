/* Reader of Silero's GGML files. All sizes are fixed: a file of others is refused. */
#include "speech/vad/silero.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/half.h"
#include "base/mem.h"
#include "base/utf8.h"

enum { MAGIC = 0x67676d6c, DIMS_MAX = 4, NAME_MAX_BYTES = 256, TYPE_F32 = 0, TYPE_F16 = 1 };

/* Names, and shapes without dimensions of 1, the contiguous one last. */
enum tensor_id {
    FOURIER,
    CONV0,
    BIAS0,
    CONV1,
    BIAS1,
    CONV2,
    BIAS2,
    CONV3,
    BIAS3,
    GATES_INPUT,
    GATES_HIDDEN,
    GATES_INPUT_BIAS,
    GATES_HIDDEN_BIAS,
    OUTPUT,
    OUTPUT_BIAS,
    N_TENSORS
};

static const struct {
    const char *name;
    uint32_t shape[3]; /* 0: no further dimension */
} rules[N_TENSORS] = {
    [FOURIER] = { "_model.stft.forward_basis_buffer", { 258, 256 } },
    [CONV0] = { "_model.encoder.0.reparam_conv.weight", { 128, 129, 3 } },
    [BIAS0] = { "_model.encoder.0.reparam_conv.bias", { 128 } },
    [CONV1] = { "_model.encoder.1.reparam_conv.weight", { 64, 128, 3 } },
    [BIAS1] = { "_model.encoder.1.reparam_conv.bias", { 64 } },
    [CONV2] = { "_model.encoder.2.reparam_conv.weight", { 64, 64, 3 } },
    [BIAS2] = { "_model.encoder.2.reparam_conv.bias", { 64 } },
    [CONV3] = { "_model.encoder.3.reparam_conv.weight", { 128, 64, 3 } },
    [BIAS3] = { "_model.encoder.3.reparam_conv.bias", { 128 } },
    [GATES_INPUT] = { "_model.decoder.rnn.weight_ih", { 512, 128 } },
    [GATES_HIDDEN] = { "_model.decoder.rnn.weight_hh", { 512, 128 } },
    [GATES_INPUT_BIAS] = { "_model.decoder.rnn.bias_ih", { 512 } },
    [GATES_HIDDEN_BIAS] = { "_model.decoder.rnn.bias_hh", { 512 } },
    [OUTPUT] = { "_model.decoder.decoder.2.weight", { 128 } },
    [OUTPUT_BIAS] = { "_model.decoder.decoder.2.bias", { 0 } },
};

struct reader {
    struct ak_file file;
    struct ak_cursor cursor;
    float *tensors[N_TENSORS]; /* row-major */
};

/* ---- The header --------------------------------------------------------- */
static ak_status fail_end(const struct reader *r, const char *what, struct ak_error *error)
{
    return ak_fail(error, AKUNU_ERROR_FORMAT, "the end of the file (%llu bytes) is inside %s",
                   (unsigned long long)r->file.bytes, what);
}

static ak_status read_type(struct reader *r, struct ak_error *error)
{
    static const char expected[] = "silero-16k";
    char shown[AK_SHOW_BYTES];
    uint32_t magic, n;
    const uint8_t *type;
    if (!ak_cursor_read_u32(&r->cursor, &magic) || magic != MAGIC)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "not a GGML file of a Silero VAD model, which begins with \"lmgg\"");
    if (!ak_cursor_read_u32(&r->cursor, &n))
        return fail_end(r, "the header", error);
    /* Whisper's own files have the size of the vocabulary here */
    if (n > NAME_MAX_BYTES || !ak_cursor_read_bytes(&r->cursor, n, &type))
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "the name of the type has %d bytes; expected \"%s\", the type of a Silero "
                       "VAD model (a Whisper model goes to -m)",
                       (int32_t)n, expected);
    if (n != sizeof expected - 1 || memcmp(type, expected, n) != 0)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "the type is \"%s\"; expected \"%s\"",
                       ak_show(type, n, shown), expected);
    return AKUNU_OK;
}

static ak_status read_sizes(struct reader *r, struct ak_error *error)
{
    static const struct {
        const char *name;
        uint32_t value;
    } sizes[] = {
        { "window", AK_SILERO_WINDOW },
        { "context", AK_SILERO_CONTEXT },
        { "number of convolutions", 4 },
        { "input of convolution 0", AK_SILERO_BINS },
        { "output of convolution 0", 128 },
        { "kernel of convolution 0", 3 },
        { "input of convolution 1", 128 },
        { "output of convolution 1", 64 },
        { "kernel of convolution 1", 3 },
        { "input of convolution 2", 64 },
        { "output of convolution 2", 64 },
        { "kernel of convolution 2", 3 },
        { "input of convolution 3", 64 },
        { "output of convolution 3", 128 },
        { "kernel of convolution 3", 3 },
        { "input of the LSTM", AK_SILERO_WIDTH },
        { "state of the LSTM", AK_SILERO_WIDTH },
        { "input of the last convolution", AK_SILERO_WIDTH },
        { "output of the last convolution", 1 },
    };
    const uint8_t *version;
    uint32_t found;
    if (!ak_cursor_read_bytes(&r->cursor, 3 * sizeof found, &version))
        return fail_end(r, "the version", error);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (!ak_cursor_read_u32(&r->cursor, &found))
            return fail_end(r, "the sizes of the model", error);
        if (found != sizes[i].value)
            return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "the %s is %d; expected %u",
                           sizes[i].name, (int32_t)found, sizes[i].value);
    }
    return AKUNU_OK;
}

/* ---- Tensors ------------------------------------------------------------ */
static size_t n_elems(enum tensor_id id)
{
    size_t n = 1;
    for (int d = 0; d < 3 && rules[id].shape[d]; d++)
        n *= rules[id].shape[d];
    return n;
}

static bool find_rule(const char *name, size_t n, enum tensor_id *out)
{
    for (*out = 0; *out < N_TENSORS; ++*out)
        if (strlen(rules[*out].name) == n && memcmp(rules[*out].name, name, n) == 0)
            return true;
    return false;
}

/* "2 × 3"; of a scalar "1". The contiguous dimension is the first in the file. */
static const char *show_dims(const uint32_t *dims, uint32_t n, bool reversed,
                             char out[AK_SHOW_BYTES])
{
    size_t used = 0;
    snprintf(out, AK_SHOW_BYTES, "1");
    for (uint32_t d = 0; d < n && used < AK_SHOW_BYTES; d++)
        used += (size_t)snprintf(out + used, AK_SHOW_BYTES - used, "%s%d", d ? " × " : "",
                                 (int32_t)dims[reversed ? n - 1 - d : d]);
    return out;
}

static ak_status check_shape(enum tensor_id id, const uint32_t *dims, uint32_t n_dims,
                             struct ak_error *error)
{
    char found[AK_SHOW_BYTES], expected[AK_SHOW_BYTES];
    uint32_t squeezed[DIMS_MAX], n = 0, wanted = 0;
    for (uint32_t d = n_dims; d-- > 0;)
        if (dims[d] != 1)
            squeezed[n++] = dims[d];
    while (wanted < 3 && rules[id].shape[wanted])
        wanted++;
    if (n == wanted && memcmp(squeezed, rules[id].shape, n * sizeof *squeezed) == 0)
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_FORMAT, "tensor %s has the shape %s; expected %s",
                   rules[id].name, show_dims(dims, n_dims, true, found),
                   show_dims(rules[id].shape, wanted, false, expected));
}

/* Little-endian floats at any address. */
static float read_element(const uint8_t *data, size_t i, bool half)
{
    const uint8_t *p = data + i * (half ? 2 : 4);
    uint32_t low = (uint32_t)p[0] | (uint32_t)p[1] << 8;
    if (half)
        return ak_f16_to_float((uint16_t)low);
    return ak_bits_float(low | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
}

static ak_status read_data(struct reader *r, enum tensor_id id, bool half, struct ak_error *error)
{
    size_t n = n_elems(id);
    const uint8_t *data;
    if (!ak_cursor_read_bytes(&r->cursor, n * (half ? 2 : 4), &data))
        return fail_end(r, rules[id].name, error);
    float *out = ak_alloc(n, sizeof *out);
    if (!out)
        return ak_fail_memory(error, "a tensor", n * sizeof *out);
    r->tensors[id] = out;
    for (size_t i = 0; i < n; i++) {
        out[i] = read_element(data, i, half);
        if (!isfinite(out[i]))
            return ak_fail(error, AKUNU_ERROR_FORMAT,
                           "tensor %s: element %zu is not a finite number", rules[id].name, i);
    }
    return AKUNU_OK;
}

static ak_status read_vad_tensor(struct reader *r, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    uint32_t n_dims, n_name, type, dims[DIMS_MAX] = { 0 };
    const uint8_t *name;
    enum tensor_id id;
    if (!ak_cursor_read_u32(&r->cursor, &n_dims) || !ak_cursor_read_u32(&r->cursor, &n_name) ||
        !ak_cursor_read_u32(&r->cursor, &type))
        return fail_end(r, "the header of a tensor", error);
    if (n_dims > DIMS_MAX || n_name > NAME_MAX_BYTES)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "a tensor has %d dimensions and a name of %d bytes; expected at most %d "
                       "and %d",
                       (int32_t)n_dims, (int32_t)n_name, DIMS_MAX, NAME_MAX_BYTES);
    for (uint32_t d = 0; d < n_dims; d++)
        ak_cursor_read_u32(&r->cursor, &dims[d]);
    if (!ak_cursor_read_bytes(&r->cursor, n_name, &name))
        return fail_end(r, "the header of a tensor", error);
    ak_show(name, n_name, shown);
    if (!find_rule((const char *)name, n_name, &id))
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "tensor \"%s\": a Silero VAD model has none of that name", shown);
    if (r->tensors[id])
        return ak_fail(error, AKUNU_ERROR_FORMAT, "tensor %s is there twice", shown);
    if (type != TYPE_F32 && type != TYPE_F16)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "tensor %s has type %d; expected 0 (F32) or 1 (F16)", shown, (int32_t)type);
    AK_TRY(check_shape(id, dims, n_dims, error));
    return read_data(r, id, type == TYPE_F16, error);
}

static ak_status read_vad_file(struct reader *r, struct ak_error *error)
{
    AK_TRY(read_type(r, error));
    AK_TRY(read_sizes(r, error));
    while (ak_cursor_bytes_left(&r->cursor) > 0)
        AK_TRY(read_vad_tensor(r, error));
    for (int id = 0; id < N_TENSORS; id++)
        if (!r->tensors[id])
            return ak_fail(error, AKUNU_ERROR_FORMAT, "tensor %s is missing", rules[id].name);
    return AKUNU_OK;
}

/* ---- Packing ------------------------------------------------------------ */
/* Element of row `r` and input `i` in blocks of rows. */
static float *at(float *packed, size_t n, size_t r, size_t i)
{
    return packed + (r / AK_SILERO_ROWS * n + i) * AK_SILERO_ROWS + r % AK_SILERO_ROWS;
}

/* Inputs [first, first + n) of rows of `n_all` are those of a row-major matrix. */
static void pack_matrix(float *packed, size_t n_all, size_t first, const float *w, size_t rows,
                        size_t n)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < n; i++)
            *at(packed, n_all, r, first + i) = w[r * n + i];
}

/* [rows][channels][3] as rows of [taps from `first` on][channels]. */
static void pack_conv(float *packed, const float *w, size_t rows, size_t channels, size_t first,
                      size_t taps)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t t = 0; t < taps; t++)
            for (size_t c = 0; c < channels; c++)
                *at(packed, taps * channels, r, t * channels + c) =
                    w[(r * channels + c) * 3 + first + t];
}

static void pack(struct ak_silero *s, float *const *t)
{
    pack_matrix(s->fourier, AK_SILERO_FOURIER, 0, t[FOURIER], 258, AK_SILERO_FOURIER);
    pack_conv(s->conv0, t[CONV0], 128, AK_SILERO_BINS, 0, 3);
    pack_conv(s->conv1, t[CONV1], 64, 128, 0, 3);
    pack_conv(s->conv2, t[CONV2], 64, 64, 1, 2);
    pack_conv(s->conv3, t[CONV3], 128, 64, 1, 1);
    memcpy(s->bias0, t[BIAS0], sizeof s->bias0);
    memcpy(s->bias1, t[BIAS1], sizeof s->bias1);
    memcpy(s->bias2, t[BIAS2], sizeof s->bias2);
    memcpy(s->bias3, t[BIAS3], sizeof s->bias3);
    pack_matrix(s->gates, 2 * AK_SILERO_WIDTH, 0, t[GATES_INPUT], 512, AK_SILERO_WIDTH);
    pack_matrix(s->gates, 2 * AK_SILERO_WIDTH, AK_SILERO_WIDTH, t[GATES_HIDDEN], 512,
                AK_SILERO_WIDTH);
    for (size_t i = 0; i < 4 * AK_SILERO_WIDTH; i++)
        s->gates_bias[i] = t[GATES_INPUT_BIAS][i] + t[GATES_HIDDEN_BIAS][i];
    memcpy(s->output, t[OUTPUT], sizeof s->output);
    s->output_bias = t[OUTPUT_BIAS][0];
}

ak_status ak_silero_open(const char *path, struct ak_silero **out, struct ak_error *error)
{
    struct reader r = { .cursor = { 0 } };
    char shown[AK_SHOW_BYTES];
    *out = NULL;
    AK_TRY(ak_file_open(path, &r.file, error));
    r.cursor = ak_cursor_init(r.file.data, r.file.bytes);
    ak_status status = read_vad_file(&r, error);
    if (status != AKUNU_OK)
        ak_error_prefix(error, ak_show_path(path, shown));
    else if (!(*out = ak_alloc(1, sizeof **out)))
        status = ak_fail_memory(error, "a VAD model", sizeof **out);
    else
        pack(*out, r.tensors);
    for (int id = 0; id < N_TENSORS; id++)
        ak_free(r.tensors[id]);
    ak_file_close(&r.file);
    return status;
}
