/* --help and --version, printed from the tables of commands and flags. */
#include "apps/common/options.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "akunu/akunu.h"
#include "apps/common/message.h"
#include "apps/common/output.h"
#include "apps/common/remote.h"

static void print_heading(struct app_output *out, const char *text)
{
    if (app_supports_color(stdout))
        app_output_format(out, "\n\033[1m%s\033[0m\n", text);
    else
        app_output_format(out, "\n%s\n", text);
}

/* "-c, --ctx-size N" */
static void format_spelling(const struct app_flag *flag, char *out, size_t capacity)
{
    char brief[16] = "    ";
    if (flag->brief)
        snprintf(brief, sizeof brief, "-%s, ", flag->brief);
    snprintf(out, capacity, "%s--%s%s%s", brief, flag->name, flag->value ? " " : "",
             flag->value ? flag->value : "");
}

/* Columns of n bytes: those that begin a character. */
static int columns_of(const char *text, size_t n)
{
    int columns = 0;
    for (size_t i = 0; i < n; i++)
        columns += ((unsigned char)text[i] & 0xc0) != 0x80;
    return columns;
}

/* Prints text from column `indent` on, in lines of at most 100 columns. */
enum { MAX_COLUMNS = 100, HELP_COLUMN = 31 };
static void print_wrapped(struct app_output *out, int indent, const char *text)
{
    int column = indent;
    while (*text) {
        size_t n = strcspn(text, " ");
        int width = columns_of(text, n);
        if (column > indent && column + 1 + width > MAX_COLUMNS) {
            app_output_format(out, "\n%*s", indent, "");
            column = indent;
        } else if (column > indent) {
            app_output_text(out, " ");
            column++;
        }
        app_output_bytes(out, text, n);
        column += width;
        text += n + strspn(text + n, " ");
    }
    app_output_text(out, "\n");
}

static const char *const more[] = {
    "A model is a GGUF file, or a folder of SafeTensors or NumPy arrays with config.json. -m also "
    "takes the name of a model in ${XDG_DATA_HOME:-~/.local/share}/akunu/models; without -m the "
    "model that quickstart downloaded there is used.",
    "The model and the prompt need no flag: akunu-cli run model.gguf \"Hello\". Flags may precede "
    "the command.",
    "Flags can be set in the environment (AKUNU_THREADS=2 is --threads 2) and in "
    "${XDG_CONFIG_HOME:-~/.config}/akunu/config.yaml, which can also define presets (-m coder). A "
    "flag wins.",
    "Exit codes: 0 success, 1 failure, 2 usage, 3 model unreadable or unsupported, 4 out of "
    "memory, 130 interrupted.",
};

const char *app_command_title(const struct app_command *command)
{
    static char title[64];
    if (command->bit == APP_SERVER)
        return "akunu-server";
    snprintf(title, sizeof title, "akunu-cli %s", command->name);
    return title;
}

int app_help(void)
{
    struct app_output out = app_output_stdout();
    app_output_text(&out, "akunu-cli runs language models on the CPU.\n");
    print_heading(&out, "Usage");
    app_output_text(&out, "  akunu-cli [COMMAND] [FLAGS]\n  akunu-cli MODEL\n"
                          "  akunu-cli COMMAND --help\n");
    print_heading(&out, "Commands");
    for (size_t i = 0; i < app_n_commands; i++)
        app_output_format(&out, "  %-14s %s\n", app_commands[i].name, app_commands[i].summary);
    print_heading(&out, "Examples");
    for (size_t i = 0; i < app_n_commands; i++)
        app_output_format(&out, "  %s\n", app_commands[i].example);
    print_heading(&out, "More");
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        app_output_text(&out, "  ");
        print_wrapped(&out, 2, more[i]);
    }
    return app_output_end(&out, APP_EXIT_OK);
}

static void print_flag(struct app_output *out, const struct app_flag *flag)
{
    char text[80];
    format_spelling(flag, text, sizeof text);
    int width = 2 + columns_of(text, strlen(text));
    app_output_format(out, "  %s", text);
    if (width < HELP_COLUMN)
        app_output_format(out, "%*s", HELP_COLUMN - width, "");
    else
        app_output_format(out, "\n%*s", HELP_COLUMN, "");
    print_wrapped(out, HELP_COLUMN, flag->help);
}

int app_help_command(const struct app_command *command)
{
    struct app_output out = app_output_stdout();
    const char *group = "";
    app_output_format(&out, "%s: %s\n", app_command_title(command), command->summary);
    if (command->words) {
        print_heading(&out, "Usage");
        for (size_t i = 0; command->words[i]; i++)
            app_output_format(&out, "  akunu-cli %s %s [FLAGS]\n", command->name,
                              command->words[i]);
    }
    print_heading(&out, "Example");
    app_output_format(&out, "  %s\n", command->example);
    for (size_t i = 0; i < app_n_flags; i++) {
        const struct app_flag *flag = &app_flags[i];
        if (!(flag->commands & command->bit))
            continue;
        if (strcmp(group, flag->group) != 0)
            print_heading(&out, flag->group);
        group = flag->group;
        print_flag(&out, flag);
    }
    return app_output_end(&out, APP_EXIT_OK);
}

void app_print_machine(struct app_output *out)
{
    struct akunu_chip c;
    if (akunu_get_chip(&c, sizeof c) != AKUNU_OK)
        return;
    app_output_format(out, "%s, %u core%s", c.name[0] ? c.name : "unknown", (unsigned)c.cores,
                      c.cores == 1 ? "" : "s");
    if (c.hardware_threads != c.cores)
        app_output_format(out, " (%u threads)", (unsigned)c.hardware_threads);
    if (c.l1d_bytes)
        app_output_format(out, ", L1d %.0f KiB", (double)c.l1d_bytes / 0x1p10);
    if (c.l2_bytes)
        app_output_format(out, ", L2 %.0f KiB", (double)c.l2_bytes / 0x1p10);
    if (c.l3_bytes)
        app_output_format(out, ", L3 %.0f MiB", (double)c.l3_bytes / 0x1p20);
    app_output_format(out, ", memory %.1f GiB", (double)c.memory_bytes / 0x1p30);
    if (c.numa_nodes > 1)
        app_output_format(out, " on %u nodes", (unsigned)c.numa_nodes);
}

int app_version(void)
{
    struct app_output out = app_output_stdout();
    const char *name;
    app_output_format(&out, "%s %s\n", app_program(), akunu_version());
    app_output_format(&out, "build: %s; jansson %s", akunu_build_info(), jansson_version_str());
    if (app_remote_version())
        app_output_format(&out, "; libcurl %s", app_remote_version());
    app_output_text(&out, "\n");
    app_output_text(&out, "instruction sets:");
    for (size_t i = 0; (name = akunu_cpu_name(i)) != NULL; i++)
        app_output_format(&out, " %s", name);
    app_output_format(&out, " (best: %s)\n", akunu_cpu_best());
    app_output_text(&out, "machine: ");
    app_print_machine(&out);
    app_output_text(&out, "\n");
    return app_output_end(&out, APP_EXIT_OK);
}
