/* Keys of configurations: what transformers' classes have, what published models have, defaults,
 * and refusals that name the key and its value. */
#include "tests/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/golden_model.h"
#include "engine/spec/arch.h"
#include "tests/st_files.h"

static const char *const *no_texts;

static FILE *open_data(const char *name)
{
    char path[4096];
    const char *data = getenv("AK_TEST_DATA");
    ck_assert_ptr_nonnull(data);
    snprintf(path, sizeof path, "%s/%s", data, name);
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s", path);
    return file;
}

static const struct ak_arch_keys *find_keys(const char *type)
{
    const struct ak_arch *const *architectures = ak_arch_list();
    struct ak_text name = { type, (uint32_t)strlen(type) };
    const struct ak_arch_keys *keys = NULL;
    struct ak_word word;
    for (size_t i = 0; architectures[i]; i++)
        for (uint32_t j = 0; j < architectures[i]->n_keys && !keys; j++)
            if (ak_words_find(architectures[i]->keys[j].types, type, &word))
                keys = ak_arch_keys(architectures[i], &name);
    ck_assert_msg(keys != NULL, "%s", type);
    return keys;
}

/* ---- transformers' classes ---------------------------------------------- */
/* JSON's scalars are spelled as words are, strings in quotation marks. */
static void check_default(const char *type, const char *key, char *json)
{
    const struct ak_arch_keys *keys = find_keys(type);
    struct ak_word word, own = { .name = key, .n_name = strlen(key), .value = json };
    struct ak_meta value, expected;
    size_t n = strlen(json);
    bool is_none = strcmp(json, "null") == 0;
    if (json[0] == '"') {
        own.value++;
        n -= 2;
    }
    own.n_value = n;
    ak_word_value(&own, &expected);
    bool read = ak_words_find(keys->reads, key, &word);
    if (!read && !ak_words_find(keys->fixed, key, &word)) {
        ck_assert_msg(ak_words_find(keys->unused, key, &word) ||
                          ak_words_find(ak_fixed_keys, key, &word) ||
                          ak_words_find(ak_unused_keys, key, &word),
                      "%s: nothing is known of %s, which is %s", type, key, json);
        return;
    }
    bool has_value = ak_word_value(&word, &value);
    if (is_none && !read)
        return;
    ck_assert_msg(has_value == !is_none, "%s: %s is %s", type, key, json);
    if (!is_none)
        ck_assert_msg(ak_word_equals(&word, &expected), "%s: %s is %s, not %.*s", type, key, json,
                      (int)word.n_value, word.value);
}

START_TEST(defaults)
{
    char line[512], type[64], key[128], json[256];
    size_t n = 0;
    FILE *file = open_data("config_defaults.txt");
    while (fgets(line, sizeof line, file))
        if (line[0] != '#') {
            ck_assert_int_eq(sscanf(line, "%63s %127s %255s", type, key, json), 3);
            check_default(type, key, json);
            n++;
        }
    fclose(file);
    ck_assert_uint_gt(n, 600);
}
END_TEST

/* ---- Folders ------------------------------------------------------------ */
/* A folder with one tensor, which no architecture has. */
static struct test_folder begin_folder(void)
{
    static const float one = 1.0f;
    struct test_st st = { 0 };
    struct test_folder folder = test_folder_begin();
    test_st_add(&st, "nothing", "F32", "1", &one, sizeof one);
    test_st_write(&st, &folder, "model.safetensors", 0);
    return folder;
}

static ak_status read_spec(const struct test_folder *folder, const char *config,
                           const char *const *overrides, const char *const *ignored,
                           struct ak_spec *spec, struct ak_error *error)
{
    struct ak_provider *p;
    *spec = (struct ak_spec){ 0 };
    *error = (struct ak_error){ 0 };
    test_write_text(folder, "config.json", config);
    ck_assert_int_eq(ak_provider_open(folder->path, &p, error), AKUNU_OK);
    ak_status status = ak_provider_adjust(p, overrides, ignored, error);
    if (status == AKUNU_OK)
        status = ak_spec_read(p, spec, error);
    if (status == AKUNU_OK)
        status = ak_spec_init_rope(p, spec, error);
    ak_provider_close(p);
    return status;
}

