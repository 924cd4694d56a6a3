/* Whisper's files in the GGML format: what is in them, and that damaged ones
 * are refused by the name of what is wrong. The file is made here, from names and
 * shapes written out. */
#include "tests/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gguf_files.h"

enum {
    N_VOCAB = 6,
    CTX = 5,
    STATE = 4,
    FFN = 8,
    MELS = 2,
    BINS = 3,
    LAYERS = 2,
    AT_PARAMS = 4,
    AT_FILTERS = 4 + 11 * 4
};

/* [rows, cols] as in row-major order, kernels of 3 after them. */
struct made {
    const char *name;
    int rows, cols, kernel;
};
static const struct made others[] = {
    { "encoder.conv1.weight", STATE, MELS, 3 },
    { "encoder.conv1.bias", STATE, 1, 0 },
    { "encoder.conv2.weight", STATE, STATE, 3 },
    { "encoder.conv2.bias", STATE, 1, 0 },
    { "encoder.positional_embedding", CTX, STATE, 0 },
    { "encoder.ln_post.weight", STATE, 0, 0 },
    { "encoder.ln_post.bias", STATE, 0, 0 },
    { "decoder.token_embedding.weight", N_VOCAB, STATE, 0 },
    { "decoder.positional_embedding", CTX, STATE, 0 },
    { "decoder.ln.weight", STATE, 0, 0 },
    { "decoder.ln.bias", STATE, 0, 0 },
};
static const struct made of_layers[] = {
    { "mlp_ln.weight", STATE, 0, 0 },         { "mlp_ln.bias", STATE, 0, 0 },
    { "mlp.0.weight", FFN, STATE, 0 },        { "mlp.0.bias", FFN, 0, 0 },
    { "mlp.2.weight", STATE, FFN, 0 },        { "mlp.2.bias", STATE, 0, 0 },
    { "attn_ln.weight", STATE, 0, 0 },        { "attn_ln.bias", STATE, 0, 0 },
    { "attn.query.weight", STATE, STATE, 0 }, { "attn.query.bias", STATE, 0, 0 },
    { "attn.key.weight", STATE, STATE, 0 },   { "attn.value.weight", STATE, STATE, 0 },
    { "attn.value.bias", STATE, 0, 0 },       { "attn.out.weight", STATE, STATE, 0 },
    { "attn.out.bias", STATE, 0, 0 },
};
enum {
    N_OTHERS = sizeof others / sizeof *others,
    N_OF_LAYERS = sizeof of_layers / sizeof *of_layers,
    N_CROSS = 9
};

static void add_tensor(struct test_bytes *out, const char *name, const struct made *t)
{
    /* the contiguous one first, those that are not there left out */
    const int dims[3] = { t->kernel, t->cols, t->rows };
    uint32_t n_dims = 0, n = 1;
    for (int d = 0; d < 3; d++)
        n_dims += dims[d] > 0;
    test_append_u32(out, n_dims);
    test_append_u32(out, (uint32_t)strlen(name));
    test_append_u32(out, t->cols > 1 && t->kernel == 0 ? 1 : 0); /* matrices are F16 */
    for (int d = 0; d < 3; d++)
        if (dims[d] > 0) {
            test_append_u32(out, (uint32_t)dims[d]);
            n *= (uint32_t)dims[d];
        }
    test_append(out, name, strlen(name));
    for (uint32_t i = 0; i < n; i++) {
        static const uint16_t one_half = 0x3800;
        float x = (float)i;
        if (t->cols > 1 && t->kernel == 0)
            test_append(out, &one_half, 2);
        else
            test_append(out, &x, 4);
    }
}

static void add_layers(struct test_bytes *out, const char *side)
{
    char name[128];
    for (int layer = 0; layer < LAYERS; layer++)
        for (int i = 0; i < N_OF_LAYERS; i++) {
            snprintf(name, sizeof name, "%s.blocks.%d.%s", side, layer, of_layers[i].name);
            add_tensor(out, name, &of_layers[i]);
            if (strcmp(side, "decoder") != 0 || strncmp(of_layers[i].name, "attn", 4) != 0)
                continue;
            snprintf(name, sizeof name, "%s.blocks.%d.cross_%s", side, layer, of_layers[i].name);
            add_tensor(out, name, &of_layers[i]);
        }
}

