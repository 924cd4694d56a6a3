/* Metadata of converted models: the numbers of decoders under llama.cpp's keys, the name, special
 * tokens, chat templates, and what GGUF cannot express. Expected are the keys of gguf's
 * constants.py, with the numbers of the configuration. */
#include "tests/conversion/convert/models.h"

#include <sys/stat.h>
#include <unistd.h>

#include "conversion/convert/convert.h"
#include "engine/spec/arch.h"
#include "tests/process.h"

static struct test_folder folder;
static char to[128];

static void set_up(void)
{
    folder = test_folder_begin();
    snprintf(to, sizeof to, "%s", test_in(&folder, "new.gguf"));
}

/* After a conversion, a failed one too, the source is mapped no more. */
static void tear_down(void)
{
    test_check_unmapped();
    test_folder_end(&folder);
}

/* The result of an earlier conversion is replaced. */
static struct akunu_convert_params replacing(const char *type)
{
    struct akunu_convert_params params = params_of(type);
    params.overwrite = true;
    return params;
}

static struct ak_provider *convert_ok(const char *from, const struct akunu_convert_params *params)
{
    struct akunu_convert_params usual = replacing(NULL);
    ck_assert_msg(akunu_convert(from, to, params ? params : &usual) == AKUNU_OK, "%s: %s", from,
                  akunu_last_error());
    return open_ok(to);
}

static void check_fails(const char *from, const struct akunu_convert_params *params,
                        enum akunu_status status, const char *said)
{
    struct akunu_convert_params usual = replacing(NULL);
    unlink(to);
    ck_assert_int_eq(akunu_convert(from, to, params ? params : &usual), status);
    ck_assert_msg(strstr(akunu_last_error(), said), "'%s' lacks '%s'", akunu_last_error(), said);
    ck_assert_int_ne(access(to, F_OK), 0);
}

/* ---- Numbers ------------------------------------------------------------ */
/* "u 5", "f 0.5", "b 1", "s text", "a 0 2 0" */
static void render(const struct ak_provider *p, const struct ak_meta *meta, char *out, size_t n)
{
    struct ak_meta e;
    size_t at;
    switch (meta->kind) {
    case AK_META_UINT:
        snprintf(out, n, "u%s %llu", meta->width == 4 ? "" : "?",
                 (unsigned long long)meta->as.unsigned_integer);
        break;
    case AK_META_FLOAT:
        snprintf(out, n, "f%s %.6g", meta->width == 4 ? "" : "?", meta->as.number);
        break;
    case AK_META_BOOL: snprintf(out, n, "b %d", meta->as.boolean); break;
    case AK_META_STRING: snprintf(out, n, "s %.*s", (int)meta->n, meta->as.string); break;
    case AK_META_ARRAY:
        at = (size_t)snprintf(out, n, "a");
        for (uint64_t i = 0; ak_provider_element(p, meta, i, &e) && i < 8; i++)
            at += (size_t)snprintf(out + at, n - at, " %lld",
                                   e.kind == AK_META_BOOL ? (long long)e.as.boolean :
                                                            (long long)e.as.integer);
        break;
    default: snprintf(out, n, "?"); break;
    }
}

/* All entries whose keys begin with the architecture are those of the lines "key value", and no
 * others. */
static void check_keys(const struct ak_provider *p, const char *architecture,
                       const char *const lines[], size_t n)
{
    struct ak_meta meta;
    char line[160], value[96];
    size_t n_found = 0, n_bytes = strlen(architecture);
    for (size_t i = 0; ak_provider_meta(p, i, &meta); i++) {
        if (strncmp(meta.key, architecture, n_bytes) != 0 || meta.key[n_bytes] != '.')
            continue;
        render(p, &meta, value, sizeof value);
        snprintf(line, sizeof line, "%s %s", meta.key + n_bytes + 1, value);
        size_t at = 0;
        while (at < n && strcmp(lines[at], line) != 0)
            at++;
        ck_assert_msg(at < n, "%s: unexpected %s", architecture, line);
        n_found++;
    }
    for (size_t i = 0; i < n && n_found < n; i++) { /* name the missing one */
        snprintf(line, sizeof line, "%s.%.*s", architecture, (int)strcspn(lines[i], " "), lines[i]);
        ck_assert_msg(ak_provider_find_meta(p, line, &meta), "%s is missing", line);
    }
    ck_assert_uint_eq(n_found, n);
}

#define COMMON                                                                                     \
    "context_length u 64", "embedding_length u 8", "feed_forward_length u 12",                     \
        "attention.head_count u 4", "attention.key_length u 4", "attention.value_length u 4",      \
        "vocab_size u 16", "attention.layer_norm_rms_epsilon f 1e-05", "rope.dimension_count u 4"
#define HEADS "attention.head_count_kv u 2"
#define BASE "rope.freq_base f 10000"

