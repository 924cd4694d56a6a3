/* Speech behind handles: audio, transcribing, log-mel frames and the encoder. */
#include "api/handles.h"

#include <math.h>
#include <string.h>

#include "speech/audio/mel.h"
#include "base/mem.h"
#include "speech/transcribe/stream.h"
#include "speech/transcribe/transcribe.h"
#include "speech/vad/detect.h"

struct akunu_audio {
    struct ak_audio *inner;
};

struct akunu_vad {
    struct ak_silero *inner;
};

/* A handle of `inner`, which is closed if there is no memory for one. */
static struct akunu_audio *make_audio(struct ak_audio *inner, struct ak_error *error)
{
    struct akunu_audio *audio = error->status == AKUNU_OK ? ak_alloc(1, sizeof *audio) : NULL;
    if (audio) {
        audio->inner = inner;
        return audio;
    }
    if (error->status == AKUNU_OK) {
        ak_fail_memory(error, "an audio file", sizeof *audio);
        ak_audio_close(inner);
    }
    ak_api_finish(error);
    return NULL;
}

struct akunu_audio *akunu_audio_open(const char *path)
{
    struct ak_error error = { 0 };
    struct ak_audio *inner = NULL;
    if (!path)
        ak_fail(&error, AKUNU_ERROR_ARGUMENT, "the path is NULL");
    else
        ak_audio_open(path, &inner, &error);
    return make_audio(inner, &error);
}

struct akunu_audio *akunu_audio_open_fd(int fd, const char *name)
{
    struct ak_error error = { 0 };
    struct ak_audio *inner = NULL;
    ak_audio_open_fd(fd, name ? name : "audio", &inner, &error);
    return make_audio(inner, &error);
}

struct akunu_audio *akunu_audio_open_bytes(const void *bytes, size_t n, const char *name)
{
    struct ak_error error = { 0 };
    struct ak_audio *inner = NULL;
    if (!bytes)
        ak_fail(&error, AKUNU_ERROR_ARGUMENT, "the bytes are NULL");
    else
        ak_audio_open_bytes(bytes, n, name ? name : "audio", &inner, &error);
    return make_audio(inner, &error);
}

struct akunu_audio *akunu_audio_from_samples(const float *samples, size_t n, unsigned rate)
{
    struct ak_error error = { 0 };
    struct ak_audio *inner = NULL;
    if (!samples)
        ak_fail(&error, AKUNU_ERROR_ARGUMENT, "the samples are NULL");
    else
        ak_audio_open_samples(samples, n, rate, &inner, &error);
    return make_audio(inner, &error);
}

void akunu_audio_free(struct akunu_audio *audio)
{
    if (audio)
        ak_audio_close(audio->inner);
    ak_free(audio);
}

double akunu_audio_seconds(const struct akunu_audio *audio)
{
    return audio ? ak_audio_seconds(audio->inner) : 0.0;
}

const char *akunu_audio_warning(const struct akunu_audio *audio)
{
    return audio ? ak_audio_warning(audio->inner) : NULL;
}

/* ---- Log-mel frames ----------------------------------------------------- */
static ak_status read_mel(const struct ak_model *m, struct ak_audio *audio, uint64_t first,
                          size_t n, float *out, struct ak_error *error)
{
    struct ak_mel *mel = NULL;
    struct ak_clip *clip = NULL;
    ak_status status = ak_transcribe_mel(m, &mel, error);
    if (status == AKUNU_OK)
        status = ak_clip_new(audio, mel, NULL, NULL, &clip, error);
    for (size_t at = 0, n_window; at < n && status == AKUNU_OK; at += n_window) {
        n_window = ak_min_size(n - at, AK_CLIP_FRAMES);
        status =
            ak_clip_window(clip, first + at, n_window, out + at * m->spec.config.n_mels, error);
    }
    ak_clip_free(clip);
    ak_mel_free(mel);
    return status;
}

enum akunu_status akunu_audio_mel(struct akunu_audio *audio, const struct akunu_model *model,
                                  uint64_t first, size_t n, float *out)
{
    struct ak_error error = { 0 };
    if (!audio || !model || !out)
        ak_fail(&error, AKUNU_ERROR_ARGUMENT, "%s is NULL",
                !audio ? "the audio" :
                !model ? "the model" :
                         "out");
    else
        read_mel(model->inner, audio->inner, first, n, out, &error);
    return ak_api_finish(&error);
}

