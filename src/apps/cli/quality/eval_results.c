/* Results of eval: accuracies with their standard errors, the paired difference to a base, and the
 * file of --save, which has an object per question and line. */
#include "apps/cli/quality/eval.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "apps/common/input.h"
#include "apps/common/message.h"
#include "apps/cli/quality/new_file.h"
#include "apps/common/output.h"

/* ---- Outcomes ----------------------------------------------------------- */
/* Whether the first of the highest scores is that of the right choice. Scores are log-likelihoods,
 * divided by the characters of the choice if normalized. */
static bool is_right(const struct cli_question *q, const double *logprobs, bool normalized)
{
    size_t best = 0;
    double best_score = 0.0;
    for (size_t k = 0; k < q->n_choices; k++) {
        uint32_t n_chars = q->choices[k].n_chars > 0 ? q->choices[k].n_chars : 1;
        double score = normalized ? logprobs[k] / n_chars : logprobs[k];
        if (k == 0 || score > best_score) {
            best = k;
            best_score = score;
        }
    }
    return best == q->answer;
}

static struct cli_outcome outcome_of(const struct cli_question *q, const double *logprobs)
{
    return (struct cli_outcome){ .right = is_right(q, logprobs, false),
                                 .right_normalized = is_right(q, logprobs, true) };
}

struct cli_outcome *cli_outcomes_of(const struct cli_questions *questions)
{
    struct cli_outcome *outcomes = calloc(questions->n, sizeof *outcomes);
    if (!outcomes)
        app_fail_memory();
    for (size_t i = 0; outcomes && i < questions->n; i++) {
        double logprobs[CLI_CHOICES_MAX];
        const struct cli_question *q = &questions->list[i];
        for (size_t k = 0; k < q->n_choices; k++)
            logprobs[k] = q->choices[k].logprob;
        outcomes[i] = outcome_of(q, logprobs);
    }
    return outcomes;
}

/* ---- File --------------------------------------------------------------- */
static json_t *question_json(const struct cli_question *q)
{
    json_t *choices = json_array();
    for (size_t k = 0; k < q->n_choices; k++) {
        const struct cli_choice *c = &q->choices[k];
        json_array_append_new(choices,
                              json_pack("{s:s, s:s, s:o, s:I}", "context", c->context, "text",
                                        c->text, "logprob", app_json_real(c->logprob), "tokens",
                                        (json_int_t)(c->n - c->n_context)));
    }
    return json_pack("{s:s, s:I, s:I, s:o}", "form", q->form, "line", (json_int_t)q->line, "answer",
                     (json_int_t)q->answer, "choices", choices);
}

int cli_results_write(const char *path, const struct cli_questions *questions)
{
    struct cli_new_file file = { 0 };
    int code = cli_new_file_begin("--save", path, &file);
    for (size_t i = 0; code == APP_EXIT_OK && i < questions->n; i++) {
        json_t *object = question_json(&questions->list[i]);
        errno = 0;
        if (!object)
            code = app_fail_memory();
        else if (json_dumpf(object, file.file, JSON_COMPACT) != 0 || fputc('\n', file.file) == EOF)
            code = app_fail("cannot write --save %s: %s", path, strerror(errno ? errno : EIO));
        json_decref(object);
    }
    return cli_new_file_end(&file, code);
}

bool cli_results_is(const char *path)
{
    struct stat st;
    FILE *file = stat(path, &st) == 0 && S_ISREG(st.st_mode) ? fopen(path, "rbe") : NULL;
    bool is_object = file && fgetc(file) == '{';
    if (file)
        fclose(file);
    return is_object;
}

static bool is_text(const json_t *object, const char *key, const char *text)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value && strcmp(value, text) == 0;
}

/* Takes the log-likelihoods of a line; false: it is not about this question. */
static bool read_logprobs(const json_t *line, const struct cli_question *q, double *logprobs)
{
    const json_t *choices = json_object_get(line, "choices");
    const json_t *answer = json_object_get(line, "answer");
    if (json_array_size(choices) != q->n_choices || !json_is_integer(answer) ||
        json_integer_value(answer) != (json_int_t)q->answer)
        return false;
    for (size_t k = 0; k < q->n_choices; k++) {
        const json_t *choice = json_array_get(choices, k);
        const json_t *logprob = json_object_get(choice, "logprob");
        if (!is_text(choice, "context", q->choices[k].context) ||
            !is_text(choice, "text", q->choices[k].text) || !json_is_number(logprob))
            return false;
        logprobs[k] = json_number_value(logprob);
    }
    return true;
}

