/* Several continuations from one prompt: each is the text that is made alone with its seed. */
#include "tests/golden_model.h"

enum { COMPLETIONS = 4, REPORTED_MAX = 100, MODES = 4 };

struct reported {
    size_t n, stop_after; /* 0: never */
    akunu_token tokens[REPORTED_MAX];
};

static bool on_piece(size_t index, akunu_token token, const char *text, size_t n_bytes, void *user)
{
    struct reported *reported = (struct reported *)user + index;
    (void)text, (void)n_bytes;
    ck_assert_uint_lt(index, COMPLETIONS);
    ck_assert(token < 0 || reported->n < REPORTED_MAX);
    if (token >= 0)
        reported->tokens[reported->n++] = token;
    return reported->n != reported->stop_after;
}

static struct akunu_generation_params params_of(int mode, struct akunu_sampling_params *sampling)
{
    struct akunu_generation_params params;
    akunu_generation_params_default(&params, sizeof params);
    akunu_sampling_params_default(sampling, sizeof *sampling);
    params.sampling = sampling;
    params.max_tokens = 30;
    sampling->seed = 40;
    sampling->temperature = mode == 0 ? 0.0f : 0.9f;
    if (mode == 2)
        sampling->repeat_penalty = 1.2f;
    if (mode == 3) { /* the backend samples */
        sampling->top_k = 0;
        sampling->top_p = 1.0f;
        sampling->min_p = 0.0f;
    }
    return params;
}

static struct akunu_session *open_session(const struct akunu_model *model, uint32_t context)
{
    struct akunu_session_params params = golden_params(2, 64, AKUNU_KV_F16);
    params.context = context;
    params.max_sequences = COMPLETIONS;
    struct akunu_session *session = akunu_session_new(model, &params);
    ck_assert_msg(session != NULL, "%s", akunu_last_error());
    return session;
}

static void free_all(struct akunu_session *session, akunu_sequence sequences[COMPLETIONS])
{
    for (int i = 0; i < COMPLETIONS; i++)
        akunu_sequence_free(session, sequences[i]);
}

/* Greedy, and one of the other modes in turn. */
START_TEST(as_if_alone)
{
    const char *name = golden_at(_i)->name;
    struct golden_text text;
    golden_read_text(name, &text);
    struct akunu_model *model = golden_load(name, NULL);
    struct akunu_session *session = open_session(model, 256);
    for (int mode = 0; mode < MODES; mode++) {
        if (mode > 0 && !test_is_full() && mode != 1 + _i % (MODES - 1))
            continue;
        struct akunu_sampling_params sampling;
        struct akunu_generation_params params = params_of(mode, &sampling);
        struct reported completions[COMPLETIONS] = { { 0 } };
        struct akunu_result results[COMPLETIONS];
        akunu_sequence sequences[COMPLETIONS] = { akunu_sequence_new(session) };
        completions[2].stop_after = 5;
        for (int i = 0; i < COMPLETIONS; i++)
            results[i].size = sizeof results[i];
        params.on_piece = on_piece;
        params.user = completions;
        enum akunu_status status = akunu_session_generate_parallel(
            session, sequences, COMPLETIONS, &(struct akunu_ids){ text.ids, text.n_prompt },
            &params, results);
        ck_assert_msg(status == AKUNU_OK, "%s: %s", name, akunu_last_error());
        uint32_t lengths[COMPLETIONS];
        for (int i = 0; i < COMPLETIONS; i++)
            lengths[i] = akunu_sequence_length(session, sequences[i]);
        free_all(session, sequences);

        for (int i = 0; i < COMPLETIONS; i++) {
            struct reported alone = { .stop_after = completions[i].stop_after };
            struct akunu_result result = { .size = sizeof result };
            akunu_sequence sequence = akunu_sequence_new(session);
            sampling.seed = 40 + (uint64_t)i;
            params.on_piece = on_piece;
            params.user = &alone;
            ck_assert_int_eq(akunu_session_generate(session, sequence,
                                                    &(struct akunu_ids){ text.ids, text.n_prompt },
                                                    &params, &result),
                             AKUNU_OK);
            ck_assert_msg(alone.n == completions[i].n &&
                              memcmp(alone.tokens, completions[i].tokens,
                                     alone.n * sizeof *alone.tokens) == 0,
                          "%s, mode %d: completion %d is another text", name, mode, i);
            ck_assert_int_eq(results[i].stop, result.stop);
            ck_assert_uint_eq(results[i].n_prompt, result.n_prompt);
            ck_assert_uint_eq(results[i].n_generated, result.n_generated);
            ck_assert_uint_eq(lengths[i], akunu_sequence_length(session, sequence));
            akunu_sequence_free(session, sequence);
        }
    }
    akunu_session_free(session);
    akunu_model_free(model);
}
END_TEST

