/* Files of LoRA adapters made here: merged tensors in either format, and what is refused. */
#include <math.h>

#include "tests/api/failure.h"
#include "tests/golden_model.h"
#include "tests/st_files.h"

static struct akunu_model *load(const char *name, const struct akunu_adapter *adapters, size_t n)
{
    char path[4096];
    struct akunu_load_params params;
    akunu_load_params_default(&params, sizeof params);
    params.n_threads = 2;
    params.no_cache = true;
    params.adapters = adapters;
    params.n_adapters = n;
    return akunu_model_load(golden_path(name, ".gguf", path), &params);
}

/* Logits of the last token of a model's prompt, vocab_size of them. */
static float *run(const struct akunu_model *model, const char *name)
{
    struct akunu_model_info info;
    struct golden_text text;
    size_t last;
    ck_assert_msg(model != NULL, "%s", akunu_last_error());
    ck_assert_int_eq(akunu_model_get_info(model, &info, sizeof info), AKUNU_OK);
    golden_read_text(name, &text);
    float *out = malloc(info.vocab_size * sizeof *out);
    ck_assert_ptr_nonnull(out);
    struct akunu_session *session = golden_session(model, 2, 512, AKUNU_KV_F32);
    akunu_sequence sequence = akunu_sequence_new(session);
    ck_assert_msg(akunu_session_prefill(session, sequence,
                                        &(struct akunu_ids){ text.ids, text.n_prompt }, NULL, NULL,
                                        &last) == AKUNU_OK,
                  "%s", akunu_last_error());
    memcpy(out, akunu_session_logits(session, last), info.vocab_size * sizeof *out);
    akunu_session_free(session);
    return out;
}

/* ---- Files made here ---------------------------------------------------- */
struct gguf {
    struct test_bytes keys, tensors, data;
    uint64_t n_keys, n_tensors;
};

static void add_text(struct gguf *g, const char *key, const char *value)
{
    test_append_text(&g->keys, key);
    test_append_u32(&g->keys, 8);
    test_append_text(&g->keys, value);
    g->n_keys++;
}

static void add_alpha(struct gguf *g, float alpha)
{
    test_append_text(&g->keys, "adapter.lora.alpha");
    test_append_u32(&g->keys, 6);
    test_append(&g->keys, &alpha, sizeof alpha);
    g->n_keys++;
}

/* A matrix [rows, cols]: values, or numbers that follow from the seed. */
static void add_matrix(struct gguf *g, const char *name, uint32_t rows, uint32_t cols,
                       const float *values, unsigned seed)
{
    test_append_text(&g->tensors, name);
    test_append_u32(&g->tensors, 2);
    test_append_u64(&g->tensors, cols);
    test_append_u64(&g->tensors, rows);
    test_append_u32(&g->tensors, 0);
    test_append_u64(&g->tensors, g->data.n);
    for (uint32_t i = 0; i < rows * cols; i++) {
        float value = values ? values[i] : (float)((i * 7919u + seed) % 97) / 97.0f - 0.5f;
        test_append(&g->data, &value, sizeof value);
    }
    while (g->data.n % 32)
        test_append(&g->data, "", 1);
    g->n_tensors++;
}

static struct gguf begin_gguf(const char *architecture)
{
    struct gguf g = { .n_keys = 0 };
    add_text(&g, "general.architecture", architecture);
    add_text(&g, "general.type", "adapter");
    add_text(&g, "adapter.type", "lora");
    return g;
}

static void write_gguf(struct gguf *g, const struct test_folder *folder, const char *name)
{
    struct test_bytes file = { 0 };
    test_append(&file, "GGUF", 4);
    test_append_u32(&file, 3);
    test_append_u64(&file, g->n_tensors);
    test_append_u64(&file, g->n_keys);
    test_append(&file, g->keys.data, g->keys.n);
    test_append(&file, g->tensors.data, g->tensors.n);
    while (file.n % 32)
        test_append(&file, "", 1);
    test_append(&file, g->data.data, g->data.n);
    test_write(folder, name, file.data, file.n);
    free(file.data);
    free(g->keys.data);
    free(g->tensors.data);
    free(g->data.data);
    *g = (struct gguf){ .n_keys = 0 };
}

/* Phi 3 has q, k and v in one tensor: an adapter of it is the same as one of each part, and that
 * of a PEFT folder the same as GGUF's. */
