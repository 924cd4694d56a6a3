/* GET /slots: free and taken slots, and their counts. */
#include "tests/apps/server/client.h"

static struct child server;

static void start(void)
{
    static const char *const flags[] = { "-np", "2", NULL };
    server = start_server(flags);
}

static void stop(void)
{
    ck_assert_int_eq(stop_server(&server, SIGTERM), 0);
}

static json_t *get_json(const struct child *child, const char *path, int code)
{
    struct answer a = ask(child, path, "");
    return json_of(&a, code);
}

static size_t count_taken(const json_t *slots)
{
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(slots); i++)
        n += json_is_true(at(json_array_get(slots, i), "is_processing"));
    return n;
}

static void wait_for_taken(size_t n)
{
    for (int i = 0;; i++) {
        json_t *slots = get_json(&server, "/slots", 200);
        size_t taken = count_taken(slots);
        json_decref(slots);
        if (taken == n)
            return;
        ck_assert_int_lt(i, 200);
        nap(0.02);
    }
}

/* A text without an end, in a stream that nobody reads. */
static int begin(void)
{
    static const char body[] = "{\"prompt\": \"Once upon a time\", \"max_tokens\": 1000000, "
                               "\"ignore_eos\": true, \"temperature\": 0.5, \"stream\": true}";
    char head[256];
    int fd = open_connection(&server);
    int n = snprintf(head, sizeof head,
                     "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
                     "%zu\r\n\r\n",
                     strlen(body));
    send_text(fd, head, (size_t)n);
    send_text(fd, body, strlen(body));
    return fd;
}

START_TEST(slots)
{
    json_t *list = get_json(&server, "/slots", 200);
    ck_assert_uint_eq(json_array_size(list), 2);
    ck_assert_uint_eq(count_taken(list), 0);
    ck_assert_int_eq(json_integer_value(at(list, "1.id")), 1);
    ck_assert_int_eq(json_integer_value(at(list, "1.n_ctx")), 2048);
    json_decref(list);
    int first = begin();
    wait_for_taken(1);
    list = get_json(&server, "/slots?fail_on_no_slot=1", 200);
    const json_t *taken = json_array_get(list, json_is_true(at(list, "1.is_processing")));
    ck_assert_int_gt(json_integer_value(at(taken, "id_task")), 0);
    ck_assert_int_gt(json_integer_value(at(taken, "n_prompt_tokens")), 2);
    ck_assert_int_eq(json_integer_value(at(taken, "params.max_tokens")), 1000000);
    ck_assert(json_number_value(at(taken, "params.temperature")) == 0.5);
    ck_assert_int_eq(json_integer_value(at(taken, "next_token.0.n_decoded")) +
                         json_integer_value(at(taken, "next_token.0.n_remain")),
                     1000000);
    char *text = json_dumps(list, 0);
    ck_assert_ptr_null(strstr(text, "Once"));
    free(text);
    json_decref(list);
    int second = begin();
    wait_for_taken(2);
    json_decref(get_json(&server, "/slots?fail_on_no_slot=1", 503));
    close(first);
    close(second);
    wait_for_taken(0);
}
END_TEST

START_TEST(switched_off)
{
    static const char *const flags[] = { "--no-slots", NULL };
    struct child child = start_server(flags);
    json_decref(get_json(&child, "/slots", 404));
    ck_assert_int_eq(stop_server(&child, SIGTERM), 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { slots, switched_off, NULL };
    return run_server_tests("slots", start, stop, tests);
}
