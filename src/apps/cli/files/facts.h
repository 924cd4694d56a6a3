/* Facts of a model's file, read without loading the model: main type of its weights, parameters,
 * context, width; also as JSON. */
#ifndef AK_APPS_CLI_FILES_FACTS_H
#define AK_APPS_CLI_FILES_FACTS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "akunu/akunu.h"

/* Strings live as long as the file; "" where the file does not say. */
struct cli_facts {
    struct akunu_file_info info;
    const char *type;      /* of most bytes: "Q4_K" */
    uint64_t n_parameters; /* of GGUF files; 0: unknown */
    uint64_t context;      /* in tokens; 0: unknown */
    uint64_t width;        /* of the hidden states; 0: unknown */
};

/* Returns an exit code, after a message unless it is APP_EXIT_OK. */
int cli_read_facts(const struct akunu_file *file, struct cli_facts *out);

/* A number, or null for 0. */
json_t *cli_json_known(uint64_t value);

/* {"path", "format", "architecture", "type", "bytes", "n_parameters", "context"}, with null for
 * what is unknown; NULL if out of memory. */
json_t *cli_facts_json(const struct cli_facts *facts, const char *path);

/* The text of a metadata entry and its bytes; NULL: there is none. */
const char *cli_find_meta(const struct akunu_file *file, const char *key, size_t *n);

#endif
