/* Calibration: what is measured at the first load of a model is kept, read by later loads, made
 * again if damaged, and never changes a bit. Without a cache each load measures, and keeps none. */
#include "tests/load.h"

#include "tests/test.h"
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/session/calibration.h"
#include "engine/session/session.h"
#include "tests/process.h"

enum { PATH_BYTES = 4096, LOGITS = 1000, LOADS_MAX = 5 };

/* False: the model is missing. */
static bool find_model(char path[PATH_BYTES])
{
    const char *models = getenv("AK_TEST_MODELS"), *required = getenv("AKUNU_REQUIRE_MODEL");
    snprintf(path, PATH_BYTES, "%s/SmolLM2-135M-Instruct.Q4_1.gguf", models ? models : "");
    bool found = access(path, R_OK) == 0;
    ck_assert_msg(found || !required || strcmp(required, "1") != 0, "%s is missing", path);
    return found;
}

/* The only chip-*.yaml in the folder; false: none. */
static bool find_profile(const char *folder, char path[PATH_BYTES])
{
    DIR *dir = opendir(folder);
    int n = 0;
    ck_assert_ptr_nonnull(dir);
    for (const struct dirent *e; (e = readdir(dir)) != NULL;)
        if (strncmp(e->d_name, "chip-", 5) == 0) {
            snprintf(path, PATH_BYTES, "%s/%s", folder, e->d_name);
            n++;
        }
    closedir(dir);
    ck_assert_int_le(n, 1);
    return n == 1;
}

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    ck_assert_int_eq(fclose(f), 0);
}

/* Loads the model, and copies some logits of a token, and the chip profile that it used. `cache`
 * NULL: no cache. */
static void load(const char *path, const char *cache, float logits[LOGITS],
                 struct ak_backend_profile *profile)
{
    struct akunu_load_params params;
    struct akunu_session_params session_params;
    struct ak_model *model = NULL;
    struct ak_session *session = NULL;
    struct ak_error error = { 0 };
    const int32_t ids[] = { 504, 5, 7, 9 };
    size_t last;
    akunu_load_params_default(&params, sizeof params);
    params.cache_dir = cache;
    params.no_cache = !cache;
    params.n_threads = 2;
    ck_assert_msg(load_from(path, &params, &model, &error) == AKUNU_OK, "%s", error.message);
    *profile = model->profile;
    akunu_session_params_default(&session_params, sizeof session_params);
    session_params.context = 64;
    ck_assert_int_eq(ak_session_create(model, &session_params, &session, &error), AKUNU_OK);
    int32_t sequence;
    ck_assert_int_eq(ak_session_sequence_new(session, &sequence, &error), AKUNU_OK);
    ck_assert_int_eq(ak_session_prefill(session, sequence, ids, 4, NULL, NULL, &last, &error),
                     AKUNU_OK);
    memcpy(logits, ak_session_logits(session, last), LOGITS * sizeof *logits);
    ak_session_free(session);
    ak_model_free(model);
}

/* Whether nothing is left to measure. A machine that does not get to it within the time for
 * calibration measures the rest at its next load. */
static bool is_complete(const struct ak_backend_profile *profile)
{
    const uint32_t *prefetch = profile->prefetch[AK_QUANT_Q4_1];
    return prefetch[0] && prefetch[1] && profile->token_price &&
           profile->skinny_max[AK_BACKEND_PROFILE_SCALE32];
}

