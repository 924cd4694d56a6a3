/* Several continuations of one prompt, which is run once: they share its pages, and a pass
 * takes a token of each, so the weights are read once for all of them. */
#ifndef AK_GENERATE_PARALLEL_H
#define AK_GENERATE_PARALLEL_H

#include "generate/generate.h"

/* As akunu_generate_choices, with sequences[1 …] of -1. The request's sequence, on_piece and
 * speculation count for nothing. *results are always filled in. */
ak_status ak_gen_run_parallel(const struct ak_gen_request *request, size_t n,
                              akunu_choice_fn *on_piece, int32_t *sequences,
                              struct akunu_result *results, struct ak_error *error);

#endif
