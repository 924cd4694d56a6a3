/* Commands of a conversation: lines that begin with a slash. */
#include "apps/cli/chat/chat.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/message.h"

static int help(struct cli_chat *chat, const char *argument);

static int clear(struct cli_chat *chat, const char *argument)
{
    json_t *system = json_incref(json_array_get(chat->messages, 0));
    bool keeps = cli_chat_system(chat) != NULL;
    (void)argument;
    json_array_clear(chat->messages);
    free(chat->attached.bytes);
    chat->attached = (struct app_text){ 0 };
    if (keeps)
        json_array_append(chat->messages, system);
    json_decref(system);
    app_aside(keeps ? "a new conversation, with the same system prompt" : "a new conversation");
    return APP_EXIT_OK;
}

static bool drop_answer(struct cli_chat *chat)
{
    if (!cli_chat_is_last(chat, "assistant"))
        return false;
    cli_chat_drop_last(chat);
    return true;
}

static int undo(struct cli_chat *chat, const char *argument)
{
    (void)argument;
    bool dropped = drop_answer(chat);
    if (cli_chat_is_last(chat, "user")) {
        cli_chat_drop_last(chat);
        dropped = true;
    }
    app_aside(dropped ? "removed the last exchange" : "there is nothing to undo");
    return APP_EXIT_OK;
}

static int regenerate(struct cli_chat *chat, const char *argument)
{
    (void)argument;
    drop_answer(chat);
    if (cli_chat_is_last(chat, "user"))
        return cli_chat_answer(chat);
    app_aside("there is nothing to answer");
    return APP_EXIT_OK;
}

static int set_system(struct cli_chat *chat, const char *argument)
{
    const json_t *system = cli_chat_system(chat);
    if (!*argument && !system)
        app_aside("no system prompt; /system TEXT sets one");
    else if (!*argument && json_is_string(system))
        app_report("%s", json_string_value(system));
    if (!*argument)
        return APP_EXIT_OK;
    bool away = strcmp(argument, "-") == 0;
    int code = cli_chat_set_system(chat, away ? NULL : argument);
    if (code == APP_EXIT_OK)
        app_aside(away ? "no system prompt from now on" : "the system prompt is set");
    return code;
}

static int needs_file(const char *name)
{
    return app_fail_usage("/%s needs a file's name: /%s %s", name, name,
                          strcmp(name, "read") == 0 ? "notes.txt" : "talk.json");
}

static int save(struct cli_chat *chat, const char *argument)
{
    return *argument ? cli_chat_save(chat, argument) : needs_file("save");
}

static int load_chat(struct cli_chat *chat, const char *argument)
{
    return *argument ? cli_chat_load(chat, argument) : needs_file("load");
}

static int attach_file(struct cli_chat *chat, const char *argument)
{
    return *argument ? cli_chat_read(chat, argument) : needs_file("read");
}

static int leave_chat(struct cli_chat *chat, const char *argument)
{
    (void)argument;
    chat->quit = true;
    return APP_EXIT_OK;
}

const struct cli_chat_command cli_chat_commands[] = {
    { "help", "", "this list", CLI_CHAT_NOTHING, help },
    { "clear", "", "begin a new conversation; the system prompt stays", CLI_CHAT_NOTHING, clear },
    { "undo", "", "remove the last exchange", CLI_CHAT_NOTHING, undo },
    { "regen", "", "answer the last message again", CLI_CHAT_NOTHING, regenerate },
    { "system", "[TEXT]", "show the system prompt, or set it; - takes it away", CLI_CHAT_TEXT,
      set_system },
    { "read", "FILE", "put the text of a file before the next message", CLI_CHAT_FILE,
      attach_file },
    { "save", "FILE", "write the conversation as JSON", CLI_CHAT_FILE, save },
    { "load", "FILE", "go on with a conversation that was saved", CLI_CHAT_FILE, load_chat },
    { "model", "[NAME]", "go on with another model, or list the installed ones", CLI_CHAT_MODEL,
      cli_chat_change_model },
    { "set", "[KEY VALUE]", "list how tokens are sampled, or change it: /set temp 0.2",
      CLI_CHAT_KEY, cli_chat_set },
    { "show", "[template]", "model, template, context and sampling, or the template's text",
      CLI_CHAT_WHAT, cli_chat_show },
    { "stats", "", "speeds, context and memory", CLI_CHAT_NOTHING, cli_chat_stats },
    { "exit", "", "leave; so does Ctrl-D", CLI_CHAT_NOTHING, leave_chat },
};

enum { N_COMMANDS = sizeof cli_chat_commands / sizeof *cli_chat_commands };
const size_t cli_n_chat_commands = N_COMMANDS;

static int help(struct cli_chat *chat, const char *argument)
{
    (void)chat;
    (void)argument;
    for (size_t i = 0; i < N_COMMANDS; i++) {
        const struct cli_chat_command *c = &cli_chat_commands[i];
        app_report("/%s%s%-*s %s", c->name, *c->argument ? " " : "",
                   17 - (int)strlen(c->name) - (*c->argument != '\0'), c->argument, c->help);
    }
    app_report(
        "A line that ends in \\ goes on in the next one, and so does what begins with \"\"\", "
        "until another \"\"\".\n"
        "Tab completes commands. What is typed during an answer waits for the next prompt.\n"
        "A line that begins with a space is not kept in the history.\n"
        "Ctrl-C stops an answer. A message that begins with a slash: put a space before it.");
    return APP_EXIT_OK;
}

/* Length of a command word: "/save" is one, "/usr/bin" is a message. */
static size_t word_length(const char *line)
{
    size_t n = 1;
    if (line[0] != '/')
        return 0;
    while (isalpha((unsigned char)line[n]) || line[n] == '?')
        n++;
    return n > 1 && (line[n] == '\0' || isspace((unsigned char)line[n])) ? n - 1 : 0;
}

bool cli_chat_run_command(struct cli_chat *chat, const char *line, int *code)
{
    static const struct {
        const char *name, *meant;
    } habits[] = { { "bye", "exit" }, { "quit", "exit" }, { "?", "help" } };
    const char *words[N_COMMANDS];
    char name[32];
    size_t n = word_length(line);
    if (n == 0)
        return false;
    n = n < sizeof name ? n : sizeof name - 1;
    memcpy(name, line + 1, n);
    name[n] = '\0';
    for (size_t i = 0; i < sizeof habits / sizeof *habits; i++)
        if (strcmp(name, habits[i].name) == 0)
            strcpy(name, habits[i].meant);

    const char *argument = line + 1 + n;
    argument += strspn(argument, " \t");
    for (size_t i = 0; i < N_COMMANDS; i++) {
        words[i] = cli_chat_commands[i].name;
        if (strcmp(name, words[i]) == 0) {
            *code = cli_chat_commands[i].run(chat, argument);
            return true;
        }
    }
    const char *nearest = app_find_nearest(name, words, N_COMMANDS);
    if (nearest)
        *code = app_fail_usage("there is no /%s; did you mean /%s?", name, nearest);
    else
        *code = app_fail_usage("there is no /%s; /help lists what there is", name);
    return true;
}