/* One completion is the text alone, also if it has a single token. */
START_TEST(one_completion)
{
    struct golden_text text;
    golden_read_text("qwen2", &text);
    struct akunu_model *model = golden_load("qwen2", NULL);
    struct akunu_session *session = open_session(model, 256);
    for (int mode = 0; mode < MODES; mode++)
        for (int64_t n = 1; n <= 11; n += 10) {
            struct akunu_sampling_params sampling;
            struct akunu_generation_params params = params_of(mode, &sampling);
            struct reported got = { 0 }, alone = { 0 };
            struct akunu_result result = { .size = sizeof result };
            akunu_sequence sequences[2] = { akunu_sequence_new(session),
                                            akunu_sequence_new(session) };
            params.max_tokens = n;
            sampling.ignore_end = true;
            params.on_piece = on_piece;
            params.user = &got;
            ck_assert_int_eq(akunu_session_generate_parallel(session, sequences, 1,
                                                             &(struct akunu_ids){ text.ids, 20 },
                                                             &params, &result),
                             AKUNU_OK);
            ck_assert_int_eq(result.stop, AKUNU_STOP_LENGTH);
            params.on_piece = on_piece;
            params.user = &alone;
            ck_assert_int_eq(akunu_session_generate(session, sequences[1],
                                                    &(struct akunu_ids){ text.ids, 20 }, &params,
                                                    NULL),
                             AKUNU_OK);
            ck_assert_uint_eq(got.n, (size_t)n);
            ck_assert_uint_eq(alone.n, (size_t)n);
            ck_assert_mem_eq(got.tokens, alone.tokens, got.n * sizeof *got.tokens);
            akunu_sequence_free(session, sequences[0]);
            akunu_sequence_free(session, sequences[1]);
        }
    akunu_session_free(session);
    akunu_model_free(model);
}
END_TEST

/* The prompt is run once, and a pass has a token of each. */
START_TEST(one_prefill)
{
    struct golden_text text;
    golden_read_text("qwen2", &text);
    struct akunu_model *model = golden_load("qwen2", NULL);
    struct akunu_session *session = open_session(model, 256);
    struct akunu_sampling_params sampling;
    struct akunu_generation_params params = params_of(1, &sampling);
    struct akunu_counters counters;
    struct reported completions[COMPLETIONS] = { { 0 } };
    akunu_sequence sequences[COMPLETIONS] = { akunu_sequence_new(session) };
    params.max_tokens = 10;
    sampling.ignore_end = true;
    params.on_piece = on_piece;
    params.user = completions;
    ck_assert_int_eq(akunu_session_generate_parallel(session, sequences, COMPLETIONS,
                                                     &(struct akunu_ids){ text.ids, text.n_prompt },
                                                     &params, NULL),
                     AKUNU_OK);
    ck_assert_int_eq(akunu_session_get_counters(session, &counters, sizeof counters), AKUNU_OK);
    ck_assert_uint_eq(counters.tokens, text.n_prompt + 9 * COMPLETIONS);
    ck_assert_uint_eq(counters.passes, (text.n_prompt + 63) / 64 + 9);
    akunu_session_free(session);
    akunu_model_free(model);
}
END_TEST

