/* eval: accuracy on questions with choices. The choice counts whose text the model holds for the
 * most likely one; its own text is never sampled. */
#include "apps/cli/quality/eval.h"

#include <stdlib.h>

#include "apps/common/message.h"
#include "apps/common/output.h"

/* Outcomes of --base, a file of results or a model, which answers before the one of -m. */
static int read_base(const struct app_options *o, struct cli_questions *questions,
                     struct cli_outcome **out)
{
    if (cli_results_is(o->quality.base))
        return cli_results_read(o->quality.base, questions, out);
    struct app_options of_base = *o;
    of_base.model.name = o->quality.base;
    of_base.model.override_kv = of_base.model.ignore_keys =
        (struct app_texts){ 0 }; /* these are about the other model */
    of_base.load.quantize = of_base.load.importance = NULL;
    of_base.model.adapters = (struct app_texts){ 0 };
    int code = cli_questions_score(&of_base, questions);
    if (code != APP_EXIT_OK)
        return code;
    *out = cli_outcomes_of(questions);
    return *out ? APP_EXIT_OK : APP_EXIT_MEMORY;
}

int cli_eval(const struct app_options *o)
{
    struct app_output out = app_output_stdout();
    struct cli_questions questions = { 0 };
    struct cli_outcome *outcomes = NULL, *base = NULL;
    if (!o->quality.tasks)
        return app_fail_usage("--tasks FILE is missing: questions, a JSON object per line");
    int code = cli_questions_read(o->quality.tasks, (size_t)o->quality.limit, &questions);
    if (code == APP_EXIT_OK && o->quality.base)
        code = read_base(o, &questions, &base);
    if (code == APP_EXIT_OK)
        code = cli_questions_score(o, &questions);
    if (code == APP_EXIT_OK && o->quality.save)
        code = cli_results_write(o->quality.save, &questions);
    if (code == APP_EXIT_OK) {
        outcomes = cli_outcomes_of(&questions);
        code = outcomes ? APP_EXIT_OK : APP_EXIT_MEMORY;
    }
    if (code == APP_EXIT_OK)
        cli_results_print(o, &questions, outcomes, base, &out);
    free(outcomes);
    free(base);
    cli_questions_free(&questions);
    return app_output_end(&out, code);
}
