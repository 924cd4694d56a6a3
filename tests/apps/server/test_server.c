/* akunu-server with a small model, over sockets: answers, streams, errors, and how it ends. */
#include "tests/apps/server/client.h"

#include <pthread.h>

#define CHAT "/v1/chat/completions"
#define TEXT "/v1/completions"

static struct child server;

static void start(void)
{
    static const char *const flags[] = { "--metrics", "--alias", "small", NULL };
    server = start_server(flags);
}

static void stop(void)
{
    ck_assert_int_eq(stop_server(&server, SIGTERM), 0);
}

/* ---- Answers ------------------------------------------------------------ */
START_TEST(small_routes)
{
    struct answer a = ask(&server, "/health", "");
    json_t *value = json_of(&a, 200);
    ck_assert_str_eq(text_at(value, "status"), "ok");
    json_decref(value);
    a = ask(&server, "/v1/models", "");
    value = json_of(&a, 200);
    ck_assert_str_eq(text_at(value, "data.0.id"), "small");
    json_decref(value);
    a = ask(&server, "/v1/models/small", "");
    json_decref(json_of(&a, 200));
    a = ask(&server, "/v1/models/large", "");
    json_decref(json_of(&a, 404));
    a = ask(&server, "/props", "");
    json_decref(json_of(&a, 200));
    a = ask(&server, "/tokenize", "{\"content\": \"Once upon a time\"}");
    value = json_of(&a, 200);
    char *ids = json_dumps(value, JSON_COMPACT);
    ck_assert_uint_gt(json_array_size(at(value, "tokens")), 0);
    json_decref(value);
    a = ask(&server, "/detokenize", ids);
    value = json_of(&a, 200);
    ck_assert_str_eq(text_at(value, "content"), "Once upon a time");
    json_decref(value);
    free(ids);
    a = ask(&server, "/apply-template",
            "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]}");
    value = json_of(&a, 200);
    ck_assert(strstr(text_at(value, "prompt"), "Hi") != NULL);
    json_decref(value);
    a = ask(&server, "/apply-template",
            "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}], \"tools\": [{\"type\": "
            "\"function\", \"function\": {\"name\": \"find_it\"}}]}");
    value = json_of(&a, 200);
    ck_assert(strstr(text_at(value, "prompt"), "Hi") != NULL);
    json_decref(value);
    a = ask(&server, "/metrics", "");
    ck_assert_int_eq(a.code, 200);
    ck_assert(strstr(a.body, "\nakunu_requests_total{route=\"/health\",code=\"200\"} 1\n") != NULL);
    free(a.text);
    a = ask_with(&server, "HEAD", "/health", "", "");
    ck_assert_int_eq(a.code, 200);
    ck_assert_uint_eq(a.n, 0);
    free(a.text);
}
END_TEST

/* The text of a stream, of all its chunks; *n: how many there were. */
static char *join_stream(const struct answer *a, const char *path, size_t *n)
{
    char *text = calloc(1, ANSWER_BYTES);
    const char *line = a->body;
    *n = 0;
    ck_assert_msg(a->code == 200, "%s", a->text);
    while ((line = strstr(line, "data: ")) != NULL) {
        line += strlen("data: ");
        if (strncmp(line, "[DONE]", 6) == 0)
            return text;
        json_t *value = json_loadb(line, strcspn(line, "\n"), JSON_ALLOW_NUL, NULL);
        ck_assert_msg(value != NULL, "no JSON: %.200s", line);
        const char *piece = json_string_value(at(value, path));
        strcat(text, piece ? piece : "");
        json_decref(value);
        ++*n;
    }
    ck_abort_msg("the stream does not end with [DONE]: … %s",
                 a->body + (a->n > 500 ? a->n - 500 : 0));
    return NULL;
}

/* Only what the page itself brings may run: each answer has a nonce of its own. */
START_TEST(page)
{
    char nonces[2][33];
    for (int i = 0; i < 2; i++) {
        struct answer a = ask(&server, "/", "");
        ck_assert_int_eq(a.code, 200);
        ck_assert(strcasestr(a.text, "X-Content-Type-Options: nosniff") != NULL);
        const char *policy = strstr(a.text, "default-src 'none'; script-src 'nonce-");
        ck_assert_ptr_nonnull(policy);
        memcpy(nonces[i], strstr(policy, "nonce-") + 6, 32);
        nonces[i][32] = '\0';
        ck_assert(strstr(a.body, nonces[i]) != NULL);
        ck_assert(strstr(a.body, "\"NONCE\"") == NULL);
        free(a.text);
    }
    ck_assert_str_ne(nonces[0], nonces[1]);
}
END_TEST

START_TEST(streams_say_the_same)
{
    static const char body[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}], "
                               "\"seed\": 3, \"max_tokens\": 20, \"stream\": %s}";
    char one[512], other[512];
    size_t n;
    snprintf(one, sizeof one, body, "false");
    snprintf(other, sizeof other, body, "true, \"stream_options\": {\"include_usage\": true}");
    struct answer a = ask(&server, CHAT, one), b = ask(&server, CHAT, other);
    json_t *value = json_of(&a, 200);
    char *streamed = join_stream(&b, "choices.0.delta.content", &n);
    ck_assert_str_eq(streamed, text_at(value, "choices.0.message.content"));
    ck_assert_uint_gt(n, 3);
    ck_assert_int_eq(json_integer_value(at(value, "usage.completion_tokens")), 20);
    ck_assert_str_eq(text_at(value, "choices.0.finish_reason"), "length");
    ck_assert(strstr(b.text, "\"usage\":{\"prompt_tokens\":") != NULL);
    ck_assert(strcasestr(b.text, "Cache-Control: no-cache") != NULL);
    free(streamed);
    free(b.text);
    json_decref(value);

    static const char text[] = "{\"prompt\": \"Once upon\", \"seed\": 3, \"max_tokens\": 20%s}";
    snprintf(one, sizeof one, text, "");
    snprintf(other, sizeof other, text, ", \"stream\": true");
    a = ask(&server, TEXT, one);
    b = ask(&server, TEXT, other);
    value = json_of(&a, 200);
    streamed = join_stream(&b, "choices.0.text", &n);
    ck_assert_str_eq(streamed, text_at(value, "choices.0.text"));
    free(streamed);
    free(b.text);
    json_decref(value);
}
END_TEST

START_TEST(prompts_and_completions)
{
    struct answer a =
        ask(&server, TEXT,
            "{\"prompt\": [\"Once upon\", \"The sea\"], \"n\": 2, \"seed\": 1, "
            "\"max_tokens\": 6, \"logprobs\": 2, \"echo\": true, \"ignore_eos\": true}");
    json_t *value = json_of(&a, 200);
    ck_assert_uint_eq(json_array_size(at(value, "choices")), 4);
    for (int i = 0; i < 4; i++) {
        char path[64];
        snprintf(path, sizeof path, "choices.%d.text", i);
        const char *begin = i < 2 ? "Once upon" : "The sea";
        ck_assert(strncmp(text_at(value, path), begin, strlen(begin)) == 0);
        snprintf(path, sizeof path, "choices.%d.index", i);
        ck_assert_int_eq(json_integer_value(at(value, path)), i);
        snprintf(path, sizeof path, "choices.%d.logprobs.tokens", i);
        ck_assert_uint_gt(json_array_size(at(value, path)), 6); /* the prompt's too */
    }
    ck_assert_int_eq(json_integer_value(at(value, "usage.completion_tokens")), 24);
    ck_assert(json_is_null(at(value, "choices.0.logprobs.token_logprobs.0")));
    ck_assert(json_is_real(at(value, "choices.0.logprobs.token_logprobs.1")));
    ck_assert_uint_eq(json_object_size(at(value, "choices.0.logprobs.top_logprobs.1")), 2);
    json_decref(value);

    a = ask(&server, TEXT,
            "{\"prompt\": [72, 73, 74], \"max_tokens\": 0, \"echo\": true, "
            "\"logprobs\": 0}");
    value = json_of(&a, 200);
    ck_assert_uint_eq(json_array_size(at(value, "choices.0.logprobs.tokens")), 3);
    ck_assert_int_eq(json_integer_value(at(value, "usage.completion_tokens")), 0);
    json_decref(value);
}
END_TEST

static int64_t integer_at(const json_t *value, const char *path)
{
    ck_assert_msg(json_is_integer(at(value, path)), "%s is no integer", path);
    return json_integer_value(at(value, path));
}

/* The prompt's tokens count once, however many completions it has; in streams, too. */
static void check_usage(const char *path, const char *body, int64_t n_prompt, int64_t n_completion)
{
    static const char *const forms[] = { "}", ", \"stream\": true, "
                                              "\"stream_options\": {\"include_usage\": true}}" };
    char whole[1024];
    for (int i = 0; i < 2; i++) {
        snprintf(whole, sizeof whole, "%s%s", body, forms[i]);
        struct answer a = ask(&server, path, whole);
        ck_assert_msg(a.code == 200, "%s", a.text);
        const char *usage = strstr(a.body, "\"usage\":{");
        ck_assert_msg(usage != NULL, "%s", a.text);
        json_t *value = json_loads(usage + strlen("\"usage\":"), JSON_DISABLE_EOF_CHECK, NULL);
        ck_assert_int_eq(integer_at(value, "prompt_tokens"), n_prompt);
        ck_assert_int_eq(integer_at(value, "completion_tokens"), n_completion);
        ck_assert_int_eq(integer_at(value, "total_tokens"), n_prompt + n_completion);
        json_decref(value);
        free(a.text);
    }
}