static const struct {
    const char *model_type, *architecture;
    uint32_t n_layers;
    const char *config;
    const char *lines[24];
} decoders[] = {
    { "llama", "llama", 1, "", { COMMON, HEADS, BASE, "block_count u 1" } },
    { "mistral",
      "llama",
      2,
      ", \"sliding_window\": 5, \"rope_theta\": 500000, \"rope_scaling\": {\"type\": \"linear\", "
      "\"factor\": 2.5}",
      { COMMON, HEADS, "rope.freq_base f 500000", "block_count u 2", "attention.sliding_window u 5",
        "rope.scaling.type s linear", "rope.scaling.factor f 2.5" } },
    { "llama",
      "llama",
      1,
      ", \"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4, "
      "\"original_max_position_embeddings\": 16, \"beta_fast\": 30, \"beta_slow\": 2}",
      { COMMON, HEADS, BASE, "block_count u 1", "rope.scaling.type s yarn",
        "rope.scaling.factor f 4", "rope.scaling.original_context_length u 16",
        "rope.scaling.yarn_beta_fast f 30", "rope.scaling.yarn_beta_slow f 2" } },
    /* attn_factor: 1.25 / (0.1 ln 4 + 1) */
    { "llama",
      "llama",
      1,
      ", \"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4, "
      "\"original_max_position_embeddings\": 16, \"attention_factor\": 1.25, \"truncate\": false}",
      { COMMON, HEADS, BASE, "block_count u 1", "rope.scaling.type s yarn",
        "rope.scaling.factor f 4", "rope.scaling.original_context_length u 16",
        "rope.scaling.yarn_beta_fast f 32", "rope.scaling.yarn_beta_slow f 1",
        "rope.scaling.attn_factor f 1.09781", "rope.scaling.truncate b 0" } },
    /* whose divisors are a tensor */
    { "llama",
      "llama",
      1,
      ", \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 1, "
      "\"high_freq_factor\": 4, \"original_max_position_embeddings\": 16}",
      { COMMON, HEADS, BASE, "block_count u 1" } },
    /* attn_factor: sqrt(1 + ln(64 / 16) / ln 16) */
    { "phi3",
      "phi3",
      1,
      ", \"original_max_position_embeddings\": 16, \"rope_scaling\": {\"type\": \"longrope\", "
      "\"long_factor\": [1.5, 2], \"short_factor\": [1, 1.25]}",
      { COMMON, HEADS, BASE, "block_count u 1", "rope.scaling.type s longrope",
        "rope.scaling.original_context_length u 16", "rope.scaling.attn_factor f 1.22474" } },
    { "gemma2",
      "gemma2",
      2,
      ", \"attn_logit_softcapping\": 40, \"final_logit_softcapping\": 20.5",
      { COMMON, HEADS, BASE, "block_count u 2", "attn_logit_softcapping f 40",
        "final_logit_softcapping f 20.5", "attention.sliding_window u 4096",
        "attention.scale f 0.0625" } }, /* 256 to the power of -1/2 */
    { "gemma3_text",
      "gemma3",
      3,
      ", \"sliding_window\": 32, \"sliding_window_pattern\": 3, \"rope_local_base_freq\": 5000, "
      "\"query_pre_attn_scalar\": 16",
      { COMMON, HEADS, "rope.freq_base f 1e+06", "block_count u 3", "attention.sliding_window u 32",
        "attention.sliding_window_pattern u 3", "rope.freq_base_swa f 5000",
        "attention.scale f 0.25" } },
    { "granite",
      "granite",
      1,
      ", \"embedding_multiplier\": 12, \"residual_multiplier\": 0.22, \"attention_multiplier\": "
      "0.125, \"logits_scaling\": 8",
      { COMMON, HEADS, BASE, "block_count u 1", "embedding_scale f 12", "residual_scale f 0.22",
        "attention.scale f 0.125", "logit_scale f 8" } },
    { "smollm3",
      "smollm3",
      3,
      ", \"no_rope_layers\": [1, 1, 0]",
      { COMMON, HEADS, "rope.freq_base f 2e+06", "block_count u 3",
        "no_rope_layer_interval u 3" } },
    { "smollm3",
      "smollm3",
      3,
      ", \"no_rope_layers\": [1, 1, 1]",
      { COMMON, HEADS, "rope.freq_base f 2e+06", "block_count u 3",
        "no_rope_layer_interval u 4" } },
    /* scales are floats whatever JSON has, and those that are absent have their class's values */
    { "granite",
      "granite",
      1,
      ", \"embedding_multiplier\": 3",
      { COMMON, HEADS, BASE, "block_count u 1", "embedding_scale f 3", "residual_scale f 1",
        "attention.scale f 1", "logit_scale f 1" } },
    /* an activation that llama.cpp does not expect */
    { "llama",
      "llama",
      1,
      ", \"hidden_act\": \"relu\"",
      { COMMON, HEADS, BASE, "block_count u 1", "hidden_act s relu" } },
    { "qwen2",
      "qwen2",
      3,
      ", \"use_sliding_window\": true, \"sliding_window\": 5, \"max_window_layers\": 1",
      { COMMON, HEADS, BASE, "block_count u 3", "attention.sliding_window u 5",
        "attention.sliding_window_pattern a 0 1 1" } },
    { "lfm2",
      "lfm2",
      3,
      ", \"layer_types\": [\"conv\", \"full_attention\", \"conv\"], \"conv_L_cache\": 3, "
      "\"block_auto_adjust_ff_dim\": false, \"conv_bias\": false",
      { COMMON, "rope.freq_base f 1e+06", "block_count u 3", "attention.head_count_kv a 0 2 0",
        "shortconv.l_cache u 3" } },
};
enum { N_DECODERS = sizeof decoders / sizeof *decoders };

static void write_decoder(int i, const char *more)
{
    struct ak_spec spec = { .arch = arch_of(decoders[i].model_type),
                            .config = { .n_layers = decoders[i].n_layers,
                                        .width = 8,
                                        .n_heads = 4,
                                        .n_kv_heads = 2,
                                        .head_dim = 4,
                                        .ffn_width = 12,
                                        .vocab_size = 16,
                                        .conv_taps = 3,
                                        .context = 64 } };
    char text[2048];
    if (strcmp(decoders[i].model_type, "lfm2") == 0) {
        ak_spec_set_recurrent(&spec.config, 0);
        ak_spec_set_recurrent(&spec.config, 2);
    }
    write_weights(&folder, &spec);
    snprintf(text, sizeof text,
             "{\"model_type\": \"%s\", \"num_hidden_layers\": %u, \"hidden_size\": 8, "
             "\"intermediate_size\": 12, \"max_position_embeddings\": 64, "
             "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"head_dim\": 4, "
             "\"%s\": 1e-5, \"vocab_size\": 16%s, "
             "\"tie_word_embeddings\": true%s%s}",
             decoders[i].model_type, decoders[i].n_layers,
             strcmp(decoders[i].model_type, "lfm2") == 0 ? "norm_eps" : "rms_norm_eps",
             strstr(more, "pad_token_id") ? "" : ", \"pad_token_id\": null", decoders[i].config,
             more);
    test_write_text(&folder, "config.json", text);
}

