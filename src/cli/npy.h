/* Writes a float32 matrix as a NumPy .npy file, version 1.0, row by row
 * (numpy.lib.format). */
#ifndef AK_CLI_NPY_H
#define AK_CLI_NPY_H

#include <stdbool.h>
#include <stdio.h>

struct cli_npy {
    const char *path;
    FILE *file;
    size_t columns;
};

/* Creates the file and writes the header of a [rows, columns] matrix. Gives an
 * exit code, after a message unless it is CLI_EXIT_OK. */
int cli_npy_create(const char *path, size_t rows, size_t columns, struct cli_npy *out);

/* Appends one row of `columns` values. Exit code as above. */
int cli_npy_row(struct cli_npy *npy, const float *values);

/* Closes the file: `code` is how the work went so far. Where that, or closing,
 * failed, a regular file is removed: half a matrix is of no use. Accepts an
 * all-zero struct. Gives the exit code. */
int cli_npy_close(struct cli_npy *npy, int code);

#endif