START_TEST(published)
{
    static char line[16384];
    size_t n = 0;
    struct ak_spec spec;
    struct ak_error error;
    struct test_folder folder = begin_folder();
    FILE *file = open_data("published_configs.jsonl");
    for (; fgets(line, sizeof line, file); n++) {
        ak_status status = read_spec(&folder, line, no_texts, no_texts, &spec, &error);
        /* LongRoPE's lists are shortened, and so are the scales of quantized weights */
        bool shortened = status != AKUNU_OK && (strstr(error.message, "_factor has 2") ||
                                                strstr(error.message, "quantization_config"));
        ck_assert_msg(status == AKUNU_OK || shortened, "%.60s: %s", line, error.message);
        ak_spec_clear(&spec);
    }
    fclose(file);
    test_folder_end(&folder);
    ck_assert_uint_ge(n, 49);
}
END_TEST

/* The numbers of `config` that its architecture gives it. */
START_TEST(absent_keys)
{
    static const struct {
        const char *config;
        uint32_t width, n_layers, n_heads, n_kv_heads, head_dim, context, window;
        float eps, base, scale, cap, logit_cap;
        bool tied;
    } cases[] = {
        { "{\"model_type\":\"llama\"}", 4096, 32, 32, 32, 128, 2048, 0, 1e-6f, 1e4f, 0.08838835f, 0,
          0, false },
        { "{\"model_type\":\"mistral\"}", 4096, 32, 32, 8, 128, 131072, 4096, 1e-6f, 1e4f,
          0.08838835f, 0, 0, false },
        { "{\"model_type\":\"mistral\",\"sliding_window\":null}", 4096, 32, 32, 8, 128, 131072, 0,
          1e-6f, 1e4f, 0.08838835f, 0, 0, false },
        { "{\"model_type\":\"gemma2\"}", 2304, 26, 8, 4, 256, 8192, 4096, 1e-6f, 1e4f, 0.0625f, 50,
          30, true },
        { "{\"model_type\":\"gemma2\",\"final_logit_softcapping\":null,"
          "\"attn_logit_softcapping\":null,\"query_pre_attn_scalar\":64,\"num_hidden_layers\":46}",
          2304, 46, 8, 4, 256, 8192, 4096, 1e-6f, 1e4f, 0.125f, 0, 0, true },
        { "{\"model_type\":\"gemma3\",\"text_config\":{\"num_hidden_layers\":34,"
          "\"hidden_size\":2560,\"sliding_window\":1024},\"hidden_size\":7}",
          2560, 34, 8, 4, 256, 131072, 1024, 1e-6f, 1e6f, 0.0625f, 0, 0, true },
        { "{\"model_type\":\"gemma3_text\",\"rope_parameters\":{\"full_attention\":"
          "{\"rope_theta\":5e5,\"rope_type\":\"default\"}},\"rope_theta\":3}",
          2304, 26, 8, 4, 256, 131072, 4096, 1e-6f, 5e5f, 0.0625f, 0, 0, true },
        { "{\"model_type\":\"qwen3\",\"rope_theta\":2,\"rope_parameters\":{\"rope_theta\":7e5}}",
          4096, 32, 32, 32, 128, 32768, 0, 1e-6f, 7e5f, 0.08838835f, 0, 0, false },
        { "{\"model_type\":\"qwen3\",\"rope_theta\":2e4,\"rope_parameters\":{\"rope_theta\":7e5},"
          "\"rope_scaling\":{\"type\":\"linear\",\"factor\":2}}",
          4096, 32, 32, 32, 128, 32768, 0, 1e-6f, 2e4f, 0.08838835f, 0, 0, false },
        { "{\"model_type\":\"qwen3\",\"use_sliding_window\":true,\"max_window_layers\":3}", 4096,
          32, 32, 32, 128, 32768, 4096, 1e-6f, 1e4f, 0.08838835f, 0, 0, false },
        { "{\"model_type\":\"gpt2\"}", 768, 12, 12, 12, 64, 1024, 0, 1e-5f, 1e4f, 0.125f, 0, 0,
          true },
        { "{\"model_type\":\"gpt2\",\"scale_attn_weights\":false}", 768, 12, 12, 12, 64, 1024, 0,
          1e-5f, 1e4f, 1.0f, 0, 0, true },
        { "{\"model_type\":\"granite\"}", 4096, 32, 32, 32, 128, 2048, 0, 1e-6f, 1e4f, 1.0f, 0, 0,
          false },
        { "{\"model_type\":\"olmo3\"}", 4096, 32, 32, 32, 128, 2048, 4096, 1e-5f, 5e5f, 0.08838835f,
          0, 0, false },
        { "{\"model_type\":\"smollm3\"}", 2048, 36, 16, 4, 128, 32768, 0, 1e-6f, 2e6f, 0.08838835f,
          0, 0, true },
    };
    struct ak_spec spec;
    struct ak_error error;
    struct test_folder folder = begin_folder();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *text = cases[i].config;
        ck_assert_msg(read_spec(&folder, text, no_texts, no_texts, &spec, &error) == AKUNU_OK,
                      "%s: %s", text, error.message);
        const struct ak_spec_config *c = &spec.config;
        const struct ak_spec_descriptor *d = &spec.descriptor;
        ck_assert_msg(c->width == cases[i].width && c->n_layers == cases[i].n_layers, "%s", text);
        ck_assert_msg(c->n_heads == cases[i].n_heads && c->n_kv_heads == cases[i].n_kv_heads &&
                          c->head_dim == cases[i].head_dim,
                      "%s: %u, %u heads of %u", text, c->n_heads, c->n_kv_heads, c->head_dim);
        ck_assert_msg(c->context == cases[i].context && d->local.window == cases[i].window,
                      "%s: context %u, window %u", text, c->context, d->local.window);
        ck_assert_msg(c->norm_eps == cases[i].eps && c->rope_base == cases[i].base,
                      "%s: epsilon %g, base %g", text, (double)c->norm_eps, (double)c->rope_base);
        ck_assert_msg(d->attention_scale > 0.9999f * cases[i].scale &&
                          d->attention_scale < 1.0001f * cases[i].scale,
                      "%s: scale %g", text, (double)d->attention_scale);
        ck_assert_msg(d->attention_cap == cases[i].cap && d->logit_cap == cases[i].logit_cap,
                      "%s: caps %g, %g", text, (double)d->attention_cap, (double)d->logit_cap);
        ck_assert_msg(c->tied == cases[i].tied, "%s: tied %d", text, c->tied);
        ak_spec_clear(&spec);
    }
    test_folder_end(&folder);
}
END_TEST

