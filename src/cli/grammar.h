/* The grammar that the flags ask for. */
#ifndef AK_CLI_GRAMMAR_H
#define AK_CLI_GRAMMAR_H

#include "akunu/akunu.h"
#include "cli/options.h"

/* From --grammar, --grammar-file or -j, of which there may be one; *out is NULL where there
 * is none, else to be freed. Gives an exit code, after a message unless it is CLI_EXIT_OK. */
int cli_read_grammar(const struct cli_options *options, enum akunu_schema_form form,
                     struct akunu_grammar **out);

#endif
