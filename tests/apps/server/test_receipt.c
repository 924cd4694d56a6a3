/* Receipts: `akunu-cli verify` makes the texts again on several instruction sets, and refuses
 * receipts that were changed. */
#include "tests/apps/server/client.h"

static struct child server;

static void start(void)
{
    server = start_server(NULL);
}

static void stop(void)
{
    ck_assert_int_eq(stop_server(&server, SIGTERM), 0);
}

/* Runs `akunu-cli verify` on a text; returns its exit code, and what it printed in `out`. */
static int verify(const char *cpu, const char *text, char out[4096])
{
    char path[] = "/tmp/akunu-receipt-XXXXXX", command[8192];
    int fd = mkstemp(path);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    snprintf(command, sizeof command, "AKUNU_CPU=%s %s/akunu-cli verify -m %s %s 2>&1", cpu,
             getenv("AK_TEST_BUILD"), test_model(), path);
    FILE *pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    size_t n = fread(out, 1, 4095, pipe);
    out[n] = '\0';
    int status = pclose(pipe);
    unlink(path);
    ck_assert_msg(WIFEXITED(status), "verify ended by a signal");
    return WEXITSTATUS(status);
}

static void check(const char *cpu, const json_t *receipt, int code, const char *said)
{
    char out[4096], *text = json_dumps(receipt, JSON_ENCODE_ANY);
    int found = verify(cpu, text, out);
    ck_assert_msg(found == code && strstr(out, said), "code %d of %s: %s", found, text, out);
    free(text);
}

static json_t *receipt_of(const json_t *answer)
{
    json_t *receipt = json_incref((json_t *)(uintptr_t)at(answer, "akunu.receipt"));
    ck_assert_msg(receipt != NULL, "%s", json_dumps(answer, 0));
    return receipt;
}

/* The last object of a stream. */
static json_t *last_of(struct answer *a)
{
    char *last = NULL;
    ck_assert_int_eq(a->code, 200);
    for (char *at = strstr(a->body, "data: {"); at; at = strstr(at + 1, "data: {"))
        last = at + strlen("data: ");
    ck_assert_ptr_nonnull(last);
    json_t *value = json_loads(last, JSON_DISABLE_EOF_CHECK, NULL);
    free(a->text);
    return value;
}

static json_t *ask_json(const char *path, const char *body)
{
    struct answer a = ask(&server, path, body);
    return json_of(&a, 200);
}

#define WANTED "\"akunu\": {\"receipt\": true}, \"seed\": 5, \"temperature\": 0.9"
#define MESSAGES "\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]"

/* ---- Receipts that hold ------------------------------------------------- */
static const struct {
    const char *path, *body;
} asked[] = {
    { "/api/generate", /* the first of all: the file's hash is not known yet */
      "{\"prompt\": \"Once\", \"stream\": false, \"options\": {\"num_predict\": 6, " WANTED "}}" },
    { "/v1/completions", "{\"prompt\": \"Once upon\", \"max_tokens\": 9, " WANTED "}" },
    { "/v1/completions",
      "{\"prompt\": \"Once\", \"max_tokens\": 6, \"grammar\": \"root ::= [a-z ]+\", "
      "\"logit_bias\": {\"5\": -3, \"7\": false}, \"stop\": [\"zz\"], \"repeat_penalty\": "
      "1.1, " WANTED "}" },
    { "/v1/chat/completions", "{" MESSAGES ", \"max_tokens\": 6, " WANTED "}" },
    { "/v1/chat/completions",
      "{" MESSAGES ", \"max_tokens\": 30, \"response_format\": {\"type\": \"json_schema\", "
      "\"json_schema\": {\"name\": \"a\", \"schema\": {\"type\": \"boolean\"}}}, " WANTED "}" },
    { "/v1/chat/completions",
      "{" MESSAGES ", \"max_tokens\": 30, \"tool_choice\": \"required\", \"tools\": [{\"type\": "
      "\"function\", \"function\": {\"name\": \"f\", \"parameters\": {\"type\": \"object\", "
      "\"properties\": {\"a\": {\"type\": \"boolean\"}}, \"required\": [\"a\"]}}}], " WANTED "}" },
    { "/v1/messages", "{" MESSAGES ", \"max_tokens\": 6, " WANTED "}" },
    { "/v1/responses", "{\"input\": \"Hi\", \"max_output_tokens\": 6, " WANTED "}" },
    { "/completion", "{\"prompt\": \"Once\", \"n_predict\": 6, \"mirostat\": 2, " WANTED "}" },
    { "/api/generate",
      "{\"prompt\": \"Once\", \"stream\": false, \"options\": {\"num_predict\": 6}, " WANTED "}" },
};

START_TEST(held)
{
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        json_t *answer = ask_json(asked[i].path, asked[i].body), *receipt = receipt_of(answer);
        check("", receipt, 0, "verified: ");
        check("scalar", receipt, 0, "their logits are the same");
        check("avx2", answer, 0, "verified: "); /* the whole answer */
        json_decref(receipt);
        json_decref(answer);
    }
}
END_TEST

