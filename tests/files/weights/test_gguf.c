/* GGUF files: what is in them, and that damaged ones
 * are refused with a message that names what is wrong. */
#include "tests/test.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "akunu/akunu.h"
#include "base/thread.h"
#include "files/quant/type.h"
#include "tests/gguf_files.h"
#include "files/weights/composed.h"

static struct ak_provider *open_data(const char *name)
{
    struct ak_provider *p;
    struct ak_error error;
    ak_status status = ak_provider_open(test_path(name), &p, &error);
    ck_assert_msg(status == AKUNU_OK, "%s", error.message);
    return p;
}

/* Touches everything that a provider gives. */
static void walk(const struct ak_provider *p)
{
    struct ak_tensor tensor;
    struct ak_meta meta, element, inner;
    struct ak_vocab vocab;
    unsigned sum = 0;
    for (size_t i = 0; ak_provider_tensor(p, i, &tensor); i++) {
        sum += ((const uint8_t *)tensor.data)[0];
        sum += ((const uint8_t *)tensor.data)[tensor.bytes - 1];
    }
    for (size_t i = 0; ak_provider_meta(p, i, &meta); i++) {
        ck_assert(ak_provider_find_meta(p, meta.key, &element));
        for (uint64_t j = 0;
             meta.kind == AK_META_ARRAY && ak_provider_element(p, &meta, j, &element); j++) {
            if (element.kind == AK_META_STRING && element.n > 0)
                sum += (unsigned)element.as.string[element.n - 1];
            if (element.kind == AK_META_ARRAY)
                sum += ak_provider_element(p, &element, element.n - 1, &inner);
        }
    }
    if (ak_provider_vocab(p, &vocab, NULL) == AKUNU_OK)
        for (uint32_t i = 0; i < vocab.n_tokens; i++)
            sum +=
                vocab.tokens[i].n > 0 ? (unsigned)vocab.tokens[i].bytes[vocab.tokens[i].n - 1] : 0;
    ck_assert(sum != 1); /* keeps the reads */
}

/* ---- Hostile files ------------------------------------------------------ */
/* Where a hostile file is refused. What is not in the table is a matter of the
 * model's configuration, and opens. */
struct refusal {
    const char *name;
    enum { AT_OPEN, AT_VOCAB } stage;
    ak_status status;
    const char *names[3]; /* parts of the message */
};

static const struct refusal refusals[] = {
    { "empty", AT_OPEN, AKUNU_ERROR_FORMAT, { "empty" } },
    { "cut-magic", AT_OPEN, AKUNU_ERROR_FORMAT, { "end of the file" } },
    { "cut-version", AT_OPEN, AKUNU_ERROR_FORMAT, { "end of the file", "version" } },
    { "cut-counts", AT_OPEN, AKUNU_ERROR_FORMAT, { "end of the file", "counts" } },
    { "cut-before-metadata", AT_OPEN, AKUNU_ERROR_FORMAT, { "end of the file", "metadata" } },
    { "cut-metadata-key", AT_OPEN, AKUNU_ERROR_FORMAT, { "end of the file", "key" } },
    { "cut-metadata-array", AT_OPEN, AKUNU_ERROR_FORMAT, { "tokenizer.ggml.tokens" } },
    { "cut-tensor-infos", AT_OPEN, AKUNU_ERROR_FORMAT, { "tensor info" } },
    { "cut-before-data", AT_OPEN, AKUNU_ERROR_FORMAT, { "blk.0.ffn_down.weight", "2157" } },
    { "cut-data",
      AT_OPEN,
      AKUNU_ERROR_FORMAT,
      { "blk.0.ffn_down.weight", "15936 to 18112", "18111" } },
    { "magic", AT_OPEN, AKUNU_ERROR_FORMAT, { "GGUG" } },
    { "magic-ggml", AT_OPEN, AKUNU_ERROR_UNSUPPORTED, { "tjgg", "ggjt" } },
    { "version-0", AT_OPEN, AKUNU_ERROR_UNSUPPORTED, { "version 0" } },
    { "version-1", AT_OPEN, AKUNU_ERROR_UNSUPPORTED, { "version 1" } },
    { "version-99", AT_OPEN, AKUNU_ERROR_UNSUPPORTED, { "version 99" } },
    { "big-endian", AT_OPEN, AKUNU_ERROR_UNSUPPORTED, { "big-endian" } },
    { "n-tensors-huge", AT_OPEN, AKUNU_ERROR_FORMAT, { "tensor count", "9223372036854775807" } },
    { "n-tensors-plus-1", AT_OPEN, AKUNU_ERROR_FORMAT, { "tensor name" } },
    { "n-kv-huge", AT_OPEN, AKUNU_ERROR_FORMAT, { "metadata count", "9223372036854775807" } },
    { "n-kv-2-60", AT_OPEN, AKUNU_ERROR_FORMAT, { "metadata count", "1152921504606846976" } },
    { "key-length-huge", AT_OPEN, AKUNU_ERROR_FORMAT, { "key length" } },
    { "string-length-huge",
      AT_OPEN,
      AKUNU_ERROR_FORMAT,
      { "general.name", "4611686018427387904" } },
    { "string-length-minus-1",
      AT_OPEN,
      AKUNU_ERROR_FORMAT,
      { "general.name", "18446744073709551615" } },
    { "array-length-huge",
      AT_OPEN,
      AKUNU_ERROR_FORMAT,
      { "tokenizer.ggml.scores", "4611686018427387904" } },
    { "array-strings-huge",
      AT_OPEN,
      AKUNU_ERROR_FORMAT,
      { "tokenizer.ggml.tokens", "2305843009213693952" } },
    { "array-nested-deep", AT_OPEN, AKUNU_ERROR_FORMAT, { "x.deep", "nested" } },
    { "tokens-nested",
      AT_VOCAB,
      AKUNU_ERROR_FORMAT,
      { "tokenizer.ggml.tokens", "array of array", "string" } },
    { "tokens-of-integers",
      AT_VOCAB,
      AKUNU_ERROR_FORMAT,
      { "tokenizer.ggml.tokens", "integer", "string" } },
    { "tokens-too-few", AT_VOCAB, AKUNU_ERROR_FORMAT, { "39", "40", "token_embd.weight" } },
    { "scores-too-few", AT_VOCAB, AKUNU_ERROR_FORMAT, { "tokenizer.ggml.scores", "39", "40" } },
    { "kv-type-unknown", AT_OPEN, AKUNU_ERROR_FORMAT, { "general.name", "type 99" } },
    { "kv-array-type-unknown", AT_OPEN, AKUNU_ERROR_FORMAT, { "x.array", "type 99" } },
    { "key-duplicate", AT_OPEN, AKUNU_ERROR_FORMAT, { "llama.block_count", "twice" } },
    { "key-not-utf8", AT_OPEN, AKUNU_ERROR_FORMAT, { "llama.\\xff\\xfe" } },
    { "alignment-0", AT_OPEN, AKUNU_ERROR_FORMAT, { "general.alignment", "is 0" } },
    { "alignment-33", AT_OPEN, AKUNU_ERROR_FORMAT, { "general.alignment", "is 33" } },
    { "alignment-string", AT_OPEN, AKUNU_ERROR_FORMAT, { "general.alignment" } },
    { "tensor-name-huge", AT_OPEN, AKUNU_ERROR_FORMAT, { "tensor name", "1152921504606846976" } },
    { "tensor-dims-9", AT_OPEN, AKUNU_ERROR_FORMAT, { "blk.0.ffn_up.weight", "9 dimensions" } },
    { "tensor-dims-count-huge",
      AT_OPEN,
      AKUNU_ERROR_FORMAT,
      { "blk.0.ffn_up.weight", "2147483648" } },
    { "tensor-dim-0", AT_OPEN, AKUNU_ERROR_FORMAT, { "blk.0.ffn_up.weight", "is 0" } },
    { "tensor-dim-negative", AT_OPEN, AKUNU_ERROR_FORMAT, { "blk.0.ffn_up.weight", "is -64" } },
    { "tensor-dims-overflow", AT_OPEN, AKUNU_ERROR_FORMAT, { "blk.0.ffn_up.weight" } },
    { "tensor-bytes-overflow", AT_OPEN, AKUNU_ERROR_FORMAT, { "blk.0.attn_q.weight" } },
    { "tensor-type-unknown", AT_OPEN, AKUNU_ERROR_UNSUPPORTED, { "blk.0.ffn_up.weight", "9999" } },
    { "tensor-type-removed",
      AT_OPEN,
      AKUNU_ERROR_UNSUPPORTED,
      { "blk.0.ffn_up.weight", "type 4" } },
    { "tensor-row-33", AT_OPEN, AKUNU_ERROR_FORMAT, { "blk.0.ffn_up.weight", "33", "32" } },
    { "tensor-duplicate", AT_OPEN, AKUNU_ERROR_FORMAT, { "blk.0.ffn_up.weight", "twice" } },
    { "tensor-offset-out", AT_OPEN, AKUNU_ERROR_FORMAT, { "blk.0.ffn_up.weight", "18112" } },
    { "tensor-offset-wrap", AT_OPEN, AKUNU_ERROR_FORMAT, { "blk.0.ffn_up.weight" } },
    { "tensor-offset-misaligned",
      AT_OPEN,
      AKUNU_ERROR_FORMAT,
      { "blk.0.ffn_up.weight", "33", "32" } },
    { "tensor-offset-overlap", AT_OPEN, AKUNU_ERROR_FORMAT, { "blk.0.ffn_down.weight" } },
    { "split-alone", AT_OPEN, AKUNU_ERROR_FORMAT, { "split", "3" } },
};

