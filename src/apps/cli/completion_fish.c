/* The fish completion script, generated from the tables of commands and flags. */
#include "apps/cli/completion.h"

#include <string.h>

static const char head[] =
    "# fish completion of akunu-cli, made by `akunu-cli completion fish`.\n"
    "function __akunu_cli_is -d 'whether the command line has this command'\n"
    "    set -l typed (commandline -opc)\n"
    "    set -l command run\n"
    "    if set -q typed[2]; and not string match -q -- '-*' $typed[2]\n"
    "        set command $typed[2]\n"
    "    end\n"
    "    test $command = $argv[1]\n"
    "end\n"
    "\n"
    "function __akunu_cli_words\n"
    "    set -l typed (commandline -opc)\n"
    "    $typed[1] completion $argv 2>/dev/null\n"
    "end\n"
    "\n"
    "function __akunu_cli_begins -d 'whether nothing stands behind the first N words'\n"
    "    test (count (commandline -opc)) -eq $argv[1]\n"
    "end\n"
    "\n"
    "complete -c akunu-cli -f\n";

static void put_quoted(struct app_output *out, const char *text)
{
    app_output_text(out, "'");
    for (; *text; text++)
        app_output_format(out, "%s%c", *text == '\'' || *text == '\\' ? "\\" : "", *text);
    app_output_text(out, "'");
}

static void put_value(struct app_output *out, const struct app_flag *flag)
{
    switch (cli_find_completion_kind(flag)) {
    case CLI_COMPLETION_FILES: app_output_text(out, " -r -F"); return;
    case CLI_COMPLETION_FOLDERS:
        app_output_text(out, " -x -a '(__fish_complete_directories)'");
        return;
    case CLI_COMPLETION_MODELS:
        app_output_text(out, " -r -F -a '(__akunu_cli_words models)'");
        return;
    case CLI_COMPLETION_CPUS: app_output_text(out, " -x -a '(__akunu_cli_words cpus)'"); return;
    case CLI_COMPLETION_NOTHING: app_output_text(out, " -x"); return;
    case CLI_COMPLETION_CHOICES: break;
    }
    app_output_text(out, " -x -a '");
    for (size_t i = 0; cli_find_choice(flag, i); i++)
        app_output_format(out, "%s%s", i ? " " : "", cli_find_choice(flag, i));
    app_output_text(out, "'");
}

static void put_flag(struct app_output *out, const struct app_command *command,
                     const struct app_flag *flag)
{
    app_output_format(out, "complete -c akunu-cli -n '__akunu_cli_is %s' -l %s", command->name,
                      flag->name);
    if (flag->brief) /* fish calls a word after one dash an old option */
        app_output_format(out, " -%c %s", flag->brief[1] ? 'o' : 's', flag->brief);
    if (flag->value)
        put_value(out, flag);
    app_output_text(out, " -d ");
    put_quoted(out, flag->help);
    app_output_text(out, "\n");
}

static void put_command(struct app_output *out, const struct app_command *command)
{
    app_output_format(out, "\ncomplete -c akunu-cli -n '__akunu_cli_begins 1' -a %s -d ",
                      command->name);
    put_quoted(out, command->summary);
    app_output_text(out, "\n");
    for (size_t i = 0; command->words && command->words[i]; i++)
        app_output_format(
            out, "complete -c akunu-cli -n '__akunu_cli_is %s; and __akunu_cli_begins 2' -a %s\n",
            command->name, command->words[i]);
    for (size_t i = 0; i < app_n_flags; i++)
        if (app_flags[i].commands & command->bit)
            put_flag(out, command, &app_flags[i]);
}

void cli_complete_fish(struct app_output *out)
{
    app_output_text(out, head);
    for (size_t i = 0; i < app_n_commands; i++)
        put_command(out, &app_commands[i]);
}
