/* Sets up what all clips of a call share: tokens, filters, lanes. */
#include "speech/transcribe/transcribe.h"

#include "speech/audio/audio.h"
#include "base/mem.h"
#include "speech/transcribe/chunks.h"
#include "speech/transcribe/plan.h"
#include "speech/transcribe/work.h"

enum { LEAST_CONTEXT = 16 };

static void close_setup(struct ak_transcribe_setup *t)
{
    for (size_t i = 0; i < t->n_lanes; i++)
        ak_lane_close(&t->lanes[i]);
    ak_free(t->lanes);
    ak_meeting_free(t->meeting);
    ak_mel_free(t->mel);
}

/* n: lanes. */
static ak_status open_setup(struct ak_transcribe_setup *t, size_t n, struct ak_error *error)
{
    const struct ak_model *m = t->s->model;
    const struct ak_spec_config *config = &m->spec.config;
    AK_TRY(ak_transcribe_mel(m, &t->mel, error));
    if (!m->tokenizer)
        return ak_provider_fail_vocab(m->provider, error);
    if (2 * config->encoder_context != AK_SPEECH_WINDOW)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "the encoder has %u positions; transcribing needs %d",
                       config->encoder_context, AK_SPEECH_WINDOW / 2);
    if (config->context < LEAST_CONTEXT)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "the decoder has a context of %u tokens; transcribing needs %d",
                       (unsigned)config->context, LEAST_CONTEXT);
    AK_TRY(ak_speech_tokens_find(config->vocab_size, &t->tokens, error));
    AK_TRY(ak_meeting_new(t->s, n > 1, &t->meeting, error));
    t->max_texts = (uint32_t)((t->s->kv.n_sequences - t->s->max_windows) / n);
    t->lanes = ak_alloc(n, sizeof *t->lanes);
    if (!t->lanes)
        return ak_fail_memory(error, "lanes", n * sizeof *t->lanes);
    while (t->n_lanes < n)
        AK_TRY(ak_lane_open(&t->lanes[t->n_lanes++], t->meeting, t->s, &t->tokens, error));
    return AKUNU_OK;
}

uint32_t ak_transcribe_count_texts(const struct akunu_transcription_params *asked)
{
    uint32_t n = asked->beams > 1 ? asked->beams : 1;
    bool samples = asked->temperature > 0.0f || asked->temperature_step > 0.0f;
    return samples && asked->best_of > n ? asked->best_of : n;
}

ak_status ak_transcribe_fail_cancelled(struct ak_error *error)
{
    return ak_fail(error, AKUNU_ERROR_CANCELLED, "the transcription was cancelled");
}

static ak_status transcribe(struct ak_session *s, size_t n_lanes, ak_transcribe_next_fn *next,
                            void *user, struct ak_error *error)
{
    struct ak_transcribe_setup t = { .s = s };
    ak_status status = open_setup(&t, ak_max_size(1, n_lanes), error);
    if (status == AKUNU_OK)
        status = ak_transcribe_work(&t, next, user, error);
    close_setup(&t);
    return status;
}

ak_status ak_transcribe_clips(struct ak_session *s, ak_transcribe_next_fn *next, void *user,
                              struct ak_error *error)
{
    return transcribe(s, s->max_windows, next, user, error);
}

/* ---- One clip ----------------------------------------------------------- */
struct single {
    struct ak_transcribe_clip clip;
    const struct ak_transcribe_sink *sink;
    bool taken;
    struct ak_error *error;
    int32_t *language;
};

static bool clip_on_segment(const struct akunu_segment *segment, void *user)
{
    const struct single *single = user;
    return single->sink->on_segment(segment, single->sink->user);
}

static bool clip_on_progress(double fraction, void *user)
{
    const struct ak_transcribe_sink *sink = ((const struct single *)user)->sink;
    return !sink->on_progress || sink->on_progress(fraction, sink->user);
}

static void clip_on_end(const struct ak_error *error, int32_t language, void *user)
{
    struct single *single = user;
    *single->error = *error;
    *single->language = language;
}