enum { N_REFUSALS = sizeof refusals / sizeof *refusals };

static const struct refusal *refusal_of(const char *name)
{
    for (size_t i = 0; i < N_REFUSALS; i++)
        if (strcmp(refusals[i].name, name) == 0)
            return &refusals[i];
    return NULL;
}

static void check_message(const struct refusal *r, ak_status status, const struct ak_error *error)
{
    ck_assert_msg(status == r->status, "%s: status %d, \"%s\"", r->name, status,
                  status ? error->message : "");
    for (size_t i = 0; i < 3 && r->names[i]; i++)
        ck_assert_msg(strstr(error->message, r->names[i]), "%s: \"%s\" does not name %s", r->name,
                      error->message, r->names[i]);
}

static void check_hostile(const struct test_hostile *file, void *user)
{
    const struct refusal *r = refusal_of(file->name);
    struct ak_provider *p = NULL;
    struct ak_vocab vocab;
    struct ak_error error = { 0 };
    ck_assert_msg(!r || !file->accept, "%s is to be accepted", file->name);

    ak_status status = test_open(file->bytes, &p, &error);
    *(size_t *)user += r != NULL;
    if (r && r->stage == AT_OPEN) {
        check_message(r, status, &error);
        ck_assert_ptr_null(p);
        return;
    }
    ck_assert_msg(status == AKUNU_OK, "%s", error.message);
    walk(p);
    status = ak_provider_vocab(p, &vocab, &error);
    if (r)
        check_message(r, status, &error);
    else
        ck_assert_msg(status == AKUNU_OK, "%s: %s", file->name, error.message);
    ak_provider_close(p);
}

START_TEST(hostile)
{
    size_t n = 0;
    test_each_hostile(check_hostile, &n);
    ck_assert_uint_eq(n, N_REFUSALS);
}
END_TEST

static void compare_data(const struct test_hostile *file, void *user)
{
    struct ak_provider *p, *good = user;
    struct ak_tensor a, b;
    if (strcmp(file->name, "alignment-64") != 0)
        return;
    ck_assert_int_eq(test_open(file->bytes, &p, NULL), AKUNU_OK);
    for (size_t i = 0; ak_provider_tensor(p, i, &a); i++) {
        ck_assert(ak_provider_tensor(good, i, &b));
        ck_assert_uint_eq(a.offset % 64, 0);
        ck_assert_uint_eq(a.bytes, b.bytes);
        ck_assert_mem_eq(a.data, b.data, a.bytes);
    }
    ak_provider_close(p);
}

/* general.alignment is honored. */
START_TEST(alignment)
{
    struct ak_provider *good = open_data("gguf/good.gguf");
    test_each_hostile(compare_data, good);
    ak_provider_close(good);
}
END_TEST