/* ---- The encoder -------------------------------------------------------- */
enum akunu_status akunu_session_encode(struct akunu_session *session, akunu_sequence window,
                                       const float *frames, uint32_t n_positions, float *out)
{
    struct ak_error error = { 0 };
    struct ak_session *s = ak_api_begin(session, &error);
    if (s && !frames)
        ak_fail(&error, AKUNU_ERROR_ARGUMENT, "the frames are NULL");
    if (s && frames &&
        ak_session_encode(s, frames, window, n_positions, out != NULL, &error) == AKUNU_OK) {
        const struct ak_spec_config *config = &s->model->spec.config;
        uint32_t n = n_positions ? n_positions : config->encoder_context;
        for (uint32_t i = 0; out && i < n; i++)
            memcpy(out + (size_t)i * config->width, ak_session_encoded(s, i),
                   config->width * sizeof *out);
    }
    return ak_api_end(session, s, &error);
}

enum akunu_status akunu_sequence_attend(struct akunu_session *session, akunu_sequence text,
                                        akunu_sequence window)
{
    struct ak_error error = { 0 };
    struct ak_session *s = ak_api_begin(session, &error);
    if (s)
        ak_session_attend(s, text, window, &error);
    return ak_api_end(session, s, &error);
}

/* ---- Voice activity ----------------------------------------------------- */
struct akunu_vad *akunu_vad_load(const char *path)
{
    struct ak_error error = { 0 };
    struct akunu_vad *vad = ak_alloc(1, sizeof *vad);
    if (!vad)
        ak_fail_memory(&error, "a VAD model", sizeof *vad);
    else if (!path)
        ak_fail(&error, AKUNU_ERROR_ARGUMENT, "the path is NULL");
    else
        ak_silero_open(path, &vad->inner, &error);
    if (ak_api_finish(&error) == AKUNU_OK)
        return vad;
    ak_free(vad);
    return NULL;
}

void akunu_vad_free(struct akunu_vad *vad)
{
    if (vad)
        ak_free(vad->inner);
    ak_free(vad);
}

void akunu_vad_params_default(struct akunu_vad_params *params, size_t size)
{
    static const struct akunu_vad_params full = { .threshold = 0.5f,
                                                  .min_speech_ms = 250,
                                                  .min_silence_ms = 100,
                                                  .speech_pad_ms = 30,
                                                  .overlap_s = 0.1f };
    ak_api_give_default(params, size, &full, sizeof full);
}

static ak_status copy_vad_params(const struct akunu_vad_params *given, struct akunu_vad_params *out,
                                 struct ak_error *error)
{
    akunu_vad_params_default(out, sizeof *out);
    return ak_api_copy_in(out, sizeof *out, given, "akunu_vad_params", error);
}

static ak_status detect(const struct akunu_vad *vad, struct akunu_audio *audio,
                        const struct akunu_vad_params *given,
                        akunu_vad_probability_fn *on_probability, akunu_vad_range_fn *on_range,
                        void *user, struct ak_error *error)
{
    const double rate = AK_MEL_RATE;
    struct akunu_vad_params params;
    struct ak_vad_ranges found;
    bool goes_on = true;
    if (!vad || !audio || !on_range)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "%s is NULL",
                       !vad   ? "the VAD model" :
                       !audio ? "the audio" :
                                "the callback for ranges");
    AK_TRY(copy_vad_params(given, &params, error));
    AK_TRY(ak_vad_detect(vad->inner, audio->inner, &params, false, on_probability, user, &found,
                         error));
    for (size_t i = 0; i < found.n && goes_on; i++)
        goes_on = on_range((double)found.ranges[i].first / rate,
                           (double)(found.ranges[i].first + found.ranges[i].n) / rate, user);
    ak_vad_ranges_free(&found);
    return goes_on ? AKUNU_OK : ak_fail(error, AKUNU_ERROR_CANCELLED, "cancelled");
}

enum akunu_status akunu_vad_detect(const struct akunu_vad *vad, struct akunu_audio *audio,
                                   const struct akunu_vad_params *params,
                                   akunu_vad_probability_fn *on_probability,
                                   akunu_vad_range_fn *on_range, void *user)
{
    struct ak_error error = { 0 };
    detect(vad, audio, params, on_probability, on_range, user, &error);
    return ak_api_finish(&error);
}

/* ---- Transcribing ------------------------------------------------------- */
void akunu_transcription_params_default(struct akunu_transcription_params *params, size_t size)
{
    static const struct akunu_transcription_params full = { .beams = 5,
                                                            .best_of = 5,
                                                            .patience = 1.0f,
                                                            .length_penalty = -1.0f,
                                                            .temperature_step = 0.2f,
                                                            .max_compression = 2.4f,
                                                            .min_log_prob = -1.0f,
                                                            .max_no_speech = 0.6f,
                                                            .max_previous = -1,
                                                            .grammar_penalty = INFINITY,
                                                            .hallucination_silence = NAN };
    ak_api_give_default(params, size, &full, sizeof full);
}

