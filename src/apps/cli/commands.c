/* The table of commands, made from commands.def. */
#include "apps/common/options.h"

#include <string.h>

/* clang-format off */
#define NO_WORDS NULL
#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define COMMAND(id, function, name_, traits_, first, second, words_, summary_, example_)           \
    { .name = name_,                                                                              \
      .bit = APP_##id,                                                                            \
      .traits = traits_,                                                                          \
      .run = cli_##function,                                                                      \
      .summary = summary_,                                                                        \
      .example = example_,                                                                        \
      .words = words_,                                                                            \
      .operands = { first, second } },
const struct app_command app_commands[] = {
#include "apps/common/commands.def"
};
/* clang-format on */

const size_t app_n_commands = sizeof app_commands / sizeof *app_commands;

const struct app_command *app_find_command(const char *name)
{
    if (strcmp(name, "ls") == 0) /* ollama's */
        name = "list";
    for (size_t i = 0; i < app_n_commands; i++)
        if (strcmp(app_commands[i].name, name) == 0)
            return &app_commands[i];
    return NULL;
}