/* ---- Windows ------------------------------------------------------------ */
/* A letter per layer: w window, g none, n none and no rotation, x window and no rotation. */
START_TEST(windows)
{
#define FOUR "\"num_hidden_layers\":4,"
    static const struct {
        const char *config, *layers;
    } cases[] = {
        { "{\"model_type\":\"qwen2\"," FOUR "\"use_sliding_window\":true,\"max_window_layers\":1}",
          "gwww" },
        { "{\"model_type\":\"qwen2\"," FOUR "\"use_sliding_window\":true,\"max_window_layers\":0}",
          "wwww" },
        { "{\"model_type\":\"qwen2\"," FOUR "\"use_sliding_window\":true}", "gggg" },
        { "{\"model_type\":\"qwen2\"," FOUR "\"use_sliding_window\":true,\"max_window_layers\":0,"
          "\"layer_types\":[\"full_attention\",\"sliding_attention\",\"sliding_attention\","
          "\"full_attention\"]}",
          "gwwg" },
        { "{\"model_type\":\"qwen2_moe\"," FOUR
          "\"use_sliding_window\":true,\"max_window_layers\":3}",
          "wgwg" },
        { "{\"model_type\":\"qwen3_moe\"," FOUR "\"use_sliding_window\":true}", "wwww" },
        { "{\"model_type\":\"mixtral\"," FOUR "\"sliding_window\":9}", "wwww" },
        { "{\"model_type\":\"gemma2\"," FOUR
          "\"layer_types\":[\"full_attention\",\"full_attention\",\"sliding_attention\","
          "\"full_attention\"]}",
          "ggwg" },
        { "{\"model_type\":\"gemma3_text\"," FOUR "\"sliding_window_pattern\":2}", "wgwg" },
        { "{\"model_type\":\"gemma3_text\"," FOUR "\"_sliding_window_pattern\":2}", "wwww" },
        { "{\"model_type\":\"gpt_oss\"," FOUR "\"sliding_window\":5}", "wgwg" },
        { "{\"model_type\":\"olmo3\"," FOUR "\"sliding_window_pattern\":2}", "wwwg" },
        { "{\"model_type\":\"modernbert\"," FOUR "\"global_attn_every_n_layers\":2}", "gwgw" },
        { "{\"model_type\":\"smollm3\"," FOUR "\"no_rope_layers\":[0,1,1,0]}", "nggn" },
        { "{\"model_type\":\"smollm3\"," FOUR
          "\"use_sliding_window\":true,\"sliding_window\":8,\"no_rope_layer_interval\":2}",
          "gxgx" },
    };
    struct ak_spec spec;
    struct ak_error error;
    struct test_folder folder = begin_folder();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char layers[5] = "";
        const char *text = cases[i].config;
        ck_assert_msg(read_spec(&folder, text, no_texts, no_texts, &spec, &error) == AKUNU_OK,
                      "%s: %s", text, error.message);
        for (int layer = 0; layer < 4; layer++) {
            const struct ak_spec_layer_kind *kind = ak_spec_layer(&spec, layer);
            layers[layer] = kind->rotation == AK_SPEC_ROTATE_NONE ? (kind->window ? 'x' : 'n') :
                                                                    (kind->window ? 'w' : 'g');
        }
        ck_assert_msg(strcmp(layers, cases[i].layers) == 0, "%s: %s", text, layers);
        ak_spec_clear(&spec);
    }
    test_folder_end(&folder);
}
END_TEST

