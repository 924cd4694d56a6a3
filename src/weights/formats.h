/* One instance a format; provider.c tries them in this order. */
#ifndef AK_WEIGHTS_FORMATS_H
#define AK_WEIGHTS_FORMATS_H

#include "weights/provider.h"

extern const struct ak_provider_format ak_format_gguf, ak_format_hf, ak_format_whisper_ggml,
    ak_format_npy_dir, ak_format_npy_file;

#endif
