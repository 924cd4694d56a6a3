/* akunu/speech.h: speech models. Part of akunu.h, which programs include. */
#ifndef AKUNU_SPEECH_H
#define AKUNU_SPEECH_H

#include "akunu/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Audio -------------------------------------------------------------- */
/* An audio file of any rate, any number of channels and any format that libsndfile decodes (WAV,
 * FLAC, Ogg, Opus, MP3), or WebM and Matroska with such a stream; channels are mixed down as ffmpeg
 * does: stereo by its mean. Samples are cut off at -1 and 1. Files that were joined are read one
 * after another. It is read as often as it is needed, a piece at a time. A named pipe is read to
 * its end first, and its writer waited for.
 * AKUNU_ERROR_FORMAT: not there, not audio, damaged, or without a sample; AKUNU_ERROR_UNSUPPORTED:
 * the library was built without libsndfile. */
struct akunu_audio;
AKUNU_API struct akunu_audio *akunu_audio_open(const char *path);
/* The same from a descriptor, which stays the caller's; a pipe is read to its end. `name` is for
 * messages. */
AKUNU_API struct akunu_audio *akunu_audio_open_fd(int fd, const char *name);
/* The same from the n bytes of a file, which are copied to a temporary file without a name, in
 * TMPDIR or /tmp. AKUNU_ERROR_IO: they cannot be kept there. */
AKUNU_API struct akunu_audio *akunu_audio_open_bytes(const void *bytes, size_t n, const char *name);
/* Mono samples between -1 and 1, `rate` a second. They stay the caller's until akunu_audio_free. */
AKUNU_API struct akunu_audio *akunu_audio_from_samples(const float *samples, size_t n,
                                                       unsigned rate);
AKUNU_API void akunu_audio_free(struct akunu_audio *audio);
/* Seconds: as the header says until the audio was read to its end, for example by
 * akunu_session_transcribe, then those that were found. 0: unknown. */
AKUNU_API double akunu_audio_seconds(const struct akunu_audio *audio);
/* What of the file is not read, for users: "the last 9000 bytes, from byte 32044 on, are not audio
 * that can be decoded, and are not read". NULL: nothing to say. Valid until akunu_audio_free. */
AKUNU_API const char *akunu_audio_warning(const struct akunu_audio *audio);

/* ---- Voice activity ----------------------------------------------------- */
/* Weights of Silero VAD (versions 5 and 6) in whisper.cpp's GGML form. Immutable: many threads may
 * use one. AKUNU_ERROR_FORMAT, AKUNU_ERROR_UNSUPPORTED: not such a file. */
struct akunu_vad;
AKUNU_API struct akunu_vad *akunu_vad_load(const char *path);
AKUNU_API void akunu_vad_free(struct akunu_vad *vad);

/* What is speech, as in whisper.cpp. */
struct akunu_vad_params {
    size_t size;
    float threshold;         /* probability from which on there is speech; 0 to 1 (0.5) */
    uint32_t min_speech_ms;  /* shorter speech is dropped (250) */
    uint32_t min_silence_ms; /* speech ends with a pause of this length (100) */
    float max_speech_s;      /* longer speech is divided, best in a pause; 0: never (0) */
    uint32_t speech_pad_ms;  /* of the clip around each range (30) */
    float overlap_s;         /* transcribing: so much follows each range but the last (0.1) */
};
AKUNU_API void akunu_vad_params_default(struct akunu_vad_params *params, size_t size);

/* The probability of speech in the next 512 samples of 16,000 a second: 32 ms. And a range that
 * has speech, in seconds; ranges are ascending and apart. Return false to stop with
 * AKUNU_ERROR_CANCELLED. */
typedef bool akunu_vad_probability_fn(float probability, void *user);
typedef bool akunu_vad_range_fn(double start, double end, void *user);

/* Reads the clip once, and reports ranges when it has ended. params NULL: the defaults;
 * on_probability NULL: none. AKUNU_ERROR_ARGUMENT: a parameter out of range. */
AKUNU_API enum akunu_status akunu_vad_detect(const struct akunu_vad *vad, struct akunu_audio *audio,
                                             const struct akunu_vad_params *params,
                                             akunu_vad_probability_fn *on_probability,
                                             akunu_vad_range_fn *on_range, void *user);

/* ---- Transcribing ------------------------------------------------------- */
struct akunu_grammar; /* text.h */

