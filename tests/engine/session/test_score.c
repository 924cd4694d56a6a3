/* Scores of pairs of texts through the public header: rerankers of Hugging Face and, converted, of
 * GGUF, against tests/golden/rerankers.py. */
#include "tests/test.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "akunu/akunu.h"

enum { IDS_MAX = 512, LABELS_MAX = 3, PAIRS = 6 };

struct pair {
    char query[256], document[256];
    akunu_token ids[IDS_MAX];
    size_t n;
    double scores[LABELS_MAX];
    size_t n_labels;
};

static const struct {
    const char *name;
    uint32_t n_scores;
    double tolerance; /* of scores: their float32 rounding, measured 6e-7 */
} models[] = { { "bert", 1, 5e-6 }, { "roberta", 3, 5e-6 }, { "qwen3", 2, 5e-6 } };
enum { N_MODELS = sizeof models / sizeof *models };

static const char *folder(const char *name, const char *file)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/rerankers/%s%s%s", getenv("AK_TEST_DATA"), name,
             *file ? "/" : "", file);
    return path;
}

static void read_line(FILE *file, char *line, size_t n)
{
    ck_assert_ptr_nonnull(fgets(line, (int)n, file));
    line[strcspn(line, "\n")] = '\0';
}

static void read_pairs(const char *name, struct pair pairs[PAIRS])
{
    FILE *file = fopen(folder(name, "pairs.txt"), "r");
    ck_assert_ptr_nonnull(file);
    for (int i = 0; i < PAIRS; i++) {
        char line[8192], *at = line, *end;
        struct pair *p = &pairs[i];
        read_line(file, p->query, sizeof p->query);
        read_line(file, p->document, sizeof p->document);
        read_line(file, line, sizeof line);
        for (p->n = 0; *at; at = end + (*end == ' '))
            p->ids[p->n++] = (akunu_token)strtol(at, &end, 10);
        read_line(file, line, sizeof line);
        for (at = line, p->n_labels = 0; *at; at = end + (*end == ' '))
            p->scores[p->n_labels++] = strtod(at, &end);
    }
    fclose(file);
}

static struct akunu_model *load(const char *path, uint32_t n_scores)
{
    struct akunu_load_params params;
    struct akunu_model_info info;
    akunu_load_params_default(&params, sizeof params);
    params.no_cache = true;
    struct akunu_model *model = akunu_model_load(path, &params);
    ck_assert_msg(model != NULL, "%s", akunu_last_error());
    ck_assert_int_eq(akunu_model_get_info(model, &info, sizeof info), AKUNU_OK);
    ck_assert_uint_eq(info.n_scores, n_scores);
    return model;
}

static size_t encode(const struct akunu_model *model, const struct pair *p,
                     akunu_token ids[IDS_MAX], size_t *second)
{
    struct akunu_pair_text text;
    akunu_pair_text_default(&text, sizeof text);
    text.query = p->query;
    text.document = p->document;
    text.n_query_bytes = strlen(p->query);
    text.n_document_bytes = strlen(p->document);
    int64_t n = akunu_model_encode_pair(model, &text, ids, IDS_MAX);
    *second = text.second;
    ck_assert_msg(n > 0 && n <= IDS_MAX, "%s", akunu_last_error());
    return (size_t)n;
}

/* All pairs at once, and each alone: the same bits. */
static void score_all(const char *path, uint32_t n_scores, const struct pair pairs[PAIRS],
                      float out[PAIRS * LABELS_MAX])
{
    struct akunu_model *model = load(path, n_scores);
    struct akunu_session_params params;
    akunu_session_params_default(&params, sizeof params);
    params.max_sequences = 4;
    params.k_type = params.v_type = AKUNU_KV_F32;
    struct akunu_session *session = akunu_session_new(model, &params);
    ck_assert_msg(session != NULL, "%s", akunu_last_error());
    static akunu_token ids[PAIRS][IDS_MAX];
    struct akunu_pair given[PAIRS];
    for (int i = 0; i < PAIRS; i++) {
        given[i] = (struct akunu_pair){ .ids = ids[i] };
        given[i].n = encode(model, &pairs[i], ids[i], &given[i].second);
        ck_assert_uint_eq(given[i].n, pairs[i].n);
        ck_assert_mem_eq(ids[i], pairs[i].ids, pairs[i].n * sizeof *ids[i]);
    }
    ck_assert_msg(akunu_session_score(session, given, PAIRS, NULL, NULL, out) == AKUNU_OK, "%s",
                  akunu_last_error());
    for (int i = 0; i < PAIRS; i++) {
        float alone[LABELS_MAX];
        ck_assert_int_eq(akunu_session_score(session, &given[i], 1, NULL, NULL, alone), AKUNU_OK);
        ck_assert_mem_eq(alone, out + (size_t)i * n_scores, n_scores * sizeof *alone);
    }
    akunu_session_free(session);
    akunu_model_free(model);
}