/* Every shorter version of a good file is refused. */
START_TEST(cut_anywhere)
{
    struct test_bytes good = test_read("gguf/good.gguf");
    for (size_t n = 0; n < good.n; n += n < 2300 ? 7 : 401) {
        struct ak_provider *p;
        struct ak_error error;
        ak_status status = test_open((struct test_bytes){ .data = good.data, .n = n }, &p, &error);
        ck_assert_msg(status == AKUNU_ERROR_FORMAT, "%zu bytes", n);
    }
    free(good.data);
}
END_TEST

/* Damage of any kind never leads outside: a sanitizer watches. */
START_TEST(mutated)
{
    struct test_bytes good = test_read("gguf/good.gguf"), copy = test_read("gguf/good.gguf");
    uint64_t state = 88172645463325252u;
    for (int round = 0; round < 3000; round++) {
        memcpy(copy.data, good.data, good.n);
        for (int change = 0; change <= round % 3; change++) {
            state ^= state << 13, state ^= state >> 7, state ^= state << 17;
            size_t at = (size_t)(state % 2300);
            copy.data[at] = (uint8_t)(state >> 40 & 1 ? 0xff : state >> 32);
        }
        struct ak_provider *p;
        if (test_open(copy, &p, NULL) == AKUNU_OK)
            walk(p);
        ak_provider_close(p);
    }
    free(good.data);
    free(copy.data);
}
END_TEST

/* ---- Tensor types ------------------------------------------------------- */
/* One tensor of one row of 256 elements, of a type by its number in the file. */
static struct test_bytes one_tensor(uint32_t type)
{
    struct test_bytes b = { 0 };
    static const uint8_t data[2048 + 31];
    test_append(&b, "GGUF", 4);
    test_append_u32(&b, 3);
    test_append_u64(&b, 1);
    test_append_u64(&b, 0);
    test_append_text(&b, "some.weight");
    test_append_u32(&b, 1);
    test_append_u64(&b, 256);
    test_append_u32(&b, type);
    test_append_u64(&b, 0);
    test_append(&b, data, (size_t)(-b.n & 31) + 2048);
    return b;
}

/* The numbers and names are gguf-py's GGMLQuantizationType; from 133 on, ik_llama.cpp's. */
START_TEST(tensor_types)
{
    static const struct {
        uint32_t number;
        const char *name;
        bool runs;
    } types[] = {
        { 0, "F32", true },        { 1, "F16", true },        { 2, "Q4_0", true },
        { 3, "Q4_1", true },       { 4, "Q4_2", false },      { 5, "Q4_3", false },
        { 6, "Q5_0", true },       { 7, "Q5_1", true },       { 8, "Q8_0", true },
        { 9, "Q8_1", false },      { 10, "Q2_K", true },      { 11, "Q3_K", true },
        { 12, "Q4_K", true },      { 13, "Q5_K", true },      { 14, "Q6_K", true },
        { 15, "Q8_K", true },      { 16, "IQ2_XXS", true },   { 17, "IQ2_XS", true },
        { 18, "IQ3_XXS", true },   { 19, "IQ1_S", true },     { 20, "IQ4_NL", true },
        { 21, "IQ3_S", true },     { 22, "IQ2_S", true },     { 23, "IQ4_XS", true },
        { 24, "I8", true },        { 25, "I16", true },       { 26, "I32", true },
        { 27, "I64", true },       { 28, "F64", true },       { 29, "IQ1_M", true },
        { 30, "BF16", true },      { 31, "Q4_0_4_4", false }, { 32, "Q4_0_4_8", false },
        { 33, "Q4_0_8_8", false }, { 34, "TQ1_0", true },     { 35, "TQ2_0", true },
        { 36, "I2_S", false },     { 39, "MXFP4", true },     { 40, "NVFP4", true },
        { 41, "Q1_0", true },      { 42, "Q2_0", true },      { 137, "IQ2_K", false },
        { 158, "IQ1_KT", false },
    };
    for (uint32_t number = 0, next = 0; number < 400; number++) {
        struct test_bytes bytes = one_tensor(number);
        struct ak_provider *p;
        struct ak_error error;
        struct ak_tensor tensor;
        char wanted[32];
        ak_status status = test_open(bytes, &p, &error);
        free(bytes.data);
        if (next == sizeof types / sizeof *types || types[next].number != number) {
            snprintf(wanted, sizeof wanted, "type %u", number);
            ck_assert_int_eq(status, AKUNU_ERROR_UNSUPPORTED);
            ck_assert_msg(strstr(error.message, "some.weight") && strstr(error.message, wanted),
                          "%s", error.message);
            continue;
        }
        if (types[next].runs) {
            ck_assert_msg(status == AKUNU_OK, "%s", error.message);
            ck_assert(ak_provider_tensor(p, 0, &tensor));
            ck_assert_str_eq(ak_quant_info(tensor.type)->name, types[next].name);
            ak_provider_close(p);
        } else {
            ck_assert_int_eq(status, AKUNU_ERROR_UNSUPPORTED);
            ck_assert_msg(strstr(error.message, "some.weight") &&
                              strstr(error.message, types[next].name),
                          "%s", error.message);
        }
        next++;
    }
}
END_TEST

/* A stack of two matrices of NVFP4 with two rows of 128 elements each, and scales beside it. */
static struct test_bytes scaled_tensor(uint32_t n_scales)
{
    static const float scales[3] = { 0.5f, -3.0f };
    struct test_bytes b = { 0 };
    test_append(&b, "GGUF", 4);
    test_append_u32(&b, 3);
    test_append_u64(&b, 2);
    test_append_u64(&b, 0);
    test_append_text(&b, "blk.0.ffn_up_exps.weight");
    test_append_u32(&b, 3);
    test_append_u64(&b, 128);
    test_append_u64(&b, 2);
    test_append_u64(&b, 2);
    test_append_u32(&b, 40); /* NVFP4 */
    test_append_u64(&b, 0);
    test_append_text(&b, "blk.0.ffn_up_exps.scale");
    test_append_u32(&b, 1);
    test_append_u64(&b, n_scales);
    test_append_u32(&b, 0); /* F32 */
    test_append_u64(&b, 288);
    test_append(&b, scales, -b.n & 31);
    for (uint32_t i = 0; i < 288; i++)
        test_append(&b, &(uint8_t){ (uint8_t)(i * 37 + 11) }, 1);
    test_append(&b, scales, sizeof scales);
    test_append(&b, &(uint8_t[32]){ 0 }, 32);
    return b;
}