/* Reads the line at `bytes`, of n bytes, as the result of question i. */
static int read_result(const char *path, const struct cli_questions *questions, size_t i,
                       const char *bytes, size_t n, struct cli_outcome *out)
{
    double logprobs[CLI_CHOICES_MAX];
    json_error_t error;
    const struct cli_question *q = &questions->list[i];
    json_t *line = json_loadb(bytes, n, 0, &error);
    if (!line)
        return app_fail("%s:%zu: no valid JSON: %s", path, i + 1, error.text);
    bool is_same = read_logprobs(line, q, logprobs);
    json_decref(line);
    if (!is_same)
        return app_fail("%s:%zu: no result of the question of %s:%zu; expected results of the same "
                        "questions, as --save writes them",
                        path, i + 1, questions->path, q->line);
    *out = outcome_of(q, logprobs);
    return APP_EXIT_OK;
}

int cli_results_read(const char *path, const struct cli_questions *questions,
                     struct cli_outcome **out)
{
    struct app_text text;
    int code = app_read_file("--base", path, &text);
    if (code != APP_EXIT_OK)
        return code;
    *out = calloc(questions->n, sizeof **out);
    code = *out ? APP_EXIT_OK : app_fail_memory();
    size_t at = 0;
    for (size_t i = 0; code == APP_EXIT_OK && i < questions->n; i++) {
        const char *from = text.bytes + at, *end = memchr(from, '\n', text.n - at);
        if (!end) {
            code = app_fail("%s: results of %zu questions; %s has %zu", path, i, questions->path,
                            questions->n);
            break;
        }
        code = read_result(path, questions, i, from, (size_t)(end - from), *out + i);
        at += (size_t)(end - from) + 1;
    }
    free(text.bytes);
    return code;
}

/* ---- Printing ----------------------------------------------------------- */
/* Mean of right answers, less those of `base` unless it is NULL. */
static struct cli_estimate mean_of(const struct cli_outcome *outcomes,
                                   const struct cli_outcome *base, size_t n, bool normalized)
{
    struct cli_estimate mean = { 0.0, 0.0 };
    double *values = malloc(n * sizeof *values);
    for (size_t i = 0; values && i < n; i++) {
        values[i] = normalized ? outcomes[i].right_normalized : outcomes[i].right;
        if (base)
            values[i] -= normalized ? base[i].right_normalized : base[i].right;
    }
    if (values)
        mean = cli_mean(values, n, sizeof *values);
    free(values);
    return mean;
}

static json_t *accuracy_json(const struct cli_outcome *outcomes, const struct cli_outcome *base,
                             size_t n)
{
    struct cli_estimate plain = mean_of(outcomes, base, n, false);
    struct cli_estimate normalized = mean_of(outcomes, base, n, true);
    return json_pack("{s:o, s:o, s:o, s:o}", "accuracy", app_json_real(plain.value), "error",
                     app_json_real(plain.error), "normalized_accuracy",
                     app_json_real(normalized.value), "normalized_error",
                     app_json_real(normalized.error));
}

static void print_results_json(const struct cli_outcome *outcomes, const struct cli_outcome *base,
                               size_t n, struct app_output *out)
{
    json_t *value = accuracy_json(outcomes, NULL, n);
    json_object_set_new(value, "questions", json_integer((json_int_t)n));
    if (base) {
        json_object_set_new(value, "base", accuracy_json(base, NULL, n));
        json_object_set_new(value, "difference", accuracy_json(outcomes, base, n));
    }
    app_json_print(out, value);
    app_output_text(out, "\n");
}

static void print_accuracy(struct app_output *out, const char *what, struct cli_estimate e)
{
    app_output_format(out, "%s: %.4f ± %.4f", what, e.value, e.error);
}

/* Two lines about the base: its accuracy, and the difference to it. */
static void print_base(struct app_output *out, const char *what, struct cli_estimate base,
                       struct cli_estimate difference)
{
    app_output_format(out, "%s of the base: %.4f ± %.4f\n", what, base.value, base.error);
    app_output_format(out, "%s, difference to it: %+.4f ± %.4f\n", what, difference.value,
                      difference.error);
}

void cli_results_print(const struct app_options *o, const struct cli_questions *questions,
                       const struct cli_outcome *outcomes, const struct cli_outcome *base,
                       struct app_output *out)
{
    size_t n = questions->n;
    if (o->output.json) {
        print_results_json(outcomes, base, n, out);
        return;
    }
    if (base) {
        print_base(out, "accuracy", mean_of(base, NULL, n, false),
                   mean_of(outcomes, base, n, false));
        print_base(out, "normalized accuracy", mean_of(base, NULL, n, true),
                   mean_of(outcomes, base, n, true));
    }
    print_accuracy(out, "normalized accuracy", mean_of(outcomes, NULL, n, true));
    print_accuracy(out, "\naccuracy", mean_of(outcomes, NULL, n, false));
    app_output_format(out, " (%zu question%s)\n", n, n == 1 ? "" : "s");
}
