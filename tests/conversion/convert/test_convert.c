/* Models as GGUF files: from GGUF, split or not, of every type that can be written; encoders;
 * from a tokenizer.json of every kind; and that nothing is left behind or replaced unasked.
 * What becomes of the decoders' weights is in test_hf.c. */
#include "tests/conversion/convert/models.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "text/tokenizer/tokenizer.h"

static void check_fails(const char *from, const char *to, const struct akunu_convert_params *params,
                        enum akunu_status status, const char *named)
{
    ck_assert_int_eq(akunu_convert(from, to, params), status);
    ck_assert_msg(strstr(akunu_last_error(), named), "\"%s\" does not name %s", akunu_last_error(),
                  named);
}

static bool same_value(const struct ak_meta *a, const struct ak_meta *b)
{
    if (a->kind != b->kind || a->n != b->n || a->width != b->width)
        return false;
    if (a->kind == AK_META_STRING)
        return memcmp(a->as.string, b->as.string, a->n) == 0;
    if (a->kind == AK_META_BOOL)
        return a->as.boolean == b->as.boolean;
    return a->kind == AK_META_FLOAT ? a->as.number == b->as.number :
                                      a->as.unsigned_integer == b->as.unsigned_integer;
}

static void check_metadata(const struct ak_provider *a, const struct ak_provider *b)
{
    struct ak_meta x, y, ex, ey;
    for (size_t i = 0; ak_provider_meta(a, i, &x); i++) {
        if (strncmp(x.key, "split.", 6) == 0 || strcmp(x.key, "general.alignment") == 0)
            continue;
        ck_assert_msg(ak_provider_find_meta(b, x.key, &y), "%s is missing", x.key);
        if (x.kind != AK_META_ARRAY) {
            ck_assert_msg(same_value(&x, &y), "%s differs", x.key);
            continue;
        }
        ck_assert(y.kind == AK_META_ARRAY && x.n == y.n && x.element_kind == y.element_kind);
        for (uint64_t j = 0; ak_provider_element(a, &x, j, &ex); j++)
            ck_assert_msg(ak_provider_element(b, &y, j, &ey) && same_value(&ex, &ey),
                          "%s differs at %llu", x.key, (unsigned long long)j);
    }
}

static void check_tensors(const struct ak_provider *a, const struct ak_provider *b)
{
    struct ak_tensor x, y;
    ck_assert_uint_eq(ak_provider_n_tensors(a), ak_provider_n_tensors(b));
    for (size_t i = 0; ak_provider_tensor(a, i, &x); i++) {
        ck_assert(ak_provider_tensor(b, i, &y));
        ck_assert_str_eq(x.name, y.name);
        ck_assert(x.type == y.type && x.n_dims == y.n_dims &&
                  memcmp(x.shape, y.shape, sizeof x.shape) == 0);
        ck_assert(memcmp(x.data, y.data, x.bytes) == 0 && y.offset % 32 == 0);
    }
}

START_TEST(as_stored)
{
    static const char *const files[] = { "gguf/good.gguf",    "gguf/split-00001-of-00003.gguf",
                                         "models/mixed.gguf", "models/mixtral.gguf",
                                         "model.gguf",        "gguf/kinds.gguf" };
    struct test_folder folder = test_folder_begin();
    struct ak_meta meta, other;
    char to[96], from[4096];
    snprintf(to, sizeof to, "%s", test_in(&folder, "new.gguf"));
    snprintf(from, sizeof from, "%s", test_path(files[_i]));
    ck_assert_msg(akunu_convert(from, to, NULL) == AKUNU_OK, "%s: %s", from, akunu_last_error());
    struct ak_provider *a = open_ok(from), *b = open_ok(to);
    check_metadata(a, b);
    check_tensors(a, b);
    for (size_t i = 0; ak_provider_meta(b, i, &meta); i++)
        ck_assert_msg(strncmp(meta.key, "split.", 6) != 0 &&
                          strcmp(meta.key, "general.alignment") != 0 &&
                          ak_provider_find_meta(a, meta.key, &other),
                      "%s", meta.key);
    ak_provider_close(a);
    ak_provider_close(b);
    test_folder_end(&folder);
}
END_TEST

/* Each tensor is what its type's quantizer makes of it; vectors are floats. */
START_TEST(types)
{
    static const struct {
        const char *name;
        enum ak_quant_type type;
        unsigned file_type;
    } cases[] = { { "F32", AK_QUANT_F32, 0 },
                  { "f16", AK_QUANT_F16, 1 },
                  { "BF16", AK_QUANT_BF16, 32 },
                  { "q8_0", AK_QUANT_Q8_0, 7 } };
    struct test_folder folder = test_folder_begin();
    struct akunu_convert_params params = params_of(cases[_i].name);
    struct ak_tensor x, y;
    struct ak_meta meta;
    char to[96], from[4096];
    snprintf(to, sizeof to, "%s", test_in(&folder, "new.gguf"));
    snprintf(from, sizeof from, "%s", test_path("models/qwen3.gguf"));
    ck_assert_msg(akunu_convert(from, to, &params) == AKUNU_OK, "%s", akunu_last_error());
    struct ak_provider *a = open_ok(from), *b = open_ok(to);
    ck_assert(ak_provider_find_meta(b, "general.file_type", &meta) &&
              meta.as.unsigned_integer == cases[_i].file_type);
    for (size_t i = 0; ak_provider_tensor(a, i, &x) && ak_provider_tensor(b, i, &y); i++) {
        size_t n = 1;
        for (unsigned d = 0; d < x.n_dims; d++)
            n *= x.shape[d];
        ck_assert_int_eq(y.type, x.n_dims == 1 ? AK_QUANT_F32 : cases[_i].type);
        float *values = malloc(n * sizeof *values);
        uint8_t *blocks = malloc(y.bytes);
        ak_quant_info(x.type)->dequantize(x.data, values, n);
        ak_quant_info(y.type)->quantize(values, blocks, n);
        ck_assert_msg(memcmp(blocks, y.data, y.bytes) == 0, "%s", x.name);
        free(values);
        free(blocks);
    }
    ak_provider_close(a);
    ak_provider_close(b);
    test_folder_end(&folder);
}
END_TEST