START_TEST(usage)
{
    struct answer a = ask(&server, CHAT,
                          "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}], "
                          "\"max_tokens\": 1, \"ignore_eos\": true}");
    json_t *value = json_of(&a, 200);
    int64_t n_prompt = integer_at(value, "usage.prompt_tokens");
    ck_assert_int_gt(n_prompt, 2);
    json_decref(value);
    check_usage(CHAT,
                "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}], \"n\": 3, "
                "\"max_tokens\": 4, \"ignore_eos\": true",
                n_prompt, 12);
    check_usage(TEXT,
                "{\"prompt\": [[72, 73, 74], [75, 76], [77]], \"max_tokens\": 4, "
                "\"ignore_eos\": true",
                6, 12);
    check_usage(TEXT,
                "{\"prompt\": [[72, 73, 74], [75, 76]], \"n\": 3, \"max_tokens\": 4, "
                "\"ignore_eos\": true",
                5, 24);
    /* of several names the newest counts */
    check_usage(TEXT,
                "{\"prompt\": [[72]], \"max_completion_tokens\": 2, \"max_tokens\": 5, "
                "\"n_predict\": 9, \"ignore_eos\": true",
                1, 2);
}
END_TEST

/* What the routes that count say is what an answer to the same request says that it took. */
START_TEST(counts_of_tokens)
{
    static const char template[] =
        "{{ tools|tojson if tools }}{% for m in messages %}[{{ m.role }}]{{ m.content }}"
        "{{ m.tool_calls|tojson if m.tool_calls }}{% endfor %}>";
#define SCHEMA "{\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"boolean\"}}}"
    static const struct {
        const char *path, *count, *used[2]; /* what was read and what was cached are added up */
        const char *body;
    } cases[] = {
        { CHAT,
          CHAT "/input_tokens",
          { "prompt_tokens", NULL },
          "{\"max_tokens\": 1, \"messages\": [{\"role\": \"system\", \"content\": \"Be brief.\"}, "
          "{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"Hi\"}]}], "
          "\"tools\": "
          "[{\"type\": \"function\", \"function\": {\"name\": \"add\", \"parameters\": " SCHEMA
          "}}]}" },
        { CHAT,
          CHAT "/input_tokens",
          { "prompt_tokens", NULL },
          "{\"max_tokens\": 1, \"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}, "
          "{\"role\": "
          "\"assistant\", \"content\": \"Hello\"}]}" },
        { "/v1/responses",
          "/v1/responses/input_tokens",
          { "input_tokens", NULL },
          "{\"max_output_tokens\": 1, \"instructions\": \"Be brief.\", \"input\": [{\"role\": "
          "\"user\", "
          "\"content\": \"Hi\"}, {\"type\": \"function_call\", \"call_id\": \"x\", \"name\": "
          "\"add\", "
          "\"arguments\": \"{}\"}, {\"type\": \"function_call_output\", \"call_id\": \"x\", "
          "\"output\": "
          "\"2\"}], \"tools\": [{\"type\": \"function\", \"name\": \"add\", \"parameters\": " SCHEMA
          "}]}" },
        { "/v1/messages",
          "/v1/messages/count_tokens",
          { "input_tokens", "cache_read_input_tokens" },
          "{\"max_tokens\": 1, \"system\": \"Be brief.\", \"messages\": [{\"role\": \"user\", "
          "\"content\": \"Hi\"}], \"tools\": [{\"name\": \"add\", \"input_schema\": " SCHEMA
          "}]}" },
    };
#undef SCHEMA
    const char *const flags[] = { "--chat-template", template, NULL };
    struct child child = start_server(flags);
    for (size_t i = 0; i < 2 * (sizeof cases / sizeof *cases); i++) { /* twice: then it is cached */
        struct answer a = ask(&child, cases[i / 2].count, cases[i / 2].body);
        json_t *counted = json_of(&a, 200);
        a = ask(&child, cases[i / 2].path, cases[i / 2].body);
        json_t *value = json_of(&a, 200);
        int64_t used = 0;
        for (int k = 0; k < 2 && cases[i / 2].used[k]; k++)
            used += integer_at(at(value, "usage"), cases[i / 2].used[k]);
        ck_assert_int_gt(used, 5);
        ck_assert_int_eq(integer_at(counted, "input_tokens"), used);
        json_decref(counted);
        json_decref(value);
    }
    ck_assert_int_eq(stop_server(&child, SIGTERM), 0);
}
END_TEST

/* A bias for a text is one for each of its tokens, in all the forms of the member. */
START_TEST(biases)
{
    static const char *const forms[] = { "[[%d, 90], [%d, 90]]", "[[\"xq\", 90]]", "{\"xq\": 90}",
                                         "{\"%d\": 90, \"%d\": 90}", "[[%d, 90]]" };
    enum { N_FORMS = sizeof forms / sizeof *forms };
    char *texts[N_FORMS], body[512], bias[128];
    struct answer a = ask(&server, "/tokenize", "{\"content\": \"xq\"}");
    json_t *value = json_of(&a, 200);
    ck_assert_uint_eq(json_array_size(at(value, "tokens")), 2);
    int first = (int)integer_at(value, "tokens.0"), second = (int)integer_at(value, "tokens.1");
    json_decref(value);
    for (int i = 0; i < N_FORMS; i++) {
        snprintf(bias, sizeof bias, forms[i], first, second);
        snprintf(body, sizeof body,
                 "{\"prompt\": \"a\", \"max_tokens\": 40, \"seed\": 3, \"temperature\": 2, "
                 "\"logit_bias\": %s}",
                 bias);
        a = ask(&server, TEXT, body);
        value = json_of(&a, 200);
        texts[i] = strdup(text_at(value, "choices.0.text"));
        json_decref(value);
    }
    ck_assert_uint_eq(strspn(texts[0], "xq"), strlen(texts[0]));
    ck_assert(strchr(texts[0], 'x') && strchr(texts[0], 'q'));
    for (int i = 1; i < N_FORMS - 1; i++)
        ck_assert_str_eq(texts[i], texts[0]);
    ck_assert_uint_eq(strspn(texts[N_FORMS - 1], "x"), strlen(texts[N_FORMS - 1]));
    for (int i = 0; i < N_FORMS; i++)
        free(texts[i]);
}
END_TEST

/* The joined pieces of `text_offset` and of the names of the tokens have to fit the text, in
 * characters. A token of half a character begins where the whole character does. */
static void check_offsets(const json_t *choice, const char *const *names, const int *offsets,
                          size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char path[64];
        snprintf(path, sizeof path, "logprobs.text_offset.%zu", i);
        ck_assert_int_eq(json_integer_value(at(choice, path)), offsets[i]);
        snprintf(path, sizeof path, "logprobs.tokens.%zu", i);
        ck_assert_str_eq(text_at(choice, path), names[i]);
    }
}

/* All lists of the chunks of one choice of a stream, joined. */
static json_t *join_logprobs(const struct answer *a, int index)
{
    json_t *all = json_object(), *list;
    const char *name;
    for (const char *line = a->body; (line = strstr(line, "data: {")) != NULL; line++) {
        json_t *value = json_loadb(line + 6, strcspn(line + 6, "\n"), JSON_ALLOW_NUL, NULL);
        json_t *choice = json_array_get(at(value, "choices"), 0);
        if (choice && json_integer_value(at(choice, "index")) == index)
            json_object_foreach (json_object_get(choice, "logprobs"), name, list) {
                if (!json_object_get(all, name))
                    json_object_set_new(all, name, json_array());
                json_array_extend(json_object_get(all, name), list);
            }
        json_decref(value);
    }
    return all;
}

START_TEST(offsets_of_logprobs)
{
    static const char *const names[] = { "G",           "bytes:\\xc3", "bytes:\\xb6",
                                         "bytes:\\xe6", "bytes:\\x97", "bytes:\\xa5" };
    static const int offsets[] = { 0, 1, 1, 2, 2, 2 };
    static const char form[] =
        "{\"prompt\": [\"G\u00f6\u65e5\", [71, 72]], \"n\": 2, \"max_tokens\": 12, \"seed\": 3, "
        "\"logprobs\": 1, \"echo\": true, \"temperature\": 1%s}";
    char body[512];
    snprintf(body, sizeof body, form, "");
    struct answer whole = ask(&server, TEXT, body);
    json_t *value = json_of(&whole, 200);
    check_offsets(at(value, "choices.0"), names, offsets, 6);
    ck_assert_int_eq(json_integer_value(at(value, "choices.0.logprobs.text_offset.6")), 3);
    ck_assert_int_eq(json_integer_value(at(value, "choices.1.logprobs.text_offset.6")), 3);
    ck_assert_int_eq(json_integer_value(at(value, "choices.2.logprobs.text_offset.2")), 2);
    snprintf(body, sizeof body, form, ", \"stream\": true");
    struct answer stream = ask(&server, TEXT, body);
    for (int i = 0; i < 4; i++) {
        json_t *streamed = join_logprobs(&stream, i),
               *one = json_array_get(at(value, "choices"), (size_t)i);
        ck_assert(json_equal(streamed, json_object_get(one, "logprobs")));
        json_decref(streamed);
    }
    free(stream.text);
    json_decref(value);
}
END_TEST

