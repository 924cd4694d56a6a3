/* OpenAI's Whisper checkpoints: what is in them, rows and columns, the vocabulary beside them; and
 * that hostile archives and pickles are refused by what is wrong with them. The files are made
 * here, byte by byte, as torch.save() does it. */
#include "tests/st_files.h"
#include "tests/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "files/weights/composed.h"
#include "files/weights/torch/torch.h"

enum { N_VOCAB = 6, CTX = 5, STATE = 4, FFN = 8, MELS = 2, ENTRIES_MAX = 128, TEXT_BYTES = 96 };

/* ---- Archives ----------------------------------------------------------- */
static void append_u16(struct test_bytes *out, unsigned value)
{
    const uint8_t bytes[2] = { (uint8_t)value, (uint8_t)(value >> 8) };
    test_append(out, bytes, 2);
}

struct archive {
    struct test_bytes bytes, directory;
    unsigned n;
    bool zip64;
};

static void add_entry(struct archive *a, const char *name, const void *data, size_t n)
{
    unsigned n_name = (unsigned)strlen(name);
    uint64_t at = a->bytes.n;
    uint32_t size = a->zip64 ? UINT32_MAX : (uint32_t)n;
    test_append_u32(&a->bytes, 0x04034b50);
    test_append(&a->bytes, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 14);
    test_append_u32(&a->bytes, (uint32_t)n);
    test_append_u32(&a->bytes, (uint32_t)n);
    append_u16(&a->bytes, n_name);
    append_u16(&a->bytes, 3); /* padding, which only the local header has */
    test_append(&a->bytes, name, n_name);
    test_append(&a->bytes, "pad", 3);
    test_append(&a->bytes, data, n);
    test_append_u32(&a->directory, 0x02014b50);
    test_append(&a->directory, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
    test_append_u32(&a->directory, size);
    test_append_u32(&a->directory, size);
    append_u16(&a->directory, n_name);
    append_u16(&a->directory, a->zip64 ? 4 + 28 : 0);
    test_append(&a->directory, "\0\0\0\0\0\0\0\0\0\0", 10);
    test_append_u32(&a->directory, a->zip64 ? UINT32_MAX : (uint32_t)at);
    test_append(&a->directory, name, n_name);
    if (a->zip64) {
        append_u16(&a->directory, 0x7777); /* another field first */
        append_u16(&a->directory, 0);
        append_u16(&a->directory, 1);
        append_u16(&a->directory, 24);
        test_append_u64(&a->directory, n);
        test_append_u64(&a->directory, n);
        test_append_u64(&a->directory, at);
    }
    a->n++;
}

static struct test_bytes finish(struct archive *a)
{
    uint64_t at = a->bytes.n, n = a->directory.n;
    test_append(&a->bytes, a->directory.data, a->directory.n);
    if (a->zip64) {
        uint64_t end = a->bytes.n;
        test_append_u32(&a->bytes, 0x06064b50);
        test_append(&a->bytes, "\x2c\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20);
        test_append_u64(&a->bytes, a->n);
        test_append_u64(&a->bytes, a->n);
        test_append_u64(&a->bytes, n);
        test_append_u64(&a->bytes, at);
        test_append_u32(&a->bytes, 0x07064b50);
        test_append_u32(&a->bytes, 0);
        test_append_u64(&a->bytes, end);
        test_append_u32(&a->bytes, 1);
    }
    test_append_u32(&a->bytes, 0x06054b50);
    test_append_u32(&a->bytes, 0);
    append_u16(&a->bytes, a->zip64 ? 0xffff : a->n);
    append_u16(&a->bytes, a->zip64 ? 0xffff : a->n);
    test_append_u32(&a->bytes, a->zip64 ? UINT32_MAX : (uint32_t)n);
    test_append_u32(&a->bytes, a->zip64 ? UINT32_MAX : (uint32_t)at);
    append_u16(&a->bytes, 0);
    free(a->directory.data);
    return a->bytes;
}

/* ---- Pickles ------------------------------------------------------------ */
static void add_text(struct test_bytes *out, const char *text)
{
    test_append(out, "X", 1);
    test_append_u32(out, (uint32_t)strlen(text));
    test_append(out, text, strlen(text));
}

static void add_int(struct test_bytes *out, uint32_t value)
{
    test_append(out, "J", 1);
    test_append_u32(out, value);
}

static void add_global(struct test_bytes *out, const char *name)
{
    test_append(out, "c", 1);
    test_append(out, name, strlen(name));
    test_append(out, "\n", 1);
}

struct made {
    const char *name;
    uint32_t rows, cols, kernel;
    bool columns; /* column after column */
    const char *storage;
};

static void add_tensor(struct test_bytes *out, const struct made *t, const char *name,
                       const char *key)
{
    uint32_t shape[3] = { t->rows, t->cols, t->kernel },
             n_dims = 1u + (t->cols > 0) + (t->kernel > 0), n = 1, strides[3];
    for (uint32_t d = n_dims; d-- > 0; n *= shape[d])
        strides[d] = n;
    if (t->columns) {
        strides[0] = 1;
        strides[1] = t->rows;
    }
    add_text(out, name);
    add_global(out, "torch._utils\n_rebuild_tensor_v2");
    test_append(out, "((", 2);
    add_text(out, "storage");
    add_global(out, t->storage);
    add_text(out, key);
    add_text(out, "cpu");
    add_int(out, n);
    test_append(out, "tQ", 2);
    add_int(out, 0);
    test_append(out, "(", 1);
    for (uint32_t d = 0; d < n_dims; d++)
        add_int(out, shape[d]);
    test_append(out, "t(", 2);
    for (uint32_t d = 0; d < n_dims; d++)
        add_int(out, strides[d]);
    test_append(out, "t\x89", 2);
    add_global(out, "collections\nOrderedDict");
    test_append(out, ")RtR", 4);
}

static const char f32[] = "torch\nFloatStorage", f16[] = "torch\nHalfStorage",
                  bf16[] = "torch\nBFloat16Storage";
static const struct made others[] = {
    { "encoder.conv1.weight", STATE, MELS, 3, false, f32 },
    { "encoder.conv1.bias", STATE, 0, 0, false, f32 },
    { "encoder.conv2.weight", STATE, STATE, 3, false, f32 },
    { "encoder.conv2.bias", STATE, 0, 0, false, f32 },
    { "encoder.positional_embedding", CTX, STATE, 0, false, f32 },
    { "encoder.ln_post.weight", STATE, 0, 0, false, f32 },
    { "encoder.ln_post.bias", STATE, 0, 0, false, f32 },
    { "decoder.token_embedding.weight", N_VOCAB, STATE, 0, false, f16 },
    { "decoder.positional_embedding", CTX, STATE, 0, false, f32 },
    { "decoder.ln.weight", STATE, 0, 0, false, f32 },
    { "decoder.ln.bias", STATE, 0, 0, false, f32 },
};
static const struct made of_layers[] = {
    { "attn_ln.weight", STATE, 0, 0, false, f32 },
    { "attn_ln.bias", STATE, 0, 0, false, f32 },
    { "attn.query.weight", STATE, STATE, 0, false, bf16 },
    { "attn.query.bias", STATE, 0, 0, false, f32 },
    { "attn.key.weight", STATE, STATE, 0, true, f16 },
    { "attn.value.weight", STATE, STATE, 0, true, bf16 },
    { "attn.value.bias", STATE, 0, 0, false, f32 },
    { "attn.out.weight", STATE, STATE, 0, true, f32 },
    { "attn.out.bias", STATE, 0, 0, false, f32 },
    { "mlp_ln.weight", STATE, 0, 0, false, f32 },
    { "mlp_ln.bias", STATE, 0, 0, false, f32 },
    { "mlp.0.weight", FFN, STATE, 0, true, f16 },
    { "mlp.0.bias", FFN, 0, 0, false, f32 },
    { "mlp.2.weight", STATE, FFN, 0, false, f16 },
    { "mlp.2.bias", STATE, 0, 0, false, f32 },
};
enum {
    N_OTHERS = sizeof others / sizeof *others,
    N_OF_LAYERS = sizeof of_layers / sizeof *of_layers,
    N_CROSS = 9
};

/* The file in the making: tensors have their index as the key of their data. */
struct checkpoint {
    struct archive archive;
    struct test_bytes pickle;
    int n;
};

/* Element i of a storage is i. */
static void add_data(struct checkpoint *c, const struct made *t, const char *name)
{
    uint32_t n = t->rows * (t->cols ? t->cols : 1) * (t->kernel ? t->kernel : 1);
    struct test_bytes data = { 0 };
    char key[16], path[32];
    for (uint32_t i = 0; i < n; i++) {
        uint8_t bytes[4];
        float x = (float)i;
        enum ak_quant_type type = t->storage == f32 ? AK_QUANT_F32 :
                                  t->storage == f16 ? AK_QUANT_F16 :
                                                      AK_QUANT_BF16;
        ak_quant_info(type)->quantize(&x, bytes, 1);
        test_append(&data, bytes, ak_quant_info(type)->block_bytes);
    }
    snprintf(key, sizeof key, "%d", c->n++);
    snprintf(path, sizeof path, "m/data/%s", key);
    add_tensor(&c->pickle, t, name, key);
    add_entry(&c->archive, path, data.data, data.n);
    free(data.data);
}

static void add_layer(struct checkpoint *c, const char *side)
{
    char name[TEXT_BYTES];
    for (int i = 0; i < N_OF_LAYERS; i++) {
        snprintf(name, sizeof name, "%s.blocks.0.%s", side, of_layers[i].name);
        add_data(c, &of_layers[i], name);
        if (strcmp(side, "decoder") != 0 || i >= N_CROSS)
            continue;
        snprintf(name, sizeof name, "%s.blocks.0.cross_%s", side, of_layers[i].name);
        add_data(c, &of_layers[i], name);
    }
}

static void add_sizes(struct test_bytes *out, uint32_t vocab)
{
    static const char *const names[] = { "n_mels",       "n_audio_ctx",   "n_audio_state",
                                         "n_audio_head", "n_audio_layer", "n_text_ctx",
                                         "n_text_state", "n_text_head",   "n_text_layer" };
    static const uint32_t sizes[] = { MELS, CTX, STATE, 2, 1, CTX, STATE, 2, 1 };
    add_text(out, "dims");
    test_append(out, "}(", 2);
    add_text(out, "n_vocab");
    add_int(out, vocab);
    for (int i = 0; i < 9; i++) {
        add_text(out, names[i]);
        add_int(out, sizes[i]);
    }
    test_append(out, "u", 1);
}

/* order: the entry byteorder; NULL: none. */
static struct test_bytes make(bool zip64, uint32_t vocab, const char *order)
{
    struct checkpoint c = { .archive = { .zip64 = zip64 } };
    test_append(&c.pickle, "\x80\x02}q\0(", 6);
    add_sizes(&c.pickle, vocab);
    add_text(&c.pickle, "model_state_dict");
    add_global(&c.pickle, "collections\nOrderedDict");
    test_append(&c.pickle, ")R(", 3);
    for (int i = 0; i < N_OTHERS; i++)
        add_data(&c, &others[i], others[i].name);
    add_layer(&c, "encoder");
    add_layer(&c, "decoder");
    test_append(&c.pickle, "u}bu.", 5); /* the dict has an empty state */
    add_entry(&c.archive, "m/data.pkl", c.pickle.data, c.pickle.n);
    if (order)
        add_entry(&c.archive, "m/byteorder", order, strlen(order));
    free(c.pickle.data);
    return finish(&c.archive);
}

/* ---- Contents ----------------------------------------------------------- */
static float element_of(const struct ak_view *v, uint32_t row, uint32_t col)
{
    float values[2 * FFN];
    if (v->composed_tensor)
        ak_composed_dequantize(v->composed_tensor, row, 0, v->cols, values);
    else
        ak_quant_info(v->type)->dequantize((const uint8_t *)v->plane[0].data +
                                               (size_t)row * v->cols *
                                                   ak_quant_info(v->type)->block_bytes,
                                           values, v->cols);
    return values[col];
}

START_TEST(contents)
{
    struct test_bytes bytes = make(_i == 1, N_VOCAB, _i == 1 ? "little" : NULL);
    struct ak_provider *p;
    struct ak_error error = { 0 };
    struct ak_tensor tensor;
    struct ak_meta meta;
    struct ak_view view;
    ck_assert_msg(test_open(bytes, &p, &error) == AKUNU_OK, "%s", error.message);
    ck_assert_str_eq(p->format->name, "whisper-pt");
    ck_assert_uint_eq(ak_provider_n_tensors(p), N_OTHERS + 2 * N_OF_LAYERS + N_CROSS);
    for (size_t i = 0; ak_provider_tensor(p, i, &tensor); i++)
        ck_assert(tensor.has_role);
    ck_assert(ak_provider_find_meta(p, "whisper.decoder.block_count", &meta) &&
              meta.as.unsigned_integer == 1);
    ck_assert(ak_provider_find_meta(p, "whisper.encoder.feed_forward_length", &meta) &&
              meta.as.unsigned_integer == FFN);
    ck_assert(!ak_provider_find_meta(p, "ftype", &meta) &&
              !ak_provider_find_meta(p, "whisper.encoder.mel_filters", &meta));

    ck_assert(ak_provider_find(p, AK_ROLE_FFN_DOWN, 0, NULL, &view));
    ck_assert(view.type == AK_QUANT_F16 && view.rows == STATE && view.cols == FFN &&
              !view.composed_tensor && (uintptr_t)view.plane[0].data % 2 == 0);
    ck_assert(element_of(&view, 1, 2) == FFN + 2);
    /* of columns: element [row, column] is at column · rows + row */
    ck_assert(ak_provider_find(p, AK_ROLE_FFN_UP, 0, NULL, &view));
    ck_assert(view.rows == FFN && view.cols == STATE && view.composed_tensor);
    ck_assert(element_of(&view, 5, 2) == 2 * FFN + 5);
    ck_assert(ak_provider_find(p, AK_ROLE_CROSS_ATTENTION_V, 0, NULL, &view));
    ck_assert(view.type == AK_QUANT_BF16 && element_of(&view, 3, 1) == STATE + 3);
    ck_assert(ak_provider_find(p, AK_ROLE_ENCODER_ATTENTION_OUTPUT, 0, NULL, &view));
    ck_assert(view.type == AK_QUANT_F32 && element_of(&view, 0, 3) == 3 * STATE);
    ak_provider_close(p);
    free(bytes.data);
}
END_TEST

/* tests/golden/checkpoint.py: parameters in a dict of the model's, with the names of a wrapper,
 * between an optimizer, settings and objects of classes that are not loaded. */
START_TEST(file_of_a_trainer)
{
    enum { WIDE = 2 * FFN }; /* Whisper's own feed-forward network is four times as wide */
    struct ak_provider *p;
    struct ak_error error = { 0 };
    struct ak_view view;
    ck_assert_msg(ak_provider_open(test_path("torch/trainer.pt"), &p, &error) == AKUNU_OK, "%s",
                  error.message);
    ck_assert_uint_eq(ak_provider_n_tensors(p), N_OTHERS + 2 * N_OF_LAYERS + N_CROSS);
    ck_assert(ak_provider_find(p, AK_ROLE_FFN_UP, 0, NULL, &view));
    ck_assert(view.rows == WIDE && view.cols == STATE && view.composed_tensor);
    ck_assert(element_of(&view, 5, 2) == 2 * WIDE + 5);
    ck_assert(ak_provider_find(p, AK_ROLE_FFN_DOWN, 0, NULL, &view));
    ck_assert(view.type == AK_QUANT_F32 && element_of(&view, 1, 2) == WIDE + 2);
    ck_assert(ak_provider_find(p, AK_ROLE_ATTENTION_Q, 0, NULL, &view));
    ck_assert(view.type == AK_QUANT_BF16 && element_of(&view, 3, 1) == 3 * STATE + 1);
    /* two of one storage */
    ck_assert(ak_provider_find(p, AK_ROLE_OUTPUT_NORM, AK_ROLE_NO_LAYER, NULL, &view));
    ck_assert(element_of(&view, 0, 1) == 1);
    ck_assert(ak_provider_find(p, AK_ROLE_OUTPUT_NORM_BIAS, AK_ROLE_NO_LAYER, NULL, &view));
    ck_assert(element_of(&view, 0, 1) == 5);
    ak_provider_close(p);
    ck_assert_int_eq(ak_provider_open(test_path("torch/old.pt"), &p, &error),
                     AKUNU_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(error.message, "before version 1.6; save it again"));
}
END_TEST

/* ---- The vocabulary beside it ------------------------------------------- */
START_TEST(vocabulary)
{
    static const struct {
        const char *file, *text, *refused; /* refused when it is opened, or when asked for */
    } cases[] = {
        { "gpt2.tiktoken", "IQ== 0\nIGE= 1\nYWJj 2\n", NULL },
        { "gpt2.tiktoken", "IQ== 0\nIGE= 1\nYWJj 2", NULL },
        { "gpt2.tiktoken", "IQ== 0\nIGE= 2\n", "line 2 is no token in base64 with the rank 1" },
        { "gpt2.tiktoken", "IQ= 0\n", "line 1 is no token" },
        { "gpt2.tiktoken", "I*== 0\n", "line 1 is no token" },
        { "gpt2.tiktoken", "==== 0\n", "line 1 is no token" },
        { "gpt2.tiktoken", "IQ==\n", "line 1 is no token" },
        { "gpt2.tiktoken", "\n", "line 1 is no token" },
        { "gpt2.tiktoken", "IQ== 4294967296\n", "line 1 is no token" },
        { "gpt2.tiktoken", "IQ== 0\nIQ== 1\nIQ== 2\nIQ== 3\nIQ== 4\nIQ== 5\nIQ== 6\n",
          "has more tokens than n_vocab, 6" },
        { "multilingual.tiktoken", "IQ== 0\n", "put gpt2.tiktoken beside it" },
    };
    struct test_folder folder = test_folder_begin();
    struct test_bytes bytes = make(false, N_VOCAB, NULL);
    struct ak_provider *p = NULL;
    struct ak_error error = { 0 };
    struct ak_vocab vocab;
    test_write(&folder, "model.pt", bytes.data, bytes.n);
    test_write_text(&folder, cases[_i].file, cases[_i].text);
    ak_status status = ak_provider_open(test_in(&folder, "model.pt"), &p, &error);
    if (status == AKUNU_OK)
        status = ak_provider_vocab(p, &vocab, &error);
    if (status == AKUNU_OK && vocab.model.n == 0)
        status = ak_provider_fail_vocab(p, &error);
    if (cases[_i].refused) {
        ck_assert_int_eq(status, AKUNU_ERROR_FORMAT);
        ck_assert_msg(strstr(error.message, cases[_i].refused), "%s", error.message);
    } else {
        ck_assert_msg(status == AKUNU_OK, "%s", error.message);
        ck_assert(vocab.n_tokens == 3 && vocab.tokens[0].n == 1 && vocab.tokens[2].n == 3 &&
                  memcmp(vocab.tokens[0].bytes, "! aabc", 6) == 0);
    }
    ak_provider_close(p);
    free(bytes.data);
    test_folder_end(&folder);
}
END_TEST

/* A tokenizer.json comes before ranks, which are then not even read. */
START_TEST(tokenizer_json)
{
    struct test_folder folder = test_folder_begin();
    struct test_bytes bytes = make(false, N_VOCAB, NULL);
    struct ak_provider *p = NULL;
    struct ak_error error = { 0 };
    struct ak_text text;
    test_write(&folder, "model.pt", bytes.data, bytes.n);
    test_write_text(&folder, "gpt2.tiktoken", "nonsense");
    test_write_text(&folder, "tokenizer.json", "{}");
    ck_assert_msg(ak_provider_open(test_in(&folder, "model.pt"), &p, &error) == AKUNU_OK, "%s",
                  error.message);
    ck_assert(ak_provider_file(p, "tokenizer.json", &text) && text.n == 2);
    ck_assert(!ak_provider_file(p, "config.json", &text));
    ck_assert(ak_provider_part(p, 1) && !ak_provider_part(p, 2));
    ak_provider_close(p);
    free(bytes.data);
    test_folder_end(&folder);
}
END_TEST

/* ---- Hostile pickles ---------------------------------------------------- */
#define STORAGE(n) "(X\7\0\0\0storagectorch\nHalfStorage\nX\1\0\0\0aX\3\0\0\0cpuJ" n "tQ"
#define TENSOR(offset, sizes, strides)                                                             \
    "ctorch._utils\n_rebuild_tensor_v2\n(" STORAGE("\x10\0\0\0") offset sizes strides "\x89NtR."

START_TEST(hostile_pickles)
{
#define P(text) text, sizeof text - 1
    static const struct {
        const char *bytes;
        size_t n;
        const char *named;
    } cases[] = {
        { P(""), "the end (byte 0) comes before the opcode STOP" },
        { P("\x80\x02}"), "the end (byte 3) comes before" },
        { P("\x80\x04."), "protocol 4; torch.save() writes 2" },
        { P("}cbuiltins\neval\n"), "the end (byte 16) comes before" },
        { P("ccollections\nOrderedDict\nNR."), "byte 26, opcode 0x52: a call of" },
        { P("N)R."), "opcode 0x52: a call of" },
        { P("ctorch._utils\n_rebuild_parameter\n)R."), "a parameter without a tensor" },
        { P("i\nos\nsystem\n"), "opcode 0x69 is none of a Whisper checkpoint's" },
        { P("\x95\1\0\0\0\0\0\0\0"), "opcode 0x95" },
        { P("}Na"), "elements for what is no list" },
        { P("](NN"), "the end (byte 4) comes before" },
        { P("N(NNe"), "elements for what is no list" },
        { P("a"), "the stack has no value" },
        { P("e"), "the stack has no mark" },
        { P("1"), "the stack has no mark" },
        { P("0"), "the stack has no value" },
        { P("G\0\0\0\0\0\0\0"), "opcode 0x47: the pickle ends inside it" },
        { P("U\5abc"), "opcode 0x55: the pickle ends inside it" },
        { P("T\xff\xff\xff\x7f"), "opcode 0x54: the pickle ends inside it" },
        { P("\x8b\xff\xff\xff\xff"), "opcode 0x8b: the pickle ends inside it" },
        { P("N\x81"), "the stack has no value" },
        { P("."), "the stack has no value" },
        { P("N(."), "the stack has no value" },
        { P("NN."), "values are left on the stack" },
        { P("t"), "the stack has no mark" },
        { P("N\x86"), "too few values" },
        { P("}(N(Nu"), "items for what is no dict" },
        { P("N(NNu"), "items for what is no dict" },
        { P("}(Nu"), "a key without a value" },
        { P("s"), "the stack has no value" },
        { P("NNNs"), "items for what is no dict" },
        { P("Nr\xff\xff\xff\x7f"), "a memo's index is beyond the next one" },
        { P("Nq\1"), "a memo's index is beyond the next one" },
        { P("q\0"), "the stack has no value" },
        { P("h\0"), "no memo has this index" },
        { P("j\xff\xff\xff\xff"), "no memo has this index" },
        { P("X\xff\xff\xff\xff"
            "abc"),
          "opcode 0x58: the pickle ends inside it" },
        { P("\x8a\xff"), "opcode 0x8a: the pickle ends inside it" },
        { P("c0123456789012345678901234567890123456789012345678901234567890123456789012345678901"
            "23456789012345678901234567890123456789012345678901234567890\n"),
          "the name of a global is too long" },
        { P("NQ"), "a persistent id that is no storage" },
        { P("(X\7\0\0\0storageNX\1\0\0\0aX\3\0\0\0cpuK\1tQ"), "no storage" },
        { P("(X\7\0\0\0storageccollections\nOrderedDict\nX\1\0\0\0aX\3\0\0\0cpuK\1tQ"),
          "no storage" },
        { P(STORAGE("\xff\xff\xff\xff")), "no storage" },
        { P(TENSOR("K\0", "K\4K\5\x86", "K\5K\1\x86")), "a tensor that leaves its storage" },
        { P(TENSOR("K\1", "K\4K\4\x86", "K\4K\1\x86")), "a tensor that leaves its storage" },
        { P(TENSOR("J\xff\xff\xff\xff", "K\4\x85", "K\1\x85")), "a tensor of other than" },
        { P(TENSOR("K\0", "J\xff\xff\xff\xff\x85", "K\1\x85")), "a tensor of a negative size" },
        { P(TENSOR("K\0", "(J\0\0\0\x40J\0\0\0\x40K\x20t", "(K\1K\1K\1t")),
          "a tensor of a negative size, or of more than 2^63 elements" },
        { P(TENSOR("J\x11\0\0\0", ")", ")")), "a tensor that leaves its storage" },
        { P(TENSOR("K\0", "K\4\x85", ")")), "other numbers of sizes and of strides" },
        { P("N}b"), "a state of what is no object" },
        { P("}b"), "a state of what is no object" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ak_pickle p;
        struct ak_error error = { 0 };
        uint8_t *bytes = malloc(cases[i].n + 1); /* so that a sanitizer sees reads beyond it */
        ck_assert_ptr_nonnull(bytes);
        memcpy(bytes, cases[i].bytes, cases[i].n);
        bytes = realloc(bytes, cases[i].n ? cases[i].n : 1);
        ak_status status = ak_pickle_read(bytes, cases[i].n, &p, &error);
        ck_assert_msg(status == AKUNU_ERROR_FORMAT || status == AKUNU_ERROR_UNSUPPORTED,
                      "pickle %zu: status %d", i, status);
        ck_assert_msg(strstr(error.message, cases[i].named), "pickle %zu: %s", i, error.message);
        ak_pickle_free(&p);
        free(bytes);
    }
}
END_TEST

/* What is beside the weights of a trainer's file becomes a value without contents, and no function
 * is called. */
START_TEST(other_values)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *what; /* NULL: a tensor of one element */
    } cases[] = {
        { P("cos\nsystem\n(X\2\0\0\0lstR."), "what a function would return" },
        { P("cos\nsystem\n)R)R."), "what a function would return" },
        { P("ccollections\nOrderedDict\n(NtR."), "what a function would return" },
        { P("ccollections\ndefaultdict\nc__builtin__\ndict\n\x85RK\0}s."),
          "what a function would return" },
        { P("]q\0(K\1Ne."), "a list" },
        { P("]Na."), "a list" },
        { P("(NN1]."), "a list" },
        { P("N(00]."), "a list" },
        { P("G\x3f\xf0\0\0\0\0\0\0."), "a real number" },
        { P("\x8a\x09\0\0\0\0\0\0\0\0\1."), "an integer of more than 64 bits" },
        { P("\x8b\1\0\0\0\1."), "an integer of more than 64 bits" },
        { P("U\2ab."), "bytes" },
        { P("T\2\0\0\0ab."), "bytes" },
        { P(TENSOR("K\0", "K\4K\4\x86", "K\5K\1\x86")), "a tensor with gaps" },
        { P(TENSOR("K\0", "K\4K\4\x86", "K\0K\0\x86")), "a tensor with gaps" },
        { P(TENSOR("K\0", "K\0\x85", "K\1\x85")), "a tensor without elements" },
        { P(TENSOR("K\0", "(K\1K\1K\1K\1K\1t", "(K\1K\1K\1K\1K\1t")),
          "a tensor of more than 4 dimensions" },
        { P("ctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storagectorch\nLongStorage\n"
            "X\1\0\0\0aX\3\0\0\0cpuK\1tQK\0))\x89NtR."),
          "a tensor of other numbers" },
        { P(TENSOR("K\xf", ")", ")")), NULL },
        { P("ctorch._utils\n_rebuild_parameter\nctorch._utils\n_rebuild_tensor\n(" STORAGE(
              "\x10\0\0\0") "K\xf))tR\x88N\x87R."),
          NULL },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ak_pickle p;
        struct ak_error error = { 0 };
        ck_assert_msg(ak_pickle_read((const uint8_t *)cases[i].bytes, cases[i].n, &p, &error) ==
                          AKUNU_OK,
                      "pickle %zu: %s", i, error.message);
        const struct ak_pickle_value *root = &p.values[p.root];
        if (cases[i].what)
            ck_assert_msg(root->kind == AK_PICKLE_OTHER &&
                              strncmp(root->as.what, cases[i].what, strlen(cases[i].what)) == 0,
                          "pickle %zu", i);
        else
            ck_assert_msg(root->kind == AK_PICKLE_TENSOR && root->as.tensor.n_dims == 0 &&
                              root->as.tensor.first == 15,
                          "pickle %zu", i);
        ak_pickle_free(&p);
    }
}
END_TEST

/* Sharing: each level of tuples has the one before it twice, which a reader that copies would need
 * 2^2000 values for; and a dict that holds itself. */
START_TEST(shared_values)
{
    struct test_bytes bytes = { 0 };
    struct ak_pickle p;
    struct ak_error error = { 0 };
    test_append(&bytes, "Nq\0", 3);
    for (uint32_t i = 1; i <= 2000; i++) {
        test_append(&bytes, "j", 1);
        test_append_u32(&bytes, i - 1);
        test_append(&bytes, "\x86r", 2);
        test_append_u32(&bytes, i);
    }
    test_append(&bytes, ".", 1);
    ck_assert_msg(ak_pickle_read(bytes.data, bytes.n, &p, &error) == AKUNU_OK, "%s", error.message);
    ck_assert_uint_eq(p.n_children, 4000);
    ak_pickle_free(&p);
    bytes.n = 0;
    test_append(&bytes, "}q\0X\1\0\0\0ah\0s.", 13);
    ck_assert_msg(ak_pickle_read(bytes.data, bytes.n, &p, &error) == AKUNU_OK, "%s", error.message);
    ck_assert_ptr_eq(ak_pickle_get(&p, p.root, "a"), &p.values[p.root]);
    ck_assert_ptr_null(ak_pickle_get(&p, p.root, "b"));
    ak_pickle_free(&p);
    free(bytes.data);
}
END_TEST

/* ---- Hostile archives --------------------------------------------------- */
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

/* Two entries; `change` bytes at an offset from the begin, or from the end if it is negative. */
START_TEST(hostile_archives)
{
    enum { LOCAL = 30, CENTRAL = 46, END = 22 };
    static const struct {
        int at;
        const char *bytes;
        size_t n;
        const char *named;
    } cases[] = {
        { -END, P("\0"), "without the record of its end" },
        { -2, P("\1"), "without the record of its end" },
        { -END + 4, P("\1"), "of several parts" },
        { -END + 8, P("\3\0\3"), "3 entries in a directory of 98 bytes" },
        { -END + 8, P("\xff\xff\xff\xff"), "65535 entries in a directory of" },
        { -END + 12, P("\xff\xff\xff\xff"), "where the record of the end begins" },
        { -END + 16, P("\xff\xff\xff\xff"), "where the record of the end begins" },
        { -END + 16, P("\0\0\0\0"), "no entry of the directory at byte 0" },
        { -END - 2 * (CENTRAL + 3), P("XX"), "no entry of the directory at byte" },
        { -END - 2 * (CENTRAL + 3) + 8, P("\1"), "entry m/a is encrypted" },
        { -END - 2 * (CENTRAL + 3) + 10, P("\x08"), "entry m/a is compressed (method 8)" },
        { -END - 2 * (CENTRAL + 3) + 20, P("\x05"), "entry m/a is stored in 5 bytes and has 4" },
        { -END - 2 * (CENTRAL + 3) + 20, P("\x7f\0\0\0\x7f"), "entry m/a has 127 bytes from" },
        { -END - 2 * (CENTRAL + 3) + 20, P("\xff\xff\xff\xff"), "lacks the ZIP64 field" },
        { -END - 2 * (CENTRAL + 3) + 28, P("\xff\xff"), "a name of 65535 bytes" },
        { -END - 2 * (CENTRAL + 3) + 28, P("\0\0"), "a name of 0 bytes" },
        { -END - 2 * (CENTRAL + 3) + 30, P("\xff\xff"), "inside the directory" },
        { -END - 2 * (CENTRAL + 3) + 42, P("\xff\xff\xff\x7f"), "m/a has no local header at" },
        { -END - 2 * (CENTRAL + 3) + 42, P("\1"), "m/a has no local header at 1" },
        { -END - 2 * (CENTRAL + 3) + 42, P("\x28"), "m/a has another name in its local header" },
        { -END - CENTRAL - 3 + CENTRAL + 2, P("a"), "m/b|m/a has another name" },
        { LOCAL + 2, P("z"), "m/a has another name" },
        { 28, P("\xff\xff"), "m/a has 4 bytes from" },
        { 28, P("\x27"), "begins inside the one before it, m/a" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct archive a = { .n = 0 };
        add_entry(&a, "m/a", "1234", 4);
        add_entry(&a, "m/b", "5678", 4);
        struct test_bytes bytes = finish(&a);
        size_t at = cases[i].at < 0 ? bytes.n - (size_t)-cases[i].at : (size_t)cases[i].at;
        memcpy(bytes.data + at, cases[i].bytes, cases[i].n);
        const char *bar = strchr(cases[i].named, '|');
        check_refused(bytes, cases[i].named, bar ? bar + 1 : cases[i].named);
        free(bytes.data);
    }
    struct archive a = { .n = 0 };
    add_entry(&a, "m/a", "1234", 4);
    add_entry(&a, "m/a", "1234", 4);
    struct test_bytes bytes = finish(&a);
    check_refused(bytes, "twice", "entry m/a is there twice");
    free(bytes.data);
}
END_TEST

/* Archives in order whose content is none of a Whisper model's. */
START_TEST(hostile_contents)
{
    static const struct {
        const char *name, *pickle;
        size_t n;
        const char *named;
    } cases[] = {
        { "data.pkl", P("N."), "without a data.pkl in a folder" },
        { "a/b/data.pkl", P("N."), "without a data.pkl in a folder" },
        { "/data.pkl", P("N."), "without a data.pkl in a folder" },
        { "m/data.pkl", P("N."), "no dict \"dims\"; of PyTorch's checkpoints only those of" },
        { "m/data.pkl", P("}X\4\0\0\0dimsNs."), "no dict \"dims\"" },
        { "m/data.pkl", P("}X\4\0\0\0dims}s."), "dims has no integer n_vocab" },
        { "m/data.pkl", P("}X\4\0\0\0dims}X\7\0\0\0n_vocabJ\xff\xff\xff\xffss."),
          "n_vocab is -1; expected 1 to 16777216" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct archive a = { .n = 0 };
        add_entry(&a, cases[i].name, cases[i].pickle, cases[i].n);
        struct test_bytes bytes = finish(&a);
        check_refused(bytes, cases[i].named, cases[i].named);
        free(bytes.data);
    }
    struct test_bytes bytes = make(false, N_VOCAB, "big");
    check_refused(bytes, "byteorder", "byteorder is \"big\"; supported: little");
    free(bytes.data);
    bytes = make(false, N_VOCAB, NULL);
    uint8_t *storage = memmem(bytes.data, bytes.n, "FloatStorage", 12);
    ck_assert_ptr_nonnull(storage);
    memcpy(storage, "Short", 5);
    check_refused(
        bytes, "integers",
        "encoder.conv1.weight is a tensor of other numbers than floats of 16 and 32 bits");
    free(bytes.data);
    bytes = make(false, N_VOCAB + 1, NULL);
    check_refused(bytes, "a shape",
                  "tensor decoder.token_embedding.weight has the shape 6 × 4; expected 7 × 4");
    free(bytes.data);
}
END_TEST

/* Every shorter file is refused, and no change of a byte is more than that. */
START_TEST(damage)
{
    struct test_bytes bytes = make(_i == 1, N_VOCAB, "little");
    struct ak_provider *p;
    for (size_t n = 4; n < bytes.n; n += 41)
        check_refused((struct test_bytes){ .data = bytes.data, .n = n }, "a part", "");
    for (size_t at = 4; at < bytes.n; at += 3) {
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
    Suite *suite = suite_create("checkpoint");
    TCase *tests = tcase_create("checkpoint");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, contents, 0, 2);
    tcase_add_test(tests, file_of_a_trainer);
    tcase_add_loop_test(tests, vocabulary, 0, 11);
    tcase_add_test(tests, tokenizer_json);
    tcase_add_test(tests, hostile_pickles);
    tcase_add_test(tests, other_values);
    tcase_add_test(tests, shared_values);
    tcase_add_test(tests, hostile_archives);
    tcase_add_test(tests, hostile_contents);
    tcase_add_loop_test(tests, damage, 0, 2);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
