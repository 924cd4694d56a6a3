/* A model's layers on two backends, both of them the CPU's: the same bits as on one, wherever
 * the split is, whatever the layers keep. */
#include "engine/backends/list.h"
#include "tests/engine/backends/texts.h"

static struct ak_model *load(const char *name, const struct akunu_adapter *adapter)
{
    char path[4096];
    struct ak_error error = { 0 };
    struct ak_model *model = NULL;
    struct akunu_load_params params;
    akunu_load_params_default(&params, sizeof params);
    params.no_cache = true;
    params.n_threads = 2;
    params.backend = "cpu";
    params.adapters = adapter;
    params.n_adapters = adapter ? 1 : 0;
    fine(ak_model_load(golden_path(name, ".gguf", path), &params, &model, &error), &error);
    return model;
}

/* With the kernels that load() takes: how many tokens are a skinny GEMM differs by ISA. */
static struct ak_backend *open_cpu(void)
{
    struct ak_backend_options options = { .cpu = getenv("AKUNU_CPU") };
    struct ak_backend *cpu = NULL;
    struct ak_error error = { 0 };
    fine(ak_backend_list()[0]->open(&options, &cpu, &error), &error);
    return cpu;
}

/* The same model, whose layers from `split_layer` on are another backend's. */
static struct ak_model *split_model(struct ak_model *model, uint32_t split_layer,
                                    const struct akunu_adapter *adapter)
{
    struct ak_error error = { 0 };
    struct ak_model *split = calloc(1, sizeof *split);
    ck_assert_ptr_nonnull(split);
    *split = *model;
    fine(ak_backend_open_split(open_cpu(), open_cpu(), &model->spec, split_layer, &split->backend,
                               &error),
         &error);
    fine(ak_pack_plan(&model->binding, split->backend, &split->weights, &error), &error);
    if (adapter) {
        struct ak_adapter opened;
        fine(ak_adapter_open(adapter->path, &opened, &error), &error);
        fine(ak_pack_add_adapter(&split->weights, &model->spec, &opened, adapter->scale, &error),
             &error);
        ak_adapter_close(&opened);
    }
    struct ak_pack_job job = { .weights = &split->weights, .backend = split->backend };
    fine(ak_pool_create(1, &job.pool, &error), &error);
    fine(ak_pack_weights(&job, &error), &error);
    ak_pool_free(job.pool);
    for (uint32_t i = 0; i < split->weights.n_packed; i++) {
        const struct ak_pack_weight *packed = &split->weights.packed[i];
        bool last = packed->layer == AK_ROLE_NO_LAYER || packed->layer >= (int)split_layer;
        ck_assert_ptr_eq(packed->backend,
                         ak_backend_for_layer(split->backend, last ? AK_ROLE_NO_LAYER : 0));
    }
    return split;
}

static void free_split(struct ak_model *split)
{
    ak_pack_clear(&split->weights);
    split->backend->ops->close(split->backend);
    free(split);
}

/* Bytes of a session's logits pass. */
static uint64_t memory_of(struct ak_model *model)
{
    struct ak_session *session = open_session(model);
    uint64_t bytes = model->backend->ops->memory_bytes(session->logits);
    ak_session_free(session);
    return bytes;
}

/* The model on one backend, and split before each layer. */
static void check_splits(const char *name, const struct akunu_adapter *adapter)
{
    static float want[3 * GOLDEN_VOCAB], got[3 * GOLDEN_VOCAB], pooled[2][1024], again[2][1024];
    akunu_token ids[N];
    int32_t sampled, sampled_again;
    struct ak_backend_counts counts, counts_again;
    struct ak_model *model = load(name, adapter);
    ck_assert_uint_le(model->spec.config.width, 512);
    read_ids(name, ids);
    run_text(model, ids, want, &sampled, &counts);
    embed(model, ids, pooled[0]);
    uint64_t bytes = memory_of(model);
    for (uint32_t split_layer = 1; split_layer < model->spec.config.n_layers; split_layer++) {
        struct ak_model *split = split_model(model, split_layer, adapter);
        run_text(split, ids, got, &sampled_again, &counts_again);
        embed(split, ids, again[0]);
        ck_assert_msg(memcmp(want, got, 3 * model->spec.config.vocab_size * sizeof *want) == 0,
                      "%s, split before layer %u: other logits", name, (unsigned)split_layer);
        ck_assert_int_eq(sampled, sampled_again);
        ck_assert_uint_eq(counts.gemv, counts_again.gemv);
        ck_assert_uint_eq(counts.skinny, counts_again.skinny);
        ck_assert_uint_eq(counts.gemm, counts_again.gemm);
        ck_assert_uint_ge(memory_of(split), bytes); /* each part has buffers of its own */
        ck_assert_msg(memcmp(pooled, again, 2 * model->spec.config.width * sizeof(float)) == 0,
                      "%s, split before layer %u: another embedding", name, (unsigned)split_layer);
        free_split(split);
    }
    ak_model_free(model);
}

