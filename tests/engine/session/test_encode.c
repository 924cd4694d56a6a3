/* Encoder and cross-attention of a speech model, compared with openai-whisper's: output of the
 * encoder, logits of the decoder; several windows in one pass, texts that share a window, and what
 * is refused. Case `any` is for backends of any arithmetic; tests/opencl/test_devices.sh has it run
 * on a device. */
#include "tests/golden_model.h"
#include <unistd.h>

enum { MELS = 4, CONTEXT = 40, SHORT = 23, STATE = 32, VOCAB = 48, N_IDS = 9, TEXTS = 4 };

static const double nmse_max = 1e-11;          /* two float32 engines differ by about 1e-12 */
static const double quantized_nmse_max = 2e-3; /* measured: 3e-4 */

struct stages {
    float mel[2 * CONTEXT * MELS], encoded[CONTEXT * STATE], logits[N_IDS * VOCAB];
    float encoded_short[SHORT * STATE], logits_short[N_IDS * VOCAB];
    akunu_token ids[N_IDS];
};

static void read_rows(FILE *f, const char *name, int rows, int cols, float *out)
{
    char found[32];
    int n_rows, n_cols;
    ck_assert_int_eq(fscanf(f, "%31s %d %d", found, &n_rows, &n_cols), 3);
    ck_assert_str_eq(found, name);
    ck_assert(n_rows == rows && n_cols == cols);
    for (int i = 0; i < rows * cols; i++)
        ck_assert_int_eq(fscanf(f, "%f", &out[i]), 1);
}

static const char *speech_path(const char *file, char path[4096])
{
    const char *data = getenv("AK_TEST_DATA");
    ck_assert_ptr_nonnull(data);
    snprintf(path, 4096, "%s/speech/%s", data, file);
    return path;
}

static struct stages *read_stages(void)
{
    struct stages *s = malloc(sizeof *s);
    float ids[N_IDS];
    char path[4096];
    FILE *f = fopen(speech_path("stages.txt", path), "r");
    ck_assert(s && f);
    read_rows(f, "mel", 2 * CONTEXT, MELS, s->mel);
    read_rows(f, "encoded", CONTEXT, STATE, s->encoded);
    read_rows(f, "ids", 1, N_IDS, ids);
    read_rows(f, "logits", N_IDS, VOCAB, s->logits);
    read_rows(f, "encoded_short", SHORT, STATE, s->encoded_short);
    read_rows(f, "logits_short", N_IDS, VOCAB, s->logits_short);
    for (int i = 0; i < N_IDS; i++)
        s->ids[i] = (akunu_token)ids[i];
    fclose(f);
    return s;
}

static void check_says(const char *part)
{
    ck_assert_msg(strstr(akunu_last_error(), part) != NULL, "%s", akunu_last_error());
}

struct fixture {
    struct stages *stages;
    struct akunu_model *model;
    struct akunu_session *session;
};

static struct fixture open_file(const char *path, uint32_t max_windows, unsigned n_threads)
{
    struct akunu_load_params load;
    struct akunu_session_params params;
    akunu_load_params_default(&load, sizeof load);
    akunu_session_params_default(&params, sizeof params);
    load.no_cache = true;
    load.n_threads = params.n_threads = n_threads;
    params.max_windows = max_windows;
    params.max_sequences = TEXTS;
    struct fixture f = { .stages = read_stages() };
    f.model = akunu_model_load(path, &load);
    ck_assert_msg(f.model != NULL, "%s", akunu_last_error());
    f.session = akunu_session_new(f.model, &params);
    ck_assert_msg(f.session != NULL, "%s", akunu_last_error());
    return f;
}

static struct fixture open_fixture(uint32_t max_windows, unsigned n_threads)
{
    char path[4096];
    return open_file(speech_path("model.bin", path), max_windows, n_threads);
}

static void close_fixture(struct fixture *f)
{
    akunu_session_free(f->session);
    akunu_model_free(f->model);
    free(f->stages);
}

/* A text that attends to `window`. */
static akunu_sequence open_text(struct fixture *f, akunu_sequence window)
{
    akunu_sequence text = akunu_sequence_new(f->session);
    ck_assert_msg(akunu_sequence_attend(f->session, text, window) == AKUNU_OK, "%s",
                  akunu_last_error());
    return text;
}

/* Runs ids [first, first + n) of a text and copies their logits. */
static void run(struct fixture *f, akunu_sequence text, size_t first, size_t n, float *logits)
{
    struct akunu_batch_token tokens[N_IDS];
    for (size_t i = 0; i < n; i++)
        tokens[i] = (struct akunu_batch_token){ .token = f->stages->ids[first + i],
                                                .sequence = text,
                                                .logits = true };
    ck_assert_msg(akunu_session_decode(f->session, tokens, n) == AKUNU_OK, "%s",
                  akunu_last_error());
    for (size_t i = 0; i < n; i++)
        memcpy(logits + (first + i) * VOCAB, akunu_session_logits(f->session, i),
               VOCAB * sizeof *logits);
}

