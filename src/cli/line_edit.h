/* Line editor: reads lines that a person types, with editing, completion and history if there is a
 * terminal and libedit. What is typed between two calls of cli_line_read is not shown and waits for
 * the next one. Used by chat*.c. */
#ifndef AK_CLI_LINE_EDIT_H
#define AK_CLI_LINE_EDIT_H

#include <stdbool.h>
#include <stddef.h>

struct cli_line_editor;

enum cli_line {
    CLI_LINE_TEXT,
    CLI_LINE_END,         /* end of input, or Ctrl-D on an empty line */
    CLI_LINE_INTERRUPTED, /* Ctrl-C */
    CLI_LINE_DROPPED,     /* Ctrl-C, and the typed text is dropped */
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
/* What Tab offers for the line up to the cursor. */
struct cli_offers {
    bool as_text; /* Tab is a character of the text here */
    size_t begin; /* where in the line the words would stand */
    size_t n;
    char **words; /* each begins with what the line has from `begin` on */
};

/* Fills *out, which is empty, for a line of n bytes. */
typedef void cli_complete_fn(const char *line, size_t n, struct cli_offers *out, void *user);
void cli_line_set_completer(struct cli_line_editor *editor, cli_complete_fn *fn, void *user);

/* Adds WORD + suffix if it begins with the n_typed bytes at `typed`. Nothing is offered if out of
 * memory. */
void cli_offer(struct cli_offers *out, const char *typed, size_t n_typed, const char *word,
               const char *suffix);

#endif