static void compare(const char *name, const float *scores, const struct pair pairs[PAIRS],
                    double tolerance, bool softmax)
{
    for (int i = 0; i < PAIRS; i++) {
        double sum = 0.0, expected[LABELS_MAX];
        for (size_t k = 0; k < pairs[i].n_labels; k++)
            sum += exp(pairs[i].scores[k]);
        for (size_t k = 0; k < pairs[i].n_labels; k++) {
            expected[k] = softmax ? exp(pairs[i].scores[k]) / sum : pairs[i].scores[k];
            double found = (double)scores[(size_t)i * pairs[i].n_labels + k];
            ck_assert_msg(fabs(found - expected[k]) <= tolerance,
                          "%s, pair %d, label %zu: %.9g, expected %.9g", name, i, k, found,
                          expected[k]);
        }
    }
}

START_TEST(goldens)
{
    static struct pair pairs[PAIRS];
    float scores[PAIRS * LABELS_MAX], converted[PAIRS * LABELS_MAX];
    char path[] = "/tmp/akunu-rank-XXXXXX";
    read_pairs(models[_i].name, pairs);
    score_all(folder(models[_i].name, ""), models[_i].n_scores, pairs, scores);
    compare(models[_i].name, scores, pairs, models[_i].tolerance, false);

    struct akunu_convert_params params;
    akunu_convert_params_default(&params, sizeof params);
    params.no_vocab = true;
    params.overwrite = true;
    close(mkstemp(path));
    ck_assert_msg(akunu_convert(folder(models[_i].name, ""), path, &params) == AKUNU_OK, "%s",
                  akunu_last_error());
    score_all(path, models[_i].n_scores, pairs, converted);
    bool softmax = strcmp(models[_i].name, "qwen3") == 0; /* of GGUF: "yes" and "no" */
    compare(path, converted, pairs, models[_i].tolerance, softmax);
    if (!softmax)
        ck_assert_mem_eq(scores, converted, PAIRS * models[_i].n_scores * sizeof *scores);
    unlink(path);
}
END_TEST

/* Which part is the document changes BERT's score, and nothing of a model with one type of tokens.
 */
START_TEST(types)
{
    static struct pair pairs[PAIRS];
    for (int i = 0; i < 2; i++) {
        float score[LABELS_MAX], other[LABELS_MAX];
        akunu_token ids[IDS_MAX];
        read_pairs(models[i].name, pairs);
        struct akunu_model *model = load(folder(models[i].name, ""), models[i].n_scores);
        struct akunu_session *session = akunu_session_new(model, NULL);
        struct akunu_pair pair = { .ids = ids };
        pair.n = encode(model, &pairs[0], ids, &pair.second);
        ck_assert_int_eq(akunu_session_score(session, &pair, 1, NULL, NULL, score), AKUNU_OK);
        pair.second = SIZE_MAX;
        ck_assert_int_eq(akunu_session_score(session, &pair, 1, NULL, NULL, other), AKUNU_OK);
        ck_assert((score[0] != other[0]) == (i == 0));
        akunu_session_free(session);
        akunu_model_free(model);
    }
}
END_TEST

static bool cancel(void *user)
{
    (void)user;
    return true;
}

START_TEST(refusals)
{
    char path[4096];
    float out[LABELS_MAX];
    akunu_token ids[] = { 5, 6 };
    struct akunu_pair pair = { .ids = ids, .n = 2 };
    snprintf(path, sizeof path, "%s/model.gguf", getenv("AK_TEST_DATA"));
    struct akunu_model *model = load(path, 0);
    struct akunu_session *session = akunu_session_new(model, NULL);
    ck_assert_int_eq(akunu_session_score(session, &pair, 1, NULL, NULL, out),
                     AKUNU_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(akunu_last_error(), "no reranker"));
    struct akunu_pair_text text = { .size = sizeof text,
                                    .query = "a",
                                    .n_query_bytes = 1,
                                    .document = "b",
                                    .n_document_bytes = 1 };
    ck_assert_int_eq(akunu_model_encode_pair(model, &text, NULL, 0), -1);
    ck_assert_ptr_nonnull(strstr(akunu_last_error(), "tokenizer.chat_template.rerank"));
    ck_assert_int_eq(akunu_model_encode_pair(model, NULL, NULL, 0), -1);
    ck_assert_ptr_nonnull(strstr(akunu_last_error(), "the pair is NULL"));
    akunu_session_free(session);
    akunu_model_free(model);

    model = load(folder("bert", ""), 1);
    session = akunu_session_new(model, NULL);
    ck_assert_int_eq(akunu_session_score(session, &pair, 1, cancel, NULL, out),
                     AKUNU_ERROR_CANCELLED);
    ck_assert_int_eq(akunu_session_score(session, NULL, 1, NULL, NULL, out), AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(akunu_session_score(session, &pair, 1, NULL, NULL, NULL),
                     AKUNU_ERROR_ARGUMENT);
    ids[1] = 1 << 20;
    ck_assert_int_eq(akunu_session_score(session, &pair, 1, NULL, NULL, out), AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(akunu_session_score(session, NULL, 0, NULL, NULL, NULL), AKUNU_OK);
    akunu_session_free(session);
    akunu_model_free(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("score");
    TCase *tests = tcase_create("score");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, goldens, 0, N_MODELS);
    tcase_add_test(tests, types);
    tcase_add_test(tests, refusals);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
