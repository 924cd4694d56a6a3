/* The calls of core.h and sample.h, and those of measure.h about a model and a session: what each
 * takes and gives, and what it refuses. Logits and texts are tested in test_model.c. */
#include <math.h>

#include "api/handles.h"
#include "tests/api/failure.h"
#include "tests/gguf_files.h"
#include "tests/golden_model.h"
#include "tests/process.h"

static struct akunu_model *load(const char *name)
{
    struct akunu_load_params params;
    akunu_load_params_default(&params, sizeof params);
    params.n_threads = 1;
    params.no_cache = true;
    struct akunu_model *model = akunu_model_load(test_path(name), &params);
    ck_assert_msg(model != NULL, "%s: %s", name, akunu_last_error());
    return model;
}

static struct akunu_session *open_session(const struct akunu_model *model)
{
    struct akunu_session_params params = golden_params(1, 16, AKUNU_KV_F16);
    struct akunu_session *session = akunu_session_new(model, &params);
    ck_assert_msg(session != NULL, "%s", akunu_last_error());
    return session;
}

/* ---- Sized structs ------------------------------------------------------ */
/* Nothing behind what the program calls its struct is written, nor in front of a size. */
START_TEST(sizes)
{
    struct akunu_chat chat;
    struct akunu_memory memory;
    struct akunu_model *model = load("models/gemma.gguf");
    for (size_t size = 0; size <= sizeof chat; size++) {
        memset(&chat, 0x5a, sizeof chat);
        akunu_chat_default(&chat, size);
        ck_assert_msg(chat.size == (size < sizeof size ? (size_t)0x5a5a5a5a5a5a5a5a : size), "%zu",
                      size);
        for (size_t i = size < sizeof size ? 0 : size; i < sizeof chat; i++)
            ck_assert_int_eq(((char *)&chat)[i], 0x5a);
    }
    akunu_chat_default(NULL, sizeof chat);
    for (size_t size = 1; size <= sizeof memory; size += 3) {
        memset(&memory, 0x5a, sizeof memory);
        ck_assert_int_eq(akunu_model_get_memory(model, NULL, &memory, size), AKUNU_OK);
        for (size_t i = size; i < sizeof memory; i++)
            ck_assert_int_eq(((char *)&memory)[i], 0x5a);
    }
    ck_assert_int_eq(akunu_model_get_memory(model, NULL, &memory, 0), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "no struct akunu_memory is given");
    forget();
    ck_assert_int_eq(akunu_model_get_memory(model, NULL, NULL, sizeof memory),
                     AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "no struct akunu_memory is given");
    akunu_model_free(model);
}
END_TEST

START_TEST(defaults)
{
    struct akunu_load_params l;
    struct akunu_session_params s;
    struct akunu_embedding_params e;
    struct akunu_generation_params g;
    struct akunu_sampling_params p;
    struct akunu_prompt_cache c;
    akunu_load_params_default(&l, sizeof l);
    ck_assert(!l.cpu && !l.n_threads && !l.strict && !l.warm_up && !l.no_cache && !l.cache_dir &&
              !l.progress && !l.log && !l.profile && !l.relaxed && l.prefill == 0 &&
              !l.override_kv && !l.backend && !l.device && l.n_gpu_layers == -1 && !l.cache_limit);
    ck_assert(!l.adapters && !l.n_adapters);
    const struct akunu_rope none = { .scaling = AKUNU_ROPE_SCALING_MODEL };
    ck_assert_mem_eq(&l.rope, &none, sizeof none);
    akunu_session_params_default(&s, sizeof s);
    ck_assert(!s.context && !s.batch && !s.max_sequences && !s.n_threads &&
              s.k_type == AKUNU_KV_F16 && s.v_type == AKUNU_KV_F16 && !s.log && !s.cpus);
    akunu_embedding_params_default(&e, sizeof e);
    ck_assert(e.pooling == AKUNU_POOLING_MODEL && e.normalize == AKUNU_NORMALIZE_MODEL);
    akunu_generation_params_default(&g, sizeof g);
    ck_assert(g.max_tokens == -1 && !g.sampling && !g.special && g.speculation == 0 && !g.draft &&
              !g.draft_max && !g.draft_min && g.draft_p_min == 0.0f && !g.on_logprobs &&
              !g.n_top_logprobs && !g.stops && !g.n_stops);
    akunu_prompt_cache_default(&c, sizeof c);
    ck_assert(!c.dir && !c.file && c.max_bytes == 2000000000 && c.min_tokens == 128);
    akunu_sampling_params_default(&p, sizeof p);
    ck_assert(p.temperature == 0.8f && p.top_k == 40 && p.top_p == 0.95f && p.min_p == 0.05f &&
              p.repeat_penalty == 1.0f && p.repeat_last_n == 64 && p.presence_penalty == 0.0f &&
              p.frequency_penalty == 0.0f && p.seed == UINT64_MAX && !p.ignore_end);
    ck_assert(!p.samplers && !p.sampler_seq && p.dynatemp_range == 0.0f &&
              p.dynatemp_exponent == 1.0f && p.typical_p == 1.0f && p.top_n_sigma == -1.0f &&
              p.xtc_probability == 0.0f && p.xtc_threshold == 0.1f);
    ck_assert(p.dry_multiplier == 0.0f && p.dry_base == 1.75f && p.dry_allowed_length == 2 &&
              p.dry_penalty_last_n == 64 && !p.dry_sequence_breakers && p.mirostat == 0 &&
              p.mirostat_tau == 5.0f && p.mirostat_eta == 0.1f);
    ck_assert(p.adaptive_target == -1.0f && p.adaptive_decay == 0.9f && !p.logit_bias &&
              !p.n_logit_bias && !p.grammar);
}
END_TEST

enum { IS_REAL_f32 = true, IS_REAL_i32 = false };

/* Defaults are in their ranges, help states them, and the check takes both ends of a range.
 * tests/house.sh sees that no member is left out. */