/* A control token takes characters only if the text of the prompt names it. */
START_TEST(offsets_of_control_tokens)
{
    static const struct {
        const char *prompt, *text;
        int offset; /* of the second token */
    } cases[] = {
        { "\"<|im_start|>G\"", "<|im_start|>G", 12 },
        { "[414, 38]", "G", 0 },
        { "[414, \"G\"]", "G", 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char body[256];
        snprintf(body, sizeof body,
                 "{\"prompt\": %s, \"max_tokens\": 0, \"echo\": true, \"logprobs\": 0}",
                 cases[i].prompt);
        struct answer a = ask(&server, TEXT, body);
        json_t *value = json_of(&a, 200);
        ck_assert_str_eq(text_at(value, "choices.0.text"), cases[i].text);
        ck_assert_uint_eq(json_array_size(at(value, "choices.0.logprobs.text_offset")), 2);
        ck_assert_int_eq(json_integer_value(at(value, "choices.0.logprobs.text_offset.0")), 0);
        ck_assert_int_eq(json_integer_value(at(value, "choices.0.logprobs.text_offset.1")),
                         cases[i].offset);
        ck_assert_str_eq(text_at(value, "choices.0.logprobs.tokens.0"), "<|im_start|>");
        json_decref(value);
    }
}
END_TEST

/* Appends an entry of GGUF's metadata; its value is a bool or an unsigned integer. */
static size_t put_entry(char *out, const char *key, uint32_t type, const void *value, size_t n)
{
    uint64_t length = strlen(key);
    memcpy(out, &length, 8);
    memcpy(out + 8, key, length);
    memcpy(out + 8 + length, &type, 4);
    memcpy(out + 12 + length, value, n);
    return 12 + length + n;
}

/* Copies the tests' model to `path`, with a BOS that its tokenizer adds: token 414. The entries
 * take 128 bytes, so the tensors stay aligned. */
static void write_model_with_bos(char *path)
{
    enum { HEADER = 24, U32 = 4, BOOL = 7, ADDED = 128 };
    const uint32_t bos = 414;
    char entries[ADDED], header[HEADER], block[65536];
    uint64_t n_entries;
    size_t n = put_entry(entries, "tokenizer.ggml.add_bos_token", BOOL, "\1", 1);
    n += put_entry(entries + n, "tokenizer.ggml.bos_token_id", U32, &bos, 4);
    n += put_entry(entries + n, "general.an_entry_of_44_bytes_xx", BOOL, "\1", 1);
    ck_assert_uint_eq(n, ADDED);
    FILE *from = fopen(test_model(), "rb"), *to = fdopen(mkstemps(path, 5), "wb");
    ck_assert(from && to && fread(header, HEADER, 1, from) == 1);
    memcpy(&n_entries, header + 16, 8);
    n_entries += 3;
    memcpy(header + 16, &n_entries, 8);
    ck_assert(fwrite(header, HEADER, 1, to) == 1 && fwrite(entries, ADDED, 1, to) == 1);
    while ((n = fread(block, 1, sizeof block, from)) > 0)
        ck_assert_uint_eq(fwrite(block, 1, n, to), n);
    fclose(from);
    ck_assert_int_eq(fclose(to), 0);
}

/* A BOS that the tokenizer adds takes no characters, and one that the text names does. */
START_TEST(offsets_after_bos)
{
    static const struct {
        const char *prompt, *text;
        int n, offsets[4];
    } cases[] = {
        { "G\u00f6", "G\u00f6", 4, { 0, 0, 1, 1 } },
        { "<|im_start|>G", "<|im_start|>G", 3, { 0, 0, 12 } },
        { "", "", 1, { 0 } },
    };
    char path[] = "/tmp/akunu-bos-XXXXXX.gguf";
    write_model_with_bos(path);
    const char *const flags[] = { "-m", path, "--no-cache", NULL };
    struct child child = start_server(flags);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char body[256];
        snprintf(body, sizeof body,
                 "{\"prompt\": \"%s\", \"max_tokens\": 0, \"echo\": true, \"logprobs\": 0}",
                 cases[i].prompt);
        struct answer a = ask(&child, TEXT, body);
        json_t *value = json_of(&a, 200);
        const json_t *offsets = at(value, "choices.0.logprobs.text_offset");
        ck_assert_str_eq(text_at(value, "choices.0.text"), cases[i].text);
        ck_assert_uint_eq(json_array_size(offsets), (size_t)cases[i].n);
        for (int k = 0; k < cases[i].n; k++)
            ck_assert_int_eq(json_integer_value(json_array_get(offsets, (size_t)k)),
                             cases[i].offsets[k]);
        json_decref(value);
    }
    ck_assert_int_eq(stop_server(&child, SIGTERM), 0);
    unlink(path);
}
END_TEST

/* Copies the tests' model to `path`; the text of its token 414 gets `n` bytes 'x' more in front. As
 * many as are a multiple of 32 leave the tensors aligned. */
static void write_model_with_long_token(char *path, size_t n)
{
    static const char old[] = "<|im_start|>";
    const size_t old_n = sizeof old - 1;
    FILE *from = fopen(test_model(), "rb"), *to = fdopen(mkstemps(path, 5), "wb");
    ck_assert(from && to && fseek(from, 0, SEEK_END) == 0);
    size_t size = (size_t)ftell(from);
    char *bytes = malloc(size);
    rewind(from);
    ck_assert(bytes && fread(bytes, 1, size, from) == size);
    uint64_t length = old_n;
    char entry[8 + sizeof old];
    memcpy(entry, &length, 8);
    memcpy(entry + 8, old, old_n);
    const char *found = memmem(bytes, size, entry, 8 + old_n);
    ck_assert_ptr_nonnull(found);
    size_t at = (size_t)(found - bytes);
    length = old_n + n;
    fwrite(bytes, 1, at, to);
    fwrite(&length, 8, 1, to);
    for (size_t i = 0; i < n; i++)
        fputc('x', to);
    fwrite(bytes + at + 8, 1, size - at - 8, to);
    ck_assert_int_eq(fclose(to), 0);
    fclose(from);
    free(bytes);
}

/* Whether a text is that of the long token. */
static void check_long(const char *text, size_t more)
{
    ck_assert_uint_eq(strspn(text, "x"), more);
    ck_assert_str_eq(text + more, "<|im_start|>");
}

/* The answer of a command as JSON. */
static json_t *json_of_command(const char *command)
{
    FILE *pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    json_t *value = json_loadf(pipe, 0, NULL);
    ck_assert_int_eq(pclose(pipe), 0);
    ck_assert_ptr_nonnull(value);
    return value;
}

/* A token's text is whole, however long: in each list of log-probabilities, and its bytes, as a
 * piece, and as the token that begins a text. */
START_TEST(long_tokens)
{
    enum { MORE = 2016, LENGTH = MORE + 12 };
    static const char form[] = "{%s, \"max_tokens\": 1, \"temperature\": 0, \"seed\": 1, "
                               "\"logit_bias\": {\"414\": 100}, %s}";
    static const struct {
        const char *path, *prompt, *options, *text, *bytes;
    } cases[] = {
        { CHAT, "\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]",
          "\"logprobs\": true, \"top_logprobs\": 1", "choices.0.logprobs.content.0.token",
          "choices.0.logprobs.content.0.bytes" },
        { TEXT, "\"prompt\": \"a\"", "\"logprobs\": 1", "choices.0.logprobs.tokens.0", NULL },
        { "/completion", "\"prompt\": \"a\"", "\"n_probs\": 1", "completion_probabilities.0.token",
          "completion_probabilities.0.bytes" },
    };
    char path[] = "/tmp/akunu-long-XXXXXX.gguf", body[4096];
    write_model_with_long_token(path, MORE);
    const char *const flags[] = {
        "-m", path, "--no-cache", "--override-kv", "tokenizer.ggml.bos_token_id=int:414", NULL
    };
    struct child child = start_server(flags);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(body, sizeof body, form, cases[i].prompt, cases[i].options);
        struct answer a = ask(&child, cases[i].path, body);
        json_t *value = json_of(&a, 200);
        const char *text = text_at(value, cases[i].text);
        check_long(text, MORE);
        const json_t *bytes = cases[i].bytes ? at(value, cases[i].bytes) : NULL;
        ck_assert(!cases[i].bytes || json_array_size(bytes) == LENGTH);
        for (size_t k = 0; k < json_array_size(bytes); k++)
            ck_assert_int_eq(json_integer_value(json_array_get(bytes, k)), text[k]);
        json_decref(value);
    }
    struct answer a = ask(&child, "/props", "");
    json_t *value = json_of(&a, 200);
    check_long(text_at(value, "bos_token"), MORE);
    ck_assert_str_eq(text_at(value, "eos_token"), "<|im_end|>");
    json_decref(value);
    memset(body, 0, sizeof body);
    snprintf(body, sizeof body, "{\"content\": \"%0*d<|im_start|>\", \"with_pieces\": true}", MORE,
             0);
    for (char *at = strchr(body, '0'); *at == '0'; at++)
        *at = 'x';
    a = ask(&child, "/tokenize", body);
    value = json_of(&a, 200);
    check_long(text_at(value, "tokens.0.piece"), MORE);
    json_decref(value);
    ck_assert_int_eq(stop_server(&child, SIGTERM), 0);
    snprintf(body, sizeof body,
             "%s/akunu-cli run -m %s --no-cache -p a -n 1 --temp 0 -s 1 --logit-bias 414+100 "
             "--logprobs 1 --json 2>/dev/null",
             getenv("AK_TEST_BUILD"), path);
    value = json_of_command(body);
    check_long(text_at(value, "logprobs.0.text"), MORE);
    json_decref(value);
    unlink(path);
}
END_TEST

/* A stop sequence takes the tokens with it that begin in it. */
START_TEST(offsets_at_a_stop)
{
    static const char form[] = "{\"prompt\": \"Once\", \"max_tokens\": 12, \"temperature\": 0, "
                               "\"grammar\": \"root ::= [a-z]+\", \"logprobs\": 0%s}";
    char body[512], stop[64];
    snprintf(body, sizeof body, form, "");
    struct answer a = ask(&server, TEXT, body);
    json_t *whole = json_of(&a, 200);
    const json_t *offsets = at(whole, "choices.0.logprobs.text_offset");
    const char *text = text_at(whole, "choices.0.text");
    ck_assert_uint_eq(json_array_size(offsets), 12);
    size_t cut = 0, n = 0;
    for (size_t i = 0; text[i]; i++) /* where a letter comes for the first time, late */
        cut = strchr(text, text[i]) == text + i ? i : cut;
    ck_assert_uint_gt(cut, 0);
    snprintf(stop, sizeof stop, ", \"stop\": \"%s\"", text + cut);
    snprintf(body, sizeof body, form, stop);
    a = ask(&server, TEXT, body);
    json_t *value = json_of(&a, 200);
    ck_assert_str_eq(text_at(value, "choices.0.finish_reason"), "stop");
    ck_assert_uint_eq(strlen(text_at(value, "choices.0.text")), cut);
    while (n < 12 && json_integer_value(json_array_get(offsets, n)) < (json_int_t)cut)
        n++;
    ck_assert_uint_eq(json_array_size(at(value, "choices.0.logprobs.text_offset")), n);
    ck_assert_uint_eq(json_array_size(at(value, "choices.0.logprobs.tokens")), n);
    json_decref(value);
    json_decref(whole);
}
END_TEST