START_TEST(numbers)
{
    size_t n = 0;
    write_decoder(_i, "");
    struct ak_provider *p = convert_ok(folder.path, NULL);
    while (decoders[_i].lines[n])
        n++;
    check_keys(p, decoders[_i].architecture, decoders[_i].lines, n);
    static const char *const general[] = { "type s model", "file_type u 0", NULL, NULL };
    char name[64], architecture[64];
    snprintf(name, sizeof name, "name s %s", strrchr(folder.path, '/') + 1);
    snprintf(architecture, sizeof architecture, "architecture s %s", decoders[_i].architecture);
    const char *const lines[] = { general[0], general[1], name, architecture };
    check_keys(p, "general", lines, 4);
    ak_provider_close(p);
}
END_TEST

/* The values of all tensors, but for types: some are floats in the new file whatever they were, and
 * the decay is an exponential. */
static void check_values(const struct ak_provider *ours, const struct ak_provider *golden)
{
    struct ak_tensor x, y;
    ck_assert_uint_eq(ak_provider_n_tensors(ours), ak_provider_n_tensors(golden));
    for (size_t i = 0; ak_provider_tensor(golden, i, &x); i++) {
        size_t at = 0, n = 1, m = 1;
        while (ak_provider_tensor(ours, at, &y) && strcmp(y.name, x.name) != 0)
            at++;
        ck_assert_msg(at < ak_provider_n_tensors(ours), "%s", x.name);
        for (unsigned d = 0; d < x.n_dims; d++)
            n *= x.shape[d];
        for (unsigned d = 0; d < y.n_dims; d++)
            m *= y.shape[d];
        ck_assert_msg(n == m && x.shape[x.n_dims - 1] == y.shape[y.n_dims - 1], "%s", x.name);
        float *a = malloc(n * sizeof *a), *b = malloc(n * sizeof *b);
        ak_quant_info(x.type)->dequantize(x.data, a, n);
        ak_quant_info(y.type)->dequantize(y.data, b, n);
        for (size_t k = 0; k < n; k++)
            ck_assert_msg(a[k] - b[k] <= 1e-5f && b[k] - a[k] <= 1e-5f, "%s[%zu]: %g, not %g",
                          x.name, k, (double)b[k], (double)a[k]);
        free(a);
        free(b);
    }
}

/* The numbers and tensors of the models that gguf's writer wrote for the same folders. */
START_TEST(recurrent)
{
    static const char *const names[] = { "qwen35", "qwen35moe", "qwen3next" };
    struct ak_meta theirs, ours;
    char path[64], from[4096], a[96], b[96];
    snprintf(path, sizeof path, "folders/%s", names[_i]);
    snprintf(from, sizeof from, "%s", test_path(path));
    struct ak_provider *p = convert_ok(from, NULL);
    snprintf(path, sizeof path, "models/%s.gguf", names[_i]);
    struct ak_provider *golden = open_ok(test_path(path));
    for (size_t i = 0; ak_provider_meta(golden, i, &theirs); i++) {
        if (strcmp(theirs.key, "general.name") == 0 || strstr(theirs.key, "size_label") ||
            strstr(theirs.key, "quantization_version"))
            continue;
        ck_assert_msg(ak_provider_find_meta(p, theirs.key, &ours), "%s", theirs.key);
        render(golden, &theirs, a, sizeof a);
        render(p, &ours, b, sizeof b);
        ck_assert_msg(strcmp(a, b) == 0, "%s is %s, not %s", theirs.key, b, a);
    }
    check_values(p, golden);
    ak_provider_close(p);
    ak_provider_close(golden);
}
END_TEST

static void check_floats(const struct ak_provider *p, const char *name, const float *want, size_t n)
{
    struct ak_tensor t;
    size_t i = 0;
    while (ak_provider_tensor(p, i, &t) && strcmp(t.name, name) != 0)
        i++;
    ck_assert_msg(i < ak_provider_n_tensors(p), "%s", name);
    ck_assert(t.type == AK_QUANT_F32 && t.n_dims == 1 && t.shape[0] == n);
    for (size_t k = 0; k < n; k++) {
        float got;
        memcpy(&got, (const char *)t.data + k * sizeof got, sizeof got);
        ck_assert_msg(got > 0.99999f * want[k] && got < 1.00001f * want[k], "%s[%zu] is %g", name,
                      k, (double)got);
    }
}

/* Llama 3: wavelengths of 2π and 200π; the first is between 16/4 and 16/1, where
 * smooth = (16/2π - 1) / (4 - 1) and the frequency is (1 - smooth)/8 + smooth. */
START_TEST(divisors)
{
    for (int i = 0; i < N_DECODERS; i++) {
        bool llama3 = strstr(decoders[i].config, "llama3"),
             longrope = strstr(decoders[i].config, "longrope");
        if (!llama3 && !longrope)
            continue;
        write_decoder(i, "");
        struct ak_provider *p = convert_ok(folder.path, NULL);
        if (llama3)
            check_floats(p, "rope_freqs.weight", (const float[]){ 1.735939f, 8.0f }, 2);
        else {
            check_floats(p, "rope_factors_long.weight", (const float[]){ 1.5f, 2.0f }, 2);
            check_floats(p, "rope_factors_short.weight", (const float[]){ 1.0f, 1.25f }, 2);
        }
        ak_provider_close(p);
    }
}
END_TEST

/* ---- Names and types ---------------------------------------------------- */
static void check_value(const struct ak_provider *p, const char *key, const char *want)
{
    struct ak_meta meta;
    char got[320] = "-";
    if (ak_provider_find_meta(p, key, &meta))
        render(p, &meta, got, sizeof got);
    ck_assert_msg(strcmp(got, want) == 0, "%s is %s, not %s", key, got, want);
}