/* As openai/whisper's transcribe(), whose parameters these are; the defaults are its command's. */
struct akunu_transcription {
    size_t size;
    /* a name that akunu_language_find knows ("de", "German"); "auto": detected in the first 30 s.
     * NULL: English */
    const char *language;
    bool translate;       /* to English */
    bool no_timestamps;   /* decode without times: a segment is a window */
    uint32_t beams;       /* at temperature 0: beams of the search; 0 or 1: greedy (5) */
    uint32_t best_of;     /* above temperature 0: texts of which the most likely is taken (5) */
    float patience;       /* a beam search ends after beams * patience complete texts (1) */
    float length_penalty; /* alpha of ((5 + n) / 6)^alpha; below 0: the length (-1) */
    /* A window is decoded again, temperature_step warmer up to 1, if zlib makes its text smaller by
     * more than max_compression, or the mean log-probability of its tokens is below min_log_prob.
     * If that holds for all texts, the most probable one that zlib does not make so small is taken.
     * The window is skipped as silence if that is more probable than max_no_speech, and
     * min_log_prob is not reached. NaN: not looked at. (0, 0.2, 2.4, -1, 0.6) */
    float temperature, temperature_step;
    float max_compression, min_log_prob, max_no_speech;
    /* tokens of the text so far that precede a window; -1: as many as half the context holds (-1)
     */
    int32_t max_previous;
    const char *prompt;              /* a text before the clip's; NULL: none */
    const char *prefix;              /* the beginning of each window's text; NULL: none */
    bool keep_prompt;                /* `prompt` precedes all windows, not the first alone */
    bool keep_symbols;               /* write brackets, notes and the like too */
    uint32_t offset_ms, duration_ms; /* part of the clip; duration 0: to its end */
    uint32_t max_tokens;             /* of a window; 0: half of the context */
    uint64_t seed;                   /* of sampling above temperature 0 */
    bool word_times;                 /* find when each word is said */
    /* Transcribes only what has speech, in chunks of at most 30 s with 0.1 s of silence for what is
     * between, and no earlier text before a chunk; all times are those of the whole clip. NULL:
     * everything; vad_params NULL: the defaults. */
    const struct akunu_vad *vad;
    const struct akunu_vad_params *vad_params;
    /* The text of each window matches the grammar, times aside, or is the beginning of such a text
     * if it is cut off at max_tokens; a space may precede it. NULL: any text */
    const struct akunu_grammar *grammar;
    /* subtracted from the logits of tokens that the grammar does not allow; infinity: they are
     * never written (infinity) */
    float grammar_penalty;
    /* openai/whisper's hallucination_silence_threshold, in seconds: a segment of improbable, very
     * short or very long words is dropped if the silence before and after it is longer, and silence
     * before such a segment is skipped. Finds the times of words. NaN: not looked at (NaN) */
    float hallucination_silence;
    /* names and words that occur, a hint before the text so far in each window; ignored if there is
     * a prefix. NULL: none */
    const char *hotwords;
    /* positions of the encoder, 20 ms each: of each window of 30 s the first so many alone are
     * encoded and attended to; 0: all (0) */
    uint32_t audio_context;
};
AKUNU_API void akunu_transcription_default(struct akunu_transcription *params, size_t size);

/* A word with the punctuation beside it. */
struct akunu_word {
    double start, end;  /* seconds */
    double probability; /* mean of its tokens' */
    const char *text;   /* not terminated; begins with a space where one precedes it */
    size_t n_bytes;
};

/* A segment; valid during the callback. One without a text (n_bytes 0) has no tokens either. Texts
 * of segments and words are UTF-8: U+FFFD stands for bytes of tokens that are no character. */
struct akunu_segment {
    uint32_t id;       /* 0, 1, ... */
    uint64_t window;   /* first frame of its window, in 10 ms */
    double start, end; /* seconds */
    const char *text;  /* not terminated; begins with a space where a word begins */
    size_t n_bytes;
    const akunu_token *tokens; /* with those of times */
    size_t n_tokens;
    /* of its window: temperature, mean log-probability of a token, zlib's compression of the text,
     * probability that there is no speech */
    float temperature;
    double mean_log_prob, compression, no_speech;
    /* if word_times or hallucination_silence is set; then `start` and `end` follow them */
    const struct akunu_word *words;
    size_t n_words;
    /* [n_tokens]: of each token, among those that may stand there, before the temperature */
    const float *token_probabilities;
};

/* Return false to stop with AKUNU_ERROR_CANCELLED. The fraction that on_progress gets is that of
 * the clip, up to the window at hand; it is reported while the clip is read for the first time,
 * before each window, and before each token of its text, so that a call stops soon. */
typedef bool akunu_segment_fn(const struct akunu_segment *segment, void *user);

/* Transcribes a clip, window by window; each segment is reported once it is final. The session
 * needs max_sequences of at least the larger of beams and best_of, and must have no sequences of
 * its own left open. With `vad`, the chunks of the clip's speech are transcribed side by side, as
 * clips are by akunu_session_transcribe_clips. params NULL: the defaults; on_progress NULL: none.
 * *language, which may be NULL: the code of the language. AKUNU_ERROR_ARGUMENT: a language that the
 * model does not know, or a parameter out of range. */
AKUNU_API enum akunu_status
akunu_session_transcribe(struct akunu_session *session, struct akunu_audio *audio,
                         const struct akunu_transcription *params, akunu_segment_fn *on_segment,
                         akunu_fraction_fn *on_progress, void *user, const char **language);