/* Elements are those of the blocks, times the scale of all or of the expert; a part of a row may
 * begin anywhere. */
START_TEST(scale_beside_nvfp4)
{
    static const float wanted[2][2] = { { 0.5f, 0.5f }, { 0.5f, -3.0f } };
    float plain[128], scaled[128];
    for (uint32_t n_scales = 1; n_scales <= 3; n_scales++) {
        struct test_bytes bytes = scaled_tensor(n_scales);
        struct ak_provider *p;
        struct ak_error error;
        struct ak_view view;
        ak_status status = test_open(bytes, &p, &error);
        free(bytes.data);
        if (n_scales == 3) {
            ck_assert_int_eq(status, AKUNU_ERROR_FORMAT);
            ck_assert_msg(strstr(error.message, "ffn_up_exps.scale has 12 bytes"), "%s",
                          error.message);
            break;
        }
        ck_assert_msg(status == AKUNU_OK, "%s", error.message);
        ck_assert(ak_provider_find(p, AK_ROLE_FFN_UP_EXPERTS, 0, NULL, &view));
        ck_assert_int_eq(view.type, AK_QUANT_F16);
        for (uint32_t row = 0; row < 4; row++) {
            const uint8_t *blocks = (const uint8_t *)view.plane[0].data + row * 72;
            ak_quant_info(AK_QUANT_NVFP4)->dequantize(blocks, plain, 128);
            ak_composed_dequantize(view.composed_tensor, row, 5, 100, scaled);
            for (int i = 0; i < 100; i++)
                ck_assert(scaled[i] == plain[5 + i] * wanted[n_scales - 1][row / 2]);
        }
        ak_provider_close(p);
    }
}
END_TEST

/* ---- What is in a file -------------------------------------------------- */
static ak_status count_values(const struct ak_tensor *tensor, uint64_t first, uint64_t n,
                              const float *values, void *user)
{
    uint64_t *next = user;
    ck_assert_uint_eq(first, first == 0 ? 0 : *next);
    ck_assert_uint_eq(n % tensor->shape[tensor->n_dims - 1], 0);
    ck_assert(values[0] == values[0]);
    *next = first + n;
    return AKUNU_OK;
}

/* Names, types, shapes, places and values are gguf-py's. */
static void check_tensors(const char *file_name, const char *golden, size_t wanted)
{
    struct test_bytes lines = test_read(golden);
    struct akunu_file *file = akunu_file_open(test_path(file_name));
    ck_assert_msg(file != NULL, "%s", akunu_last_error());
    size_t i = 0;
    char *rest;
    for (char *line = strtok_r((char *)lines.data, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest), i++) {
        char name[64], type[16], shape[64], digest[65], got_shape[64], got_digest[65];
        unsigned long long offset, bytes;
        ck_assert_int_eq(sscanf(line, "%63s %15s %63s %llu %llu %64s", name, type, shape, &offset,
                                &bytes, digest),
                         6);
        struct akunu_tensor_info info;
        ck_assert_int_eq(akunu_file_get_tensor(file, i, &info, sizeof info), AKUNU_OK);
        ck_assert_str_eq(info.name, name);
        ck_assert_str_eq(info.type, type);
        int n = 0;
        for (unsigned d = 0; d < info.n_dims; d++)
            n += snprintf(got_shape + n, sizeof got_shape - (size_t)n, "%s%llu", d ? "," : "",
                          (unsigned long long)info.shape[d]);
        ck_assert_str_eq(got_shape, shape);
        ck_assert_uint_eq(info.offset, offset);
        ck_assert_uint_eq(info.bytes, bytes);
        ck_assert_int_eq(akunu_file_sha256_f32(file, i, got_digest), AKUNU_OK);
        ck_assert_str_eq(got_digest, digest);
    }
    struct akunu_file_info info;
    ck_assert_int_eq(akunu_file_get_info(file, &info, sizeof info), AKUNU_OK);
    ck_assert_uint_eq(info.n_tensors, i);
    ck_assert_uint_eq(i, wanted);
    ck_assert_str_eq(info.format, "gguf");
    ck_assert_str_eq(info.architecture, "llama");
    akunu_file_free(file);
    free(lines.data);
}

START_TEST(tensors)
{
    check_tensors("gguf/good.gguf", "gguf/good.tensors", 12);
    struct ak_provider *p = open_data("gguf/good.gguf");
    uint64_t n = 0;
    ck_assert_int_eq(ak_provider_stream(p, count_values, &n, NULL), AKUNU_OK);
    ck_assert_uint_eq(n, 32 * 64);
    ak_provider_close(p);
}
END_TEST

/* Version 2 differs in its number alone. */
START_TEST(version_2)
{
    struct test_bytes bytes = test_read("gguf/good.gguf");
    struct ak_provider *p;
    bytes.data[4] = 2;
    ck_assert_int_eq(test_open(bytes, &p, NULL), AKUNU_OK);
    ck_assert_uint_eq(ak_provider_n_tensors(p), 12);
    ak_provider_close(p);
    free(bytes.data);
}
END_TEST