START_TEST(sampling_numbers)
{
    static const struct {
        const char *help;
        size_t offset;
        double initial, low, high;
        bool is_real;
    } rows[] = {
#define AKUNU_SAMPLING(type, member, initial, low, high, flag, second, help)                       \
    { help, offsetof(struct akunu_sampling_params, member), initial, low, high, IS_REAL_##type },
#include "akunu/sampling.def"
    };
    struct akunu_sampling_params p;
    char shown[32];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ck_assert(rows[i].initial >= rows[i].low && rows[i].initial <= rows[i].high);
        snprintf(shown, sizeof shown,
                 rows[i].is_real && rows[i].initial == floor(rows[i].initial) ? "(%.1f" : "(%.5g",
                 rows[i].initial);
        ck_assert_msg(strstr(rows[i].help, shown) != NULL, "%s: no %s", rows[i].help, shown);
        for (int end = 0; end < 2; end++) {
            double value = end ? rows[i].high : rows[i].low;
            akunu_sampling_params_default(&p, sizeof p);
            if (rows[i].is_real)
                *(float *)((char *)&p + rows[i].offset) = (float)value;
            else
                *(int32_t *)((char *)&p + rows[i].offset) = (int32_t)value;
            ck_assert_msg(akunu_sampling_check(&p) == AKUNU_OK, "%s", akunu_last_error());
        }
    }
}
END_TEST

/* ---- Models ------------------------------------------------------------- */
START_TEST(models)
{
    static const struct {
        const char *file, *name, *architecture, *format, *weight_type;
        uint64_t parameters, token_bytes, matrix, floats;
        bool encoder, normalized;
        enum akunu_pooling pooling;
    } cases[] = {
        /* packed blocks of Q6_K have 212 bytes, not 210; one row of the embedding is read */
        { "models/mixed.gguf", "llama-256-f32", "llama", "gguf", "Q6_K", 803584,
          487936 + 2 * 512 + 45760 / 416, 589824, 0, false, true, AKUNU_POOLING_LAST },
        /* the output is the embedding */
        { "model.gguf", "qwen2-tied-bf16", "qwen2", "gguf", "BF16", 96768,
          2 * (2 * (2 * 64 * 64 + 2 * 16 * 64 + 3 * 128 * 64) + 416 * 64 + 64), 69632, 69632, false,
          true, AKUNU_POOLING_LAST },
        { "quantized/mlx", "", "llama", "safetensors", "MLX6_G64", 41152, 30516, 30720, 2048, false,
          false, AKUNU_POOLING_LAST },
        { "encoders/bert", "", "bert", "safetensors", "BF16", 16608, 28736, 14336, 14336, true,
          true, AKUNU_POOLING_CLS },
    };
    struct akunu_model_info info;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct akunu_model *model = load(cases[i].file);
        ck_assert_int_eq(akunu_model_get_info(model, &info, sizeof info), AKUNU_OK);
        ck_assert_str_eq(info.name, cases[i].name);
        ck_assert_str_eq(info.architecture, cases[i].architecture);
        ck_assert_str_eq(info.format, cases[i].format);
        ck_assert_str_eq(info.weight_type, cases[i].weight_type);
        ck_assert_uint_eq(info.n_parameters, cases[i].parameters);
        ck_assert_uint_eq(info.token_weight_bytes, cases[i].token_bytes);
        ck_assert_uint_eq(info.matrix_parameters, cases[i].matrix);
        ck_assert_uint_eq(info.float_parameters, cases[i].floats);
        ck_assert(info.encoder == cases[i].encoder && info.normalized == cases[i].normalized &&
                  info.pooling == cases[i].pooling);
        ck_assert_ptr_nonnull(akunu_model_file(model));
        ck_assert_ptr_nonnull(akunu_model_profile(model));
        ck_assert_ptr_nonnull(akunu_model_dump(model, false));
        ck_assert((akunu_model_dump(model, true) != NULL) == !cases[i].encoder);
        ck_assert((akunu_model_tokenizer(model) != NULL) == (strcmp(info.format, "gguf") == 0));
        akunu_model_free(model);
    }
    test_check_unmapped();
    struct akunu_model *model = load("model.gguf");
    ck_assert_int_eq(akunu_model_get_info(model, &info, sizeof info), AKUNU_OK);
    ck_assert(info.n_layers == 2 && info.width == 64 && info.n_heads == 4 && info.n_kv_heads == 1 &&
              info.head_dim == 16 && info.ffn_width == 128 && info.vocab_size == 416 &&
              info.context == 256);
    ck_assert_str_eq(info.cpu, getenv("AKUNU_CPU") ? getenv("AKUNU_CPU") : akunu_cpu_best());
    akunu_model_free(model);
    ck_assert(!akunu_model_file(NULL) && !akunu_model_profile(NULL) &&
              !akunu_model_dump(NULL, false) && !akunu_model_dump(NULL, true) &&
              !akunu_model_tokenizer(NULL));
    ck_assert_int_eq(akunu_model_get_info(NULL, &info, sizeof info), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "the model is NULL");
    struct akunu_load_params params = { .size = 8 };
    ck_assert_ptr_null(akunu_model_load(test_path("model.gguf"), &params));
    failed_with(AKUNU_ERROR_ARGUMENT, "akunu_load_params");
    ck_assert_ptr_null(akunu_model_load(NULL, NULL));
    failed_with(AKUNU_ERROR_ARGUMENT, "no path is given");
    ck_assert_ptr_null(akunu_model_load("/nowhere", NULL));
    failed_with(AKUNU_ERROR_FORMAT, "/nowhere");
}
END_TEST

