/* The two forms in which inspect prints a model file. */
#ifndef AK_CLI_INSPECT_H
#define AK_CLI_INSPECT_H

#include "akunu/akunu.h"
#include "cli/output.h"

/* Tensors of one type, in the order in which types first appear. */
struct cli_type_total {
    const char *type;
    uint64_t n_tensors, n_values, bytes;
};
enum { CLI_MAX_TYPES = 64 };

/* Fills totals with at most CLI_MAX_TYPES types and gives their number. */
size_t cli_type_totals(const struct akunu_file *file, size_t n_tensors,
                       struct cli_type_total *totals);

/* Both give an exit code, after a message unless it is CLI_EXIT_OK or
 * CLI_EXIT_INTERRUPTED. `hashes`: with each tensor's SHA-256. */
int cli_inspect_text(const struct akunu_file *file, const char *path, bool hashes,
                     struct cli_output *out);
int cli_inspect_json(const struct akunu_file *file, bool hashes, struct cli_output *out);

/* The hash of tensor i: "" where `hashes` is false. `out` holds 65 bytes. */
int cli_tensor_hash(const struct akunu_file *file, size_t i, bool hashes, char *out);

#endif
