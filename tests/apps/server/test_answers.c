/* Whole answers: every member, event and header of each request in tests/data/answers.json, which
 * lists requests in the order in which they are sent:
 *
 *     {"server": [FLAG...]}              starts a server with these flags
 *     {"path": ..., "body": ...}         is sent to it: POST, or GET without a body
 *
 * and, as this program writes them with AKUNU_TEST_WRITE=1, the code, the type and the answer. The
 * events of a stream are a list. What a clock or a random number says is replaced, and numbers have
 * five digits. A change of an answer that is meant is a change of that file, to be read as such. */
#include "tests/apps/server/client.h"

static const char *data_path(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", getenv("AK_TEST_DATA"), name);
    return path;
}

/* Starts a server with flags; of those that begin with '@' the rest is a path in the tests' data.
 */
static struct child start_as(const json_t *list)
{
    const char *flags[24];
    char paths[4][4096];
    size_t n = json_array_size(list), n_paths = 0;
    ck_assert_uint_lt(n, 24);
    for (size_t i = 0; i < n; i++) {
        flags[i] = json_string_value(json_array_get(list, i));
        if (*flags[i] == '@') {
            ck_assert_uint_lt(n_paths, 4);
            strcpy(paths[n_paths], data_path(flags[i] + 1));
            flags[i] = paths[n_paths++];
        }
    }
    flags[n] = NULL;
    return start_server(flags);
}

/* ---- What is the same each time ------------------------------------------------- */
static bool is_one_of(const char *name, const char *const *names)
{
    while (*names && strcmp(name, *names) != 0)
        names++;
    return *names != NULL;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), n_end = strlen(end);
    return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

static bool is_time(const char *name)
{
    static const char *const names[] = { "created", "created_at", "modified_at", NULL };
    return is_one_of(name, names) || ends_with(name, "_duration") || ends_with(name, "_ms") ||
           ends_with(name, "_per_second");
}

/* The random ids of one answer: each is replaced by what is before its random part and by how many
 * were different before it. */
struct ids {
    char seen[16][64];
    int n;
};

static bool is_random(const char *id)
{
    enum { CALL = 9 }; /* characters of the id of a call */
    return strpbrk(id, "-_") || strlen(id) == CALL;
}

static json_t *replace_id(struct ids *ids, const char *id)
{
    char text[64];
    int i = 0;
    while (i < ids->n && strcmp(ids->seen[i], id) != 0)
        i++;
    if (i == ids->n) {
        ck_assert_int_lt(ids->n, 16);
        ck_assert_uint_lt(strlen(id), sizeof ids->seen[0]);
        strcpy(ids->seen[ids->n++], id);
    }
    size_t n = strcspn(id, "-_");
    snprintf(text, sizeof text, "%.*s %d", id[n] ? (int)n : 0, id, i + 1);
    return json_string(text);
}

static json_t *constant_form(const json_t *value, const char *name, struct ids *ids);

static json_t *constant_object(const json_t *value, struct ids *ids)
{
    json_t *out = json_object(), *member;
    const char *name;
    json_object_foreach ((json_t *)(uintptr_t)value, name, member)
        json_object_set_new(out, name, constant_form(member, name, ids));
    return out;
}

static json_t *constant_list(const json_t *value, struct ids *ids)
{
    json_t *out = json_array();
    for (size_t i = 0; i < json_array_size(value); i++)
        json_array_append_new(out, constant_form(json_array_get(value, i), "", ids));
    return out;
}

/* A copy of an answer without what differs from one time to the next. */
static json_t *constant_form(const json_t *value, const char *name, struct ids *ids)
{
    static const char *const id_names[] = { "id", "item_id", "call_id", NULL };
    static const char *const version_names[] = { "system_fingerprint", "build_info", "version",
                                                 NULL };
    char digits[32];
    if (json_is_object(value))
        return constant_object(value, ids);
    if (json_is_array(value))
        return constant_list(value, ids);
    if (json_is_string(value) && is_one_of(name, version_names))
        return json_string("version");
    if (json_is_string(value) && is_one_of(name, id_names) && is_random(json_string_value(value)))
        return replace_id(ids, json_string_value(value));
    if (is_time(name) && (json_is_number(value) || json_is_string(value)))
        return json_string("time");
    if (json_is_real(value)) {
        snprintf(digits, sizeof digits, "%.5g", json_real_value(value));
        return json_real(atof(digits));
    }
    return json_deep_copy(value);
}

/* The number of the choice that an event of a stream belongs to; what belongs to none is last. */
static json_int_t choice_of(const json_t *event)
{
    const json_t *index = at(event, "choices.0.index");
    return json_is_integer(index) ? json_integer_value(index) : 1000;
}

/* Choices take turns as their tokens come: their events are sorted by choice. */
static void add_event(json_t *list, json_t *event)
{
    size_t i = json_array_size(list);
    while (i > 0 && choice_of(json_array_get(list, i - 1)) > choice_of(event))
        i--;
    json_array_insert_new(list, i, event);
}

/* The lines of an answer that is no JSON: events and their data, or lines of JSON; of metrics those
 * that count. */
