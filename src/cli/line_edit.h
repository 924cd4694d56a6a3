/* Lines that a person types, with editing and history where there is a terminal
 * and libedit, else as they come. */
#ifndef AK_CLI_LINE_EDIT_H
#define AK_CLI_LINE_EDIT_H

#include <stdbool.h>
#include <stddef.h>

struct cli_line_editor;

enum cli_line {
    CLI_LINE_TEXT,
    CLI_LINE_END,         /* of the input, or Ctrl-D on an empty line */
    CLI_LINE_INTERRUPTED, /* Ctrl-C */
    CLI_LINE_DROPPED,     /* Ctrl-C, and what was typed is gone */
    CLI_LINE_NO_MEMORY
};

/* Reads standard input. NULL without memory. */
struct cli_line_editor *cli_line_editor_new(void);
void cli_line_editor_free(struct cli_line_editor *editor);

/* Somebody types: standard input and standard error, which prompts and echo go to,
 * are terminals. Without it no prompt is shown. */
bool cli_line_is_typed(const struct cli_line_editor *editor);

/* Reads a line; *text, of *n bytes without its newline, ends in a NUL and is valid until
 * the next call. */
enum cli_line cli_line_read(struct cli_line_editor *editor, const char *prompt, const char **text,
                            size_t *n);

/* Whether more was typed already, as when several lines were pasted. */
bool cli_line_is_waiting(const struct cli_line_editor *editor);

/* Adds to what the up arrow brings back. */
void cli_line_remember(struct cli_line_editor *editor, const char *text);

#endif
