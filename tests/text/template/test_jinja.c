/* Chat templates. What jinja2 makes of the cases: tests/golden/jinja.py. */
#include "tests/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "akunu/akunu.h"
#include "base/mem.h"
#include "text/template/jinja/jinja.h"

enum { NOW = 1721999109 }; /* 2024-07-26 13:05:09 UTC */

static json_t *read_cases(const char *name)
{
    char path[4096];
    json_error_t why;
    snprintf(path, sizeof path, "%s/jinja/%s", getenv("AK_TEST_DATA"), name);
    json_t *root = json_load_file(path, JSON_ALLOW_NUL, &why);
    ck_assert_msg(root != NULL, "%s: %s", path, why.text);
    return root;
}

static ak_status render(const char *text, size_t n_text, const json_t *variables, char **out,
                        size_t *n, struct ak_error *error)
{
    struct ak_jinja *template;
    *out = NULL;
    ak_status status = ak_jinja_parse(text, n_text, &template, error);
    if (status == AKUNU_OK)
        status = ak_jinja_render(template, variables, NOW, out, n, error);
    ak_jinja_free(template);
    return status;
}

static void check_case(const json_t *one, const json_t *variables, size_t i)
{
    const json_t *template = json_object_get(one, "template"),
                 *want = json_object_get(one, "output");
    const char *text = json_string_value(template);
    struct ak_error error = { 0 };
    char *out;
    size_t n = 0;
    ak_status status = render(text, json_string_length(template), variables, &out, &n, &error);
    if (want) {
        ck_assert_msg(status == AKUNU_OK, "case %zu: %s\n%s", i, text, error.message);
        bool equal = n == json_string_length(want) && memcmp(out, json_string_value(want), n) == 0;
        ck_assert_msg(equal, "case %zu: %s\n got %s\nwant %s", i, text, out,
                      json_string_value(want));
    } else {
        unsigned line = 0;
        ck_assert_msg(status != AKUNU_OK, "case %zu: %s\n got %s, where jinja2 fails", i, text,
                      out);
        ck_assert_msg(sscanf(error.message, "line %u, column", &line) == 1, "case %zu: %s\n%s", i,
                      text, error.message);
        int wanted = (int)json_integer_value(json_object_get(one, "line"));
        ck_assert_msg(wanted == 0 || (int)line == wanted,
                      "case %zu: %s\n%s, where jinja2 names line %d", i, text, error.message,
                      wanted);
    }
    ak_free(out);
}

START_TEST(as_jinja2)
{
    json_t *root = read_cases("cases.json");
    const json_t *cases = json_object_get(root, "cases");
    setenv("TZ", "UTC", 1);
    tzset();
    ck_assert_uint_gt(json_array_size(cases), 400);
    for (size_t i = 0; i < json_array_size(cases); i++)
        check_case(json_array_get(cases, i), json_object_get(root, "variables"), i);
    json_decref(root);
}
END_TEST