/* ---- Rotation ----------------------------------------------------------- */
/* The bases of layers without and with a window, as transformers' classes state them. */
START_TEST(rope_bases)
{
#define BY_LAYERS                                                                                  \
    "\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"default\",\"rope_theta\":700000},"   \
    "\"sliding_attention\":{\"rope_type\":\"default\",\"rope_theta\":30000}}"
    static const struct {
        const char *config;
        float base, local;
    } cases[] = {
        { "{\"model_type\":\"olmo3\",\"rope_theta\":10000}", 1e4f, 5e5f },
        { "{\"model_type\":\"olmo3\"," BY_LAYERS "}", 7e5f, 3e4f },
        { "{\"model_type\":\"gemma3_text\",\"rope_theta\":2000000}", 2e6f, 1e4f },
        { "{\"model_type\":\"gemma3_text\",\"rope_theta\":2000000,\"rope_local_base_freq\":30000}",
          2e6f, 3e4f },
        { "{\"model_type\":\"gemma3_text\"," BY_LAYERS "}", 7e5f, 3e4f },
        { "{\"model_type\":\"modernbert\"}", 16e4f, 1e4f },
        { "{\"model_type\":\"modernbert\",\"global_rope_theta\":50000}", 5e4f, 1e4f },
        { "{\"model_type\":\"modernbert\",\"local_rope_theta\":5000}", 16e4f, 5e3f },
        { "{\"model_type\":\"modernbert\"," BY_LAYERS "}", 7e5f, 3e4f },
    };
#undef BY_LAYERS
    struct ak_spec spec;
    struct ak_error error;
    struct test_folder folder = begin_folder();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *text = cases[i].config;
        ck_assert_msg(read_spec(&folder, text, no_texts, no_texts, &spec, &error) == AKUNU_OK,
                      "%s: %s", text, error.message);
        ck_assert_msg(spec.config.rope_base == cases[i].base &&
                          spec.descriptor.local_rope_base == cases[i].local,
                      "%s: %g and %g", text, (double)spec.config.rope_base,
                      (double)spec.descriptor.local_rope_base);
        ak_spec_clear(&spec);
    }
    test_folder_end(&folder);
}
END_TEST