/* ---- Encoders ----------------------------------------------------------- */
static const char *const encoders[] = { "bert", "xlm-roberta", "nomic-bert", "modernbert",
                                        "jina-bert-v2" };
enum { N_ENCODERS = sizeof encoders / sizeof *encoders };

static const char *const quantized[] = { "awq",       "ct-int8",      "ct-packed", "fp8",
                                         "fp8-mixed", "fp8-rows",     "fp8-wide",  "gptq",
                                         "gptq-act",  "gptq-dynamic", "gptq-v2",   "mlx",
                                         "mlx-f16",   "mlx-mxfp4",    "npy-int4",  "npy-int8" };
enum { N_QUANTIZED = sizeof quantized / sizeof *quantized };

static void find_tensor(const struct ak_provider *p, const char *name, struct ak_tensor *out)
{
    size_t i = 0;
    while (ak_provider_tensor(p, i, out) && strcmp(out->name, name) != 0)
        i++;
    ck_assert_msg(i < ak_provider_n_tensors(p), "%s is missing", name);
}

static size_t count_elements(const struct ak_tensor *t)
{
    size_t n = 1;
    for (unsigned d = 0; d < t->n_dims; d++)
        n *= (size_t)t->shape[d];
    return n;
}

/* The same floats, whatever the types. */
static void check_elements(const struct ak_tensor *x, const struct ak_tensor *y)
{
    size_t n = count_elements(x);
    ck_assert_uint_eq(count_elements(y), n);
    float *values = malloc(2 * n * sizeof *values);
    ak_tensor_dequantize(x, 0, n, values);
    ak_tensor_dequantize(y, 0, n, values + n);
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(values[i] == values[n + i], "%s[%zu] is %g, not %g", y->name, i,
                      (double)values[n + i], (double)values[i]);
    free(values);
}

/* Of those that llama.cpp's converter writes for a BERT only, the golden files have all. */
static void check_numbers(const struct ak_provider *golden, const struct ak_provider *ours,
                          bool has_types)
{
    struct ak_meta x, y;
    for (size_t i = 0; ak_provider_meta(golden, i, &x); i++) {
        if (strncmp(x.key, "GGUF.", 5) == 0 || strstr(x.key, "rope.scaling.type") ||
            (!has_types && strstr(x.key, "token_type_count")))
            continue;
        ck_assert_msg(ak_provider_find_meta(ours, x.key, &y), "%s is missing", x.key);
        ck_assert_msg(same_value(&x, &y), "%s differs", x.key);
    }
}

/* The tensors and the numbers that gguf's own names give for the same folder
 * (tests/golden/encoders.py). */
START_TEST(converted_encoders)
{
    struct test_folder folder = test_folder_begin();
    char to[96], from[4096], path[64];
    struct ak_tensor theirs, tensor;
    snprintf(to, sizeof to, "%s", test_in(&folder, "new.gguf"));
    snprintf(path, sizeof path, "encoders/%s", encoders[_i]);
    snprintf(from, sizeof from, "%s", test_path(path));
    ck_assert_msg(test_convert_weights(from, to) == AKUNU_OK, "%s: %s", from, akunu_last_error());
    snprintf(path, sizeof path, "encoders/%s/model.gguf", encoders[_i]);
    struct ak_provider *golden = open_ok(test_path(path)), *ours = open_ok(to);
    check_numbers(golden, ours, strcmp(encoders[_i], "modernbert") != 0);
    ck_assert_uint_eq(ak_provider_n_tensors(golden), ak_provider_n_tensors(ours));
    for (size_t i = 0; ak_provider_tensor(golden, i, &theirs); i++) {
        find_tensor(ours, theirs.name, &tensor);
        ck_assert_msg(tensor.type == theirs.type, "%s is %s", theirs.name,
                      ak_quant_info(tensor.type)->name);
        ck_assert_msg(tensor.n_dims == theirs.n_dims &&
                          memcmp(tensor.shape, theirs.shape, sizeof tensor.shape) == 0,
                      "%s", theirs.name);
        ck_assert_msg(memcmp(tensor.data, theirs.data, theirs.bytes) == 0, "%s differs",
                      theirs.name);
    }
    ak_provider_close(ours);
    ak_provider_close(golden);
    test_folder_end(&folder);
}
END_TEST

/* Heads of rerankers, whose tensors may be the first of their file, under llama.cpp's names; a
 * model without one has none. */
