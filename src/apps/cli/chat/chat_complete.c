/* What Tab offers in a chat: commands, files, models, keys of /set. In a message Tab is a tab, so
 * that pasted text keeps its tabs. */
#include "apps/cli/chat/chat.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "apps/common/message.h"

/* The argument typed so far, and where the candidates go. */
struct typed {
    struct cli_candidates *out;
    const char *text;
    size_t n;
};

/* ---- Files -------------------------------------------------------------- */
static bool has_controls(const char *name)
{
    while (*name && (unsigned char)*name >= 0x20 && *name != 0x7f)
        name++;
    return *name != '\0';
}

/* Adds FOLDER/NAME as typed; folders end with a slash. `real` is the folder to open. */
static void add_candidate(const struct typed *t, const char *folder, const char *real,
                          const char *name)
{
    struct stat info;
    char *path = NULL, *shown = NULL;
    if (asprintf(&path, "%s/%s", real, name) < 0)
        path = NULL;
    if (asprintf(&shown, "%s%s", folder, name) < 0)
        shown = NULL;
    if (path && shown)
        cli_candidates_add(t->out, t->text, t->n, shown,
                           stat(path, &info) == 0 && S_ISDIR(info.st_mode) ? "/" : "");
    free(path);
    free(shown);
}

static void add_files(const struct typed *t)
{
    char *text = strndup(t->text, t->n), *folder = NULL, *real = NULL;
    const char *slash = text ? strrchr(text, '/') : NULL;
    const char *begin = slash ? slash + 1 : text;
    struct dirent **entries = NULL;
    int n = -1;
    if (text && (folder = strndup(text, (size_t)(begin - text))) != NULL)
        real = cli_chat_path(*folder ? folder : ".");
    if (real)
        n = scandir(real, &entries, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        const char *name = entries[i]->d_name;
        bool is_hidden = name[0] == '.' && *begin != '.';
        if (!is_hidden && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && !has_controls(name))
            add_candidate(t, folder, real, name);
        free(entries[i]);
    }
    free(entries);
    free(real);
    free(folder);
    free(text);
}

/* ---- Names -------------------------------------------------------------- */
static void add_model(const char *name, void *user)
{
    const struct typed *t = user;
    if (!has_controls(name))
        cli_candidates_add(t->out, t->text, t->n, name, "");
}

static void add_keys(const struct typed *t)
{
    for (size_t i = 0; i < app_n_flags; i++)
        if (cli_chat_can_set(&app_flags[i]))
            cli_candidates_add(t->out, t->text, t->n, app_flags[i].name,
                               app_flags[i].kind == APP_FLAG_BOOL ? "" : " ");
}

static void add_commands(const struct typed *t)
{
    for (size_t i = 0; i < cli_n_chat_commands; i++) {
        const struct cli_chat_command *c = &cli_chat_commands[i];
        cli_candidates_add(t->out, t->text, t->n, c->name, c->kind == CLI_CHAT_NOTHING ? "" : " ");
    }
}

static void add_argument(enum cli_chat_argument kind, struct typed *t)
{
    switch (kind) {
    case CLI_CHAT_NOTHING:
    case CLI_CHAT_TEXT: break;
    case CLI_CHAT_FILE: add_files(t); break;
    case CLI_CHAT_MODEL:
        app_visit_models(add_model, t);
        add_files(t);
        break;
    case CLI_CHAT_KEY: add_keys(t); break;
    case CLI_CHAT_WHAT: cli_candidates_add(t->out, t->text, t->n, "template", ""); break;
    }
}

void cli_chat_complete(const char *line, size_t n, struct cli_candidates *out, void *user)
{
    const char *space = n > 0 ? memchr(line, ' ', n) : NULL;
    size_t n_word = space ? (size_t)(space - line) : n;
    (void)user;
    out->as_text = n == 0 || line[0] != '/';
    if (out->as_text)
        return;
    out->begin = 1;
    struct typed typed = { .out = out, .text = line + 1, .n = n - 1 };
    if (!space) {
        add_commands(&typed);
        return;
    }
    for (size_t i = 0; i < cli_n_chat_commands; i++) {
        const struct cli_chat_command *c = &cli_chat_commands[i];
        if (strlen(c->name) + 1 != n_word || memcmp(c->name, line + 1, n_word - 1) != 0)
            continue;
        out->begin = n_word;
        while (out->begin < n && line[out->begin] == ' ')
            out->begin++;
        typed.text = line + out->begin;
        typed.n = n - out->begin;
        add_argument(c->kind, &typed);
    }
}
