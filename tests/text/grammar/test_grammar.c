/* Grammars: GBNF, JSON Schema, masks, and texts that are held to them. Goldens:
 * grammar/gbnf.json by hand, grammar/schemas.json of the Python package jsonschema
 * (tests/golden/grammar.py). */
#include "tests/test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "akunu/akunu.h"
#include "base/json.h"
#include "base/mem.h"
#include "text/grammar/matcher.h"
#include "text/grammar/schema/schema.h"
#include "files/weights/provider.h"

/* ---- Helpers ------------------------------------------------------------ */
static const char *data_path(const char *name, char path[4096])
{
    const char *data = getenv("AK_TEST_DATA");
    ck_assert_ptr_nonnull(data);
    snprintf(path, 4096, "%s/%s", data, name);
    return path;
}

static json_t *read_cases(const char *name)
{
    char path[4096];
    json_error_t error;
    json_t *cases = json_load_file(data_path(name, path), JSON_ALLOW_NUL, &error);
    ck_assert_msg(json_is_array(cases), "%s: %s", path, error.text);
    return cases;
}

static struct ak_grammar *gbnf(const char *text)
{
    struct ak_error error = { 0 };
    struct ak_grammar *g;
    ck_assert_msg(ak_grammar_from_gbnf(text, strlen(text), "root", &g, &error) == AKUNU_OK,
                  "%s: %s", text, error.message);
    return g;
}

static ak_status try_schema(const char *text, enum ak_schema_form form, bool lax,
                            struct ak_grammar **g, struct ak_error *error)
{
    struct ak_schema_options options = { .form = form, .lax = lax };
    return ak_grammar_from_schema_text(text, strlen(text), &options, g, error);
}

static struct ak_grammar *schema(const char *text, enum ak_schema_form form)
{
    struct ak_error error = { 0 };
    struct ak_grammar *g;
    ck_assert_msg(try_schema(text, form, false, &g, &error) == AKUNU_OK, "%s: %s", text,
                  error.message);
    return g;
}

static bool takes_bytes(struct ak_grammar *g, const char *text, size_t n)
{
    struct ak_error error = { 0 };
    struct ak_grammar_matcher *m;
    size_t taken;
    ck_assert_msg(ak_grammar_matcher_create(g, NULL, &m, &error) == AKUNU_OK, "%s", error.message);
    ck_assert_msg(ak_grammar_matcher_accept_bytes(m, text, n, &taken, &error) == AKUNU_OK, "%s",
                  error.message);
    bool yes = taken == n && ak_grammar_matcher_is_accepting(m);
    ak_grammar_matcher_free(m);
    return yes;
}

static bool takes(struct ak_grammar *g, const char *text)
{
    return takes_bytes(g, text, strlen(text));
}

/* With double quotes for single ones. */
static const char *quoted(const char *text, char *out)
{
    strcpy(out, text);
    for (char *p = out; *p; p++)
        if (*p == '\'')
            *p = '"';
    return out;
}

static void check_texts(struct ak_grammar *g, const json_t *texts, bool want, const char *what)
{
    const json_t *text;
    size_t i;
    json_array_foreach (texts, i, text)
        ck_assert_msg(takes_bytes(g, json_string_value(text), json_string_length(text)) == want,
                      "%s: %s is %s", what, json_string_value(text),
                      want ? "not accepted" : "accepted");
}

/* ---- GBNF --------------------------------------------------------------- */
START_TEST(gbnf_cases)
{
    json_t *cases = read_cases("grammar/gbnf.json"), *c;
    size_t i;
    json_array_foreach (cases, i, c) {
        const json_t *text = json_object_get(c, "grammar");
        const char *want = json_string_value(json_object_get(c, "error"));
        struct ak_error error = { 0 };
        struct ak_grammar *g = NULL;
        struct ak_grammar_matcher *m = NULL;
        ak_status status = ak_grammar_from_gbnf(json_string_value(text), json_string_length(text),
                                                "root", &g, &error);
        if (status == AKUNU_OK && want)
            status = ak_grammar_matcher_create(g, NULL, &m, &error);
        if (want) {
            ck_assert_msg(status != AKUNU_OK && strstr(error.message, want),
                          "%s: \"%s\", want \"%s\"", json_string_value(text), error.message, want);
        } else {
            ck_assert_msg(status == AKUNU_OK, "%s: %s", json_string_value(text), error.message);
            check_texts(g, json_object_get(c, "accept"), true, json_string_value(text));
            check_texts(g, json_object_get(c, "reject"), false, json_string_value(text));
        }
        ak_grammar_matcher_free(m);
        ak_grammar_free(g);
    }
    json_decref(cases);
}
END_TEST

/* A place in the middle of a text is told by the byte. */
START_TEST(first_wrong_byte)
{
    struct ak_grammar *g = gbnf("root ::= \"ab\" [0-9]{2} \"é\"");
    struct ak_error error = { 0 };
    struct ak_grammar_matcher *m;
    size_t taken;
    ck_assert_int_eq(ak_grammar_matcher_create(g, NULL, &m, &error), AKUNU_OK);
    ck_assert_int_eq(ak_grammar_matcher_accept_bytes(m, "ab12\xc3\xaa", 6, &taken, &error),
                     AKUNU_OK);
    ck_assert_uint_eq(taken, 5);
    ck_assert(!ak_grammar_matcher_is_accepting(m));
    ck_assert_int_eq(ak_grammar_matcher_accept_bytes(m, "\xa9", 1, &taken, &error), AKUNU_OK);
    ck_assert(ak_grammar_matcher_must_end(m));
    ak_grammar_matcher_free(m);
    ak_grammar_free(g);
}
END_TEST

START_TEST(not_utf8_is_refused)
{
    struct ak_error error = { 0 };
    struct ak_grammar *g;
    static const char text[] = "root ::= \"a\"\nb ::= \"\xff\"";
    ck_assert_int_eq(ak_grammar_from_gbnf(text, sizeof text - 1, "root", &g, &error),
                     AKUNU_ERROR_FORMAT);
    ck_assert_ptr_nonnull(strstr(error.message, "2:8: "));
}
END_TEST

