/* A model's layers on two backends, both of them the CPU's: the same bits as on one, wherever
 * the split is, whatever the layers keep. */
#include "engine/backends/list.h"
#include "tests/load.h"
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
    fine(load_from(golden_path(name, ".gguf", path), &params, &model, &error), &error);
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
    struct ak_backend *first = open_cpu(), *second = open_cpu();
    fine(ak_backend_open_split(first, second, &model->spec, split_layer, &split->backend, &error),
         &error);
    for (int i = 0; i < (int)model->spec.config.n_layers; i++)
        ck_assert_ptr_eq(ak_backend_for_layer(split->backend, i),
                         i < (int)split_layer ? first : second);
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
        ck_assert_ptr_eq(packed->backend, last ? second : first);
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
    fine(load_from(path, &params, &model, &error), &error);
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

/* ---- Calls -------------------------------------------------------------- */
/* A part that only counts what it is asked for. */
struct part {
    struct ak_backend base;
    struct ak_kv_shape shape; /* of its pool */
    int n_pools, n_tables, page_copies, state_copies;
    bool is_closed, refuses_pools, refuses_tables;
};

struct part_table {
    struct part *part;
};

static void close_part(struct ak_backend *b)
{
    ((struct part *)b)->is_closed = true;
}

static const char *describe_part(const struct ak_backend *b)
{
    (void)b;
    return "a part";
}

static void check_pool(const struct part *part, const void *kv, const struct ak_kv_shape *shape)
{
    ck_assert_ptr_eq(kv, part);
    ck_assert_uint_eq(shape->n_layers, part->shape.n_layers);
    ck_assert_uint_eq(shape->state_elems, part->shape.state_elems);
}

static ak_status alloc_part(struct ak_backend *b, const struct ak_kv_shape *shape, void **kv,
                            struct ak_error *error)
{
    struct part *part = (struct part *)b;
    if (part->refuses_pools)
        return ak_fail_memory(error, "the KV cache", 0);
    part->shape = *shape;
    part->n_pools++;
    *kv = part;
    return AKUNU_OK;
}

static void free_part(struct ak_backend *b, void *kv, const struct ak_kv_shape *shape)
{
    check_pool((struct part *)b, kv, shape);
    ((struct part *)b)->n_pools--;
}

static void copy_page_of_part(struct ak_backend *b, void *kv, const struct ak_kv_shape *shape,
                              uint32_t to, uint32_t from)
{
    check_pool((struct part *)b, kv, shape);
    ck_assert(to == 1 && from == 0);
    ((struct part *)b)->page_copies++;
}

static void copy_state_of_part(struct ak_backend *b, void *kv, const struct ak_kv_shape *shape,
                               uint32_t to, uint32_t from)
{
    check_pool((struct part *)b, kv, shape);
    ck_assert(to == 2 && from == 1);
    ((struct part *)b)->state_copies++;
}

static ak_status prepare_part(struct ak_backend *b, const struct ak_table *table,
                              const struct ak_weights *weights, const struct ak_spec *spec,
                              const struct ak_backend_table_options *options, void *kv,
                              struct ak_backend_table **out, struct ak_error *error)
{
    struct part *part = (struct part *)b;
    (void)table, (void)weights, (void)spec;
    check_pool(part, kv, &options->kv);
    if (part->refuses_tables)
        return ak_fail_memory(error, "a session", 0);
    struct part_table *prepared = malloc(sizeof *prepared);
    ck_assert_ptr_nonnull(prepared);
    prepared->part = part;
    part->n_tables++;
    *out = (struct ak_backend_table *)prepared;
    return AKUNU_OK;
}

static void release_part(struct ak_backend_table *prepared)
{
    struct part_table *t = (struct part_table *)prepared;
    t->part->n_tables--;
    free(t);
}

static const struct ak_backend_ops part_ops = { .close = close_part,
                                                .describe = describe_part,
                                                .alloc_kv = alloc_part,
                                                .free_kv = free_part,
                                                .copy_page = copy_page_of_part,
                                                .copy_state = copy_state_of_part,
                                                .prepare = prepare_part,
                                                .release = release_part };

