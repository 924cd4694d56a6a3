/* Grammars of tool calls: what they let through is parsed as calls that the tools'
 * schemas allow, and they let through what models of the format write. Texts are sampled
 * from each grammar at random, and the goldens of test_calls.c are held against it. */
#include "tests/test.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "text/grammar/matcher.h"
#include "text/toolcall/toolcall.h"

static const char tools[] =
    "[{\"type\": \"function\", \"function\": {\"name\": \"get_weather\", \"parameters\": "
    "{\"type\": \"object\", \"properties\": {"
    "\"city\": {\"type\": \"string\"}, \"days\": {\"type\": \"integer\", \"minimum\": 1, "
    "\"maximum\": 9}, "
    "\"unit\": {\"type\": \"string\", \"enum\": [\"celsius\", \"fahrenheit\"]}, \"tags\": "
    "{\"type\": \"array\", \"items\": {\"type\": "
    "\"boolean\"}, \"maxItems\": 2}}, \"required\": [\"city\", \"unit\"], "
    "\"additionalProperties\": false}}}, "
    "{\"type\": \"function\", \"function\": {\"name\": \"now\"}}]";

static struct ak_tc_grammar_params rules(const char *format, const char *choice)
{
    return (struct ak_tc_grammar_params){
        .format = ak_tc_find_format(format), .tools = tools, .choice = choice, .parallel = true
    };
}

static struct ak_grammar *build(const struct ak_tc_grammar_params *given)
{
    struct ak_grammar *g;
    struct ak_error error = { 0 };
    ck_assert_msg(ak_tc_build_grammar(given, &g, &error) == AKUNU_OK, "%s: %s", given->format->name,
                  error.message);
    ck_assert_ptr_nonnull(g);
    return g;
}

static struct ak_grammar_matcher *match(struct ak_grammar *g)
{
    struct ak_grammar_matcher *m;
    struct ak_error error = { 0 };
    ck_assert_msg(ak_grammar_matcher_create(g, NULL, &m, &error) == AKUNU_OK, "%s", error.message);
    return m;
}

/* How many bytes of the text are allowed; *end: it may end there. */
static size_t taken(struct ak_grammar *g, const char *text, size_t n, bool *end)
{
    struct ak_grammar_matcher *m = match(g);
    size_t at;
    ck_assert_int_eq(ak_grammar_matcher_accept_bytes(m, text, n, &at, NULL), AKUNU_OK);
    *end = ak_grammar_matcher_is_accepting(m);
    ak_grammar_matcher_free(m);
    return at;
}

static bool accepts(struct ak_grammar *g, const char *text)
{
    bool end;
    return taken(g, text, strlen(text), &end) == strlen(text) && end;
}