/* Long and deep texts take memory, not time without end, and no C stack. */
START_TEST(long_texts)
{
    struct ak_grammar *g = gbnf("root ::= \"(\" root \")\" | [a-z]{0,100000}");
    enum { N = 20000 };
    char *text = malloc(2 * N);
    memset(text, '(', N);
    memset(text + N, ')', N);
    ck_assert(takes_bytes(g, text, 2 * N));
    ck_assert(!takes_bytes(g, text, 2 * N - 1));
    memset(text, 'x', 2 * N);
    ck_assert(takes_bytes(g, text, 2 * N));
    free(text);
    ak_grammar_free(g);
    g = gbnf("root ::= (\"a\" | \"aa\" | \"aaa\"){0,1000}");
    ck_assert(takes(
        g,
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
    ak_grammar_free(g);
}
END_TEST

/* ---- JSON Schema -------------------------------------------------------- */
/* For reading: what the oracle calls valid and nothing else. For writing: nothing that is
 * not valid. */
START_TEST(schema_goldens)
{
    json_t *cases = read_cases("grammar/schemas.json"), *c, *pair;
    size_t i, j, n_right = 0;
    json_array_foreach (cases, i, c) {
        struct ak_schema_options options = { .form = _i ? AK_SCHEMA_WRITING : AK_SCHEMA_READING };
        struct ak_error error = { 0 };
        struct ak_grammar *g;
        ak_status status =
            ak_grammar_from_schema(json_object_get(c, "schema"), &options, &g, &error);
        if (status == AKUNU_ERROR_UNSUPPORTED)
            continue;
        ck_assert_msg(status == AKUNU_OK, "case %zu: %s", i, error.message);
        json_array_foreach (json_object_get(c, "texts"), j, pair) {
            const json_t *text = json_array_get(pair, 0);
            bool valid = json_is_true(json_array_get(pair, 1));
            bool accepted = takes_bytes(g, json_string_value(text), json_string_length(text));
            ck_assert_msg(accepted == valid || (_i && !accepted), "case %zu: %s is %s", i,
                          json_string_value(text), accepted ? "accepted" : "not accepted");
            n_right++;
        }
        ak_grammar_free(g);
    }
    ck_assert_uint_gt(n_right, 1000);
    json_decref(cases);
}
END_TEST

/* What a model may write, and how: what is not below is decided by the goldens. */
START_TEST(writing_form)
{
    static const char text[] = "{\"type\": \"object\", \"properties\": {\"a\": {\"type\": "
                               "\"integer\"}, \"b\": {\"type\": \"string\", \"maxLength\": 3},"
                               "\"c\": {\"enum\": [\"x\", 1.5, null]}}, \"required\": [\"a\", "
                               "\"c\"], \"additionalProperties\": false}";
    struct ak_grammar *g = schema(text, AK_SCHEMA_WRITING);
    ck_assert(takes(g, "{\"a\": 1, \"b\": \"xyz\", \"c\": null}"));
    ck_assert(takes(g, "{\"a\":-12,\"c\":\"x\"}"));
    ck_assert(takes(g, "{\n  \"a\": 1,\n  \"c\": 1.5\n}"));
    ck_assert(!takes(g, "{\"c\": \"x\", \"a\": 1}")); /* another order */
    ck_assert(!takes(g, "{\"a\": 1, \"b\": \"wxyz\", \"c\": null}"));
    ck_assert(!takes(g, "{\"a\": 1, \"a\": 1, \"c\": null}"));
    ck_assert(!takes(g, "{\"a\": 01, \"c\": null}"));
    ck_assert(!takes(g, "{\"a\": 1, \"c\": null,}"));
    ck_assert(!takes(g, " {\"a\": 1, \"c\": null}"));
    ck_assert(!takes(g, "{\"\\u0061\": 1, \"c\": null}"));
    ak_grammar_free(g);
}
END_TEST

START_TEST(reading_form)
{
    struct ak_grammar *g = schema("{\"properties\": {\"a\": {\"const\": \"\\u00e9\"}, \"n\": "
                                  "{\"const\": 2}}, \"required\": [\"a\"]}",
                                  AK_SCHEMA_READING);
    ck_assert(takes(g, "{\"a\": \"\xc3\xa9\"}"));
    ck_assert(takes(g, " {\"x\": [1e5, {}],\r\n\t\"\\u0061\": \"\\u00E9\", \"n\": 2.00} "));
    ck_assert(!takes(g, "{\"a\": \"e\"}"));
    ck_assert(!takes(g, "{\"a\": \"\xc3\xa9\", \"\\u0061\": \"\xc3\xa9\"}")); /* twice */
    ck_assert(!takes(g, "{\"a\": \"\xc3\xa9\", \"\\u006E\": 3}"));
    ck_assert(!takes(g, "{\"a\": \"\xc3\xa9\", \"n\": 02}"));
    ak_grammar_free(g);
    g = schema("{\"type\": \"string\", \"maxLength\": 1}", AK_SCHEMA_READING);
    ck_assert(takes(g, "\"\\ud83d\\ude00\""));
    ck_assert(!takes(g, "\"\\ud83d\""));
    ck_assert(!takes(g, "\"\x01\""));
    ck_assert(!takes(g, "\"\xff\""));
    ak_grammar_free(g);
}
END_TEST

/* Bounds are exact, however long. */
START_TEST(exact_bounds)
{
    struct ak_grammar *g =
        schema("{\"type\": \"integer\", \"minimum\": -1050, \"maximum\": 9223372036854775807}",
               AK_SCHEMA_WRITING);
    ck_assert(takes(g, "9223372036854775807"));
    ck_assert(!takes(g, "9223372036854775808"));
    ck_assert(takes(g, "-1050"));
    ck_assert(!takes(g, "-1051"));
    ck_assert(takes(g, "-999"));
    ak_grammar_free(g);
    g = schema("{\"type\": \"number\", \"exclusiveMinimum\": -0.05, \"maximum\": 12.125}",
               AK_SCHEMA_READING);
    static const struct {
        const char *text;
        bool valid;
    } cases[] = {
        { "-0.05", false }, { "-0.050", false },  { "-0.0499999999999999999999999999", true },
        { "-0.049", true }, { "-0.06", false },   { "0", true },
        { "12.125", true }, { "12.12500", true }, { "12.1250000001", false },
        { "12.13", false }, { "9.99", true },     { "12.0", true },
        { "13", false },    { "100", false },     { "-1", false },
        { "1e0", false },   { "12.", false },     { "012", false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_msg(takes(g, cases[i].text) == cases[i].valid, "%s", cases[i].text);
    ak_grammar_free(g);
}
END_TEST

/* All integers near two bounds, against plain comparison. */
/* Integers beyond 64 bits keep their digits, and a model may write 40 digits. */
START_TEST(long_integers)
{
    static const struct {
        const char *schema, *text;
        bool valid, is_written; /* by the form for reading; by the form for writing */
    } cases[] = {
        { "{'type': 'integer'}", "1234567890123456789012345678901234567890", true, true },
        { "{'type': 'integer'}", "-1234567890123456789012345678901234567890", true, true },
        { "{'type': 'integer'}", "12345678901234567890123456789012345678901", true, false },
        { "{'type': 'number'}", "1234567890123456789012345678901234567890.5", true, true },
        { "{'type': 'number'}", "0.1234567890123456789012345678901234567890", true, true },
        { "{'type': 'number'}", "0.12345678901234567890123456789012345678901", true, false },
        { "{'type': 'number'}", "1e259", true, true },
        { "{'type': 'number'}", "1E+199", true, true },
        { "{'type': 'number'}", "1e260", true, false },
        { "{'type': 'number'}", "1e-320", true, true },
        { "{'type': 'number'}", "1e1000", true, false },
        { "{'type': 'integer', 'minimum': 5}", "1234567890123456789012345678901234567890", true,
          true },
        { "{'type': 'number', 'maximum': 5}", "-12345678901234567890.12345678901234567890", true,
          true },
        { "{'enum': [12345678901234567890, 1]}", "12345678901234567890", true, true },
        { "{'enum': [12345678901234567890, 1]}", "12345678901234567891", false, false },
        { "{'const': {'id': -12345678901234567890}}", "{\"id\": -12345678901234567890}", true,
          true },
        { "{'type': 'integer', 'minimum': 0, 'maximum': 18446744073709551615}",
          "18446744073709551615", true, true },
        { "{'type': 'integer', 'minimum': 0, 'maximum': 18446744073709551615}",
          "18446744073709551616", false, false },
        { "{'exclusiveMinimum': -18446744073709551616}", "-18446744073709551615", true, true },
        { "{'exclusiveMinimum': -18446744073709551616}", "-18446744073709551616", false, false },
        /* two bounds of one end: the narrower one counts, by the specification of JSON Schema */
        { "{'type': 'number', 'minimum': 5, 'exclusiveMinimum': 3}", "5", true, true },
        { "{'type': 'number', 'minimum': 5, 'exclusiveMinimum': 3}", "4.9", false, false },
        { "{'type': 'number', 'minimum': 3, 'exclusiveMinimum': 5}", "5", false, false },
        { "{'type': 'number', 'minimum': 3, 'exclusiveMinimum': 5}", "5.1", true, true },
        { "{'type': 'number', 'minimum': 5, 'exclusiveMinimum': 5}", "5", false, false },
        { "{'type': 'integer', 'maximum': 5, 'exclusiveMaximum': 7}", "5", true, true },
        { "{'type': 'integer', 'maximum': 5, 'exclusiveMaximum': 7}", "6", false, false },
        { "{'type': 'number', 'maximum': 7, 'exclusiveMaximum': 5}", "5", false, false },
        { "{'type': 'number', 'allOf': [{'exclusiveMaximum': 7}, {'maximum': 5}]}", "5", true,
          true },
        { "{'type': 'number', 'allOf': [{'maximum': 5}, {'exclusiveMaximum': 5}]}", "5", false,
          false },
        { "{'maxLength': 18446744073709551615}", "\"abc\"", true, true },
        { "{'not': {'const': 12345678901234567890}}", "12345678901234567890", false, false },
        { "{'not': {'const': 12345678901234567890}}", "12345678901234567891", true, true },
        { "{'type': 'integer', 'const': 12345678901234567890}", "12345678901234567890", true,
          true },
        { "{'type': 'string', 'enum': ['a', 12345678901234567890]}", "12345678901234567890", false,
          false },
        { "{'multipleOf': 5, 'default': 99999999999999999999}", "99999999999999999995", true,
          true },
    };
    char text[256];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ak_grammar *g = schema(quoted(cases[i].schema, text), AK_SCHEMA_READING);
        ck_assert_msg(takes(g, cases[i].text) == cases[i].valid, "%s\n%s", cases[i].schema,
                      cases[i].text);
        ak_grammar_free(g);
        g = schema(text, AK_SCHEMA_WRITING);
        ck_assert_msg(takes(g, cases[i].text) == cases[i].is_written, "%s\n%s", cases[i].schema,
                      cases[i].text);
        ak_grammar_free(g);
    }
}
END_TEST

START_TEST(all_bounds)
{
    static const int bounds[] = { -1000, -101, -100, -99, -10, -9,  -1,  0,
                                  1,     9,    10,   11,  99,  100, 101, 999 };
    enum { N = sizeof bounds / sizeof *bounds };
    for (int i = 0; i < N; i += 1 + _i) {
        for (int j = 0; j < N; j++) {
            char text[128], number[16];
            snprintf(text, sizeof text,
                     "{\"type\": \"integer\", \"minimum\": %d, \"exclusiveMaximum\": %d}",
                     bounds[i], bounds[j]);
            struct ak_grammar *g = schema(text, AK_SCHEMA_WRITING);
            for (int v = -1100; v <= 1100; v += v > -120 && v < 120 ? 1 : 37) {
                snprintf(number, sizeof number, "%d", v);
                ck_assert_msg(takes(g, number) == (v >= bounds[i] && v < bounds[j]), "%d: %s", v,
                              text);
            }
            ak_grammar_free(g);
        }
    }
}
END_TEST

START_TEST(refused_by_name)
{
    static const struct {
        const char *schema, *keyword;
    } cases[] = {
        { "{\"type\": \"array\", \"uniqueItems\": true}", "\"uniqueItems\"" },
        { "{\"properties\": {\"a\": {\"not\": {\"format\": \"date\"}}}}",
          "#/properties/a: \"not\"" },
        { "{\"not\": {\"const\": []}}", "#: \"not\"" },
        { "{\"allOf\": [{\"contains\": {}}, {\"contains\": {\"type\": \"null\"}}]}",
          "#/allOf/1: \"contains\"" },
        { "{\"if\": {\"multipleOf\": 3}, \"then\": {}, \"else\": {}}", "#: \"if\"" },
        { "{\"$ref\": \"other.json\"}", "\"$ref\"" },
        { "{\"$ref\": \"#\"}", "\"$ref\"" },
        { "{\"anyOf\": [{\"type\": \"null\"}, {\"$ref\": \"#\"}]}", "\"$ref\"" },
        { "{\"$dynamicRef\": \"#a\"}", "\"$dynamicRef\"" },
        { "{\"type\": \"string\", \"pattern\": \"^(?=a)\"}", "\"pattern\"" },
        { "{\"type\": \"string\", \"pattern\": \"(a)\\\\1\"}", "\"pattern\"" },
        { "{\"type\": \"string\", \"pattern\": \"\\\\bword\"}", "\"pattern\"" },
        { "{\"type\": \"string\", \"format\": \"regex\"}", "\"format\"" },
        { "{\"type\": \"number\", \"multipleOf\": 2.5}", "\"multipleOf\"" },
        { "{\"oneOf\": [{\"type\": \"number\"}, {\"multipleOf\": 2}]}", "#: \"oneOf\"" },
        { "{\"maxLenght\": 3}", "\"maxLenght\"" },
        { "{\"minProperties\": 2}", "\"minProperties\"" },
        { "{\"$schema\": \"http://example.com/mine\"}", "\"$schema\"" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ak_error error = { 0 };
        struct ak_grammar *g;
        ck_assert_msg(try_schema(cases[i].schema, AK_SCHEMA_WRITING, false, &g, &error) ==
                          AKUNU_ERROR_UNSUPPORTED,
                      "%s: %s", cases[i].schema, error.message);
        ck_assert_msg(strstr(error.message, cases[i].keyword) &&
                          strstr(error.message, "not supported"),
                      "%s", error.message);
        ck_assert_msg(try_schema(cases[i].schema, AK_SCHEMA_WRITING, true, &g, &error) == AKUNU_OK,
                      "%s: %s", cases[i].schema, error.message);
        ak_grammar_free(g);
    }
}
END_TEST

/* What breaks a keyword, keyword by keyword; each example as jsonschema 4.26 sees it. */
START_TEST(opposites)
{
    static const struct {
        const char *schema, *yes[4], *no[4];
    } cases[] = {
        { "{'not': {'type': 'integer'}}", { "1.5", "null", "[3]" }, { "3", "-20" } },
        { "{'oneOf': [{'type': 'integer'}, {'type': 'number', 'minimum': 0, 'maximum': 1}]}",
          { "0.5", "7", "-3", "0.01" },
          { "1", "0", "1.5", "-0.5" } },
        { "{'oneOf': [{'type': 'number', 'minimum': -1.25}, {'type': 'integer', 'maximum': 1}]}",
          { "0.5", "-1.25", "-2", "2" },
          { "1", "-1", "-1.26", "0.0" } },
        { "{'type': 'number', 'not': {'type': 'integer'}, 'exclusiveMinimum': 0.5, 'maximum': "
          "2.25}",
          { "2.25", "0.51", "1.5", "2.001" },
          { "1", "2", "0.5", "2.26" } },
        { "{'type': 'number', 'not': {'type': 'integer'}, 'exclusiveMinimum': 2, 'maximum': "
          "3.05}",
          { "3.05", "3.01", "3.049", "2.5" },
          { "3.0", "3", "3.06", "2.0" } },
        { "{'if': {'type': 'integer'}, 'then': {'minimum': 0}, 'else': {'type': 'number', "
          "'maximum': 0}}",
          { "3", "-0.5", "0" },
          { "-3", "0.5", "'a'" } },
        { "{'type': 'number', 'multipleOf': 0.1, 'not': {'type': 'integer'}, 'minimum': 1}",
          { "1.1", "10.3" },
          { "3", "1.15", "3.0", "0.9" } },
        { "{'type': 'number', 'multipleOf': 0.01, 'exclusiveMinimum': 5}",
          { "5.01", "5.1", "6", "12.34" },
          { "5", "5.0", "5.001", "5.011" } },
        { "{'type': 'number', 'multipleOf': 0.01, 'exclusiveMaximum': 5, 'minimum': 4}",
          { "4", "4.99", "4.9" },
          { "5", "4.999", "4.001", "3.99" } },
        { "{'type': 'number', 'multipleOf': 0.1, 'exclusiveMinimum': 0.25, 'maximum': 1}",
          { "0.3", "0.9", "1" },
          { "0.2", "0.25", "0.26", "1.01" } },
        { "{'not': {'type': ['number', 'null']}}",
          { "'3'", "true", "{}" },
          { "3", "1.5", "null" } },
        { "{'not': {'enum': [1, 'a', null, true]}}",
          { "2", "'b'", "false", "[1]" },
          { "1", "'a'", "null", "true" } },
        { "{'not': {'minItems': 2}}", { "[1]", "[]" }, { "[1,2]", "3" } },
        { "{'not': {'maxLength': 2}}", { "'abc'" }, { "'ab'", "1" } },
        { "{'not': {'minLength': 0}}", { NULL }, { "''", "1" } },
        { "{'not': {'minimum': 2}}", { "1.9", "-5" }, { "2", "3", "'a'" } },
        { "{'not': {'pattern': '^a'}}", { "'ba'", "''" }, { "'a'", "1" } },
        { "{'not': {'required': ['a', 'b']}}", { "{'a':1}", "{}" }, { "{'a':1,'b':2}", "1" } },
        { "{'not': {'properties': {'a': {'const': 1}}}}", { "{'a':2}" }, { "{'a':1}", "{}", "1" } },
        { "{'not': {'dependentRequired': {'a': ['b']}, 'dependentSchemas': {'c': {'required': "
          "['d']}}}}",
          { "{'a':1}", "{'c':1}" },
          { "{'a':1,'b':2}", "{}", "{'c':1,'d':1}" } },
        { "{'not': {'items': {'type': 'null'}}}", { "[1]", "[null,1]" }, { "[]", "[null]", "1" } },
        { "{'not': {'prefixItems': [true, {'type': 'null'}]}}",
          { "[1,2]" },
          { "[1]", "[1,null]" } },
        { "{'not': {'contains': {'type': 'null'}}}", { "[]", "[1]" }, { "[1,null]", "1" } },
        { "{'not': {'anyOf': [{'type': 'null'}, {'type': 'string'}]}}",
          { "1" },
          { "null", "'a'" } },
        { "{'not': {'oneOf': [{'minimum': 2}, {'maximum': 5}]}}", { "3" }, { "1", "6" } },
        { "{'oneOf': [{'type': ['integer', 'null']}, {'type': ['null', 'string']}]}",
          { "1", "'a'" },
          { "null", "true" } },
        { "{'if': {'minimum': 10}, 'then': {'maximum': 20}, 'else': {'type': 'null'}}",
          { "15", "'a'" },
          { "21", "3" } },
        { "{'not': {'not': {'properties': {'a': true}}}, 'unevaluatedProperties': false}",
          { "{}", "1" },
          { "{'a':1}" } },
        { "{'contains': {'const': 1}, 'minContains': 2, 'maxContains': 3}",
          { "[1,2,1]", "[1,1,1]", "1" },
          { "[1,2]", "[1,1,1,1]" } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        struct ak_grammar *g = schema(quoted(cases[i].schema, text), AK_SCHEMA_READING);
        for (size_t j = 0; j < 8; j++) {
            const char *one = j < 4 ? cases[i].yes[j] : cases[i].no[j - 4];
            ck_assert_msg(!one || takes(g, quoted(one, text)) == (j < 4), "%s: %s", cases[i].schema,
                          one);
        }
        ak_grammar_free(g);
    }
}
END_TEST

/* Examples of the definitions that formats.c names, and strings that break them. */
START_TEST(formats)
{
    static const struct {
        const char *name, *yes[5], *no[7];
    } cases[] = {
        { "duration",
          { "P4DT12H30M5S", "P1W", "PT36H", "P2Y", "P1Y2M3D" },
          { "P", "PT", "1D", "P1D2H", "P1Y2W", "P2D1Y", "P1YT" } },
        { "email",
          { "joe.bloggs@example.com", "te~st@x", "a+b@x-y.org" },
          { "2962", ".a@b.c", "a..b@c.d", "a@", "a b@c.d", "a@b--c.d", "a@-b" } },
        { "hostname",
          { "www.example.com", "a", "4a", "x-1.y" },
          { "", "-a", "a-", "a..b", ".a", "a_b", "a.b." } },
        { "ipv6",
          { "::1", "12:34:56:78:9a:bc:de:f0", "1::", "::ffff:192.168.0.1", "1:2::8" },
          { "12345::", "::abef::", ":2:3:4:5:6:7:8", "1:2:3:4:5:6:7", "::1/64", "1:2:3:4:5:6:7:8:9",
            "::256.1.1.1" } },
        { "uri",
          { "http://foo.bar/?q=1#f", "mailto:a@b.c", "urn:x:y", "ftp://u:p@h:21/a%20b", "x:" },
          { "//foo.bar/", "/abc", "a b", "http://a b/", ":x", "\\\\\\\\WINDOWS", "bar,:x" } },
        { "uri-reference",
          { "../a", "#f", "", "//h/p", "http://x/" },
          { "a b", "http://[x", "a%zz", "\\\\x", ":x" } },
        { "iri", { "http://\u00e6.example/\u00fc?q=\u4e2d" }, { "/\u00e6", "http://a b/" } },
        { "uri-template",
          { "http://x/{term:1}/{?a,b*}", "{+path}", "" },
          { "http://x/{term", "{}", "{a b}", "}" } },
        { "json-pointer", { "", "/a/~0~1/", "/" }, { "a", "/~2", "#/a" } },
        { "relative-json-pointer", { "0", "1/a/b", "2#" }, { "/a", "-1/a", "01", "1#/a", "" } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[128];
        snprintf(text, sizeof text, "{\"type\": \"string\", \"format\": \"%s\"}", cases[i].name);
        struct ak_grammar *g = schema(text, AK_SCHEMA_READING);
        for (size_t j = 0; j < 12; j++) {
            const char *one = j < 5 ? cases[i].yes[j] : cases[i].no[j - 5];
            if (!one)
                continue;
            snprintf(text, sizeof text, "\"%s\"", one);
            ck_assert_msg(takes(g, text) == (j < 5), "%s: %s", cases[i].name, one);
        }
        ak_grammar_free(g);
    }
}
END_TEST

START_TEST(no_schemas)
{
    static const char *const cases[] = {
        "",
        "[]",
        "{\"type\": \"text\"}",
        "{\"type\": 3}",
        "{\"properties\": []}",
        "{\"required\": [1]}",
        "{\"enum\": {}}",
        "{\"anyOf\": []}",
        "{\"minLength\": -1}",
        "{\"minItems\": 1.5}",
        "{\"minimum\": \"1\"}",
        "{\"pattern\": \"(\", \"type\": \"string\"}",
        "{\"$ref\": \"#/$defs/a\"}",
        "{\"$ref\": \"#a\"}",
        "{\"multipleOf\": 0, \"type\": \"number\"}",
        "{\"properties\": {\"a\": 3}}",
        "{\"a\": 1, \"a\": 2}",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ak_error error = { 0 };
        struct ak_grammar *g;
        ck_assert_msg(try_schema(cases[i], AK_SCHEMA_WRITING, true, &g, &error) != AKUNU_OK, "%s",
                      cases[i]);
        ck_assert_ptr_null(g);
        ck_assert_msg(error.status == AKUNU_ERROR_FORMAT || error.status == AKUNU_ERROR_UNSUPPORTED,
                      "%s: %s", cases[i], error.message);
    }
}
END_TEST

/* ---- Tokens ------------------------------------------------------------- */
static struct ak_tokenizer *tokenizer;
static struct ak_grammar_token_trie *trie;

static void open_vocabulary(void)
{
    char path[4096];
    struct ak_error error = { 0 };
    struct ak_provider *p;
    ck_assert_msg(ak_provider_open(data_path("model.gguf", path), &p, &error) == AKUNU_OK, "%s",
                  error.message);
    ck_assert_msg(ak_tok_open(p, &tokenizer, &error) == AKUNU_OK, "%s", error.message);
    ak_provider_close(p);
    /* logits may be longer than the vocabulary */
    ck_assert_int_eq(ak_grammar_token_trie_create(
                         tokenizer, (uint32_t)ak_tok_n_tokens(tokenizer) + 40, &trie, &error),
                     AKUNU_OK);
}

static void close_vocabulary(void)
{
    ak_grammar_token_trie_free(trie);
    ak_tok_free(tokenizer);
}

static struct ak_grammar_matcher *matcher(struct ak_grammar *g)
{
    struct ak_error error = { 0 };
    struct ak_grammar_matcher *m;
    ck_assert_msg(ak_grammar_matcher_create(g, trie, &m, &error) == AKUNU_OK, "%s", error.message);
    return m;
}

static bool has(const uint32_t *mask, size_t i)
{
    return mask[i / 32] >> (i % 32) & 1;
}

/* What a mask must be: tried token by token, by bytes in a matcher without a vocabulary.
 * `is_lazy`: control tokens may come too. */
static void check_mask(struct ak_grammar_matcher *m, struct ak_grammar *g, const char *text,
                       size_t n, bool is_lazy)
{
    struct ak_error error = { 0 };
    const uint32_t *mask;
    struct ak_grammar_matcher *plain;
    ck_assert_int_eq(ak_grammar_matcher_get_mask(m, &mask, &error), AKUNU_OK);
    ck_assert_int_eq(ak_grammar_matcher_create(g, NULL, &plain, &error), AKUNU_OK);
    for (uint32_t i = 0; i < ak_grammar_token_trie_n_vocab(trie); i++) {
        int32_t id = (int32_t)i;
        char piece[64];
        size_t n_piece = 0, taken = 0;
        bool want = false, allowed;
        if (i < ak_tok_n_tokens(tokenizer) && ak_tok_is_end(tokenizer, id)) {
            want = ak_grammar_matcher_is_accepting(m);
        } else if (i < ak_tok_n_tokens(tokenizer) && !ak_tok_is_control(tokenizer, id)) {
            ck_assert_int_eq(ak_tok_decode(tokenizer, &id, 1, AKUNU_CONTINUE, piece, sizeof piece,
                                           &n_piece, &error),
                             AKUNU_OK);
            ck_assert_int_eq(ak_grammar_matcher_reset(plain, &error), AKUNU_OK);
            ck_assert_int_eq(ak_grammar_matcher_accept_bytes(plain, text, n, &taken, &error),
                             AKUNU_OK);
            ck_assert_int_eq(ak_grammar_matcher_accept_bytes(plain, piece, n_piece, &taken, &error),
                             AKUNU_OK);
            want = n_piece > 0 && taken == n_piece;
        } else {
            want = is_lazy && i < ak_tok_n_tokens(tokenizer);
        }
        ck_assert_msg(has(mask, i) == want, "token %u after \"%.*s\" is %s", i, (int)n, text,
                      want ? "not allowed" : "allowed");
        if (i < ak_tok_n_tokens(tokenizer)) {
            ck_assert_int_eq(ak_grammar_matcher_allows(m, id, &allowed, &error), AKUNU_OK);
            ck_assert_int_eq(allowed, want);
        }
    }
    ak_grammar_matcher_free(plain);
}

static uint32_t noise(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Takes random allowed tokens and looks at every mask on the way. */
START_TEST(masks)
{
    static const char *const texts[] = {
        ("{\"properties\": {\"name\": {\"type\": \"string\", \"maxLength\": 200}, \"n\": "
         "{\"type\": \"integer\", \"maximum\": 300}}, \"required\": [\"name\", \"n\"],"
         "\"additionalProperties\": false}"),
        "{\"type\": \"array\", \"items\": {\"type\": \"string\", \"pattern\": \"^[a-f]+( |-)\"}, "
        "\"minItems\": 3}",
        "{\"type\": \"string\", \"pattern\": \"^(\\\\p{L}+[ ,.]?)+[0-9]*x?$\", \"maxLength\": 40}",
        "{\"type\": \"string\", \"pattern\": \"^(a[^a]b)*$\", \"minLength\": 30, \"maxLength\": "
        "47}",
        "{}",
    };
    struct ak_grammar *g =
        _i < 5  ? schema(texts[_i], AK_SCHEMA_WRITING) :
        _i == 5 ? gbnf("root ::= (\"ab\"{2,300} | [^a]{0,5} \"é\"){1,70} \"the end\"") :
                  schema(texts[4], AK_SCHEMA_READING);
    struct ak_grammar_matcher *m = matcher(g);
    struct ak_error error = { 0 };
    uint32_t state = 7 + (uint32_t)_i;
    char text[2048];
    size_t n = 0;
    for (int step = 0; step < 24 && n < sizeof text - 64; step++) {
        const uint32_t *mask;
        size_t n_piece;
        bool allowed;
        int32_t id = -1;
        check_mask(m, g, text, n, false);
        ck_assert_int_eq(ak_grammar_matcher_get_mask(m, &mask, &error), AKUNU_OK);
        for (uint32_t tries = 0, at = noise(&state); id < 0 && tries < ak_tok_n_tokens(tokenizer);
             tries++, at++)
            if (has(mask, at % ak_tok_n_tokens(tokenizer)))
                id = (int32_t)(at % ak_tok_n_tokens(tokenizer));
        ck_assert_int_ge(id, 0);
        if (ak_tok_is_end(tokenizer, id))
            break;
        ck_assert_int_eq(ak_grammar_matcher_accept_token(m, id, &allowed, &error), AKUNU_OK);
        ck_assert(allowed);
        ck_assert_int_eq(ak_tok_decode(tokenizer, &id, 1, AKUNU_CONTINUE, text + n, sizeof text - n,
                                       &n_piece, &error),
                         AKUNU_OK);
        n += n_piece;
    }
    ak_grammar_matcher_free(m);
    ak_grammar_free(g);
}
END_TEST

/* SentencePiece's vocabularies have many bytes twice or more: as a token of one byte, and as a
 * piece. */
START_TEST(tokens_of_equal_bytes)
{
    static const struct ak_text tokens[] = { { "<unk>", 5 },  { "</s>", 4 }, { "<0x0A>", 6 },
                                             { "<0x61>", 6 }, { "\n", 1 },   { "a", 1 },
                                             { "b", 1 },      { "a", 1 },    { "ab", 2 },
                                             { "<0x62>", 6 }, { "ab", 2 } };
    static const int32_t types[] = { 2, 3, 6, 6, 1, 1, 1, 1, 1, 6, 4 };
    static const float scores[sizeof tokens / sizeof *tokens] = { 0 };
    enum {
        NEWLINE = 1 << 2 | 1 << 4,
        A = 1 << 3 | 1 << 5 | 1 << 7,
        B = 1 << 6 | 1 << 9,
        AB = 1 << 8 | 1 << 10,
        END = 1 << 1
    };
    static const struct {
        const char *text;
        uint32_t allowed;
    } cases[] = {
        { "", NEWLINE | A | AB }, { "\n", A | AB }, { "a", B }, { "ab", NEWLINE | A | AB | END }
    };
    struct ak_tokenizer *kept = tokenizer;
    struct ak_grammar_token_trie *kept_trie = trie;
    struct ak_error error = { 0 };
    struct ak_vocab vocab = ak_vocab_none;
    vocab.model = (struct ak_text){ "llama", 5 };
    vocab.n_tokens = sizeof tokens / sizeof *tokens;
    vocab.tokens = tokens;
    vocab.types = types;
    vocab.scores = scores;
    vocab.eos = 1;
    ck_assert_msg(ak_tok_create(&vocab, &tokenizer, &error) == AKUNU_OK, "%s", error.message);
    ck_assert_int_eq(ak_grammar_token_trie_create(tokenizer, vocab.n_tokens, &trie, &error),
                     AKUNU_OK);
    struct ak_grammar *g = gbnf("root ::= ([\\n]? \"ab\")+");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ak_grammar_matcher *m = matcher(g);
        const uint32_t *mask;
        size_t n = strlen(cases[i].text), taken;
        ck_assert_int_eq(ak_grammar_matcher_accept_bytes(m, cases[i].text, n, &taken, &error),
                         AKUNU_OK);
        ck_assert_int_eq(ak_grammar_matcher_get_mask(m, &mask, &error), AKUNU_OK);
        ck_assert_msg(mask[0] == cases[i].allowed, "after \"%s\": 0x%x, not 0x%x", cases[i].text,
                      mask[0], cases[i].allowed);
        check_mask(m, g, cases[i].text, n, false);
        ak_grammar_matcher_free(m);
    }
    ak_grammar_free(g);
    close_vocabulary();
    tokenizer = kept;
    trie = kept_trie;
}
END_TEST

static void take(struct ak_grammar_matcher *m, const char *text)
{
    struct ak_error error = { 0 };
    int32_t ids[256];
    size_t n;
    bool allowed;
    ck_assert_int_eq(ak_tok_encode(tokenizer, text, strlen(text), 0, ids, 256, &n, &error),
                     AKUNU_OK);
    for (size_t i = 0; i < n; i++) {
        ck_assert_int_eq(ak_grammar_matcher_accept_token(m, ids[i], &allowed, &error), AKUNU_OK);
        ck_assert_msg(allowed, "token %zu of \"%s\"", i, text);
    }
}

static int32_t end_token(void)
{
    for (int32_t i = 0; i < (int32_t)ak_tok_n_tokens(tokenizer); i++)
        if (ak_tok_is_end(tokenizer, i))
            return i;
    ck_abort_msg("the vocabulary has no token that ends a text");
}

/* Control tokens are named, and nothing else lets them in. */
START_TEST(named_tokens)
{
    char text[128];
    int32_t end = end_token(), other = (int32_t)(_i ? 300 : 65);
    bool allowed;
    struct ak_error error = { 0 };
    snprintf(text, sizeof text, "root ::= <[%d]> !<[%d]> <[%d]> \"z\"", other, other, end);
    struct ak_grammar *g = gbnf(text);
    struct ak_grammar_matcher *m = matcher(g);
    ck_assert_int_eq(ak_grammar_matcher_accept_token(m, end, &allowed, &error), AKUNU_OK);
    ck_assert(!allowed);
    ck_assert_int_eq(ak_grammar_matcher_accept_token(m, other + 1, &allowed, &error), AKUNU_OK);
    ck_assert(!allowed);
    ck_assert_int_eq(ak_grammar_matcher_accept_token(m, other, &allowed, &error), AKUNU_OK);
    ck_assert(allowed);
    const uint32_t *mask;
    ck_assert_int_eq(ak_grammar_matcher_get_mask(m, &mask, &error), AKUNU_OK);
    ck_assert(!has(mask, (size_t)other) && !has(mask, (size_t)end) && has(mask, (size_t)other + 1));
    ck_assert_int_eq(ak_grammar_matcher_accept_token(m, other + 1, &allowed, &error), AKUNU_OK);
    ck_assert(allowed);
    ck_assert_int_eq(ak_grammar_matcher_get_mask(m, &mask, &error), AKUNU_OK);
    ck_assert(has(mask, (size_t)end) && !has(mask, (size_t)other));
    ck_assert_int_eq(ak_grammar_matcher_accept_token(m, end, &allowed, &error), AKUNU_OK);
    ck_assert(allowed);
    take(m, "z");
    ck_assert(ak_grammar_matcher_must_end(m));
    ak_grammar_matcher_free(m);
    ak_grammar_free(g);
    g = gbnf("root ::= <no such token>");
    ck_assert_int_eq(ak_grammar_matcher_create(g, trie, &m, &error), AKUNU_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.message, "<no such token>"));
    ak_grammar_free(g);
    g = gbnf("root ::= <[4000000]>");
    ck_assert_int_eq(ak_grammar_matcher_create(g, trie, &m, &error), AKUNU_ERROR_ARGUMENT);
    ak_grammar_free(g);
}
END_TEST

/* A text goes on as it likes until a word was written, however it is cut into tokens. */
START_TEST(lazy_grammar)
{
    static const struct ak_grammar_trigger triggers[] = { { "<call>", 6 }, { "<calls", 6 } };
    struct ak_grammar *inner = gbnf("root ::= \"{\" [a-z]+ \"}\""), *g;
    struct ak_error error = { 0 };
    ck_assert_int_eq(ak_grammar_make_lazy(inner, triggers, 2, _i, &g, &error), AKUNU_OK);
    ak_grammar_free(inner);
    ck_assert(takes(g, ""));
    ck_assert(takes(g, "any <cal text {} <<call"));
    ck_assert(takes(g, "text <<call>{abc}"));
    ck_assert(takes(g, "text <calls{abc}"));
    ck_assert(!takes(g, "text <call>"));
    ck_assert(!takes(g, "text <call>{1}"));
    ck_assert(takes(g, "a<call>{b}c") == _i);
    ck_assert(takes(g, "a<call>{b}c<call>{d}") == _i);
    struct ak_grammar_matcher *m = matcher(g);
    take(m, "Some words, then <");
    check_mask(m, g, "Some words, then <", strlen("Some words, then <"), true);
    take(m, "call");
    take(m, ">{");
    ck_assert(!ak_grammar_matcher_is_accepting(m));
    ak_grammar_matcher_free(m);
    ak_grammar_free(g);
    inner = gbnf("root ::= \"a\"");
    ck_assert_int_eq(ak_grammar_make_lazy(inner, triggers, 0, false, &g, &error),
                     AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(
        ak_grammar_make_lazy(inner, &(struct ak_grammar_trigger){ "", 0 }, 1, false, &g, &error),
        AKUNU_ERROR_ARGUMENT);
    ak_grammar_free(inner);
}
END_TEST

/* A word is found where a control token has it as its text, and where it is spelled out. */
START_TEST(lazy_grammar_control_tokens)
{
    struct ak_grammar *inner = gbnf("root ::= \"{\" [a-z]+ \"}\""), *g;
    struct ak_error error = { 0 };
    int32_t control = 0;
    char text[64];
    size_t n = 0;
    bool allowed;
    while (n < 2 && control < (int32_t)ak_tok_n_tokens(tokenizer))
        if (ak_tok_is_control(tokenizer, ++control) && !ak_tok_is_end(tokenizer, control))
            ck_assert_int_eq(ak_tok_decode(tokenizer, &control, 1, AKUNU_CONTINUE, text,
                                           sizeof text, &n, &error),
                             AKUNU_OK);
    ck_assert_uint_ge(n, 2);
    struct ak_grammar_trigger trigger = { text, n };
    ck_assert_int_eq(ak_grammar_make_lazy(inner, &trigger, 1, true, &g, &error), AKUNU_OK);
    ak_grammar_free(inner);
    for (int spelled = 0; spelled < 2; spelled++) {
        size_t taken = n;
        struct ak_grammar_matcher *m = matcher(g);
        take(m, "Some words");
        if (spelled)
            ck_assert_int_eq(ak_grammar_matcher_accept_bytes(m, text, n, &taken, &error), AKUNU_OK);
        else
            ck_assert_int_eq(ak_grammar_matcher_accept_token(m, control, &allowed, &error),
                             AKUNU_OK);
        ck_assert(taken == n && (spelled || allowed));
        ck_assert(!ak_grammar_matcher_is_accepting(m));
        ck_assert_int_eq(ak_grammar_matcher_allows(m, control, &allowed, &error), AKUNU_OK);
        ck_assert(!allowed);
        take(m, "{");
        take(m, "a");
        take(m, "}");
        ck_assert(ak_grammar_matcher_is_accepting(m));
        ck_assert_int_eq(ak_grammar_matcher_allows(m, control, &allowed, &error), AKUNU_OK);
        ck_assert(allowed);
        ak_grammar_matcher_free(m);
    }
    ak_grammar_free(g);
    /* of a word that goes on behind it the token is a part */
    memcpy(text + n, "+", 2);
    trigger.n = n + 1;
    inner = gbnf("root ::= \"x\"");
    ck_assert_int_eq(ak_grammar_make_lazy(inner, &trigger, 1, false, &g, &error), AKUNU_OK);
    ak_grammar_free(inner);
    struct ak_grammar_matcher *m = matcher(g);
    ck_assert_int_eq(ak_grammar_matcher_accept_token(m, control, &allowed, &error), AKUNU_OK);
    ck_assert(allowed && ak_grammar_matcher_is_accepting(m));
    take(m, "+");
    ck_assert(!ak_grammar_matcher_is_accepting(m));
    take(m, "x");
    ck_assert(ak_grammar_matcher_must_end(m));
    ak_grammar_matcher_free(m);
    /* and a word that ends inside of the token is not written that way */
    ak_grammar_free(g);
    trigger.n = n - 1;
    inner = gbnf("root ::= \"x\"");
    ck_assert_int_eq(ak_grammar_make_lazy(inner, &trigger, 1, false, &g, &error), AKUNU_OK);
    ak_grammar_free(inner);
    m = matcher(g);
    ck_assert_int_eq(ak_grammar_matcher_allows(m, control, &allowed, &error), AKUNU_OK);
    ck_assert(!allowed);
    const uint32_t *mask;
    ck_assert_int_eq(ak_grammar_matcher_get_mask(m, &mask, &error), AKUNU_OK);
    ck_assert(!has(mask, (size_t)control));
    ak_grammar_matcher_free(m);
    ak_grammar_free(g);
}
END_TEST

/* What is forced is what the tokenizer makes of it, but for its last token where the text
 * goes on. */
START_TEST(forced_tokens)
{
    static const char stretch[] = "{\"temperature\": ";
    struct ak_grammar *g = gbnf("root ::= \"{\\\"temperature\\\": \" [0-9]+ \", done}\"");
    struct ak_grammar_matcher *m = matcher(g);
    struct ak_error error = { 0 };
    int32_t forced[64], want[64];
    size_t n, n_want;
    bool allowed;
    ck_assert_int_eq(
        ak_tok_encode(tokenizer, stretch, strlen(stretch), 0, want, 64, &n_want, &error), AKUNU_OK);
    ck_assert_int_eq(ak_grammar_matcher_find_forced_tokens(m, forced, 64, &n, &error), AKUNU_OK);
    ck_assert_uint_eq(n, n_want - 1);
    ck_assert_mem_eq(forced, want, n * sizeof *forced);
    ck_assert_int_eq(ak_grammar_matcher_find_forced_tokens(m, forced, 2, &n, &error), AKUNU_OK);
    ck_assert_uint_eq(n, 2);
    for (size_t i = 0; i < n_want; i++) {
        ck_assert_int_eq(ak_grammar_matcher_accept_token(m, want[i], &allowed, &error), AKUNU_OK);
        ck_assert(allowed);
    }
    ck_assert_int_eq(ak_grammar_matcher_find_forced_tokens(m, forced, 64, &n, &error), AKUNU_OK);
    ck_assert_uint_eq(n, 0);
    take(m, "7,");
    ck_assert_int_eq(ak_tok_encode(tokenizer, " done}", 6, 0, want, 64, &n_want, &error), AKUNU_OK);
    ck_assert_int_eq(ak_grammar_matcher_find_forced_tokens(m, forced, 64, &n, &error), AKUNU_OK);
    ck_assert_uint_eq(n, n_want);
    ck_assert_mem_eq(forced, want, n * sizeof *forced);
    ak_grammar_matcher_free(m);
    ak_grammar_free(g);
}
END_TEST

/* Much is gathered and forgotten; states that are in use stay. */
START_TEST(garbage_collection)
{
    struct ak_grammar *g = gbnf("root ::= ([a-z]{1,20} [0-9]{1,20} \" \"?){0,100000}");
    struct ak_grammar_matcher *m = matcher(g);
    struct ak_error error = { 0 };
    const uint32_t *mask, *before;
    uint32_t *copy = malloc((ak_grammar_token_trie_n_vocab(trie) / 32 + 1) * sizeof *copy);
    size_t bytes = (ak_grammar_token_trie_n_vocab(trie) + 31) / 32 * sizeof *copy;
    ck_assert_int_eq(ak_grammar_matcher_get_mask(m, &before, &error), AKUNU_OK);
    memcpy(copy, before, bytes);
    for (int i = 0; i < 3000; i++) {
        take(m, "abc123 ");
        ck_assert_int_eq(ak_grammar_matcher_get_mask(m, &mask, &error), AKUNU_OK);
    }
    /* except a space and the next word's digits, as at the beginning */
    ck_assert(ak_grammar_matcher_is_accepting(m));
    for (size_t i = 0; i < bytes / sizeof *copy; i++)
        ck_assert_uint_eq(copy[i] & ~mask[i], 0);
    free(copy);
    ak_grammar_matcher_free(m);
    ak_grammar_free(g);
}
END_TEST

/* ---- Texts of a model --------------------------------------------------- */
struct written {
    char text[4096];
    size_t n;
};

static bool on_piece(size_t index, akunu_token token, const char *text, size_t n_bytes, void *user)
{
    struct written *w = user;
    (void)index, (void)token;
    ck_assert_uint_lt(w->n + n_bytes, sizeof w->text);
    memcpy(w->text + w->n, text, n_bytes);
    w->n += n_bytes;
    return true;
}

/* A model without sense writes what the schema allows, whatever its temperature, and the
 * same with and without tokens run ahead. */
START_TEST(generated)
{
    static const char text[] =
        "{\"type\": \"object\", \"properties\": {\"city\": {\"type\": \"string\", \"maxLength\": "
        "12}, \"degrees\": {\"type\": \"integer\","
        "\"minimum\": -50, \"maximum\": 60}, \"sky\": {\"enum\": [\"clear\", \"cloudy\"]}}, "
        "\"required\": [\"city\", \"degrees\", \"sky\"],"
        "\"additionalProperties\": false}";
    char path[4096];
    struct akunu_schema_params params;
    akunu_schema_params_default(&params, sizeof params);
    struct akunu_grammar *g = akunu_grammar_from_schema(text, strlen(text), NULL);
    params.form = AKUNU_SCHEMA_READING;
    struct akunu_grammar *reading = akunu_grammar_from_schema(text, strlen(text), &params);
    struct akunu_model *model = akunu_model_load(data_path("model.gguf", path), NULL);
    ck_assert_msg(g && reading && model, "%s", akunu_last_error());
    struct akunu_session *session = akunu_session_new(model, NULL);
    const akunu_token prompt[] = { 65, 66, 67 };
    struct akunu_generation_params generation;
    struct akunu_sampling_params sampling;
    akunu_generation_params_default(&generation, sizeof generation);
    akunu_sampling_params_default(&sampling, sizeof sampling);
    generation.sampling = &sampling;
    generation.max_tokens = 400;
    sampling.grammar = g;
    sampling.temperature = (float)_i * 0.7f;
    sampling.top_k = _i == 2 ? 5 : 40;
    sampling.seed = 11 + (uint64_t)_i;
    akunu_sequence sequence = akunu_sequence_new(session);
    struct written w = { .n = 0 };
    struct akunu_result result = { .size = sizeof result };
    generation.on_piece = on_piece;
    generation.user = &w;
    ck_assert_msg(akunu_session_generate(session, sequence, &(struct akunu_ids){ prompt, 3 },
                                         &generation, &result) == AKUNU_OK,
                  "%s", akunu_last_error());
    bool allowed;
    size_t at;
    ck_assert_int_eq(akunu_grammar_check(reading, NULL, w.text, w.n, &allowed, &at), AKUNU_OK);
    if (result.stop == AKUNU_STOP_END)
        ck_assert_msg(allowed, "%.*s", (int)w.n, w.text);
    else
        ck_assert_msg(at == w.n, "%.*s", (int)w.n, w.text);
    ck_assert_int_eq(result.stop, AKUNU_STOP_END);

    /* token by token, by the sampler of the API */
    struct akunu_sampler *sampler = akunu_sampler_new(model, &sampling);
    akunu_sequence other = akunu_sequence_new(session);
    if (other < 0) {
        akunu_sequence_free(session, sequence);
        other = akunu_sequence_new(session);
    }
    ck_assert_msg(sampler && other >= 0, "%s", akunu_last_error());
    struct akunu_stream *stream = akunu_stream_new(akunu_model_tokenizer(model), AKUNU_CONTINUE);
    size_t last, matched = 0, n_bytes;
    const char *piece;
    ck_assert_int_eq(
        akunu_session_prefill(session, other, &(struct akunu_ids){ prompt, 3 }, NULL, NULL, &last),
        AKUNU_OK);
    /* samples use the seed in another order */
    for (uint64_t i = 0; _i == 0 && i < result.n_generated; i++) {
        struct akunu_batch_token next = { .token = akunu_sampler_sample(
                                              sampler, akunu_session_logits(session, last)),
                                          .sequence = other,
                                          .logits = true };
        ck_assert_msg(next.token >= 0, "%s", akunu_last_error());
        ck_assert_int_eq(akunu_stream_push(stream, next.token, &piece, &n_bytes), AKUNU_OK);
        ck_assert_uint_le(matched + n_bytes, w.n);
        ck_assert_mem_eq(w.text + matched, piece, n_bytes);
        matched += n_bytes;
        last = 0;
        ck_assert_int_eq(akunu_session_decode(session, &next, 1), AKUNU_OK);
    }
    akunu_stream_free(stream);
    akunu_sampler_free(sampler);
    akunu_session_free(session);
    akunu_model_free(model);
    akunu_grammar_free(g);
    akunu_grammar_free(reading);
}
END_TEST

START_TEST(api_errors)
{
    struct akunu_grammar *g = akunu_grammar_parse("root ::= a", 10);
    ck_assert_ptr_null(g);
    ck_assert_int_eq(akunu_last_status(), AKUNU_ERROR_FORMAT);
    ck_assert_ptr_null(akunu_grammar_parse(NULL, 0));
    ck_assert_ptr_null(akunu_grammar_from_schema("{\"uniqueItems\": true}", 21, NULL));
    ck_assert_ptr_null(akunu_grammar_make_lazy(NULL, NULL, false));
    ck_assert_int_eq(akunu_last_status(), AKUNU_ERROR_ARGUMENT);
    akunu_grammar_free(NULL);

    /* a schema that forbids everything is a grammar, but no model can write it */
    char path[4096];
    struct akunu_sampling_params sampling;
    struct akunu_model *model = akunu_model_load(data_path("model.gguf", path), NULL);
    akunu_sampling_params_default(&sampling, sizeof sampling);
    g = akunu_grammar_from_schema("{\"enum\": []}", 12, NULL);
    ck_assert_ptr_nonnull(g);
    sampling.grammar = g;
    ck_assert_ptr_null(akunu_sampler_new(model, &sampling));
    ck_assert_ptr_nonnull(strstr(akunu_last_error(), "no text"));
    akunu_grammar_free(g);
    akunu_model_free(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("grammar");
    TCase *gbnfs = tcase_create("gbnf"), *schemas = tcase_create("schemas"),
          *tokens = tcase_create("tokens"), *texts = tcase_create("texts");
    tcase_add_test(gbnfs, gbnf_cases);
    tcase_add_test(gbnfs, first_wrong_byte);
    tcase_add_test(gbnfs, not_utf8_is_refused);
    tcase_add_test(gbnfs, long_texts);
    tcase_add_loop_test(schemas, schema_goldens, 0, 2);
    tcase_add_test(schemas, writing_form);
    tcase_add_test(schemas, reading_form);
    tcase_add_test(schemas, exact_bounds);
    tcase_add_test(schemas, long_integers);
    tcase_add_loop_test(schemas, all_bounds, 0, 1);
    tcase_add_test(schemas, refused_by_name);
    tcase_add_test(schemas, opposites);
    tcase_add_test(schemas, formats);
    tcase_add_test(schemas, no_schemas);
    tcase_add_checked_fixture(tokens, open_vocabulary, close_vocabulary);
    tcase_add_loop_test(tokens, masks, 0, 7);
    tcase_add_test(tokens, tokens_of_equal_bytes);
    tcase_add_loop_test(tokens, named_tokens, 0, 2);
    tcase_add_loop_test(tokens, lazy_grammar, 0, 2);
    tcase_add_test(tokens, lazy_grammar_control_tokens);
    tcase_add_test(tokens, forced_tokens);
    tcase_add_test(tokens, garbage_collection);
    tcase_add_loop_test(texts, generated, 0, 3);
    tcase_add_test(texts, api_errors);
    suite_add_tcase(suite, gbnfs);
    suite_add_tcase(suite, schemas);
    suite_add_tcase(suite, tokens);
    suite_add_tcase(suite, texts);
    return test_run(suite);
}