START_TEST(merged_tensors)
{
    enum { RANK = 5, MOST = 512 };
    struct akunu_model *base = load("phi3", NULL, 0);
    struct akunu_model_info info;
    ck_assert_int_eq(akunu_model_get_info(base, &info, sizeof info), AKUNU_OK);
    uint32_t q = info.n_heads * info.head_dim, kv = info.n_kv_heads * info.head_dim,
             width = info.width, all = q + 2 * kv;
    static float b[MOST * RANK], a[RANK * MOST];
    ck_assert(all <= MOST && width <= MOST);
    for (uint32_t i = 0; i < all * RANK; i++)
        b[i] = (float)((i * 31u) % 89) / 89.0f - 0.5f;
    for (uint32_t i = 0; i < RANK * width; i++)
        a[i] = (float)((i * 37u) % 101) / 101.0f - 0.5f;

    struct test_folder folder = test_folder_begin();
    struct gguf merged = begin_gguf("phi3"), apart = begin_gguf("phi3");
    add_alpha(&merged, 2.5f);
    add_alpha(&apart, 2.5f);
    add_matrix(&merged, "blk.0.attn_qkv.weight.lora_a", RANK, width, a, 0);
    add_matrix(&merged, "blk.0.attn_qkv.weight.lora_b", all, RANK, b, 0);
    const uint32_t rows[3] = { q, kv, kv };
    for (uint32_t i = 0, first = 0; i < 3; first += rows[i++]) {
        char name[64];
        snprintf(name, sizeof name, "blk.0.attn_%c.weight.lora_a", "qkv"[i]);
        add_matrix(&apart, name, RANK, width, a, 0);
        snprintf(name, sizeof name, "blk.0.attn_%c.weight.lora_b", "qkv"[i]);
        add_matrix(&apart, name, rows[i], RANK, b + first * RANK, 0);
    }
    write_gguf(&merged, &folder, "merged.gguf");
    write_gguf(&apart, &folder, "apart.gguf");
    struct test_st st = { .header = { 0 } };
    char shape[32];
    snprintf(shape, sizeof shape, "%d, %u", RANK, width);
    test_st_add(&st, "base_model.model.model.layers.0.self_attn.qkv_proj.lora_A.weight", "F32",
                shape, a, RANK * width * sizeof *a);
    snprintf(shape, sizeof shape, "%u, %d", all, RANK);
    test_st_add(&st, "base_model.model.model.layers.0.self_attn.qkv_proj.lora_B.weight", "F32",
                shape, b, all * RANK * sizeof *b);
    test_st_write(&st, &folder, "adapter_model.safetensors", 0);
    test_write_text(&folder, "adapter_config.json",
                    "{\"peft_type\": \"LORA\", \"r\": 5, \"lora_alpha\": 2.5}");

    float *own = run(base, "phi3"), *first = NULL;
    for (int i = 0; i < 3; i++) {
        char path[96];
        snprintf(path, sizeof path, "%s",
                 i == 2 ? folder.path : test_in(&folder, i ? "apart.gguf" : "merged.gguf"));
        struct akunu_adapter adapter = { path, 1 };
        struct akunu_model *model = load("phi3", &adapter, 1);
        float *got = run(model, "phi3");
        if (first)
            ck_assert_msg(golden_is_same(got, first, info.vocab_size), "%s", path);
        else
            ck_assert(golden_nmse(got, own, info.vocab_size) > 1e-4);
        if (first)
            free(got);
        else
            first = got;
        akunu_model_free(model);
    }
    free(first);
    free(own);
    akunu_model_free(base);
    test_folder_end(&folder);
}
END_TEST

/* ---- Refused ------------------------------------------------------------ */
enum edit { NONE, NO_B, NO_A, NO_TENSORS, NO_TYPE, OTHER_TYPE, OTHER_KIND };

