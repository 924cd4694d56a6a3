/* The terminal itself: its width, and whether what is typed is shown. While an answer is written it
 * is not: it waits for the next prompt. */
#ifndef AK_APPS_CLI_RUN_TERMINAL_H
#define AK_APPS_CLI_RUN_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

/* Columns of the terminal that `stream` writes to; 0: it is none, or its width is unknown. */
unsigned cli_terminal_columns(FILE *stream);

/* From now on, what is typed is not shown. by_line: the terminal goes on editing lines; else each
 * key can be read at once. Signals that stop or end the program show typing again first. Standard
 * input must be a terminal. */
void cli_terminal_hide_typing(bool by_line);

/* Gives the terminal back as it was found. */
void cli_terminal_show_typing(void);

#endif
