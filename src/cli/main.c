/* akunu-cli: picks the command, reads its flags, runs it. */
#include <stdio.h>
#include <string.h>

#include "cli/message.h"
#include "cli/options.h"

static int unknown_command(const char *typed)
{
    const char *words[32];
    char known[512] = "";
    size_t n = 0;
    for (size_t i = 0; i < cli_n_commands; i++) {
        if (!cli_is_shown(&cli_commands[i]))
            continue;
        strcat(known, n ? ", " : "");
        strcat(known, cli_commands[i].name);
        words[n++] = cli_commands[i].name;
    }
    const char *nearest = cli_find_nearest(typed, words, n);
    if (nearest)
        return cli_fail_usage("unknown command '%s'; did you mean '%s'? There are: %s", typed,
                              nearest, known);
    return cli_fail_usage("unknown command '%s'; there are: %s", typed, known);
}

static int run_command(const struct cli_command *command, bool named,
                       const struct cli_options *options)
{
    if (options->version)
        return cli_version();
    if (options->help)
        return named ? cli_help_command(command) : cli_help();
    if (options->list_devices)
        return cli_list_devices();
    return command->run(options);
}

int main(int argc, char **argv)
{
    cli_interrupt_install();
    bool named = argc > 1 && argv[1][0] != '-';
    const struct cli_command *command = cli_find_command(named ? argv[1] : "run");
    if (!command)
        return unknown_command(argv[1]);

    struct cli_options options;
    int skip = argc > 0 ? 1 + named : 0;
    int code = cli_options_parse(command, argc - skip, argv + skip, &options);
    if (code == CLI_EXIT_OK)
        code = run_command(command, named, &options);
    cli_options_free(&options);
    return code;
}
