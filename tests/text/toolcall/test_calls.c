/* Tool calls and reasoning: what models of each format write, in tests/data/calls, made
 * by tests/golden/calls.py with the templates that the models were published with, with
 * transformers' parser and with openai-harmony. Every text is also fed byte by byte and in
 * random pieces, and cut after each byte. */
#include "tests/test.h"
#include <dirent.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "akunu/akunu.h"

/* Events, written down one after another so that where texts are cut does not show. */
struct record {
    char *text;
    size_t n, capacity;
    enum akunu_reply_kind last;
    size_t n_calls, n_ended, n_broken, n_content, n_reasoning, n_arguments;
};

static void add(struct record *r, const char *text, size_t n)
{
    if (r->n + n + 1 > r->capacity) {
        r->capacity = (r->n + n + 1) * 2;
        r->text = realloc(r->text, r->capacity);
        ck_assert_ptr_nonnull(r->text);
    }
    if (n)
        memcpy(r->text + r->n, text, n);
    r->n += n;
    r->text[r->n] = '\0';
}

static void on_event(const struct akunu_reply_event *e, void *user)
{
    static const char *const names[] = { "",         "\nreasoning ", "\ncontent ",
                                         "\ncall ",  "\narguments ", "\nend ",
                                         "\nbroken " };
    struct record *r = user;
    bool goes_on =
        e->kind == r->last && (e->kind <= AKUNU_REPLY_CONTENT || e->kind == AKUNU_REPLY_ARGUMENTS);

    ck_assert_uint_eq(e->size, sizeof *e);
    if (!goes_on)
        add(r, names[e->kind], strlen(names[e->kind]));
    add(r, e->text, e->n_bytes);
    if (e->kind == AKUNU_REPLY_CALL) {
        ck_assert_uint_eq(e->call, r->n_calls);
        ck_assert_uint_eq(r->n_calls, r->n_ended + r->n_broken);
        add(r, " ", 1);
        add(r, e->id, strlen(e->id));
    } else {
        ck_assert_ptr_null(e->id);
        if (e->kind > AKUNU_REPLY_CALL)
            ck_assert_uint_eq(e->call + 1, r->n_calls);
    }
    r->n_calls += e->kind == AKUNU_REPLY_CALL;
    r->n_ended += e->kind == AKUNU_REPLY_CALL_END;
    r->n_broken += e->kind == AKUNU_REPLY_BROKEN;
    r->n_content += e->kind == AKUNU_REPLY_CONTENT ? e->n_bytes : 0;
    r->n_reasoning += e->kind == AKUNU_REPLY_REASONING ? e->n_bytes : 0;
    r->last = e->kind;
}

struct outcome {
    json_t *message;
    char *notes;
    struct record record;
};

static void forget(struct outcome *o)
{
    json_decref(o->message);
    free(o->notes);
    free(o->record.text);
}