static unsigned next_random(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* The grammar's way through a text that is tried: what it takes stays. */
static size_t try_bytes(struct ak_grammar_matcher *m, char *text, const char *bytes, size_t n)
{
    size_t done;
    if (ak_grammar_matcher_accept_bytes(m, bytes, n, &done, NULL) !=
        AKUNU_OK) /* an assertion writes a line each time */
        ck_abort_msg("the matcher failed");
    memcpy(text, bytes, done);
    return done;
}

/* One byte that is allowed, starting at a random one; 0 where none is. */
static size_t try_any_byte(struct ak_grammar_matcher *m, unsigned *state, char *text)
{
    unsigned byte = next_random(state) % 97;
    size_t done = 0;

    for (unsigned tries = 0; done == 0 && tries < 97; tries++) {
        byte = (byte + 31) % 97;
        done = try_bytes(m, text, (char[]){ (char)(byte == 0 ? '\n' : byte + 31) }, 1);
    }
    for (unsigned high = 128; done == 0 && high < 256; high++) /* of a marker that is not ASCII */
        done = try_bytes(m, text, (char[]){ (char)high }, 1);
    return done;
}

/* A text of the grammar: letters at random, and once it is long what ends parts of it. */
static size_t sample(struct ak_grammar *g, unsigned *state, char *text, size_t capacity)
{
    static const char *const ends[] = { "\"",
                                        "'",
                                        "}",
                                        "]",
                                        ")",
                                        "\n</parameter>",
                                        "</arg_value>",
                                        "<|\"|>",
                                        "<escape>",
                                        "</｜DSML｜parameter>" };
    struct ak_grammar_matcher *m = match(g);
    size_t n = 0;

    while (n + 64 < capacity &&
           !(ak_grammar_matcher_is_accepting(m) &&
             (ak_grammar_matcher_must_end(m) || next_random(state) % 4 == 0))) {
        const char *end = ends[next_random(state) % (sizeof ends / sizeof ends[0])];
        size_t done = n > 60 ? try_bytes(m, text + n, end, strlen(end)) : 0;
        done = done ? done : try_any_byte(m, state, text + n);
        if (done == 0)
            break;
        n += done;
    }
    bool whole = ak_grammar_matcher_is_accepting(m);
    ak_grammar_matcher_free(m);
    return whole ? n : 0;
}

static json_t *parse(const struct ak_tc_format *format, const char *text, size_t n)
{
    struct ak_tc_parser_params settings = {
        .format = format, .tools = tools, .calls = true, .reasoning = true
    };
    struct ak_tc_parser *reply;
    const char *message;

    ck_assert_int_eq(ak_tc_parser_create(&settings, &reply, NULL), AKUNU_OK);
    ck_assert_int_eq(ak_tc_parser_push(reply, text, n, NULL), AKUNU_OK);
    ck_assert_int_eq(ak_tc_parser_end(reply, NULL), AKUNU_OK);
    ck_assert_int_eq(ak_tc_parser_message(reply, &message, NULL), AKUNU_OK);
    ck_assert_msg(!ak_tc_parser_notes(reply)[0], "%s: %.*s: %s", format->name, (int)n, text,
                  ak_tc_parser_notes(reply));
    json_t *out = json_loads(message, JSON_ALLOW_NUL, NULL);
    ak_tc_parser_free(reply);
    return out;
}

/* The call's arguments, held against the tool's schema as any JSON text. */
static void check_call(const char *format, const char *text, json_t *call)
{
    json_t *list = json_loads(tools, 0, NULL), *function = json_object_get(call, "function"), *one;
    const char *name = json_string_value(json_object_get(function, "name"));
    const char *arguments = json_string_value(json_object_get(function, "arguments"));
    size_t i;
    bool known = false;

    json_array_foreach (list, i, one) {
        json_t *tool = json_object_get(one, "function"),
               *schema = json_object_get(tool, "parameters");
        if (strcmp(json_string_value(json_object_get(tool, "name")), name) != 0)
            continue;
        known = true;
        struct ak_schema_options options = { .form = AK_SCHEMA_READING };
        struct ak_grammar *g;
        if (!schema) {
            json_t *none = json_loads(arguments, 0, NULL);
            ck_assert_msg(json_is_object(none) && json_object_size(none) == 0, "%s: %s", format,
                          arguments);
            json_decref(none);
            continue;
        }
        ck_assert_int_eq(ak_grammar_from_schema(schema, &options, &g, NULL), AKUNU_OK);
        ck_assert_msg(accepts(g, arguments), "%s: %s: %s", format, text, arguments);
        ak_grammar_free(g);
    }
    ck_assert_msg(known, "%s: %s: %s", format, text, name);
    json_decref(list);
}

START_TEST(sampled_texts_are_calls)
{
    const struct ak_tc_format *format = ak_tc_format_at((size_t)_i);
    struct ak_tc_grammar_params given = rules(format->name, "required");
    struct ak_grammar *g = build(&given);
    unsigned state = 7, n_whole = 0;
    char text[2048];

    for (int k = 0; k < 20; k++) {
        size_t n = sample(g, &state, text, sizeof text - 1), i;
        json_t *call;
        if (n == 0)
            continue;
        text[n] = '\0';
        n_whole++;
        json_t *message = parse(format, text, n), *calls = json_object_get(message, "tool_calls");
        ck_assert_msg(json_array_size(calls) > 0, "%s: %s", format->name, text);
        json_array_foreach (calls, i, call)
            check_call(format->name, text, call);
        json_decref(message);
    }
    ck_assert_msg(n_whole >= 4, "%s: only %u", format->name, n_whole);
    ak_grammar_free(g);
}
END_TEST

/* Something that means something to the parser: a marker of any shape, or what begins like a call.
 */
static const char *random_marker(const struct ak_tc_format *f, unsigned *state)
{
    static const char *const others[] = {
        "{",        "[",   "```json\n", "{\"name\": \"now\", \"arguments\": {\"a\": 1}}",
        "now(a=1)", "now", " ",         "\n"
    };
    const struct ak_tc_syntax *s = &f->syntaxes[next_random(state) % f->n_syntaxes];
    size_t n_reasonings = 0;

    while (ak_tc_reasoning_at(n_reasonings))
        n_reasonings++;
    const struct ak_tc_reasoning *t = ak_tc_reasoning_at(next_random(state) % n_reasonings);
    const char *const list[] = {
        s->section,     s->begin, s->begin, s->end,
        s->section_end, t->begin, t->end,   others[next_random(state) % 8]
    };
    return list[next_random(state) % 8];
}

/* Where any text may come too: whatever the parser takes for a call in it is one that the
 * schemas allow, and no call breaks. */
START_TEST(sampled_texts_with_calls)
{
    const struct ak_tc_format *format = ak_tc_format_at((size_t)_i);
    struct ak_tc_grammar_params given = rules(format->name, "auto");
    struct ak_grammar *g = build(&given);
    unsigned state = 5, n_calls = 0;

    for (int k = 0; k < 100; k++) {
        struct ak_grammar_matcher *m = match(g);
        char text[2048];
        size_t n = 0, i;
        json_t *call;
        while (n < 500 && !(n > 40 && ak_grammar_matcher_is_accepting(m))) {
            const char *marker = next_random(&state) % 3 || (n > 200 && next_random(&state) % 2) ?
                                     NULL :
                                     random_marker(format, &state);
            static const char *const ends[] = { "\"",
                                                "'",
                                                "}",
                                                "]",
                                                ")",
                                                ">",
                                                "\n</parameter>",
                                                "</arg_value>",
                                                "<|\"|>",
                                                "<escape>",
                                                "</｜DSML｜parameter>" };
            const char *end = ends[next_random(&state) % (sizeof ends / sizeof ends[0])];
            size_t done = marker ? try_bytes(m, text + n, marker, strlen(marker)) :
                          n > 60 && next_random(&state) % 2 ?
                                   try_bytes(m, text + n, end, strlen(end)) :
                                   0;
            done = done ? done : try_any_byte(m, &state, text + n);
            if (done == 0)
                break;
            n += done;
        }
        bool whole = ak_grammar_matcher_is_accepting(m);
        ak_grammar_matcher_free(m);
        if (!whole)
            continue;
        text[n] = '\0';
        json_t *message = parse(format, text, n), *calls = json_object_get(message, "tool_calls");
        n_calls += (unsigned)json_array_size(calls);
        json_array_foreach (calls, i, call)
            check_call(format->name, text, call);
        json_decref(message);
    }
    ck_assert_msg(n_calls >= 4, "%s: only %u", format->name, n_calls);
    ak_grammar_free(g);
}
END_TEST

/* What models write, from the goldens, where the calls are to these tools. */
START_TEST(written_texts_are_allowed)
{
    const struct ak_tc_format *format = ak_tc_format_at((size_t)_i);
    char path[4096];
    size_t i;
    json_t *one;

    snprintf(path, sizeof path, "%s/calls/%s.json",
             getenv("AK_TEST_DATA") ? getenv("AK_TEST_DATA") : "tests/data", format->name);
    json_t *file = json_load_file(path, JSON_ALLOW_NUL, NULL);
    char *list = json_dumps(json_object_get(file, "tools"), 0);
    struct ak_tc_grammar_params given = rules(format->name, "auto");
    given.tools = list;
    struct ak_grammar *g = build(&given);
    json_array_foreach (json_object_get(file, "cases"), i, one) {
        const char *name = json_string_value(json_object_get(one, "name"));
        json_t *text = json_object_get(one, "text");
        size_t n = json_string_length(text);
        bool end;
        const char *stop = strstr(json_string_value(text), "<|call|>"); /* tokens that end a text */
        stop = stop ? stop : strstr(json_string_value(text), "<|return|>");
        n = stop ? (size_t)(stop - json_string_value(text)) : n;
        if (!strchr(name, ':') || json_object_get(one, "note"))
            continue; /* by hand: what models do beyond their templates */
        if (strstr(json_string_value(text), "<parameter=tags>['"))
            continue; /* its template writes lists as Python does; the grammar holds it to JSON */
        size_t at = taken(g, json_string_value(text), n, &end);
        ck_assert_msg(at == n && end, "%s: %.*s -- and then -- %s", name, (int)at,
                      json_string_value(text), json_string_value(text) + at);
    }
    ak_grammar_free(g);
    free(list);
    json_decref(file);
}
END_TEST

static struct ak_grammar *build_content(void)
{
    static const char gbnf[] = "root ::= \"yes\" [a-z]+ | \"no\"";
    struct ak_grammar *g;
    ck_assert_int_eq(ak_grammar_from_gbnf(gbnf, sizeof gbnf - 1, "root", &g, NULL), AKUNU_OK);
    return g;
}

/* With a grammar of the content, every text is of that grammar or has calls. */
START_TEST(content_or_calls)
{
    const struct ak_tc_format *format = ak_tc_format_at((size_t)_i);
    struct ak_tc_grammar_params given = rules(format->name, "auto");
    struct ak_grammar *content = build_content();
    given.content = content;
    struct ak_grammar *g = build(&given);
    unsigned state = 9, n_calls = 0, n_contents = 0;

    for (int k = 0; k < 60; k++) {
        char text[2048];
        size_t n = sample(g, &state, text, sizeof text), i;
        json_t *call;
        if (n == 0)
            continue;
        json_t *message = parse(format, text, n), *calls = json_object_get(message, "tool_calls");
        json_array_foreach (calls, i, call)
            check_call(format->name, text, call);
        n_calls += json_array_size(calls) > 0;
        if (json_array_size(calls) == 0 && !format->harmony) {
            ck_assert_msg(accepts(content, json_string_value(json_object_get(message, "content"))),
                          "%s: %.*s", format->name, (int)n, text);
            n_contents++;
        }
        json_decref(message);
    }
    ck_assert_msg(n_calls > 0 && (n_contents > 0 || format->harmony), "%s: %u and %u", format->name,
                  n_calls, n_contents);
    ak_grammar_free(g);
    ak_grammar_free(content);
}
END_TEST

/* Reasoning comes before the content: it must end if the prompt began it. */
START_TEST(content_after_reasoning)
{
    struct ak_tc_grammar_params given = rules("hermes", "none");
    struct ak_grammar *content = build_content();
    given.content = content;
    struct ak_grammar *g = build(&given);
    ck_assert(accepts(g, "yesz") && accepts(g, "no"));
    ck_assert(!accepts(g, "yes") && !accepts(g, "not") && !accepts(g, "<think>a</think>no"));
    ck_assert(!accepts(g, "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>"));
    ak_grammar_free(g);

    given.chat_template = "<think></think>";
    g = build(&given);
    ck_assert(accepts(g, "no") && accepts(g, "<think>a</think>\n\nno"));
    ck_assert(!accepts(g, "<think>no") && !accepts(g, "<think>a</think>a"));
    ak_grammar_free(g);

    given.prompt = "<|im_start|>assistant\n<think>\n";
    given.tools = NULL;
    given.choice = NULL;
    g = build(&given);
    ck_assert(accepts(g, "no, a</think>\nyesno"));
    ck_assert(!accepts(g, "no") && !accepts(g, "a</think>a"));
    ak_grammar_free(g);

    given = rules("harmony", "auto");
    given.content = content;
    g = build(&given);
    ck_assert(accepts(g, "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final"
                         "<|message|>no"));
    ck_assert(!accepts(g, "<|channel|>final<|message|>a"));
    ak_grammar_free(g);
    ak_grammar_free(content);
}
END_TEST

/* Where a newline ends the values, they may contain the marker. */
START_TEST(values_with_markers)
{
    static const char begin[] = "<tool_call>\n<function=write>\n<parameter=text>\n",
                      end[] = "\n</function>\n</tool_call>";
    static const struct {
        const char *value;
        bool allowed;
    } cases[] = {
        { "a </parameter> b</parameter>\n<parameter=c>\n</function> d\n</parameter>", true },
        { "\n</parameter>", true },
        { "</parameter>", true },
        { "  \n </parameter>", true },
        { "a</parameter>", false },
        { "a\n</parameter> b\n</parameter>", false },
    };
    struct ak_tc_grammar_params given = rules("qwen3-coder", "required");
    given.tools = "[{\"type\": \"function\", \"function\": {\"name\": \"write\", \"parameters\": "
                  "{\"type\": \"object\", \"properties\": {\"text\": {\"type\": \"string\"}}, "
                  "\"required\": [\"text\"]}}}]";
    struct ak_grammar *g = build(&given);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        snprintf(text, sizeof text, "%s%s%s", begin, cases[i].value, end);
        ck_assert_msg(accepts(g, text) == cases[i].allowed, "%s", text);
    }
    ak_grammar_free(g);
}
END_TEST

