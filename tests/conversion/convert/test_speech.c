/* Whisper models as GGUF files: the tensors and numbers of a GGML file and of a Hugging Face folder
 * under GGUF's names, the same logits, merges from ranks, and names of special tokens. */
#include "tests/conversion/convert/models.h"

#include <stdlib.h>

#include "conversion/convert/convert.h"
#include "engine/spec/stages.h"
#include "speech/search/rules.h"
#include "text/tokenizer/tokenizer.h"

static void find_tensor(const struct ak_provider *p, const char *name, struct ak_tensor *out)
{
    size_t i = 0;
    while (ak_provider_tensor(p, i, out) && strcmp(out->name, name) != 0)
        i++;
    ck_assert_msg(i < ak_provider_n_tensors(p), "%s is missing", name);
}

static uint64_t count(const struct ak_tensor *t)
{
    uint64_t n = 1;
    for (unsigned d = 0; d < t->n_dims; d++)
        n *= t->shape[d];
    return n;
}

/* Matrices and kernels of at least two dimensions, whatever stands in a file as [n, 1]. */
static bool is_matrix(const struct ak_tensor *t)
{
    return t->n_dims > 1 && t->shape[t->n_dims - 1] > 1;
}

static enum ak_quant_type expected_type(const struct ak_tensor *t, const char *asked)
{
    if (!is_matrix(t) || strstr(t->name, "positional"))
        return AK_QUANT_F32;
    if (!asked)
        return t->type;
    if (strcmp(asked, "Q8_0") == 0)
        return strstr(t->name, "conv") ? AK_QUANT_F16 : AK_QUANT_Q8_0;
    return strcmp(asked, "F16") == 0 ? AK_QUANT_F16 : AK_QUANT_F32;
}

static void check_tensor(const struct ak_tensor *stored, const struct ak_tensor *converted,
                         const char *asked)
{
    uint64_t n = count(stored);
    ck_assert_uint_eq(n, count(converted));
    ck_assert_uint_eq(converted->n_dims, is_matrix(stored) ? stored->n_dims : 1);
    ck_assert_msg(converted->type == expected_type(stored, asked), "%s is %s", stored->name,
                  ak_quant_info(converted->type)->name);
    float *values = malloc(n * sizeof *values);
    uint8_t *blocks = malloc(converted->bytes);
    ck_assert(values && blocks);
    ak_quant_info(stored->type)->dequantize(stored->data, values, n);
    ak_quant_info(converted->type)->quantize(values, blocks, n);
    ck_assert_msg(memcmp(blocks, converted->data, converted->bytes) == 0, "%s differs",
                  stored->name);
    free(values);
    free(blocks);
}

static uint64_t number(const struct ak_provider *p, const char *key)
{
    struct ak_meta meta;
    ck_assert_msg(ak_provider_find_meta(p, key, &meta), "%s is missing", key);
    ck_assert(meta.kind == AK_META_UINT);
    return meta.as.unsigned_integer;
}

static void check_numbers(const struct ak_provider *a, const struct ak_provider *b)
{
    struct ak_meta x, y, ex, ey;
    for (size_t i = 0; ak_provider_meta(a, i, &x); i++)
        if (x.kind == AK_META_UINT && strncmp(x.key, "whisper.", 8) == 0)
            ck_assert_msg(number(b, x.key) == x.as.unsigned_integer, "%s differs", x.key);
    ck_assert(ak_provider_find_meta(a, "whisper.encoder.mel_filters", &x) &&
              ak_provider_find_meta(b, "whisper.encoder.mel_filters", &y) && x.n == y.n);
    for (uint64_t i = 0; ak_provider_element(a, &x, i, &ex); i++)
        ck_assert(ak_provider_element(b, &y, i, &ey) && ex.as.number == ey.as.number);
}

static void convert_ok(const char *from, const char *to, const char *type)
{
    struct akunu_convert_params params = params_of(type);
    params.overwrite = true;
    ck_assert_msg(akunu_convert(from, to, &params) == AKUNU_OK, "%s", akunu_last_error());
}

static const char *const types[] = { NULL, "F32", "F16", "Q8_0" };