START_TEST(measured_once)
{
    static float first[LOGITS], again[LOGITS];
    struct ak_backend_profile measured, used;
    char model[PATH_BYTES], cache[] = "/tmp/akunu-test-XXXXXX", path[PATH_BYTES], command[64];
    struct stat before, after;
    if (!find_model(model))
        return;
    ck_assert_ptr_nonnull(mkdtemp(cache));
    load(model, cache, first, &measured);
    for (int i = 1; i < LOADS_MAX && !is_complete(&measured); i++)
        load(model, cache, first, &measured);
    /* no file: not one measurement was completed in time */
    if (find_profile(cache, path)) {
        ck_assert_int_eq(stat(path, &before), 0);
        load(model, cache, again, &used);
        ck_assert_int_eq(stat(path, &after), 0);
        if (is_complete(&measured)) {
            ck_assert_mem_eq(&measured, &used, sizeof used);
            ck_assert(before.st_ino == after.st_ino);
        }
        ck_assert_mem_eq(first, again, sizeof first);

        write_text(path, "prefetch:\n  Q4_1: [64, 1048576]\nscale32: {small_n: 1}\n");
        load(model, cache, again, &used);
        ck_assert_uint_eq(used.prefetch[AK_QUANT_Q4_1][0], 64);
        ck_assert_uint_eq(used.prefetch[AK_QUANT_Q4_1][1], 1048576);
        ck_assert_mem_eq(first, again, sizeof first);

        write_text(path, "prefetch: [\xff");
        load(model, cache, again, &used);
        ck_assert_mem_eq(first, again, sizeof first);

        /* other programs may take the time of one load */
        used.prefetch[AK_QUANT_Q4_1][0] = 0;
        for (int i = 0; i < LOADS_MAX && !used.prefetch[AK_QUANT_Q4_1][0]; i++)
            load(model, NULL, again, &used);
        ck_assert(!is_complete(&measured) || used.prefetch[AK_QUANT_Q4_1][0]);
        ck_assert_mem_eq(first, again, sizeof first);
    }
    snprintf(command, sizeof command, "rm -rf %s", cache);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

/* ---- The file ----------------------------------------------------------- */
/* A backend that measures one number, and says what it got. */
static struct ak_backend_profile seen, seen_of_user;
static unsigned n_measured;
static bool fails;

static ak_status calibrate(struct ak_backend *b, const struct ak_weights *weights,
                           struct ak_pool *pool, const struct ak_backend_profile *user,
                           struct ak_backend_profile *measured, struct ak_error *error)
{
    (void)b, (void)weights, (void)pool;
    seen = *measured;
    seen_of_user = *user;
    if (fails)
        return ak_fail(error, AKUNU_ERROR_SYSTEM, "no clock");
    n_measured += !measured->token_price;
    measured->token_price = measured->token_price ? measured->token_price : 150;
    return AKUNU_OK;
}

static const char *describe(const struct ak_backend *b)
{
    (void)b;
    return "fake";
}

static char said[1024]; /* the last line of the log */
static int n_warnings;

static void on_log(enum akunu_log_level level, const char *line, void *user)
{
    (void)user;
    n_warnings += level == AKUNU_LOG_WARN;
    snprintf(said, sizeof said, "%s", line);
}

static const struct ak_log log_all = { on_log, NULL };

/* Calibrates with `threads` threads, and profile->prefill_chunk and token_price of the user. */
static struct ak_backend_profile measure(const char *cache, unsigned threads, uint32_t token_price)
{
    static const struct ak_backend_ops ops = { .describe = describe, .calibrate = calibrate };
    struct ak_backend backend = { .ops = &ops };
    struct ak_backend_profile profile = { .prefill_chunk = 64, .token_price = token_price };
    struct akunu_load_params params;
    struct ak_error error = { 0 };
    struct ak_pool *pool;
    akunu_load_params_default(&params, sizeof params);
    params.cache_dir = cache;
    params.no_cache = !cache;
    said[0] = '\0';
    ck_assert_int_eq(ak_pool_create(threads, &pool, &error), AKUNU_OK);
    ak_model_calibrate(&backend, NULL, pool, &params, &log_all, &profile);
    ak_pool_free(pool);
    ck_assert_uint_eq(seen_of_user.prefill_chunk, 64);
    ck_assert_uint_eq(profile.prefill_chunk, 64);
    return profile;
}

/* What was measured is in a file of the cache folder, and measured once; what the user sets is
 * above it, and not in the file. A file that is damaged is made again, one that cannot be written
 * or is not wanted does not matter. */
START_TEST(kept_in_a_file)
{
    char folder[] = "/tmp/akunu-test-XXXXXX", cache[64], path[PATH_BYTES], command[96];
    struct stat first, again;
    struct ak_backend_profile read = { 0 };
    struct ak_error error = { 0 };
    int input = dup(0);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(cache, sizeof cache, "%s/a/b", folder); /* it is made */
    size_t n_open = test_count_open();
    close(0); /* then the folder is opened as number 0 */
    ck_assert_uint_eq(measure(cache, 2, 0).token_price, 150);
    ck_assert_uint_eq(test_count_open(), n_open - 1);
    ck_assert_int_eq(dup(input), 0);
    close(input);
    ck_assert(n_measured == 1 && n_warnings == 0);
    ck_assert(find_profile(cache, path));
    ck_assert(strncmp(said, "measured profile written: ", 26) == 0 && strcmp(said + 26, path) == 0);
    ck_assert_int_eq(ak_backend_profile_read(path, &log_all, &read, &error), AKUNU_OK);
    ck_assert(read.token_price == 150 && read.prefill_chunk == 0);
    ck_assert_int_eq(stat(path, &first), 0);

    ck_assert_uint_eq(measure(cache, 2, 0).token_price, 150);
    ck_assert(n_measured == 1 && seen.token_price == 150 && seen.prefill_chunk == 0);
    ck_assert_uint_eq(measure(cache, 2, 99).token_price, 99);
    ck_assert_msg(strncmp(said, "profile: ", 9) == 0, "%s", said); /* it is read, not written */
    ck_assert_int_eq(stat(path, &again), 0);
    ck_assert(first.st_ino == again.st_ino && first.st_mtim.tv_nsec == again.st_mtim.tv_nsec);

    write_text(path, "token_price: [");
    ck_assert_uint_eq(measure(cache, 2, 0).token_price, 150);
    ck_assert(n_measured == 2 && n_warnings == 1 && seen.token_price == 0);
    ck_assert_int_eq(ak_backend_profile_read(path, &log_all, &read, &error), AKUNU_OK);
    measure(cache, 2, 0);
    ck_assert_uint_eq(n_measured, 2);

    measure(NULL, 2, 0);
    ck_assert(n_measured == 3 && seen.token_price == 0);
    measure("/dev/null/no", 2, 0);
    ck_assert_uint_eq(n_measured, 4);
    ck_assert_msg(strncmp(said, "the measured profile is not kept: ", 34) == 0, "%s", said);
    unlink(path);
    fails = true;
    ck_assert_uint_eq(measure(cache, 2, 7).token_price, 7);
    ck_assert_str_eq(said, "calibration: no clock");
    ck_assert(n_warnings == 2 && !find_profile(cache, path));
    fails = false;

    measure(cache, 1, 0); /* other threads have a file of their own */
    ck_assert(find_profile(cache, path));
    unlink(path);
    measure(cache, 2, 0);
    ck_assert_uint_eq(n_measured, 6);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("calibration");
    TCase *tests = tcase_create("calibration");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, measured_once);
    tcase_add_test(tests, kept_in_a_file);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
