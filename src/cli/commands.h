/* One function a command: does its work and gives the exit code. */
#ifndef AK_CLI_COMMANDS_H
#define AK_CLI_COMMANDS_H

#include "cli/options.h"

int cli_run(const struct cli_options *options);
int cli_chat(const struct cli_options *options);
int cli_tokenize(const struct cli_options *options);
int cli_detokenize(const struct cli_options *options);
int cli_inspect(const struct cli_options *options);
int cli_logits(const struct cli_options *options);
int cli_perplexity(const struct cli_options *options);
int cli_embed(const struct cli_options *options);
int cli_convert(const struct cli_options *options);
int cli_bench(const struct cli_options *options);
int cli_apply_template(const struct cli_options *options);
int cli_models(const struct cli_options *options);
int cli_cache(const struct cli_options *options);
int cli_completion(const struct cli_options *options);

int cli_grammar_check(const struct cli_options *options);

/* --list-devices, of any command that loads a model. */
int cli_list_devices(void);

#endif