static unsigned next_random(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

/* max_piece: the longest piece; 0: all at once, 1: byte by byte, else pieces of random lengths. */
static struct outcome feed(const struct akunu_reply_params *params, const char *text, size_t n,
                           unsigned max_piece)
{
    struct outcome o = { 0 };
    unsigned state = max_piece;
    struct akunu_reply *reply = akunu_reply_new(params, on_event, &o.record);

    ck_assert_msg(reply != NULL, "%s", akunu_last_error());
    ck_assert_ptr_null(akunu_reply_message(reply));
    for (size_t at = 0; at < n;) {
        size_t piece = max_piece == 0 ? n :
                       max_piece == 1 ? 1 :
                                        1 + next_random(&state) % max_piece;
        piece = piece < n - at ? piece : n - at;
        char *copy = malloc(piece); /* so that reading past it is seen */
        memcpy(copy, text + at, piece);
        ck_assert_int_eq(akunu_reply_push(reply, copy, piece), AKUNU_OK);
        free(copy);
        at += piece;
    }
    ck_assert_int_eq(akunu_reply_end(reply), AKUNU_OK);
    const char *message = akunu_reply_message(reply);
    ck_assert_ptr_nonnull(message);
    o.message = json_loads(message, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    ck_assert_ptr_nonnull(o.message);
    o.notes = strdup(akunu_reply_notes(reply));
    akunu_reply_free(reply);
    return o;
}

static const char *data(const char *name)
{
    static char path[4096];
    const char *folder = getenv("AK_TEST_DATA");
    snprintf(path, sizeof path, "%s/calls/%s", folder ? folder : "tests/data", name);
    return path;
}

static json_t *load(const char *name)
{
    json_error_t why;
    json_t *file = json_load_file(data(name), JSON_ALLOW_NUL, &why);
    ck_assert_msg(file != NULL, "%s: %s (line %d)", data(name), why.text, why.line);
    return file;
}

/* What a golden file and a case say. */
struct given {
    struct akunu_reply_params params;
    char *tools;
    const char *text;
    size_t n;
};

static struct given take(json_t *file, json_t *one)
{
    struct given g = { 0 };
    json_t *tools = json_object_get(one, "tools"), *text = json_object_get(one, "text");

    akunu_reply_params_default(&g.params, sizeof g.params);
    g.params.format = json_string_value(json_object_get(file, "format"));
    g.params.prompt = json_string_value(json_object_get(one, "prompt"));
    if (!tools)
        tools = json_object_get(file, "tools");
    g.tools = json_is_array(tools) ? json_dumps(tools, 0) : NULL;
    g.params.tools = g.tools;
    if (json_object_get(one, "calls"))
        g.params.calls = json_is_true(json_object_get(one, "calls"));
    if (json_object_get(one, "reasoning"))
        g.params.reasoning = json_is_true(json_object_get(one, "reasoning"));
    g.text = json_string_value(text);
    g.n = json_string_length(text);
    return g;
}

/* Arguments are the same where they are the same JSON; ids where the golden file has them. */
static void compare(const char *where, json_t *got, json_t *want)
{
    json_t *a = json_deep_copy(got), *b = json_deep_copy(want), *call, *function;
    size_t i;

    json_array_foreach (json_object_get(a, "tool_calls"), i, call) {
        json_t *id = json_object_get(json_array_get(json_object_get(b, "tool_calls"), i), "id"),
               *own = json_object_get(call, "id");
        ck_assert_uint_gt(json_string_length(own), 0);
        for (size_t k = 0; !id && k < i; k++)
            ck_assert_msg(
                !json_equal(own, json_object_get(
                                     json_array_get(json_object_get(got, "tool_calls"), k), "id")),
                "%s: equal ids", where);
        if (!id)
            json_object_del(call, "id");
        ck_assert_str_eq(json_string_value(json_object_get(call, "type")), "function");
        json_object_del(call, "type");
        function = json_object_get(call, "function");
        json_t *arguments =
            json_loads(json_string_value(json_object_get(function, "arguments")), 0, NULL);
        ck_assert_msg(json_is_object(arguments), "%s", where);
        json_object_set_new(function, "arguments", arguments);
    }
    if (!json_equal(a, b)) {
        char *x = json_dumps(a, JSON_INDENT(1)), *y = json_dumps(b, JSON_INDENT(1));
        ck_abort_msg("%s: got %s\nwant %s", where, x, y);
    }
    json_decref(a);
    json_decref(b);
}

/* Events and message say the same. */
static void agree(const char *where, const struct outcome *o)
{
    json_t *calls = json_object_get(o->message, "tool_calls");

    ck_assert_msg(o->record.n_ended == json_array_size(calls), "%s", where);
    ck_assert_msg(o->record.n_calls == o->record.n_ended + o->record.n_broken, "%s", where);
    ck_assert_msg(o->record.n_content == json_string_length(json_object_get(o->message, "content")),
                  "%s", where);
    ck_assert_msg(o->record.n_reasoning ==
                      json_string_length(json_object_get(o->message, "reasoning_content")),
                  "%s", where);
    ck_assert_msg(o->record.n_broken == 0 || o->notes[0], "%s", where);
}

static void same(const char *where, const struct outcome *a, const struct outcome *b)
{
    ck_assert_msg(json_equal(a->message, b->message), "%s", where);
    ck_assert_msg(
        a->record.n == b->record.n &&
            (a->record.n == 0 || memcmp(a->record.text, b->record.text, a->record.n) == 0),
        "%s:\n%s\n-- or --\n%s", where, a->record.text, b->record.text);
    ck_assert_msg(strcmp(a->notes, b->notes) == 0, "%s: %s -- or -- %s", where, a->notes, b->notes);
}

static void check_case(const char *file_name, json_t *file, json_t *one)
{
    struct given g = take(file, one);
    json_t *note = json_object_get(one, "note");
    char where[512];

    snprintf(where, sizeof where, "%s: %s", file_name,
             json_string_value(json_object_get(one, "name")));
    struct outcome whole = feed(&g.params, g.text, g.n, 0);
    compare(where, whole.message, json_object_get(one, "message"));
    agree(where, &whole);
    ck_assert_msg(note ? strstr(whole.notes, json_string_value(note)) != NULL : !whole.notes[0],
                  "%s: %s", where, whole.notes);
    for (unsigned max_piece = 1; max_piece < 12; max_piece++) {
        struct outcome pieces = feed(&g.params, g.text, g.n, max_piece);
        same(where, &whole, &pieces);
        forget(&pieces);
    }
    for (size_t n = 0; n < g.n; n++) {
        struct outcome cut = feed(&g.params, g.text, n, 0);
        agree(where, &cut);
        if (n % 8 == 0) {
            struct outcome bytes = feed(&g.params, g.text, n, 1);
            same(where, &cut, &bytes);
            forget(&bytes);
        }
        forget(&cut);
    }
    forget(&whole);
    free(g.tools);
}

START_TEST(goldens)
{
    const char *name = akunu_reply_format_name((size_t)_i);
    char file_name[64];

    snprintf(file_name, sizeof file_name, "%s.json", name);
    json_t *file = load(file_name), *one, *cases = json_object_get(file, "cases");
    size_t i;
    ck_assert_uint_gt(json_array_size(cases), 3);
    json_array_foreach (cases, i, one)
        check_case(file_name, file, one);
    json_decref(file);
}
END_TEST

/* What of a template tells the format. */
START_TEST(detection)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "{{ '<tool_call>' }}{\"name\": \"arguments\"}", "hermes" },
        { "<tool_call> <function=f> <parameter=x>", "qwen3-coder" },
        { "<tool_call>{name} <arg_key>", "glm" },
        { "[TOOL_CALLS] {{ calls }}", "mistral-list" },
        { "[TOOL_CALLS]{{ name }}[ARGS]", "mistral" },
        { "<|start|>assistant<|channel|>final<|message|>", "harmony" },
        { "<｜tool▁calls▁begin｜> ```json", "deepseek-r1" },
        { "<｜tool▁calls▁begin｜>", "deepseek-v3.1" },
        { "<|start_header_id|> {\"name\": x, \"parameters\": y}", "llama3" },
        { "<start_of_turn>model", "gemma" },
        { "<|im_start|>assistant", "generic" },
    };
    struct akunu_reply_params params;

    akunu_reply_params_default(&params, sizeof params);
    params.chat_template = cases[_i].text;
    struct akunu_reply *reply = akunu_reply_new(&params, NULL, NULL);
    ck_assert_str_eq(akunu_reply_format(reply), cases[_i].want);
    akunu_reply_free(reply);
}
END_TEST

