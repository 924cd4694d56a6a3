/* Speech from standard input, written down while it is spoken. */
#ifndef AK_APPS_CLI_SPEECH_STREAM_H
#define AK_APPS_CLI_SPEECH_STREAM_H

#include "apps/common/options.h"
#include "apps/common/transcript.h"

/* Reads 16-bit samples to the end of standard input. */
int cli_stream(const struct app_options *o, struct akunu_session *session,
               const struct akunu_transcription_params *params, struct app_output *out);

#endif