/* YaRN's factor of cosine and sine (transformers' _compute_yarn_parameters). */
START_TEST(yarn_magnitude)
{
#define YARN "{\"model_type\":\"llama\",\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":8"
    static const struct {
        const char *config;
        float magnitude;
    } cases[] = {
        { YARN "}}", 1.2079442f },
        { YARN ",\"mscale\":0.707,\"mscale_all_dim\":0.707}}", 1.0f },
        { YARN ",\"mscale\":1.0,\"mscale_all_dim\":0.5}}", 1.0941800f },
        { YARN ",\"mscale\":2.0}}", 1.2079442f },
        { YARN ",\"mscale\":0,\"mscale_all_dim\":0.5}}", 1.2079442f },
        { YARN ",\"mscale\":2,\"mscale_all_dim\":1,\"attention_factor\":0.75}}", 0.75f },
    };
    struct ak_spec spec;
    struct ak_error error;
    struct test_folder folder = begin_folder();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *text = cases[i].config;
        ck_assert_msg(read_spec(&folder, text, no_texts, no_texts, &spec, &error) == AKUNU_OK,
                      "%s: %s", text, error.message);
        ck_assert_msg(spec.magnitude[0] > 0.99999f * cases[i].magnitude &&
                          spec.magnitude[0] < 1.00001f * cases[i].magnitude,
                      "%s: %.8g", text, (double)spec.magnitude[0]);
        ck_assert_uint_eq(spec.rope.original_context, 2048); /* where it is not stated */
        ak_spec_clear(&spec);
    }
    /* a member of Phi-3's class counts before what the dictionary has */
    (void)read_spec(&folder,
                    "{\"model_type\":\"phi3\",\"rope_scaling\":{\"type\":\"longrope\",\"factor\":4,"
                    "\"original_max_position_embeddings\":32}}",
                    no_texts, no_texts, &spec, &error);
    ck_assert_uint_eq(spec.rope.original_context, 4096);
    ak_spec_clear(&spec);
    test_folder_end(&folder);
}
END_TEST