/* A request has up to 64 stop sequences. */
START_TEST(many_stops)
{
    enum { MOST = 64 };
    char body[512];
    for (int n = MOST; n <= MOST + 1; n++) {
        char *to = body + sprintf(body, "{\"prompt\": \"a\", \"max_tokens\": 1, \"stop\": [\"a\"");
        for (int i = 1; i < n; i++)
            to += sprintf(to, ",\"b\"");
        strcpy(to, "]}");
        struct answer a = ask(&server, TEXT, body);
        json_t *value = json_of(&a, n > MOST ? 400 : 200);
        ck_assert(n <= MOST || strcmp(text_at(value, "error.param"), "stop") == 0);
        json_decref(value);
    }
}
END_TEST

/* Templates get the arguments of an earlier call as Python's json.loads reads them. The values are
 * those of transformers 5.24. */
START_TEST(arguments_of_earlier_calls)
{
    static const char template[] = "{{ messages[1].tool_calls[0].function.arguments|tojson }}",
                      form[] =
                          "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": "
                          "\"assistant\", \"content\": null, \"tool_calls\": [{\"id\": \"a\", "
                          "\"type\": \"function\", \"function\": {\"name\": \"f\", "
                          "\"arguments\": %s}}]}]}";
    static const char *const cases[][2] = {
        { "\"{\\\"id\\\": 12345678901234567890123, \\\"x\\\": 1.10}\"",
          "{\"id\": 12345678901234567890123, \"x\": 1.1}" },
        { "{\"id\": -12345678901234567890123}", "{\"id\": -12345678901234567890123}" },
        { "\"{\\\"a\\\": 1, \\\"b\\\": 2, \\\"a\\\": [3]}\"", "{\"a\": [3], \"b\": 2}" },
        { "\"{\\\"a\\\": NaN, \\\"b\\\": -1e400, \\\"c\\\": 1E5}\"",
          "{\"a\": NaN, \"b\": -Infinity, \"c\": 100000.0}" },
        { "\"12345678901234567890\"", "\"12345678901234567890\"" },
        { "\"{\\\"a\\\": 1\"", "\"{\\\"a\\\": 1\"" },
    };
    const char *const flags[] = { "--chat-template", template, NULL };
    struct child child = start_server(flags);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char body[1024];
        snprintf(body, sizeof body, form, cases[i][0]);
        struct answer a = ask(&child, "/apply-template", body);
        json_t *value = json_of(&a, 200);
        ck_assert_str_eq(text_at(value, "prompt"), cases[i][1]);
        json_decref(value);
    }
    ck_assert_int_eq(stop_server(&child, SIGTERM), 0);
}
END_TEST

/* Integers beyond 64 bits pass through a request, digit for digit. */
START_TEST(long_integers)
{
    static const char tool[] =
        "{\"type\": \"object\", \"properties\": {\"id\": {\"const\": 12345678901234567890}}, "
        "\"required\": [\"id\"], \"additionalProperties\": false}";
    char body[1024];
    snprintf(
        body, sizeof body,
        "\xef\xbb\xbf{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], "
        "\"temperature\": 0, \"response_format\": {\"type\": \"json_schema\", \"json_schema\": "
        "{\"name\": \"x\", \"schema\": {\"const\": 12345678901234567890}}}}");
    struct answer a = ask(&server, CHAT, body);
    json_t *value = json_of(&a, 200);
    ck_assert_str_eq(text_at(value, "choices.0.message.content"), "12345678901234567890");
    json_decref(value);
    snprintf(
        body, sizeof body,
        "{\"model\": \"x\", \"max_tokens\": 200, \"temperature\": 0, \"messages\": [{\"role\": "
        "\"user\", \"content\": \"a\"}], \"tools\": [{\"name\": \"f\", \"input_schema\": %s}], "
        "\"tool_choice\": {\"type\": \"any\"}}",
        tool);
    a = ask(&server, "/v1/messages", body);
    ck_assert_msg(strstr(a.body, "\"input\":{\"id\":12345678901234567890}") != NULL, "%s", a.body);
    free(a.text);
}
END_TEST

START_TEST(schemas_and_tools)
{
    struct answer a =
        ask(&server, CHAT,
            "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}], \"max_tokens\": 200, "
            "\"seed\": 1, \"response_format\": {\"type\": \"json_schema\", \"json_schema\": "
            "{\"schema\": {\"type\": \"object\", \"properties\": {\"n\": {\"type\": \"integer\", "
            "\"minimum\": 0, \"maximum\": 9}}, \"required\": [\"n\"], \"additionalProperties\": "
            "false}}}}");
    json_t *value = json_of(&a, 200);
    json_t *content = json_loads(text_at(value, "choices.0.message.content"), 0, NULL);
    ck_assert(json_is_integer(at(content, "n")));
    json_decref(content);
    json_decref(value);

    a = ask(&server, CHAT,
            "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}], \"max_tokens\": 200, "
            "\"tool_choice\": \"required\", \"tools\": [{\"type\": \"function\", \"function\": "
            "{\"name\": \"add\", \"parameters\": {\"type\": \"object\", \"properties\": {\"a\": "
            "{\"type\": \"boolean\"}}, \"required\": [\"a\"], \"additionalProperties\": false}}}], "
            "\"parallel_tool_calls\": false}");
    value = json_of(&a, 200);
    ck_assert_str_eq(text_at(value, "choices.0.message.tool_calls.0.function.name"), "add");
    ck_assert_str_eq(text_at(value, "choices.0.finish_reason"), "tool_calls");
    json_decref(value);
}
END_TEST

/* Anthropic's: blocks of text and of calls, whole and as a stream. */
START_TEST(messages)
{
    static const char body[] =
        "{\"max_tokens\": 20, \"seed\": 3, \"system\": \"Be brief.\", \"messages\": [{\"role\": "
        "\"user\", \"content\": [{\"type\": \"text\", \"text\": \"Hi\"}]}], \"stream\": %s}";
    static const char calls[] =
        "{\"max_tokens\": 200, \"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}, "
        "{\"role\": \"assistant\", \"content\": [{\"type\": \"tool_use\", \"id\": \"a\", "
        "\"name\": \"add\", \"input\": {\"a\": true}}]}, {\"role\": \"user\", \"content\": "
        "[{\"type\": \"tool_result\", \"tool_use_id\": \"a\", \"content\": \"2\"}]}], "
        "\"tool_choice\": {\"type\": \"tool\", \"name\": \"add\", "
        "\"disable_parallel_tool_use\": true}, \"tools\": [{\"name\": \"add\", "
        "\"input_schema\": {\"type\": \"object\", \"properties\": {\"a\": {\"type\": "
        "\"boolean\"}}, \"required\": [\"a\"], \"additionalProperties\": false}}]}";
    char one[512];
    snprintf(one, sizeof one, body, "false");
    struct answer a = ask(&server, "/v1/messages", one);
    json_t *value = json_of(&a, 200);
    char *text = strdup(text_at(value, "content.0.text"));
    ck_assert_str_eq(text_at(value, "stop_reason"), "max_tokens");
    ck_assert(json_is_null(at(value, "stop_sequence")));
    ck_assert_int_eq(json_integer_value(at(value, "usage.output_tokens")), 20);
    json_decref(value);
    snprintf(one, sizeof one, body, "true");
    a = ask(&server, "/v1/messages", one);
    ck_assert_int_eq(a.code, 200);
    char *joined = calloc(1, ANSWER_BYTES);
    for (const char *line = a.body; (line = strstr(line, "data: ")) != NULL; line++) {
        value = json_loadb(line + 6, strcspn(line + 6, "\n"), JSON_ALLOW_NUL, NULL);
        const char *piece = json_string_value(at(value, "delta.text"));
        strcat(joined, piece ? piece : "");
        json_decref(value);
    }
    ck_assert_str_eq(joined, text);
    ck_assert(strstr(a.body, "event: message_start\n") == a.body);
    ck_assert(strstr(a.body, "event: message_stop\n") != NULL);
    free(joined);
    free(a.text);
    char word[3] = { text[4], text[5], '\0' }, stops[64];
    snprintf(stops, sizeof stops, "false, \"stop_sequences\": [\"no such text\", \"%s\"]", word);
    snprintf(one, sizeof one, body, stops);
    a = ask(&server, "/v1/messages", one);
    value = json_of(&a, 200);
    ck_assert_str_eq(text_at(value, "stop_reason"), "stop_sequence");
    ck_assert_str_eq(text_at(value, "stop_sequence"), word);
    json_decref(value);
    free(text);
    a = ask(&server, "/v1/messages", calls);
    value = json_of(&a, 200);
    ck_assert_str_eq(text_at(value, "content.0.type"), "tool_use");
    ck_assert(json_is_boolean(at(value, "content.0.input.a")));
    ck_assert_str_eq(text_at(value, "stop_reason"), "tool_use");
    json_decref(value);
    a = ask(&server, "/v1/messages/count_tokens",
            "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]}");
    value = json_of(&a, 200);
    ck_assert_int_gt(json_integer_value(at(value, "input_tokens")), 0);
    json_decref(value);
    a = ask(&server, "/v1/messages",
            "{\"max_tokens\": 9, \"messages\": [{\"role\": \"user\", \"content\": [{\"type\": "
            "\"image\"}]}]}");
    value = json_of(&a, 400);
    ck_assert_str_eq(text_at(value, "error.type"), "invalid_request_error");
    ck_assert_str_eq(text_at(value, "type"), "error");
    json_decref(value);
    a = ask(&server, "/v1/messages", "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]}");
    json_decref(json_of(&a, 400));
}
END_TEST

/* A client sends back what the server answered: parts of the type "output_text" are text. */
START_TEST(output_text)
{
    static const char body[] =
        "{\"input\": [{\"role\": \"user\", \"content\": \"Hi\"}, {\"role\": \"assistant\", "
        "\"content\": %s}, {\"role\": \"user\", \"content\": \"Bye\"}], \"max_output_tokens\": 1}";
    static const char *const forms[] = { "\"Hello there\"",
                                         "[{\"type\": \"output_text\", \"text\": \"Hello there\", "
                                         "\"annotations\": []}]" };
    json_int_t n[2];
    for (int i = 0; i < 2; i++) {
        char request[512];
        snprintf(request, sizeof request, body, forms[i]);
        struct answer a = ask(&server, "/v1/responses", request);
        json_t *value = json_of(&a, 200);
        n[i] = json_integer_value(at(value, "usage.input_tokens"));
        json_decref(value);
    }
    ck_assert_int_gt(n[0], 0);
    ck_assert_int_eq(n[1], n[0]);
}
END_TEST