START_TEST(names)
{
    const char *named[] = { "general.name=str:Some name", NULL };
    struct akunu_convert_params params = replacing(NULL);
    char path[128], want[128];
    write_decoder(0, "");
    snprintf(want, sizeof want, "s %s", strrchr(folder.path, '/') + 1);
    for (int slashes = 0; slashes < 3; slashes++) {
        snprintf(path, sizeof path, "%s%.*s", folder.path, slashes, "//");
        struct ak_provider *p = convert_ok(path, NULL);
        check_value(p, "general.name", want);
        ak_provider_close(p);
    }
    /* a path without a folder */
    char before[4096];
    ck_assert_ptr_nonnull(getcwd(before, sizeof before));
    ck_assert_int_eq(chdir("/tmp"), 0);
    struct ak_provider *p = convert_ok(folder.path + strlen("/tmp/"), NULL);
    check_value(p, "general.name", want);
    ak_provider_close(p);
    ck_assert_int_eq(chdir(before), 0);
    params.override_kv = named;
    p = convert_ok(folder.path, &params);
    check_value(p, "general.name", "s Some name");
    ak_provider_close(p);
    named[0] = "general.name=int:5";
    check_fails(folder.path, &params, AKUNU_ERROR_FORMAT, "general.name is the integer 5");
}
END_TEST