/* An adapter of one weight of llama-f32, wrong in one way. */
static const struct {
    const char *architecture, *name;
    uint32_t rank, cols, rows, b_rank;
    enum edit edit;
    enum akunu_status status;
    const char *said;
} wrong[] = {
    { "llama", "blk.0.attn_q.weight", 4, 64, 64, 4, NONE, AKUNU_OK, "" },
    { "llama", "blk.0.attn_q.weight", 4, 48, 64, 4, NONE, AKUNU_ERROR_FORMAT,
      "blk.0.attn_q.weight: the adapter is for a weight of 64 × 48; the model's is 64 × 64" },
    { "llama", "blk.1.ffn_up.weight", 4, 64, 127, 4, NONE, AKUNU_ERROR_FORMAT,
      "a weight of 127 × 64; the model's is 128 × 64" },
    { "llama", "blk.0.attn_q.weight", 4, 64, 64, 5, NONE, AKUNU_ERROR_FORMAT,
      "A has 4 rows and B 5 columns; expected the same rank" },
    { "llama", "blk.2.attn_q.weight", 4, 64, 64, 4, NONE, AKUNU_ERROR_UNSUPPORTED,
      "blk.2.attn_q.weight: a model of the architecture \"llama\" has no such weight" },
    { "llama", "blk.0.nothing.weight", 4, 64, 64, 4, NONE, AKUNU_ERROR_UNSUPPORTED,
      "has no such weight" },
    { "llama", "blk.0.attn_norm.weight", 4, 64, 64, 4, NONE, AKUNU_ERROR_UNSUPPORTED,
      "has no such weight" },
    { "llama", "token_embd.weight", 4, 64, 416, 4, NONE, AKUNU_ERROR_UNSUPPORTED,
      "adapters of the embedding are not supported" },
    { "llama", "blk.0.ffn_up_exps.weight", 4, 64, 128, 4, NONE, AKUNU_ERROR_UNSUPPORTED,
      "adapters of experts are not supported" },
    { "qwen2", "blk.0.attn_q.weight", 4, 64, 64, 4, NONE, AKUNU_ERROR_UNSUPPORTED,
      "an adapter for the architecture \"qwen2\"; the model has \"llama\"" },
    { "llama", "blk.0.attn_q.weight", 4, 64, 64, 4, NO_B, AKUNU_ERROR_FORMAT,
      "blk.0.attn_q.weight has the matrix A of a pair, but no B" },
    { "llama", "blk.0.attn_q.weight", 4, 64, 64, 4, NO_A, AKUNU_ERROR_FORMAT,
      "blk.0.attn_q.weight has the matrix B of a pair, but no A" },
    { "llama", "blk.0.attn_q.weight", 4, 64, 64, 4, NO_TENSORS, AKUNU_ERROR_FORMAT,
      "the adapter has no tensors" },
    { "llama", "blk.0.attn_q.weight", 4, 64, 64, 4, NO_TYPE, AKUNU_ERROR_UNSUPPORTED,
      "general.type is \"\"; expected \"adapter\"" },
    { "llama", "blk.0.attn_q.weight", 4, 64, 64, 4, OTHER_TYPE, AKUNU_ERROR_UNSUPPORTED,
      "adapter.type is \"loha\"; expected \"lora\"" },
    { "llama", "blk.0.attn_q.weight", 4, 64, 64, 4, OTHER_KIND, AKUNU_ERROR_UNSUPPORTED,
      "blk.0.attn_q.weight.lora_c is not part of a LoRA" },
};
enum { N_WRONG = sizeof wrong / sizeof *wrong };

START_TEST(wrong_gguf)
{
    struct test_folder folder = test_folder_begin();
    struct gguf g = { .n_keys = 0 };
    char name[96], path[96];
    enum edit edit = wrong[_i].edit;
    add_text(&g, "general.architecture", wrong[_i].architecture);
    if (edit != NO_TYPE)
        add_text(&g, "general.type", "adapter");
    add_text(&g, "adapter.type", edit == OTHER_TYPE ? "loha" : "lora");
    add_alpha(&g, 8);
    snprintf(name, sizeof name, "%s.lora_a", wrong[_i].name);
    if (edit != NO_A && edit != NO_TENSORS)
        add_matrix(&g, name, wrong[_i].rank, wrong[_i].cols, NULL, 1);
    snprintf(name, sizeof name, "%s.lora_%c", wrong[_i].name, edit == OTHER_KIND ? 'c' : 'b');
    if (edit != NO_B && edit != NO_TENSORS)
        add_matrix(&g, name, wrong[_i].rows, wrong[_i].b_rank, NULL, 2);
    write_gguf(&g, &folder, "adapter.gguf");
    snprintf(path, sizeof path, "%s", test_in(&folder, "adapter.gguf"));
    for (float scale = 0; scale <= 1; scale++) { /* refused too where it would add nothing */
        struct akunu_adapter adapter = { path, scale };
        forget();
        struct akunu_model *model = load("llama-f32", &adapter, 1);
        ck_assert_msg(!model == (wrong[_i].status != AKUNU_OK), "case %d: %s", _i,
                      akunu_last_error());
        if (!model) {
            failed_with(wrong[_i].status, wrong[_i].said);
            failed_with(wrong[_i].status, path);
        }
        akunu_model_free(model);
    }
    test_folder_end(&folder);
}
END_TEST