START_TEST(heads)
{
    static const struct {
        const char *from;
        const char *names[4][2]; /* in the source and in the new file; NULL: the head lacks it */
    } cases[] = {
        { "rerankers/roberta",
          { { "classifier.dense.weight", "cls.weight" },
            { "classifier.dense.bias", "cls.bias" },
            { "classifier.out_proj.weight", "cls.output.weight" },
            { "classifier.out_proj.bias", "cls.output.bias" } } },
        { "rerankers/bert",
          { { "bert.pooler.dense.weight", "cls.weight" },
            { "bert.pooler.dense.bias", "cls.bias" },
            { "classifier.weight", "cls.output.weight" },
            { "classifier.bias", "cls.output.bias" } } },
        { "rerankers/qwen3",
          { { NULL, "cls.weight" },
            { NULL, "cls.bias" },
            { "score.weight", "cls.output.weight" },
            { NULL, "cls.output.bias" } } },
        { "encoders/bert",
          { { NULL, "cls.weight" },
            { NULL, "cls.bias" },
            { NULL, "cls.output.weight" },
            { NULL, "cls.output.bias" } } },
    };
    struct test_folder folder = test_folder_begin();
    char to[96], from[4096];
    struct ak_tensor x, y;
    snprintf(to, sizeof to, "%s", test_in(&folder, "new.gguf"));
    snprintf(from, sizeof from, "%s", test_path(cases[_i].from));
    ck_assert_msg(test_convert_weights(from, to) == AKUNU_OK, "%s", akunu_last_error());
    struct ak_provider *a = open_ok(from), *b = open_ok(to);
    for (size_t i = 0; i < 4; i++) {
        const char *old = cases[_i].names[i][0], *new = cases[_i].names[i][1];
        size_t n = 0;
        for (size_t k = 0; ak_provider_tensor(b, k, &y); k++)
            n += strcmp(y.name, new) == 0;
        ck_assert_msg(n == (old != NULL), "%s has %zu %s", cases[_i].from, n, new);
        if (!old)
            continue;
        find_tensor(a, old, &x);
        find_tensor(b, new, &y);
        ck_assert(x.n_dims == y.n_dims && memcmp(x.shape, y.shape, sizeof x.shape) == 0);
        check_elements(&x, &y);
    }
    ak_provider_close(a);
    ak_provider_close(b);
    test_folder_end(&folder);
}
END_TEST

/* ---- Quantized folders -------------------------------------------------- */
/* The elements are those that the schemes' references compute. Rows of other matrices have another
 * order in the new file. */
START_TEST(quantized_folders)
{
    static const char *const names[][2] = {
        { "model.embed_tokens.weight", "token_embd.weight" },
        { "model.layers.0.self_attn.v_proj.weight", "blk.0.attn_v.weight" },
        { "model.layers.0.self_attn.o_proj.weight", "blk.0.attn_output.weight" },
        { "model.layers.0.mlp.gate_proj.weight", "blk.0.ffn_gate.weight" },
        { "model.layers.0.mlp.up_proj.weight", "blk.0.ffn_up.weight" },
        { "model.layers.0.mlp.down_proj.weight", "blk.0.ffn_down.weight" },
        { "lm_head.weight", "output.weight" },
    };
    struct test_folder folder = test_folder_begin();
    char to[96], from[4096], path[64];
    struct ak_tensor x, y;
    snprintf(to, sizeof to, "%s", test_in(&folder, "new.gguf"));
    snprintf(path, sizeof path, "quantized/%s", quantized[_i]);
    snprintf(from, sizeof from, "%s", test_path(path));
    struct akunu_convert_params params = params_of("F32");
    ck_assert_msg(akunu_convert(from, to, &params) == AKUNU_OK, "%s", akunu_last_error());
    struct ak_provider *a = open_ok(from), *b = open_ok(to);
    int n_composed = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        find_tensor(a, names[i][0], &x);
        find_tensor(b, names[i][1], &y);
        n_composed += x.composed_tensor != NULL;
        ck_assert_int_eq(y.type, AK_QUANT_F32);
        check_elements(&x, &y);
    }
    ck_assert_int_ge(n_composed, 4);
    ak_provider_close(a);
    ak_provider_close(b);
    test_folder_end(&folder);
}
END_TEST

/* ---- Tokenizers --------------------------------------------------------- */
#define SPLIT(pattern)                                                                             \
    "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"" pattern                                    \
    "\"}, \"behavior\": \"Isolated\", \"invert\": false}"
#define BYTES(own)                                                                                 \
    "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, "              \
    "\"use_regex\": " own "}"
#define BOTH(first) "{\"type\": \"Sequence\", \"pretokenizers\": [" first ", " BYTES("false") "]}"
#define CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|"
#define REST "| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"

/* As published models of these names write them. */
static const struct {
    const char *pre_tokenizer, *ignore_merges, *name;
} pres[] = {
    { BYTES("true"), "false", "gpt-2" },
    { BOTH(SPLIT(CONTRACTION "\\\\p{N}{1,3}" REST)), "true", "llama-bpe" },
    { BOTH(SPLIT(CONTRACTION "\\\\p{N}" REST)), "false", "qwen2" },
    { "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Digits\", \"individual_digits\": "
      "true}, " BYTES("true") "]}",
      "false", "smollm" },
    { "{\"type\": \"Sequence\", \"pretokenizers\": [" SPLIT("[aeiou]") ", " BYTES("false") "]}",
      "false", NULL },
};

static const char config[] = "{\"model_type\": \"llama\", \"hidden_size\": 8, "
                             "\"num_hidden_layers\": 1, \"intermediate_size\": 8, "
                             "\"max_position_embeddings\": 16, \"num_attention_heads\": 2, "
                             "\"rms_norm_eps\": 1e-5, \"vocab_size\": 16, "
                             "\"tie_word_embeddings\": true}";

