/* Clips of the command line, transcribed side by side and written in their order. */
#ifndef AK_APPS_COMMON_CLIPS_H
#define AK_APPS_COMMON_CLIPS_H

#include "apps/common/load.h"
#include "apps/common/options.h"
#include "apps/common/output.h"

/* Opens a clip by its name; "-": standard input. Ctrl-C ends the program meanwhile. NULL: the
 * library has the message. */
struct akunu_audio *app_open_clip(const char *name);

/* Transcribes all clips: prints them, or writes their files. A clip that fails does not stop the
 * others; returns the exit code of the first that failed. */
int app_transcribe_clips(const struct app_options *o, const struct app_model_session *loaded,
                         const struct akunu_transcription_params *params, struct app_output *out);

/* Whether files are written. */
bool app_writes_files(const struct app_options *o);

/* Texts that are decoded at once for a window of speech. */
uint32_t app_speech_texts(const struct akunu_transcription_params *t);
/* Windows that are transcribed at once: several, unless their keys and values take too much
 * memory. */
uint32_t app_speech_windows(const struct akunu_model_info *info,
                            const struct akunu_transcription_params *t);

#endif