static json_t *lines_of(const char *body, bool are_metrics, struct ids *ids)
{
    json_t *out = json_array();
    for (size_t n; *body; body += n + (body[n] == '\n')) {
        n = strcspn(body, "\n");
        const char *data = strncmp(body, "data: ", 6) == 0 ? body + 6 : body;
        json_t *value = json_loadb(data, n - (size_t)(data - body), JSON_ALLOW_NUL, NULL);
        char line[512];
        snprintf(line, sizeof line, "%.*s", (int)n, body);
        bool counts =
            strstr(line, "_total") || strstr(line, "_count ") || strstr(line, "_running ");
        if (value)
            add_event(out, constant_form(value, "", ids));
        else if (n > 0 && (!are_metrics || counts))
            json_array_append_new(out, json_string(line));
        json_decref(value);
    }
    return out;
}

static const char *type_of(const struct answer *a)
{
    static char type[128];
    const char *header = strcasestr(a->text, "\r\nContent-Type: ");
    ck_assert_msg(header != NULL, "no Content-Type: %s", a->text);
    header += strlen("\r\nContent-Type: ");
    snprintf(type, sizeof type, "%.*s", (int)strcspn(header, "\r"), header);
    return type;
}

/* The request with its code, type and answer. */
static json_t *answered(const struct child *server, const json_t *request)
{
    const json_t *body = json_object_get(request, "body");
    char *text = body ? json_dumps(body, JSON_COMPACT) : strdup("");
    struct answer a = ask(server, text_at(request, "path"), text);
    struct ids ids = { .n = 0 };
    json_t *value = json_loads(a.body, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
    bool are_metrics = strcmp(text_at(request, "path"), "/metrics") == 0;
    json_t *out = json_copy((json_t *)(uintptr_t)request);
    json_object_set_new(out, "code", json_integer(a.code));
    json_object_set_new(out, "type", json_string(type_of(&a)));
    json_object_set_new(out, "answer",
                        value ? constant_form(value, "", &ids) :
                                lines_of(a.body, are_metrics, &ids));
    json_decref(value);
    free(a.text);
    free(text);
    return out;
}

/* ---- The file ------------------------------------------------------------------- */
/* A list that lists requests, events or lines: an element each line. */
static void write_list(FILE *file, const json_t *list, void write(FILE *, const json_t *))
{
    fputs("[", file);
    for (size_t i = 0; i < json_array_size(list); i++) {
        fputs(i ? ",\n" : "\n", file);
        write(file, json_array_get(list, i));
    }
    fputs("]", file);
}

static void write_value(FILE *file, const json_t *value)
{
    json_dumpf(value, file, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
}

static void write_request(FILE *file, const json_t *request)
{
    json_t *value;
    const char *name, *separator = "{";
    json_object_foreach ((json_t *)(uintptr_t)request, name, value) {
        fprintf(file, "%s\"%s\": ", separator, name);
        bool is_list = strcmp(name, "answer") == 0 && json_is_array(value);
        is_list ? write_list(file, value, write_value) : write_value(file, value);
        separator = ",\n ";
    }
    fputs("}", file);
}

static void write_answers(const json_t *list)
{
    FILE *file = fopen(data_path("answers.json"), "w");
    ck_assert_ptr_nonnull(file);
    write_list(file, list, write_request);
    fputs("\n", file);
    ck_assert_int_eq(fclose(file), 0);
}

/* ---- The test --------------------------------------------------------------------- */
static char *to_text(const json_t *value)
{
    return json_dumps(value, JSON_INDENT(1) | JSON_ENCODE_ANY);
}

static void check_same(const json_t *is, const json_t *expected)
{
    if (json_equal(is, expected))
        return;
    char *a = to_text(is), *b = to_text(expected);
    size_t line = 0, i = 0;
    for (; a[i] && a[i] == b[i]; i++)
        line = a[i] == '\n' ? i + 1 : line;
    ck_abort_msg("%s: the answer is\n%.600s\nexpected\n%.600s", text_at(expected, "path"), a + line,
                 b + line);
}

START_TEST(whole_answers)
{
    json_error_t error;
    json_t *list = json_load_file(data_path("answers.json"), JSON_ALLOW_NUL, &error);
    ck_assert_msg(list != NULL, "answers.json, line %d: %s", error.line, error.text);
    json_t *written = json_array();
    struct child server = { .pid = 0 };
    bool writes = getenv("AKUNU_TEST_WRITE") != NULL;
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *request = json_array_get(list, i), *flags = json_object_get(request, "server");
        if (flags) {
            ck_assert(server.pid == 0 || stop_server(&server, SIGTERM) == 0);
            server = start_as(flags);
            json_array_append(written, request);
            continue;
        }
        json_t *is = answered(&server, request);
        if (!writes)
            check_same(is, request);
        json_array_append_new(written, is);
    }
    ck_assert_int_eq(stop_server(&server, SIGTERM), 0);
    if (writes)
        write_answers(written);
    json_decref(written);
    json_decref(list);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { whole_answers, NULL };
    return run_server_tests("answers", NULL, NULL, tests);
}
