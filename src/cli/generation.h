/* What the flags say of generating, for whatever generates. */
#ifndef CLI_GENERATION_H
#define CLI_GENERATION_H

#include "akunu/akunu.h"
#include "cli/options.h"

void cli_fill_sampling(const struct cli_options *options, int64_t seed, struct akunu_sampling *sampling);

/* A seed that is short enough to be typed again. */
int64_t cli_random_seed(void);

#endif
