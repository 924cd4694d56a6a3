/* Commands of a conversation: lines that begin with a slash. */
#include "cli/chat.h"

#include <ctype.h>
#include <string.h>

#include "cli/message.h"

struct command {
    const char *name, *argument, *help;
    int (*run)(struct cli_chat *chat, const char *argument);
};

static int help(struct cli_chat *chat, const char *argument);

static int clear(struct cli_chat *chat, const char *argument)
{
    json_t *system = json_incref(json_array_get(chat->messages, 0));
    bool keeps = cli_chat_system(chat) != NULL;
    (void)argument;
    json_array_clear(chat->messages);
    if (keeps)
        json_array_append(chat->messages, system);
    json_decref(system);
    cli_aside(keeps ? "a new conversation, with the same system prompt" : "a new conversation");
    return CLI_EXIT_OK;
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
    cli_aside(dropped ? "removed the last exchange" : "there is nothing to undo");
    return CLI_EXIT_OK;
}

static int regenerate(struct cli_chat *chat, const char *argument)
{
    (void)argument;
    drop_answer(chat);
    if (cli_chat_is_last(chat, "user"))
        return cli_chat_answer(chat);
    cli_aside("there is nothing to answer");
    return CLI_EXIT_OK;
}

static int set_system(struct cli_chat *chat, const char *argument)
{
    const json_t *system = cli_chat_system(chat);
    if (!*argument && !system)
        cli_aside("no system prompt; /system TEXT sets one");
    else if (!*argument && json_is_string(system))
        cli_report("%s", json_string_value(system));
    if (!*argument)
        return CLI_EXIT_OK;
    bool away = strcmp(argument, "-") == 0;
    int code = cli_chat_set_system(chat, away ? NULL : argument);
    if (code == CLI_EXIT_OK)
        cli_aside(away ? "no system prompt from now on" : "the system prompt is set");
    return code;
}

static int save(struct cli_chat *chat, const char *argument)
{
    if (!*argument)
        return cli_fail_usage("/save needs a file's name: /save talk.json");
    int code = cli_chat_save(chat, argument);
    if (code == CLI_EXIT_OK)
        cli_aside("saved %zu messages in %s", json_array_size(chat->messages), argument);
    return code;
}

static int load(struct cli_chat *chat, const char *argument)
{
    if (!*argument)
        return cli_fail_usage("/load needs a file's name: /load talk.json");
    int code = cli_chat_load(chat, argument);
    if (code == CLI_EXIT_OK)
        cli_aside("%zu messages from %s", json_array_size(chat->messages), argument);
    return code;
}

static double rate(double n, double seconds)
{
    return seconds > 0.0 ? n / seconds : 0.0;
}

static int stats(struct cli_chat *chat, const char *argument)
{
    const struct akunu_model_info *m = &chat->loaded.info;
    struct akunu_memory memory;
    (void)argument;
    cli_report("model     %s, %s, %.0f million parameters", *m->name ? m->name : m->architecture,
               m->weight_type, (double)m->n_parameters / 1e6);
    cli_report("context   %u of %u tokens, %zu messages",
               akunu_sequence_length(chat->loaded.session, chat->loaded.sequence),
               akunu_session_context(chat->loaded.session), json_array_size(chat->messages));
    cli_report("prompts   %llu tokens, %.1f tok/s; %llu more were in the cache",
               (unsigned long long)chat->n_prompt,
               rate((double)chat->n_prompt, chat->prompt_seconds),
               (unsigned long long)chat->n_reused);
    cli_report("answers   %llu, %llu tokens, %.1f tok/s", (unsigned long long)chat->n_answers,
               (unsigned long long)chat->n_generated,
               rate((double)(chat->n_generated - chat->n_answers), chat->generate_seconds));
    if (akunu_memory_report(chat->loaded.model, chat->loaded.session, &memory, sizeof memory) ==
        AKUNU_OK)
        cli_report("memory    weights %.0f MB, KV cache %.0f MB, scratch %.0f MB",
                   (double)memory.packed / 1e6, (double)memory.kv / 1e6,
                   (double)memory.scratch / 1e6);
    return CLI_EXIT_OK;
}

static int leave(struct cli_chat *chat, const char *argument)
{
    (void)argument;
    chat->quit = true;
    return CLI_EXIT_OK;
}

static const struct command commands[] = {
    { "help", "", "this list", help },
    { "clear", "", "begin a new conversation; the system prompt stays", clear },
    { "undo", "", "remove the last exchange", undo },
    { "regen", "", "answer the last message again", regenerate },
    { "system", "[TEXT]", "show the system prompt, or set it; - takes it away", set_system },
    { "save", "FILE", "write the conversation as JSON", save },
    { "load", "FILE", "go on with a conversation that was saved", load },
    { "stats", "", "speeds, context and memory", stats },
    { "exit", "", "leave; so does Ctrl-D", leave },
};

enum { N_COMMANDS = sizeof commands / sizeof *commands };

static int help(struct cli_chat *chat, const char *argument)
{
    (void)chat;
    (void)argument;
    for (size_t i = 0; i < N_COMMANDS; i++)
        cli_report("/%s%s%-*s %s", commands[i].name, *commands[i].argument ? " " : "",
                   14 - (int)strlen(commands[i].name) - (*commands[i].argument != '\0'),
                   commands[i].argument, commands[i].help);
    cli_report(
        "A line that ends in \\ goes on in the next one, and so does what begins with \"\"\", "
        "until another \"\"\".\n"
        "What is typed during an answer waits for the next prompt; a line that begins with a "
        "space is not kept in the history.\n"
        "Ctrl-C stops an answer. A message that begins with a slash: put a space before it.");
    return CLI_EXIT_OK;
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
        words[i] = commands[i].name;
        if (strcmp(name, words[i]) == 0) {
            *code = commands[i].run(chat, argument);
            return true;
        }
    }
    const char *nearest = cli_find_nearest(name, words, N_COMMANDS);
    if (nearest)
        *code = cli_fail_usage("there is no /%s; did you mean /%s?", name, nearest);
    else
        *code = cli_fail_usage("there is no /%s; /help lists what there is", name);
    return true;
}
