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
static void put_quoted(struct app_output *out, const char *text, const char *special)
{
    for (; *text; text++)
        if (*text == '\'')
            app_output_text(out, "'\\''");
        else
            app_output_format(out, "%s%c", strchr(special, *text) ? "\\" : "", *text);
}

static void put_action(struct app_output *out, const struct app_flag *flag)
{
    switch (cli_find_completion_kind(flag)) {
    case CLI_COMPLETION_FILES: app_output_text(out, ":_files"); return;
    case CLI_COMPLETION_FOLDERS: app_output_text(out, ":_files -/"); return;
    case CLI_COMPLETION_MODELS: app_output_text(out, ":_akunu_cli_models"); return;
    case CLI_COMPLETION_CPUS: app_output_text(out, ":_akunu_cli_cpus"); return;
    case CLI_COMPLETION_NOTHING: app_output_text(out, ": "); return;
    case CLI_COMPLETION_CHOICES: break;
    }
    app_output_text(out, ":(");
    for (size_t i = 0; cli_find_choice(flag, i); i++)
        app_output_format(out, "%s%s", i ? " " : "", cli_find_choice(flag, i));
    app_output_text(out, ")");
}

/* '--flag=[help]:VALUE:action' */
static void put_flag(struct app_output *out, const struct app_flag *flag, const char *dashes,
                     const char *name)
{
    bool repeated = flag->kind == APP_FLAG_LIST || flag->kind == APP_FLAG_TEXTS;
    app_output_format(out, " \\\n            '%s%s%s%s[", repeated ? "*" : "", dashes, name,
                      flag->value && dashes[1] ? "=" : "");
    put_quoted(out, flag->help, "[]:\\");
    app_output_text(out, "]");
    if (flag->value) {
        app_output_text(out, ":");
        put_quoted(out, flag->value, ":\\");
        put_action(out, flag);
    }
    app_output_text(out, "'");
}

static void put_command(struct app_output *out, const struct app_command *command)
{
    app_output_format(out, "    %s)\n        _arguments", command->name);
    if (command->words) {
        app_output_text(out, " \\\n            '1: :(");
        for (size_t i = 0; command->words[i]; i++)
            app_output_format(out, "%s%s", i ? " " : "", command->words[i]);
        app_output_text(out, ")'");
    }
    for (size_t i = 0; i < app_n_flags; i++) {
        const struct app_flag *flag = &app_flags[i];
        if (!(flag->commands & command->bit))
            continue;
        put_flag(out, flag, "--", flag->name);
        if (flag->brief)
            put_flag(out, flag, "-", flag->brief);
    }
    app_output_text(out, "\n        ;;\n");
}

void cli_complete_zsh(struct app_output *out)
{
    app_output_text(out, head);
    for (size_t i = 0; i < app_n_commands; i++) {
        app_output_format(out, "        '%s:", app_commands[i].name);
        put_quoted(out, app_commands[i].summary, "");
        app_output_text(out, "'\n");
    }
    app_output_text(out, middle);
    for (size_t i = 0; i < app_n_commands; i++)
        put_command(out, &app_commands[i]);
    app_output_text(out, tail);
}
