/* The terminal itself: its width. Used by answer.c. */
#ifndef AK_CLI_TERMINAL_H
#define AK_CLI_TERMINAL_H

#include <stdio.h>

/* Columns of the terminal that `stream` writes to; 0: it is none, or its width is unknown. */
unsigned cli_terminal_columns(FILE *stream);

#endif
