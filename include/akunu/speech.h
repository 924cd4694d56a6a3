/* akunu/speech.h: speech models: audio files, finding and transcribing speech, and the stages of a
 * speech model. Included by akunu.h; compiles alone. */
#ifndef AKUNU_SPEECH_H
#define AKUNU_SPEECH_H

#include "akunu/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Audio -------------------------------------------------------------- */
/* A clip: an audio file with any rate and any number of channels, in a format that libsndfile
 * decodes (WAV, FLAC, Ogg, Opus, MP3), or WebM or Matroska with such a stream. Channels are mixed
 * down as ffmpeg does it: stereo to its mean. Samples are limited to -1 … 1. Joined files are read
 * one after another. The file is read in pieces, as often as needed; a named pipe is first read to
 * its end.
 *
 * AKUNU_ERROR_FORMAT: the file is missing, is not audio, is damaged, or has no samples.
 * AKUNU_ERROR_UNSUPPORTED: the library was built without libsndfile. */
struct akunu_audio;
AKUNU_API struct akunu_audio *akunu_audio_open(const char *path);
/* Reads from a descriptor, which stays the caller's; a pipe is first read to its end. `name` stands
 * for the file in messages. */
AKUNU_API struct akunu_audio *akunu_audio_open_fd(int fd, const char *name);
/* Reads the n bytes of a file in memory. They are copied to a temporary file without a name, in
 * TMPDIR or /tmp. `name` stands for the file in messages. AKUNU_ERROR_IO: they do not fit there. */
AKUNU_API struct akunu_audio *akunu_audio_open_bytes(const void *bytes, size_t n, const char *name);
/* Takes n mono samples between -1 and 1, `rate` per second. They are not copied: keep them until
 * akunu_audio_free. */
AKUNU_API struct akunu_audio *akunu_audio_from_samples(const float *samples, size_t n,
                                                       unsigned rate);
AKUNU_API void akunu_audio_free(struct akunu_audio *audio);
/* Length in seconds: what the file's header says until the audio was read to its end, and then what
 * was found. 0: unknown. */
AKUNU_API double akunu_audio_seconds(const struct akunu_audio *audio);
/* Which part of the file is not read, for users: "the last 9000 bytes, from byte 32044 on, are not
 * audio that can be decoded, and are not read". NULL: all of it is read. */
AKUNU_API const char *akunu_audio_warning(const struct akunu_audio *audio);

/* ---- Voice activity ----------------------------------------------------- */
/* The weights of Silero VAD, version 5 or 6, in the GGML form of whisper.cpp. Immutable.
 * AKUNU_ERROR_FORMAT, AKUNU_ERROR_UNSUPPORTED: not such a file. */
struct akunu_vad;
AKUNU_API struct akunu_vad *akunu_vad_load(const char *path);
AKUNU_API void akunu_vad_free(struct akunu_vad *vad);

/* What counts as speech, as in whisper.cpp. */
struct akunu_vad_params {
    size_t size;
    float threshold;         /* probability from which there is speech, 0 … 1 (0.5) */
    uint32_t min_speech_ms;  /* shorter speech is dropped (250) */
    uint32_t min_silence_ms; /* a pause of this length ends speech (100) */
    float max_speech_s;      /* longer speech is divided, in a pause if possible; 0: never (0) */
    uint32_t speech_pad_ms;  /* audio that is added to both ends of a range (30) */
    float overlap_s; /* transcribing: audio that is added after all ranges but the last (0.1) */
};
AKUNU_API void akunu_vad_params_default(struct akunu_vad_params *params, size_t size);

/* Gets the probability of speech in the next 32 ms: 512 samples of 16,000 per second. Return false
 * to stop with AKUNU_ERROR_CANCELLED. */
typedef bool akunu_vad_probability_fn(float probability, void *user);
/* Gets a range with speech, in seconds. Ranges are ascending and do not touch. Return false to stop
 * with AKUNU_ERROR_CANCELLED. */
typedef bool akunu_vad_range_fn(double start, double end, void *user);

/* Reads the clip once, and reports all ranges when it has ended. on_probability may be NULL.
 * AKUNU_ERROR_ARGUMENT: a parameter is out of range. */
AKUNU_API enum akunu_status akunu_vad_detect(const struct akunu_vad *vad, struct akunu_audio *audio,
                                             const struct akunu_vad_params *params,
                                             akunu_vad_probability_fn *on_probability,
                                             akunu_vad_range_fn *on_range, void *user);

/* ---- Transcribing ------------------------------------------------------- */
struct akunu_grammar; /* text.h */