static struct test_bytes make(void)
{
    static const uint32_t params[] = { N_VOCAB, CTX, STATE,  2,    LAYERS, CTX,
                                       STATE,   2,   LAYERS, MELS, 1 };
    static const char *const tokens[] = { "a", "", "the blank " };
    struct test_bytes out = { 0 };
    test_append_u32(&out, 0x67676d6c);
    for (size_t i = 0; i < sizeof params / sizeof *params; i++)
        test_append_u32(&out, params[i]);
    test_append_u32(&out, MELS);
    test_append_u32(&out, BINS);
    for (int i = 0; i < MELS * BINS; i++) {
        float x = 0.5f * (float)i;
        test_append(&out, &x, sizeof x);
    }
    test_append_u32(&out, 3);
    for (int i = 0; i < 3; i++) {
        test_append_u32(&out, (uint32_t)strlen(tokens[i]));
        test_append(&out, tokens[i], strlen(tokens[i]));
    }
    for (int i = 0; i < N_OTHERS; i++)
        add_tensor(&out, others[i].name, &others[i]);
    add_layers(&out, "encoder");
    add_layers(&out, "decoder");
    return out;
}

START_TEST(contents)
{
    struct test_bytes bytes = make();
    struct ak_provider *p;
    struct ak_error error = { 0 };
    struct ak_tensor tensor;
    struct ak_meta meta, element;
    struct ak_view view;
    struct ak_vocab vocab;
    char name[AK_ROLE_NAME_BYTES];
    ck_assert_msg(test_open(bytes, &p, &error) == AKUNU_OK, "%s", error.message);
    ck_assert_str_eq(p->format->name, "whisper-ggml");
    ck_assert_uint_eq(ak_provider_n_tensors(p),
                      N_OTHERS + 2 * LAYERS * N_OF_LAYERS + LAYERS * N_CROSS);
    for (size_t i = 0; ak_provider_tensor(p, i, &tensor); i++)
        ck_assert(tensor.has_role);
    ck_assert(ak_provider_tensor(p, 0, &tensor));
    ck_assert_str_eq(tensor.name, "encoder.conv1.weight");
    ck_assert_uint_eq(tensor.n_dims, 3);
    ck_assert(tensor.shape[0] == STATE && tensor.shape[1] == MELS && tensor.shape[2] == 3 &&
              tensor.bytes == STATE * MELS * 3 * 4);

    ck_assert(ak_provider_find_meta(p, "general.architecture", &meta) && meta.n == 7 &&
              memcmp(meta.as.string, "whisper", 7) == 0);
    ck_assert(ak_provider_find_meta(p, "whisper.decoder.block_count", &meta) &&
              meta.as.unsigned_integer == LAYERS);
    ck_assert(ak_provider_find_meta(p, "whisper.encoder.mel_filters", &meta) &&
              meta.n == MELS * BINS);
    ck_assert(ak_provider_element(p, &meta, 3, &element) && element.as.number == 1.5 &&
              !ak_provider_element(p, &meta, 6, &element));
    ck_assert(ak_provider_find_meta(p, "tokens", &meta) && meta.n == 3 &&
              ak_provider_element(p, &meta, 2, &element));
    ck_assert(element.n == 10 && memcmp(element.as.string, "the blank ", 10) == 0);
    ck_assert_int_eq(ak_provider_vocab(p, &vocab, &error), AKUNU_OK);
    ck_assert(vocab.model.n == 8 && memcmp(vocab.model.bytes, "tiktoken", 8) == 0);
    ck_assert_uint_eq(vocab.n_tokens, 3);

    /* [n, 1] in the file, a vector all the same. */
    ck_assert(ak_provider_find(p, AK_ROLE_ENCODER_CONV1_BIAS, AK_ROLE_NO_LAYER, NULL, &view));
    ck_assert(view.n_dims == 1 && view.rows == 1 && view.cols == STATE);

    /* Views are aligned, whatever the file. */
    ck_assert(ak_provider_find(p, AK_ROLE_CROSS_ATTENTION_V, 1, NULL, &view));
    ck_assert_str_eq(view.name, "decoder.blocks.1.cross_attn.value.weight");
    ck_assert(view.type == AK_QUANT_F16 && view.rows == STATE && view.cols == STATE &&
              (uintptr_t)view.plane[0].data % 2 == 0);
    ck_assert_str_eq(ak_role_name(AK_ROLE_CROSS_ATTENTION_V, 1, name),
                     "layers.1.cross_attention.v.weight");
    ck_assert(ak_provider_find(p, AK_ROLE_ENCODER_CONV1, AK_ROLE_NO_LAYER, NULL, &view));
    ck_assert((uintptr_t)view.plane[0].data % 4 == 0 &&
              ((const float *)view.plane[0].data)[23] == 23.0f);
    ck_assert(!ak_provider_find(p, AK_ROLE_CROSS_ATTENTION_V, LAYERS, NULL, &view));
    ck_assert(!ak_provider_find(p, AK_ROLE_FFN_GATE, 0, NULL, &view));
    ak_provider_close(p);
    free(bytes.data);
}
END_TEST

