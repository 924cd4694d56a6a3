/* Models as GGUF files: from GGUF, split or not, of every type that can be written; from
 * a tokenizer.json of every kind; and that nothing is left behind or replaced unasked.
 * What becomes of the architectures' weights is in test_hf.c. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "st_files.h"
#include "text/tokenizer.h"

static struct ak_provider *open_ok(const char *path)
{
    struct ak_provider *p;
    struct ak_error error;
    ck_assert_msg(ak_provider_open(path, &p, &error) == AKUNU_OK, "%s: %s", path, error.message);
    return p;
}

static struct akunu_convert_params params_of(const char *type)
{
    struct akunu_convert_params params;
    akunu_convert_params_default(&params);
    params.type = type;
    return params;
}

static bool same_value(const struct ak_meta *a, const struct ak_meta *b)
{
    if (a->kind != b->kind || a->n != b->n || a->width != b->width)
        return false;
    if (a->kind == AK_META_STRING)
        return memcmp(a->as.string, b->as.string, a->n) == 0;
    if (a->kind == AK_META_BOOL)
        return a->as.boolean == b->as.boolean;
    return a->kind == AK_META_FLOAT ? a->as.number == b->as.number : a->as.unsigned_integer == b->as.unsigned_integer;
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
            ck_assert_msg(ak_provider_element(b, &y, j, &ey) && same_value(&ex, &ey), "%s differs at %llu", x.key, (unsigned long long)j);
    }
}

static void check_tensors(const struct ak_provider *a, const struct ak_provider *b)
{
    struct ak_tensor x, y;
    ck_assert_uint_eq(ak_provider_n_tensors(a), ak_provider_n_tensors(b));
    for (size_t i = 0; ak_provider_tensor(a, i, &x); i++) {
        ck_assert(ak_provider_tensor(b, i, &y));
        ck_assert_str_eq(x.name, y.name);
        ck_assert(x.type == y.type && x.n_dims == y.n_dims && memcmp(x.shape, y.shape, sizeof x.shape) == 0);
        ck_assert(memcmp(x.data, y.data, x.bytes) == 0 && y.offset % 32 == 0);
    }
}

START_TEST(as_stored)
{
    static const char *const files[] = { "gguf/good.gguf", "gguf/split-00001-of-00003.gguf", "models/mixed.gguf", "models/mixtral.gguf",
                                         "model.gguf" };
    struct test_folder folder = test_folder_begin();
    char to[96], from[4096];
    snprintf(to, sizeof to, "%s", test_in(&folder, "new.gguf"));
    snprintf(from, sizeof from, "%s", test_path(files[_i]));
    ck_assert_msg(akunu_convert(from, to, NULL) == AKUNU_OK, "%s: %s", from, akunu_last_error());
    struct ak_provider *a = open_ok(from), *b = open_ok(to);
    check_metadata(a, b);
    check_tensors(a, b);
    ak_provider_close(a);
    ak_provider_close(b);
    test_folder_end(&folder);
}
END_TEST

/* Each tensor is what its type's quantiser makes of it; vectors are floats. */
START_TEST(types)
{
    static const struct {
        const char *name;
        enum ak_type type;
        unsigned file_type;
    } cases[] = { { "F32", AK_F32, 0 }, { "f16", AK_F16, 1 }, { "BF16", AK_BF16, 32 }, { "q8_0", AK_Q8_0, 7 } };
    struct test_folder folder = test_folder_begin();
    struct akunu_convert_params params = params_of(cases[_i].name);
    struct ak_tensor x, y;
    struct ak_meta meta;
    char to[96], from[4096];
    snprintf(to, sizeof to, "%s", test_in(&folder, "new.gguf"));
    snprintf(from, sizeof from, "%s", test_path("models/qwen3.gguf"));
    ck_assert_msg(akunu_convert(from, to, &params) == AKUNU_OK, "%s", akunu_last_error());
    struct ak_provider *a = open_ok(from), *b = open_ok(to);
    ck_assert(ak_provider_find_meta(b, "general.file_type", &meta) && meta.as.unsigned_integer == cases[_i].file_type);
    for (size_t i = 0; ak_provider_tensor(a, i, &x) && ak_provider_tensor(b, i, &y); i++) {
        size_t n = 1;
        for (unsigned d = 0; d < x.n_dims; d++)
            n *= x.shape[d];
        ck_assert_int_eq(y.type, x.n_dims == 1 ? AK_F32 : cases[_i].type);
        float *values = malloc(n * sizeof *values);
        uint8_t *blocks = malloc(y.bytes);
        ak_type_info(x.type)->dequantise(x.data, values, n);
        ak_type_info(y.type)->quantise(values, blocks, n);
        ck_assert_msg(memcmp(blocks, y.data, y.bytes) == 0, "%s", x.name);
        free(values);
        free(blocks);
    }
    ak_provider_close(a);
    ak_provider_close(b);
    test_folder_end(&folder);
}
END_TEST

