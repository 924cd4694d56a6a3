/* akunu-cli: picks the command, reads its flags, runs it. */
#include <stdio.h>
#include <string.h>

#include "apps/common/configuration.h"
#include "apps/common/load.h"
#include "apps/common/message.h"
#include "apps/common/options.h"
#include "apps/common/ranks.h"

static int unknown_command(const char *typed)
{
    const char *words[32];
    char known[512] = "";
    size_t n = 0;
    for (size_t i = 0; i < app_n_commands; i++) {
        strcat(known, n ? ", " : "");
        strcat(known, app_commands[i].name);
        words[n++] = app_commands[i].name;
    }
    const char *nearest = app_find_nearest(typed, words, n);
    if (nearest)
        return app_fail_usage("unknown command '%s'; did you mean '%s'? There are: %s", typed,
                              nearest, known);
    return app_fail_usage("unknown command '%s'; there are: %s", typed, known);
}

/* The index of the first argument that is neither a flag of these commands nor its value; argc:
 * none. */
static int find_word(app_command_set commands, int argc, char **argv)
{
    int i = 1;
    while (i < argc && argv[i][0] == '-')
        i = app_skip_flag(commands, argc, argv, i);
    return i;
}

/* The index of the command, which its flags may precede; argc: none. */
static int find_command(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const struct app_command *command = app_find_command(argv[i]);
        if (command && find_word(command->bit, argc, argv) == i)
            return i;
    }
    return argc;
}

/* Whether a word in the place of a command is what `run` takes: a model, or a prompt. */
static bool is_operand_of_run(const char *word, bool after_flags)
{
    return after_flags || strpbrk(word, " \t\n") || app_is_model(word);
}

/* The command, and whether it was named or is the default one. */
struct call {
    const struct app_command *command;
    bool named;
};

static int run_command(const struct app_options *options, void *user)
{
    const struct call *call = user;
    if (options->version)
        return app_version();
    if (options->help)
        return call->named ? app_help_command(call->command) : app_help();
    if (options->model.list_devices)
        return app_list_devices(options);
    return call->command->run(options);
}

int main(int argc, char **argv)
{
    app_interrupt_install();
    app_ranks_hush();
    int word = find_command(argc, argv);
    bool named = word < argc;
    const struct app_command *command = app_find_command(named ? argv[word] : "run");
    if (named) { /* its flags come after it */
        memmove(argv + 2, argv + 1, (size_t)(word - 1) * sizeof *argv);
    } else {
        word = find_word(~(app_command_set)0, argc, argv);
        const char *instead = word == 1 && argc > 1 ? app_instead_of_command(argv[1]) : NULL;
        if (instead)
            return app_fail_usage("'%s': %s", argv[1], instead);
        if (word < argc && !is_operand_of_run(argv[word], word > 1))
            return unknown_command(argv[word]);
    }

    struct app_options options;
    int skip = argc > 0 ? 1 + named : 0;
    int code = app_options_parse(command, argc - skip, argv + skip, &options);
    app_set_color((enum app_color)options.output.color);
    if (code == APP_EXIT_OK)
        code = app_ranks_run(&options, run_command, &(struct call){ command, named });
    app_options_free(&options);
    return code;
}