START_TEST(memory)
{
    struct akunu_memory m, with;
    char dir[] = "/tmp/akunu-test-XXXXXX", path[128];
    ck_assert_ptr_nonnull(mkdtemp(dir));
    struct akunu_load_params params;
    akunu_load_params_default(&params, sizeof params);
    params.cache_dir = dir;
    for (int cached = 0; cached < 2; cached++) {
        params.no_cache = !cached;
        struct akunu_model *model = akunu_model_load(test_path("models/mixed.gguf"), &params);
        ck_assert_msg(model != NULL, "%s", akunu_last_error());
        const struct ak_model *inner = model->inner;
        ck_assert_int_eq(akunu_model_get_memory(model, NULL, &m, sizeof m), AKUNU_OK);
        ck_assert_uint_eq(m.mapped, 546784);
        ck_assert(m.packed == inner->weights.block_bytes + inner->weights.vector_bytes &&
                  inner->weights.block_bytes > 400000 && inner->weights.vector_bytes >= 3 * 1024);
        ck_assert_uint_eq(m.cached, cached ? inner->weights.block_bytes : 0);
        ck_assert_uint_eq(m.tokenizer, ak_tok_memory_bytes(inner->tokenizer));
        ck_assert_uint_gt(m.tokenizer, 10000);
        uint64_t tables[] = { ak_table_bytes(&inner->table), ak_table_bytes(&inner->sampled_table),
                              ak_table_bytes(&inner->hidden_table) };
        ck_assert(tables[0] > 0 && tables[1] > 0 && tables[2] > 0);
        ck_assert_uint_eq(m.table, tables[0] + tables[1] + tables[2]);
        ck_assert(m.kv == 0 && m.scratch == 0);
        struct akunu_session *session = open_session(model);
        ck_assert_int_eq(akunu_model_get_memory(model, session, &with, sizeof with), AKUNU_OK);
        ck_assert_uint_eq(with.kv, session->inner->kv.pool_bytes);
        ck_assert_uint_eq(with.scratch, ak_session_scratch_bytes(session->inner));
        ck_assert(with.kv > 0 && with.scratch > 0 && with.packed == m.packed);
        akunu_session_free(session);
        akunu_model_free(model);
    }
    struct akunu_cache *cache = akunu_cache_open(dir);
    struct akunu_cache_entry e;
    ck_assert_int_eq(akunu_cache_get_entry(cache, 0, &e, sizeof e), AKUNU_OK);
    snprintf(path, sizeof path, "%s/%s", dir, e.file);
    akunu_cache_free(cache);
    ck_assert_int_eq(remove(path), 0);
    ck_assert_int_eq(remove(dir), 0);
    ck_assert_int_eq(akunu_model_get_memory(NULL, NULL, &m, sizeof m), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "the model is NULL");
}
END_TEST