START_TEST(same_bits)
{
    check_splits(golden_at(_i)->name, NULL);
}
END_TEST

START_TEST(adapters)
{
    char path[4096];
    struct akunu_adapter adapter = { golden_path("../adapters/", "llama.gguf", path), 1 };
    check_splits("llama-f32", &adapter);
}
END_TEST

START_TEST(encoders)
{
    char path[4096];
    struct ak_error error = { 0 };
    struct ak_model *model = NULL;
    struct akunu_load_params params;
    static float want[2][1024], got[2][1024];
    akunu_token ids[32];
    akunu_load_params_default(&params, sizeof params);
    params.no_cache = true;
    snprintf(path, sizeof path, "%s/encoders/bert/model.gguf", getenv("AK_TEST_DATA"));
    fine(ak_model_load(path, &params, &model, &error), &error);
    for (int i = 0; i < 32; i++)
        ids[i] = i + 5;
    embed(model, ids, want[0]);
    struct ak_model *split = split_model(model, 1, NULL);
    embed(split, ids, got[0]);
    ck_assert_mem_eq(want, got, 2 * model->spec.config.width * sizeof(float));
    free_split(split);
    ak_model_free(model);
}
END_TEST

/* ---- Capacity ----------------------------------------------------------- */
enum { FIRST_BYTES = 90, SECOND_BYTES = 140 };

static uint64_t capacity_of_first(const struct ak_backend *b, const struct ak_weights *weights)
{
    (void)b, (void)weights;
    return FIRST_BYTES;
}

static uint64_t capacity_of_second(const struct ak_backend *b, const struct ak_weights *weights)
{
    (void)b, (void)weights;
    return SECOND_BYTES;
}

static const char *describe_limited(const struct ak_backend *b)
{
    (void)b;
    return "small";
}

static const char *describe_other(const struct ak_backend *b)
{
    (void)b;
    return "a larger one";
}

static void stay_open(struct ak_backend *b)
{
    (void)b;
}

/* All pages have a part of each layer, so the part whose layers fill it first says how many
 * bytes of whole pages there may be. */
START_TEST(capacity)
{
    static const struct ak_backend_ops limited = { .describe = describe_limited,
                                                   .close = stay_open,
                                                   .kv_bytes_max = capacity_of_first },
                                       roomier = { .describe = describe_other,
                                                   .close = stay_open,
                                                   .kv_bytes_max = capacity_of_second },
                                       unlimited = { .describe = describe_other,
                                                     .close = stay_open };
    static const struct {
        const struct ak_backend_ops *first, *second;
        uint64_t want;
        const char *description;
    } cases[] = {
        /* it has one layer of three */
        { &limited, &unlimited, 3 * FIRST_BYTES, "small (1 layers), a larger one (2 layers)" },
        { &unlimited, &limited, FIRST_BYTES / 2 * 3, "a larger one (1 layers), small (2 layers)" },
        { &limited, &roomier, SECOND_BYTES / 2 * 3, "small (1 layers), a larger one (2 layers)" },
        { &unlimited, &unlimited, UINT64_MAX, "a larger one (1 layers), a larger one (2 layers)" },
    };
    struct ak_spec spec = { .config.n_layers = 3 };
    struct ak_error error = { 0 };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ak_backend first = { cases[i].first }, second = { cases[i].second }, *split = NULL;
        fine(ak_backend_open_split(&first, &second, &spec, 1, &split, &error), &error);
        ck_assert_uint_eq(split->ops->kv_bytes_max(split, NULL), cases[i].want);
        ck_assert_str_eq(split->ops->describe(split), cases[i].description);
        split->ops->close(split);
    }
}
END_TEST

START_TEST(names)
{
    const struct ak_backend_ops *ops = NULL;
    struct ak_error error = { 0 };
    fine(ak_backend_find(NULL, &ops, &error), &error);
    ck_assert_str_eq(ops->name, "cpu");
    fine(ak_backend_find("cpu", &ops, &error), &error);
    ck_assert_str_eq(ops->name, "cpu");
    ck_assert_int_eq(ak_backend_find("abacus", &ops, &error), AKUNU_ERROR_ARGUMENT);
    const char said[] = "this build has no backend called \"abacus\"; it has cpu";
    ck_assert_msg(strncmp(error.message, said, strlen(said)) == 0, "%s", error.message);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("split");
    TCase *tests = tcase_create("split");
    tcase_set_timeout(tests, 600);
    tcase_add_loop_test(tests, same_bits, 0, golden_count());
    tcase_add_test(tests, adapters);
    tcase_add_test(tests, encoders);
    tcase_add_test(tests, capacity);
    tcase_add_test(tests, names);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