/* Parameters of openai/whisper's transcribe(), with the defaults of its command. */
struct akunu_transcription_params {
    size_t size;
    /* a name that akunu_language_find knows ("de", "German"); "auto": detected in the first 30 s;
     * NULL: English */
    const char *language;
    bool translate;       /* to English */
    bool no_timestamps;   /* decode without times: a window is one segment */
    uint32_t beams;       /* of the search at temperature 0; 0 or 1: greedy (5) */
    uint32_t best_of;     /* texts above temperature 0, of which the most likely is taken (5) */
    float patience;       /* a beam search ends after beams * patience complete texts (1) */
    float length_penalty; /* alpha of ((5 + n) / 6)^alpha; negative: divide by the length (-1) */
    /* A window is decoded again with a temperature that is temperature_step higher, up to 1, if
     * zlib shrinks its text by more than max_compression, or if the mean log-probability of its
     * tokens is below min_log_prob. If this holds for every temperature, the most likely text that
     * zlib does not shrink so much is taken. A window is skipped as silence if silence is more
     * probable than max_no_speech and min_log_prob is not reached. NaN turns a limit off. (0,
     * 0.2, 2.4, -1, 0.6) */
    float temperature, temperature_step;
    float max_compression, min_log_prob, max_no_speech;
    /* earlier tokens of the text that precede a window; -1: as many as half of the context holds
     * (-1) */
    int32_t max_previous;
    const char *prompt;              /* a text that precedes the clip's; NULL: none */
    const char *prefix;              /* the beginning of each window's text; NULL: none */
    bool keep_prompt;                /* `prompt` precedes every window, and not only the first */
    bool keep_symbols;               /* also write brackets, notes and other symbols */
    uint32_t offset_ms, duration_ms; /* part of the clip; duration 0: to its end */
    uint32_t max_tokens;             /* of a window; 0: half of the context */
    uint64_t seed;                   /* for sampling above temperature 0 */
    bool word_times;                 /* find when each word is said */
    /* Transcribe only the speech in the clip: in chunks of at most 30 s, with 0.1 s of silence in
     * place of what is between, and without earlier text before a chunk. Times are those of the
     * whole clip. NULL: transcribe everything. */
    const struct akunu_vad *vad;
    const struct akunu_vad_params *vad_params; /* used with `vad`; NULL: defaults */
    /* The text of each window, without its times, matches the grammar, or begins such a text if
     * max_tokens cuts it off. A space may precede it. NULL: any text. */
    const struct akunu_grammar *grammar;
    /* is subtracted from the logits of tokens that the grammar does not allow; infinity: they are
     * never written (infinity) */
    float grammar_penalty;
    /* hallucination_silence_threshold of openai/whisper, in seconds: a segment of improbable, very
     * short or very long words is dropped if the silences before and after it are longer, and
     * silence before such a segment is skipped. Times of words are then found. NaN: off (NaN) */
    float hallucination_silence;
    /* names and words that occur: a hint before the earlier text of each window, ignored if there
     * is a prefix; NULL: none */
    const char *hotwords;
    /* positions of the encoder, 20 ms each: only this many at the beginning of each window of 30 s
     * are encoded and attended to; 0: all */
    uint32_t audio_context;
};
AKUNU_API void akunu_transcription_params_default(struct akunu_transcription_params *params,
                                                  size_t size);

/* A word, with the punctuation next to it. */
struct akunu_word {
    double start, end;  /* seconds */
    double probability; /* mean of its tokens */
    const char *text;   /* n_bytes, without a NUL; begins with a space if one precedes the word */
    size_t n_bytes;
};

/* A segment. One without text (n_bytes 0) has no tokens either. Texts are UTF-8, with U+FFFD for
 * bytes that are not a character. */
struct akunu_segment {
    uint32_t id;       /* 0, 1, … */
    uint64_t window;   /* first frame of its window, in units of 10 ms */
    double start, end; /* seconds */
    const char *text;  /* without a NUL; begins with a space if a word begins there */
    size_t n_bytes;
    const akunu_token *tokens; /* [n_tokens], including those of times */
    size_t n_tokens;
    /* of its window: temperature, mean log-probability of a token, zlib's compression of the text,
     * probability of silence */
    float temperature;
    double mean_log_prob, compression, no_speech;
    /* [n_words], if word_times or hallucination_silence is set; `start` and `end` then follow
     * them */
    const struct akunu_word *words;
    size_t n_words;
    /* [n_tokens]: probability of each token among those allowed there, before the temperature */
    const float *token_probabilities;
};

/* Gets a segment once it is final. Return false to stop with AKUNU_ERROR_CANCELLED. */
typedef bool akunu_segment_fn(const struct akunu_segment *segment, void *user);

/* Gets the end of a clip, once, also if it failed or was cancelled: then `message` says why, and
 * `language` is NULL. Otherwise language is the code of the clip's language. */
typedef void akunu_clip_end_fn(enum akunu_status status, const char *message, const char *language,
                               void *user);

/* A clip to transcribe. */
struct akunu_clip {
    size_t size;
    struct akunu_audio *audio;
    const struct akunu_transcription_params *params; /* NULL: defaults */
    akunu_segment_fn *on_segment;
    /* Gets the fraction of the clip before the current window: while the clip is read for the first
     * time, before each window, and before each token. NULL: none. */
    akunu_fraction_fn *progress;
    akunu_clip_end_fn *on_end; /* for akunu_session_transcribe_clips alone; NULL: none */
    void *user;                /* passed to all three callbacks */
};
AKUNU_API void akunu_clip_default(struct akunu_clip *clip, size_t size);