/* ---- Sessions ----------------------------------------------------------- */
START_TEST(sessions)
{
    const akunu_token ids[] = { 5, 6, 7 };
    struct akunu_batch_token tokens[3];
    size_t last = 9;
    struct akunu_model *model = load("model.gguf");
    struct akunu_session *s = open_session(model);
    ck_assert_uint_eq(akunu_session_context(s), 256);
    ck_assert_uint_eq(akunu_session_batch(s), 16);
    ck_assert_uint_eq(akunu_session_threads(s), 1);
    akunu_sequence a = akunu_sequence_new(s), b = akunu_sequence_new(s);
    ck_assert(a >= 0 && b >= 0 && a != b);
    for (int i = 0; i < 3; i++)
        tokens[i] = (struct akunu_batch_token){ ids[i], a, i == 1 };
    ck_assert_int_eq(akunu_session_decode(s, tokens, 3), AKUNU_OK);
    ck_assert(!akunu_session_logits(s, 0) && akunu_session_logits(s, 1) &&
              !akunu_session_logits(s, 2) && !akunu_session_logits(s, 3));
    ck_assert_uint_eq(akunu_sequence_length(s, a), 3);
    ck_assert_uint_eq(akunu_sequence_length(s, b), 0);
    ck_assert_int_eq(akunu_session_decode(s, NULL, 1), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "the tokens are NULL");
    tokens[0].token = 416;
    ck_assert_int_eq(akunu_session_decode(s, tokens, 1), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "416");
    ck_assert_uint_eq(akunu_sequence_length(s, a), 3);

    ck_assert_int_eq(akunu_session_prefill(s, b, NULL, NULL, NULL, &last), AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(akunu_session_prefill(s, b, &(struct akunu_ids){ NULL, 1 }, NULL, NULL, &last),
                     AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(akunu_session_prefill(s, b, &(struct akunu_ids){ ids, 3 }, NULL, NULL, NULL),
                     AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "the prompt, or where the last token's index goes");
    ck_assert_uint_eq(akunu_sequence_length(s, b), 0);
    ck_assert_int_eq(akunu_session_prefill(s, b, &(struct akunu_ids){ ids, 3 }, NULL, NULL, &last),
                     AKUNU_OK);
    ck_assert(last == 2 && akunu_session_logits(s, 2));

    ck_assert_int_eq(akunu_sequence_rewind(s, a, 2), AKUNU_OK);
    ck_assert_uint_eq(akunu_sequence_length(s, a), 2);
    ck_assert_int_eq(akunu_sequence_rewind(s, a, 3), AKUNU_ERROR_ARGUMENT);
    akunu_sequence fork = akunu_sequence_fork(s, b, 1);
    ck_assert_int_ge(fork, 0);
    ck_assert_uint_eq(akunu_sequence_length(s, fork), 1);
    forget();
    ck_assert_int_eq(akunu_sequence_fork(s, b, 4), -1);
    ck_assert_int_eq(akunu_last_status(), AKUNU_ERROR_ARGUMENT);
    ck_assert_int_ge(akunu_sequence_new(s), 0);
    ck_assert_int_eq(akunu_sequence_new(s), -1); /* of four */
    failed_with(AKUNU_ERROR_ARGUMENT, "4 sequences");
    akunu_sequence_free(s, fork);
    ck_assert_int_eq(akunu_sequence_new(s), fork);
    akunu_sequence_free(s, -1);
    akunu_sequence_free(s, 4);
    forget();
    ck_assert_uint_eq(akunu_sequence_length(s, 4), 0);
    failed_with(AKUNU_ERROR_ARGUMENT, "sequence 4");
    akunu_session_free(s);
    ck_assert_ptr_nonnull(s = akunu_session_new(model, NULL)); /* of defaults */
    ck_assert_uint_eq(akunu_session_context(s), 256);
    ck_assert_int_eq(akunu_sequence_new(s), 0);
    ck_assert_int_eq(akunu_sequence_new(s), -1);
    akunu_model_free(model);
    akunu_session_free(s);
    test_check_unmapped();
}
END_TEST

/* Of no session. */
START_TEST(null_session)
{
    const akunu_token id = 5;
    const struct akunu_batch_token token = { 5, 0, true };
    const struct akunu_ids text = { &id, 1 };
    struct akunu_counters counters;
    struct akunu_time time;
    akunu_sequence sequence = 0;
    size_t n;
    float out[64];
    ck_assert_uint_eq(akunu_session_context(NULL), 0);
    ck_assert_uint_eq(akunu_session_batch(NULL), 0);
    ck_assert_uint_eq(akunu_session_threads(NULL), 0);
    forget();
    akunu_session_free(NULL);
    akunu_sequence_free(NULL, 0);
    failed_with(AKUNU_ERROR_FORMAT, "/nowhere"); /* these do not fail */
    ck_assert_uint_eq(akunu_sequence_length(NULL, 0), 0);
    ck_assert_int_eq(akunu_sequence_new(NULL), -1);
    failed_with(AKUNU_ERROR_ARGUMENT, "the session is NULL");
    ck_assert_int_eq(akunu_sequence_fork(NULL, 0, 0), -1);
    ck_assert_ptr_null(akunu_session_logits(NULL, 0));
    const enum akunu_status all[] = {
        akunu_sequence_rewind(NULL, 0, 0),
        akunu_session_decode(NULL, &token, 1),
        akunu_session_prefill(NULL, 0, &(struct akunu_ids){ &id, 1 }, NULL, NULL, &n),
        akunu_session_embed(NULL, &text, 1, NULL, out),
        akunu_session_generate(NULL, 0, &(struct akunu_ids){ &id, 1 }, NULL, NULL),
        akunu_session_generate_parallel(NULL, &sequence, 1, &(struct akunu_ids){ &id, 1 }, NULL,
                                        NULL),
        akunu_session_get_counters(NULL, &counters, sizeof counters),
        akunu_session_set_timing(NULL, true),
        akunu_session_get_time(NULL, 0, &time, sizeof time),
        akunu_sequence_save(NULL, 0, "/nowhere/x"),
        akunu_sequence_load(NULL, 0, "/nowhere/x"),
        akunu_sequence_restore(NULL, 0, &(struct akunu_ids){ &id, 1 }, NULL, &n),
        akunu_sequence_keep(NULL, 0, 1, NULL),
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        ck_assert_msg(all[i] == AKUNU_ERROR_ARGUMENT, "call %zu", i);
    struct akunu_session_params params = { .size = 8 };
    struct akunu_model *model = load("models/gemma.gguf");
    ck_assert_ptr_null(akunu_session_new(NULL, NULL));
    failed_with(AKUNU_ERROR_ARGUMENT, "the model is NULL");
    ck_assert_ptr_null(akunu_session_new(model, &params));
    failed_with(AKUNU_ERROR_ARGUMENT, "akunu_session_params");
    akunu_model_free(model);
}
END_TEST

START_TEST(counters_and_times)
{
    const akunu_token ids[20] = { 5, 6, 7 };
    struct akunu_counters c;
    struct akunu_time t, own;
    struct ak_backend_time inner;
    size_t last, n = 0, n_called = 0;
    struct akunu_model *model = load("models/mixed.gguf");
    struct akunu_session *s = open_session(model);
    akunu_sequence a = akunu_sequence_new(s);
    ck_assert_int_eq(akunu_session_get_counters(s, &c, sizeof c), AKUNU_OK);
    ck_assert(c.passes == 0 && c.tokens == 0 && c.gemv == 0 && c.skinny == 0 && c.gemm == 0);
    ck_assert_int_eq(akunu_session_prefill(s, a, &(struct akunu_ids){ ids, 20 }, NULL, NULL, &last),
                     AKUNU_OK);
    ck_assert_int_eq(akunu_session_get_counters(s, &c, sizeof c), AKUNU_OK);
    ck_assert(c.passes == 2 && c.tokens == 20); /* of 16 and 4 tokens */
    struct ak_backend_counts counts = { 0 };
    ak_session_counts(s->inner, &counts);
    ck_assert(c.gemv == counts.gemv && c.skinny == counts.skinny && c.gemm == counts.gemm);
    ck_assert_int_eq(akunu_session_get_counters(s, NULL, 0), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "akunu_counters");

    ck_assert_int_eq(akunu_session_set_timing(s, true), AKUNU_OK);
    ck_assert_int_eq(akunu_session_prefill(s, a, &(struct akunu_ids){ ids, 2 }, NULL, NULL, &last),
                     AKUNU_OK);
    for (; akunu_session_get_time(s, n, &t, sizeof t) == AKUNU_OK; n++) {
        ck_assert(ak_session_get_time(s->inner, n, &inner));
        own = (struct akunu_time){ .name = inner.name,
                                   .calls = inner.calls,
                                   .seconds = inner.seconds,
                                   .wait_seconds = inner.wait_seconds,
                                   .bytes = inner.bytes,
                                   .ops = inner.ops };
        ck_assert_mem_eq(&t, &own, sizeof t);
        n_called += t.calls > 0 && t.seconds > 0.0;
    }
    ck_assert_uint_gt(n_called, 5);
    failed_with(AKUNU_ERROR_ARGUMENT, "times have no row");
    ck_assert_int_eq(akunu_session_get_time(s, 0, NULL, 0), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "akunu_time");
    ck_assert_int_eq(akunu_session_set_timing(s, true), AKUNU_OK); /* from 0 */
    for (size_t i = 0; i < n; i++) {
        ck_assert_int_eq(akunu_session_get_time(s, i, &t, sizeof t), AKUNU_OK);
        ck_assert_uint_eq(t.calls, 0);
    }
    akunu_session_free(s);
    akunu_model_free(model);
}
END_TEST

START_TEST(embeddings)
{
    const akunu_token ids[] = { 5, 6, 7 };
    const struct akunu_ids texts[] = { { ids, 3 }, { ids, 2 } };
    struct akunu_embedding_params e;
    float out[2 * 64], first[64], mean[64];
    struct akunu_model *model = load("model.gguf");
    struct akunu_session *s = open_session(model);
    double sum = 0.0;
    ck_assert_int_eq(akunu_session_embed(s, texts, 2, NULL, out), AKUNU_OK);
    for (int i = 0; i < 64; i++)
        sum += (double)out[i] * (double)out[i];
    ck_assert(fabs(sum - 1.0) < 1e-5);
    akunu_embedding_params_default(&e, sizeof e);
    e.pooling = AKUNU_POOLING_CLS;
    ck_assert_int_eq(akunu_session_embed(s, texts, 1, &e, first), AKUNU_OK);
    e.pooling = AKUNU_POOLING_MEAN;
    e.normalize = AKUNU_NORMALIZE_NONE;
    ck_assert_int_eq(akunu_session_embed(s, texts, 1, &e, mean), AKUNU_OK);
    ck_assert(memcmp(first, out, sizeof first) != 0 && memcmp(mean, out, sizeof mean) != 0 &&
              memcmp(first, mean, sizeof mean) != 0);
    ck_assert_int_eq(akunu_session_embed(s, NULL, 0, NULL, NULL), AKUNU_OK);
    ck_assert_int_eq(akunu_session_embed(s, NULL, 1, NULL, out), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "the texts, or where the embeddings go");
    forget();
    ck_assert_int_eq(akunu_session_embed(s, texts, 1, NULL, NULL), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "the texts, or where the embeddings go");
    e.size = offsetof(struct akunu_embedding_params, normalize); /* an older program's */
    ck_assert_int_eq(akunu_session_embed(s, texts, 1, &e, mean), AKUNU_OK);
    sum = 0.0;
    for (int i = 0; i < 64; i++)
        sum += (double)mean[i] * (double)mean[i];
    ck_assert(fabs(sum - 1.0) < 1e-5);
    e.size = 8;
    ck_assert_int_eq(akunu_session_embed(s, texts, 1, &e, out), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "akunu_embedding_params");
    akunu_session_free(s);
    akunu_model_free(model);
}
END_TEST

/* ---- Saved sequences ---------------------------------------------------- */
START_TEST(saved)
{
    akunu_token ids[140];
    struct akunu_prompt_cache cache;
    char dir[] = "/tmp/akunu-test-XXXXXX", path[64];
    size_t n = 9, last;
    struct akunu_model *model = load("model.gguf");
    struct akunu_session *s = open_session(model);
    akunu_sequence a = akunu_sequence_new(s), b = akunu_sequence_new(s);
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/x", dir);
    for (int i = 0; i < 140; i++)
        ids[i] = 5 + i % 7;
    ck_assert_int_eq(
        akunu_session_prefill(s, a, &(struct akunu_ids){ ids, 140 }, NULL, NULL, &last), AKUNU_OK);
    ck_assert_int_eq(akunu_sequence_save(s, a, NULL), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "the path is NULL");
    forget();
    ck_assert_int_eq(akunu_sequence_load(s, b, NULL), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "the path is NULL");
    ck_assert_int_eq(akunu_sequence_load(s, b, path), AKUNU_ERROR_IO);
    ck_assert_msg(akunu_sequence_save(s, a, path) == AKUNU_OK, "%s", akunu_last_error());
    ck_assert_msg(akunu_sequence_load(s, b, path) == AKUNU_OK, "%s", akunu_last_error());
    ck_assert_uint_eq(akunu_sequence_length(s, b), 140);
    ck_assert_int_eq(remove(path), 0);

    /* prompts below min_tokens are not kept */
    akunu_prompt_cache_default(&cache, sizeof cache);
    cache.file = path;
    for (int older = 0; older < 2; older++) {
        cache.size = older ? offsetof(struct akunu_prompt_cache, max_bytes) : sizeof cache;
        ck_assert_int_eq(akunu_sequence_keep(s, a, 127, &cache), AKUNU_OK);
        ck_assert_int_ne(remove(path), 0);
    }
    cache.size = sizeof cache;
    ck_assert_int_eq(akunu_sequence_keep(s, a, 140, &cache), AKUNU_OK);
    ck_assert_int_eq(akunu_sequence_rewind(s, b, 0), AKUNU_OK);
    ck_assert_int_eq(akunu_sequence_restore(s, b, &(struct akunu_ids){ ids, 140 }, &cache, &n),
                     AKUNU_OK);
    ck_assert_msg(n == 139 && akunu_sequence_length(s, b) == 139, "%zu restored", n);
    ck_assert_int_eq(remove(path), 0);

    /* in a folder it is listed with its length */
    struct akunu_cache_entry e;
    cache.file = NULL;
    cache.dir = dir;
    ck_assert_int_eq(akunu_sequence_keep(s, a, 130, &cache), AKUNU_OK);
    struct akunu_cache *list = akunu_cache_open(dir);
    ck_assert_int_eq(akunu_cache_get_entry(list, 0, &e, sizeof e), AKUNU_OK);
    ck_assert_uint_eq(e.n_tokens, 130);
    ck_assert_int_eq(akunu_cache_remove(list, 0), AKUNU_OK);
    akunu_cache_free(list);
    ck_assert_int_eq(remove(dir), 0);
    cache.file = path;

    ck_assert_int_eq(akunu_sequence_rewind(s, b, 0), AKUNU_OK);
    ck_assert_int_eq(akunu_sequence_restore(s, b, &(struct akunu_ids){ ids, 2 }, &cache, NULL),
                     AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "where the number of restored tokens goes");
    forget();
    ck_assert_int_eq(akunu_sequence_restore(s, b, NULL, &cache, &n), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "where the number of restored tokens goes");
    forget();
    ck_assert_int_eq(akunu_sequence_restore(s, b, &(struct akunu_ids){ NULL, 2 }, &cache, &n),
                     AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "where the number of restored tokens goes");
    ck_assert_int_eq(akunu_sequence_restore(s, b, &(struct akunu_ids){ NULL, 0 }, &cache, &n),
                     AKUNU_OK);
    ck_assert_uint_eq(n, 0);
    cache.size = 8;
    ck_assert_int_eq(akunu_sequence_restore(s, b, &(struct akunu_ids){ ids, 2 }, &cache, &n),
                     AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "akunu_prompt_cache");
    forget();
    ck_assert_int_eq(akunu_sequence_keep(s, a, 2, &cache), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "akunu_prompt_cache");
    akunu_session_free(s);
    akunu_model_free(model);
}
END_TEST

/* ---- Generating --------------------------------------------------------- */
struct heard {
    size_t n, n_asked, stop_at, cancel_at;
    akunu_token tokens[64];
};

static bool on_piece(size_t index, akunu_token token, const char *text, size_t n_bytes, void *user)
{
    struct heard *h = (struct heard *)user + index;
    (void)text, (void)n_bytes;
    if (token >= 0)
        h->tokens[h->n++] = token;
    return h->n != h->stop_at;
}

static bool on_cancel(void *user)
{
    struct heard *h = user;
    return ++h->n_asked == h->cancel_at;
}

START_TEST(generating)
{
    const akunu_token ids[20] = { 5, 6, 7, 8 };
    struct akunu_generation_params g;
    struct akunu_sampling_params sampling;
    struct akunu_result r = { .size = sizeof r };
    struct akunu_model *model = load("model.gguf");
    struct akunu_session *s = open_session(model);
    akunu_sequence other = akunu_sequence_new(s), a = akunu_sequence_new(s);
    akunu_generation_params_default(&g, sizeof g);
    akunu_sampling_params_default(&sampling, sizeof sampling);
    sampling.temperature = 0.0f;
    sampling.ignore_end = true;
    g.sampling = &sampling;
    g.max_tokens = 5;

    /* the sampling and the limits are the caller's; the callbacks get `user` */
    struct heard greedy = { 0 }, again = { 0 }, stopped = { .stop_at = 2 };
    g.on_piece = on_piece;
    g.cancel = on_cancel;
    g.user = &greedy;
    ck_assert_int_eq(akunu_session_generate(s, a, &(struct akunu_ids){ ids, 20 }, &g, &r),
                     AKUNU_OK);
    ck_assert(greedy.n == 5 && greedy.n_asked >= 2 + 4 && r.stop == AKUNU_STOP_LENGTH &&
              r.n_prompt == 20 && r.n_generated == 5 && r.size == sizeof r);
    ck_assert_uint_eq(akunu_sequence_length(s, a), 24);
    ck_assert_uint_eq(akunu_sequence_length(s, other), 0);
    ck_assert_int_eq(akunu_sequence_rewind(s, a, 0), AKUNU_OK);
    g.cancel = NULL;
    g.user = &again;
    ck_assert_int_eq(akunu_session_generate(s, a, &(struct akunu_ids){ ids, 20 }, &g, NULL),
                     AKUNU_OK);
    ck_assert_mem_eq(again.tokens, greedy.tokens, sizeof greedy.tokens);
    ck_assert_int_eq(akunu_sequence_rewind(s, a, 0), AKUNU_OK);
    g.user = &stopped;
    ck_assert_int_eq(akunu_session_generate(s, a, &(struct akunu_ids){ ids, 20 }, &g, &r),
                     AKUNU_OK);
    ck_assert(stopped.n == 2 && r.stop == AKUNU_STOP_CALLBACK && r.n_generated == 2);

    /* a failure fills the result, too */
    struct heard cancelled = { .cancel_at = 1 };
    memset(&r, 0x5a, sizeof r);
    r.size = sizeof r;
    ck_assert_int_eq(akunu_sequence_rewind(s, a, 0), AKUNU_OK);
    g.cancel = on_cancel;
    g.user = &cancelled;
    ck_assert_int_eq(akunu_session_generate(s, a, &(struct akunu_ids){ ids, 20 }, &g, &r),
                     AKUNU_ERROR_CANCELLED);
    ck_assert(r.n_generated == 0 && r.size == sizeof r);
    memset(&r, 0x5a, sizeof r);
    r.size = sizeof r;
    g.cancel = NULL;
    ck_assert_int_eq(akunu_session_generate(s, a, &(struct akunu_ids){ NULL, 1 }, &g, &r),
                     AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "the prompt is NULL");
    ck_assert(r.n_generated == 0 && r.n_prompt == 0 && r.stop == AKUNU_STOP_CALLBACK);
    forget();
    ck_assert_int_eq(akunu_session_generate(s, a, NULL, &g, NULL), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "the prompt is NULL");

    /* sizes of the results, the generation and the sampling */
    for (r.size = 0; r.size <= 8; r.size += 4) {
        ck_assert_int_eq(akunu_session_generate(s, a, &(struct akunu_ids){ ids, 1 }, &g, &r),
                         AKUNU_ERROR_ARGUMENT);
        failed_with(AKUNU_ERROR_ARGUMENT, "struct akunu_result");
    }
    ck_assert_uint_eq(akunu_sequence_length(s, a), 0);
    sampling.size = 8;
    ck_assert_int_eq(akunu_session_generate(s, a, &(struct akunu_ids){ ids, 1 }, &g, NULL),
                     AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "akunu_sampling_params");
    g.size = 8;
    ck_assert_int_eq(akunu_session_generate(s, a, &(struct akunu_ids){ ids, 1 }, &g, NULL),
                     AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "akunu_generation_params");
    akunu_session_free(s);
    akunu_model_free(model);
}
END_TEST

/* A draft that is refused leaves both sessions free. */
START_TEST(drafts)
{
    const akunu_token id = 5;
    struct akunu_generation_params g;
    struct akunu_sampling_params sampling;
    struct akunu_model *model = load("model.gguf");
    struct akunu_session *s = open_session(model), *draft = open_session(model);
    akunu_sequence a = akunu_sequence_new(s), b = akunu_sequence_new(draft);
    akunu_generation_params_default(&g, sizeof g);
    akunu_sampling_params_default(&sampling, sizeof sampling);
    sampling.ignore_end = true;
    g.sampling = &sampling;
    g.speculation = AKUNU_SPECULATION_DRAFT;
    g.max_tokens = 64; /* after 32 passes the draft model is tried, however slow it is */
    g.draft = draft;
    g.draft_sequence = b + 1;
    ck_assert_int_eq(akunu_session_generate(s, a, &(struct akunu_ids){ &id, 1 }, &g, NULL),
                     AKUNU_ERROR_ARGUMENT);
    g.draft_sequence = b;
    ck_assert_msg(akunu_session_generate(s, a, &(struct akunu_ids){ &id, 1 }, &g, NULL) == AKUNU_OK,
                  "%s", akunu_last_error());
    ck_assert_uint_gt(akunu_sequence_length(draft, b), 0);
    g.draft = s;
    ck_assert_int_eq(akunu_session_generate(s, a, &(struct akunu_ids){ &id, 1 }, &g, NULL),
                     AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "the one that generates");
    akunu_generation_params_default(&g, sizeof g);
    g.cancel = on_cancel;
    g.user = &(struct heard){ .cancel_at = 1 };
    ck_assert_int_eq(akunu_session_generate(s, a, &(struct akunu_ids){ &id, 1 }, &g, NULL),
                     AKUNU_ERROR_CANCELLED);
    akunu_session_free(draft);
    akunu_session_free(s);
    akunu_model_free(model);
}
END_TEST

START_TEST(parallel)
{
    enum { N = 3 };
    const akunu_token ids[] = { 5, 6, 7 };
    struct akunu_generation_params g;
    struct akunu_sampling_params sampling;
    struct akunu_result r[N];
    struct heard heard[N] = { { 0 } };
    struct akunu_model *model = load("model.gguf");
    struct akunu_session *s = open_session(model);
    akunu_sequence sequences[N] = { akunu_sequence_new(s), 7, 7 };
    akunu_generation_params_default(&g, sizeof g);
    akunu_sampling_params_default(&sampling, sizeof sampling);
    sampling.ignore_end = true;
    sampling.seed = 3;
    g.sampling = &sampling;
    g.max_tokens = 4;
    memset(r, 0x5a, sizeof r);
    r[0].size = sizeof *r;
    g.on_piece = on_piece;
    g.cancel = on_cancel;
    g.user = heard;
    ck_assert_msg(akunu_session_generate_parallel(s, sequences, N, &(struct akunu_ids){ ids, 3 },
                                                  &g, r) == AKUNU_OK,
                  "%s", akunu_last_error());
    for (int i = 0; i < N; i++) {
        ck_assert(heard[i].n == 4 && r[i].n_generated == 4 && r[i].n_prompt == 3 &&
                  r[i].stop == AKUNU_STOP_LENGTH && r[i].size == sizeof *r);
        ck_assert_uint_eq(akunu_sequence_length(s, sequences[i]), 6);
    }
    ck_assert_uint_gt(heard[0].n_asked, 0);
    akunu_sequence_free(s, sequences[1]);
    akunu_sequence_free(s, sequences[2]);
    ck_assert_int_eq(akunu_sequence_rewind(s, sequences[0], 0), AKUNU_OK);

    /* a failure leaves no forks, and fills the results */
    sequences[1] = sequences[2] = 7;
    heard[0] = (struct heard){ .cancel_at = 1 };
    memset(r, 0x5a, sizeof r);
    r[0].size = sizeof *r;
    g.on_piece = NULL;
    ck_assert_int_eq(
        akunu_session_generate_parallel(s, sequences, N, &(struct akunu_ids){ ids, 3 }, &g, r),
        AKUNU_ERROR_CANCELLED);
    ck_assert(sequences[1] == -1 && sequences[2] == -1 && r[2].n_generated == 0 &&
              r[2].size == sizeof *r);
    g.cancel = NULL;
    sequences[1] = sequences[2] = 7;
    ck_assert_int_eq(
        akunu_session_generate_parallel(s, sequences, N, &(struct akunu_ids){ NULL, 3 }, &g, NULL),
        AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "the prompt is NULL");
    ck_assert(sequences[0] >= 0 && sequences[1] == -1 && sequences[2] == -1);
    r[0].size = 8;
    ck_assert_int_eq(
        akunu_session_generate_parallel(s, sequences, N, &(struct akunu_ids){ ids, 3 }, &g, r),
        AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "struct akunu_result");
    ck_assert_int_eq(
        akunu_session_generate_parallel(s, NULL, 2, &(struct akunu_ids){ ids, 3 }, &g, NULL),
        AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "no sequences are given");
    forget();
    ck_assert_int_eq(
        akunu_session_generate_parallel(s, sequences, 0, &(struct akunu_ids){ ids, 3 }, &g, NULL),
        AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "no sequences are given");
    akunu_session_free(s);
    akunu_model_free(model);
}
END_TEST

/* ---- Sampling ----------------------------------------------------------- */
START_TEST(samplers)
{
    enum { VOCAB = 416, THE = 263 };
    static float logits[VOCAB];
    struct akunu_sampling_params p;
    struct akunu_model *model = load("model.gguf");
    akunu_sampling_params_default(&p, sizeof p);
    p.seed = 99;
    p.temperature = 0.0f;
    p.repeat_penalty = 4.0f;
    struct akunu_sampler *s = akunu_sampler_new(model, &p);
    ck_assert_msg(s != NULL, "%s", akunu_last_error());
    ck_assert_uint_eq(akunu_sampler_seed(s), 99);
    ck_assert_uint_eq(akunu_sampler_seed(NULL), 0);
    logits[THE] = 3.0f, logits[7] = 2.0f;
    ck_assert_int_eq(akunu_sampler_sample(s, logits), THE);
    akunu_sampler_accept(s, THE); /* which is penalized from now on */
    akunu_sampler_accept(NULL, THE);
    ck_assert_int_eq(akunu_sampler_sample(s, logits), 7);
    ck_assert(logits[THE] == 3.0f && logits[7] == 2.0f);
    ck_assert_int_eq(akunu_sampler_sample(s, NULL), -1);
    failed_with(AKUNU_ERROR_ARGUMENT, "the sampler or the logits");
    forget();
    ck_assert_int_eq(akunu_sampler_sample(NULL, logits), -1);
    failed_with(AKUNU_ERROR_ARGUMENT, "the sampler or the logits");
    akunu_sampler_free(s);

    /* with a grammar, each sampled token is the next of the text */
    static const char gbnf[] = "root ::= \" the\" \"(\"";
    p.grammar = akunu_grammar_parse(gbnf, sizeof gbnf - 1);
    s = akunu_sampler_new(model, &p);
    ck_assert_msg(s != NULL, "%s", akunu_last_error());
    logits[THE] = 0.5f, logits[7] = 9.0f;
    akunu_token first = akunu_sampler_sample(s, logits);
    char text[8];
    int64_t n = akunu_tokenizer_decode(akunu_model_tokenizer(model), &first, 1, 0, text, 8);
    ck_assert_msg(n == 4 && memcmp(text, " the", 4) == 0, "%.*s", (int)n, text);
    ck_assert_int_eq(akunu_sampler_sample(s, logits), 7); /* "(" */
    akunu_sampler_free(s);
    akunu_grammar_free((struct akunu_grammar *)(uintptr_t)p.grammar);
    p.grammar = NULL;

    ck_assert_ptr_null(akunu_sampler_new(NULL, &p));
    failed_with(AKUNU_ERROR_ARGUMENT, "the model is NULL");
    p.top_p = NAN;
    ck_assert_int_eq(akunu_sampling_check(&p), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "top_p");
    forget();
    ck_assert_ptr_null(akunu_sampler_new(model, &p));
    failed_with(AKUNU_ERROR_ARGUMENT, "top_p");
    p.size = 8;
    ck_assert_ptr_null(akunu_sampler_new(model, &p));
    failed_with(AKUNU_ERROR_ARGUMENT, "akunu_sampling_params");
    forget();
    ck_assert_int_eq(akunu_sampling_check(&p), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "akunu_sampling_params");
    ck_assert_int_eq(akunu_sampling_check(NULL), AKUNU_OK);
    akunu_sampler_free(NULL);
    akunu_model_free(model);
}
END_TEST

START_TEST(logprobs)
{
    const float logits[] = { 0.0f, logf(2.0f), 0.0f, logf(4.0f) }; /* of eighths */
    struct akunu_logprob top[4] = { { 9, 9 }, { 9, 9 }, { 9, 9 }, { 9, 9 } };
    float logprob = 9.0f;
    ck_assert_int_eq(akunu_logprobs_compute(logits, 4, 3, &logprob, NULL, 0), AKUNU_OK);
    ck_assert(fabsf(logprob - logf(0.5f)) < 1e-6f);
    ck_assert_int_eq(akunu_logprobs_compute(logits, 4, 0, &logprob, top, 2), AKUNU_OK);
    ck_assert(fabsf(logprob - logf(0.125f)) < 1e-6f && top[0].token == 3 && top[1].token == 1 &&
              top[2].token == 9 && fabsf(top[1].logprob - logf(0.25f)) < 1e-6f);
    ck_assert_int_eq(akunu_logprobs_compute(logits, 4, 0, &logprob, top, 4), AKUNU_OK);
    ck_assert(top[2].token == 0 && top[3].token == 2);
    static const struct {
        size_t vocab;
        akunu_token token;
        size_t n_top;
    } refused[] = {
        { 4, 4, 0 }, { 4, -1, 0 }, { 4, 0, 5 }, { (size_t)INT32_MAX + 1, 0, 0 }, { 0, 0, 0 },
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        forget();
        ck_assert_int_eq(akunu_logprobs_compute(logits, refused[i].vocab, refused[i].token,
                                                &logprob, top, refused[i].n_top),
                         AKUNU_ERROR_ARGUMENT);
        failed_with(AKUNU_ERROR_ARGUMENT, "the vocabulary has");
    }
    for (int i = 0; i < 3; i++) {
        forget();
        ck_assert_int_eq(akunu_logprobs_compute(i == 0 ? NULL : logits, 4, 0,
                                                i == 1 ? NULL : &logprob, i == 2 ? NULL : top, 1),
                         AKUNU_ERROR_ARGUMENT);
        failed_with(AKUNU_ERROR_ARGUMENT, "where log-probabilities go");
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("core");
    TCase *t = tcase_create("core");
    suite_add_tcase(suite, t);
    tcase_add_test(t, sizes);
    tcase_add_test(t, defaults);
    tcase_add_test(t, sampling_numbers);
    tcase_add_test(t, models);
    tcase_add_test(t, memory);
    tcase_add_test(t, sessions);
    tcase_add_test(t, null_session);
    tcase_add_test(t, counters_and_times);
    tcase_add_test(t, embeddings);
    tcase_add_test(t, saved);
    tcase_add_test(t, generating);
    tcase_add_test(t, drafts);
    tcase_add_test(t, parallel);
    tcase_add_test(t, samplers);
    tcase_add_test(t, logprobs);
    return test_run(suite);
}
