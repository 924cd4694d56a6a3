/* Line editor of interactive chats: reads lines of standard input. At a terminal and with libedit,
 * they can be edited and completed, and earlier ones recalled. Text typed while no call of
 * cli_line_read runs is not shown; the next call reads it. */
#ifndef AK_APPS_CLI_CHAT_LINE_EDIT_H
#define AK_APPS_CLI_CHAT_LINE_EDIT_H

#include <stdbool.h>
#include <stddef.h>

struct cli_line_editor;

enum cli_line {
    CLI_LINE_TEXT,
    CLI_LINE_END,         /* end of input, or Ctrl-D on an empty line */
    CLI_LINE_INTERRUPTED, /* Ctrl-C; without libedit also if text was typed */
    CLI_LINE_DROPPED,     /* Ctrl-C while the line has text, which is dropped; libedit only */
    CLI_LINE_NO_MEMORY
};

/* Reads standard input. NULL if out of memory. */
struct cli_line_editor *cli_line_editor_new(void);
void cli_line_editor_free(struct cli_line_editor *editor);

/* Whether a person types: standard input and standard error, where prompts and echo go, are
 * terminals. Otherwise no prompt is shown. */
bool cli_line_is_typed(const struct cli_line_editor *editor);

/* Reads a line. *text has *n bytes without the newline, ends in a NUL and is valid until the next
 * call. */
enum cli_line cli_line_read(struct cli_line_editor *editor, const char *prompt, const char **text,
                            size_t *n);

/* Whether more input is waiting, as after pasting several lines. */
bool cli_line_is_waiting(const struct cli_line_editor *editor);

/* Whether earlier lines can be recalled. */
bool cli_line_has_history(const struct cli_line_editor *editor);

/* Adds a line to what can be recalled. */
void cli_line_remember(struct cli_line_editor *editor, const char *text);

/* Shows a text as if it had been typed at the prompt, at most max_lines of it. */
void cli_line_show(const char *prompt, const char *more, const char *text, size_t n,
                   size_t max_lines);

/* ---- Completion --------------------------------------------------------- */
/* Words that Tab completes the line to, as it is up to the cursor. */
struct cli_candidates {
    bool as_text; /* Tab inserts a tab here, and completes nothing */
    size_t begin; /* where in the line the words begin */
    size_t n;
    char **words; /* each begins with what the line has from `begin` on */
};

/* Fills *out, which is empty, for a line of n bytes. */
typedef void cli_complete_fn(const char *line, size_t n, struct cli_candidates *out, void *user);
void cli_line_set_completer(struct cli_line_editor *editor, cli_complete_fn *fn, void *user);

/* Adds word + suffix if the word begins with the n_typed bytes at `typed`, and memory suffices. */
void cli_candidates_add(struct cli_candidates *out, const char *typed, size_t n_typed,
                        const char *word, const char *suffix);

#endif