/* One of several clips: the arguments of akunu_session_transcribe, and what is called at its end,
 * once, also if it was cancelled or failed: `message` says why, and `language` is NULL then. NULL:
 * nothing is. */
typedef void akunu_clip_end_fn(enum akunu_status status, const char *message, const char *language,
                               void *user);
struct akunu_clip {
    struct akunu_audio *audio;
    const struct akunu_transcription *params;
    akunu_segment_fn *on_segment;
    akunu_fraction_fn *on_progress;
    akunu_clip_end_fn *on_end;
    void *user;
};

/* Fills the next clip, whose members are zeros; false: there is none for now. */
typedef bool akunu_next_clip_fn(struct akunu_clip *clip, void *user);

/* Transcribes clips side by side, as many as the session has windows (max_windows), each with its
 * share of max_sequences. They share passes of the decoder, which is faster and, on the CPU,
 * changes no text. `next` is called while there is room for one more clip, before each pass, so it
 * must be quick; the call returns when all have ended and there is none. The audio and params->vad
 * are used until on_end, the other members of a clip and what they point to until `next` returns.
 * Segments of a clip come in order, those of different clips mixed; all callbacks run in the
 * calling thread. One that returns false ends its own clip. A clip that fails tells so by on_end
 * alone. */
AKUNU_API enum akunu_status akunu_session_transcribe_clips(struct akunu_session *session,
                                                           akunu_next_clip_fn *next, void *user);

/* Transcribes speech while it is spoken: the last seconds again whenever half a second is new.
 * Words that two transcriptions in a row begin with are final: they are reported once. The others,
 * which replace those of the call before, may still change. Return false to stop. */
struct akunu_speech_stream;
typedef bool akunu_words_fn(const struct akunu_word *words, size_t n_words, bool is_final,
                            void *user);
/* `rate`: samples a second. The session, which must not be used otherwise meanwhile, and what
 * params points to stay the caller's until akunu_speech_stream_free. */
AKUNU_API struct akunu_speech_stream *
akunu_speech_stream_new(struct akunu_session *session, unsigned rate,
                        const struct akunu_transcription *params, akunu_words_fn *on_words,
                        void *user);
/* n mono samples between -1 and 1. */
AKUNU_API enum akunu_status akunu_speech_stream_push(struct akunu_speech_stream *stream,
                                                     const float *samples, size_t n);
/* All words are final then. */
AKUNU_API enum akunu_status akunu_speech_stream_finish(struct akunu_speech_stream *stream);
AKUNU_API void akunu_speech_stream_free(struct akunu_speech_stream *stream);

/* Probability of each language in the clip's first 30 s, or with params->vad in its first chunk of
 * speech; all are 0 if it has none. params NULL: the defaults; of them audio_context counts
 * too, and with vad the part of the clip. n is at least the model's number of languages, 99 or 100.
 * AKUNU_ERROR_UNSUPPORTED: the model knows English alone. */
AKUNU_API enum akunu_status akunu_session_languages(struct akunu_session *session,
                                                    struct akunu_audio *audio,
                                                    const struct akunu_transcription *params,
                                                    float *probabilities, size_t n);
/* Code of language i; NULL: past the last one. */
AKUNU_API const char *akunu_language_code(size_t i);
/* Its English name in lower case: "german". */
AKUNU_API const char *akunu_language_name(size_t i);
/* The code of a language by code, English name or another name that openai/whisper has for it
 * ("es", "Spanish", "Castilian"), in any case; NULL: there is no such language. */
AKUNU_API const char *akunu_language_find(const char *name);

/* ---- Stages of a speech model ------------------------------------------- */
/* Log-mel frames of a clip, each 10 ms, as openai/whisper makes them: those of the clip, whose
 * largest value normalizes all, then those of silence. Writes frames [first, first + n) as
 * [n][akunu_model_info.n_mels]. AKUNU_ERROR_UNSUPPORTED: no speech model. */
AKUNU_API enum akunu_status akunu_audio_mel(struct akunu_audio *audio,
                                            const struct akunu_model *model, uint64_t first,
                                            size_t n, float *out);

/* Encodes a window, [2 · n_positions][n_mels], into an empty sequence. n_positions: the first ones
 * of the encoder; 0: all, encoder_context. `out` gets the encoder's output, [n_positions][width];
 * NULL: it is not wanted. The logits of an earlier pass can then no longer be read.
 * AKUNU_ERROR_ARGUMENT: more positions than the encoder has. */
AKUNU_API enum akunu_status akunu_session_encode(struct akunu_session *session,
                                                 akunu_sequence window, const float *frames,
                                                 uint32_t n_positions, float *out);

/* Lets the text of a sequence, and of its forks, attend to an encoded window. A sequence of a
 * speech model cannot grow before. */
AKUNU_API enum akunu_status akunu_sequence_attend(struct akunu_session *session,
                                                  akunu_sequence text, akunu_sequence window);

#ifdef __cplusplus
}
#endif
#endif