/* Keys that a model of this kind has no use for. */
START_TEST(absent)
{
    static const char *const cases[][2] = {
        { "folders/qwen3next", "qwen3next.rope.dimension_sections" },
        { "encoders/bert", "bert.rope.freq_base" },
        { "encoders/bert", "bert.rope.dimension_count" },
        { "encoders/bert", "bert.attention.layer_norm_rms_epsilon" },
        { "encoders/modernbert", "modern-bert.no_rope_layer_interval" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char from[4096];
        snprintf(from, sizeof from, "%s", test_path(cases[i][0]));
        struct ak_provider *p = convert_ok(from, NULL);
        check_value(p, cases[i][1], "-");
        ak_provider_close(p);
    }
}
END_TEST

/* The type of most bytes; a version where blocks are. */
START_TEST(file_types)
{
    static const struct {
        const char *from, *type, *file_type, *version;
    } cases[] = {
        { "models/qwen3.gguf", NULL, "u 32", "u 2" }, /* as the source has them */
        { "models/qwen3.gguf", "F32", "u 0", "-" },   { "models/qwen3.gguf", "F16", "u 1", "-" },
        { "models/qwen3.gguf", "BF16", "u 32", "-" }, { "models/qwen3.gguf", "Q8_0", "u 7", "u 2" },
        { "folders/qwen35", NULL, "u 32", "-" },      { "folders/qwen35", "q8_0", "u 7", "u 2" },
        { "quantized/mlx", NULL, "u 0", "-" }, /* GGUF has none of its types */
        { "quantized/fp8", NULL, "u 1", "-" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct akunu_convert_params params = replacing(cases[i].type);
        char from[4096];
        snprintf(from, sizeof from, "%s", test_path(cases[i].from));
        struct ak_provider *p = convert_ok(from, &params);
        check_value(p, "general.file_type", cases[i].file_type);
        check_value(p, "general.quantization_version", cases[i].version);
        ak_provider_close(p);
    }
}
END_TEST

/* llama.cpp's numbers of one kind (LLAMA_POOLING_TYPE_…); it has none for several kinds at once,
 * nor for the maximum. */
START_TEST(pooling_types)
{
    static const struct {
        const char *modes, *want;
    } cases[] = {
        { "\"pooling_mode_mean_tokens\": true", "u 1" },
        { "\"pooling_mode_cls_token\": true", "u 2" },
        { "\"pooling_mode_lasttoken\": true", "u 3" },
        { "\"pooling_mode_max_tokens\": true", "u 0" },
        { "\"pooling_mode_cls_token\": true, \"pooling_mode_mean_tokens\": true", "u 0" },
        { "\"pooling_mode_mean_tokens\": true, \"pooling_mode_max_tokens\": true", "u 0" },
    };
    static const char *const files[] = { "config.json", "model.safetensors", "modules.json",
                                         "tokenizer.json", "tokenizer_config.json" };
    struct test_folder sentence = test_folder_begin();
    char from[4096], config[256];
    ck_assert_int_eq(mkdir(test_in(&sentence, "1_Pooling"), 0700), 0);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char name[64];
        snprintf(name, sizeof name, "sentence/%s", files[i]);
        snprintf(from, sizeof from, "%s", test_path(name));
        ck_assert_int_eq(symlink(from, test_in(&sentence, files[i])), 0);
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(config, sizeof config, "{\"word_embedding_dimension\": 32, %s}", cases[i].modes);
        test_write_text(&sentence, "1_Pooling/config.json", config);
        struct ak_provider *p = convert_ok(sentence.path, NULL);
        check_value(p, "bert.pooling_type", cases[i].want);
        ak_provider_close(p);
    }
    ck_assert_int_eq(unlink(test_in(&sentence, "1_Pooling/config.json")), 0);
    ck_assert_int_eq(rmdir(test_in(&sentence, "1_Pooling")), 0);
    test_folder_end(&sentence);
}
END_TEST

/* Vectors, routers and tables of positions and token types are floats; rows that do not fill blocks
 * are F16, with a single warning. */
struct warned {
    int n_lines, n, n_all; /* warnings; "n of n_all quantized tensors" */
};

static void count_warnings(enum akunu_log_level level, const char *line, void *user)
{
    struct warned *warned = user;
    if (level != AKUNU_LOG_WARN || !strstr(line, "have F16 instead of Q8_0, because rows of "))
        return;
    warned->n_lines++;
    ck_assert_msg(sscanf(line, "%d of %d quantized", &warned->n, &warned->n_all) == 2, "%s", line);
}

START_TEST(types)
{
    static const struct {
        const char *from, *name;
        enum ak_quant_type type;
    } cases[] = {
        { "folders/qwen35moe", "token_embd.weight", AK_QUANT_Q8_0 },
        { "folders/qwen35moe", "output_norm.weight", AK_QUANT_F32 },
        { "folders/qwen35moe", "blk.0.ffn_gate_inp.weight", AK_QUANT_F32 },
        { "folders/qwen35moe", "blk.0.ffn_gate_inp_shexp.weight", AK_QUANT_F32 },
        { "folders/qwen35moe", "blk.0.ffn_down_exps.weight", AK_QUANT_F16 }, /* rows of 16 */
        { "folders/qwen35moe", "blk.0.ffn_gate_exps.weight", AK_QUANT_Q8_0 },
        { "encoders/bert", "position_embd.weight", AK_QUANT_F32 },
        { "encoders/bert", "token_types.weight", AK_QUANT_F32 },
        { "encoders/bert", "token_embd.weight", AK_QUANT_Q8_0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct akunu_convert_params params = replacing("Q8_0");
        struct ak_tensor t;
        char from[4096];
        struct warned warned = { 0 };
        params.log = count_warnings;
        params.user = &warned;
        snprintf(from, sizeof from, "%s", test_path(cases[i].from));
        struct ak_provider *p = convert_ok(from, &params);
        size_t at = 0;
        int n_f16 = 0, n_q8 = 0;
        for (size_t k = 0; ak_provider_tensor(p, k, &t); k++) {
            n_f16 += t.type == AK_QUANT_F16;
            n_q8 += t.type == AK_QUANT_Q8_0;
        }
        while (ak_provider_tensor(p, at, &t) && strcmp(t.name, cases[i].name) != 0)
            at++;
        ck_assert_msg(at < ak_provider_n_tensors(p), "%s", cases[i].name);
        ck_assert_msg(t.type == cases[i].type, "%s is %s", t.name, ak_quant_info(t.type)->name);
        ck_assert_int_eq(warned.n_lines, n_f16 > 0);
        ck_assert(n_f16 == 0 || (warned.n == n_f16 && warned.n_all == n_f16 + n_q8));
        ak_provider_close(p);
    }
}
END_TEST

/* More than the list of tensors has room for at first, twice. */
START_TEST(many_tensors)
{
    enum { N = 600 };
    struct ak_error error = { 0 };
    struct ak_gguf_writer w = ak_gguf_writer_begin(&error);
    struct ak_tensor t;
    char name[32], from[128];
    snprintf(from, sizeof from, "%s", test_in(&folder, "many.gguf"));
    ak_gguf_writer_put_string(&w, "general.architecture", "many");
    for (uint32_t i = 0; i < N; i++) {
        snprintf(name, sizeof name, "t%u", i);
        ak_gguf_writer_put_tensor(&w, name, AK_QUANT_F32, 1, (const uint64_t[]){ 1 });
    }
    ak_gguf_writer_open(&w, from);
    for (uint32_t i = 0; i < N; i++) {
        ak_gguf_writer_write(&w, &i, sizeof i);
        ak_gguf_writer_end_tensor(&w);
    }
    ck_assert_msg(ak_gguf_writer_finish(&w) == AKUNU_OK, "%s", error.message);
    struct ak_provider *p = convert_ok(from, NULL);
    ck_assert_uint_eq(ak_provider_n_tensors(p), N);
    for (uint32_t i = 0; i < N; i++) {
        snprintf(name, sizeof name, "t%u", i);
        ck_assert(ak_provider_tensor(p, i, &t));
        ck_assert_str_eq(t.name, name);
        ck_assert_mem_eq(t.data, &i, sizeof i);
    }
    ak_provider_close(p);
}
END_TEST

/* ---- Vocabularies ------------------------------------------------------- */
static void write_tokenizer_with(const char *added, const char *settings, const char *more)
{
    char text[2048];
    snprintf(text, sizeof text,
             "{%s\"added_tokens\": [%s], \"pre_tokenizer\": {\"type\": \"ByteLevel\", "
             "\"add_prefix_space\": false, \"trim_offsets\": true, \"use_regex\": true}, "
             "\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2, \"c\": "
             "3}, \"merges\": [\"a b\"]}}",
             more, added);
    test_write_text(&folder, "tokenizer.json", text);
    test_write_text(&folder, "tokenizer_config.json", settings);
}

static void write_tokenizer(const char *added, const char *settings)
{
    write_tokenizer_with(added, settings, "");
}

#define TOKEN(id, text, more)                                                                      \
    "{\"id\": " #id ", \"content\": \"" text "\", \"special\": true" more "}"

/* Ids by the texts of tokenizer_config.json, as strings or objects, else by config.json; those that
 * the vocabulary lacks are left out. */
START_TEST(special_tokens)
{
    static const struct {
        const char *settings, *config;
        const char *pad, *unknown, *mask, *separator;
    } cases[] = {
        { "{\"pad_token\": \"<p>\", \"unk_token\": {\"content\": \"<u>\"}, \"mask_token\": \"ab\", "
          "\"sep_token\": \"<p>\"}",
          ", \"pad_token_id\": 2", "u 4", "u 5", "u 2", "u 4" },
        { "{\"pad_token\": null, \"mask_token\": 7}",
          ", \"pad_token_id\": 2, \"unk_token_id\": 15, \"mask_token_id\": 16, \"sep_token_id\": 0",
          "u 2", "u 15", "-", "u 0" },
        { "{\"pad_token\": \"<p\", \"unk_token\": \"<u>>\"}",
          ", \"pad_token_id\": -1, \"unk_token_id\": 3, \"mask_token_id\": 1.5", "-", "u 3", "-",
          "-" },
        { "{\"pad_token\": {\"other\": \"<p>\"}}", ", \"mask_token_id\": null", "-", "-", "-",
          "-" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_decoder(0, cases[i].config);
        write_tokenizer(TOKEN(4, "<p>", "") ", " TOKEN(5, "<u>", ""), cases[i].settings);
        struct ak_provider *p = convert_ok(folder.path, NULL);
        check_value(p, "tokenizer.ggml.padding_token_id", cases[i].pad);
        check_value(p, "tokenizer.ggml.unknown_token_id", cases[i].unknown);
        check_value(p, "tokenizer.ggml.mask_token_id", cases[i].mask);
        check_value(p, "tokenizer.ggml.seperator_token_id", cases[i].separator);
        check_value(p, "tokenizer.ggml.cls_token_id", "-");
        ak_provider_close(p);
    }
}
END_TEST

/* GGUF's EOS is the token behind each text; if the model's own is another, that is its EOT. */
START_TEST(end_tokens)
{
    static const char post[] =
        "\"post_processor\": {\"type\": \"TemplateProcessing\", "
        "\"single\": [{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}, "
        "{\"SpecialToken\": {\"id\": \"<p>\", \"type_id\": 0}}], "
        "\"pair\": [{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}, "
        "{\"Sequence\": {\"id\": \"B\", \"type_id\": 1}}, "
        "{\"SpecialToken\": {\"id\": \"<p>\", \"type_id\": 1}}], "
        "\"special_tokens\": {\"<p>\": {\"id\": \"<p>\", \"ids\": [4], \"tokens\": [\"<p>\"]}}}, ";
    static const struct {
        const char *settings, *more, *eos, *eot;
    } cases[] = { { "{\"eos_token\": \"<u>\"}", post, "u 4", "u 5" },
                  { "{\"eos_token\": \"<p>\"}", post, "u 4", "-" },
                  { "{\"eos_token\": \"<u>\"}", "", "u 5", "-" } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_decoder(0, "");
        write_tokenizer_with(TOKEN(4, "<p>", "") ", " TOKEN(5, "<u>", ""), cases[i].settings,
                             cases[i].more);
        struct ak_provider *p = convert_ok(folder.path, NULL);
        check_value(p, "tokenizer.ggml.eos_token_id", cases[i].eos);
        check_value(p, "tokenizer.ggml.eot_token_id", cases[i].eot);
        ak_provider_close(p);
    }
}
END_TEST

static char said[512];

static void remember(enum akunu_log_level level, const char *line, void *user)
{
    (void)user;
    if (level == AKUNU_LOG_WARN)
        snprintf(said, sizeof said, "%s", line);
}

/* A tokenizer of more tokens than the model has, of as many, and none. */
START_TEST(vocabulary_sizes)
{
    struct akunu_convert_params params = replacing(NULL);
    struct ak_vocab v;
    params.log = remember;
    write_decoder(0, "");
    for (int id = 15; id <= 16; id++) {
        said[0] = '\0';
        write_tokenizer(id == 15 ? TOKEN(15, "<x>", "") : TOKEN(16, "<x>", ""), "{}");
        struct ak_provider *p = convert_ok(folder.path, &params);
        ck_assert_str_eq(said, id == 15 ? "" :
                                          "the tokenizer has 17 tokens, the model 16: those "
                                          "beyond are left out");
        ck_assert_int_eq(ak_provider_vocab(p, &v, NULL), AKUNU_OK);
        ck_assert_uint_eq(v.n_tokens, 16);
        check_value(p, "tokenizer.ggml.model", "s gpt2");
        check_value(p, "tokenizer.ggml.pre", "s gpt-2");
        check_value(p, "tokenizer.ggml.add_bos_token", "b 0");
        check_value(p, "tokenizer.ggml.scores", "-"); /* which SentencePiece has */
        check_value(p, "tokenizer.ggml.precompiled_charsmap", "-");
        ak_provider_close(p);
    }
    unlink(test_in(&folder, "tokenizer.json"));
    struct ak_provider *p = convert_ok(folder.path, &params);
    ck_assert_str_eq(said, "the model has no tokenizer: the file will have no vocabulary");
    check_value(p, "tokenizer.ggml.model", "s none");
    check_value(p, "tokenizer.ggml.tokens", "-");
    ak_provider_close(p);
    params.no_vocab = false;
    check_fails(folder.path, &params, AKUNU_ERROR_FORMAT, "the folder has no vocabulary: put");
    params.no_vocab = true; /* it excuses no damage */
    test_write_text(&folder, "tokenizer.json", "{\"model\": 5}");
    check_fails(folder.path, NULL, AKUNU_ERROR_FORMAT, "tokenizer.json");
}
END_TEST

/* The files of a slow tokenizer become what tokenizer.json becomes; special tokens that no file
 * names have the ids of the class's defaults. */
START_TEST(slow_tokenizer)
{
    static const int32_t kinds[] = { 1, 1, 1, 1, 3, 5 };
    struct akunu_convert_params params = replacing(NULL);
    struct ak_vocab v;
    params.no_vocab = false;
    write_decoder(0, "");
    unlink(test_in(&folder, "tokenizer.json"));
    test_write_text(&folder, "vocab.json", "{\"a\": 0, \"b\": 1, \"ab\": 2, \"c\": 3}");
    test_write_text(&folder, "merges.txt", "#version: 0.2\na b\n");
    test_write_text(&folder, "tokenizer_config.json", "{\"tokenizer_class\": \"GPT2Tokenizer\"}");
    test_write_text(&folder, "special_tokens_map.json", "{\"pad_token\": \"<|endoftext|>\"}");
    struct ak_provider *p = convert_ok(folder.path, &params);
    check_value(p, "tokenizer.ggml.model", "s gpt2");
    check_value(p, "tokenizer.ggml.pre", "s gpt-2");
    check_value(p, "tokenizer.ggml.bos_token_id", "u 4");
    check_value(p, "tokenizer.ggml.eos_token_id", "u 4");
    check_value(p, "tokenizer.ggml.padding_token_id", "u 4");
    ck_assert_int_eq(ak_provider_vocab(p, &v, NULL), AKUNU_OK);
    ck_assert_uint_eq(v.n_tokens, 16);
    ck_assert_uint_eq(v.n_merges, 1);
    ck_assert(v.merges[0].n == 3 && memcmp(v.merges[0].bytes, "a b", 3) == 0);
    ck_assert(v.tokens[4].n == 13 && memcmp(v.tokens[4].bytes, "<|endoftext|>", 13) == 0);
    ck_assert_mem_eq(v.types, kinds, sizeof kinds);
    ak_provider_close(p);
    unlink(test_in(&folder, "merges.txt"));
    check_fails(folder.path, &params, AKUNU_ERROR_FORMAT, "merges.txt is missing: GPT2Tokenizer");
    unlink(test_in(&folder, "vocab.json"));
    unlink(test_in(&folder, "special_tokens_map.json"));
}
END_TEST

/* llama.cpp strips spaces behind control tokens of models with "phi-3" or "phi3" in their name. */
START_TEST(stripping_tokens)
{
    static const struct {
        const char *token, *name, *want;
    } cases[] = {
        { TOKEN(4, "<x>", ", \"rstrip\": true"), "Some", "s Some (Phi-3)" },
        { TOKEN(4, "<x>", ", \"rstrip\": true"), "my PHI-3 mini", "s my PHI-3 mini" },
        { TOKEN(4, "<x>", ", \"rstrip\": true"), "MyPhi3", "s MyPhi3" },
        { TOKEN(4, "<x>", ", \"rstrip\": false"), "Some", "s Some" },
    };
    write_decoder(0, "");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[64];
        const char *const named[] = { text, NULL };
        struct akunu_convert_params params = replacing(NULL);
        snprintf(text, sizeof text, "general.name=str:%s", cases[i].name);
        params.override_kv = named;
        write_tokenizer(cases[i].token, "{}");
        struct ak_provider *p = convert_ok(folder.path, &params);
        check_value(p, "general.name", cases[i].want);
        ak_provider_close(p);
    }
}
END_TEST

/* ---- Step by step ------------------------------------------------------- */
static bool is_left_out(const struct ak_convert_plan *plan, const struct ak_convert_tensor *t)
{
    (void)plan;
    return t->n_dims == 1;
}

/* A file in memory has the header of the one on the disk, and tensors that are where they are
 * there: vectors are ones, or zeros; of matrices only their bytes are there, or all. */
static void check_in_memory(int fd, const struct ak_provider *whole, bool is_hollow)
{
    struct ak_provider *p;
    struct ak_error error;
    struct ak_tensor x, y;
    ck_assert_msg(ak_provider_open_fd(fd, &p, &error) == AKUNU_OK, "%s", error.message);
    ck_assert_int_eq(close(fd), 0);
    ck_assert_uint_eq(ak_provider_n_tensors(p), ak_provider_n_tensors(whole));
    ck_assert_uint_eq(ak_provider_n_metas(p), ak_provider_n_metas(whole));
    for (size_t i = 0; ak_provider_tensor(whole, i, &x); i++) {
        ck_assert(ak_provider_tensor(p, i, &y));
        ck_assert_str_eq(x.name, y.name);
        ck_assert(x.offset == y.offset && x.bytes == y.bytes && x.type == y.type);
        for (uint64_t k = 0; x.n_dims == 1 && k < x.shape[0]; k++)
            ck_assert(((const float *)y.data)[k] == (is_hollow ? 1.0f : 0.0f));
        ck_assert(x.n_dims == 1 || is_hollow || memcmp(x.data, y.data, x.bytes) == 0);
    }
    ak_provider_close(p);
}

static struct ak_convert_job *begin_ok(struct ak_error *error)
{
    static const struct ak_convert_options options = { .n_threads = 1 };
    struct ak_convert_job *job;
    ck_assert_msg(ak_convert_begin(folder.path, NULL, &options, &job, error) == AKUNU_OK, "%s",
                  error->message);
    return job;
}

/* Of a model whose vectors fill the places of tensors, and of one with smaller ones. */
START_TEST(steps)
{
    struct ak_error error;
    struct ak_tensor first;
    uint64_t bytes;
    int fd;
    write_decoder(_i == 0 ? 0 : 7, "");
    write_tokenizer("", "{}");
    struct ak_provider *whole = convert_ok(folder.path, NULL);
    ck_assert(ak_provider_tensor(whole, 0, &first));
    struct ak_convert_job *job = begin_ok(&error);
    ck_assert_int_eq(ak_convert_header_bytes(job, &bytes), AKUNU_OK);
    ck_assert_uint_eq(bytes, first.offset);
    ck_assert_int_eq(ak_convert_write_hollow(job, &fd), AKUNU_OK);
    check_in_memory(fd, whole, true);
    ck_assert_int_eq(ak_convert_write_partly(job, is_left_out, &fd), AKUNU_OK);
    check_in_memory(fd, whole, false);
    ak_convert_end(job);
    ak_provider_close(whole);
}
END_TEST

/* What no file can have, none in memory has. */
static void check_steps_fail(const char *message)
{
    struct ak_error error;
    uint64_t bytes;
    int fd;
    struct ak_convert_job *job = begin_ok(&error);
    size_t n_open = test_count_open();
    for (int i = 0; i < 3; i++) {
        error.message[0] = '\0';
        ak_status status = i == 0 ? ak_convert_header_bytes(job, &bytes) :
                           i == 1 ? ak_convert_write_hollow(job, &fd) :
                                    ak_convert_write_partly(job, is_left_out, &fd);
        ck_assert_msg(status == AKUNU_ERROR_UNSUPPORTED, "step %d", i);
        ck_assert_msg(strstr(error.message, message), "step %d: %s", i, error.message);
    }
    ck_assert_uint_eq(test_count_open(), n_open);
    ak_convert_end(job);
}

/* ---- Chat templates ----------------------------------------------------- */
/* The file of its own comes first; lists have at most 64 elements and names of 63 bytes. */
START_TEST(templates)
{
    static char list[65 * 64 + 64];
    char key[160];
    struct ak_meta meta;
    write_decoder(0, "");
    write_tokenizer("", "{\"chat_template\": \"settings\"}");
    test_write_text(&folder, "chat_template.json", "{\"chat_template\": \"other\"}");
    test_write_text(&folder, "chat_template.jinja", "own");
    struct ak_provider *p = convert_ok(folder.path, NULL);
    check_value(p, "tokenizer.chat_template", "s own");
    ak_provider_close(p);
    unlink(test_in(&folder, "chat_template.jinja"));
    p = convert_ok(folder.path, NULL);
    check_value(p, "tokenizer.chat_template", "s settings");
    ak_provider_close(p);
    test_write_text(&folder, "tokenizer_config.json", "{\"chat_template\": 5}");
    p = convert_ok(folder.path, NULL);
    check_value(p, "tokenizer.chat_template", "-");
    ak_provider_close(p);
    for (int n = 64; n <= 65; n++) {
        size_t at = (size_t)snprintf(list, sizeof list, "{\"chat_template\": [");
        for (int i = 0; i < n; i++)
            at += (size_t)snprintf(list + at, sizeof list - at,
                                   "%s{\"name\": \"n%02d\", \"template\": \"t%02d\"}",
                                   i ? ", " : "", i, i);
        snprintf(list + at, sizeof list - at, "]}");
        test_write_text(&folder, "tokenizer_config.json", list);
        if (n == 65) {
            check_fails(folder.path, NULL, AKUNU_ERROR_UNSUPPORTED,
                        "chat_template is a list of 65 templates; at most 64");
            check_steps_fail("chat_template is a list of 65 templates; at most 64");
            continue;
        }
        p = convert_ok(folder.path, NULL);
        check_value(p, "tokenizer.chat_template", "-");
        check_value(p, "tokenizer.chat_template.n00", "s t00");
        check_value(p, "tokenizer.chat_template.n63", "s t63");
        ck_assert(ak_provider_find_meta(p, "tokenizer.chat_templates", &meta) && meta.n == 64);
        ak_provider_close(p);
    }
    /* one default, whichever; characters of the name; no object */
    snprintf(list, sizeof list,
             "{\"chat_template\": [7, {\"name\": \"default\", \"template\": \"first\"}, {\"name\": "
             "\"default\", \"template\": \"second\"}, {\"name\": \"azAZ09[`{@/:\", \"template\": "
             "\"marks\"}, {\"name\": 5, \"template\": \"x\"}, {\"name\": \"%080d\", \"template\": "
             "\"long\"}, {\"name\": \"x\", \"template\": 5}]}",
             0);
    test_write_text(&folder, "tokenizer_config.json", list);
    p = convert_ok(folder.path, NULL);
    check_value(p, "tokenizer.chat_template", "s first");
    check_value(p, "tokenizer.chat_template.azAZ09______", "s marks");
    snprintf(key, sizeof key, "tokenizer.chat_template.%063d", 0);
    check_value(p, key, "s long");
    ck_assert(ak_provider_find_meta(p, "tokenizer.chat_templates", &meta) && meta.n == 2);
    ak_provider_close(p);
    test_write_text(&folder, "tokenizer_config.json", "{}");
    test_write_text(&folder, "chat_template.json", "{\"chat_template\": ");
    check_fails(folder.path, NULL, AKUNU_ERROR_FORMAT, "chat_template.json");
}
END_TEST

/* ---- What is refused ---------------------------------------------------- */
START_TEST(refused)
{
    static const char *const wrong[] = { "general.name=str:x", "general.x=word:y", NULL };
    struct akunu_convert_params params = replacing(NULL);
    write_decoder(7, ", \"layer_types\": [\"full_attention\", \"sliding_attention\", "
                     "\"sliding_attention\"]"); /* gemma3 */
    check_fails(folder.path, NULL, AKUNU_ERROR_UNSUPPORTED, "after a first layer without one");
    write_decoder(8, ", \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8, "
                     "\"low_freq_factor\": 1, \"high_freq_factor\": 4, "
                     "\"original_max_position_embeddings\": 16}"); /* granite */
    check_fails(folder.path, NULL, AKUNU_ERROR_UNSUPPORTED, "has no rope_freqs.weight");
    write_decoder(0, ", \"partial_rotary_factor\": 0.5");
    check_fails(folder.path, NULL, AKUNU_ERROR_UNSUPPORTED, "partial_rotary_factor is 0.5");
    write_decoder(0, "");
    params.override_kv = wrong;
    check_fails(folder.path, &params, AKUNU_ERROR_ARGUMENT, "word");
    test_write_text(&folder, "config.json", "{\"model_type\": \"llama\"}");
    check_fails(folder.path, NULL, AKUNU_ERROR_FORMAT, "hidden_size by default 4096");
    write_decoder(3, "");
    unlink(test_in(&folder, "model.safetensors"));
    struct test_st st = { 0 };
    test_st_add(&st, "model.norm.weight", "F32", "8", (const float[8]){ 0 }, 32);
    test_st_write(&st, &folder, "model.safetensors", 0);
    check_fails(folder.path, NULL, AKUNU_ERROR_FORMAT, "is missing");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("metadata");
    TCase *t = tcase_create("metadata");
    tcase_add_checked_fixture(t, set_up, tear_down);
    suite_add_tcase(suite, t);
    tcase_add_loop_test(t, numbers, 0, N_DECODERS);
    tcase_add_loop_test(t, recurrent, 0, 3);
    tcase_add_test(t, divisors);
    tcase_add_test(t, names);
    tcase_add_test(t, absent);
    tcase_add_test(t, file_types);
    tcase_add_test(t, pooling_types);
    tcase_add_test(t, types);
    tcase_add_test(t, many_tensors);
    tcase_add_test(t, special_tokens);
    tcase_add_test(t, end_tokens);
    tcase_add_test(t, vocabulary_sizes);
    tcase_add_test(t, slow_tokenizer);
    tcase_add_test(t, stripping_tokens);
    tcase_add_loop_test(t, steps, 0, 2);
    tcase_add_test(t, templates);
    tcase_add_test(t, refused);
    return test_run(suite);
}