/* OpenAI's Responses: items, and events with a name and a number. */
START_TEST(responses)
{
    static const char body[] =
        "{\"input\": \"Hi\", \"seed\": 3, \"max_output_tokens\": 12, \"stream\": %s}";
    static const char calls[] =
        "{\"input\": [{\"role\": \"user\", \"content\": [{\"type\": \"input_text\", \"text\": "
        "\"Hi\"}]}, {\"type\": \"function_call\", \"call_id\": \"a\", \"name\": \"add\", "
        "\"arguments\": \"{}\"}, {\"type\": \"function_call_output\", \"call_id\": \"a\", "
        "\"output\": \"2\"}], \"tool_choice\": {\"type\": \"function\", \"name\": \"add\"}, "
        "\"parallel_tool_calls\": false, \"tools\": [{\"type\": \"function\", \"name\": \"add\", "
        "\"parameters\": {\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"boolean\"}}, "
        "\"required\": [\"a\"], \"additionalProperties\": false}}]}";
    char one[256];
    snprintf(one, sizeof one, body, "false");
    struct answer a = ask(&server, "/v1/responses", one);
    json_t *value = json_of(&a, 200);
    char *text = strdup(text_at(value, "output.0.content.0.text"));
    ck_assert_str_eq(text_at(value, "status"), "incomplete");
    ck_assert_str_eq(text_at(value, "incomplete_details.reason"), "max_output_tokens");
    ck_assert_str_eq(text_at(value, "output.0.status"), "incomplete");
    json_decref(value);
    snprintf(one, sizeof one, body, "true");
    a = ask(&server, "/v1/responses", one);
    char *joined = calloc(1, ANSWER_BYTES);
    int number = 0;
    for (const char *line = a.body; (line = strstr(line, "data: ")) != NULL; line++) {
        value = json_loadb(line + 6, strcspn(line + 6, "\n"), JSON_ALLOW_NUL, NULL);
        ck_assert_int_eq(json_integer_value(at(value, "sequence_number")), number++);
        if (strcmp(text_at(value, "type"), "response.output_item.done") == 0)
            ck_assert_str_eq(text_at(value, "item.status"), "incomplete");
        const char *piece = json_string_value(at(value, "delta"));
        strcat(joined, piece ? piece : "");
        json_decref(value);
    }
    ck_assert_str_eq(joined, text);
    ck_assert(strstr(a.body, "event: response.created\n") == a.body);
    ck_assert(strstr(a.body, "event: response.incomplete\n") != NULL);
    free(joined);
    free(text);
    free(a.text);
    a = ask(&server, "/v1/responses", calls);
    value = json_of(&a, 200);
    ck_assert_str_eq(text_at(value, "output.0.type"), "function_call");
    ck_assert_str_eq(text_at(value, "output.0.name"), "add");
    ck_assert_str_eq(text_at(value, "status"), "completed");
    ck_assert_str_eq(text_at(value, "tool_choice.name"), "add");
    ck_assert_str_eq(text_at(value, "tools.0.name"), "add");
    ck_assert(json_is_false(at(value, "parallel_tool_calls")));
    json_decref(value);
    a = ask(&server, "/v1/responses/input_tokens", "{\"input\": \"Hi\"}");
    value = json_of(&a, 200);
    ck_assert_int_gt(json_integer_value(at(value, "input_tokens")), 0);
    json_decref(value);
    a = ask(&server, "/v1/responses", "{\"input\": \"Hi\", \"previous_response_id\": \"a\"}");
    json_decref(json_of(&a, 400));
}
END_TEST

/* Ollama's durations are nanoseconds: together no more than the request took, and most of that. */
START_TEST(durations)
{
    static const char *const names[] = { "total_duration", "prompt_eval_duration",
                                         "eval_duration" };
    double seconds[3];
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    struct answer a = ask(&server, "/api/generate",
                          "{\"prompt\": \"Hi\", \"stream\": false, \"options\": {\"num_predict\": "
                          "300, \"ignore_eos\": true}}");
    clock_gettime(CLOCK_MONOTONIC, &to);
    double all = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
    json_t *value = json_of(&a, 200);
    for (int i = 0; i < 3; i++)
        seconds[i] = (double)json_integer_value(at(value, names[i])) / 1e9;
    ck_assert_double_le(seconds[0], all);
    ck_assert_double_gt(seconds[0], all / 50.0);
    ck_assert_double_eq_tol(seconds[1] + seconds[2], seconds[0], 1e-8);
    ck_assert_double_gt(seconds[2], seconds[1]); /* 300 tokens, after a few */
    json_decref(value);
}
END_TEST

/* Ollama's: lines of JSON unless "stream" is false. */
START_TEST(ollama)
{
    static const char body[] =
        "{\"model\": \"a\", \"%s, \"options\": {\"num_predict\": 12, \"seed\": 3}%s}";
    static const char chat[] = "messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]";
    char one[512];
    snprintf(one, sizeof one, body, chat, ", \"stream\": false");
    struct answer a = ask(&server, "/api/chat", one);
    json_t *value = json_of(&a, 200);
    char *text = strdup(text_at(value, "message.content"));
    ck_assert(json_is_true(at(value, "done")));
    ck_assert_str_eq(text_at(value, "done_reason"), "length");
    ck_assert_int_eq(json_integer_value(at(value, "eval_count")), 12);
    json_decref(value);
    snprintf(one, sizeof one, body, "prompt\": \"Hi\"", ", \"stream\": false");
    a = ask(&server, "/api/generate", one);
    value = json_of(&a, 200);
    ck_assert_str_eq(text_at(value, "response"), text);
    json_decref(value);
    snprintf(one, sizeof one, body, chat, "");
    a = ask(&server, "/api/chat", one);
    ck_assert_int_eq(a.code, 200);
    char *joined = calloc(1, ANSWER_BYTES);
    size_t n = 0;
    for (const char *line = a.body; *line; line += strcspn(line, "\n") + 1, n++) {
        value = json_loadb(line, strcspn(line, "\n"), JSON_ALLOW_NUL, NULL);
        ck_assert_ptr_nonnull(value);
        strcat(joined, text_at(value, "message.content"));
        json_decref(value);
    }
    ck_assert_str_eq(joined, text);
    ck_assert_uint_gt(n, 3);
    free(joined);
    free(text);
    free(a.text);
    static const char *const routes[] = { "/api/version", "/api/tags", "/api/ps" };
    for (int i = 0; i < 3; i++) {
        a = ask(&server, routes[i], "");
        json_decref(json_of(&a, 200));
    }
    a = ask(&server, "/api/show", "{\"model\": \"a\"}");
    json_decref(json_of(&a, 200));
    a = ask(&server, "/api/embed", "{\"input\": [\"a\", \"b\"]}");
    value = json_of(&a, 200);
    ck_assert_uint_eq(json_array_size(at(value, "embeddings")), 2);
    json_decref(value);
    a = ask(&server, "/api/generate", "{\"prompt\": \"a\", \"raw\": true}");
    value = json_of(&a, 400);
    ck_assert(strstr(text_at(value, "error"), "raw is not supported") != NULL);
    json_decref(value);
}
END_TEST

/* llama-server's: the members of its answers, prompts in all its forms. */
START_TEST(native_completion)
{
    static const char body[] =
        "{\"prompt\": %s, \"n_predict\": 12, \"seed\": 3, \"ignore_eos\": true%s}";
    char one[4096];
    snprintf(one, sizeof one, body, "\"Once upon\"", ", \"return_tokens\": true");
    struct answer a = ask(&server, "/completion", one);
    json_t *value = json_of(&a, 200);
    char *text = strdup(text_at(value, "content"));
    ck_assert_uint_eq(json_array_size(at(value, "tokens")), 12);
    ck_assert_int_eq(json_integer_value(at(value, "tokens_predicted")), 12);
    ck_assert_int_eq(json_integer_value(at(value, "generation_settings.n_predict")), 12);
    ck_assert_int_eq(json_integer_value(at(value, "generation_settings.seed")), 3);
    ck_assert_ptr_nonnull(strstr(text_at(value, "prompt"), "Once upon"));
    ck_assert_int_eq(json_integer_value(at(value, "timings.prompt_n")) +
                         json_integer_value(at(value, "timings.cache_n")),
                     json_integer_value(at(value, "tokens_evaluated")));
    ck_assert_int_eq(json_is_true(at(value, "has_new_line")), strchr(text, '\n') != NULL);
    ck_assert_str_eq(text_at(value, "stop_type"), "limit");
    json_decref(value);

    /* the same text, as a stream and of the same prompt as an object */
    snprintf(one, sizeof one, body, "{\"prompt_string\": \"Once upon\"}", ", \"stream\": true");
    a = ask(&server, "/completion", one);
    char *joined = calloc(1, ANSWER_BYTES);
    for (const char *line = a.body; (line = strstr(line, "data: ")) != NULL; line++) {
        value = json_loadb(line + 6, strcspn(line + 6, "\n"), JSON_ALLOW_NUL, NULL);
        strcat(joined, text_at(value, "content"));
        json_decref(value);
    }
    ck_assert_str_eq(joined, text);
    ck_assert_ptr_nonnull(strstr(a.body, "\"stop\":true"));
    free(joined);
    free(a.text);

    /* the word that ended it */
    char word[3] = { text[4], text[5], '\0' }, stop[64];
    snprintf(stop, sizeof stop, ", \"stop\": [\"no such text\", \"%s\"]", word);
    snprintf(one, sizeof one, body, "\"Once upon\"", stop);
    a = ask(&server, "/completion", one);
    value = json_of(&a, 200);
    ck_assert_str_eq(text_at(value, "stop_type"), "word");
    ck_assert_str_eq(text_at(value, "stopping_word"), word);
    json_decref(value);
    free(text);

    snprintf(one, sizeof one, body, "[\"Once upon\", [72, \"a\"]]", ", \"n_cmpl\": 2");
    a = ask(&server, "/completion", one);
    value = json_of(&a, 200);
    ck_assert_uint_eq(json_array_size(value), 4);
    ck_assert_int_eq(json_integer_value(at(value, "3.index")), 3);
    json_decref(value);
    snprintf(one, sizeof one, body, "[72, \"a\", 73]",
             ", \"response_fields\": [\"content\", \"generation_settings/top_k\", \"x/y\"]");
    a = ask(&server, "/completion", one);
    value = json_of(&a, 200);
    ck_assert_uint_eq(json_object_size(value), 2);
    ck_assert(json_is_integer(json_object_get(value, "generation_settings/top_k")));
    json_decref(value);
    char many[2048] = "[";
    for (int i = 0; i < 257; i++) /* more than may wait */
        strcat(many, i ? ", \"a\"" : "\"a\"");
    strcat(many, "]");
    snprintf(one, sizeof one, body, many, "");
    static const char *const routes[] = { "/completion", TEXT };
    for (int i = 0; i < 2; i++) {
        a = ask(&server, routes[i], one);
        value = json_of(&a, 400);
        ck_assert_str_eq(text_at(value, "error.message"),
                         "prompt has 257 prompts; expected at most 256");
        json_decref(value);
    }
    snprintf(one, sizeof one, body, "\"a\"", ", \"grammar\": \"root ::= \\\"yes\\\"\"");
    for (int i = 0; i < 2; i++) {
        a = ask(&server, routes[i], one);
        value = json_of(&a, 200);
        ck_assert_str_eq(text_at(value, i ? "choices.0.text" : "content"), "yes");
        json_decref(value);
    }
}
END_TEST