/* Pool and table, which the part that refuses does not give; returns whether both were there. */
static bool use_parts(const struct ak_model *model, struct ak_backend *split)
{
    struct ak_kv_shape shape = ak_model_kv_shape(model, AKUNU_KV_F16, AKUNU_KV_F16);
    struct ak_backend_table_options options = { .kv = shape, .max_tokens = 1, .max_logits = 1 };
    struct ak_backend_table *prepared;
    struct ak_error error = { 0 };
    void *kv;
    if (split->ops->alloc_kv(split, &shape, &kv, &error) != AKUNU_OK)
        return false;
    split->ops->copy_page(split, kv, &shape, 1, 0);
    split->ops->copy_state(split, kv, &shape, 2, 1);
    ak_status status = split->ops->prepare(split, &model->table, &model->weights, &model->spec,
                                           &options, kv, &prepared, &error);
    if (status == AKUNU_OK)
        split->ops->release(prepared);
    split->ops->free_kv(split, kv, &shape);
    return status == AKUNU_OK;
}

/* What refuses, and which part does. */
enum refusal { REFUSES_NOTHING, REFUSES_POOLS, REFUSES_TABLES, REFUSALS };

static void check_parts(const struct ak_model *model, uint32_t split_layer, enum refusal refusal,
                        int refusing)
{
    struct part parts[2] = { { .base = { &part_ops } }, { .base = { &part_ops } } };
    struct ak_backend *split = NULL;
    struct ak_error error = { 0 };
    parts[refusing].refuses_pools = refusal == REFUSES_POOLS;
    parts[refusing].refuses_tables = refusal == REFUSES_TABLES;
    fine(ak_backend_open_split(&parts[0].base, &parts[1].base, &model->spec, split_layer, &split,
                               &error),
         &error);
    ck_assert_int_eq(use_parts(model, split), refusal == REFUSES_NOTHING);
    split->ops->close(split);
    for (int i = 0; i < 2; i++) {
        bool copies = refusal != REFUSES_POOLS;
        ck_assert_int_eq(parts[i].n_pools, 0);
        ck_assert_int_eq(parts[i].n_tables, 0);
        ck_assert_int_eq(parts[i].page_copies, copies && parts[i].shape.n_layers > 0);
        ck_assert_int_eq(parts[i].state_copies, copies && parts[i].shape.state_elems > 0);
        ck_assert(parts[i].is_closed);
    }
    if (refusal == REFUSES_POOLS)
        return;
    ck_assert_uint_eq(parts[0].shape.n_layers + parts[1].shape.n_layers,
                      ak_spec_kv_layers(&model->spec));
    ck_assert_uint_eq(parts[0].shape.state_elems + parts[1].shape.state_elems,
                      ak_spec_state_elems(&model->spec));
}

/* Each part gets each call once, about its own layers, and nothing about layers that it does not
 * have; what it gave is given back, whichever part refuses. */
START_TEST(calls)
{
    static const char *const names[] = { "llama-f32", "lfm2", "qwen3next" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct ak_model *model = load(names[i], NULL);
        for (uint32_t layer = 1; layer < model->spec.config.n_layers; layer++)
            for (int j = 0; j < 2 * REFUSALS; j++)
                check_parts(model, layer, (enum refusal)(j / 2), j % 2);
        ak_model_free(model);
    }
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

#define LONG_NAME                                                                                  \
    "a larger one, whose name is longer than the room that is there beside the names of both"

static const char *describe_other(const struct ak_backend *b)
{
    (void)b;
    return LONG_NAME;
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
        { &limited, &unlimited, 3 * FIRST_BYTES, "small (1 layers), " LONG_NAME " (2 layers)" },
        { &unlimited, &limited, FIRST_BYTES / 2 * 3, LONG_NAME " (1 layers), small (2 layers)" },
        { &limited, &roomier, SECOND_BYTES / 2 * 3, "small (1 layers), " LONG_NAME " (2 layers)" },
        { &unlimited, &unlimited, UINT64_MAX, LONG_NAME " (1 layers), " LONG_NAME " (2 layers)" },
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
    ck_assert_str_eq(error.message,
                     ak_backend_list()[1] ?
                         "this build has no backend called \"abacus\"; it has cpu and opencl" :
                         "this build has no backend called \"abacus\"; it has cpu, and none for "
                         "OpenCL");
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
    tcase_add_test(tests, calls);
    tcase_add_test(tests, capacity);
    tcase_add_test(tests, names);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