START_TEST(from_ggml)
{
    struct test_folder folder = test_folder_begin();
    struct ak_tensor x, y;
    char to[96], again[96], from[4096];
    snprintf(to, sizeof to, "%s", test_in(&folder, "new.gguf"));
    snprintf(again, sizeof again, "%s", test_in(&folder, "again.gguf"));
    snprintf(from, sizeof from, "%s", test_path("speech/model.bin"));
    convert_ok(from, to, types[_i]);
    struct ak_provider *a = open_ok(from), *b = open_ok(to);
    ck_assert_uint_eq(ak_provider_n_tensors(a), ak_provider_n_tensors(b));
    for (size_t i = 0; ak_provider_tensor(a, i, &x); i++) {
        find_tensor(b, x.name, &y);
        check_tensor(&x, &y, types[_i]);
        ck_assert(y.has_role && y.role == x.role && y.layer == x.layer);
    }
    check_numbers(a, b);
    convert_ok(to, again, NULL);
    struct ak_provider *c = open_ok(again);
    for (size_t i = 0; ak_provider_tensor(b, i, &x); i++)
        ck_assert(ak_provider_tensor(c, i, &y) && strcmp(x.name, y.name) == 0 && x.type == y.type &&
                  memcmp(x.data, y.data, x.bytes) == 0);
    check_numbers(b, c);
    ak_provider_close(a);
    ak_provider_close(b);
    ak_provider_close(c);
    test_folder_end(&folder);
}
END_TEST

/* ---- Hugging Face ------------------------------------------------------- */
static const char config[] =
    "{\"model_type\": \"whisper\", \"d_model\": 8, \"encoder_layers\": 3, \"decoder_layers\": 2, "
    "\"encoder_attention_heads\": 2, \"decoder_attention_heads\": 2, \"encoder_ffn_dim\": 16, "
    "\"decoder_ffn_dim\": 16, \"max_source_positions\": 6, \"max_target_positions\": 5, "
    "\"num_mel_bins\": 4, \"vocab_size\": 16, \"pad_token_id\": 0, \"activation_function\": "
    "\"gelu\", "
    "\"tie_word_embeddings\": true}";

static void write_folder(const struct test_folder *folder, const char *heads)
{
    char text[256];
    struct ak_spec spec = { .arch = NULL };
    struct ak_error error;
    test_write_text(folder, "config.json", config);
    snprintf(text, sizeof text, "{\"alignment_heads\": %s}", heads);
    test_write_text(folder, "generation_config.json", text);
    struct test_st st = { 0 };
    static const float embedding[16 * 8];
    /* the sizes follow from the embedding, so it is there first */
    test_st_add(&st, "model.decoder.embed_tokens.weight", "F32", "16, 8", embedding,
                sizeof embedding);
    test_st_write(&st, folder, "model.safetensors", 0);
    struct ak_provider *p = open_ok(folder->path);
    ck_assert_msg(ak_spec_read(p, &spec, &error) == AKUNU_OK, "%s", error.message);
    write_weights(folder, &spec);
    ak_spec_clear(&spec);
    ak_provider_close(p);
}

START_TEST(from_folder)
{
    struct test_folder folder = test_folder_begin();
    static const int64_t expected[] = { 0, 1, 1, 0, 1, 1 };
    struct ak_meta heads, element;
    struct ak_tensor tensor;
    char to[96];
    snprintf(to, sizeof to, "%s", test_in(&folder, "new.gguf"));
    write_folder(&folder, "[[0, 1], [1, 0], [1, 1]]");
    convert_ok(folder.path, to, "F16");
    struct ak_provider *p = open_ok(to);
    ck_assert_uint_eq(number(p, "whisper.encoder.block_count"), 3);
    ck_assert_uint_eq(number(p, "whisper.decoder.block_count"), 2);
    ck_assert_uint_eq(number(p, "whisper.encoder.mels_count"), 4);
    ck_assert(ak_provider_find_meta(p, "whisper.alignment_heads", &heads) && heads.n == 6);
    for (uint64_t i = 0; i < 6; i++)
        ck_assert(ak_provider_element(p, &heads, i, &element) && element.as.integer == expected[i]);
    /* filters that a folder lacks are left to be computed */
    ck_assert(!ak_provider_find_meta(p, "whisper.encoder.mel_filters", &heads));
    find_tensor(p, "encoder.blocks.2.mlp.0.weight", &tensor);
    ck_assert(tensor.shape[0] == 16 && tensor.shape[1] == 8 && tensor.type == AK_QUANT_F16);
    find_tensor(p, "encoder.conv1.weight", &tensor);
    ck_assert(tensor.shape[0] == 8 && tensor.shape[1] == 4 && tensor.shape[2] == 3);
    find_tensor(p, "decoder.blocks.1.cross_attn.key.weight", &tensor);
    ck_assert_uint_eq(ak_provider_n_tensors(p), 11 + 3 * 15 + 2 * 24);
    ak_provider_close(p);
    test_folder_end(&folder);
}
END_TEST

/* ---- Heads that the decoder does not have ------------------------------- */
static void count_line(enum akunu_log_level level, const char *line, void *user)
{
    if (strstr(line, "alignment_heads")) {
        ck_assert_int_eq(level, AKUNU_LOG_WARN);
        ++*(int *)user;
    }
}