/* ---- Refusals ----------------------------------------------------------- */
START_TEST(refused_keys)
{
    static const struct {
        const char *type, *key, *value, *named;
    } cases[] = {
        { "llama", "clip_qkv", "8", "clip_qkv is 8" },
        { "llama", "sliding_window", "16", "sliding_window is 16" },
        { "llama", "hidden_act", "\"mish\"", "hidden_act is \"mish\"" },
        { "llama", "partial_rotary_factor", "0.5", "partial_rotary_factor is 0.5" },
        { "llama", "is_decoder", "true", "is_decoder is true; supported: false" },
        { "llama", "something_new", "{\"a\":[1,2]}", "something_new.a is an array of 2" },
        { "llama", "rope_scaling", "{\"type\":\"dynamic\",\"factor\":2}",
          "rope_scaling.type is \"dynamic\"" },
        { "llama", "rope_parameters", "{\"rope_type\":\"proportional\"}",
          "rope_parameters.rope_type is \"proportional\"" },
        { "llama", "hidden_size", "null", "hidden_size is missing" },
        { "phi3", "pad_token_id", "32064",
          "pad_token_id is 32064; expected less than vocab_size 32064" },
        { "llama", "num_key_value_heads", "5", "num_key_value_heads is 5" },
        { "gemma", "use_bidirectional_attention", "true", "use_bidirectional_attention is true" },
        { "gemma2", "sliding_window", "null", "sliding_window is null" },
        { "gemma3_text", "use_bidirectional_attention", "true",
          "use_bidirectional_attention is true; supported: false" },
        { "gemma3_text", "hidden_activation", "\"relu6\"", "hidden_activation is \"relu6\"" },
        { "gemma3_text", "rope_parameters", "{\"rope_theta\":5}", "rope_parameters.rope_theta" },
        { "gpt2", "activation_function", "\"tanh\"", "activation_function is \"tanh\"" },
        { "gpt2", "add_cross_attention", "true", "add_cross_attention is true" },
        { "gpt_oss", "hidden_act", "\"gelu\"", "hidden_act is \"gelu\"; supported: silu" },
        { "gpt_oss", "swiglu_alpha", "1.5", "swiglu_alpha is 1.5" },
        { "gpt_oss", "attention_bias", "false", "attention_bias is false; supported: true" },
        { "qwen2_moe", "qkv_bias", "false", "qkv_bias is false" },
        { "qwen3", "attention_bias", "true", "attention_bias is true" },
        { "qwen3", "layer_types", "[\"full_attention\"]", "layer_types has 1 elements" },
        { "qwen3_5", "hidden_act", "\"gelu\"", "hidden_act is \"gelu\"; supported: silu" },
        { "qwen3_5_moe", "hidden_act", "\"relu\"", "hidden_act is \"relu\"; supported: silu" },
        { "qwen3_next", "hidden_act", "\"gelu_new\"",
          "hidden_act is \"gelu_new\"; supported: silu" },
        { "qwen3_moe", "mlp_only_layers", "[1]", "mlp_only_layers is an array of 1" },
        { "qwen3_moe", "norm_topk_prob", "3", "norm_topk_prob" },
        { "lfm2", "conv_bias", "true", "conv_bias is true" },
        { "olmo2", "sliding_window", "7", "sliding_window is 7" },
        { "olmo3", "rope_scaling", "{\"type\":\"linear\",\"factor\":2}", "rope_scaling.type" },
        { "phi3", "rope_scaling", "{\"type\":\"su2\",\"factor\":2}", "su2" },
        { "smollm3", "layer_types", "[\"sliding_attention\"]", "layer_types" },
        { "bert", "position_embedding_type", "\"relative_key\"", "position_embedding_type is" },
        { "bert", "is_decoder", "true", "is_decoder is true" },
        { "bert", "hidden_act", "\"tanh\"", "hidden_act is \"tanh\"" },
        { "modernbert", "rope_scaling", "{\"rope_type\":\"linear\",\"factor\":2}",
          "rope_scaling." },
        { "nomic_bert", "prenorm", "true", "prenorm is true" },
        { "nomic_bert", "moe_every_n_layers", "2", "moe_every_n_layers is 2" },
        { "nomic_bert", "rotary_emb_scale_base", "512", "rotary_emb_scale_base is 512" },
        { "whisper", "scale_embedding", "true", "scale_embedding is true" },
        { "whisper", "activation_function", "\"mish\"", "activation_function is \"mish\"" },
    };
    struct ak_spec spec;
    struct ak_error error;
    struct test_folder folder = begin_folder();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        snprintf(text, sizeof text, "{\"model_type\":\"%s\",\"%s\":%s}", cases[i].type,
                 cases[i].key, cases[i].value);
        ck_assert_msg(read_spec(&folder, text, no_texts, no_texts, &spec, &error) != AKUNU_OK, "%s",
                      text);
        ck_assert_msg(strstr(error.message, cases[i].named) != NULL, "%s: \"%s\"", text,
                      error.message);
        ak_spec_clear(&spec);
    }
    test_folder_end(&folder);
}
END_TEST

/* An ignored key counts as absent, whether it is unknown, unsupported or of a bad value. */
START_TEST(ignored_keys)
{
    static const char *const ignored[] = { "clip_qkv", "hidden_act", "rms_norm_eps", NULL };
    static const char config[] = "{\"model_type\":\"llama\",\"clip_qkv\":8,\"hidden_act\":\"mish\","
                                 "\"rms_norm_eps\":0.5,\"rope_theta\":3e4}";
    struct ak_spec spec;
    struct ak_error error;
    struct test_folder folder = begin_folder();
    ck_assert_int_eq(read_spec(&folder, config, no_texts, ignored + 1, &spec, &error),
                     AKUNU_ERROR_UNSUPPORTED);
    ck_assert_msg(strstr(error.message, "--ignore-key clip_qkv") != NULL, "%s", error.message);
    ck_assert_msg(read_spec(&folder, config, no_texts, ignored, &spec, &error) == AKUNU_OK, "%s",
                  error.message);
    ck_assert(spec.config.norm_eps == 1e-6f && spec.config.rope_base == 3e4f);
    ck_assert_int_eq(spec.descriptor.activation, AK_OP_ACTIVATION_SILU);
    ak_spec_clear(&spec);
    test_folder_end(&folder);
}
END_TEST

