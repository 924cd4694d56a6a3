/* Output of the inspect command as text or as JSON. Also the totals per type and the tensor hashes
 * that both print. */
#ifndef AK_APPS_CLI_FILES_INSPECT_H
#define AK_APPS_CLI_FILES_INSPECT_H

#include "akunu/akunu.h"
#include "apps/common/output.h"

/* Totals per type, in order of first appearance. */
struct cli_type_total {
    const char *type;
    uint64_t n_tensors, n_values, bytes;
};
enum { CLI_MAX_TYPES = 64 };

/* Fills `totals` with at most CLI_MAX_TYPES types; returns their number. */
size_t cli_type_totals(const struct akunu_file *file, size_t n_tensors,
                       struct cli_type_total *totals);

/* Both return an exit code, after a message unless it is APP_EXIT_OK or APP_EXIT_INTERRUPTED.
 * `hashes`: print each tensor's SHA-256. */
int cli_inspect_text(const struct akunu_file *file, const char *path, bool hashes,
                     struct app_output *out);
int cli_inspect_json(const struct akunu_file *file, bool hashes, struct app_output *out);

/* Hash of tensor i; "" if `hashes` is false. `out` holds 65 bytes. */
int cli_tensor_hash(const struct akunu_file *file, size_t i, bool hashes, char *out);

#endif