/* ---- Limits: each ends a template, and says which it is ----------------- */
static const struct {
    const char *template, *says;
} limits[] = {
    { "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
      "the limit" },
    { "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "nests deeper than 1000" },
    { "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", "nests deeper than 1000" },
    { "{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}{{ m() }}",
      "nests deeper than 1000" },
    { "{% set ns = namespace(x=[]) %}{% for i in range(5000) %}{% set ns.x = [ns.x] %}{% endfor "
      "%}{{ ns.x }}",
      "nests deeper than 1000" },
    { "{% set ns = namespace(x=[]) %}{% for i in range(5000) %}{% set ns.x = [ns.x] %}{% endfor "
      "%}{{ ns.x|tojson }}",
      "nests deeper than 1000" },
    { "{% set ns = namespace(x=(), y=()) %}{% for i in range(5000) %}{% set ns.x = (ns.x,) %}{% "
      "set ns.y = (ns.y,) %}{% endfor %}{{ ns.x == ns.y }}",
      "nests deeper than 1000" },
    { "{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}", "nests deeper than 1000" },
    { "{{ ('x' * 10000000) * 100 }}", "a text of more than 128 MiB" },
    { "{{ 'xx'.center(1000000000) }}", "steps, the limit" },
    { "{{ '%999999999d' % 1 }}", "exceeds the limit of" },
    { "{{ '{:.99999}'.format(1.0) }}", "exceeds the limit of" },
    { "{{ [0] * 100000000 }}", "the limit" },
    { "{% set ns = namespace(x='x') %}{% for i in range(40) %}{% set ns.x = ns.x ~ ns.x %}{% "
      "endfor %}",
      "the limit" },
    { "{% set x = 'x' * 100000 %}{% for i in range(100000) %}{% if x[::-1] == x[1:] %}{% endif "
      "%}{% endfor %}",
      "the limit" },
    { "{{ 9223372036854775807 + 1 }}", "beyond 64 bits, the limit" },
    { "{{ 2 ** 100 }}", "beyond 64 bits, the limit" },
    { "{{ range(100001) }}", "MAX_RANGE" },
};

START_TEST(ends_at_a_limit)
{
    struct ak_error error = { 0 };
    json_t *none = json_object();
    char *out;
    size_t n;
    ck_assert_int_ne(
        render(limits[_i].template, strlen(limits[_i].template), none, &out, &n, &error), AKUNU_OK);
    ck_assert_msg(strstr(error.message, limits[_i].says) != NULL, "%s\n%s", limits[_i].template,
                  error.message);
    json_decref(none);
}
END_TEST

/* Nested text, `times` deep. */
static char *nested(const char *open, const char *middle, const char *close, size_t times)
{
    char *text = calloc(times * (strlen(open) + strlen(close)) + strlen(middle) + 1, 1),
         *end = text;
    for (size_t i = 0; i < times; i++)
        end = stpcpy(end, open);
    end = stpcpy(end, middle);
    for (size_t i = 0; i < times; i++)
        end = stpcpy(end, close);
    return text;
}

START_TEST(ends_at_a_depth_of_text)
{
    static const char *const parts[][3] = {
        { "{{ ", "1", " }}" },
        { "{% if 1 %}", "", "{% endif %}" },
        { "(", "", ")" },
        { "[", "", "]" },
        { "not ", "1", "" },
        { "- ", "1", "" },
        { "1 if 1 else ", "1", "" },
        { "{'a':", "1", "}" },
        { "f(", "", ")" },
        { "a|f(", "", ")" },
        { "a[", "1", "]" },
        { "", "a", ".b" },
        { "1+", "1", "" },
        { "{% for x in y %}", "", "{% endfor %}" },
        { "{% macro m() %}", "", "{% endmacro %}" },
        { "{% call f() %}", "", "{% endcall %}" },
    };
    json_t *none = json_object();
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct ak_error error = { 0 };
        char *out, *inner = nested(parts[i][0], parts[i][1], parts[i][2], 20000), *text = inner;
        size_t n;
        if (inner[0] != '{' || inner[1] == '\'') {
            text = malloc(strlen(inner) + 8);
            sprintf(text, "{{ %s }}", inner);
            free(inner);
        }
        ck_assert_int_ne(render(text, strlen(text), none, &out, &n, &error), AKUNU_OK);
        free(text);
    }
    json_decref(none);
}
END_TEST

START_TEST(refuses_what_is_not_a_chat_template)
{
    static const struct {
        const char *template, *says;
    } refused[] = {
        { "{% include 'x' %}", "'include' is not supported" },
        { "{% import 'x' as y %}", "'import' is not supported" },
        { "{% from 'x' import y %}", "'from' is not supported" },
        { "{% extends 'x' %}", "'extends' is not supported" },
        { "{% block b %}{% endblock %}", "'block' is not supported" },
        { "{{ x|nope }}", "no filter named 'nope'" },
        { "{{ x is nope }}", "no test named 'nope'" },
        { "{{ [].append(1) }}", "'append' of 'list' object is unsafe" },
        { "\xff", "not UTF-8" },
    };
    json_t *none = json_object();
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct ak_error error = { 0 };
        char *out;
        size_t n;
        ck_assert_int_ne(
            render(refused[i].template, strlen(refused[i].template), none, &out, &n, &error),
            AKUNU_OK);
        ck_assert_msg(strstr(error.message, refused[i].says) != NULL, "%s\n%s", refused[i].template,
                      error.message);
    }
    json_decref(none);
}
END_TEST

/* ---- Conversations through the public API ------------------------------- */
static struct akunu_chat chat_of(const char *messages)
{
    struct akunu_chat chat;
    akunu_chat_default(&chat, sizeof chat);
    chat.messages = messages;
    return chat;
}