START_TEST(embeddings)
{
    struct answer a = ask(&server, "/v1/embeddings", "{\"input\": [\"a cat\", [72, 73]]}");
    json_t *value = json_of(&a, 200);
    size_t n = json_array_size(at(value, "data.0.embedding"));
    double sum = 0.0, short_sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        double element = json_real_value(json_array_get(at(value, "data.1.embedding"), i));
        sum += element * element;
    }
    ck_assert_double_eq_tol(sum, 1.0, 1e-5);
    json_decref(value);
    a = ask(&server, "/v1/embeddings", "{\"input\": \"a cat\", \"encoding_format\": \"base64\"}");
    value = json_of(&a, 200);
    ck_assert_uint_eq(strlen(text_at(value, "data.0.embedding")), (n * 4 + 2) / 3 * 4);
    json_decref(value);
    a = ask(&server, "/v1/embeddings", "{\"input\": \"a cat\", \"dimensions\": 5}");
    value = json_of(&a, 200);
    ck_assert_uint_eq(json_array_size(at(value, "data.0.embedding")), 5);
    for (size_t i = 0; i < 5; i++) {
        double element = json_real_value(json_array_get(at(value, "data.0.embedding"), i));
        short_sum += element * element;
    }
    ck_assert_double_eq_tol(short_sum, 1.0, 1e-5);
    json_decref(value);
    a = ask(&server, "/v1/embeddings", "{\"input\": [[1000000]]}");
    json_decref(json_of(&a, 400));
    a = ask(&server, "/v1/embeddings", "{\"input\": [72, \"a cat\", 73]}"); /* one text */
    value = json_of(&a, 200);
    ck_assert_uint_eq(json_array_size(at(value, "data")), 1);
    json_decref(value);
    a = ask(&server, "/v1/embeddings", "{\"input\": \"\"}");
    free(a.text);
    a = ask(&server, "/v1/embeddings", "{\"input\": [], \"model\": \"a\"}");
    json_decref(json_of(&a, 400));
    a = ask(&server, "/v1/embeddings", "{\"input\": \"a\", \"prompt_name\": \"query\"}");
    value = json_of(&a, 400);
    ck_assert_str_eq(text_at(value, "error.param"), "prompt_name");
    ck_assert_ptr_nonnull(
        strstr(text_at(value, "error.message"), "prompt \"query\": the model has no prompts"));
    json_decref(value);
    a = ask(&server, "/v1/embeddings", "{\"input\": [72], \"prompt_name\": \"\"}");
    value = json_of(&a, 400);
    ck_assert_ptr_nonnull(strstr(text_at(value, "error.message"), "input has token ids"));
    json_decref(value);
}
END_TEST

/* Text `i` as JSON: its number and up to 118 characters. */
static const char *numbered_text(int i)
{
    static const char all[] =
        " a cat sat on the mat, and a dog sat on the cat, and nobody knew how long it would last, "
        "or why, or who had put the mat there";
    static char text[sizeof all + 16];
    snprintf(text, sizeof text, "\"%d%.*s\"", i, i * 37 % 60 * 2, all);
    return text;
}

/* More texts than one pass holds, short and long: each has the row that it has alone. */
START_TEST(many_embeddings)
{
    enum { TEXTS = 90, EACH = 7 };
    char *body = calloc(1, 1 << 16), one[256], path[64];
    strcpy(body, "{\"input\": [");
    for (int i = 0; i < TEXTS; i++)
        sprintf(body + strlen(body), "%s%s", i ? ", " : "", numbered_text(i));
    strcat(body, "]}");
    struct answer a = ask(&server, "/v1/embeddings", body);
    json_t *all = json_of(&a, 200);
    ck_assert_uint_eq(json_array_size(at(all, "data")), TEXTS);
    for (int i = 0; i < TEXTS; i++) {
        snprintf(path, sizeof path, "data.%d.index", i);
        ck_assert_int_eq(integer_at(all, path), i);
        if (i % EACH != 0)
            continue;
        snprintf(one, sizeof one, "{\"input\": %s}", numbered_text(i));
        a = ask(&server, "/v1/embeddings", one);
        json_t *alone = json_of(&a, 200);
        snprintf(path, sizeof path, "data.%d.embedding", i);
        ck_assert_msg(json_equal(at(all, path), at(alone, "data.0.embedding")), "text %d", i);
        json_decref(alone);
    }
    json_decref(all);
    free(body);
}
END_TEST

/* `n` words, one token each at least. */
static void write_words(char *to, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to += sprintf(to, "cat ");
}

/* Of several texts or prompts the message names the one that does not fit. */
START_TEST(numbers_of_texts)
{
    enum { WORDS = 4000 };
    char *text = malloc(4 * WORDS + 1), *body = malloc(4 * WORDS + 256);
    write_words(text, WORDS);
    sprintf(body, "{\"input\": [\"a\", \"b\", \"%s\"]}", text);
    struct answer a = ask(&server, "/v1/embeddings", body);
    json_t *value = json_of(&a, 400);
    ck_assert_str_eq(text_at(value, "error.code"), "context_length_exceeded");
    ck_assert_msg(strncmp(text_at(value, "error.message"), "input[2] is too long: it has ", 29) ==
                      0,
                  "%s", text_at(value, "error.message"));
    json_decref(value);
    sprintf(body, "{\"input\": \"%s\"}", text);
    a = ask(&server, "/v1/embeddings", body);
    value = json_of(&a, 400);
    ck_assert_msg(strncmp(text_at(value, "error.message"), "input is too long", 17) == 0, "%s",
                  text_at(value, "error.message"));
    json_decref(value);
    sprintf(body, "{\"prompt\": [\"a\", \"%s\"], \"max_tokens\": 1}", text);
    a = ask(&server, "/v1/completions", body);
    value = json_of(&a, 400);
    ck_assert_msg(strncmp(text_at(value, "error.message"), "prompt[1]: ", 11) == 0, "%s",
                  text_at(value, "error.message"));
    json_decref(value);
    /* cut if the request says so */
    sprintf(body, "{\"input\": [\"a\", \"%s\"], \"truncate\": true}", text);
    a = ask(&server, "/v1/embeddings", body);
    value = json_of(&a, 200);
    ck_assert_int_lt(json_integer_value(at(value, "usage.prompt_tokens")), WORDS);
    json_decref(value);
    free(text);
    free(body);
}
END_TEST

/* ---- Many at once ------------------------------------------------------- */
enum { CLIENTS = 8 };

static void *ask_in_thread(void *user)
{
    char body[512];
    int number = *(int *)user;
    snprintf(body, sizeof body,
             "{\"prompt\": \"Once upon a time number %d\", \"seed\": %d, \"max_tokens\": 30, "
             "\"logprobs\": 1}",
             number % 3, number);
    struct answer a = ask(&server, TEXT, body);
    json_t *value = json_of(&a, 200);
    char *choices = json_dumps(at(value, "choices"), JSON_SORT_KEYS);
    json_decref(value);
    return choices;
}

START_TEST(the_same_beside_others)
{
    pthread_t threads[CLIENTS];
    int numbers[CLIENTS];
    char *alone[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        numbers[i] = i;
        alone[i] = ask_in_thread(&numbers[i]);
    }
    for (int i = 0; i < CLIENTS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, ask_in_thread, &numbers[i]), 0);
    for (int i = 0; i < CLIENTS; i++) {
        void *beside;
        pthread_join(threads[i], &beside);
        ck_assert_str_eq(beside, alone[i]);
        free(beside);
        free(alone[i]);
    }
}
END_TEST

/* A number of /metrics. */
static long metric_of(const struct child *child, const char *name)
{
    char line[128];
    struct answer a = ask(child, "/metrics", "");
    snprintf(line, sizeof line, "\nakunu_%s ", name);
    const char *found = strstr(a.body, line);
    ck_assert_msg(found != NULL, "no %s in %s", name, a.body);
    long value = atol(found + strlen(line));
    free(a.text);
    return value;
}

static long metric(const char *name)
{
    return metric_of(&server, name);
}

static void wait_for_metric(const char *name, long value)
{
    for (int i = 0; metric(name) != value; i++) {
        ck_assert_msg(i < 200, "%s is not %ld", name, value);
        nap(0.05);
    }
}