/* Configurations of PEFT for an adapter of rank 2. */
static const struct {
    const char *config;
    enum akunu_status status;
    const char *said;
} configs[] = {
    { "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 4}", AKUNU_OK, "" },
    { "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 4, \"bias\": \"none\", \"use_dora\": "
      "false, \"modules_to_save\": [], \"layer_replication\": null, \"init_lora_weights\": "
      "\"gaussian\", \"rank_pattern\": {}, \"alpha_pattern\": {\"k_proj\": 3}}",
      AKUNU_OK, "" },
    { "{\"peft_type\": \"LORA\", \"r\": 4, \"lora_alpha\": 4, \"rank_pattern\": {\"q_proj\": 2}}",
      AKUNU_OK, "" },
    { "{\"peft_type\": \"LORA\", \"r\": 4, \"lora_alpha\": 4}", AKUNU_ERROR_FORMAT,
      "has the rank 2; adapter_config.json says 4" },
    { "{\"peft_type\": \"LORA\", \"r\": 4, \"lora_alpha\": 4, \"rank_pattern\": {\"proj\": 2}}",
      AKUNU_ERROR_FORMAT, "has the rank 2; adapter_config.json says 4" },
    { "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 4, \"use_dora\": true}",
      AKUNU_ERROR_UNSUPPORTED, "use_dora: DoRA is not supported" },
    { "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 4, \"bias\": \"all\"}",
      AKUNU_ERROR_UNSUPPORTED, "bias is all; trained biases are not supported" },
    { "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 4, \"modules_to_save\": [\"lm_head\"]}",
      AKUNU_ERROR_UNSUPPORTED, "modules_to_save: whole modules in an adapter are not supported" },
    { "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 4, \"init_lora_weights\": "
      "\"pissa_niter_4\"}",
      AKUNU_ERROR_UNSUPPORTED, "init_lora_weights is pissa_niter_4" },
    { "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 4, \"alpha_pattern\": {\".*q_proj\": "
      "3}}",
      AKUNU_ERROR_UNSUPPORTED, "alpha_pattern has the regular expression .*q_proj" },
    { "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 4, \"alpha_pattern\": [3]}",
      AKUNU_ERROR_FORMAT, "alpha_pattern is a list; expected an object" },
    { "{\"peft_type\": \"IA3\", \"r\": 2, \"lora_alpha\": 4}", AKUNU_ERROR_UNSUPPORTED,
      "peft_type is IA3; expected \"LORA\"" },
    { "{\"r\": 2, \"lora_alpha\": 4}", AKUNU_ERROR_UNSUPPORTED, "peft_type is missing" },
    { "{\"peft_type\": \"LORA\", \"lora_alpha\": 4}", AKUNU_ERROR_FORMAT, "r is missing" },
    { "{\"peft_type\": \"LORA\", \"r\": -2, \"lora_alpha\": 4}", AKUNU_ERROR_FORMAT,
      "r is -2; expected a positive number" },
    { "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": \"4\"}", AKUNU_ERROR_FORMAT,
      "lora_alpha is a string; expected a positive number" },
    { "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 4, \"use_rslora\": 1}",
      AKUNU_ERROR_FORMAT, "use_rslora is " },
    { "[]", AKUNU_ERROR_FORMAT, "adapter_config.json is a list; expected an object" },
    { "{", AKUNU_ERROR_FORMAT, "adapter_config.json" },
    { "", AKUNU_ERROR_FORMAT, "adapter_config.json" },
    { NULL, AKUNU_ERROR_FORMAT, "adapter_config.json: no such file" },
};
enum { N_CONFIGS = sizeof configs / sizeof *configs };

static void write_peft(const struct test_folder *folder, const char *a_name, const char *config)
{
    static const float values[64 * 2] = { 0.5f };
    struct test_st st = { .header = { 0 } };
    test_st_add(&st, a_name, "F32", "2, 64", values, sizeof values);
    test_st_add(&st, "base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight", "F32",
                "64, 2", values, sizeof values);
    test_st_write(&st, folder, "adapter_model.safetensors", 0);
    if (config)
        test_write_text(folder, "adapter_config.json", config);
}

