/* Reads questions in the forms of well-known data sets. Which form a line has is told by its keys.
 * The prompts are those of lm-evaluation-harness without examples, to the byte. */
#include "apps/cli/quality/eval.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/input.h"
#include "apps/common/json_text.h"
#include "apps/common/message.h"

/* A line that becomes a question. */
struct row {
    const char *path;
    size_t line;
    json_t *object;
    struct cli_question *question;
};

static const char *type_name(const json_t *value)
{
    static const char *const names[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list",  [JSON_STRING] = "a string",
        [JSON_INTEGER] = "a number", [JSON_REAL] = "a number", [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",      [JSON_NULL] = "null"
    };
    return value ? names[json_typeof(value)] : "missing";
}

/* ---- Values ------------------------------------------------------------- */
/* The text of a key; NULL after a message. */
static const char *member_text(const struct row *row, const char *key)
{
    const json_t *value = json_object_get(row->object, key);
    const char *text = json_string_value(value);
    if (!text)
        app_fail("%s:%zu: \"%s\" is %s; expected a string", row->path, row->line, key,
                 type_name(value));
    return text;
}

/* The texts of a list of strings, `list`, which the message calls `name`. */
static int texts_of(const struct row *row, const json_t *list, const char *name,
                    const char *texts[CLI_CHOICES_MAX], size_t *n)
{
    *n = json_array_size(list);
    if (!json_is_array(list) || *n < 2 || *n > CLI_CHOICES_MAX)
        return app_fail("%s:%zu: \"%s\" is %s of %zu; expected a list of 2 to %d strings",
                        row->path, row->line, name, type_name(list), *n, CLI_CHOICES_MAX);
    for (size_t i = 0; i < *n; i++) {
        texts[i] = json_string_value(json_array_get(list, i));
        if (!texts[i] || !*texts[i])
            return app_fail("%s:%zu: \"%s\": choice %zu is %s; expected a string that is not empty",
                            row->path, row->line, name, i + 1,
                            texts[i] ? "empty" : type_name(json_array_get(list, i)));
    }
    return APP_EXIT_OK;
}

/* The index of the right choice: a number or its digits, from `first` on, or a letter from A. */
static int answer_of(const struct row *row, const char *key, int64_t first)
{
    const json_t *value = json_object_get(row->object, key);
    const char *text = json_string_value(value);
    size_t n = row->question->n_choices;
    int64_t answer = json_is_integer(value) ? json_integer_value(value) : -1;
    char shown[APP_SHOWN_BYTES];
    if (text && text[0] >= 'A' && text[0] <= 'Z' && !text[1])
        answer = text[0] - 'A' + first;
    else if (text && !app_parse_int(text, &answer))
        answer = -1;
    if (answer < first || (uint64_t)(answer - first) >= n)
        return app_fail("%s:%zu: \"%s\" is %s%s; expected which of the %zu choices is right, %lld "
                        "to %lld (the public test sets of some tasks have no answers)",
                        row->path, row->line, key, text ? "the string " : type_name(value),
                        text ? app_show_text(text, shown) : "", n, (long long)first,
                        (long long)first + (long long)n - 1);
    row->question->answer = (size_t)(answer - first);
    return APP_EXIT_OK;
}

/* ---- Building ----------------------------------------------------------- */
static uint32_t count_chars(const char *text)
{
    uint32_t n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

/* Adds a choice; takes `context`, NULL if out of memory, and copies `text`. */
static int add_choice(struct row *row, char *context, const char *text)
{
    struct cli_choice *choice = &row->question->choices[row->question->n_choices++];
    *choice = (struct cli_choice){ .context = context, .n_chars = count_chars(text) };
    if (!context || asprintf(&choice->text, " %s", text) < 0) {
        choice->text = NULL;
        return app_fail_memory();
    }
    return APP_EXIT_OK;
}

/* Adds choices that share a context, which is taken. */
static int add_choices(struct row *row, char *context, const char *const *texts, size_t n)
{
    int code = context ? APP_EXIT_OK : app_fail_memory();
    for (size_t i = 0; code == APP_EXIT_OK && i < n; i++)
        code = add_choice(row, strdup(context), texts[i]);
    free(context);
    return code;
}

/* "BEFORE" + text + "AFTER", to be freed. */
static char *join_three(const char *before, const char *text, const char *after)
{
    char *joined;
    return asprintf(&joined, "%s%s%s", before, text, after) < 0 ? NULL : joined;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r') || (c >= '\x1c' && c <= '\x1f');
}

/* Without whitespace at its ends, in place. */
static char *strip_spaces(char *text)
{
    size_t n = strlen(text), first = 0;
    while (n > 0 && is_space(text[n - 1]))
        n--;
    while (first < n && is_space(text[first]))
        first++;
    memmove(text, text + first, n - first);
    text[n - first] = '\0';
    return text;
}

/* ---- Forms -------------------------------------------------------------- */
static int plain_context(struct row *row)
{
    const char *texts[CLI_CHOICES_MAX], *context = member_text(row, "context");
    size_t n;
    int code = context ?
                   texts_of(row, json_object_get(row->object, "choices"), "choices", texts, &n) :
                   APP_EXIT_FAILURE;
    if (code == APP_EXIT_OK)
        code = add_choices(row, strdup(context), texts, n);
    return code == APP_EXIT_OK ? answer_of(row, "answer", 0) : code;
}

static int plain_question(struct row *row)
{
    const char *texts[CLI_CHOICES_MAX], *question = member_text(row, "question");
    size_t n;
    int code = question ?
                   texts_of(row, json_object_get(row->object, "choices"), "choices", texts, &n) :
                   APP_EXIT_FAILURE;
    if (code == APP_EXIT_OK)
        code = add_choices(row, join_three("Question: ", question, "\nAnswer:"), texts, n);
    return code == APP_EXIT_OK ? answer_of(row, "answer", 0) : code;
}

/* Choices with labels, of which "answerKey" has one. */
static int labeled(struct row *row, const char *before, const char *question, const char *after)
{
    const char *texts[CLI_CHOICES_MAX], *labels[CLI_CHOICES_MAX], *key;
    const json_t *choices = json_object_get(row->object, "choices");
    char shown[APP_SHOWN_BYTES];
    size_t n, n_labels;
    int code = question ?
                   texts_of(row, json_object_get(choices, "text"), "choices.text", texts, &n) :
                   APP_EXIT_FAILURE;
    if (code == APP_EXIT_OK)
        code = texts_of(row, json_object_get(choices, "label"), "choices.label", labels, &n_labels);
    if (code == APP_EXIT_OK && n_labels != n)
        code = app_fail("%s:%zu: %zu choices and %zu labels", row->path, row->line, n, n_labels);
    if (code == APP_EXIT_OK)
        code = add_choices(row, join_three(before, question, after), texts, n);
    if (code != APP_EXIT_OK)
        return code;
    key = member_text(row, "answerKey");
    if (!key)
        return APP_EXIT_FAILURE;
    for (size_t i = 0; i < n; i++)
        if (strcmp(labels[i], key + strspn(key, " ")) == 0) {
            row->question->answer = i;
            return APP_EXIT_OK;
        }
    return app_fail("%s:%zu: \"answerKey\" is \"%s\", and no choice has that label", row->path,
                    row->line, app_show_text(key, shown));
}

static int arc(struct row *row)
{
    return labeled(row, "Question: ", member_text(row, "question"), "\nAnswer:");
}

static int openbookqa(struct row *row)
{
    return labeled(row, "", member_text(row, "question_stem"), "");
}

/* Removes the artifacts of WikiHow: " [title]" becomes ". ", other brackets go, and two spaces
 * become one. In place. */
static char *clean(char *text)
{
    static const char title[] = " [title]";
    char *from = strip_spaces(text), *to = text;
    while (*from) {
        if (strncmp(from, title, strlen(title)) == 0) {
            *to++ = '.';
            *to++ = ' ';
            from += strlen(title);
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
    for (from = to = text; *from;) {
        const char *end = *from == '[' ? strpbrk(from, "]\n") : NULL;
        if (end && *end == ']')
            from += end - from + 1;
        else
            *to++ = *from++;
    }
    *to = '\0';
    for (from = to = text; *from; from++) {
        *to++ = *from;
        from += from[0] == ' ' && from[1] == ' ';
    }
    *to = '\0';
    return text;
}

/* The first letter large, the others small; of ASCII. */
static void capitalize(char *text)
{
    for (size_t i = 0; text[i]; i++) {
        if (i > 0 && text[i] >= 'A' && text[i] <= 'Z')
            text[i] = (char)(text[i] - 'A' + 'a');
        else if (i == 0 && text[i] >= 'a' && text[i] <= 'z')
            text[i] = (char)(text[i] - 'a' + 'A');
    }
}

static int hellaswag(struct row *row)
{
    const char *texts[CLI_CHOICES_MAX], *activity = member_text(row, "activity_label");
    const char *a = activity ? member_text(row, "ctx_a") : NULL;
    const char *b = a ? member_text(row, "ctx_b") : NULL;
    char *second = b ? strdup(b) : NULL, *context = NULL;
    size_t n;
    if (!b)
        return APP_EXIT_FAILURE;
    if (second)
        capitalize(second);
    if (!second || asprintf(&context, "%s: %s %s", activity, a, second) < 0)
        context = NULL;
    free(second);
    int code = context ? APP_EXIT_OK : app_fail_memory();
    if (code == APP_EXIT_OK)
        code = texts_of(row, json_object_get(row->object, "endings"), "endings", texts, &n);
    if (context)
        clean(context);
    for (size_t i = 0; code == APP_EXIT_OK && i < n; i++) {
        char *ending = strdup(texts[i]);
        code = ending ? add_choice(row, strdup(context), clean(ending)) : app_fail_memory();
        free(ending);
    }
    free(context);
    return code == APP_EXIT_OK ? answer_of(row, "label", 0) : code;
}

static int piqa(struct row *row)
{
    const char *goal = member_text(row, "goal");
    const char *a = goal ? member_text(row, "sol1") : NULL,
               *b = a ? member_text(row, "sol2") : NULL;
    const char *const texts[] = { a, b };
    if (!b)
        return APP_EXIT_FAILURE;
    int code = add_choices(row, join_three("Question: ", goal, "\nAnswer:"), texts, 2);
    return code == APP_EXIT_OK ? answer_of(row, "label", 0) : code;
}

/* The text after the gap is scored, given the text before it with either option in the gap. */
static int winogrande(struct row *row)
{
    const char *sentence = member_text(row, "sentence");
    const char *a = sentence ? member_text(row, "option1") : NULL,
               *b = a ? member_text(row, "option2") : NULL;
    const char *const options[] = { a, b };
    if (!b)
        return APP_EXIT_FAILURE;
    const char *gap = strchr(sentence, '_');
    if (!gap)
        return app_fail("%s:%zu: \"sentence\" has no _ where the options go", row->path, row->line);
    char *before = strndup(sentence, (size_t)(gap - sentence)), *after = strdup(gap + 1);
    int code = before && after ? APP_EXIT_OK : app_fail_memory();
    if (code == APP_EXIT_OK)
        strip_spaces(after);
    for (size_t i = 0; code == APP_EXIT_OK && i < 2; i++)
        code = add_choice(row, join_three(before, options[i], ""), after);
    free(before);
    free(after);
    return code == APP_EXIT_OK ? answer_of(row, "answer", 1) : code;
}

/* The context of MMLU: subject, question, choices with letters. To be freed. */
static char *mmlu_context(const char *subject, char *question, const char *const *texts, size_t n)
{
    char *context = NULL;
    size_t n_bytes;
    FILE *stream = open_memstream(&context, &n_bytes);
    if (!stream)
        return NULL;
    fputs("The following are multiple choice questions (with answers) about ", stream);
    for (; *subject; subject++)
        fputc(*subject == '_' ? ' ' : *subject, stream);
    fprintf(stream, ".\n\n%s\n", strip_spaces(question));
    for (size_t i = 0; i < n; i++)
        fprintf(stream, "%c. %s\n", (int)('A' + i), texts[i]);
    fputs("Answer:", stream);
    if (fclose(stream) == 0)
        return context;
    free(context);
    return NULL;
}

static int mmlu(struct row *row)
{
    static const char *const letters[] = { "A", "B", "C", "D", "E", "F", "G", "H", "I", "J" };
    const char *texts[CLI_CHOICES_MAX], *subject = member_text(row, "subject");
    const char *question = subject ? member_text(row, "question") : NULL;
    size_t n;
    int code = question ?
                   texts_of(row, json_object_get(row->object, "choices"), "choices", texts, &n) :
                   APP_EXIT_FAILURE;
    if (code == APP_EXIT_OK && n > sizeof letters / sizeof *letters)
        code = app_fail("%s:%zu: %zu choices; MMLU has letters for %zu", row->path, row->line, n,
                        sizeof letters / sizeof *letters);
    if (code != APP_EXIT_OK)
        return code;
    char *copy = strdup(question);
    code = add_choices(row, copy ? mmlu_context(subject, copy, texts, n) : NULL, letters, n);
    free(copy);
    return code == APP_EXIT_OK ? answer_of(row, "answer", 0) : code;
}

/* The first one whose keys a line has is its form. */
static const struct form {
    const char *name, *keys[5];
    int (*build)(struct row *row);
} forms[] = {
    { "HellaSwag", { "activity_label", "ctx_a", "ctx_b", "endings", "label" }, hellaswag },
    { "PIQA", { "goal", "sol1", "sol2", "label" }, piqa },
    { "WinoGrande", { "sentence", "option1", "option2", "answer" }, winogrande },
    { "OpenBookQA", { "question_stem", "choices", "answerKey" }, openbookqa },
    { "ARC", { "question", "choices", "answerKey" }, arc },
    { "MMLU", { "question", "subject", "choices", "answer" }, mmlu },
    { "plain", { "context", "choices", "answer" }, plain_context },
    { "plain", { "question", "choices", "answer" }, plain_question },
};
enum { N_FORMS = sizeof forms / sizeof *forms, N_KEYS = sizeof forms->keys / sizeof *forms->keys };

static bool has_keys(const json_t *object, const struct form *form)
{
    for (size_t i = 0; i < N_KEYS && form->keys[i]; i++)
        if (!json_object_get(object, form->keys[i]))
            return false;
    return true;
}

/* ---- Lines -------------------------------------------------------------- */
/* "a, b, c": the keys of the line, and those of all forms. */
static int fail_keys(const struct row *row)
{
    char found[APP_SHOWN_BYTES], all[1024] = "", expected[1024] = "";
    const char *key;
    json_t *value;
    size_t n = 0;
    json_object_foreach (row->object, key, value)
        if (n < sizeof all)
            n += (size_t)snprintf(all + n, sizeof all - n, "%s%s", n ? ", " : "", key);
    n = 0;
    for (size_t i = 0; i < N_FORMS; i++)
        for (size_t k = 0; k < N_KEYS && forms[i].keys[k]; k++)
            n += (size_t)snprintf(expected + n, sizeof expected - n, "%s%s",
                                  k > 0 ? ", " :
                                  i > 0 ? "; " :
                                          "",
                                  forms[i].keys[k]);
    return app_fail("%s:%zu: no known form of a question: its keys are %s; expected one of: %s",
                    row->path, row->line, *all ? app_show_text(all, found) : "none", expected);
}

/* Gives back what fewer choices than the maximum do not need. */
static void shrink(struct cli_question *question)
{
    size_t n = question->n_choices > 0 ? question->n_choices : 1;
    struct cli_choice *smaller = realloc(question->choices, n * sizeof *smaller);
    if (smaller)
        question->choices = smaller;
}

static int read_row(struct row *row)
{
    if (!json_is_object(row->object))
        return app_fail("%s:%zu: the line is %s; expected an object", row->path, row->line,
                        type_name(row->object));
    for (size_t i = 0; i < N_FORMS; i++)
        if (has_keys(row->object, &forms[i])) {
            row->question->form = forms[i].name;
            row->question->line = row->line;
            row->question->choices = calloc(CLI_CHOICES_MAX, sizeof *row->question->choices);
            if (!row->question->choices)
                return app_fail_memory();
            int code = forms[i].build(row);
            shrink(row->question);
            return code;
        }
    return fail_keys(row);
}

/* A place for one more question; NULL after a message. */
static struct cli_question *add_question(struct cli_questions *questions)
{
    size_t n = questions->n;
    if ((n & (n - 1)) == 0) { /* 0 or a power of 2: full */
        size_t capacity = n > 0 ? 2 * n : 1;
        struct cli_question *larger = realloc(questions->list, capacity * sizeof *larger);
        if (!larger) {
            app_fail_memory();
            return NULL;
        }
        questions->list = larger;
    }
    questions->list[n] = (struct cli_question){ 0 };
    questions->n++;
    return &questions->list[n];
}

static int read_line(struct cli_questions *questions, size_t line, const char *text, size_t n)
{
    json_error_t error;
    struct row row = { .path = questions->path, .line = line };
    row.object = app_json_read(text, n, JSON_DECODE_ANY, APP_JSON_PYTHON, &error);
    if (!row.object)
        return app_fail("%s:%zu: no valid JSON: %s", questions->path, line, error.text);
    row.question = add_question(questions);
    int code = row.question ? read_row(&row) : APP_EXIT_MEMORY;
    json_decref(row.object);
    return code;
}

int cli_questions_read(const char *path, size_t limit, struct cli_questions *out)
{
    struct app_text text;
    *out = (struct cli_questions){ .path = path };
    int code = app_read_file("--tasks", path, &text);
    if (code != APP_EXIT_OK)
        return code;
    size_t line = 0;
    for (size_t at = 0; code == APP_EXIT_OK && at < text.n && (limit == 0 || out->n < limit);) {
        const char *from = text.bytes + at, *end = memchr(from, '\n', text.n - at);
        size_t n = end ? (size_t)(end - from) : text.n - at, first = 0;
        line++;
        at += n + 1;
        while (first < n && is_space(from[first]))
            first++;
        if (first < n)
            code = read_line(out, line, from, n);
    }
    free(text.bytes);
    if (code == APP_EXIT_OK && out->n == 0)
        code = app_fail("%s: no questions", path);
    return code;
}

void cli_questions_free(struct cli_questions *questions)
{
    for (size_t i = 0; i < questions->n; i++) {
        struct cli_question *q = &questions->list[i];
        for (size_t k = 0; k < q->n_choices; k++) {
            free(q->choices[k].context);
            free(q->choices[k].text);
            free(q->choices[k].ids);
        }
        free(q->choices);
    }
    free(questions->list);
    *questions = (struct cli_questions){ 0 };
}