/* Sends a request that generates for long, and leaves. */
static int begin_long(const char *options)
{
    char text[512], body[256];
    int fd = open_connection(&server);
    snprintf(body, sizeof body,
             "{\"prompt\": \"Once\", \"ignore_eos\": true, \"max_tokens\": 2000%s}", options);
    int n = snprintf(text, sizeof text,
                     "POST " TEXT " HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n%s",
                     strlen(body), body);
    send_text(fd, text, (size_t)n);
    return fd;
}

START_TEST(clients_that_leave)
{
    wait_for_metric("requests_running", 0);
    long cancelled = metric("requests_cancelled_total");
    for (int i = 0; i < 4; i++) {
        int fd = begin_long(i % 2 ? ", \"stream\": true" : "");
        nap(0.05);
        if (i < 2)
            close(fd);
        else
            shutdown(fd, SHUT_WR);
        /* not before the request has come, however busy the machine is */
        wait_for_metric("requests_cancelled_total", cancelled + i + 1);
        wait_for_metric("requests_running", 0);
        if (i >= 2)
            close(fd);
    }
    struct answer a = ask(&server, "/health", "");
    json_decref(json_of(&a, 200));
}
END_TEST

/* A stream that is longer than all buffers, and is not read for a while: no more text is generated
 * until it is read. A Unix socket holds about 200 KB, and --memory leaves 67 KB for what is not
 * read. */
START_TEST(clients_that_read_late)
{
    enum { TOKENS = 1500 };
    static const char form[] =
        "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"ignore_eos\": true, "
        "\"max_tokens\": %d, \"stream\": true, \"logprobs\": true, \"top_logprobs\": 20}";
    char folder[] = "/tmp/akunu-late-XXXXXX", path[64], body[256];
    const char *const flags[] = { "--host", path, "--metrics", "--memory", "0.3", NULL };
    size_t n_tokens = 0;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/s.sock", folder);
    struct child child = start_server(flags);
    snprintf(body, sizeof body, form, TOKENS);
    int fd = begin_request(&child, "POST", CHAT, "", body);
    long made;
    do { /* until no more text comes */
        made = metric_of(&child, "generated_tokens_total");
        nap(0.5);
    } while (made == 0 || metric_of(&child, "generated_tokens_total") != made);
    ck_assert_int_lt(made, TOKENS);
    struct answer a = read_answer(fd);
    for (const char *at = a.body; (at = strstr(at, "\"top_logprobs\":[{")) != NULL; at++)
        n_tokens++;
    ck_assert_uint_eq(n_tokens, TOKENS);
    ck_assert_ptr_nonnull(strstr(a.body, "data: [DONE]"));
    ck_assert_int_eq(metric_of(&child, "generated_tokens_total"), TOKENS);
    free(a.text);
    ck_assert_int_eq(stop_server(&child, SIGTERM), 0);
    rmdir(folder);
}
END_TEST

/* A stream whose time is over ends with an error, in the form of its API, and another answer is
 * one. */
START_TEST(late_streams)
{
#define LONG "\"max_tokens\": 100000, \"ignore_eos\": true, \"stream\": true"
#define LATE "the time-out of 1 s passed after %lu tokens"
#define ERROR                                                                                      \
    "{\"error\":{\"message\":\"" LATE                                                              \
    "\",\"type\":\"unavailable_error\",\"param\":null,\"code\":null}}"
#define OPENAI "\n\ndata: " ERROR "\n\ndata: [DONE]\n\n"
#define HI "\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], "
    static const struct {
        const char *path, *body, *end;
    } cases[] = {
        { TEXT, "{\"prompt\": \"a\", " LONG "}", OPENAI },
        { CHAT, "{" HI LONG "}", OPENAI },
        { "/completion", "{\"prompt\": \"a\", " LONG "}", OPENAI },
        { "/v1/responses", "{\"input\": \"a\", " LONG "}", OPENAI },
        { "/api/chat", "{" HI "\"options\": {" LONG "}}", "\n{\"error\":\"" LATE "\"}\n" },
        { "/v1/messages", "{" HI LONG "}",
          "\n\nevent: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\","
          "\"message\":\"" LATE "\"}}\n\n" },
        { "/api/generate", "{\"prompt\": \"a\", \"options\": {" LONG "}}",
          "\n{\"error\":\"" LATE "\"}\n" },
    };
#undef LONG
#undef HI
#undef OPENAI
#undef ERROR
    static const char *const flags[] = { "--timeout", "1", "-c", "131072", NULL };
    struct child child = start_server(flags);
    int fds[sizeof cases / sizeof *cases];
    int whole = begin_request(&child, "POST", TEXT, "",
                              "{\"prompt\": \"a\", \"max_tokens\": 100000, \"ignore_eos\": true, "
                              "\"logprobs\": 1}");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        fds[i] = begin_request(&child, "POST", cases[i].path, "", cases[i].body);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char end[512];
        struct answer a = read_answer(fds[i]);
        while (a.code == 503) { /* its time was over before it had a token: the machine is busy */
            free(a.text);
            a = ask(&child, cases[i].path, cases[i].body);
        }
        ck_assert_int_eq(a.code, 200);
        const char *late = strstr(a.body, "the time-out of");
        unsigned long n;
        ck_assert_msg(late && sscanf(late, LATE, &n) == 1 && n > 0, "case %zu: … %s", i,
                      a.body + (a.n > 500 ? a.n - 500 : 0));
        snprintf(end, sizeof end, cases[i].end, n);
        ck_assert_uint_gt(a.n, strlen(end));
        ck_assert_str_eq(a.body + a.n - strlen(end), end);
        free(a.text);
    }
#undef LATE
    struct answer a = read_answer(whole);
    json_t *value = json_of(&a, 503);
    ck_assert_int_eq(strncmp(text_at(value, "error.message"), "the time-out of 1 s passed", 26), 0);
    json_decref(value);
    ck_assert_int_eq(stop_server(&child, SIGTERM), 0);
}
END_TEST

/* ---- Large bodies ------------------------------------------------------- */
/* The members with enough spaces after them for the thread of large bodies. */
static char *enlarge(const char *members)
{
    enum { SPACES = 200000 };
    char *body = malloc(strlen(members) + SPACES + 3);
    ck_assert_ptr_nonnull(body);
    sprintf(body, "{%s%*s}", members, SPACES, "");
    return body;
}

/* A list of prompts of which the second is too long: the first, which runs already, is dropped. */
START_TEST(second_prompt_too_long)
{
    enum { TOKENS = 2049, TRIES = 6 };
    char *members = malloc(3 * TOKENS + 64), *to = members;
    to += sprintf(to, "\"prompt\": [\"Once\", [72");
    for (int i = 1; i < TOKENS; i++)
        to += sprintf(to, ",72");
    strcpy(to, "]]");
    char *body = enlarge(members);
    for (int i = 0; i < TRIES; i++) {
        struct answer a = ask(&server, TEXT, body);
        json_t *value = json_of(&a, 400);
        ck_assert_str_eq(text_at(value, "error.code"), "context_length_exceeded");
        ck_assert_msg(strncmp(text_at(value, "error.message"), "prompt[1]: ", 11) == 0, "%s",
                      text_at(value, "error.message"));
        json_decref(value);
    }
    wait_for_metric("requests_running", 0);
    free(body);
    free(members);
}
END_TEST

START_TEST(large_bodies)
{
    static const struct {
        const char *path, *members;
        int code;
    } cases[] = {
        { TEXT, "\"prompt\": \"Once upon\", \"max_tokens\": 8, \"seed\": 3", 200 },
        { TEXT, "\"prompt\": \"Once\", \"max_tokens\": 8, \"seed\": 3, \"stream\": true", 200 },
        { CHAT,
          "\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}], \"max_tokens\": 4, "
          "\"temperature\": 0",
          200 },
        { "/completion", "\"prompt\": \"Once\", \"n_predict\": 4, \"grammar\": \"root ::= [a-z]+\"",
          200 },
        { "/tokenize", "\"content\": \"Once upon\"", 200 },
        { "/detokenize", "\"tokens\": [72, 73]", 200 },
        { "/infill", "\"input_prefix\": \"a\"", 400 },
        { "/apply-template", "\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]", 200 },
        { "/v1/embeddings", "\"input\": \"Once\"", 200 },
        { CHAT, "\"messages\": 5", 400 },
        { "/completion", "\"prompt\": \"Once\", \"grammar\": \"root ::= [\"", 400 },
    };
    enum { N = sizeof cases / sizeof *cases };
    int fds[N];
    for (int i = 0; i < N; i++) { /* all at once */
        char *body = enlarge(cases[i].members), head[256];
        fds[i] = open_connection(&server);
        int n = snprintf(head, sizeof head,
                         "POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                         "Content-Length: %zu\r\n\r\n",
                         cases[i].path, strlen(body));
        send_text(fds[i], head, (size_t)n);
        send_text(fds[i], body, strlen(body));
        free(body);
    }
    for (int i = 0; i < N; i++) {
        struct answer large = read_answer(fds[i]);
        ck_assert_msg(large.code == cases[i].code, "case %d: %s", i, large.text);
        free(large.text);
    }
    for (int i = 0; i < 4; i++) { /* clients that leave before their turn, and while it is theirs */
        char *body = enlarge("\"prompt\": \"Once\", \"max_tokens\": 2000"), head[256];
        int fd = open_connection(&server);
        int n = snprintf(head, sizeof head,
                         "POST " TEXT " HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n",
                         strlen(body));
        send_text(fd, head, (size_t)n);
        send_text(fd, body, strlen(body));
        nap(0.002 * i);
        close(fd);
        free(body);
    }
    wait_for_metric("requests_running", 0);
    struct answer small =
        ask(&server, TEXT, "{\"prompt\": \"Once\", \"max_tokens\": 8, \"seed\": 3}");
    char *body = enlarge(cases[1].members);
    struct answer large = ask(&server, TEXT, body);
    size_t n;
    char *text = join_stream(&large, "choices.0.text", &n);
    json_t *value = json_of(&small, 200);
    ck_assert_str_eq(text, text_at(value, "choices.0.text"));
    json_decref(value);
    free(text);
    free(large.text);
    free(body);
}
END_TEST

