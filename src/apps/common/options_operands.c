/* Arguments that are not flags: `run model.gguf "a prompt"` is `run -m model.gguf -p "a prompt"`.
 */
#include <stdio.h>
#include <string.h>

#include "apps/common/configuration.h"
#include "apps/common/message.h"

static struct app_option_value *value_of(const struct app_command *command, int i,
                                         struct app_option_value *values)
{
    const char *name = command->operands[i];
    return &values[app_find_flag(command->bit, name, strlen(name))];
}

static int set_operand(const struct app_command *command, int i, const char *text,
                       struct app_option_value *values, struct app_options *options)
{
    struct app_option_value *f = value_of(command, i, values);
    options->typed[f - values] = text;
    snprintf(f->shown, sizeof f->shown, "--%s", command->operands[i]);
    f->source = APP_SOURCE_ARGUMENT;
    f->joint = " ";
    f->text = text;
    return app_add_text(f, text);
}

static int fail_unexpected(const struct app_command *command, const char *text)
{
    char shown[APP_SHOWN_BYTES];
    if (!command->operands[0])
        return app_fail_usage("unexpected argument '%s': '%s' takes flags only (%s --help)",
                              app_show_text(text, shown), command->name,
                              app_command_title(command));
    return app_fail_usage("unexpected argument '%s': '%s' takes --%s%s%s without the flag "
                          "(%s --help)",
                          app_show_text(text, shown), command->name, command->operands[0],
                          command->operands[1] ? " and --" : "",
                          command->operands[1] ? command->operands[1] : "",
                          app_command_title(command));
}

/* Whether the command takes any number of its one operand. */
static bool takes_many(const struct app_command *command)
{
    const char *name = command->operands[0];
    return name &&
           app_flags[app_find_flag(command->bit, name, strlen(name))].kind == APP_FLAG_TEXTS;
}

int app_read_operand(const struct app_command *command, const char *text,
                     struct app_operands *operands, struct app_option_value *values,
                     struct app_options *options)
{
    if (takes_many(command))
        return set_operand(command, 0, text, values, options);
    if (operands->n == 2 || !command->operands[operands->n])
        return fail_unexpected(command, text);
    operands->texts[operands->n++] = text;
    return APP_EXIT_OK;
}

/* Which operand a lone one is. A text has spaces, a model's name has not, and a model that -m names
 * is not named twice. `tokenize` has a text far more often than a model. */
static int lone_operand(const struct app_command *command, const char *text,
                        struct app_option_value *values)
{
    if (!command->operands[1])
        return 0;
    bool has_first = value_of(command, 0, values)->source == APP_SOURCE_ARGUMENT;
    bool is_text = strcmp(command->operands[1], "prompt") == 0;
    return has_first || (is_text && (command->bit == APP_TOKENIZE || strpbrk(text, " \t\n")));
}

int app_set_operands(const struct app_command *command, const struct app_operands *operands,
                     struct app_option_value *values, struct app_options *options)
{
    int first = operands->n == 1 ? lone_operand(command, operands->texts[0], values) : 0;
    for (int i = 0; i < operands->n; i++) {
        const struct app_option_value *given = value_of(command, first + i, values);
        char shown[APP_SHOWN_BYTES];
        if (given->source == APP_SOURCE_ARGUMENT)
            return app_fail_usage("unexpected argument '%s': %s is given already",
                                  app_show_text(operands->texts[i], shown), given->shown);
        int code = set_operand(command, first + i, operands->texts[i], values, options);
        if (code != APP_EXIT_OK)
            return code;
    }
    return APP_EXIT_OK;
}