START_TEST(stages)
{
    struct fixture f = open_fixture(0, (unsigned)_i + 1);
    float *encoded = malloc(CONTEXT * STATE * sizeof *encoded), logits[N_IDS * VOCAB],
          again[N_IDS * VOCAB];
    akunu_sequence window = akunu_sequence_new(f.session);
    ck_assert_msg(akunu_session_encode(f.session, window, f.stages->mel, 0, encoded) == AKUNU_OK,
                  "%s", akunu_last_error());
    ck_assert_double_lt(golden_nmse(encoded, f.stages->encoded, CONTEXT * STATE), nmse_max);
    akunu_sequence text = open_text(&f, window);
    run(&f, text, 0, N_IDS, logits);
    ck_assert_double_lt(golden_nmse(logits, f.stages->logits, N_IDS * VOCAB), nmse_max);

    /* token by token: the same bits */
    text = open_text(&f, window);
    for (size_t i = 0; i < N_IDS; i++)
        run(&f, text, i, 1, again);
    ck_assert_mem_eq(logits, again, sizeof logits);
    free(encoded);
    close_fixture(&f);
}
END_TEST

/* The first positions alone, before and after a whole window: no frame of that is left. */
START_TEST(short_window)
{
    struct fixture f = open_fixture(2, (unsigned)_i + 1);
    float encoded[SHORT * STATE], logits[N_IDS * VOCAB];
    akunu_sequence window = akunu_sequence_new(f.session), whole = akunu_sequence_new(f.session);
    for (int i = 0; i < 2; i++) {
        ck_assert_msg(akunu_session_encode(f.session, window, f.stages->mel, SHORT, encoded) ==
                          AKUNU_OK,
                      "%s", akunu_last_error());
        ck_assert_double_lt(golden_nmse(encoded, f.stages->encoded_short, SHORT * STATE), nmse_max);
        akunu_sequence text = open_text(&f, window);
        run(&f, text, 0, N_IDS, logits);
        ck_assert_double_lt(golden_nmse(logits, f.stages->logits_short, N_IDS * VOCAB), nmse_max);
        ck_assert_int_eq(akunu_sequence_attend(f.session, whole, text), AKUNU_ERROR_ARGUMENT);
        check_says("no encoded window");
        akunu_sequence_free(f.session, text);
        akunu_sequence_free(f.session, window);
        window = akunu_sequence_new(f.session);
        if (i == 0)
            ck_assert_int_eq(akunu_session_encode(f.session, whole, f.stages->mel, CONTEXT, NULL),
                             AKUNU_OK);
    }
    ck_assert_int_eq(akunu_session_encode(f.session, window, f.stages->mel, CONTEXT + 1, NULL),
                     AKUNU_ERROR_ARGUMENT);
    check_says("41 positions; the encoder of this model has 40");
    close_fixture(&f);
}
END_TEST

/* Whatever the backend: in one pass, in passes of a few tokens and of one, which it may replay. */
START_TEST(passes)
{
    struct fixture f = open_fixture(0, 1);
    float *encoded = malloc(CONTEXT * STATE * sizeof *encoded), logits[N_IDS * VOCAB];
    akunu_sequence window = akunu_sequence_new(f.session);
    ck_assert_msg(akunu_session_encode(f.session, window, f.stages->mel, 0, encoded) == AKUNU_OK,
                  "%s", akunu_last_error());
    ck_assert_double_lt(golden_nmse(encoded, f.stages->encoded, CONTEXT * STATE), nmse_max);
    for (size_t n = 1; n <= N_IDS; n += 4) {
        akunu_sequence text = open_text(&f, window);
        for (size_t i = 0; i < N_IDS; i += n)
            run(&f, text, i, n < N_IDS - i ? n : N_IDS - i, logits);
        ck_assert_double_lt(golden_nmse(logits, f.stages->logits, N_IDS * VOCAB), nmse_max);
        akunu_sequence_free(f.session, text);
    }
    free(encoded);
    close_fixture(&f);
}
END_TEST

/* Output of the encoder and logits of the file at `path`. */
static void run_file(const char *path, float encoded[CONTEXT * STATE], float logits[N_IDS * VOCAB])
{
    struct fixture f = open_file(path, 0, 2);
    akunu_sequence window = akunu_sequence_new(f.session);
    ck_assert_int_eq(akunu_session_encode(f.session, window, f.stages->mel, 0, encoded), AKUNU_OK);
    run(&f, open_text(&f, window), 0, N_IDS, logits);
    close_fixture(&f);
}

/* The same of the file at `path` and of what conversion to `type` makes of it. */
static void run_converted(const char *path, const char *type, float encoded[2][CONTEXT * STATE],
                          float logits[2][N_IDS * VOCAB])
{
    char to[] = "/tmp/akunu-encode-XXXXXX";
    struct akunu_convert_params params;
    akunu_convert_params_default(&params, sizeof params);
    params.no_vocab = true;
    params.overwrite = true;
    params.type = type;
    ck_assert_int_eq(close(mkstemp(to)), 0);
    ck_assert_msg(akunu_convert(path, to, &params) == AKUNU_OK, "%s", akunu_last_error());
    run_file(path, encoded[0], logits[0]);
    run_file(to, encoded[1], logits[1]);
    unlink(to);
}

