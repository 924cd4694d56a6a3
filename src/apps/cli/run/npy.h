/* Writer of NumPy .npy files, version 1.0 (numpy.lib.format): one float32 matrix, row by row.
 * logits.c and embed.c write their results with it. */
#ifndef AK_APPS_CLI_RUN_NPY_H
#define AK_APPS_CLI_RUN_NPY_H

#include <stdbool.h>
#include <stdio.h>

struct cli_npy {
    const char *path;
    FILE *file;
    size_t columns;
};

/* Creates the file and writes the header of a [rows, columns] matrix. Returns an exit code, after a
 * message unless it is APP_EXIT_OK. */
int cli_npy_create(const char *path, size_t rows, size_t columns, struct cli_npy *out);

/* Appends one row of `columns` values. Returns an exit code as above. */
int cli_npy_row(struct cli_npy *npy, const float *values);

/* Closes the file and returns the exit code; `code` is that of the work so far. If it or closing
 * failed, a regular file is removed, because half a matrix is useless. An all-zero struct is
 * allowed. */
int cli_npy_close(struct cli_npy *npy, int code);

#endif