START_TEST(overrides)
{
    static const struct {
        const char *text;
        bool ok;
    } cases[] = {
        { "rope_theta=float:2e4", true },     { "nobody=int:1", false },
        { "hidden_sizes=int:8", false },      { "llama.rope.freq_base=float:2", false },
        { "tokenizer.ggml.pre=str:x", true }, { "clip_qkv=int:9", true },
    };
    static const char *const ignored[] = { "clip_qkv", NULL };
    struct ak_spec spec;
    struct ak_error error;
    struct test_folder folder = begin_folder();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const texts[] = { cases[i].text, NULL };
        ak_status status = read_spec(&folder, "{\"model_type\":\"llama\",\"clip_qkv\":8}", texts,
                                     ignored, &spec, &error);
        ck_assert_msg(status == (cases[i].ok ? AKUNU_OK : AKUNU_ERROR_ARGUMENT), "%s: %s",
                      cases[i].text, error.message);
        ak_spec_clear(&spec);
    }
    test_folder_end(&folder);
}
END_TEST

/* ---- Settings that change what is computed ------------------------------ */
/* The logits after the tokens of tests/golden/settings.py. */
static void check_logits(const struct akunu_model *model, const float want[6], const char *what)
{
    static const akunu_token ids[] = { 1, 5, 9, 2, 7, 3, 11, 4 };
    enum { N = sizeof ids / sizeof *ids };
    struct akunu_batch_token tokens[N];
    struct akunu_session *session = golden_session(model, 1, N, AKUNU_KV_F32);
    akunu_sequence sequence = akunu_sequence_new(session);
    for (size_t i = 0; i < N; i++)
        tokens[i] = (struct akunu_batch_token){ ids[i], sequence, i + 1 == N };
    ck_assert_int_eq(akunu_session_decode(session, tokens, N), AKUNU_OK);
    const float *got = akunu_session_logits(session, N - 1);
    for (int i = 0; i < 6; i++)
        ck_assert_msg(got[i] - want[i] < 1e-4f && want[i] - got[i] < 1e-4f, "%s: logit %d is %g",
                      what, i, (double)got[i]);
    akunu_session_free(session);
}

START_TEST(settings)
{
    char line[512], name[64], override[128], path[4096];
    float want[6];
    size_t n = 0;
    FILE *file = open_data("settings.txt");
    struct akunu_load_params params;
    akunu_load_params_default(&params, sizeof params);
    params.no_cache = true;
    for (; fgets(line, sizeof line, file); n++) {
        if (line[0] == '#')
            continue;
        ck_assert_int_eq(sscanf(line, "%63s %127s %f %f %f %f %f %f", name, override, want,
                                want + 1, want + 2, want + 3, want + 4, want + 5),
                         8);
        params.override_kv = (const char *const[]){ override, NULL };
        struct akunu_model *model = akunu_model_load(golden_path(name, ".gguf", path), &params);
        ck_assert_msg(model != NULL, "%s: %s", override, akunu_last_error());
        check_logits(model, want, override);
        akunu_model_free(model);
    }
    fclose(file);
    ck_assert_uint_eq(n, 11);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("config");
    TCase *tests = tcase_create("config");
    tcase_add_test(tests, defaults);
    tcase_add_test(tests, published);
    tcase_add_test(tests, absent_keys);
    tcase_add_test(tests, windows);
    tcase_add_test(tests, rope_bases);
    tcase_add_test(tests, yarn_magnitude);
    tcase_add_test(tests, refused_keys);
    tcase_add_test(tests, ignored_keys);
    tcase_add_test(tests, overrides);
    tcase_add_test(tests, settings);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