static void check_refused(struct test_bytes bytes, const char *what, const char *named)
{
    struct ak_provider *p = NULL;
    struct ak_error error = { 0 };
    ak_status status = test_open(bytes, &p, &error);
    ck_assert_msg(status == AKUNU_ERROR_FORMAT || status == AKUNU_ERROR_UNSUPPORTED,
                  "%s: status %d", what, status);
    ck_assert_msg(strstr(error.message, named), "%s: \"%s\" does not name %s", what, error.message,
                  named);
}

START_TEST(hostile)
{
    static const struct {
        size_t at;
        uint32_t value;
        const char *named;
    } cases[] = {
        { AT_PARAMS, 0x7fffffff, "n_vocab" },
        { AT_PARAMS, 0, "n_vocab" },
        { AT_PARAMS, 2, "n_vocab is 2, but there are 3 tokens" },
        { AT_PARAMS + 4, 0x80000000, "n_audio_ctx" },
        { AT_PARAMS + 8, 8, "n_audio_state" },
        { AT_PARAMS + 12, 3, "n_audio_head" },
        { AT_PARAMS + 16, 0xffffffff, "n_audio_layer is -1" },
        { AT_PARAMS + 16, 3, "encoder.blocks.2.attn_ln.weight is missing" },
        { AT_PARAMS + 16, 1, "encoder.blocks.1.mlp_ln.weight" },
        { AT_PARAMS + 28, 0, "n_text_head" },
        { AT_PARAMS + 36, 3, "n_mels" },
        { AT_PARAMS + 40, 99, "ftype" },
        { AT_PARAMS + 40, 8, "quants of version 0" },
        { AT_PARAMS + 40, 1007,
          "quants of version 1, from before May 2023; this type is supported "
          "from version 2 on" },
        { AT_FILTERS, 0xfffffffe, "mel filters" },
        { AT_FILTERS + 4, 0x10000, "mel filters" },
        { AT_FILTERS + 8 + MELS * BINS * 4, 0xffffffff, "tokens" },
        { AT_FILTERS + 12 + MELS * BINS * 4, 0xfffffffb, "token 0" },
    };
    struct test_bytes bytes = make();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t kept;
        memcpy(&kept, bytes.data + cases[i].at, 4);
        memcpy(bytes.data + cases[i].at, &cases[i].value, 4);
        check_refused(bytes, "a header", cases[i].named);
        memcpy(bytes.data + cases[i].at, &kept, 4);
    }

    /* A tensor once more, and one that no such model has. */
    size_t n = bytes.n;
    add_tensor(&bytes, others[0].name, &others[0]);
    check_refused(bytes, "a tensor twice", "encoder.conv1.weight is there twice");
    bytes.n = n;
    add_tensor(&bytes, "encoder.blocks.7.x", &others[9]);
    check_refused(bytes, "an unknown tensor", "encoder.blocks.7.x");
    bytes.n = n;
    free(bytes.data);
}
END_TEST