static ak_status copy_params(const struct akunu_transcription_params *given,
                             struct akunu_transcription_params *params,
                             struct ak_transcribe_vad *vad, struct ak_error *error)
{
    akunu_transcription_params_default(params, sizeof *params);
    AK_TRY(ak_api_copy_in(params, sizeof *params, given, "akunu_transcription_params", error));
    vad->silero = params->vad ? params->vad->inner : NULL;
    return copy_vad_params(params->vad_params, &vad->params, error);
}

static ak_status check_clip(const struct akunu_clip *clip, struct ak_error *error)
{
    return clip->audio && clip->on_segment ?
               AKUNU_OK :
               ak_fail(error, AKUNU_ERROR_ARGUMENT, "%s of a clip is NULL",
                       clip->audio ? "the callback for segments" : "the audio");
}

void akunu_clip_default(struct akunu_clip *clip, size_t size)
{
    static const struct akunu_clip full = { .size = 0 };
    ak_api_give_default(clip, size, &full, sizeof full);
}

static ak_status transcribe(struct ak_session *s, const struct akunu_clip *given, int32_t *language,
                            struct ak_error *error)
{
    struct akunu_clip own = { .size = 0 };
    struct akunu_transcription_params params;
    struct ak_transcribe_clip clip = { .asked = &params };
    AK_TRY(ak_api_copy_in(&own, sizeof own, given, "akunu_clip", error));
    AK_TRY(check_clip(&own, error));
    if (own.on_end)
        return ak_fail(
            error, AKUNU_ERROR_ARGUMENT,
            "on_end of a clip is for akunu_session_transcribe_clips; expected NULL, since "
            "this call returns when the clip has ended");
    AK_TRY(copy_params(own.params, &params, &clip.vad, error));
    clip.audio = own.audio->inner;
    clip.sink = (struct ak_transcribe_sink){ .on_segment = own.on_segment,
                                             .on_progress = own.progress,
                                             .user = own.user };
    return ak_transcribe(s, &clip, language, error);
}

enum akunu_status akunu_session_transcribe(struct akunu_session *session,
                                           const struct akunu_clip *clip, const char **language)
{
    struct ak_error error = { 0 };
    int32_t found = 0;
    struct ak_session *s = ak_api_begin(session, &error);
    if (s)
        transcribe(s, clip, &found, &error);
    if (language)
        *language = ak_speech_language_code(found);
    return ak_api_end(session, s, &error);
}

/* ---- Several clips ------------------------------------------------------ */
struct clip_source {
    akunu_next_clip_fn *next;
    void *user;
    struct akunu_transcription_params params; /* of the clip that was fetched last */
};

static bool on_clip_segment(const struct akunu_segment *segment, void *user)
{
    const struct akunu_clip *clip = user;
    return clip->on_segment(segment, clip->user);
}

static bool on_clip_progress(double fraction, void *user)
{
    const struct akunu_clip *clip = user;
    return !clip->progress || clip->progress(fraction, clip->user);
}

static void end_clip(struct akunu_clip *clip, const struct ak_error *error, int32_t language)
{
    if (clip->on_end)
        clip->on_end(error->status, error->message,
                     error->status == AKUNU_OK ? ak_speech_language_code(language) : NULL,
                     clip->user);
}

static void on_clip_end(const struct ak_error *error, int32_t language, void *user)
{
    end_clip(user, error, language);
    ak_free(user);
}

static ak_status open_clip(struct clip_source *source, const struct akunu_clip *given,
                           struct ak_transcribe_clip *out, struct ak_error *error)
{
    AK_TRY(check_clip(given, error));
    AK_TRY(copy_params(given->params, &source->params, &out->vad, error));
    struct akunu_clip *clip = ak_alloc(1, sizeof *clip);
    if (!clip)
        return ak_fail_memory(error, "a clip", sizeof *clip);
    *clip = *given;
    out->audio = given->audio->inner;
    out->asked = &source->params;
    out->sink = (struct ak_transcribe_sink){ on_clip_segment, on_clip_progress, clip, on_clip_end };
    return AKUNU_OK;
}

