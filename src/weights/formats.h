/* One instance a format; provider.c tries them in this order. */
#ifndef AK_WEIGHTS_FORMATS_H
#define AK_WEIGHTS_FORMATS_H

#include "weights/provider.h"

extern const struct ak_provider_format ak_gguf_format, ak_hf_format, ak_whisper_format,
    ak_hf_npy_format, ak_npy_format;

#endif