/* A model of one layer without meaning. */
static void write_model(const struct test_folder *folder)
{
    static const float values[16 * 8];
    static const struct {
        const char *name, *shape;
        size_t n;
    } tensors[] = {
        { "model.embed_tokens.weight", "16, 8", 128 },
        { "model.norm.weight", "8", 8 },
        { "model.layers.0.input_layernorm.weight", "8", 8 },
        { "model.layers.0.post_attention_layernorm.weight", "8", 8 },
        { "model.layers.0.self_attn.q_proj.weight", "8, 8", 64 },
        { "model.layers.0.self_attn.k_proj.weight", "8, 8", 64 },
        { "model.layers.0.self_attn.v_proj.weight", "8, 8", 64 },
        { "model.layers.0.self_attn.o_proj.weight", "8, 8", 64 },
        { "model.layers.0.mlp.gate_proj.weight", "8, 8", 64 },
        { "model.layers.0.mlp.up_proj.weight", "8, 8", 64 },
        { "model.layers.0.mlp.down_proj.weight", "8, 8", 64 },
    };
    struct test_st st = { 0 };
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        test_st_add(&st, tensors[i].name, "F32", tensors[i].shape, values,
                    tensors[i].n * sizeof *values);
    test_st_write(&st, folder, "model.safetensors", 0);
    test_write_text(folder, "config.json", config);
}

static void write_tokenizer(const struct test_folder *folder, const char *pre_tokenizer,
                            const char *ignore_merges)
{
    char text[4096];
    snprintf(text, sizeof text,
             "{\"added_tokens\": [{\"id\": 12, \"content\": \"<s>\", \"special\": true}, {\"id\": "
             "14, \"content\": \"two words\", "
             "\"special\": false}], \"pre_tokenizer\": %s, \"model\": {\"type\": \"BPE\", "
             "\"ignore_merges\": %s, \"vocab\": "
             "{\"a\": 0, \"b\": 1, \"\u0120\": 2, \"c\": 3, \"\u0120a\": 4, \"bc\": 5, "
             "\"\u0120abc\": 6, \"\u010a\": 7}, "
             "\"merges\": [\"b c\", [\"\u0120\", \"a\"], \"\u0120a bc\"]}}",
             pre_tokenizer, ignore_merges);
    test_write_text(folder, "tokenizer.json", text);
    test_write_text(folder, "tokenizer_config.json",
                    "{\"bos_token\": {\"content\": \"<s>\"}, \"pad_token\": \"<s>\", "
                    "\"chat_template\": \"{{ messages }}\"}");
}

static void check_text(const struct ak_vocab *v, uint32_t id, const char *text, int type)
{
    ck_assert_msg(v->tokens[id].n == strlen(text) &&
                      memcmp(v->tokens[id].bytes, text, v->tokens[id].n) == 0,
                  "token %u is %.*s", id, (int)v->tokens[id].n, v->tokens[id].bytes);
    ck_assert_int_eq(v->types[id], type);
}

START_TEST(byte_level)
{
    struct test_folder folder = test_folder_begin();
    struct ak_vocab v;
    struct ak_meta meta;
    char to[96];
    write_model(&folder);
    write_tokenizer(&folder, pres[_i].pre_tokenizer, pres[_i].ignore_merges);
    snprintf(to, sizeof to, "%s", test_in(&folder, "new.gguf"));
    enum akunu_status status = akunu_convert(folder.path, to, NULL);
    if (!pres[_i].name) { /* no known rule splits so: it can be named */
        struct akunu_convert_params params = params_of(NULL);
        ck_assert_int_eq(status, AKUNU_ERROR_UNSUPPORTED);
        ck_assert_ptr_nonnull(strstr(akunu_last_error(), "--pre"));
        params.pre = "smaug-bpe";
        status = akunu_convert(folder.path, to, &params);
    }
    ck_assert_msg(status == AKUNU_OK, "%s", akunu_last_error());
    struct ak_provider *p = open_ok(to);
    ck_assert_int_eq(ak_provider_vocab(p, &v, NULL), AKUNU_OK);
    const char *name = pres[_i].name ? pres[_i].name : "smaug-bpe";
    ck_assert_msg(v.pre.n == strlen(name) && memcmp(v.pre.bytes, name, v.pre.n) == 0,
                  "pre is %.*s, not %s", (int)v.pre.n, v.pre.bytes, name);
    ck_assert(v.model.n == 4 && memcmp(v.model.bytes, "gpt2", 4) == 0);
    ck_assert_uint_eq(v.n_tokens, 16);
    check_text(&v, 0, "a", 1);
    check_text(&v, 6,
               "\xc4\xa0"
               "abc",
               1);
    check_text(&v, 7, "\xc4\x8a", 1);
    check_text(&v, 8, "[PAD8]", 5);
    check_text(&v, 12, "<s>", 3);
    check_text(&v, 14, "two words", 4);
    check_text(&v, 15, "[PAD15]", 5);
    ck_assert_uint_eq(v.n_merges, 3);
    ck_assert(v.merges[1].n == 4 && memcmp(v.merges[1].bytes, "\xc4\xa0 a", 4) == 0);
    ck_assert(v.bos == 12 && v.padding == 12 && v.eos == -1 && v.add_bos == 0);
    ck_assert(ak_provider_find_meta(p, "tokenizer.chat_template", &meta) && meta.n == 14);

    /* Both give the same ids, but for what was named by hand. */
    static const char text[] = " abc two words<s>\nab";
    struct akunu_tokenizer *a = akunu_tokenizer_load(folder.path), *b = akunu_tokenizer_load(to);
    akunu_token x[32], y[32];
    ck_assert(a && b);
    int64_t n = akunu_tokenizer_encode(a, text, sizeof text - 1, AKUNU_PARSE_SPECIAL, x, 32);
    int64_t m = akunu_tokenizer_encode(b, text, sizeof text - 1, AKUNU_PARSE_SPECIAL, y, 32);
    ck_assert(n > 0 && (!pres[_i].name || (n == m && memcmp(x, y, (size_t)n * sizeof *x) == 0)));
    akunu_tokenizer_free(a);
    akunu_tokenizer_free(b);
    ak_provider_close(p);
    test_folder_end(&folder);
}
END_TEST

