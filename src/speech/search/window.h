/* The text of one window: decoded again, warmer, where it repeats itself or is improbable. */
#ifndef AK_SPEECH_SEARCH_WINDOW_H
#define AK_SPEECH_SEARCH_WINDOW_H

#include "speech/search/transcribe.h"

/* The tokens before a window's text; `start`: index of the start token. */
struct ak_speech_prompt {
    int32_t *tokens;
    size_t n, start;
};

/* The text, with what is said of it. */
struct ak_speech_result {
    struct ak_speech_text text;
    float temperature;
    float last_temperature; /* that was tried */
    double compression;     /* how much smaller zlib makes the text */
    double repetition;      /* the same of what is said between breaks of the clip, at most */
};

/* Decodes the window that was encoded last, whose first frame is `window`, at one temperature of
 * the task after another until a text is good. If none is, the most probable one that does not
 * repeat itself is the result. The caller frees out->text. */
ak_status ak_speech_decode_window(const struct ak_speech_clip *clip,
                                  const struct ak_speech_task *task, uint64_t window,
                                  const struct ak_speech_prompt *prompt,
                                  struct ak_speech_result *out, struct ak_error *error);

#endif
