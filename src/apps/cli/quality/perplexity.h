/* How well a model predicts a text, and how far that is from what a base predicts. */
#ifndef AK_APPS_CLI_QUALITY_PERPLEXITY_H
#define AK_APPS_CLI_QUALITY_PERPLEXITY_H

#include <stddef.h>
#include <stdint.h>

#include "apps/cli/quality/divergence.h"
#include "apps/common/input.h"
#include "apps/common/options.h"

struct cli_text_score {
    size_t context, n_chunks, n_tokens; /* tokens that are scored */
    struct cli_estimate perplexity;
    struct cli_divergence divergence; /* with --kl-base; else zero */
    uint64_t file_bytes;              /* of the model */
    double rate;                      /* tokens a second, one after the other; report alone */
};

/* Loads the model of -m and scores the text, or that of --kl-base, as -c, --chunks and
 * --save-logits say. Returns an exit code, after a message unless it is APP_EXIT_OK or
 * APP_EXIT_INTERRUPTED. */
int cli_score_text(const struct app_options *options, const struct app_text *text,
                   struct cli_text_score *out);

#endif
