/* Calibration: what is measured at the first load of a model is kept, read by later loads, made
 * again if damaged, and never changes a bit. Without a cache each load measures, and keeps none. */
#include "session/model.h"

#include "tests/test.h"
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "session/session.h"

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
    ck_assert_msg(ak_model_load(path, &params, &model, &error) == AKUNU_OK, "%s", error.message);
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

int main(void)
{
    Suite *suite = suite_create("calibration");
    TCase *tests = tcase_create("calibration");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, measured_once);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