/* ---- Tokenizers of encoders --------------------------------------------- */
/* BPE over characters becomes SentencePiece's, which has scores for merges: the earlier a merge,
 * the better. */
START_TEST(merges_as_scores)
{
    static const char *const merges[] = { "[\"a b\", \"b c\", \"▁ ab\", \"ab ab\"]",
                                          "[\"b c\", \"a b\", \"▁ ab\", \"ab ab\"]",
                                          "[\"a b\", \"b c\", \"▁ ab\", \"ab ab\", \"a b\"]" };
    static const char *const texts[] = { "abc",    "ab",   "abcabc", "cab bc abab",
                                         "ababab", "xaby", "\na b" };
    struct test_folder folder = test_folder_begin();
    char to[96], json[2048];
    write_model(&folder);
    snprintf(json, sizeof json,
             "{\"added_tokens\": [{\"id\": 1, \"content\": \"<s>\", \"special\": true}], "
             "\"normalizer\": {\"type\": \"Sequence\", "
             "\"normalizers\": [{\"type\": \"Prepend\", \"prepend\": \"▁\"}, {\"type\": "
             "\"Replace\", \"pattern\": {\"String\": \" \"}, "
             "\"content\": \"▁\"}]}, \"decoder\": {\"type\": \"Fuse\"}, \"model\": {\"type\": "
             "\"BPE\", \"unk_token\": \"<unk>\", "
             "\"fuse_unk\": true, \"byte_fallback\": true, \"vocab\": {\"<unk>\": 0, \"<s>\": 1, "
             "\"<0x0A>\": 2, \"▁\": 3, \"a\": 4, \"b\": 5, \"c\": 6, "
             "\"ab\": 7, \"bc\": 8, \"▁ab\": 9, \"abab\": 10}, \"merges\": %s}}",
             merges[_i]);
    test_write_text(&folder, "tokenizer.json", json);
    snprintf(to, sizeof to, "%s", test_in(&folder, "new.gguf"));
    ck_assert_msg(akunu_convert(folder.path, to, NULL) == AKUNU_OK, "%s", akunu_last_error());
    struct akunu_tokenizer *a = akunu_tokenizer_load(folder.path), *b = akunu_tokenizer_load(to);
    ck_assert_msg(a && b, "%s", akunu_last_error());
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        akunu_token x[32], y[32];
        int64_t n = akunu_tokenizer_encode(a, texts[i], strlen(texts[i]), 0, x, 32),
                m = akunu_tokenizer_encode(b, texts[i], strlen(texts[i]), 0, y, 32);
        ck_assert_msg(n > 0 && n == m && memcmp(x, y, (size_t)n * sizeof *x) == 0, "%s: %s",
                      merges[_i], texts[i]);
    }
    akunu_tokenizer_free(a);
    akunu_tokenizer_free(b);
    test_folder_end(&folder);
}
END_TEST

/* Those of tests/golden/vocabularies.py. */
static const struct {
    const char *name, *model_type;
} vocabularies[] = {
    { "bert-uncased", "bert" },     { "bert-accents", "bert" },       { "roberta", "roberta" },
    { "modernbert", "modernbert" }, { "xlm-roberta", "xlm-roberta" },
};
enum { N_VOCABULARIES = sizeof vocabularies / sizeof *vocabularies };

/* An encoder of one layer without meaning, by its architecture's table of weights. */
static void write_encoder(const struct test_folder *folder, const char *model_type,
                          uint32_t n_vocab)
{
    struct ak_spec spec = { .arch = arch_of(model_type),
                            .config = { .n_layers = 1,
                                        .width = 8,
                                        .n_heads = 2,
                                        .n_kv_heads = 2,
                                        .head_dim = 4,
                                        .ffn_width = 8,
                                        .vocab_size = n_vocab,
                                        .context = 18,
                                        .n_types = 2 } };
    char text[512];
    write_weights(folder, &spec);
    snprintf(text, sizeof text,
             "{\"model_type\": \"%s\", \"hidden_size\": 8, \"num_hidden_layers\": 1, "
             "\"num_attention_heads\": 2, "
             "\"intermediate_size\": 8, \"max_position_embeddings\": 18, \"layer_norm_eps\": "
             "1e-12, \"type_vocab_size\": 2, "
             "\"pad_token_id\": 1, \"vocab_size\": %u}",
             model_type, n_vocab);
    test_write_text(folder, "config.json", text);
}

static void copy_file(const struct test_folder *folder, const char *name, const char *file)
{
    char path[128];
    snprintf(path, sizeof path, "vocabularies/%s/%s", name, file);
    struct test_bytes bytes = test_read(path);
    test_write(folder, file, bytes.data, bytes.n);
    free(bytes.data);
}

