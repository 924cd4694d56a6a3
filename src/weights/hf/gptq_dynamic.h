/* GPTQModel's settings of single modules: "dynamic" is an object of regular expressions,
 * which are matched from the beginning of a module's name, and of what they say of it.
 *
 *     "+:PATTERN", "PATTERN"   {"bits", "group_size", …} in place of those of all
 *     "-:PATTERN"              it is not quantized
 *
 * The first one that matches holds. Private to gptq.c. */
#ifndef AK_WEIGHTS_HF_GPTQ_DYNAMIC_H
#define AK_WEIGHTS_HF_GPTQ_DYNAMIC_H

#include "weights/hf/quant.h"

struct ak_hf_gptq_dynamic;

/* *out is NULL where there are none. */
ak_status ak_hf_gptq_dynamic_read(const struct ak_hf_quant *q, struct ak_hf_gptq_dynamic **out,
                                  struct ak_error *error);

/* *settings is NULL where the module has none. d may be NULL. */
ak_status ak_hf_gptq_dynamic_find(const struct ak_hf_gptq_dynamic *d, const char *config_key,
                                  const char *module, const json_t **settings,
                                  struct ak_error *error);
void ak_hf_gptq_dynamic_free(struct ak_hf_gptq_dynamic *d); /* NULL allowed */

#endif
