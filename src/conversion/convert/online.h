/* Quantizing at load: a provider whose tensors are those of the GGUF file that ak_convert would
 * write, made row by row while they are packed. */
#ifndef AK_CONVERSION_CONVERT_ONLINE_H
#define AK_CONVERSION_CONVERT_ONLINE_H

#include "files/weights/provider.h"

/* Opens the model at `path` as one of `type`, a type or a mix as in struct ak_convert_quantize.
 * importance: a file; NULL: none. n_threads: that will read rows at once; more of them wait. After
 * its weights are packed, ak_provider_check_weights fails if elements were no finite numbers.
 * Strings need not outlive the call. Errors: those of ak_convert. The caller owns *out. */
ak_status ak_convert_open_online(const char *path, const char *type, const char *importance,
                                 const char *const *ignore_keys, unsigned n_threads,
                                 const struct ak_log *log, struct ak_provider **out,
                                 struct ak_error *error);

#endif