static void check_chat(const char *template, const struct akunu_chat *chat, const char *want)
{
    struct akunu_template *parsed = akunu_template_parse(template, strlen(template), NULL);
    size_t n = 0;
    ck_assert_msg(parsed != NULL, "%s", akunu_last_error());
    char *got = akunu_template_render(parsed, chat, &n);
    if (want) {
        ck_assert_msg(got != NULL, "%s\n%s", template, akunu_last_error());
        ck_assert_str_eq(got, want);
        ck_assert_uint_eq(n, strlen(want));
    } else {
        ck_assert_msg(got == NULL, "%s\ngot %s", template, got);
    }
    akunu_text_free(got);
    akunu_template_free(parsed);
}

static void check_fails(const char *template, const struct akunu_chat *chat, const char *says)
{
    check_chat(template, chat, NULL);
    ck_assert_msg(strstr(akunu_last_error(), says) != NULL, "%s, where \"%s\" is expected",
                  akunu_last_error(), says);
}

START_TEST(sees_what_transformers_gives)
{
    struct akunu_chat chat = chat_of(
        "[{\"role\": \"user\", \"content\": \"Hi\", \"name\": null, \"reasoning\": \"R\"}]");
    check_chat("{{ messages }}", &chat,
               "[{'thinking': 'R', 'role': 'user', 'content': 'Hi', 'reasoning': 'R', "
               "'reasoning_content': 'R'}]");
    check_chat("{{ tools }}{{ documents }}{{ add_generation_prompt }}{{ bos_token is defined }}",
               &chat, "NoneNoneTrueFalse");
    chat.tools = "[{\"name\": \"f\"}]";
    chat.documents = "[{\"title\": \"t\"}]";
    chat.kwargs = "{\"enable_thinking\": false, \"eos_token\": \"</k>\"}";
    chat.bos_token = "<s>";
    chat.eos_token = "</s>";
    chat.add_generation_prompt = false;
    check_chat("{{ tools[0].name }}{{ documents[0].title }}{{ enable_thinking }}{{ bos_token }}{{ "
               "eos_token }}{{ add_generation_prompt }}",
               &chat, "ftFalse<s></k>False");
    chat.now = NOW;
    setenv("TZ", "UTC", 1);
    tzset();
    check_chat("{{ strftime_now('%Y-%m-%d') }}", &chat, "2024-07-26");
}
END_TEST

/* Null members of messages, of arguments and of schemas: tests/golden/null_content.py. */
START_TEST(sees_null_as_transformers_does)
{
    json_t *root = read_cases("null_content.json");
    const json_t *conversations = json_object_get(root, "conversations"),
                 *templates = json_object_get(root, "templates"),
                 *outputs = json_object_get(root, "outputs");
    size_t n = json_array_size(templates), n_rendered = 0;
    char *tools = json_dumps(json_object_get(root, "tools"), 0);
    ck_assert_uint_eq(json_array_size(outputs), json_array_size(conversations) * n);
    for (size_t i = 0; i < json_array_size(outputs); i++) {
        char *messages = json_dumps(json_array_get(conversations, i / n), 0);
        const char *want = json_string_value(json_array_get(outputs, i));
        struct akunu_chat chat = chat_of(messages);
        chat.tools = tools;
        chat.add_generation_prompt = false;
        check_chat(json_string_value(json_array_get(templates, i % n)), &chat, want);
        n_rendered += want != NULL;
        free(messages);
    }
    ck_assert_uint_gt(n_rendered, 200);
    free(tools);
    json_decref(root);
}
END_TEST

START_TEST(null_members)
{
    struct akunu_chat chat =
        chat_of("[{\"role\": \"assistant\", \"content\": null, \"tool_calls\": null, "
                "\"refusal\": null, \"name\": null, \"reasoning\": null}]");
    check_chat("{{ messages }}", &chat, "[{'role': 'assistant', 'content': None}]");
    chat.continue_final_message = "content";
    chat.add_generation_prompt = false;
    check_fails("{{ messages[0].content }}", &chat, "is null, where a string is expected");
}
END_TEST