/* XLM-RoBERTa's <mask>, the last token, is none of SentencePiece's pieces: the converter
 * has an unused token there. */
static void check_vocabulary(const struct ak_provider *golden, const struct ak_provider *ours,
                             bool but_last)
{
    struct ak_meta x, y, ex, ey;
    for (size_t i = 0; ak_provider_meta(golden, i, &x); i++) {
        if (strncmp(x.key, "tokenizer.", 10) != 0)
            continue;
        ck_assert_msg(ak_provider_find_meta(ours, x.key, &y), "%s is missing", x.key);
        if (x.kind != AK_META_ARRAY) {
            ck_assert_msg(same_value(&x, &y), "%s differs", x.key);
            continue;
        }
        ck_assert_msg(y.kind == AK_META_ARRAY && x.n == y.n && x.element_kind == y.element_kind,
                      "%s differs", x.key);
        bool of_tokens =
            strstr(x.key, ".tokens") || strstr(x.key, ".token_type") || strstr(x.key, ".scores");
        for (uint64_t j = 0; j + (but_last && of_tokens) < x.n; j++)
            ck_assert_msg(ak_provider_element(golden, &x, j, &ex) &&
                              ak_provider_element(ours, &y, j, &ey) && same_value(&ex, &ey),
                          "%s differs at %llu", x.key, (unsigned long long)j);
    }
}

/* Undoes \xNN in place and gives the number of bytes. */
static size_t unescape(char *s)
{
    char *out = s, *begin = s;
    while (*s) {
        bool escaped = *s == '\\';
        char hex[3] = { escaped ? s[2] : '\0', escaped ? s[3] : '\0', '\0' };
        *out++ = escaped ? (char)strtol(hex, NULL, 16) : *s;
        s += escaped ? 4 : 1;
    }
    return (size_t)(out - begin);
}

/* The folder's ids and the file's are those of `tokenizers`. */
static void check_ids(const char *name, const char *folder, const char *file)
{
    const char *const paths[] = { folder, file };
    char line[1024], got[1024];
    akunu_token ids[64];
    FILE *f = fopen(test_path("vocabularies/texts.tsv"), "r");
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f)) {
        char *text = strchr(line, '\t') + 1, *want = strchr(text, '\t') + 1;
        text[-1] = want[-1] = want[strcspn(want, "\n")] = '\0';
        if (strcmp(line, name) != 0)
            continue;
        size_t n_text = unescape(text);
        for (int i = 0; i < 2; i++) {
            struct akunu_tokenizer *t = akunu_tokenizer_load(paths[i]);
            ck_assert_msg(t != NULL, "%s", akunu_last_error());
            int64_t n = akunu_tokenizer_encode(t, text, n_text,
                                               AKUNU_PARSE_SPECIAL | AKUNU_ADD_SPECIAL, ids, 64);
            size_t at = 0;
            got[0] = '\0';
            for (int64_t k = 0; k < n; k++)
                at += (size_t)snprintf(got + at, sizeof got - at, k ? " %d" : "%d", (int)ids[k]);
            ck_assert_msg(strcmp(got, want) == 0, "%s, %s\n got %s\nwant %s", name,
                          i ? "converted" : "folder", got, want);
            akunu_tokenizer_free(t);
        }
    }
    fclose(f);
}

START_TEST(tokenizers_of_encoders)
{
    const char *name = vocabularies[_i].name;
    struct test_folder folder = test_folder_begin();
    struct ak_vocab v;
    char to[96], path[64];
    snprintf(path, sizeof path, "vocabularies/%s.gguf", name);
    struct ak_provider *golden = open_ok(test_path(path));
    ck_assert_int_eq(ak_provider_vocab(golden, &v, NULL), AKUNU_OK);
    write_encoder(&folder, vocabularies[_i].model_type, v.n_tokens);
    copy_file(&folder, name, "tokenizer.json");
    copy_file(&folder, name, "tokenizer_config.json");
    snprintf(to, sizeof to, "%s", test_in(&folder, "new.gguf"));
    ck_assert_msg(akunu_convert(folder.path, to, NULL) == AKUNU_OK, "%s: %s", name,
                  akunu_last_error());
    struct ak_provider *ours = open_ok(to);
    check_vocabulary(golden, ours, strcmp(name, "xlm-roberta") == 0);
    ak_provider_close(ours);
    ak_provider_close(golden);
    check_ids(name, folder.path, to);
    test_folder_end(&folder);
}
END_TEST

/* ---- Chat templates ----------------------------------------------------- */
static void check_string(const struct ak_provider *p, const char *key, const char *value)
{
    struct ak_meta meta;
    bool found = ak_provider_find_meta(p, key, &meta);
    ck_assert_msg(found == (value != NULL), "%s", key);
    if (value)
        ck_assert_msg(meta.kind == AK_META_STRING && meta.n == strlen(value) &&
                          memcmp(meta.as.string, value, meta.n) == 0,
                      "%s is %.*s", key, (int)meta.n, meta.as.string);
}

