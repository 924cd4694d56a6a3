/* JSON values of what a model file may hold, and their printing. */
#ifndef AK_CLI_JSON_H
#define AK_CLI_JSON_H

#include <jansson.h>
#include <stdint.h>

#include "cli/output.h"

/* n bytes as a string; malformed UTF-8 becomes U+FFFD. */
json_t *cli_json_text(const char *bytes, size_t n);

/* A number, or null where JSON has none: infinities and NaN. */
json_t *cli_json_real(double value);

/* A whole number; beyond int64 the nearest real. */
json_t *cli_json_unsigned(uint64_t value);

/* Prints `value` on one line and releases it. NULL, which stands for a failed
 * allocation while it was built, counts as a failure to write with ENOMEM. */
bool cli_json_print(struct cli_output *out, json_t *value);

#endif
