/* POST /v1/rerank with a model of tests/golden/rerankers.py, in the forms of Jina and of
 * text-embeddings-inference; requests that take turns. */
#include <math.h>

#include "tests/apps/server/client.h"
#include "tests/st_files.h"

static struct child server;

static void start(void)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/rerankers/bert", getenv("AK_TEST_DATA"));
    const char *const flags[] = { "-m", path, "--no-cache", "-c", "160", NULL };
    server = start_server(flags);
}

static void stop(void)
{
    ck_assert_int_eq(stop_server(&server, SIGTERM), 0);
}

static json_t *ask_json(const char *path, const char *body, int code)
{
    struct answer a = ask(&server, path, body);
    return json_of(&a, code);
}

#define PANDA "\"query\": \"what is a panda\", "
#define DOCUMENTS                                                                                  \
    "[\"Paris is the capital of France.\", {\"text\": \"The panda is a bear of China.\"}, "        \
    "\"b\"]"

/* The first two of pairs.txt. */
#define PAIRS "[\"The panda is a bear of China.\", \"Paris is the capital of France.\"]"

/* The logits of transformers for the first two pairs of the model's pairs.txt, n of each. */
static void read_logits(const char *model, size_t n, double out[])
{
    char path[4096], line[4096], *at;
    snprintf(path, sizeof path, "%s/rerankers/%s/pairs.txt", getenv("AK_TEST_DATA"), model);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    for (int i = 0; i < 8; i++) {
        ck_assert_ptr_nonnull(at = fgets(line, sizeof line, file));
        for (size_t k = 0; i % 4 == 3 && k < n; k++)
            *out++ = strtod(at, &at);
    }
    fclose(file);
}

START_TEST(forms)
{
    static const char *const paths[] = { "/v1/rerank", "/rerank", "/reranking", "/v1/reranking" };
    double panda[2];
    read_logits("bert", 1, panda);
    for (int i = 0; i < 4; i++) {
        json_t *value = ask_json(paths[i], "{" PANDA "\"documents\": " DOCUMENTS "}", 200);
        const json_t *results = at(value, "results");
        ck_assert_uint_eq(json_array_size(results), 3);
        for (size_t k = 0; k < 3; k++) {
            const json_t *one = json_array_get(results, k);
            json_int_t index = json_integer_value(at(one, "index"));
            double score = json_number_value(at(one, "relevance_score"));
            ck_assert(index == 2 || fabs(score - panda[index == 0]) < 1e-5);
            ck_assert_ptr_null(at(one, "document"));
        }
        for (size_t k = 1; k < 3; k++)
            ck_assert(json_number_value(at(json_array_get(results, k - 1), "relevance_score")) >=
                      json_number_value(at(json_array_get(results, k), "relevance_score")));
        ck_assert_int_gt(json_integer_value(at(value, "usage.prompt_tokens")), 50);
        json_decref(value);
    }
    json_t *value = ask_json(
        "/v1/rerank",
        "{" PANDA "\"documents\": " DOCUMENTS ", \"top_n\": 1, \"return_documents\": true}", 200);
    ck_assert_uint_eq(json_array_size(at(value, "results")), 1);
    ck_assert_ptr_nonnull(text_at(value, "results.0.document.text"));
    json_decref(value);
    value = ask_json("/rerank", "{" PANDA "\"texts\": [\"a\", \"b\"], \"return_text\": true}", 200);
    ck_assert(json_array_size(value) == 2 && json_is_number(at(value, "0.score")));
    ck_assert_uint_eq(strlen(text_at(value, "1.text")), 1);
    json_decref(value);
}
END_TEST

/* TEI's form: scores between 0 and 1, and pairs cut to the context. The logits are those of
 * transformers 5.24 in float64 over the ids of tokenizers with truncation, LongestFirst to 160. */
