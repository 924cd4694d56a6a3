/* GGML's numbers of types, which GGUF and older files have in common. */
#ifndef AK_WEIGHTS_GGML_TYPE_H
#define AK_WEIGHTS_GGML_TYPE_H

#include "base/error.h"
#include "quant/type.h"

/* The type of number `number`. AKUNU_ERROR_UNSUPPORTED where akunu does not have it,
 * AKUNU_ERROR_FORMAT where GGML has not; messages begin with `tensor`, which is fit for
 * them. */
ak_status ak_ggml_type_find(uint32_t number, const char *tensor, enum ak_quant_type *out,
                            struct ak_error *error);

/* GGML's number of `type`; false where it has none. */
bool ak_ggml_type_number(enum ak_quant_type type, uint32_t *out);

#endif