/* The heads of a decoder of 2 layers of 2 heads, as "layer.head" each; the error if there is one.
 */
static void read_heads(const struct test_folder *folder, const char *heads, char out[64],
                       uint32_t *n_foreign)
{
    char text[256];
    struct ak_spec spec = { .arch = NULL };
    struct ak_error error = { 0 };
    snprintf(text, sizeof text, "{\"alignment_heads\": %s}", heads);
    test_write_text(folder, "generation_config.json", text);
    struct ak_provider *p = open_ok(folder->path);
    size_t n = 0;
    ak_status status = ak_spec_read(p, &spec, &error);
    *n_foreign = spec.config.n_foreign_alignment;
    if (status != AKUNU_OK)
        strcpy(out, strstr(error.message, "is no list") ? "no list" : "another error");
    for (uint32_t i = 0; status == AKUNU_OK && i < spec.config.n_alignment; i++)
        n += (size_t)snprintf(out + n, 64 - n, "%s%d.%d", i ? " " : "",
                              spec.config.alignment[i].layer, spec.config.alignment[i].head);
    ak_spec_clear(&spec);
    ak_provider_close(p);
}

START_TEST(foreign_heads)
{
    static const struct {
        const char *list, *found;
        uint32_t n_foreign;
    } cases[] = {
        { "[[0, 1], [1, 0], [1, 1]]", "0.1 1.0 1.1", 0 },
        { "[0, 1, 1, 0]", "0.1 1.0", 0 },
        { "[[0, 1], [2, 0], [1, 0], [31, 1]]", "0.1 1.0", 2 },
        { "[[0, 1], [1, 2]]", "0.1", 1 },
        { "[[0, 1], [256, 0], [0, 257]]", "0.1", 2 },
        /* none is left, or there was none: the last half of the layers */
        { "[[10, 12], [13, 17]]", "1.0 1.1", 2 },
        { "[]", "1.0 1.1", 0 },
        { "null", "1.0 1.1", 0 },
        { "[[1, 1], [0, 1], [1, 1]]", "1.1 0.1", 0 },
        { "[[0]]", "no list", 0 },
        { "[[0, 1, 2]]", "no list", 0 },
        { "[[0, 1], [0, -1]]", "no list", 0 },
        { "[[0, -2]]", "no list", 0 },
        { "[[0, 0.5]]", "no list", 0 },
        { "[[0, \"1\"]]", "no list", 0 },
        { "[[0, 1], 1]", "no list", 0 },
        { "[0, 1, 1]", "no list", 0 },
        { "\"all\"", "no list", 0 },
        { "7", "no list", 0 },
    };
    struct test_folder folder = test_folder_begin();
    write_folder(&folder, "[]");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char found[64] = "";
        uint32_t n_foreign;
        read_heads(&folder, cases[i].list, found, &n_foreign);
        ck_assert_msg(strcmp(found, cases[i].found) == 0, "%s: %s", cases[i].list, found);
        if (strcmp(found, "no list") != 0)
            ck_assert_msg(n_foreign == cases[i].n_foreign, "%s: %u", cases[i].list, n_foreign);
    }
    test_folder_end(&folder);
}
END_TEST

/* Loading and converting tell of them; the new file has those that are left. */
START_TEST(foreign_heads_are_dropped)
{
    struct test_folder folder = test_folder_begin();
    struct ak_meta heads, element;
    struct akunu_load_params load;
    struct akunu_convert_params params = params_of("F16");
    char to[96];
    int n_lines = 0;
    snprintf(to, sizeof to, "%s", test_in(&folder, "new.gguf"));
    write_folder(&folder, "[[3, 1], [0, 1], [1, 4]]");
    params.log = count_line;
    params.user = &n_lines;
    ck_assert_msg(akunu_convert(folder.path, to, &params) == AKUNU_OK, "%s", akunu_last_error());
    ck_assert_int_eq(n_lines, 1);
    struct ak_provider *p = open_ok(to);
    ck_assert(ak_provider_find_meta(p, "whisper.alignment_heads", &heads) && heads.n == 2);
    for (uint64_t i = 0; i < 2; i++)
        ck_assert(ak_provider_element(p, &heads, i, &element) && element.as.integer == (int64_t)i);
    ak_provider_close(p);

    akunu_load_params_default(&load, sizeof load);
    load.no_cache = true;
    load.log = count_line;
    load.user = &n_lines;
    for (int i = 0; i < 2; i++) {
        struct akunu_model *model = akunu_model_load(i == 0 ? folder.path : to, &load);
        ck_assert_msg(model != NULL, "%s", akunu_last_error());
        ck_assert_int_eq(n_lines, 2);
        akunu_model_free(model);
    }
    test_folder_end(&folder);
}
END_TEST

