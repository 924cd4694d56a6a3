/* Standard output, where only results go. Keeps the first error, so that a full
 * disk is told and a closed pipe ends quietly. */
#ifndef AK_CLI_OUTPUT_H
#define AK_CLI_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct cli_output {
    FILE *file;
    int error; /* errno of the first failure, 0: none */
};

struct cli_output cli_output_stdout(void);

/* Each returns false once anything has failed, and then does nothing. */
bool cli_output_bytes(struct cli_output *out, const void *bytes, size_t n);
bool cli_output_text(struct cli_output *out, const char *text);
bool cli_output_format(struct cli_output *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
bool cli_output_flush(struct cli_output *out);

/* Writes n bytes for people: control characters and invalid UTF-8 as escapes. */
bool cli_output_escaped(struct cli_output *out, const char *bytes, size_t n);

/* Flushes and gives the program's exit code: `code`, but CLI_EXIT_FAILURE with a
 * message where output could not be written. A closed pipe is no failure. */
int cli_output_end(struct cli_output *out, int code);

#endif