/* The reasoning of answers by a template, and whether the prompt begins it. */
START_TEST(reasoning_of_templates)
{
    static const struct {
        const char *text, *prompt, *begin, *closing;
        bool is_open, anywhere;
    } cases[] = {
        { "{{ '<think>' }} </think>", NULL, "<think>", "</think>", false, false },
        { "{{ '<think>' }} </think>", "Hi<think>\n", "<think>", "</think>", true, false },
        { "only <think>", "Hi", NULL, NULL, false, false },
        { NULL, "Hi<seed:think>", "<seed:think>", "</seed:think>", true, true },
        { "<|im_start|>assistant", NULL, NULL, NULL, false, false },
        { "[THINK] [/THINK]", "Hi", "[THINK]", "[/THINK]", false, true },
        { "<|channel|>final<|message|>", "Hi", "<|channel|>analysis<|message|>",
          "<|end|><|start|>assistant<|channel|>final<|message|>", false, true },
    };
    struct akunu_reply_params params;
    struct akunu_reasoning found;

    akunu_reply_params_default(&params, sizeof params);
    params.chat_template = cases[_i].text;
    params.prompt = cases[_i].prompt;
    ck_assert_int_eq(akunu_get_reasoning(&params, &found, sizeof found), AKUNU_OK);
    ck_assert_uint_eq(found.size, sizeof found);
    ck_assert_pstr_eq(found.begin, cases[_i].begin);
    ck_assert_pstr_eq(found.closing, cases[_i].closing);
    ck_assert(found.is_open == cases[_i].is_open);
    ck_assert(!found.begin || found.begins_anywhere == cases[_i].anywhere);
    ck_assert_int_eq(found.budget, -1);
    ck_assert_int_eq(akunu_get_reasoning(&params, NULL, 0), AKUNU_ERROR_ARGUMENT);
}
END_TEST

/* A section that the text's end leaves open has calls that are complete all the same, and what
 * stood between them is not content. */
START_TEST(open_sections)
{
    static const char *const texts[] = {
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜>",
        "<｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜>\n",
    };
    struct akunu_reply_params params;

    akunu_reply_params_default(&params, sizeof params);
    params.format = "deepseek-v3.1";
    struct akunu_reply *reply = akunu_reply_new(&params, NULL, NULL);
    ck_assert_int_eq(akunu_reply_push(reply, texts[_i], strlen(texts[_i])), AKUNU_OK);
    ck_assert_int_eq(akunu_reply_end(reply), AKUNU_OK);
    ck_assert_str_eq(akunu_reply_notes(reply), "");
    json_t *message = json_loads(akunu_reply_message(reply), 0, NULL);
    ck_assert(json_is_null(json_object_get(message, "content")));
    ck_assert_uint_eq(json_array_size(json_object_get(message, "tool_calls")), 1);
    json_decref(message);
    akunu_reply_free(reply);
}
END_TEST

