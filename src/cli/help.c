/* --help and --version, printed from the tables of commands and flags. */
#include "cli/options.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "akunu/akunu.h"
#include "cli/message.h"
#include "cli/output.h"

static void print_heading(struct cli_output *out, const char *text)
{
    if (cli_supports_color(stdout))
        cli_output_format(out, "\n\033[1m%s\033[0m\n", text);
    else
        cli_output_format(out, "\n%s\n", text);
}

int cli_help(void)
{
    struct cli_output out = cli_output_stdout();
    cli_output_text(&out, "akunu-cli runs language models on the CPU.\n");
    print_heading(&out, "Usage");
    cli_output_text(&out, "  akunu-cli [COMMAND] [FLAGS]\n  akunu-cli COMMAND --help\n");
    print_heading(&out, "Commands");
    for (size_t i = 0; i < cli_n_commands; i++)
        if (cli_is_shown(&cli_commands[i]))
            cli_output_format(&out, "  %-14s %s\n", cli_commands[i].name, cli_commands[i].summary);
    print_heading(&out, "Examples");
    for (size_t i = 0; i < cli_n_commands; i++)
        if (cli_is_shown(&cli_commands[i]))
            cli_output_format(&out, "  %s\n", cli_commands[i].example);
    print_heading(&out, "More");
    cli_output_text(&out,
                    "  A model is a GGUF file, or a folder of SafeTensors or NumPy arrays with "
                    "config.json.\n"
                    "  -m also takes the name of a model in "
                    "${XDG_DATA_HOME:-~/.local/share}/akunu/models; without -m the model\n"
                    "  that quickstart downloaded there is used.\n"
                    "  Long flags can be set in the environment (AKUNU_THREADS=2 is --threads "
                    "2) and in\n"
                    "  ${XDG_CONFIG_HOME:-~/.config}/akunu/config.yaml, which can also define "
                    "presets (-m coder). A flag wins.\n"
                    "  Exit codes: 0 success, 1 failure, 2 usage, 3 model unreadable or "
                    "unsupported, 4 out of memory,\n"
                    "  130 interrupted.\n");
    return cli_output_end(&out, CLI_EXIT_OK);
}

/* "-c, --ctx-size N" */
static void format_spelling(const struct cli_flag *flag, char *out, size_t capacity)
{
    char brief[16] = "    ";
    if (flag->brief)
        snprintf(brief, sizeof brief, "-%s, ", flag->brief);
    snprintf(out, capacity, "%s--%s%s%s", brief, flag->name, flag->value ? " " : "",
             flag->value ? flag->value : "");
}

/* UTF-8 continuation bytes, which take no column. */
static int continuation_bytes(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) == 0x80;
    return n;
}

int cli_help_command(const struct cli_command *command)
{
    struct cli_output out = cli_output_stdout();
    const char *group = "";
    cli_output_format(&out, "akunu-cli %s: %s\n", command->name, command->summary);
    if (command->words) {
        print_heading(&out, "Usage");
        for (size_t i = 0; command->words[i]; i++)
            cli_output_format(&out, "  akunu-cli %s %s [FLAGS]\n", command->name,
                              command->words[i]);
    }
    print_heading(&out, "Example");
    cli_output_format(&out, "  %s\n", command->example);
    for (size_t i = 0; i < cli_n_flags; i++) {
        const struct cli_flag *flag = &cli_flags[i];
        char text[80];
        if (!(flag->commands & command->bit))
            continue;
        if (strcmp(group, flag->group) != 0)
            print_heading(&out, flag->group);
        group = flag->group;
        format_spelling(flag, text, sizeof text);
        cli_output_format(&out, "  %-*s %s\n", 28 + continuation_bytes(text), text, flag->help);
    }
    return cli_output_end(&out, CLI_EXIT_OK);
}

void cli_print_machine(struct cli_output *out)
{
    struct akunu_chip c;
    if (akunu_chip_get(&c, sizeof c) != AKUNU_OK)
        return;
    cli_output_format(out, "%s, %u core%s", c.name[0] ? c.name : "unknown", (unsigned)c.cores,
                      c.cores == 1 ? "" : "s");
    if (c.hardware_threads != c.cores)
        cli_output_format(out, " (%u threads)", (unsigned)c.hardware_threads);
    if (c.l1d_bytes)
        cli_output_format(out, ", L1d %.0f KiB", (double)c.l1d_bytes / 0x1p10);
    if (c.l2_bytes)
        cli_output_format(out, ", L2 %.0f KiB", (double)c.l2_bytes / 0x1p10);
    if (c.l3_bytes)
        cli_output_format(out, ", L3 %.0f MiB", (double)c.l3_bytes / 0x1p20);
    cli_output_format(out, ", memory %.1f GiB", (double)c.memory_bytes / 0x1p30);
    if (c.numa_nodes > 1)
        cli_output_format(out, " on %u nodes", (unsigned)c.numa_nodes);
}

int cli_version(void)
{
    struct cli_output out = cli_output_stdout();
    const char *name;
    cli_output_format(&out, "akunu-cli %s\n", akunu_version());
    cli_output_format(&out, "build: %s; jansson %s\n", akunu_build_info(), jansson_version_str());
    cli_output_text(&out, "instruction sets:");
    for (size_t i = 0; (name = akunu_cpu_name(i)) != NULL; i++)
        cli_output_format(&out, " %s", name);
    cli_output_format(&out, " (best: %s)\n", akunu_cpu_best());
    cli_output_text(&out, "machine: ");
    cli_print_machine(&out);
    cli_output_text(&out, "\n");
    return cli_output_end(&out, CLI_EXIT_OK);
}
