/* The bash completion script, generated from the tables of commands and flags. */
#include "apps/cli/completion.h"

static const char head[] = "# bash completion of akunu-cli, made by `akunu-cli completion bash`.\n"
                           "_akunu_cli()\n"
                           "{\n"
                           "    local current=${COMP_WORDS[COMP_CWORD]} "
                           "previous=${COMP_WORDS[COMP_CWORD - 1]} first=${COMP_WORDS[1]}\n"
                           "    local command=run commands words= long= brief= value=\n"
                           "    COMPREPLY=()\n"
                           "    # bash cuts --flag=value into three words\n"
                           "    if [[ $current == = ]]; then\n"
                           "        current=\n"
                           "    elif [[ $previous == = ]]; then\n"
                           "        previous=${COMP_WORDS[COMP_CWORD - 2]}\n"
                           "    fi\n";

static const char tail[] =
    "    case $value in\n"
    "    files) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$current\") ;;\n"
    "    folders) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- \"$current\") ;;\n"
    "    models)\n"
    "        compopt -o filenames\n"
    "        mapfile -t COMPREPLY < <(compgen -f -- \"$current\"\n"
    "            compgen -W \"$(\"${COMP_WORDS[0]}\" completion models 2>/dev/null)\" -- "
    "\"$current\")\n"
    "        ;;\n"
    "    cpus) mapfile -t COMPREPLY < <(compgen -W \"$(\"${COMP_WORDS[0]}\" completion cpus "
    "2>/dev/null)\" -- \"$current\") ;;\n"
    "    none) ;;\n"
    "    '')\n"
    "        if [[ $COMP_CWORD -eq 1 && $current != -* ]]; then\n"
    "            long=$commands\n"
    "        elif [[ $current == -[!-]* ]]; then\n"
    "            long=$brief\n"
    "        elif [[ $COMP_CWORD -eq 2 && $current != -* && -n $words ]]; then\n"
    "            long=$words\n"
    "        fi\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"$long\" -- \"$current\")\n"
    "        ;;\n"
    "    *) mapfile -t COMPREPLY < <(compgen -W \"$value\" -- \"$current\") ;;\n"
    "    esac\n"
    "}\n"
    "complete -F _akunu_cli akunu-cli\n";

static void put_value(struct app_output *out, const struct app_flag *flag)
{
    static const char *const names[] = { [CLI_COMPLETION_NOTHING] = "none",
                                         [CLI_COMPLETION_FILES] = "files",
                                         [CLI_COMPLETION_FOLDERS] = "folders",
                                         [CLI_COMPLETION_MODELS] = "models",
                                         [CLI_COMPLETION_CPUS] = "cpus" };
    enum cli_completion_kind kind = cli_find_completion_kind(flag);
    app_output_format(out, "        --%s", flag->name);
    if (flag->alias)
        app_output_format(out, "|--%s", flag->alias);
    if (flag->brief)
        app_output_format(out, "|-%s", flag->brief);
    app_output_text(out, ") value='");
    if (kind != CLI_COMPLETION_CHOICES)
        app_output_text(out, names[kind]);
    for (size_t i = 0; kind == CLI_COMPLETION_CHOICES && cli_find_choice(flag, i); i++)
        app_output_format(out, "%s%s", i ? " " : "", cli_find_choice(flag, i));
    app_output_text(out, "' ;;\n");
}

static void put_command(struct app_output *out, const struct app_command *command)
{
    app_output_format(out, "    %s)\n        long='", command->name);
    for (size_t i = 0; i < app_n_flags; i++)
        if (app_flags[i].commands & command->bit)
            app_output_format(out, "--%s ", app_flags[i].name);
    app_output_text(out, "'\n        brief='");
    for (size_t i = 0; i < app_n_flags; i++)
        if ((app_flags[i].commands & command->bit) && app_flags[i].brief)
            app_output_format(out, "-%s ", app_flags[i].brief);
    app_output_text(out, "'\n");
    if (command->words) {
        app_output_text(out, "        words='");
        for (size_t i = 0; command->words[i]; i++)
            app_output_format(out, "%s ", command->words[i]);
        app_output_text(out, "'\n");
    }
    app_output_text(out, "        case $previous in\n");
    for (size_t i = 0; i < app_n_flags; i++)
        if ((app_flags[i].commands & command->bit) && app_flags[i].value)
            put_value(out, &app_flags[i]);
    app_output_text(out, "        esac\n        ;;\n");
}

void cli_complete_bash(struct app_output *out)
{
    app_output_text(out, head);
    app_output_text(out, "    commands='");
    for (size_t i = 0; i < app_n_commands; i++)
        app_output_format(out, "%s ", app_commands[i].name);
    app_output_text(
        out,
        "'\n    [[ $COMP_CWORD -gt 1 && $first != -* ]] && command=$first\n    case $command in\n");
    for (size_t i = 0; i < app_n_commands; i++)
        put_command(out, &app_commands[i]);
    app_output_text(out, "    *) return ;;\n    esac\n");
    app_output_text(out, tail);
}