/* ---- Tokenizers -------------------------------------------------------------------- */

#define SPLIT(pattern) "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"" pattern "\"}, \"behavior\": \"Isolated\", \"invert\": false}"
#define BYTES(own) "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, \"use_regex\": " own "}"
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
    { "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Digits\", \"individual_digits\": true}, " BYTES("true") "]}", "false",
      "smollm" },
    { "{\"type\": \"Sequence\", \"pretokenizers\": [" SPLIT("[aeiou]") ", " BYTES("false") "]}", "false", NULL },
};

static const char config[] = "{\"model_type\": \"llama\", \"hidden_size\": 8, \"num_hidden_layers\": 1, \"intermediate_size\": 8, "
                             "\"max_position_embeddings\": 16, \"num_attention_heads\": 2, \"rms_norm_eps\": 1e-5, \"vocab_size\": 16, "
                             "\"tie_word_embeddings\": true}";

/* A model of one layer without meaning. */
static void write_model(const struct test_folder *folder)
{
    static const float values[16 * 8];
    static const struct {
        const char *name, *shape;
        size_t n;
    } tensors[] = {
        { "model.embed_tokens.weight", "16, 8", 128 }, { "model.norm.weight", "8", 8 },
        { "model.layers.0.input_layernorm.weight", "8", 8 }, { "model.layers.0.post_attention_layernorm.weight", "8", 8 },
        { "model.layers.0.self_attn.q_proj.weight", "8, 8", 64 }, { "model.layers.0.self_attn.k_proj.weight", "8, 8", 64 },
        { "model.layers.0.self_attn.v_proj.weight", "8, 8", 64 }, { "model.layers.0.self_attn.o_proj.weight", "8, 8", 64 },
        { "model.layers.0.mlp.gate_proj.weight", "8, 8", 64 }, { "model.layers.0.mlp.up_proj.weight", "8, 8", 64 },
        { "model.layers.0.mlp.down_proj.weight", "8, 8", 64 },
    };
    struct test_st st = { 0 };
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        test_st_add(&st, tensors[i].name, "F32", tensors[i].shape, values, tensors[i].n * sizeof *values);
    test_st_write(&st, folder, "model.safetensors", 0);
    test_write_text(folder, "config.json", config);
}

static void write_tokenizer(const struct test_folder *folder, const char *pre_tokenizer, const char *ignore_merges)
{
    char text[4096];
    snprintf(text, sizeof text,
             "{\"added_tokens\": [{\"id\": 12, \"content\": \"<s>\", \"special\": true}, {\"id\": 14, \"content\": \"two words\", "
             "\"special\": false}], \"pre_tokenizer\": %s, \"model\": {\"type\": \"BPE\", \"ignore_merges\": %s, \"vocab\": "
             "{\"a\": 0, \"b\": 1, \"\u0120\": 2, \"c\": 3, \"\u0120a\": 4, \"bc\": 5, \"\u0120abc\": 6, \"\u010a\": 7}, "
             "\"merges\": [\"b c\", [\"\u0120\", \"a\"], \"\u0120a bc\"]}}",
             pre_tokenizer, ignore_merges);
    test_write_text(folder, "tokenizer.json", text);
    test_write_text(folder, "tokenizer_config.json", "{\"bos_token\": {\"content\": \"<s>\"}, \"pad_token\": \"<s>\", "
                                                     "\"chat_template\": \"{{ messages }}\"}");
}