/* Views point into the map; a mapping exists only where the tensor does. */
START_TEST(roles)
{
    struct ak_provider *p = open_data("gguf/good.gguf");
    struct ak_view view;
    struct ak_tensor tensor;
    ck_assert(ak_provider_find(p, AK_ROLE_TOKEN_EMBEDDING, AK_ROLE_NO_LAYER, NULL, &view));
    ck_assert_uint_eq(view.rows, 40);
    ck_assert_uint_eq(view.cols, 32);
    ck_assert_uint_eq(view.n_dims, 2);
    ck_assert_int_eq(view.type, AK_QUANT_Q8_0);
    ck_assert_uint_eq(view.plane[0].bytes, 1360);
    ck_assert_ptr_null(view.plane[1].data);
    ck_assert_str_eq(view.name, "token_embd.weight");
    ck_assert(ak_provider_tensor(p, 0, &tensor));
    ck_assert_ptr_eq(tensor.data, view.plane[0].data);

    ck_assert(ak_provider_find(p, AK_ROLE_FFN_DOWN, 0, NULL, &view));
    ck_assert_uint_eq(view.rows, 32);
    ck_assert_uint_eq(view.cols, 64);
    ck_assert(ak_provider_find(p, AK_ROLE_ATTENTION_NORM, 0, NULL, &view));
    ck_assert_uint_eq(view.rows, 1);
    ck_assert_uint_eq(view.cols, 32);
    ck_assert_uint_eq(view.n_dims, 1);

    ck_assert(!ak_provider_find(p, AK_ROLE_FFN_DOWN, 1, NULL, &view));
    ck_assert(!ak_provider_find(p, AK_ROLE_FFN_DOWN, AK_ROLE_NO_LAYER, NULL, &view));
    ck_assert(!ak_provider_find(p, AK_ROLE_TOKEN_EMBEDDING, 0, NULL, &view));
    ck_assert(!ak_provider_find(p, AK_ROLE_ATTENTION_Q_BIAS, 0, NULL, &view));

    for (size_t i = 0; ak_provider_tensor(p, i, &tensor); i++) {
        ck_assert(tensor.has_role);
        ck_assert(ak_provider_find(p, tensor.role, tensor.layer, NULL, &view));
        ck_assert_str_eq(view.name, tensor.name);
    }
    ak_provider_close(p);
}
END_TEST

static ak_status stop_at_once(const struct ak_tensor *tensor, uint64_t first, uint64_t n,
                              const float *values, void *user)
{
    (void)tensor, (void)first, (void)n, (void)values;
    ++*(int *)user;
    return AKUNU_ERROR_CANCELLED;
}

START_TEST(stream_stops)
{
    struct ak_provider *p = open_data("gguf/good.gguf");
    int calls = 0;
    ck_assert_int_eq(ak_provider_stream(p, stop_at_once, &calls, NULL), AKUNU_ERROR_CANCELLED);
    ck_assert_int_eq(calls, 1);
    ak_provider_close(p);
}
END_TEST

/* ---- Metadata ----------------------------------------------------------- */
static void write_value(const struct akunu_meta *m, char *out, size_t capacity)
{
    switch (m->type) {
    case AKUNU_META_BOOL: snprintf(out, capacity, "%s", m->boolean ? "true" : "false"); break;
    case AKUNU_META_INT: snprintf(out, capacity, "%lld", (long long)m->integer); break;
    case AKUNU_META_UINT:
        snprintf(out, capacity, "%llu", (unsigned long long)m->unsigned_integer);
        break;
    case AKUNU_META_STRING: snprintf(out, capacity, "%.*s", (int)m->n, m->string); break;
    default: snprintf(out, capacity, "?"); break;
    }
}

static enum akunu_meta_type public_type(const char *kind)
{
    return kind[0] == 'b' ? AKUNU_META_BOOL :
           kind[0] == 's' ? AKUNU_META_STRING :
           kind[0] == 'i' ? AKUNU_META_INT :
           kind[0] == 'u' ? AKUNU_META_UINT :
                            AKUNU_META_FLOAT;
}

static size_t entry_of(const struct akunu_file *file, const char *key)
{
    struct akunu_meta m;
    for (size_t i = 0; akunu_file_get_meta(file, i, &m, sizeof m) == AKUNU_OK; i++)
        if (strcmp(m.key, key) == 0)
            return i;
    ck_abort_msg("no %s", key);
}