static void check_peft(const struct test_folder *folder, enum akunu_status status, const char *said)
{
    struct akunu_adapter adapter = { folder->path, 1 };
    forget();
    struct akunu_model *model = load("llama-f32", &adapter, 1);
    ck_assert_msg(!model == (status != AKUNU_OK), "\"%s\": %s", said, akunu_last_error());
    if (!model) {
        failed_with(status, said);
        failed_with(status, folder->path);
    }
    akunu_model_free(model);
}

START_TEST(wrong_peft)
{
    struct test_folder folder = test_folder_begin();
    write_peft(&folder, "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight",
               configs[_i].config);
    check_peft(&folder, configs[_i].status, configs[_i].said);
    test_folder_end(&folder);
}
END_TEST

START_TEST(wrong_peft_tensors)
{
    static const struct {
        const char *name, *said;
        enum akunu_status status;
    } names[] = {
        { "base_model.model.model.layers.0.self_attn.q_proj.lora_magnitude_vector.weight",
          "DoRA is not supported", AKUNU_ERROR_UNSUPPORTED },
        { "base_model.model.model.embed_tokens.lora_embedding_A",
          "adapters of the embedding are not supported", AKUNU_ERROR_UNSUPPORTED },
        { "base_model.model.lm_head.weight", "is not part of a plain LoRA",
          AKUNU_ERROR_UNSUPPORTED },
        { "model.layers.0.self_attn.q_proj.lora_A.weight", "is not part of a plain LoRA",
          AKUNU_ERROR_UNSUPPORTED },
        { "base_model.model.model.layers.0.self_attn.k_proj.lora_A.weight", "of a pair, but no",
          AKUNU_ERROR_FORMAT },
        { "base_model.model.model.layers.0.mlp.experts.3.up_proj.lora_A.weight", "of a pair",
          AKUNU_ERROR_FORMAT },
    };
    static const char config[] = "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 4}";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct test_folder folder = test_folder_begin();
        write_peft(&folder, names[i].name, config);
        check_peft(&folder, names[i].status, names[i].said);
        test_folder_end(&folder);
    }
    struct test_folder folder = test_folder_begin();
    test_write_text(&folder, "adapter_config.json", config);
    test_write(&folder, "adapter_model.bin", "x", 1);
    check_peft(&folder, AKUNU_ERROR_FORMAT, "adapter_model.safetensors: no such file");
    test_write(&folder, "adapter_model.safetensors", "\10\0\0\0\0\0\0\0{\"a\":{}}", 16);
    check_peft(&folder, AKUNU_ERROR_FORMAT, "adapter_model.safetensors");
    test_folder_end(&folder);
}
END_TEST

START_TEST(wrong_arguments)
{
    char of_model[4096], of_adapter[4096];
    golden_path("qwen2", ".gguf", of_model);
    golden_path("../adapters/", "llama.gguf", of_adapter);
    const struct {
        struct akunu_adapter adapter;
        enum akunu_status status;
        const char *said;
    } arguments[] = {
        { { NULL, 1 }, AKUNU_ERROR_ARGUMENT, "an adapter has no path" },
        { { of_adapter, NAN }, AKUNU_ERROR_ARGUMENT, "scale is nan; expected a finite number" },
        { { "/nowhere/x", 1 }, AKUNU_ERROR_FORMAT, "/nowhere/x" },
        { { of_model, 1 }, AKUNU_ERROR_UNSUPPORTED, "expected \"adapter\"" },
    };
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++) {
        forget();
        ck_assert_ptr_null(load("llama-f32", &arguments[i].adapter, 1));
        failed_with(arguments[i].status, arguments[i].said);
    }
    forget();
    ck_assert_ptr_null(load("llama-f32", NULL, 2));
    failed_with(AKUNU_ERROR_ARGUMENT, "2 adapters, and no list of them");
    /* an adapter alone is no model */
    forget();
    ck_assert_ptr_null(akunu_model_load(of_adapter, NULL));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("adapter");
    TCase *any = tcase_create("any"), *tests = tcase_create("adapter");
    tcase_set_timeout(any, 300);
    tcase_set_timeout(tests, 300);
    tcase_add_test(any, merged_tensors);
    tcase_add_loop_test(tests, wrong_gguf, 0, N_WRONG);
    tcase_add_loop_test(tests, wrong_peft, 0, N_CONFIGS);
    tcase_add_test(tests, wrong_peft_tensors);
    tcase_add_test(tests, wrong_arguments);
    suite_add_tcase(suite, any);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