START_TEST(goes_on_with_the_last_message)
{
    static const char template[] = "{% for m in messages %}<{{ m.role }}>{{ m.content|trim if trim "
                                   "else m.content }}</{{ m.role }}>{% endfor %}";
    struct akunu_chat chat = chat_of("[{\"role\": \"user\", \"content\": \"a\"}, {\"role\": "
                                     "\"assistant\", \"content\": \"b b \"}]");
    chat.continue_final_message = "content";
    check_fails(template, &chat, "add_generation_prompt");
    chat.add_generation_prompt = false;
    check_chat(template, &chat, "<user>a</user><assistant>b b ");
    chat.kwargs = "{\"trim\": true}";
    check_chat(template, &chat, "<user>a</user><assistant>b b");
    chat.kwargs = NULL;
    check_fails("nothing of them", &chat, "does not use \"content\"");
    check_fails("{{ messages[0].content }}", &chat, "does not appear");
    chat.continue_final_message = "reasoning_content";
    check_fails(template, &chat, "no \"reasoning_content\"");
    chat.continue_final_message = "content";
    chat.messages = "[{\"role\": \"assistant\", \"content\": [{\"type\": \"text\", \"text\": "
                    "\"x\"}, {\"type\": \"text\", \"text\": \"y\"}, {\"type\": \"image\"}]}]";
    check_chat("{% for p in messages[0].content %}[{{ p.text }}]{% endfor %}", &chat, "[x][y");
    chat.messages = "[{\"role\": \"assistant\", \"thinking\": \"t\", \"content\": \"\"}]";
    chat.continue_final_message = "thinking";
    check_chat("{{ messages[0].reasoning_content }}|", &chat, "t");
}
END_TEST

/* Numbers that Python's json.loads reads and jansson does not, as transformers 5.24 renders them.
 */
START_TEST(numbers_beyond_jansson)
{
    struct akunu_chat chat =
        chat_of("\xef\xbb\xbf[{\"role\": \"user\", \"a\": 12345678901234567890, "
                "\"b\": -9223372036854775809, \"c\": 1e400, \"d\": NaN, \"e\": -Infinity, "
                "\"f\": 9223372036854775807, \"g\": 1.5, \"h\": 1e22, "
                "\"i\": {\"x\": [100000000000000000000000000000000000000000]}}]");
    check_chat("{{ messages[0]|tojson }}", &chat,
               "{\"role\": \"user\", \"a\": 12345678901234567890, "
               "\"b\": -9223372036854775809, \"c\": Infinity, \"d\": NaN, \"e\": -Infinity, "
               "\"f\": 9223372036854775807, \"g\": 1.5, \"h\": 1e+22, "
               "\"i\": {\"x\": [100000000000000000000000000000000000000000]}}");
    check_chat("{% set m = messages[0] %}{{ m.a }}|{{ m.i }}|{{ m.a == m.a, m.a > m.f, m.b < m.a, "
               "m.b < -5, m.a > 2.5, m.a < m.c, m.a != m.b, m.a is integer, m.a is number, "
               "m.a is string, not m.a }}|{{ m.a|int }}|{{ [m.a, 3, m.b, 2.5]|sort }}|"
               "{{ m.a|string|length }}|{{ m.a|float }}|{{ m.a|round|float }}|{{ {m.a: 1}[m.a] }}",
               &chat,
               "12345678901234567890|{'x': [100000000000000000000000000000000000000000]}|(True, "
               "True, True, True, True, True, True, True, True, False, False)|"
               "12345678901234567890|[-9223372036854775809, 2.5, 3, 12345678901234567890]|20|"
               "1.2345678901234567e+19|1.2345678901234567e+19|1");
}
END_TEST