/* Every kind, alone and in arrays, as gguf-py wrote it. */
START_TEST(metadata)
{
    struct test_bytes lines = test_read("gguf/kinds.txt");
    struct akunu_file *file = akunu_file_open(test_path("gguf/kinds.gguf"));
    ck_assert_msg(file != NULL, "%s", akunu_last_error());
    size_t n = 0;
    char *rest;
    for (char *line = strtok_r((char *)lines.data, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest), n++) {
        char key[64], at[16], kind[16], got[64], *end;
        int used;
        ck_assert_int_ge(sscanf(line, "%63s %15s %15s%n", key, at, kind, &used), 3);
        const char *value = line[used] ? line + used + 1 : "";
        struct akunu_meta m;
        size_t i = entry_of(file, key);
        ck_assert_int_eq(akunu_file_get_meta(file, i, &m, sizeof m), AKUNU_OK);
        if (at[0] != '-') {
            ck_assert_int_eq(m.type, AKUNU_META_ARRAY);
            ck_assert_int_eq(m.element_type, public_type(kind));
            ck_assert_int_eq(
                akunu_file_get_meta_element(file, i, strtoul(at, NULL, 10), &m, sizeof m),
                AKUNU_OK);
        }
        ck_assert_int_eq(m.type, public_type(kind));
        if (m.type == AKUNU_META_FLOAT) {
            double wanted = strtod(value, &end);
            ck_assert_msg(m.number == wanted, "%s: %a", line, m.number);
            continue;
        }
        write_value(&m, got, sizeof got);
        ck_assert_str_eq(got, value);
    }
    ck_assert_uint_eq(n, 1 + 12 * 4 + 300);

    struct akunu_meta m;
    size_t i = entry_of(file, "long.strings");
    ck_assert_int_eq(akunu_file_get_meta(file, i, &m, sizeof m), AKUNU_OK);
    ck_assert_uint_eq(m.n, 300);
    ck_assert_int_eq(akunu_file_get_meta_element(file, i, 300, &m, sizeof m), AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(akunu_last_status(), AKUNU_ERROR_ARGUMENT);
    akunu_file_free(file);
    free(lines.data);
}
END_TEST

/* Typed access: what fits is given, what does not names key, found and expected. */
START_TEST(typed_access)
{
    struct ak_provider *p = open_data("gguf/kinds.gguf");
    struct ak_error error;
    uint32_t u;
    float f;
    bool b;
    struct ak_text text;
    ck_assert_int_eq(ak_meta_u32(p, "absent", 7, &u, &error), AKUNU_OK);
    ck_assert_uint_eq(u, 7);
    ck_assert_int_eq(ak_meta_u32(p, "one.i64.1", 0, &u, &error), AKUNU_ERROR_FORMAT);
    ck_assert_int_eq(ak_meta_u32(p, "one.i16.1", 0, &u, &error), AKUNU_OK);
    ck_assert_uint_eq(u, 32767);
    ck_assert_int_eq(ak_meta_u32(p, "one.i16.0", 0, &u, &error), AKUNU_ERROR_FORMAT);
    ck_assert_msg(strstr(error.message, "one.i16.0") && strstr(error.message, "-32768"), "%s",
                  error.message);
    ck_assert_int_eq(ak_meta_u32(p, "one.string.1", 0, &u, &error), AKUNU_ERROR_FORMAT);
    ck_assert_msg(strstr(error.message, "the string \"žluťoučký\"") &&
                      strstr(error.message, "an integer"),
                  "%s", error.message);
    ck_assert_int_eq(ak_meta_u32(p, "one.f32.0", 0, &u, &error), AKUNU_ERROR_FORMAT);
    ck_assert_int_eq(ak_meta_float(p, "one.f64.0", 0, &f, &error), AKUNU_OK);
    ck_assert(f == 0.1f);
    ck_assert_int_eq(ak_meta_float(p, "one.u8.1", 0, &f, &error), AKUNU_OK);
    ck_assert(f == 255.0f);
    ck_assert_int_eq(ak_meta_float(p, "one.f64.1", 0, &f, &error), AKUNU_ERROR_FORMAT);
    ck_assert_int_eq(ak_meta_float(p, "many.f32", 0, &f, &error), AKUNU_ERROR_FORMAT);
    ck_assert_msg(strstr(error.message, "an array of 2 × float"), "%s", error.message);
    ck_assert_int_eq(ak_meta_bool(p, "one.bool.1", false, &b, &error), AKUNU_OK);
    ck_assert(b);
    ck_assert_int_eq(ak_meta_bool(p, "one.u8.0", false, &b, &error), AKUNU_ERROR_FORMAT);
    ck_assert_int_eq(ak_meta_text(p, "one.string.1", &text, &error), AKUNU_OK);
    ck_assert_uint_eq(text.n, 13);
    ck_assert_int_eq(ak_meta_text(p, "absent", &text, &error), AKUNU_OK);
    ck_assert_ptr_null(text.bytes);
    ak_provider_close(p);
}
END_TEST

/* The specification has 0 and 1. */
START_TEST(bool_of_2)
{
    struct test_bytes b = { 0 };
    struct ak_provider *p;
    struct ak_error error;
    test_append(&b, "GGUF", 4);
    test_append_u32(&b, 3);
    test_append_u64(&b, 0);
    test_append_u64(&b, 1);
    test_append_text(&b, "a.flag");
    test_append_u32(&b, 7);
    test_append(&b, "\2", 1);
    ck_assert_int_eq(test_open(b, &p, &error), AKUNU_ERROR_FORMAT);
    ck_assert_msg(strstr(error.message, "a.flag") && strstr(error.message, "2"), "%s",
                  error.message);
    free(b.data);
}
END_TEST

/* An array of two arrays, of which the second has three elements. */
START_TEST(nested_array)
{
    struct test_bytes b = { 0 };
    struct ak_provider *p;
    struct ak_meta array, inner, element;
    test_append(&b, "GGUF", 4);
    test_append_u32(&b, 3);
    test_append_u64(&b, 0);
    test_append_u64(&b, 1);
    test_append_text(&b, "a.table");
    test_append_u32(&b, 9);
    test_append_u32(&b, 9);
    test_append_u64(&b, 2);
    test_append_u32(&b, 8);
    test_append_u64(&b, 1);
    test_append_text(&b, "one");
    test_append_u32(&b, 5);
    test_append_u64(&b, 3);
    for (uint32_t i = 0; i < 3; i++)
        test_append_u32(&b, (uint32_t)-7 + i);
    ck_assert_int_eq(test_open(b, &p, NULL), AKUNU_OK);
    ck_assert(ak_provider_find_meta(p, "a.table", &array));
    ck_assert_int_eq(array.element_kind, AK_META_ARRAY);
    ck_assert(ak_provider_element(p, &array, 1, &inner));
    ck_assert_int_eq(inner.kind, AK_META_ARRAY);
    ck_assert_uint_eq(inner.n, 3);
    ck_assert(ak_provider_element(p, &inner, 2, &element));
    ck_assert_int_eq(element.as.integer, -5);
    ck_assert(!ak_provider_element(p, &inner, 3, &element));
    ck_assert(ak_provider_element(p, &array, 0, &inner));
    ck_assert(ak_provider_element(p, &inner, 0, &element));
    ck_assert(element.n == 3 && memcmp(element.as.string, "one", 3) == 0);
    ak_provider_close(p);
    free(b.data);
}
END_TEST

static void walk_in_thread(void *context, unsigned thread)
{
    (void)thread;
    walk(context);
}

/* An opened provider may be read by any number of threads. */
START_TEST(read_by_threads)
{
    struct ak_pool *pool;
    ck_assert_int_eq(ak_pool_create(4, &pool, NULL), AKUNU_OK);
    for (int i = 0; i < 20; i++) {
        struct ak_provider *p = open_data("gguf/good.gguf");
        ak_pool_run(pool, walk_in_thread, p);
        ak_provider_close(p);
    }
    ak_pool_free(pool);
}
END_TEST

/* The arrays as the file has them; a file without a vocabulary says so. */
START_TEST(vocabulary)
{
    struct ak_provider *p = open_data("gguf/good.gguf");
    struct ak_vocab vocab, again;
    ck_assert_int_eq(ak_provider_vocab(p, &vocab, NULL), AKUNU_OK);
    ck_assert(vocab.model.n == 5 && memcmp(vocab.model.bytes, "llama", 5) == 0);
    ck_assert_uint_eq(vocab.n_tokens, 40);
    ck_assert(vocab.tokens[3].n == 3 && memcmp(vocab.tokens[3].bytes, "▁", 3) == 0);
    ck_assert(vocab.scores[39] == -39.0f);
    ck_assert_int_eq(vocab.types[0], 2);
    ck_assert_int_eq(vocab.bos, 1);
    ck_assert_int_eq(vocab.eos, 2);
    ck_assert_int_eq(vocab.eot, -1);
    ck_assert_int_eq(vocab.add_bos, -1);
    ck_assert_ptr_null(vocab.merges);
    ck_assert_int_eq(ak_provider_vocab(p, &again, NULL), AKUNU_OK);
    ck_assert_ptr_eq(vocab.tokens, again.tokens);
    ak_provider_close(p);

    p = open_data("gguf/kinds.gguf");
    ck_assert_int_eq(ak_provider_vocab(p, &vocab, NULL), AKUNU_OK);
    ck_assert_uint_eq(vocab.model.n, 0);
    ck_assert_int_eq(vocab.bos, -1);
    ak_provider_close(p);
}
END_TEST

/* ---- Splits ------------------------------------------------------------- */
START_TEST(split)
{
    check_tensors("gguf/split-00001-of-00003.gguf", "gguf/split.tensors", 4);
    struct ak_provider *p;
    struct ak_error error;
    ck_assert_int_eq(ak_provider_open(test_path("gguf/split-00002-of-00003.gguf"), &p, &error),
                     AKUNU_ERROR_FORMAT);
    ck_assert_msg(strstr(error.message, "part 2") &&
                      strstr(error.message, "split-00001-of-00003.gguf"),
                  "%s", error.message);
}
END_TEST

static void write_file(const char *path, struct test_bytes bytes)
{
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes.data, 1, bytes.n, f), bytes.n);
    fclose(f);
}

