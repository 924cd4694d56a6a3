/* The architecture files' one symbol each. */
#ifndef AK_MODEL_FAMILIES_H
#define AK_MODEL_FAMILIES_H

#include "model/model.h"

#define AK_FAMILY(name) extern const struct ak_family ak_family_##name;
#include "model/families.def"
#undef AK_FAMILY

#endif