/* Clips that cannot begin end at once. */
static bool next_clip(struct ak_transcribe_clip *out, void *user)
{
    struct clip_source *source = user;
    struct akunu_clip given = { .size = sizeof given };
    while (source->next(&given, source->user)) {
        struct ak_error error = { 0 };
        if (open_clip(source, &given, out, &error) == AKUNU_OK)
            return true;
        end_clip(&given, &error, 0);
        given = (struct akunu_clip){ .size = sizeof given };
    }
    return false;
}

enum akunu_status akunu_session_transcribe_clips(struct akunu_session *session,
                                                 akunu_next_clip_fn *next, void *user)
{
    struct ak_error error = { 0 };
    struct clip_source source = { .next = next, .user = user };
    struct ak_session *s = ak_api_begin(session, &error);
    if (s && !next)
        ak_fail(&error, AKUNU_ERROR_ARGUMENT, "the function for the next clip is NULL");
    else if (s)
        ak_transcribe_clips(s, next_clip, &source, &error);
    return ak_api_end(session, s, &error);
}

/* ---- Streams ------------------------------------------------------------ */
struct akunu_speech_stream {
    struct akunu_session *session;
    struct ak_stream *inner;
};

static ak_status make_stream(struct ak_session *s, unsigned rate,
                             const struct akunu_transcription_params *given,
                             akunu_words_fn *on_words, void *user, struct akunu_speech_stream **out,
                             struct ak_error *error)
{
    struct akunu_transcription_params params;
    struct ak_transcribe_vad vad;
    if (!on_words)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "the callback for words is NULL");
    AK_TRY(copy_params(given, &params, &vad, error));
    struct akunu_speech_stream *stream = ak_alloc(1, sizeof *stream);
    if (!stream)
        return ak_fail_memory(error, "a stream", sizeof *stream);
    ak_status status = ak_stream_new(s, rate, &params, &vad, on_words, user, &stream->inner, error);
    if (status == AKUNU_OK)
        *out = stream;
    else
        ak_free(stream);
    return status;
}

struct akunu_speech_stream *akunu_speech_stream_new(struct akunu_session *session, unsigned rate,
                                                    const struct akunu_transcription_params *given,
                                                    akunu_words_fn *on_words, void *user)
{
    struct ak_error error = { 0 };
    struct akunu_speech_stream *stream = NULL;
    struct ak_session *s = ak_api_begin(session, &error);
    if (s && make_stream(s, rate, given, on_words, user, &stream, &error) == AKUNU_OK)
        stream->session = session;
    ak_api_end(session, s, &error);
    return stream;
}

enum akunu_status akunu_speech_stream_push(struct akunu_speech_stream *stream, const float *samples,
                                           size_t n)
{
    struct ak_error error = { 0 };
    struct ak_session *s = ak_api_begin(stream ? stream->session : NULL, &error);
    if (s && n > 0 && !samples)
        ak_fail(&error, AKUNU_ERROR_ARGUMENT, "the samples are NULL");
    else if (s)
        ak_stream_push(stream->inner, samples, n, &error);
    return ak_api_end(stream ? stream->session : NULL, s, &error);
}

enum akunu_status akunu_speech_stream_end(struct akunu_speech_stream *stream)
{
    struct ak_error error = { 0 };
    struct ak_session *s = ak_api_begin(stream ? stream->session : NULL, &error);
    if (s)
        ak_stream_finish(stream->inner, &error);
    return ak_api_end(stream ? stream->session : NULL, s, &error);
}

void akunu_speech_stream_free(struct akunu_speech_stream *stream)
{
    if (stream)
        ak_stream_free(stream->inner);
    ak_free(stream);
}

enum akunu_status akunu_session_languages(struct akunu_session *session, struct akunu_audio *audio,
                                          const struct akunu_transcription_params *given,
                                          float *probabilities, size_t n)
{
    struct ak_error error = { 0 };
    struct akunu_transcription_params params;
    struct ak_transcribe_vad vad = { .silero = NULL };
    struct ak_session *s = ak_api_begin(session, &error);
    if (s && !audio)
        ak_fail(&error, AKUNU_ERROR_ARGUMENT, "the audio is NULL");
    else if (s && copy_params(given, &params, &vad, &error) == AKUNU_OK)
        ak_transcribe_languages(s, audio->inner, &params, &vad, probabilities, n, &error);
    return ak_api_end(session, s, &error);
}

const char *akunu_language_code(size_t i)
{
    return i <= INT32_MAX ? ak_speech_language_code((int32_t)i) : NULL;
}

const char *akunu_language_name(size_t i)
{
    return i <= INT32_MAX ? ak_speech_language_name((int32_t)i) : NULL;
}

const char *akunu_language_find(const char *name)
{
    return name ? ak_speech_language_code(ak_speech_language_find(name)) : NULL;
}