/* A part that is missing, and one that is another, are named. */
START_TEST(split_with_a_wrong_part)
{
    char folder[] = "/tmp/akunu-test-XXXXXX", paths[3][64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    struct test_bytes parts[3];
    for (int i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof name, "gguf/split-%05d-of-00003.gguf", i + 1);
        parts[i] = test_read(name);
        snprintf(paths[i], sizeof paths[i], "%s/m-%05d-of-00003.gguf", folder, i + 1);
    }
    struct ak_provider *p;
    struct ak_error error;
    write_file(paths[0], parts[0]);
    write_file(paths[1], parts[1]);
    ck_assert_int_eq(ak_provider_open(paths[0], &p, &error), AKUNU_ERROR_FORMAT);
    ck_assert_msg(strstr(error.message, "part 3 of 3") &&
                      strstr(error.message, "m-00003-of-00003.gguf: no such file"),
                  "%s", error.message);
    write_file(paths[2], parts[1]);
    ck_assert_int_eq(ak_provider_open(paths[0], &p, &error), AKUNU_ERROR_FORMAT);
    ck_assert_msg(strstr(error.message, "m-00003-of-00003.gguf") &&
                      strstr(error.message, "part 2 of 3"),
                  "%s", error.message);
    write_file(paths[2], parts[2]);
    ck_assert_msg(ak_provider_open(paths[0], &p, &error) == AKUNU_OK, "%s", error.message);
    ck_assert_uint_eq(ak_provider_bytes(p), parts[0].n + parts[1].n + parts[2].n);
    ak_provider_close(p);
    for (int i = 0; i < 3; i++) {
        unlink(paths[i]);
        free(parts[i].data);
    }
    rmdir(folder);
}
END_TEST

/* ---- What is not a GGUF file ----------------------------------------------- */
static void check_refused(const char *path, ak_status wanted, const char *part)
{
    struct ak_provider *p;
    struct ak_error error;
    ak_status status = ak_provider_open(path, &p, &error);
    ck_assert_msg(status == wanted, "%s: status %d", path, status);
    ck_assert_msg(strncmp(error.message, path, strlen(path)) == 0 && strstr(error.message, part),
                  "%s", error.message);
}