/* The model as a GGUF file of the same types: the same bits. */
START_TEST(converted)
{
    static const char *const files[] = { "model.bin", "quantized.bin" };
    float encoded[2][CONTEXT * STATE], logits[2][N_IDS * VOCAB];
    char path[4096];
    run_converted(speech_path(files[_i], path), NULL, encoded, logits);
    ck_assert_mem_eq(encoded[0], encoded[1], sizeof encoded[0]);
    ck_assert_mem_eq(logits[0], logits[1], sizeof logits[0]);
}
END_TEST

/* Matrices of five types in a GGML file, against the same values as floats: what is left is the
 * rounding of activations to 8 bits. */
START_TEST(quantized)
{
    float encoded[2][CONTEXT * STATE], logits[2][N_IDS * VOCAB];
    char path[4096];
    run_converted(speech_path("quantized.bin", path), "F32", encoded, logits);
    ck_assert_double_lt(golden_nmse(encoded[0], encoded[1], CONTEXT * STATE), quantized_nmse_max);
    ck_assert_double_lt(golden_nmse(logits[0], logits[1], N_IDS * VOCAB), quantized_nmse_max);
}
END_TEST

/* Forks attend to what their origin attends to, and texts of one pass share the reading of it. */
START_TEST(texts_of_one_window)
{
    struct fixture f = open_fixture(0, 2);
    float logits[N_IDS * VOCAB];
    struct akunu_batch_token tokens[2];
    akunu_sequence window = akunu_sequence_new(f.session), texts[2];
    ck_assert_int_eq(akunu_session_encode(f.session, window, f.stages->mel, 0, NULL), AKUNU_OK);
    texts[0] = open_text(&f, window);
    run(&f, texts[0], 0, 4, logits);
    texts[1] = akunu_sequence_fork(f.session, texts[0], 4);
    for (int i = 0; i < 2; i++)
        tokens[i] = (struct akunu_batch_token){ .token = f.stages->ids[i == 0 ? 4 : 7],
                                                .sequence = texts[i],
                                                .logits = true };
    ck_assert_int_eq(akunu_session_decode(f.session, tokens, 2), AKUNU_OK);
    const float *first = akunu_session_logits(f.session, 0),
                *second = akunu_session_logits(f.session, 1);
    ck_assert_double_lt(golden_nmse(first, f.stages->logits + 4 * VOCAB, VOCAB), nmse_max);
    ck_assert_double_gt(golden_nmse(second, f.stages->logits + 4 * VOCAB, VOCAB),
                        1e-3); /* another token */

    /* encoder and decoder share their activations: its logits are gone */
    akunu_sequence_free(f.session, window);
    window = akunu_sequence_new(f.session);
    ck_assert_int_eq(akunu_session_encode(f.session, window, f.stages->mel, 0, NULL), AKUNU_OK);
    ck_assert_ptr_null(akunu_session_logits(f.session, 0));
    close_fixture(&f);
}
END_TEST

START_TEST(refused)
{
    struct fixture f = open_fixture(0, 1);
    struct akunu_batch_token token = { .token = 1, .logits = true };
    akunu_sequence window = akunu_sequence_new(f.session), text = akunu_sequence_new(f.session);
    token.sequence = text;
    ck_assert_int_eq(akunu_session_decode(f.session, &token, 1), AKUNU_ERROR_ARGUMENT);
    check_says("attends to no window");
    ck_assert_int_eq(akunu_sequence_attend(f.session, text, window), AKUNU_ERROR_ARGUMENT);
    check_says("no encoded window");
    ck_assert_int_eq(akunu_session_encode(f.session, window, NULL, 0, NULL), AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(akunu_session_encode(f.session, window, f.stages->mel, 0, NULL), AKUNU_OK);
    ck_assert_int_eq(akunu_session_encode(f.session, window, f.stages->mel, 0, NULL),
                     AKUNU_ERROR_ARGUMENT);
    check_says("needs an empty one");
    ck_assert_int_eq(akunu_sequence_attend(f.session, text, window), AKUNU_OK);
    ck_assert_int_eq(akunu_session_decode(f.session, &token, 1), AKUNU_OK);
    akunu_sequence_free(f.session, window);
    ck_assert_int_eq(akunu_session_decode(f.session, &token, 1), AKUNU_ERROR_ARGUMENT);
    check_says("attends to no window");
    ck_assert_int_eq(akunu_session_complete(f.session, -1, "a", 1, NULL, NULL),
                     AKUNU_ERROR_UNSUPPORTED);
    close_fixture(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("encode");
    TCase *any = tcase_create("any"), *tests = tcase_create("speech");
    tcase_set_timeout(any, 600); /* a device's compiler */
    tcase_add_test(any, passes);
    tcase_add_test(any, quantized);
    tcase_add_test(any, texts_of_one_window);
    tcase_add_test(any, refused);
    suite_add_tcase(suite, any);
    tcase_add_loop_test(tests, stages, 0, 3);
    tcase_add_loop_test(tests, short_window, 0, 2);
    tcase_add_loop_test(tests, converted, 0, 2);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