START_TEST(tei)
{
    static const struct {
        int query, document; /* of the texts below */
        const char *options;
        double logit;
    } cases[] = {
        { 0, 1, "", 1.6094835431829586 },
        { 0, 1, ", \"truncate\": true, \"raw_scores\": false", 1.6094835431829586 },
        { 0, 2, ", \"truncate\": true", 0.23004999879239343 },
        { 0, 2, ", \"truncate\": true, \"truncation_direction\": \"Right\"", 0.23004999879239343 },
        { 0, 2, ", \"truncate\": true, \"truncation_direction\": \"left\"", 0.2743487225142601 },
        { 2, 3, ", \"truncate\": true", -0.21049969481948339 },
        { 2, 3, ", \"truncate\": true, \"truncation_direction\": \"left\"", -1.0952810417853605 },
        { 2, 4, ", \"truncate\": true", -0.044408952420997905 },
        { 2, 4, ", \"truncate\": true, \"truncation_direction\": \"left\"", 2.3662385303519935 },
        { 2, 5, ", \"truncate\": true", 0.11655295255425989 },
    };
    char texts[6][2048] = { "what is a panda", "The panda is a bear of China.", "", "a tower" };
    for (int i = 0; i < 200; i++) {
        strcat(texts[2], i < 100 ? "b " : "c ");
        strcat(texts[4], i < 99 ? "panda " : i < 199 ? "tall " : "");
        strcat(texts[5], i < 100 ? "panda " : "tall ");
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int raw = 0; raw < 2; raw++) {
            char body[8192];
            snprintf(body, sizeof body, "{\"query\": \"%s\", \"texts\": [\"%s\"]%s%s}",
                     texts[cases[i].query], texts[cases[i].document], cases[i].options,
                     raw && !strstr(cases[i].options, "raw") ? ", \"raw_scores\": true" : "");
            bool is_raw = strstr(body, "\"raw_scores\": true") != NULL;
            json_t *value = ask_json("/rerank", body, 200);
            double want = is_raw ? cases[i].logit : 1.0 / (1.0 + exp(-cases[i].logit));
            double got = json_number_value(at(value, "0.score"));
            ck_assert_msg(fabs(got - want) < 1e-4, "%zu: %g, and not %g", i, got, want);
            json_decref(value);
        }
    }
    char body[4096];
    snprintf(body, sizeof body, "{" PANDA "\"texts\": [\"%s\"]}", texts[2]);
    json_t *value = ask_json("/rerank", body, 400);
    ck_assert_str_eq(text_at(value, "error.code"), "context_length_exceeded");
    json_decref(value);
}
END_TEST

