/* A clip as segments of text with times, window by window, as openai/whisper's transcribe.py does
 * it: a window that is decoded badly is decoded again at a higher temperature, one without speech
 * is skipped, the next window begins at the last time that was written, and the text so far is its
 * prompt. */
#ifndef AK_SPEECH_SEARCH_TRANSCRIBE_H
#define AK_SPEECH_SEARCH_TRANSCRIBE_H

#include "base/buffer.h"
#include "speech/search/align.h"
#include "speech/search/decode.h"
#include "speech/search/words.h"

enum { AK_SPEECH_WINDOW = 3000, AK_SPEECH_FRAMES_PER_SECOND = 100 };

/* The clip, and the model over its windows. */
struct ak_speech_clip {
    void *user;
    uint64_t n_frames;
    uint64_t origin; /* its first frame in the recording it was cut from: windows draw by that */
    /* Ascending frames at which a long silence was cut out. What is said again after one does not
     * count as a repetition. */
    const uint64_t *breaks;
    size_t n_breaks;
    /* Encodes n frames from `first` on, followed by zeros up to AK_SPEECH_WINDOW, for `model`. */
    ak_status (*encode)(void *user, uint64_t first, uint32_t n, struct ak_error *error);
    struct ak_speech_model model;
    const struct ak_speech_constraint *constraint; /* on the text of each window; NULL: none */
    /* The text of tokens, valid until the next call. */
    ak_status (*text)(void *user, const int32_t *tokens, size_t n, const char **out,
                      size_t *n_bytes, struct ak_error *error);
    /* Runs n tokens over the window that was encoded last: probabilities[i], for i < n - 1, is that
     * of tokens[i + 1] among the tokens of text. The caller frees scores->data. */
    ak_status (*score)(void *user, const int32_t *tokens, size_t n, float *probabilities,
                       struct ak_speech_scores *scores, struct ak_error *error);
};

struct ak_speech_task {
    const struct ak_speech_tokens *tokens;
    uint32_t context; /* tokens of the decoder */
    int32_t language; /* index; the English models have no token for it */
    bool translate;   /* to English */
    bool timestamps;
    bool words;          /* find their times */
    uint64_t first, end; /* frames of the clip */
    const int32_t *prompt,
        *prefix;             /* tokens before the clip's text, and at each window's beginning */
    const int32_t *hotwords; /* tokens before each window's text, if there is no prefix */
    size_t n_prompt, n_prefix, n_hotwords;
    bool keep_prompt;    /* the prompt also precedes later windows */
    bool use_previous;   /* so does the text so far, */
    size_t previous_max; /* this many tokens of it; 0: as many as fit */
    uint32_t max_tokens; /* of a window; 0: half of the context */
    const int32_t *suppressed;
    size_t n_suppressed;
    int32_t blank;
    const float *temperatures; /* tried one after another */
    size_t n_temperatures;
    uint32_t beams, best_of; /* beams at temperature 0 (0: greedy), texts above */
    float patience, length_penalty;
    /* A window is decoded again if its text compresses better than the first, or its mean
     * log-probability is below the second. It has no speech if that is more probable than the
     * third. NaN: not looked at. */
    float max_compression, min_log_prob, max_no_speech;
    /* If `words` is set: hallucinated segments are dropped if they are between silences longer
     * than this, in seconds. NaN: none is. */
    float hallucination_silence;
    uint64_t seed;
};

struct ak_speech_segment {
    uint64_t window;            /* its first frame */
    double start, end;          /* seconds of the clip */
    const int32_t *tokens;      /* with times */
    const float *probabilities; /* [n_tokens] */
    size_t n_tokens;
    const char *text;
    size_t n_bytes;
    float temperature;
    double mean_log_prob, compression, no_speech;
    const struct akunu_word *words;
    size_t n_words;
};

/* Writes the tokens that begin a text, at most 3, and returns their number: start, and where the
 * model has several languages, language and task. */
size_t ak_speech_put_start(const struct ak_speech_task *task, int32_t *out);

/* Seconds at which the last word of n > 0 segments ends; without words, the last segment. */
double ak_speech_find_end(const struct ak_speech_segment *segments, size_t n);

/* Not AKUNU_OK: the transcription ends with that status. */
typedef ak_status ak_speech_segment_fn(void *user, const struct ak_speech_segment *segment,
                                       struct ak_error *error);

ak_status ak_speech_transcribe(const struct ak_speech_clip *clip, const struct ak_speech_task *task,
                               ak_speech_segment_fn *on_segment, void *user,
                               struct ak_error *error);

#endif