/* Transcribes a clip, window by window. The session needs max_sequences of at least the larger of
 * beams and best_of, and none of its sequences may be in use. With `vad`, the chunks of the clip's
 * speech are transcribed side by side, as akunu_session_transcribe_clips does with clips.
 * *language, unless NULL, becomes the code of the clip's language. AKUNU_ERROR_ARGUMENT: the model
 * does not know the language, or a parameter is out of range. */
AKUNU_API enum akunu_status akunu_session_transcribe(struct akunu_session *session,
                                                     const struct akunu_clip *clip,
                                                     const char **language);

/* Sets the members of the next clip, which has its defaults. Return false if there is none for now.
 * The audio and params->vad must live until on_end; the other members, and what they point to,
 * until the next call of this function. */
typedef bool akunu_next_clip_fn(struct akunu_clip *clip, void *user);

/* Transcribes clips side by side, as many as the session has windows (max_windows), each with its
 * share of max_sequences. Clips share passes of the decoder, which is faster and changes no text on
 * the CPU. `next` is called before each pass while there is room for another clip, so it must
 * return quickly. The call returns when all clips have ended and `next` has none.
 *
 * Segments of one clip come in order; those of different clips are mixed. A callback that returns
 * false ends its own clip only. A clip that fails reports it by on_end, and the others continue. */
AKUNU_API enum akunu_status akunu_session_transcribe_clips(struct akunu_session *session,
                                                           akunu_next_clip_fn *next, void *user);

/* Transcribes speech while it is spoken: whenever there is another half second, the last seconds
 * are transcribed again. */
struct akunu_speech_stream;
/* Gets words. Words with which two transcriptions in a row begin are final and are reported once.
 * The others may still change; they replace those of the previous call. Return false to stop. */
typedef bool akunu_words_fn(const struct akunu_word *words, size_t n_words, bool is_final,
                            void *user);
/* `rate`: samples per second. The stream uses the session, which must not be used otherwise, and
 * what params points to, until akunu_speech_stream_free. */
AKUNU_API struct akunu_speech_stream *
akunu_speech_stream_new(struct akunu_session *session, unsigned rate,
                        const struct akunu_transcription_params *params, akunu_words_fn *on_words,
                        void *user);
/* Adds n mono samples between -1 and 1, and transcribes if there are enough of them. */
AKUNU_API enum akunu_status akunu_speech_stream_push(struct akunu_speech_stream *stream,
                                                     const float *samples, size_t n);
/* Transcribes the rest. All words are then final. */
AKUNU_API enum akunu_status akunu_speech_stream_end(struct akunu_speech_stream *stream);
AKUNU_API void akunu_speech_stream_free(struct akunu_speech_stream *stream);

/* Computes the probability of each language in the first 30 s of the clip, or with params->vad in
 * its first chunk of speech. A clip without speech has only zeros. Besides `vad`, the call uses
 * params->audio_context and, with `vad`, the part of the clip. probabilities is [n], where n is at
 * least the number of the model's languages, 99 or 100. AKUNU_ERROR_UNSUPPORTED: the model knows
 * English only. */
AKUNU_API enum akunu_status akunu_session_languages(struct akunu_session *session,
                                                    struct akunu_audio *audio,
                                                    const struct akunu_transcription_params *params,
                                                    float *probabilities, size_t n);
/* Code of language i ("de"); NULL past the end. */
AKUNU_API const char *akunu_language_code(size_t i);
/* English name of language i in lower case ("german"); NULL past the end. */
AKUNU_API const char *akunu_language_name(size_t i);
/* The code of the language with this code, English name or other name of openai/whisper ("es",
 * "Spanish", "Castilian"), in upper or lower case. NULL: there is none. */
AKUNU_API const char *akunu_language_find(const char *name);

/* ---- Stages of a speech model ------------------------------------------- */
/* Computes log-mel frames of a clip, 10 ms each, as openai/whisper does: first the clip's frames,
 * which are normalized by the largest of all their values, then frames of silence. Frames first …
 * first + n - 1 are written to out [n][akunu_model_info.n_mels]. AKUNU_ERROR_UNSUPPORTED: not a
 * speech model. */
AKUNU_API enum akunu_status akunu_audio_mel(struct akunu_audio *audio,
                                            const struct akunu_model *model, uint64_t first,
                                            size_t n, float *out);

/* Encodes a window into an empty sequence. frames: [2 · n_positions][n_mels]. n_positions: how many
 * of the encoder's positions, from the first; 0: all (encoder_context). out: [n_positions][width],
 * the encoder's output; NULL: not wanted. Logits of earlier passes can then no longer be read.
 * AKUNU_ERROR_ARGUMENT: the encoder has fewer positions. */
AKUNU_API enum akunu_status akunu_session_encode(struct akunu_session *session,
                                                 akunu_sequence window, const float *frames,
                                                 uint32_t n_positions, float *out);

/* Lets the text of a sequence, and of its forks, attend to an encoded window. Tokens can be
 * appended to a sequence of a speech model only afterwards. */
AKUNU_API enum akunu_status akunu_sequence_attend(struct akunu_session *session,
                                                  akunu_sequence text, akunu_sequence window);

#ifdef __cplusplus
}
#endif
#endif