static void check_text(const struct ak_vocab *v, uint32_t id, const char *text, int type)
{
    ck_assert_msg(v->tokens[id].n == strlen(text) && memcmp(v->tokens[id].bytes, text, v->tokens[id].n) == 0, "token %u is %.*s", id,
                  (int)v->tokens[id].n, v->tokens[id].bytes);
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
    if (!pres[_i].name) { /* no known one cuts so: it can be named */
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
    ck_assert_msg(v.pre.n == strlen(name) && memcmp(v.pre.bytes, name, v.pre.n) == 0, "pre is %.*s, not %s", (int)v.pre.n, v.pre.bytes, name);
    ck_assert(v.model.n == 4 && memcmp(v.model.bytes, "gpt2", 4) == 0);
    ck_assert_uint_eq(v.n_tokens, 16);
    check_text(&v, 0, "a", 1);
    check_text(&v, 6, "\xc4\xa0" "abc", 1);
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
    int64_t n = akunu_tokenize(a, text, sizeof text - 1, AKUNU_PARSE_SPECIAL, x, 32);
    int64_t m = akunu_tokenize(b, text, sizeof text - 1, AKUNU_PARSE_SPECIAL, y, 32);
    ck_assert(n > 0 && (!pres[_i].name || (n == m && memcmp(x, y, (size_t)n * sizeof *x) == 0)));
    akunu_tokenizer_free(a);
    akunu_tokenizer_free(b);
    ak_provider_close(p);
    test_folder_end(&folder);
}
END_TEST

/* ---- Files ---------------------------------------------------------------------------- */

static void check_fails(const char *from, const char *to, const struct akunu_convert_params *params, enum akunu_status status,
                        const char *named)
{
    ck_assert_int_eq(akunu_convert(from, to, params), status);
    ck_assert_msg(strstr(akunu_last_error(), named), "\"%s\" does not name %s", akunu_last_error(), named);
}

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
    int asked = 0;
    struct akunu_convert_params params = params_of("Q9_9");
    snprintf(to, sizeof to, "%s", test_in(&folder, "new.gguf"));
    snprintf(from, sizeof from, "%s", test_path("models/qwen3.gguf"));
    check_fails(from, to, &params, AKUNU_ERROR_ARGUMENT, "Q9_9");
    check_fails(NULL, to, NULL, AKUNU_ERROR_ARGUMENT, "no path");
    check_fails(from, "/nowhere/new.gguf", NULL, AKUNU_ERROR_IO, "cannot write");
    check_fails(from, "/dev/full", NULL, AKUNU_ERROR_ARGUMENT, "no file");
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
    check_fails(from, to, &params, AKUNU_ERROR_ARGUMENT, "is there already");
    params.overwrite = true;
    ck_assert_int_eq(akunu_convert(from, to, &params), AKUNU_OK);
    check_fails(to, to, &params, AKUNU_ERROR_ARGUMENT, "the model itself");
    ck_assert_int_eq(akunu_convert(to, test_in(&folder, "again.gguf"), NULL), AKUNU_OK);
    test_folder_end(&folder);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("convert");
    TCase *tests = tcase_create("convert");
    tcase_add_loop_test(tests, as_stored, 0, 5);
    tcase_add_loop_test(tests, types, 0, 4);
    tcase_add_loop_test(tests, byte_level, 0, 5);
    tcase_add_test(tests, files);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