/* As gguf's writer has them: names of letters, digits and underscores, each once. */
START_TEST(templates)
{
    static const struct {
        const char *config, *other, *usual, *names[3], *texts[3];
    } cases[] = {
        { "{\"chat_template\": [{\"name\": \"tool use\", \"template\": \"T\"}, {\"name\": "
          "\"default\", \"template\": \"D\"}, "
          "{\"name\": \"tool_use\", \"template\": \"again\"}, {\"name\": \"r\u00e4g\", "
          "\"template\": \"R\"}, {\"name\": \"\", \"template\": \"-\"}, "
          "{\"name\": \"none\"}]}",
          NULL,
          "D",
          { "tool_use", "r_g" },
          { "T", "R" } },
        { "{\"chat_template\": [{\"name\": \"rag\", \"template\": \"R\"}]}",
          NULL,
          NULL,
          { "rag" },
          { "R" } },
        { "{\"chat_template\": [{\"name\": \"default\", \"template\": \"D\"}]}",
          NULL,
          "D",
          { NULL },
          { NULL } },
        { "{\"chat_template\": null}",
          "{\"chat_template\": \"other\"}",
          "other",
          { NULL },
          { NULL } },
        { "{\"chat_template\": \"one\"}",
          "{\"chat_template\": \"other\"}",
          "one",
          { NULL },
          { NULL } },
    };
    struct test_folder folder = test_folder_begin();
    struct akunu_convert_params params = params_of(NULL);
    struct ak_meta list, name;
    char to[96], key[96];
    params.overwrite = true;
    snprintf(to, sizeof to, "%s", test_in(&folder, "new.gguf"));
    write_model(&folder);
    write_tokenizer(&folder, pres[0].pre_tokenizer, "false");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        test_write_text(&folder, "tokenizer_config.json", cases[i].config);
        unlink(test_in(&folder, "chat_template.json"));
        if (cases[i].other)
            test_write_text(&folder, "chat_template.json", cases[i].other);
        ck_assert_msg(akunu_convert(folder.path, to, &params) == AKUNU_OK, "%s",
                      akunu_last_error());
        struct ak_provider *p = open_ok(to);
        check_string(p, "tokenizer.chat_template", cases[i].usual);
        ck_assert(ak_provider_find_meta(p, "tokenizer.chat_templates", &list) ==
                  (cases[i].names[0] != NULL));
        for (size_t k = 0; cases[i].names[k]; k++) {
            ck_assert(ak_provider_element(p, &list, k, &name) &&
                      name.n == strlen(cases[i].names[k]) &&
                      memcmp(name.as.string, cases[i].names[k], name.n) == 0);
            snprintf(key, sizeof key, "tokenizer.chat_template.%s", cases[i].names[k]);
            check_string(p, key, cases[i].texts[k]);
        }
        ak_provider_close(p);
    }
    test_folder_end(&folder);
}
END_TEST

/* ---- What there is no place for ----------------------------------------- */
START_TEST(refused)
{
    struct test_folder folder = test_folder_begin();
    char to[96];
    snprintf(to, sizeof to, "%s", test_in(&folder, "new.gguf"));
    write_model(&folder);
    test_write_text(&folder, "modules.json",
                    "[{\"type\": \"sentence_transformers.models.Dense\", \"path\": \"2_Dense\"}]");
    check_fails(folder.path, to, NULL, AKUNU_ERROR_UNSUPPORTED, "the module Dense");
    unlink(test_in(&folder, "modules.json"));
    struct akunu_convert_params params = params_of("Q4_K");
    check_fails(folder.path, to, &params, AKUNU_ERROR_ARGUMENT,
                "unknown type 'Q4_K'; expected F32, F16, BF16 or Q8_0");
    test_folder_end(&folder);
}
END_TEST

/* ---- Files -------------------------------------------------------------- */
static bool stop(double fraction, void *user)
{
    int *n = user;
    (void)fraction;
    return ++*n < 3;
}

START_TEST(files)
{
    struct test_folder folder = test_folder_begin();
    char to[96], from[4096];
    struct stat st;
    int asked = 0;
    struct akunu_convert_params params = params_of("Q9_9");
    snprintf(to, sizeof to, "%s", test_in(&folder, "new.gguf"));
    snprintf(from, sizeof from, "%s", test_path("models/qwen3.gguf"));
    check_fails(from, to, &params, AKUNU_ERROR_ARGUMENT, "Q9_9");
    check_fails(NULL, to, NULL, AKUNU_ERROR_ARGUMENT, "no path");
    check_fails(from, "/nowhere/new.gguf", NULL, AKUNU_ERROR_IO, "cannot write");
    ck_assert_int_eq(mkfifo(to, 0600), 0); /* which stays even if it may be replaced */
    params = params_of(NULL);
    params.overwrite = true;
    check_fails(from, to, &params, AKUNU_ERROR_ARGUMENT, "is not a regular file");
    ck_assert(stat(to, &st) == 0 && S_ISFIFO(st.st_mode));
    ck_assert_int_eq(unlink(to), 0);
    check_fails("/nowhere", to, NULL, AKUNU_ERROR_FORMAT, "no such file");

    /* Stopped half way: nothing is left. */
    params = params_of("F16");
    params.progress = stop;
    params.user = &asked;
    check_fails(from, to, &params, AKUNU_ERROR_CANCELLED, "cancelled");
    ck_assert_int_eq(rmdir(folder.path), 0);
    ck_assert_int_eq(mkdir(folder.path, 0700), 0);

    /* A file that is there is replaced only where that is asked for, and never by itself. */
    test_write_text(&folder, "new.gguf", "precious");
    params = params_of("F16");
    check_fails(from, to, &params, AKUNU_ERROR_ARGUMENT, "exists already");
    params.overwrite = true;
    ck_assert_int_eq(akunu_convert(from, to, &params), AKUNU_OK);
    check_fails(to, to, &params, AKUNU_ERROR_ARGUMENT, "a file of the model");
    ck_assert_int_eq(akunu_convert(to, test_in(&folder, "again.gguf"), NULL), AKUNU_OK);
    test_folder_end(&folder);
}
END_TEST