static bool take_single(struct ak_transcribe_clip *out, void *user)
{
    struct single *single = user;
    bool is_there = !single->taken;
    *out = single->clip;
    single->taken = true;
    return is_there;
}

ak_status ak_transcribe(struct ak_session *s, const struct ak_transcribe_clip *clip,
                        int32_t *language, struct ak_error *error)
{
    struct ak_error failure = { 0 };
    struct single single = {
        .clip = *clip, .sink = &clip->sink, .error = &failure, .language = language
    };
    size_t texts = ak_transcribe_count_texts(clip->asked),
           most = (s->kv.n_sequences - s->max_windows) / texts;
    single.clip.sink =
        (struct ak_transcribe_sink){ clip_on_segment, clip_on_progress, &single, clip_on_end };
    *language = 0;
    AK_TRY(transcribe(s, clip->vad.silero ? ak_min_size(most, s->max_windows) : 1, take_single,
                      &single, error));
    if (failure.status != AKUNU_OK)
        *error = failure;
    return failure.status;
}

/* *samples, which the caller frees, are the clip's first chunk of speech; NULL: it has none. */
static ak_status read_speech(struct ak_audio *audio, const struct ak_transcribe_vad *vad,
                             const struct ak_speech_task *task, float **samples, size_t *n,
                             struct ak_error *error)
{
    struct ak_transcribe_chunks chunks;
    *samples = NULL;
    ak_status status =
        ak_transcribe_chunks_open(audio, vad, task->first, task->end, NULL, NULL, &chunks, error);
    if (status == AKUNU_OK && chunks.n > 0)
        status = ak_transcribe_chunks_read(&chunks, 0, samples, n, error);
    ak_transcribe_chunks_close(&chunks);
    return status;
}

static ak_status find_languages(struct ak_transcribe_setup *t, struct ak_audio *audio, float *out,
                                struct ak_error *error)
{
    struct ak_lane *lane = &t->lanes[0];
    AK_TRY(ak_clip_new(audio, t->mel, NULL, NULL, &lane->clip, error));
    ak_status status = ak_lane_languages(lane, out, error);
    ak_clip_free(lane->clip);
    return status;
}

static ak_status find_languages_of_speech(struct ak_transcribe_setup *t, struct ak_audio *audio,
                                          const struct ak_transcribe_vad *vad,
                                          const struct ak_speech_task *task, float *out,
                                          struct ak_error *error)
{
    struct ak_audio *speech = NULL;
    float *samples;
    size_t n;
    ak_status status = read_speech(audio, vad, task, &samples, &n, error);
    for (int32_t i = 0; i < t->tokens.n_languages; i++)
        out[i] = 0.0f;
    if (status == AKUNU_OK && samples)
        status = ak_audio_open_samples(samples, n, AK_MEL_RATE, &speech, error);
    if (status == AKUNU_OK && samples)
        status = find_languages(t, speech, out, error);
    ak_audio_close(speech);
    ak_free(samples);
    return status;
}

ak_status ak_transcribe_languages(struct ak_session *s, struct ak_audio *audio,
                                  const struct akunu_transcription_params *asked,
                                  const struct ak_transcribe_vad *vad, float *out, size_t n,
                                  struct ak_error *error)
{
    struct ak_transcribe_setup t = { .s = s };
    struct ak_transcribe_plan plan = { 0 };
    ak_status status = open_setup(&t, 1, error);
    if (status == AKUNU_OK && !t.tokens.multilingual)
        status = ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "the model knows English alone");
    if (status == AKUNU_OK && n < (size_t)t.tokens.n_languages)
        status = ak_fail(error, AKUNU_ERROR_ARGUMENT, "room for %zu of %d languages", n,
                         (int)t.tokens.n_languages);
    if (status == AKUNU_OK)
        status = ak_transcribe_plan_make(s->model, &t.tokens, asked, &plan, error);
    if (status == AKUNU_OK) {
        t.lanes[0].audio_context = plan.audio_context;
        status = vad->silero ? find_languages_of_speech(&t, audio, vad, &plan.task, out, error) :
                               find_languages(&t, audio, out, error);
    }
    ak_transcribe_plan_free(&plan);
    close_setup(&t);
    return status;
}
