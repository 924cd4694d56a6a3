/* The zsh completion script, generated from the tables of commands and flags. */
#include "apps/cli/completion.h"

#include <string.h>

static const char head[] = "#compdef akunu-cli\n"
                           "# zsh completion of akunu-cli, made by `akunu-cli completion zsh`.\n"
                           "\n"
                           "_akunu_cli_models() {\n"
                           "    local -a models\n"
                           "    models=(${(f)\"$($akunu_cli completion models 2>/dev/null)\"})\n"
                           "    _alternative 'models:model:compadd -a models' 'files:file:_files'\n"
                           "}\n"
                           "\n"
                           "_akunu_cli_cpus() {\n"
                           "    local -a cpus\n"
                           "    cpus=(${(f)\"$($akunu_cli completion cpus 2>/dev/null)\"})\n"
                           "    compadd -a cpus\n"
                           "}\n"
                           "\n"
                           "_akunu-cli() {\n"
                           "    local akunu_cli=$words[1] command=run\n"
                           "    local -a commands\n"
                           "    commands=(\n";

static const char middle[] = "    )\n"
                             "    if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then\n"
                             "        _describe -t commands command commands\n"
                             "        return\n"
                             "    fi\n"
                             "    if [[ $words[2] != -* ]]; then\n"
                             "        command=$words[2]\n"
                             "        words[2]=()\n"
                             "        (( CURRENT-- ))\n"
                             "    fi\n"
                             "    case $command in\n";

static const char tail[] =
    "    esac\n"
    "}\n"
    "\n"
    "if [[ $funcstack[1] == _akunu-cli ]]; then # found in $fpath, not sourced\n"
    "    _akunu-cli \"$@\"\n"
    "else\n"
    "    compdef _akunu-cli akunu-cli\n"
    "fi\n";

/* Prints `text` for use inside single quotes. `special`: characters that _arguments needs
 * escaped. */
static void put_quoted(struct cli_output *out, const char *text, const char *special)
{
    for (; *text; text++)
        if (*text == '\'')
            cli_output_text(out, "'\\''");
        else
            cli_output_format(out, "%s%c", strchr(special, *text) ? "\\" : "", *text);
}

static void put_action(struct cli_output *out, const struct cli_flag *flag)
{
    switch (cli_find_completion_kind(flag)) {
    case CLI_COMPLETION_FILES: cli_output_text(out, ":_files"); return;
    case CLI_COMPLETION_FOLDERS: cli_output_text(out, ":_files -/"); return;
    case CLI_COMPLETION_MODELS: cli_output_text(out, ":_akunu_cli_models"); return;
    case CLI_COMPLETION_CPUS: cli_output_text(out, ":_akunu_cli_cpus"); return;
    case CLI_COMPLETION_NOTHING: cli_output_text(out, ": "); return;
    case CLI_COMPLETION_CHOICES: break;
    }
    cli_output_text(out, ":(");
    for (size_t i = 0; cli_find_choice(flag, i); i++)
        cli_output_format(out, "%s%s", i ? " " : "", cli_find_choice(flag, i));
    cli_output_text(out, ")");
}

/* '--flag=[help]:VALUE:action' */
static void put_flag(struct cli_output *out, const struct cli_flag *flag, const char *dashes,
                     const char *name)
{
    bool repeated = flag->kind == CLI_FLAG_LIST || flag->kind == CLI_FLAG_TEXTS;
    cli_output_format(out, " \\\n            '%s%s%s%s[", repeated ? "*" : "", dashes, name,
                      flag->value && dashes[1] ? "=" : "");
    put_quoted(out, flag->help, "[]:\\");
    cli_output_text(out, "]");
    if (flag->value) {
        cli_output_text(out, ":");
        put_quoted(out, flag->value, ":\\");
        put_action(out, flag);
    }
    cli_output_text(out, "'");
}

static void put_command(struct cli_output *out, const struct cli_command *command)
{
    cli_output_format(out, "    %s)\n        _arguments", command->name);
    if (command->words) {
        cli_output_text(out, " \\\n            '1: :(");
        for (size_t i = 0; command->words[i]; i++)
            cli_output_format(out, "%s%s", i ? " " : "", command->words[i]);
        cli_output_text(out, ")'");
    }
    for (size_t i = 0; i < cli_n_flags; i++) {
        const struct cli_flag *flag = &cli_flags[i];
        if (!(flag->commands & command->bit))
            continue;
        put_flag(out, flag, "--", flag->name);
        if (flag->brief)
            put_flag(out, flag, "-", flag->brief);
    }
    cli_output_text(out, "\n        ;;\n");
}

void cli_complete_zsh(struct cli_output *out)
{
    cli_output_text(out, head);
    for (size_t i = 0; i < cli_n_commands; i++) {
        cli_output_format(out, "        '%s:", cli_commands[i].name);
        put_quoted(out, cli_commands[i].summary, "");
        cli_output_text(out, "'\n");
    }
    cli_output_text(out, middle);
    for (size_t i = 0; i < cli_n_commands; i++)
        put_command(out, &cli_commands[i]);
    cli_output_text(out, tail);
}