/* No file of the source is replaced, by whatever path it is meant. */
START_TEST(parts_of_the_source)
{
    static const char *const parts[] = { "model-00001-of-00002.safetensors",
                                         "model-00002-of-00002.safetensors", "config.json" };
    struct test_folder folder = test_folder_begin();
    struct akunu_convert_params params = params_of(NULL);
    struct test_st st = { 0 };
    char to[96], from[96];
    params.overwrite = true;
    write_model(&folder);
    snprintf(from, sizeof from, "%s", test_in(&folder, "model.safetensors"));
    ck_assert_int_eq(rename(from, test_in(&folder, parts[0])), 0);
    test_st_add(&st, "more", "F32", "1", "\0\0\0\0", 4);
    test_st_write(&st, &folder, parts[1], 0);
    for (size_t i = 0; i < 3; i++) {
        snprintf(to, sizeof to, "%s", test_in(&folder, parts[i]));
        check_fails(folder.path, to, &params, AKUNU_ERROR_ARGUMENT, parts[i]);
        ck_assert_int_eq(link(to, test_in(&folder, "other name")), 0);
        check_fails(folder.path, test_in(&folder, "other name"), &params, AKUNU_ERROR_ARGUMENT,
                    "a file of the model");
        ck_assert_int_eq(unlink(test_in(&folder, "other name")), 0);
    }
    ck_assert_int_eq(akunu_convert(folder.path, test_in(&folder, "new.gguf"), &params), AKUNU_OK);
    test_folder_end(&folder);
}
END_TEST

/* ---- What goes wrong outside -------------------------------------------- */
static bool die(double fraction, void *user)
{
    int *n = user;
    (void)fraction;
    if (++*n == 3)
        _exit(7);
    return true;
}

/* A program that ends in the middle leaves nothing, where the file system has files
 * without names. */
START_TEST(killed)
{
    struct test_folder folder = test_folder_begin();
    char to[96], from[4096];
    int asked = 0, code, fd = open(folder.path, O_TMPFILE | O_WRONLY, 0600);
    struct akunu_convert_params params = params_of("F16");
    params.progress = die;
    params.user = &asked;
    snprintf(to, sizeof to, "%s", test_in(&folder, "new.gguf"));
    snprintf(from, sizeof from, "%s", test_path("models/qwen3.gguf"));
    if (fd >= 0) {
        close(fd);
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0)
            _exit(akunu_convert(from, to, &params) == AKUNU_OK ? 0 : 1);
        ck_assert_int_eq(waitpid(child, &code, 0), child);
        ck_assert_int_eq(WEXITSTATUS(code), 7);
    }
    ck_assert_int_eq(rmdir(folder.path), 0);
}
END_TEST

/* A file that may not become that large stands for a full disk. */
START_TEST(disk_full)
{
    struct test_folder folder = test_folder_begin();
    struct rlimit before, small;
    char to[96], from[4096];
    snprintf(to, sizeof to, "%s", test_in(&folder, "new.gguf"));
    snprintf(from, sizeof from, "%s", test_path("models/qwen3.gguf"));
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){ 65536, before.rlim_max };
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    enum akunu_status status = akunu_convert(from, to, NULL);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    ck_assert_int_eq(status, AKUNU_ERROR_IO);
    ck_assert_msg(strstr(akunu_last_error(), "new.gguf: cannot write: File too large"), "%s",
                  akunu_last_error());
    check_fails(from, "/proc/new.gguf", NULL, AKUNU_ERROR_IO, "/proc/new.gguf: cannot write");
    ck_assert_int_eq(rmdir(folder.path), 0);
}
END_TEST

/* In place of the C library's. */
static int n_synced[2]; /* files, folders */
int fsync(int fd)
{
    struct stat st;
    ck_assert_int_eq(fstat(fd, &st), 0);
    n_synced[S_ISDIR(st.st_mode)]++;
    return (int)syscall(SYS_fsync, fd);
}

/* The file and then the name are on the disk. */
START_TEST(synced)
{
    struct test_folder folder = test_folder_begin();
    char from[4096];
    snprintf(from, sizeof from, "%s", test_path("models/qwen3.gguf"));
    n_synced[0] = n_synced[1] = 0;
    ck_assert_int_eq(akunu_convert(from, test_in(&folder, "new.gguf"), NULL), AKUNU_OK);
    ck_assert(n_synced[0] == 1 && n_synced[1] == 1);
    test_folder_end(&folder);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("convert");
    TCase *tests = tcase_create("convert");
    tcase_add_loop_test(tests, as_stored, 0, 6);
    tcase_add_loop_test(tests, types, 0, 4);
    tcase_add_loop_test(tests, converted_encoders, 0, N_ENCODERS);
    tcase_add_loop_test(tests, heads, 0, 4);
    tcase_add_loop_test(tests, quantized_folders, 0, N_QUANTIZED);
    tcase_add_loop_test(tests, byte_level, 0, 5);
    tcase_add_loop_test(tests, merges_as_scores, 0, 3);
    tcase_add_loop_test(tests, tokenizers_of_encoders, 0, N_VOCABULARIES);
    tcase_add_test(tests, templates);
    tcase_add_test(tests, refused);
    tcase_add_test(tests, files);
    tcase_add_test(tests, parts_of_the_source);
    tcase_add_test(tests, killed);
    tcase_add_test(tests, disk_full);
    tcase_add_test(tests, synced);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