/* Integers beyond 64 bits in the calls of every format: bounds that leave 40 digits, and a value.
 */
START_TEST(long_integers)
{
    const struct ak_tc_format *format = ak_tc_format_at((size_t)_i);
    struct ak_tc_grammar_params given = rules(format->name, "required");
    given.parallel = false;
    given.tools = "[{\"type\": \"function\", \"function\": {\"name\": \"find\", \"parameters\": "
                  "{\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"integer\", "
                  "\"minimum\": 1000000000000000000000000000000000000000, "
                  "\"maximum\": 9999999999999999999999999999999999999999}, "
                  "\"b\": {\"const\": 12345678901234567890}}, \"required\": [\"a\", \"b\"], "
                  "\"additionalProperties\": false}}}]";
    struct ak_grammar *g = build(&given);
    unsigned state = 1;
    char text[4096];
    size_t n = sample(g, &state, text, sizeof text - 1), longest = 0;
    text[n] = '\0';
    ck_assert_msg(strstr(text, "12345678901234567890") != NULL, "%s: %s", format->name, text);
    for (size_t i = 0, length; i < n; i += length + 1) {
        length = strspn(text + i, "0123456789");
        longest = length > longest ? length : longest;
    }
    ck_assert_msg(longest == 40, "%s: %s", format->name, text);
    ak_grammar_free(g);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("call grammar");
    TCase *t = tcase_create("call grammar");
    int n = 0;

    while (ak_tc_format_at((size_t)n))
        n++;
    tcase_add_loop_test(t, sampled_texts_are_calls, 0, n);
    tcase_add_loop_test(t, sampled_texts_with_calls, 0, n);
    tcase_add_loop_test(t, written_texts_are_allowed, 0, n);
    tcase_add_loop_test(t, content_or_calls, 0, n);
    tcase_add_test(t, content_after_reasoning);
    tcase_add_test(t, values_with_markers);
    tcase_add_loop_test(t, long_integers, 0, n);
    suite_add_tcase(s, t);
    return s;
}

int main(void)
{
    return test_run(suite());
}