START_TEST(refuses_what_is_no_conversation)
{
    struct akunu_chat chat = chat_of("[]");
    check_fails("x", &chat, "conversation is empty");
    chat.messages = "{}";
    check_fails("x", &chat, "an object is given, where a list is expected");
    chat.messages = "[1]";
    check_fails("x", &chat, "element 0 is an integer");
    chat.messages = "[{]";
    check_fails("x", &chat, "messages: no JSON");
    ck_assert_int_eq(akunu_last_status(), AKUNU_ERROR_ARGUMENT);
    chat.messages = "[12345678901234567890]";
    check_fails("x", &chat, "element 0 is an integer beyond 64 bits");
    chat.messages = "[{\"n\": 12345678901234567890}]";
    check_fails("{{ messages[0].n + 1 }}", &chat, "beyond 64 bits, the limit");
    check_fails("{{ -messages[0].n }}", &chat, "beyond 64 bits, the limit");
    chat.kwargs = "12345678901234567890";
    check_fails("x", &chat, "kwargs: an integer beyond 64 bits is given");
    chat.kwargs = NULL;
    chat.messages = "[{\"role\": \"user\"}]";
    chat.kwargs = "{\"messages\": []}";
    check_fails("x", &chat, "\"messages\" is given by itself");
    chat.kwargs = NULL;
    chat.name = "rag";
    check_fails("x", &chat, "no chat template named \"rag\"; it has: default");
    chat.name = NULL;
    check_fails("{{ raise_exception('my words') }}", &chat, "line 1, column 4: my words");
    ck_assert_ptr_null(akunu_template_render(NULL, &chat, NULL));
    akunu_template_free(NULL);
}
END_TEST

/* Templates and special tokens of models: a GGUF file without a template, and one with several. */
START_TEST(knows_a_model_s_templates)
{
    char path[4096];
    static const char *const templates[] = {
        "tokenizer.chat_template=str:D{{ bos_token }}",
        "tokenizer.chat_template.tool_use=str:T{{ tools|length }}", NULL
    };
    struct akunu_chat chat = chat_of("[{\"role\": \"user\", \"content\": \"Hi\"}]");
    snprintf(path, sizeof path, "%s/models/gemma.gguf", getenv("AK_TEST_DATA"));
    struct akunu_template *none = akunu_template_load(path, NULL),
                          *several = akunu_template_load(path, templates);
    ck_assert_msg(none && several, "%s", akunu_last_error());

    ck_assert(akunu_template_is_fallback(none) && !akunu_template_is_fallback(several));
    char *text = akunu_template_render(none, &chat, NULL);
    ck_assert_str_eq(text, "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
    akunu_text_free(text);
    chat.messages = "[{\"role\": \"user\", \"content\": null}, {\"role\": \"user\", \"content\": "
                    "[{\"type\": \"text\", \"text\": \"Hi\"}]}]";
    text = akunu_template_render(none, &chat, NULL);
    ck_assert_str_eq(text, "<|im_start|>user\n<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
                           "<|im_start|>assistant\n");
    akunu_text_free(text);

    ck_assert(akunu_template_name(several, 1) && !akunu_template_name(several, 2));
    size_t n;
    ck_assert_str_eq(akunu_template_text(several, NULL, true, &n), "T{{ tools|length }}");
    ck_assert_uint_eq(n, strlen("T{{ tools|length }}"));
    ck_assert_ptr_null(akunu_template_text(several, "rag", false, &n));
    chat.tools = "[{}, {}]";
    text = akunu_template_render(several, &chat, NULL);
    ck_assert_str_eq(text, "T2");
    akunu_text_free(text);
    chat.name = "default";
    text = akunu_template_render(several, &chat, NULL);
    ck_assert_int_eq(text[0], 'D');
    akunu_text_free(text);

    static const char *const broken[] = { "tokenizer.chat_template=str:{% if %}", NULL };
    ck_assert_ptr_null(akunu_template_load(path, broken));
    ck_assert_msg(strstr(akunu_last_error(), "chat template: line 1, column") != NULL, "%s",
                  akunu_last_error());
    akunu_template_free(none);
    akunu_template_free(several);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("jinja");
    TCase *tcase = tcase_create("jinja");

    tcase_add_test(tcase, as_jinja2);
    tcase_add_loop_test(tcase, ends_at_a_limit, 0, sizeof limits / sizeof *limits);
    tcase_add_test(tcase, ends_at_a_depth_of_text);
    tcase_add_test(tcase, refuses_what_is_not_a_chat_template);
    tcase_add_test(tcase, sees_what_transformers_gives);
    tcase_add_test(tcase, sees_null_as_transformers_does);
    tcase_add_test(tcase, null_members);
    tcase_add_test(tcase, goes_on_with_the_last_message);
    tcase_add_test(tcase, numbers_beyond_jansson);
    tcase_add_test(tcase, refuses_what_is_no_conversation);
    tcase_add_test(tcase, knows_a_model_s_templates);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
