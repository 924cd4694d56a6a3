/* Audio and video files that are recognized and not decoded, so that messages name them. */
#ifndef AK_SPEECH_AUDIO_FOREIGN_H
#define AK_SPEECH_AUDIO_FOREIGN_H

#include "speech/audio/bytes.h"
#include "base/error.h"

/* What the file at `at` is, for a message: "an AMR file". NULL: not known. */
const char *ak_foreign_format(struct ak_bytes *in, int64_t at);

/* Says that `name` is `what`, and how to convert it. Returns AKUNU_ERROR_FORMAT. */
ak_status ak_foreign_fail(struct ak_error *error, const char *name, const char *what);

#endif