/* A reply drops text that it needs no more, except withheld whitespace and a begun call: whatever
 * part of a long one comes at once, before single bytes, it is the same. */
START_TEST(long_replies)
{
    enum { CONTENT = 5000, NEWLINES = 3 };
    static const char *const cases[][3] = {
        { "hermes",
          "<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}</tool_call>",
          "{\"city\": \"Oslo\"}" },
        { "qwen3-coder",
          "<tool_call>\n<function=get_weather>\n<parameter=city>\na</parameter>\n</function> b\n"
          "</parameter>\n<parameter=day>\nx\n</parameter>\n</function>\n</tool_call>",
          "{\"city\": \"a</parameter>\\n</function> b\", \"day\": \"x\"}" },
        { "qwen3-coder",
          "<tool_call>\n<function=get_weather>\n<parameter=city>\na</parameter>\n</function>\n"
          "</tool_call>",
          "{\"city\": \"a\"}" },
    };
    static char text[CONTENT + NEWLINES + 256];
    struct akunu_reply_params params;

    memset(text, 'x', CONTENT);
    memset(text + CONTENT, '\n', NEWLINES);
    strcpy(text + CONTENT + NEWLINES, cases[_i][1]);
    akunu_reply_params_default(&params, sizeof params);
    params.format = cases[_i][0];
    for (size_t cut = CONTENT; cut <= strlen(text); cut++) {
        struct akunu_reply *reply = akunu_reply_new(&params, NULL, NULL);
        ck_assert_int_eq(akunu_reply_push(reply, text, cut), AKUNU_OK);
        for (size_t at = cut; text[at]; at++)
            ck_assert_int_eq(akunu_reply_push(reply, text + at, 1), AKUNU_OK);
        ck_assert_int_eq(akunu_reply_end(reply), AKUNU_OK);
        json_t *message = json_loads(akunu_reply_message(reply), 0, NULL);
        json_t *function =
            json_object_get(json_array_get(json_object_get(message, "tool_calls"), 0), "function");
        ck_assert_uint_eq(json_string_length(json_object_get(message, "content")), CONTENT);
        ck_assert_str_eq(json_string_value(json_object_get(function, "name")), "get_weather");
        ck_assert_str_eq(json_string_value(json_object_get(function, "arguments")), cases[_i][2]);
        json_decref(message);
        akunu_reply_free(reply);
    }
}
END_TEST

/* The Unicode Standard, 3.9: one U+FFFD stands for a character that is cut. */
START_TEST(cut_character)
{
    struct akunu_reply_params params;

    akunu_reply_params_default(&params, sizeof params);
    params.format = "hermes";
    struct outcome cut = feed(&params, "caf\xc3", 4, 0);
    ck_assert_str_eq(json_string_value(json_object_get(cut.message, "content")), "caf\xef\xbf\xbd");
    forget(&cut);
}
END_TEST

START_TEST(refusals)
{
    struct akunu_reply_params params;

    akunu_reply_params_default(&params, sizeof params);
    params.format = "nonsense";
    ck_assert_ptr_null(akunu_reply_new(&params, NULL, NULL));
    ck_assert_ptr_nonnull(strstr(akunu_last_error(), "nonsense"));
    params.format = NULL;
    params.tools = "{}";
    ck_assert_ptr_null(akunu_reply_new(&params, NULL, NULL));
    params.tools = "[{\"type\": \"function\"}]";
    ck_assert_ptr_null(akunu_reply_new(&params, NULL, NULL));
    ck_assert_ptr_nonnull(strstr(akunu_last_error(), "tools[0]"));
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("calls");
    TCase *t = tcase_create("calls");
    int n = 0;

    while (akunu_reply_format_name((size_t)n))
        n++;
    tcase_add_loop_test(t, goldens, 0, n);
    tcase_add_loop_test(t, detection, 0, 11);
    tcase_add_loop_test(t, reasoning_of_templates, 0, 7);
    tcase_add_loop_test(t, open_sections, 0, 2);
    tcase_add_test(t, refusals);
    suite_add_tcase(s, t);
    t = tcase_create("pieces");
    tcase_add_loop_test(t, long_replies, 0, 3);
    tcase_add_test(t, cut_character);
    suite_add_tcase(s, t);
    return s;
}

int main(void)
{
    return test_run(suite());
}