START_TEST(other_things)
{
    char folder[] = "/tmp/akunu-test-XXXXXX", path[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    check_refused(folder, AKUNU_ERROR_FORMAT, "empty folder");
    check_refused("/dev/null", AKUNU_ERROR_FORMAT, "device");
    check_refused("/nowhere/model.gguf", AKUNU_ERROR_FORMAT, "no such file");

    snprintf(path, sizeof path, "%s/pipe", folder);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    check_refused(path, AKUNU_ERROR_FORMAT, "pipe");
    unlink(path);

    snprintf(path, sizeof path, "%s/loop", folder);
    ck_assert_int_eq(symlink(path, path), 0);
    check_refused(path, AKUNU_ERROR_FORMAT, "loop");
    unlink(path);

    snprintf(path, sizeof path, "%s/model.gguf", folder);
    uint8_t safetensors[] = "\x0a\0\0\0\0\0\0\0{\"a\":1}   ", whisper[] = "lmgg\0\0\0\0";
    write_file(path, (struct test_bytes){ .data = safetensors, .n = sizeof safetensors });
    check_refused(path, AKUNU_ERROR_FORMAT, "config.json is missing");
    write_file(path, (struct test_bytes){ .data = whisper, .n = sizeof whisper });
    check_refused(path, AKUNU_ERROR_FORMAT, "n_vocab");
    check_refused(folder, AKUNU_ERROR_FORMAT, "model.gguf");
    unlink(path);

    snprintf(path, sizeof path, "%s/config.json", folder);
    write_file(path, (struct test_bytes){ .data = whisper, .n = 1 });
    check_refused(folder, AKUNU_ERROR_FORMAT, "config.json");
    unlink(path);

    /* The name does not matter. */
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    struct test_bytes good = test_read("gguf/good.gguf");
    struct ak_provider *p;
    write_file(path, good);
    ck_assert_int_eq(ak_provider_open(path, &p, NULL), AKUNU_OK);
    ak_provider_close(p);
    unlink(path);
    free(good.data);
    rmdir(folder);
}
END_TEST

/* ---- Size --------------------------------------------------------------- */
/* A vocabulary of 150,000 tokens and 300 tensors of 14 MiB, all but the header a hole. */
static struct test_bytes large_header(uint64_t *file_bytes)
{
    enum { N_TOKENS = 150000, N_TENSORS = 300 };
    const uint64_t rows = 3584, cols = 1024;
    struct test_bytes b = { 0 };
    char name[64];
    test_append(&b, "GGUF", 4);
    test_append_u32(&b, 3);
    test_append_u64(&b, N_TENSORS);
    test_append_u64(&b, 2);
    test_append_text(&b, "tokenizer.ggml.model");
    test_append_u32(&b, 8);
    test_append_text(&b, "gpt2");
    test_append_text(&b, "tokenizer.ggml.tokens");
    test_append_u32(&b, 9);
    test_append_u32(&b, 8);
    test_append_u64(&b, N_TOKENS);
    for (int i = 0; i < N_TOKENS; i++) {
        snprintf(name, sizeof name, "t%d", i);
        test_append_text(&b, name);
    }
    for (uint64_t i = 0; i < N_TENSORS; i++) {
        snprintf(name, sizeof name, "blk.%d.ffn_up.weight", (int)i);
        test_append_text(&b, name);
        test_append_u32(&b, 2);
        test_append_u64(&b, cols);
        test_append_u64(&b, rows);
        test_append_u32(&b, 0);
        test_append_u64(&b, i * rows * cols * 4);
    }
    *file_bytes = ((uint64_t)b.n + 31) / 32 * 32 + N_TENSORS * rows * cols * 4;
    return b;
}

static long resident_bytes(void)
{
    long pages = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%ld %ld", &pages, &resident) != 2)
        resident = 0;
    if (f)
        fclose(f);
    return resident * sysconf(_SC_PAGESIZE);
}

/* Opening touches the header and nothing else; how fast it is, is measured, not tested. */
START_TEST(four_gigabytes)
{
    char path[] = "/tmp/akunu-test-XXXXXX";
    uint64_t bytes;
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    struct test_bytes header = large_header(&bytes);
    ck_assert_uint_gt(bytes, UINT64_C(4) << 30);
    ck_assert_int_eq(write(fd, header.data, header.n), (ssize_t)header.n);
    free(header.data);
    int made = ftruncate(fd, (off_t)bytes);
    close(fd);
    long grown = 0;
    for (int i = 0; made == 0 && i < 2; i++) {
        struct ak_provider *p;
        struct ak_error error;
        long before = resident_bytes();
        ak_status status = ak_provider_open(path, &p, &error);
        grown = resident_bytes() - before;
        ck_assert_msg(status == AKUNU_OK, "%s", error.message);
        ck_assert_uint_eq(ak_provider_n_tensors(p), 300);
        ak_provider_close(p);
    }
    unlink(path);
    if (made != 0)
        return;                 /* a file system without files of that size */
    if (!getenv("AK_EMULATED")) /* an emulator has pages of its own */
        ck_assert_msg(grown < 20 << 20, "%ld bytes", grown);
}
END_TEST

/* ---- The public calls --------------------------------------------------- */
static char nothing_failed;

static void *nothing_failed_yet(void *user)
{
    (void)user;
    return akunu_last_error()[0] == '\0' && akunu_last_status() == AKUNU_OK ? &nothing_failed :
                                                                              NULL;
}

START_TEST(public_errors)
{
    /* a thread of its own: other tests may have failed in this one */
    pthread_t thread;
    void *fine = NULL;
    ck_assert_int_eq(pthread_create(&thread, NULL, nothing_failed_yet, NULL), 0);
    ck_assert_int_eq(pthread_join(thread, &fine), 0);
    ck_assert_ptr_nonnull(fine);
    ck_assert_ptr_null(akunu_file_open("/nowhere/model.gguf"));
    ck_assert_int_eq(akunu_last_status(), AKUNU_ERROR_FORMAT);
    ck_assert_ptr_nonnull(strstr(akunu_last_error(), "/nowhere/model.gguf"));
    ck_assert_ptr_null(akunu_file_open(NULL));
    ck_assert_int_eq(akunu_last_status(), AKUNU_ERROR_ARGUMENT);
    ck_assert_str_eq(akunu_status_name(AKUNU_OK), "ok");
    ck_assert_str_eq(akunu_status_name(AKUNU_ERROR_SYSTEM), "system");
    ck_assert_str_eq(akunu_status_name((enum akunu_status)99), "unknown");
    akunu_file_free(NULL);

    struct akunu_file *file = akunu_file_open(test_path("gguf/good.gguf"));
    ck_assert_ptr_nonnull(file);
    struct akunu_tensor_info info;
    float row[64], rows[128];
    ck_assert_int_eq(akunu_file_get_tensor(file, 12, &info, sizeof info), AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(akunu_file_get_tensor(file, 11, &info, sizeof info), AKUNU_OK);
    ck_assert_str_eq(info.canonical, "layers.0.ffn.down.weight");
    ck_assert_int_eq(akunu_file_read_f32(file, 11, 0, 128, rows), AKUNU_OK);
    ck_assert_int_eq(akunu_file_read_f32(file, 11, 64, 64, row), AKUNU_OK);
    ck_assert_mem_eq(row, rows + 64, sizeof row);
    ck_assert_int_eq(akunu_file_read_f32(file, 11, 64 * 32, 0, NULL), AKUNU_OK);
    ck_assert_int_eq(akunu_file_read_f32(file, 11, 64 * 32, 64, row), AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(akunu_file_read_f32(file, 11, 64, 32, row), AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(akunu_file_read_f32(file, 11, UINT64_MAX / 64 * 64, 128, row),
                     AKUNU_ERROR_ARGUMENT);
    akunu_file_free(file);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gguf");
    TCase *t = tcase_create("gguf");
    suite_add_tcase(suite, t);
    tcase_add_test(t, hostile);
    tcase_add_test(t, alignment);
    tcase_add_test(t, cut_anywhere);
    tcase_add_test(t, mutated);
    tcase_add_test(t, tensor_types);
    tcase_add_test(t, scale_beside_nvfp4);
    tcase_add_test(t, tensors);
    tcase_add_test(t, version_2);
    tcase_add_test(t, roles);
    tcase_add_test(t, stream_stops);
    tcase_add_test(t, metadata);
    tcase_add_test(t, typed_access);
    tcase_add_test(t, bool_of_2);
    tcase_add_test(t, nested_array);
    tcase_add_test(t, vocabulary);
    tcase_add_test(t, read_by_threads);
    tcase_add_test(t, split);
    tcase_add_test(t, split_with_a_wrong_part);
    tcase_add_test(t, other_things);
    tcase_add_test(t, four_gigabytes);
    tcase_add_test(t, public_errors);
    return test_run(suite);
}