START_TEST(refusals)
{
    static const struct {
        const char *body, *said;
    } cases[] = {
        { "{}", "query is nothing; expected a text" },
        { "{" PANDA "\"documents\": []}", "documents is a list; expected a list of 1 to 2048" },
        { "{" PANDA "\"documents\": \"a\"}", "documents is \"a\"" },
        { "{" PANDA "\"documents\": [\"a\", 5]}", "documents is the number 5" },
        { "{" PANDA "\"texts\": [null]}", "texts is null" },
        { "{" PANDA "\"texts\": [\"a\"], \"raw_scores\": 1}", "raw_scores is the number 1" },
        { "{" PANDA "\"texts\": [\"a\"], \"truncate\": \"END\"}", "truncate is \"END\"" },
        { "{" PANDA "\"texts\": [\"a\"], \"truncation_direction\": \"up\"}",
          "expected left or right" },
        { "{" PANDA "\"documents\": [\"a\"], \"top_n\": 0}", "top_n" },
        { "{" PANDA "\"documents\": [\"a\"], \"return_documents\": 1}", "return_documents" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct answer a = ask(&server, "/v1/rerank", cases[i].body);
        json_t *value = json_of(&a, 400);
        ck_assert_msg(strstr(text_at(value, "error.message"), cases[i].said) != NULL, "%s: %s",
                      cases[i].body, text_at(value, "error.message"));
        json_decref(value);
    }
    char body[1024], *to = body + sprintf(body, "{" PANDA "\"documents\": [\"");
    for (int k = 0; k < 200; k++)
        to += sprintf(to, "b ");
    sprintf(to, "\"]}");
    json_t *value = ask_json("/v1/rerank", body, 400);
    ck_assert_str_eq(text_at(value, "error.code"), "context_length_exceeded");
    json_decref(value);

    struct child other = start_server(NULL); /* no reranker */
    struct answer a = ask(&other, "/v1/rerank", "{" PANDA "\"documents\": [\"a\"]}");
    value = json_of(&a, 400);
    ck_assert(strstr(text_at(value, "error.message"), "is no reranker"));
    json_decref(value);
    ck_assert_int_eq(stop_server(&other, SIGTERM), 0);
}
END_TEST

/* A request of 2,000 texts; a client that leaves in it; and a small one, which need not wait. */
START_TEST(turns)
{
    enum { N = 2000 };
    char *body = malloc(N * 32 + 256), head[256], *to = body;
    to += sprintf(to, "{\"query\": \"a\", \"documents\": [");
    for (int i = 0; i < N; i++)
        to += sprintf(to, "%s\"the panda is tall\"", i ? ", " : "");
    sprintf(to, "]}");
    int fds[2];
    for (int i = 0; i < 2; i++) {
        fds[i] = open_connection(&server);
        int n = snprintf(head, sizeof head,
                         "POST /v1/rerank HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                         "Content-Length: %zu\r\n\r\n",
                         strlen(body));
        send_text(fds[i], head, (size_t)n);
        send_text(fds[i], body, strlen(body));
    }
    nap(0.05);
    close(fds[1]);
    json_decref(ask_json("/v1/rerank", "{" PANDA "\"documents\": [\"a\"]}", 200));
    json_decref(ask_json("/v1/embeddings", "{\"input\": \"a\"}", 200));
    struct answer a = read_answer(fds[0]);
    json_t *value = json_of(&a, 200);
    ck_assert_uint_eq(json_array_size(at(value, "results")), N);
    json_decref(value);
    free(body);
}
END_TEST

/* A language model in GGUF, whose head gives the probabilities of "yes" and "no": both forms have
 * that of "yes", the softmax of transformers' logits. */
START_TEST(probabilities)
{
    static const char *const refused[][2] = {
        { "\"raw_scores\": true", "raw_scores: the head of " },
        { "\"truncate\": true", "truncate: " },
    };
    struct test_folder folder = test_folder_begin();
    char gguf[128], from[4096];
    snprintf(gguf, sizeof gguf, "%s", test_in(&folder, "qwen3.gguf"));
    snprintf(from, sizeof from, "%s/rerankers/qwen3", getenv("AK_TEST_DATA"));
    ck_assert_msg(test_convert_weights(from, gguf) == AKUNU_OK, "%s", akunu_last_error());
    const char *const flags[] = { "-m", gguf, "--no-cache", NULL };
    struct child own = start_server(flags);
    double logits[2][2];
    read_logits("qwen3", 2, logits[0]);
    for (int form = 0; form < 2; form++) {
        struct answer a =
            ask(&own, "/rerank",
                form ? "{" PANDA "\"texts\": " PAIRS "}" : "{" PANDA "\"documents\": " PAIRS "}");
        json_t *value = json_of(&a, 200);
        const json_t *results = form ? value : at(value, "results");
        ck_assert_uint_eq(json_array_size(results), 2);
        for (size_t k = 0; k < 2; k++) {
            const json_t *one = json_array_get(results, k);
            const double *l = logits[json_integer_value(at(one, "index"))];
            double want = 1.0 / (1.0 + exp(l[1] - l[0]));
            double got = json_number_value(at(one, form ? "score" : "relevance_score"));
            ck_assert_msg(fabs(got - want) < 1e-3, "%d: %g, and not %g", form, got, want);
        }
        json_decref(value);
    }
    for (size_t i = 0; i < 2; i++) {
        char body[256];
        snprintf(body, sizeof body, "{" PANDA "\"texts\": [\"a\"], %s}", refused[i][0]);
        struct answer a = ask(&own, "/rerank", body);
        json_t *value = json_of(&a, 400);
        ck_assert_msg(strstr(text_at(value, "error.message"), refused[i][1]) != NULL, "%s",
                      text_at(value, "error.message"));
        json_decref(value);
    }
    ck_assert_int_eq(stop_server(&own, SIGTERM), 0);
    test_folder_end(&folder);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { forms, tei, probabilities, refusals, turns, NULL };
    return run_server_tests("rerank", start, stop, tests);
}
