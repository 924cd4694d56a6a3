/* The architecture files' one symbol each. */
#ifndef AK_MODEL_FAMILIES_H
#define AK_MODEL_FAMILIES_H

#include "model/model.h"

extern const struct ak_family ak_family_llama, ak_family_qwen2, ak_family_qwen3;

#endif