/* Each goes on while there is a page for it. */
START_TEST(full_context)
{
    struct golden_text text;
    golden_read_text("qwen2", &text);
    struct akunu_model *model = golden_load("qwen2", NULL);
    struct akunu_session *session = open_session(model, 70);
    struct akunu_sampling_params sampling;
    struct akunu_generation_params params = params_of(1, &sampling);
    struct reported completions[COMPLETIONS] = { { 0 } };
    struct akunu_result results[COMPLETIONS];
    akunu_sequence sequences[COMPLETIONS] = { akunu_sequence_new(session) };
    params.max_tokens = -1;
    sampling.ignore_end = true;
    for (int i = 0; i < COMPLETIONS; i++)
        results[i].size = sizeof results[i];
    params.on_piece = on_piece;
    params.user = completions;
    enum akunu_status status = akunu_session_generate_parallel(
        session, sequences, COMPLETIONS, &(struct akunu_ids){ text.ids, 40 }, &params, results);
    ck_assert_msg(status == AKUNU_OK, "%s", akunu_last_error());
    for (int i = 0; i < COMPLETIONS; i++) {
        ck_assert_int_eq(results[i].stop, AKUNU_STOP_CONTEXT);
        ck_assert_uint_le(akunu_sequence_length(session, sequences[i]), 70);
    }
    free_all(session, sequences);
    akunu_session_free(session);
    akunu_model_free(model);
}
END_TEST

/* Penalties see the text that the sequence had before: every even token stood in it, so
 * none is sampled. */
START_TEST(earlier_text_counts)
{
    struct akunu_model *model = golden_load("qwen2", NULL);
    struct akunu_session *session = open_session(model, 512);
    struct akunu_sampling_params sampling;
    struct akunu_generation_params params = params_of(0, &sampling);
    struct reported completions[COMPLETIONS] = { { 0 } };
    akunu_sequence sequences[2] = { akunu_sequence_new(session) };
    akunu_token even[GOLDEN_VOCAB / 2], prompt = 1;
    size_t last, n = 0;
    for (akunu_token id = 0;
         id < (akunu_token)akunu_tokenizer_vocab_size(akunu_model_tokenizer(model)) &&
         n < GOLDEN_VOCAB / 2;
         id += 2)
        even[n++] = id;
    ck_assert_int_eq(akunu_session_prefill(session, sequences[0], &(struct akunu_ids){ even, n },
                                           NULL, NULL, &last),
                     AKUNU_OK);
    params.max_tokens = 12;
    sampling.ignore_end = true;
    sampling.presence_penalty = 1000.0f;
    sampling.repeat_last_n = -1;
    params.on_piece = on_piece;
    params.user = completions;
    enum akunu_status status = akunu_session_generate_parallel(
        session, sequences, 2, &(struct akunu_ids){ &prompt, 1 }, &params, NULL);
    ck_assert_msg(status == AKUNU_OK, "%s", akunu_last_error());
    for (int i = 0; i < 2; i++) {
        ck_assert_uint_eq(completions[i].n, 12);
        for (size_t k = 0; k < completions[i].n; k++)
            ck_assert_int_eq(completions[i].tokens[k] % 2, 1);
    }
    akunu_session_free(session);
    akunu_model_free(model);
}
END_TEST

struct text_reported {
    size_t n;
    char bytes[1024];
};

static bool on_text(size_t index, akunu_token token, const char *text, size_t n_bytes, void *user)
{
    struct text_reported *reported = user;
    (void)index, (void)token;
    ck_assert_uint_lt(reported->n + n_bytes, sizeof reported->bytes);
    memcpy(reported->bytes + reported->n, text, n_bytes);
    reported->n += n_bytes;
    return true;
}

/* What may begin a stop sequence is held back, and reported when the text ends before it is one. */
START_TEST(held_text_is_told)
{
    struct akunu_model *model = golden_load("qwen2", NULL);
    struct akunu_session *session = open_session(model, 256);
    struct akunu_sampling_params sampling;
    struct akunu_generation_params params = params_of(0, &sampling);
    struct text_reported whole = { 0 }, withheld = { 0 };
    struct golden_text text;
    char stop[4] = "";
    const char *stops[1] = { stop };
    golden_read_text("qwen2", &text);
    sampling.ignore_end = true;
    for (int round = 0; round < 2; round++) {
        struct akunu_result result = { .size = sizeof result };
        akunu_sequence sequence = akunu_sequence_new(session);
        params.stops = stops;
        params.n_stops = (size_t)round;
        params.on_piece = on_text;
        params.user = round ? &withheld : &whole;
        ck_assert_int_eq(akunu_session_generate(session, sequence,
                                                &(struct akunu_ids){ text.ids, text.n_prompt },
                                                &params, &result),
                         AKUNU_OK);
        ck_assert_int_eq(result.stop, AKUNU_STOP_LENGTH);
        ck_assert_uint_ge(whole.n, 2);
        memcpy(stop, whole.bytes + whole.n - 2, 2);
        stop[2] = '\1';
        akunu_sequence_free(session, sequence);
    }
    ck_assert_uint_eq(withheld.n, whole.n);
    ck_assert_mem_eq(withheld.bytes, whole.bytes, whole.n);
    akunu_session_free(session);
    akunu_model_free(model);
}
END_TEST

