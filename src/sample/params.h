/* Whether parameters of sampling make sense. */
#ifndef AK_SAMPLE_PARAMS_H
#define AK_SAMPLE_PARAMS_H

#include "base/error.h"

/* All that can be checked without a model. AKUNU_ERROR_ARGUMENT with a message that names
 * the field, what it is and what it may be. */
ak_status ak_sample_check_params(const struct akunu_sampling *sampling, struct ak_error *error);

#endif