/* ftype is 1000 times the version of the quants, plus their type. */
START_TEST(versions)
{
    static const uint32_t ftypes[] = { 0, 1, 1008, 1009, 2002, 2003, 2007, 2008, 2009, 2012, 14 };
    struct test_bytes bytes = make();
    struct ak_provider *p;
    struct ak_error error = { 0 };
    memcpy(bytes.data + AT_PARAMS + 40, &ftypes[_i], 4);
    ck_assert_msg(test_open(bytes, &p, &error) == AKUNU_OK, "%s", error.message);
    ak_provider_close(p);
    free(bytes.data);
}
END_TEST

/* What the file ends in is named. */
START_TEST(ends)
{
    static const char *const params[] = { "n_vocab",      "n_audio_ctx",   "n_audio_state",
                                          "n_audio_head", "n_audio_layer", "n_text_ctx",
                                          "n_text_state", "n_text_head",   "n_text_layer",
                                          "n_mels",       "ftype" };
    enum { AT_TOKENS = AT_FILTERS + 8 + MELS * BINS * 4, AT_TENSORS = AT_TOKENS + 4 + 5 + 4 + 14 };
    static const struct {
        size_t n;
        const char *named;
    } cases[] = {
        { AT_FILTERS, "is inside mel filters: the number of rows" },
        { AT_FILTERS + 7, "is inside mel filters: the number of columns" },
        { AT_FILTERS + 8, "is inside the mel filters" },
        { AT_TOKENS - 1, "is inside the mel filters" },
        { AT_TOKENS + 3, "is inside the number of tokens" },
        { AT_TOKENS + 4, "3 tokens, where the file has 0 bytes left" },
        { AT_TOKENS + 15, "3 tokens, where the file has 11 bytes left" },
        { AT_TOKENS + 16, "is inside the tokens" },
        { AT_TENSORS - 1, "token 2 has 10 bytes, beyond the end of the file" },
        { AT_TENSORS + 3, "is inside the header of a tensor" },
        { AT_TENSORS + 7, "is inside the header of a tensor" },
        { AT_TENSORS + 11, "is inside the header of a tensor" },
        { AT_TENSORS + 12, "is inside the header of a tensor" },
        { AT_TENSORS + 23, "is inside the header of a tensor" },
        { AT_TENSORS + 24 + 19, "is inside the header of a tensor" },
        { AT_TENSORS + 24 + 20, "tensor encoder.conv1.weight lies at bytes 151 to 247, beyond the "
                                "end of the file (151 bytes)" },
    };
    struct test_bytes bytes = make();
    for (size_t i = 0; i < 11; i++) {
        char named[64];
        snprintf(named, sizeof named, "is inside %s", params[i]);
        check_refused((struct test_bytes){ .data = bytes.data, .n = AT_PARAMS + 4 * i + 3 },
                      "a parameter", named);
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_refused((struct test_bytes){ .data = bytes.data, .n = cases[i].n }, "an end",
                      cases[i].named);
    /* All of the model is there but the last byte of its last tensor. */
    check_refused((struct test_bytes){ .data = bytes.data, .n = bytes.n - 1 }, "an end",
                  "beyond the end of the file");
    free(bytes.data);
}
END_TEST

/* A first tensor that one check refuses, and no other one before it. */
START_TEST(hostile_tensors)
{
    enum { F32 = 0, F16 = 1, Q4_0 = 2, AT_TENSORS = AT_FILTERS + 8 + MELS * BINS * 4 + 27 };
    static const char conv[] = "encoder.conv1.weight";
    static const struct {
        uint32_t n_dims, n_name, type, dims[4];
        const char *name, *named;
    } cases[] = {
        { 0,
          20,
          F32,
          { 4 },
          conv,
          "tensor encoder.conv1.weight has 0 dimensions; expected 1 to 4" },
        { 5, 20, F32, { 3, 2, 4, 1 }, conv, "has 5 dimensions; expected 1 to 4" },
        { 3, 0, F32, { 3, 2, 4 }, "", "the name of tensor 0 has 0 bytes; expected 1 to 256" },
        { 3, 257, F32, { 3, 2, 4 }, conv, "the name of tensor 0 has 257 bytes; expected 1 to 256" },
        { 3, 20, 99, { 3, 2, 4 }, conv, "tensor encoder.conv1.weight has type 99" },
        { 3,
          20,
          F32,
          { 3, 0, 4 },
          conv,
          "tensor encoder.conv1.weight: dimension 1 is 0, where at least 1 is expected" },
        { 3,
          20,
          F32,
          { 0, 2, 4 },
          conv,
          "tensor encoder.conv1.weight: dimension 0 is 0, where at least 1 is expected" },
        { 3,
          20,
          F32,
          { 0x80000000, 2, 4 },
          conv,
          "tensor encoder.conv1.weight: dimension 0 is -2147483648, where at least 1 is expected" },
        { 3,
          20,
          F16,
          { 1, 65536, 65536 },
          conv,
          "tensor encoder.conv1.weight: dimension 2 is 65536, which is too large" },
        { 2,
          20,
          Q4_0,
          { 33, 1 },
          conv,
          "tensor encoder.conv1.weight has rows of 33 elements, where Q4_0 needs a multiple of "
          "32" },
        { 3,
          20,
          F32,
          { 2147483647, 2, 1073741825 },
          conv,
          "tensor encoder.conv1.weight: its size overflows 64 bits" },
        { 3,
          20,
          F32,
          { 3, 4, 4 },
          conv,
          "tensor encoder.conv1.weight has the shape 4 × 4 × 3; expected 4 × 2 × 3" },
        { 2,
          20,
          F32,
          { 2, 4 },
          conv,
          "tensor encoder.conv1.weight has the shape 4 × 2; expected 4 × 2 × 3" },
        { 2,
          20,
          F32,
          { 3, 4 },
          conv,
          "tensor encoder.conv1.weight has the shape 4 × 3; expected 4 × 2 × 3" },
        { 1,
          8,
          F32,
          { 4 },
          "nonsense",
          "tensor nonsense: a Whisper model of these sizes has none of that name" },
        { 1,
          30,
          F32,
          { 4 },
          "encoder.blocks.2.mlp_ln.weight",
          "encoder.blocks.2.mlp_ln.weight: a Whisper model of these sizes has none" },
    };
    static const uint8_t zeros[512];
    struct test_bytes bytes = make();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bytes.n = AT_TENSORS;
        test_append_u32(&bytes, cases[i].n_dims);
        test_append_u32(&bytes, cases[i].n_name);
        test_append_u32(&bytes, cases[i].type);
        for (uint32_t d = 0; d == 0 || (d < cases[i].n_dims && d < 4);
             d++) /* the name is found behind one to four */
            test_append_u32(&bytes, cases[i].dims[d]);
        test_append(&bytes, cases[i].name, strlen(cases[i].name));
        test_append(&bytes, zeros, sizeof zeros);
        check_refused(bytes, "a tensor", cases[i].named);
    }
    free(bytes.data);
}
END_TEST

/* Every shorter file is refused, and no change of a byte is more than that. */
START_TEST(damage)
{
    struct test_bytes bytes = make();
    struct ak_provider *p;
    for (size_t n = AT_PARAMS; n < bytes.n; n += n < 1024 ? 1 : 97)
        check_refused((struct test_bytes){ .data = bytes.data, .n = n }, "a part", "");
    for (size_t at = AT_PARAMS; at < bytes.n; at += at < 1024 ? 1 : 31) {
        bytes.data[at] ^= 0xff;
        if (test_open(bytes, &p, NULL) == AKUNU_OK)
            ak_provider_close(p);
        bytes.data[at] ^= 0xff;
    }
    free(bytes.data);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("whisper_ggml");
    TCase *tests = tcase_create("whisper_ggml");
    tcase_add_test(tests, contents);
    tcase_add_test(tests, hostile);
    tcase_add_loop_test(tests, versions, 0, 11);
    tcase_add_test(tests, ends);
    tcase_add_test(tests, hostile_tensors);
    tcase_add_test(tests, damage);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