/* ---- Vocabulary --------------------------------------------------------- */
/* Each token is made of what the merges of lower ranks leave of it; one that they do not make at
 * all has no merge. */
START_TEST(merges)
{
    static const char *const tokens[] = { "a", "b", "c", " ", "ab", "bc", "abc", "abcabc", "ca b" };
    static const char *const expected[] = { "a b", "b c", "ab c", "abc abc" };
    struct ak_text texts[9];
    struct ak_tokenizer *t;
    struct ak_tok_export e;
    struct ak_error error;
    for (int i = 0; i < 9; i++)
        texts[i] = (struct ak_text){ tokens[i], (uint32_t)strlen(tokens[i]) };
    struct ak_vocab vocab = ak_vocab_none;
    vocab.model = (struct ak_text){ "tiktoken", 8 };
    vocab.pre = (struct ak_text){ "gpt-2", 5 };
    vocab.tokens = texts;
    vocab.n_tokens = 9;
    ck_assert_msg(ak_tok_create(&vocab, &t, &error) == AKUNU_OK, "%s", error.message);
    ck_assert_msg(ak_tok_export_vocab(t, 10, vocab.pre, &e, &error) == AKUNU_OK, "%s",
                  error.message);
    ck_assert_uint_eq(e.vocab.n_merges, 4);
    for (int i = 0; i < 4; i++)
        ck_assert(e.merges[i].n == strlen(expected[i]) &&
                  memcmp(e.merges[i].bytes, expected[i], e.merges[i].n) == 0);
    ck_assert(e.tokens[3].n == 2 && memcmp(e.tokens[3].bytes, "\xc4\xa0", 2) == 0);
    ak_tok_export_free(&e);
    ak_tok_free(t);
}
END_TEST

/* Vocabularies of OpenAI's sizes have names for all their ids; those of others are left alone. */
START_TEST(special_tokens)
{
    static const struct {
        uint32_t n, id;
        const char *name;
    } cases[] = {
        { 51864, 50256, "<|endoftext|>" },  { 51864, 50257, "<|startoftranscript|>" },
        { 51864, 50258, "<|en|>" },         { 51864, 50361, "<|nospeech|>" },
        { 51864, 50363, "<|0.00|>" },       { 51864, 51863, "<|30.00|>" },
        { 51865, 50257, "<|endoftext|>" },  { 51865, 50358, "<|translate|>" },
        { 51865, 50365, "<|0.02|>" },       { 51866, 50358, "<|yue|>" },
        { 51866, 50360, "<|transcribe|>" }, { 51866, 50364, "<|notimestamps|>" },
        { 51000, 50300, "[PAD50300]" },
    };
    static const char byte[] = "a";
    struct ak_text token = { byte, 1 };
    struct ak_tokenizer *t;
    struct ak_tok_export e;
    struct ak_error error;
    struct ak_buffer names = { .n = 0 };
    struct ak_vocab vocab = ak_vocab_none;
    vocab.model = (struct ak_text){ "tiktoken", 8 };
    vocab.pre = (struct ak_text){ "gpt-2", 5 };
    vocab.tokens = &token;
    vocab.n_tokens = 1;
    ck_assert_int_eq(ak_tok_create(&vocab, &t, &error), AKUNU_OK);
    ck_assert_int_eq(ak_tok_export_vocab(t, cases[_i].n, vocab.pre, &e, &error), AKUNU_OK);
    ck_assert_int_eq(ak_convert_name_special_tokens(&e, &names, &error), AKUNU_OK);
    const struct ak_text *name = &e.tokens[cases[_i].id];
    ck_assert_msg(name->n == strlen(cases[_i].name) &&
                      memcmp(name->bytes, cases[_i].name, name->n) == 0,
                  "%.*s", (int)name->n, name->bytes);
    ck_assert_int_eq(e.types[cases[_i].id], cases[_i].n == 51000 ? 5 : 3);
    ak_free(names.bytes);
    ak_tok_export_free(&e);
    ak_tok_free(t);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("convert_speech");
    TCase *tests = tcase_create("convert_speech");
    tcase_add_loop_test(tests, from_ggml, 0, 4);
    tcase_add_test(tests, from_folder);
    tcase_add_test(tests, foreign_heads);
    tcase_add_test(tests, foreign_heads_are_dropped);
    tcase_add_test(tests, merges);
    tcase_add_loop_test(tests, special_tokens, 0, 13);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