/* ---- Errors ------------------------------------------------------------- */
START_TEST(refusals)
{
    static const struct {
        const char *path, *body;
        int code;
        const char *said;
    } cases[] = {
        { CHAT, "{", 400, "the body is no valid JSON: line 1, column 1" },
        { CHAT, "[]", 400, "the body is a list; expected an object" },
        { CHAT, "{\"a\": NaN}", 400, "NaN or Infinity, which JSON lacks" },
        { CHAT, "{\"a\": [-Infinity]}", 400, "NaN or Infinity, which JSON lacks" },
        { CHAT, "12345678901234567890", 400, "the body is the number 12345678901234567890" },
        { TEXT, "{\"prompt\": \"a\", \"seed\": 12345678901234567890}", 400,
          "seed is the number 12345678901234567890; expected an integer from -1 to "
          "9223372036854775807" },
        { TEXT, "{\"prompt\": \"a\", \"temperature\": 1e400}", 400,
          "temperature is the number 1e400; expected a number from 0 to 100" },
        { TEXT, "{\"prompt\": 12345678901234567890}", 400, "prompt is the number 1234" },
        { CHAT, "{\"messages\": [12345678901234567890]}", 400, "messages[0] is the number 1234" },
        { CHAT,
          "{\"messages\": [{\"role\": \"user\", \"content\": \"\"}], \"response_format\": "
          "12345678901234567890}",
          400, "response_format is the number 12345678901234567890" },
        { CHAT, "{\"a\": 1, \"a\": 2}", 400, "duplicate object key" },
        { CHAT, "{\"messages\": \"\\ud800\"}", 400, "no valid JSON" },
        { CHAT, "{}", 400, "messages is nothing; expected a list of messages" },
        { CHAT, "{\"messages\": []}", 400, "the list is empty" },
        { CHAT, "{\"messages\": [{\"role\": \"me\", \"content\": \"\"}]}", 400,
          "messages[0].role is \\\"me\\\"" },
        { CHAT, "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image_url\"}]}]}",
          400, "images, audio and files cannot be read" },
        { TEXT, "{}", 400, "prompt is nothing" },
        { TEXT, "{\"prompt\": 5}", 400, "prompt is the number 5" },
        { TEXT, "{\"prompt\": \"a\", \"temperature\": \"hot\"}", 400,
          "temperature is \\\"hot\\\"; expected a number from 0 to 100" },
        { TEXT, "{\"prompt\": \"a\", \"n\": 0}", 400, "n is the number 0" },
        { TEXT, "{\"prompt\": \"a\", \"best_of\": 2}", 400, "best_of is 2" },
        { TEXT, "{\"prompt\": \"a\", \"suffix\": \"b\"}", 400, "suffix is not supported" },
        { TEXT, "{\"prompt\": \"a\", \"stop\": \"\"}", 400, "stop is \\\"\\\"" },
        { TEXT, "{\"prompt\": [1000000]}", 400,
          "prompt has the token 1000000, and the vocabulary has" },
        { CHAT,
          "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"response_format\": "
          "{\"type\": \"json_schema\", \"json_schema\": {\"schema\": {\"uniqueItems\": true, "
          "\"type\": \"array\"}}}}",
          400, "uniqueItems" },
        { CHAT,
          "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"tool_choice\": "
          "\"required\"}",
          400, "there are no tools" },
        { CHAT, "{\"messages\": [{\"role\": \"assistant\", \"tool_calls\": [{\"id\": {}}]}]}", 400,
          "messages[0].tool_calls[0].id is an object" },
        { TEXT, "{\"prompt\": \"a\", \"samplers\": [5]}", 400, "samplers is a list" },
        { TEXT, "{\"prompt\": \"a\", \"logit_bias\": [[\"\", 1]]}", 400, "logit_bias is a list" },
        { TEXT, "{\"prompt\": \"a\", \"logit_bias\": {\"5\": \"a\"}}", 400,
          "logit_bias is an object" },
        { TEXT, "{\"prompt\": \"a\", \"samplers\": [\"no\"]}", 400, "no" },
        { "/api/generate", "{\"prompt\": \"a\", \"options\": 5}", 400, "options is the number 5" },
        { "/v1/messages",
          "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"max_tokens\": 1, "
          "\"tool_choice\": {\"type\": \"auto\", \"name\": {}}}",
          400, "tool_choice is an object" },
        { "/v1/messages",
          "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"max_tokens\": 1, "
          "\"tool_choice\": {\"type\": \"auto\", \"disable_parallel_tool_use\": 1}}",
          400, "disable_parallel_tool_use is the number 1" },
        { "/v1/responses",
          "{\"input\": \"a\", \"tools\": [{\"type\": \"function\", \"name\": \"f\", "
          "\"parameters\": []}]}",
          400, "tools[0] is not a function" },
        { "/v1/responses", "{\"input\": \"a\", \"text\": []}", 400, "text is a list" },
        { "/v1/responses",
          "{\"input\": [{\"type\": \"function_call_output\", \"call_id\": 1, \"output\": \"\"}]}",
          400, "function_call_output" },
        { CHAT, "{\"messages\": [{\"role\": \"tool\", \"content\": \"\", \"tool_call_id\": {}}]}",
          400, "messages[0].tool_call_id is an object" },
        { "/apply-template",
          "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"tools\": [{}]}", 400,
          "tools[0] is not a function" },
        { "/v1/messages",
          "{\"max_tokens\": 1, \"messages\": [{\"role\": \"user\", \"content\": [{\"type\": "
          "\"tool_use\", \"id\": "
          "\"a\", "
          "\"name\": \"f\", \"input\": []}]}]}",
          400, "its members" },
        { "/api/generate", "{\"prompt\": \"a\", \"think\": {}}", 400, "think is an object" },
        { "/api/generate", "{\"prompt\": \"a\", \"format\": 5}", 400,
          "format is the number 5; expected json or a JSON Schema" },
        { "/api/chat", "{\"messages\": [], \"format\": \"xml\"}", 400, "the list is empty" },
        { "/api/chat",
          "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"format\": \"xml\"}", 400,
          "format is \\\"xml\\\"; expected json or a JSON Schema" },
        { "/nowhere", "{}", 404, "there is no route /nowhere" },
        { "/health", "{}", 405, "/health allows GET, HEAD, OPTIONS" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct answer a = ask_with(&server, "POST", cases[i].path, "", cases[i].body);
        ck_assert_msg(a.code == cases[i].code && strstr(a.body, cases[i].said), "%s %s: %s",
                      cases[i].path, cases[i].body, a.text);
        free(a.text);
    }
    char *long_text = calloc(1, 20000);
    strcpy(long_text, "{\"prompt\": \"");
    for (size_t n = strlen(long_text), i = 0; i < 9000; i++)
        long_text[n++] = i % 2 ? ' ' : 'q';
    strcat(long_text, "\"}");
    struct answer a = ask(&server, TEXT, long_text);
    json_t *value = json_of(&a, 400);
    ck_assert_str_eq(text_at(value, "error.code"), "context_length_exceeded");
    json_decref(value);
    free(long_text);
    static const struct {
        const char *type;
        int code;
    } types[] = {
        { "text/plain", 415 },       { "application", 415 },
        { "application/yaml", 415 }, { "application/jsonx", 415 },
        { "Application/JSON", 400 }, { "application/json; charset=utf-8", 400 },
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char header[64];
        snprintf(header, sizeof header, "Content-Type: %s\r\n", types[i].type);
        a = ask_with(&server, "POST", TEXT, header, "{}");
        json_decref(json_of(&a, types[i].code));
    }
    char deep[400] = "";
    memset(deep, '[', 200);
    a = ask(&server, TEXT, deep);
    json_decref(json_of(&a, 400));
}
END_TEST

/* ---- Life --------------------------------------------------------------- */
/* The first SIGTERM lets a stream end whole, a second one cuts it off. */
START_TEST(drains)
{
    size_t n;
    int fd = begin_long(", \"stream\": true");
    wait_for_metric("requests_running", 1);
    kill(server.pid, SIGTERM);
    struct answer a = read_answer(fd);
    char *text = join_stream(&a, "choices.0.text", &n);
    ck_assert_uint_gt(n, 10);
    free(text);
    free(a.text);
    int status;
    ck_assert_int_eq(waitpid(server.pid, &status, 0), server.pid);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    start();
    fd = begin_long(", \"stream\": true");
    wait_for_metric("requests_running", 1);
    kill(server.pid, SIGTERM);
    nap(0.05);
    ck_assert_int_eq(stop_server(&server, SIGTERM), 0);
    close(fd);
    start();
}
END_TEST

/* Signals until the very end do not change the exit status. */
START_TEST(impatient_signals)
{
    int status;
    for (int i = 0; i < 5; i++) {
        pid_t ended = 0;
        while (ended == 0) {
            kill(server.pid, i % 2 ? SIGINT : SIGTERM);
            ended = waitpid(server.pid, &status, WNOHANG);
        }
        ck_assert_int_eq(ended, server.pid);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "round %d: status %x", i,
                      status);
        start();
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { small_routes,
                                   page,
                                   streams_say_the_same,
                                   prompts_and_completions,
                                   usage,
                                   counts_of_tokens,
                                   biases,
                                   offsets_of_logprobs,
                                   offsets_of_control_tokens,
                                   offsets_after_bos,
                                   long_tokens,
                                   offsets_at_a_stop,
                                   many_stops,
                                   arguments_of_earlier_calls,
                                   long_integers,
                                   schemas_and_tools,
                                   messages,
                                   output_text,
                                   responses,
                                   durations,
                                   ollama,
                                   native_completion,
                                   embeddings,
                                   many_embeddings,
                                   numbers_of_texts,
                                   the_same_beside_others,
                                   clients_that_leave,
                                   clients_that_read_late,
                                   late_streams,
                                   second_prompt_too_long,
                                   large_bodies,
                                   refusals,
                                   drains,
                                   impatient_signals,
                                   NULL };
    return run_server_tests("server", start, stop, tests);
}