/* The same receipt in a stream, after a cached prefix, and one for each of several texts. */
START_TEST(same_receipt)
{
    static const char body[] =
        "{\"prompt\": \"Once upon a time\", \"max_tokens\": 7, \"n\": 2, " WANTED "%s}";
    char text[512];
    snprintf(text, sizeof text, body, "");
    json_t *answer = ask_json("/v1/completions", text), *receipts = receipt_of(answer);
    ck_assert_uint_eq(json_array_size(receipts), 2);
    ck_assert_int_eq(json_integer_value(at(receipts, "1.seed")), 6);
    check("", json_array_get(receipts, 1), 0, "verified: ");
    check("", receipts, 1, "verify each of them alone");
    snprintf(text, sizeof text, body, ", \"stream\": true");
    struct answer a = ask(&server, "/v1/completions", text);
    json_t *last = last_of(&a), *streamed = receipt_of(last);
    ck_assert(json_equal(receipts, streamed));
    json_decref(streamed);
    json_decref(last);
    json_decref(receipts);
    json_decref(answer);
    answer = ask_json("/v1/completions", "{\"prompt\": \"Once\", \"max_tokens\": 1}");
    ck_assert_ptr_null(at(answer, "akunu"));
    json_decref(answer);
    a = ask(&server, "/v1/completions", "{\"prompt\": \"Once\", \"akunu\": {\"receipt\": 1}}");
    answer = json_of(&a, 400);
    ck_assert_str_eq(text_at(answer, "error.param"), "akunu.receipt");
    json_decref(answer);
}
END_TEST

/* The limit of a receipt is that of the request, or where the context ends the text. */
START_TEST(limits)
{
    enum { CONTEXT = 2048 };
    static const char form[] =
        "{\"grammar\": \"root ::= \\\"a\\\"\", \"max_tokens\": %d, " WANTED ", \"prompt\": [72";
    static const struct {
        int n_prompt, asked, limit, code;
    } cases[] = {
        { 3, 5, 5, 200 },
        { 3, -1, CONTEXT - 2, 200 },
        { 3, CONTEXT - 2, CONTEXT - 2, 200 },
        { 3, CONTEXT - 1, CONTEXT - 2, 200 },
        { CONTEXT - 1, 5, 2, 200 },
        { CONTEXT, -1, 1, 200 },
        { CONTEXT + 1, -1, 0, 400 },
    };
    char *body = malloc(4 * CONTEXT + 512);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *to = body + sprintf(body, form, cases[i].asked);
        for (int k = 1; k < cases[i].n_prompt; k++)
            to += sprintf(to, ",72");
        strcpy(to, "]}");
        struct answer a = ask(&server, "/v1/completions", body);
        json_t *answer = json_of(&a, cases[i].code);
        const json_t *limit = at(answer, "akunu.receipt.sampling.max_tokens");
        ck_assert_msg(json_integer_value(limit) == cases[i].limit, "case %zu: %d", i,
                      (int)json_integer_value(limit));
        json_decref(answer);
    }
    free(body);
}
END_TEST

/* ---- Receipts that do not ----------------------------------------------- */
START_TEST(changed)
{
    static const struct {
        const char *path, *value, *said;
    } changes[] = {
        { "seed", "6", "not verified: token " },
        { "seed", "-1", "seed is the number -1; expected an integer from 0" },
        { "chain", "\"00000000000000000000000000000000000000000000000000000000000000aa\"",
          "the chain is not" },
        { "chain", "\"00\"", "expected 64 hexadecimal digits" },
        { "model", "\"00000000000000000000000000000000000000000000000000000000000000aa\"",
          "not verified: it is of another model" },
        { "tokens", "[1, 2, 3]", "not verified: token 1 of 3" },
        { "tokens", "[]", "it ends after 0 tokens" },
        { "tokens", "[99999999]", "99999999" },
        { "tokens", "{}", "expected a list of token ids" },
        { "prompt", "[5, 6]", "not verified: token " },
        { "prompt", "[-1]", "expected a list of token ids" },
        { "prompt", "[]", "the receipt's prompt has no tokens" },
        { "sampling", "null", "sampling is null; expected an object" },
        { "sampling.temperature", "0.1", "not verified: token " },
        { "sampling.temperature", "\"x\"", "temperature is \"x\"; expected a number" },
        { "sampling.top_k", "1.5", "top_k" },
        { "sampling.max_tokens", "3", "and the model ends the text" },
        { "sampling.stop", "[1]", "expected a list of texts" },
        { "sampling.logit_bias", "[[1]]", "logit_bias" },
        { "sampling.grammar", "\"root ::= [\"", "the receipt's grammar" },
        { "sampling.chat", "{}", "chat is an object" },
        { "sampling.samplers", "\"nonsense\"", "nonsense" },
        { "sampling.dry_sequence_breakers", "[]", "verified" },
    };
    json_t *answer = ask_json(asked[0].path, asked[0].body), *receipt = receipt_of(answer);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        json_t *copy = json_deep_copy(receipt), *object = copy;
        const char *dot = strchr(changes[i].path, '.');
        if (dot)
            object = json_object_get(copy, "sampling");
        json_object_set_new(object, dot ? dot + 1 : changes[i].path,
                            json_loads(changes[i].value, JSON_DECODE_ANY, NULL));
        check("", copy, strcmp(changes[i].said, "verified") != 0, changes[i].said);
        json_decref(copy);
    }
    char out[4096];
    ck_assert_int_eq(verify("", "{", out), 1);
    ck_assert(strstr(out, "the receipt is no valid JSON"));
    ck_assert_int_eq(verify("", "[[[[[]]]]]", out), 1);
    json_decref(receipt);
    json_decref(answer);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { held, same_receipt, limits, changed, NULL };
    return run_server_tests("receipt", start, stop, tests);
}