static bool at_once(void *user)
{
    const struct reported *completions = user;
    return completions[0].n > 3;
}

static void check_refused(struct akunu_session *session, akunu_sequence first, size_t n,
                          const akunu_token *ids, size_t n_ids, enum akunu_status expected,
                          const char *said)
{
    akunu_sequence sequences[100] = { first };
    struct akunu_sampling_params sampling;
    struct akunu_generation_params params = params_of(1, &sampling);
    struct reported completions[COMPLETIONS] = { { 0 } };
    params.on_piece = NULL;
    params.cancel = at_once;
    params.user = completions;
    enum akunu_status status = akunu_session_generate_parallel(
        session, sequences, n, &(struct akunu_ids){ ids, n_ids }, &params, NULL);
    ck_assert_msg(status == expected, "%d: %s", (int)status, akunu_last_error());
    ck_assert_msg(strstr(akunu_last_error(), said) != NULL, "'%s' lacks '%s'", akunu_last_error(),
                  said);
    for (size_t i = 1; i < n; i++)
        ck_assert_int_eq(sequences[i], -1);
}

START_TEST(refused)
{
    struct golden_text text;
    golden_read_text("qwen2", &text);
    struct akunu_model *model = golden_load("qwen2", NULL);
    struct akunu_session *session = open_session(model, 256);
    akunu_sequence sequence = akunu_sequence_new(session);
    check_refused(session, sequence, 0, text.ids, 20, AKUNU_ERROR_ARGUMENT,
                  "no sequences are given");
    check_refused(session, sequence, 65, text.ids, 20, AKUNU_ERROR_ARGUMENT,
                  "65 completions were asked for");
    check_refused(session, sequence, COMPLETIONS + 1, text.ids, 20, AKUNU_ERROR_ARGUMENT,
                  "max_sequences");
    ck_assert_int_eq(akunu_sequence_rewind(session, sequence, 0), AKUNU_OK);
    check_refused(session, sequence, 2, NULL, 20, AKUNU_ERROR_ARGUMENT, "the prompt is NULL");
    check_refused(session, sequence, 2, text.ids, 0, AKUNU_ERROR_ARGUMENT,
                  "the prompt has no tokens");
    check_refused(session, 3, 2, text.ids, 20, AKUNU_ERROR_ARGUMENT, "there is no sequence 3");
    ck_assert_int_eq(akunu_sequence_length(session, sequence), 0);

    akunu_sequence sequences[COMPLETIONS] = { sequence };
    struct akunu_sampling_params sampling;
    struct akunu_generation_params params = params_of(1, &sampling);
    struct reported completions[COMPLETIONS] = { { 0 } };
    params.on_piece = on_piece;
    params.cancel = at_once;
    params.user = completions;
    ck_assert_int_eq(akunu_session_generate_parallel(session, sequences, COMPLETIONS,
                                                     &(struct akunu_ids){ text.ids, 20 }, &params,
                                                     NULL),
                     AKUNU_ERROR_CANCELLED);
    ck_assert_uint_eq(completions[0].n, 4);
    ck_assert_int_eq(sequences[1], -1); /* what was made is free again */
    for (int i = 1; i < COMPLETIONS; i++)
        ck_assert_int_ge(akunu_sequence_new(session), 0);
    akunu_session_free(session);
    akunu_model_free(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("completions");
    TCase *tests = tcase_create("completions");
    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(tests, as_if_alone, 0, golden_count());
    tcase_add_test(tests, one_completion);
    tcase_add_test(tests, one_prefill);
    tcase_add_test(tests, full_context);
    tcase_add_test(tests, earlier_text_counts);
    tcase_add_test(tests, held_text_is_told);
    tcase_add_test(tests, refused);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
