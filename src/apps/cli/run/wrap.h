/* Wraps a streamed answer at the margin of a terminal: a word that does not fit moves to the next
 * line. The current word is held back until its end, or until it is too long for its line, so
 * nothing shown is ever moved.
 *
 * Lines that begin with a space or a tab, and those between fences (``` or ~~~), keep their form.
 * Control characters are dropped, because a model could send escape sequences. */
#ifndef AK_APPS_CLI_RUN_WRAP_H
#define AK_APPS_CLI_RUN_WRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apps/common/output.h"

struct cli_wrap {
    struct app_output *out;
    unsigned columns; /* of the terminal, may change at any time; 0: lines are not wrapped */
    unsigned column;  /* of the cursor */

    char partial[4]; /* a character that is not complete yet */
    size_t n_partial;
    int32_t last; /* the last character of the line; 0: none */
    int32_t break_state;

    /* Held back: spaces and tabs, then a word. */
    char held[1024];
    size_t n_held, n_blanks;
    unsigned end; /* column behind what is held, if it were shown here */
    unsigned columns_of_word;
    bool in_word; /* the word's beginning is shown and its rest stays on this line */

    bool keeps_line;                    /* the line is shown as it is */
    char mark;                          /* ` or ~ at the beginning of the line */
    unsigned n_marks;                   /* how often */
    bool has_blank, has_text, has_tick; /* after the marks; a ` in the text */
    char fence;                         /* the open fence; NUL: none */
    unsigned n_fence;
};

/* Begins at the beginning of a line. */
void cli_wrap_begin(struct cli_wrap *wrap, struct app_output *out);

/* Writes n bytes, which may end inside a word or a character. */
void cli_wrap_push(struct cli_wrap *wrap, const char *text, size_t n);

/* Writes what is held back. */
void cli_wrap_end(struct cli_wrap *wrap);

/* Writes a whole text without its control characters, and does not wrap it. */
void cli_write_plain(struct app_output *out, const char *text, size_t n);

#endif
