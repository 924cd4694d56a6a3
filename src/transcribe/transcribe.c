/* Encoder and decoder of a session behind the functions that speech/ calls: windows become
 * sequences with K and V for cross-attention, texts sequences that fork. */
#include "transcribe/transcribe.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "transcribe/cut.h"
#include "transcribe/score.h"
#include "transcribe/suppress.h"

enum { TEMPERATURES_MAX = 64, PROMPT_MAX = 1 << 16 };

struct transcriber {
    struct ak_session *s;
    const struct ak_transcribe_sink *sink;
    struct ak_speech_tokens tokens;
    struct ak_mel *mel;
    struct ak_transcribe_cut cut; /* zeros: all of the clip is transcribed */
    struct ak_clip *clip;         /* NULL: it has no speech */
    uint64_t n_frames, first;     /* first: frame of the window */
    float *frames;                /* [AK_SPEECH_WINDOW][n_mels] */
    int32_t window;               /* the sequence that holds it; -1: none yet */
    int32_t texts[AK_SPEECH_TEXTS_MAX];
    size_t n_texts;
    struct akunu_batch_token *batch;        /* [context or texts] */
    const float *rows[AK_SPEECH_TEXTS_MAX]; /* logits of the last step */
    struct ak_buffer text;
    int32_t *prompt, *prefix, *suppressed;
    uint32_t n_segments;
    bool no_memory; /* for the words of a segment */
};

/* ---- What speech/ calls ------------------------------------------------- */
static void free_texts(struct transcriber *t)
{
    for (size_t i = 0; i < t->n_texts; i++)
        ak_session_kv_sequence_free(&t->s->kv, t->texts[i]);
    t->n_texts = 0;
}

/* Reports how far it is. AKUNU_ERROR_CANCELLED: it shall stop. */
static ak_status report_progress(const struct transcriber *t, struct ak_error *error)
{
    double fraction = t->n_frames > 0 ? (double)t->first / (double)t->n_frames : 0.0;
    if (!t->sink || !t->sink->on_progress || t->sink->on_progress(fraction, t->sink->user))
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_CANCELLED, "the transcription was cancelled");
}

/* Frames [first, first + n) of the clip and zeros. */
static ak_status encode_frames(struct transcriber *t, uint64_t first, uint32_t n,
                               struct ak_error *error)
{
    size_t n_mels = t->s->model->spec.config.n_mels;
    const float *frames = t->frames;
    free_texts(t);
    AK_TRY(ak_clip_window(t->clip, first, n, t->frames, error));
    memset(t->frames + n * n_mels, 0, (AK_SPEECH_WINDOW - n) * n_mels * sizeof *t->frames);
    if (t->window < 0)
        AK_TRY(ak_session_sequence_new(t->s, &t->window, error));
    AK_TRY(ak_session_rewind(t->s, t->window, 0, error));
    return ak_session_encode(t->s, &frames, &t->window, 1, false, error);
}

static ak_status encode(void *user, uint64_t first, uint32_t n, struct ak_error *error)
{
    struct transcriber *t = user;
    t->first = first;
    AK_TRY(report_progress(t, error));
    return encode_frames(t, first, n, error);
}

static ak_status begin(void *user, const int32_t *prompt, size_t n, size_t start,
                       const float **last, const float **at, struct ak_error *error)
{
    struct transcriber *t = user;
    free_texts(t);
    AK_TRY(report_progress(t, error));
    AK_TRY(ak_session_sequence_new(t->s, &t->texts[0], error));
    t->n_texts = 1;
    AK_TRY(ak_session_attend(t->s, t->texts[0], t->window, error));
    for (size_t i = 0; i < n; i++)
        t->batch[i] = (struct akunu_batch_token){ .token = prompt[i],
                                                  .sequence = t->texts[0],
                                                  .logits = i == start || i + 1 == n };
    AK_TRY(ak_session_decode(t->s, t->batch, n, error));
    *last = ak_session_logits(t->s, n - 1);
    *at = ak_session_logits(t->s, start);
    return AKUNU_OK;
}

/* After the prompt all texts are the first one. */
static size_t origin_of(size_t n_texts, uint32_t text)
{
    return n_texts == 1 ? 0 : text;
}

/* Gives each text a sequence: the first that continues an old one takes it over, further ones
 * fork. */
static ak_status fork_texts(struct transcriber *t, size_t n, const uint32_t *from,
                            struct ak_error *error)
{
    int32_t old[AK_SPEECH_TEXTS_MAX];
    bool is_continued[AK_SPEECH_TEXTS_MAX] = { false }, is_taken[AK_SPEECH_TEXTS_MAX] = { false };
    size_t n_old = t->n_texts;
    ak_status status = AKUNU_OK;
    memcpy(old, t->texts, sizeof old);
    for (size_t i = 0; i < n; i++)
        is_continued[origin_of(n_old, from[i])] = true;
    for (size_t i = 0; i < n_old; i++)
        if (!is_continued[i])
            ak_session_kv_sequence_free(&t->s->kv, old[i]);
    for (t->n_texts = 0; t->n_texts < n && status == AKUNU_OK;) {
        size_t origin = origin_of(n_old, from[t->n_texts]);
        int32_t *text = &t->texts[t->n_texts];
        *text = old[origin];
        if (is_taken[origin])
            status = ak_session_fork(t->s, old[origin],
                                     ak_session_kv_sequence(&t->s->kv, old[origin])->length, text,
                                     error);
        is_taken[origin] = true;
        t->n_texts += status == AKUNU_OK;
    }
    for (size_t i = 0; i < n_old; i++) /* after a failure */
        if (is_continued[i] && !is_taken[i])
            ak_session_kv_sequence_free(&t->s->kv, old[i]);
    return status;
}

static ak_status step(void *user, size_t n, const uint32_t *from, const int32_t *tokens,
                      const float *const **logits, struct ak_error *error)
{
    struct transcriber *t = user;
    AK_TRY(report_progress(t, error));
    AK_TRY(fork_texts(t, n, from, error));
    for (size_t i = 0; i < n; i++)
        t->batch[i] = (struct akunu_batch_token){ .token = tokens[i],
                                                  .sequence = t->texts[i],
                                                  .logits = true };
    AK_TRY(ak_session_decode(t->s, t->batch, n, error));
    for (size_t i = 0; i < n; i++)
        t->rows[i] = ak_session_logits(t->s, i);
    *logits = t->rows;
    return AKUNU_OK;
}

/* The text of those tokens that are words. */
static ak_status get_text(void *user, const int32_t *tokens, size_t n, const char **out,
                          size_t *n_bytes, struct ak_error *error)
{
    struct transcriber *t = user;
    const struct ak_tokenizer *tokenizer = t->s->model->tokenizer;
    int32_t *words = ak_alloc(n, sizeof *words);
    size_t n_words = 0;
    if (!words)
        return ak_fail_memory(error, "a text", n * sizeof *words);
    for (size_t i = 0; i < n; i++)
        if (tokens[i] < t->tokens.end)
            words[n_words++] = tokens[i];
    ak_status status = ak_tok_decode(tokenizer, words, n_words, 0, NULL, 0, n_bytes, error);
    t->text.n = 0;
    if (status == AKUNU_OK)
        status = ak_buffer_reserve(&t->text, *n_bytes + 1, error);
    if (status == AKUNU_OK)
        status =
            ak_tok_decode(tokenizer, words, n_words, 0, t->text.bytes, *n_bytes, n_bytes, error);
    *out = t->text.bytes;
    ak_free(words);
    return status;
}

static ak_status score(void *user, const int32_t *tokens, size_t n, float *probabilities,
                       struct ak_speech_scores *scores, struct ak_error *error)
{
    struct transcriber *t = user;
    free_texts(t);
    return ak_transcribe_score(t->s, t->window, tokens, n, t->tokens.end, probabilities, scores,
                               error);
}

static bool report(void *user, const struct ak_speech_segment *segment)
{
    struct transcriber *t = user;
    struct akunu_segment found = { .id = t->n_segments++,
                                   .window = segment->window,
                                   .start = segment->start,
                                   .end = segment->end,
                                   .text = segment->n_bytes ? segment->text : "",
                                   .n_bytes = segment->n_bytes,
                                   .tokens = segment->tokens,
                                   .n_tokens = segment->n_tokens,
                                   .temperature = segment->temperature,
                                   .mean_log_prob = segment->mean_log_prob,
                                   .compression = segment->compression,
                                   .no_speech = segment->no_speech,
                                   .words = segment->words,
                                   .n_words = segment->n_words };
    t->no_memory = t->cut.audio && !ak_transcribe_cut_map(&t->cut, &found);
    if (t->no_memory)
        return false;
    return t->sink->on_segment(&found, t->sink->user);
}

/* ---- Setup -------------------------------------------------------------- */
static void close_transcriber(struct transcriber *t)
{
    free_texts(t);
    if (t->window >= 0)
        ak_session_kv_sequence_free(&t->s->kv, t->window);
    ak_clip_free(t->clip);
    ak_transcribe_cut_close(&t->cut);
    ak_mel_free(t->mel);
    ak_free(t->frames);
    ak_free(t->batch);
    ak_buffer_free(&t->text);
    ak_free(t->prompt);
    ak_free(t->prefix);
    ak_free(t->suppressed);
}

/* Of the first pass over the clip. */
static bool see_piece(void *user, const float *samples, size_t n)
{
    struct ak_error ignored = { 0 };
    (void)samples, (void)n;
    return report_progress(user, &ignored) == AKUNU_OK;
}

static ak_status open_transcriber(struct transcriber *t, struct ak_error *error)
{
    const struct ak_model *m = t->s->model;
    const struct ak_spec_config *config = &m->spec.config;
    t->window = -1;
    AK_TRY(ak_transcribe_mel(m, &t->mel, error));
    if (!m->tokenizer)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "the model has no vocabulary");
    if (2 * config->encoder_context != AK_SPEECH_WINDOW)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "the encoder has %u positions; transcribing needs %d",
                       config->encoder_context, AK_SPEECH_WINDOW / 2);
    AK_TRY(ak_speech_tokens_find(config->vocab_size, &t->tokens, error));
    size_t frames = (size_t)AK_SPEECH_WINDOW * config->n_mels;
    t->frames = ak_alloc(frames, sizeof *t->frames);
    t->batch = ak_alloc(ak_max_size(t->s->batch, AK_SPEECH_TEXTS_MAX), sizeof *t->batch);
    if (!t->frames || !t->batch)
        return ak_fail_memory(error, "a window", frames * sizeof *t->frames);
    return AKUNU_OK;
}

static ak_status open_clip(struct transcriber *t, struct ak_audio *audio, struct ak_error *error)
{
    AK_TRY(ak_clip_new(audio, t->mel, see_piece, t, &t->clip, error));
    t->n_frames = ak_clip_samples(t->clip) / AK_MEL_HOP;
    return AKUNU_OK;
}

/* Probabilities of the languages. */
static ak_status find_languages(struct transcriber *t, float *out, struct ak_error *error)
{
    const float *logits, *same;
    if (!t->tokens.multilingual)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "the model knows English alone");
    AK_TRY(encode_frames(t, 0, AK_SPEECH_WINDOW, error));
    AK_TRY(begin(t, &t->tokens.start, 1, 0, &logits, &same, error));
    double sum = 0.0;
    float max = -INFINITY;
    logits += t->tokens.first_language;
    for (int32_t i = 0; i < t->tokens.n_languages; i++)
        max = fmaxf(max, logits[i]);
    for (int32_t i = 0; i < t->tokens.n_languages; i++)
        sum += exp((double)(logits[i] - max));
    for (int32_t i = 0; i < t->tokens.n_languages; i++)
        out[i] = (float)(exp((double)(logits[i] - max)) / sum);
    return AKUNU_OK;
}

static ak_status choose_language(struct transcriber *t, const struct akunu_transcription *asked,
                                 int32_t *out, struct ak_error *error)
{
    float probabilities[128];
    bool detects = asked->language && strcmp(asked->language, "auto") == 0;
    *out = 0;
    if (asked->language && !detects) {
        *out = ak_speech_language_find(asked->language);
        if (*out < 0 || *out >= t->tokens.n_languages)
            return ak_fail(error, AKUNU_ERROR_ARGUMENT, "\"%.64s\" is no language of the model",
                           asked->language);
    }
    if (!t->tokens.multilingual && *out != 0)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "the model knows English alone, and the language is \"%.64s\"",
                       asked->language);
    if (!t->tokens.multilingual || !detects || !t->clip)
        return AKUNU_OK;
    AK_TRY(find_languages(t, probabilities, error));
    for (int32_t i = 1; i < t->tokens.n_languages; i++)
        if (probabilities[i] > probabilities[*out])
            *out = i;
    return AKUNU_OK;
}

/* Tokens of a text that precedes: a space and the text without those around it. */
static ak_status encode_prompt(const struct transcriber *t, const char *text, int32_t **out,
                               size_t *n, struct ak_error *error)
{
    struct ak_buffer spaced = { 0 };
    *n = 0;
    if (!text || !*text)
        return AKUNU_OK;
    size_t bytes = strlen(text);
    ak_speech_strip(&text, &bytes);
    AK_TRY(ak_buffer_reserve(&spaced, bytes + 1, error));
    spaced.bytes[0] = ' ';
    memcpy(spaced.bytes + 1, text, bytes);
    *out = ak_alloc(PROMPT_MAX, sizeof **out);
    ak_status status = *out ? ak_tok_encode(t->s->model->tokenizer, spaced.bytes, bytes + 1, 0,
                                            *out, PROMPT_MAX, n, error) :
                              ak_fail_memory(error, "a prompt", PROMPT_MAX * sizeof **out);
    ak_buffer_free(&spaced);
    if (status == AKUNU_OK && *n > PROMPT_MAX)
        status = ak_fail(error, AKUNU_ERROR_ARGUMENT, "a prompt of %zu tokens; at most %d", *n,
                         PROMPT_MAX);
    return status;
}

static size_t list_temperatures(const struct akunu_transcription *asked,
                                float out[TEMPERATURES_MAX])
{
    size_t n = 1;
    out[0] = asked->temperature;
    /* 1.0 + 1e-6: as openai/whisper counts them */
    for (; asked->temperature_step > 0.0f && n < TEMPERATURES_MAX; n++) {
        double next = (double)asked->temperature + (double)n * (double)asked->temperature_step;
        if (next >= 1.0 + 1e-6)
            break;
        out[n] = (float)next;
    }
    return n;
}

static uint64_t frames_of(uint32_t milliseconds)
{
    return (uint64_t)milliseconds * AK_SPEECH_FRAMES_PER_SECOND / 1000;
}

/* The part that is asked for, in frames of the clip. */
static void find_part(const struct akunu_transcription *asked, uint64_t *first, uint64_t *end)
{
    *first = frames_of(asked->offset_ms);
    *end = asked->duration_ms ? *first + frames_of(asked->duration_ms) : UINT64_MAX;
}

/* Opens the part's speech as the clip. */
static ak_status open_speech(struct transcriber *t, struct ak_audio *audio,
                             const struct akunu_transcription *asked,
                             const struct ak_transcribe_vad *vad, struct ak_error *error)
{
    uint64_t first, end;
    find_part(asked, &first, &end);
    AK_TRY(ak_transcribe_cut_open(audio, vad, first, end, t->sink, &t->cut, error));
    return t->cut.audio ? open_clip(t, t->cut.audio, error) : AKUNU_OK;
}

static ak_status run(struct transcriber *t, const struct akunu_transcription *asked,
                     int32_t *language, struct ak_error *error)
{
    float temperatures[TEMPERATURES_MAX];
    struct ak_speech_task task = {
        .tokens = &t->tokens,
        .context = t->s->model->spec.config.context,
        .translate = asked->translate,
        .timestamps = !asked->no_timestamps,
        .words = asked->word_times,
        .end = UINT64_MAX,
        .keep_prompt = asked->keep_prompt,
        .use_previous = asked->max_previous != 0,
        .previous_max = asked->max_previous > 0 ? (size_t)asked->max_previous : 0,
        .max_tokens = asked->max_tokens,
        .temperatures = temperatures,
        .n_temperatures = list_temperatures(asked, temperatures),
        .beams = asked->beams > 1 ? asked->beams : 0,
        .best_of = asked->best_of,
        .patience = asked->patience,
        .length_penalty = asked->length_penalty,
        .max_compression = asked->max_compression,
        .min_log_prob = asked->min_log_prob,
        .max_no_speech = asked->max_no_speech,
        .seed = asked->seed,
    };
    struct ak_speech_clip clip = { .user = t,
                                   .n_frames = t->n_frames,
                                   .encode = encode,
                                   .model = { t, begin, step },
                                   .text = get_text,
                                   .score = score };
    if (asked->translate && !t->tokens.multilingual)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "the model knows English alone, and translates nothing");
    AK_TRY(choose_language(t, asked, language, error));
    if (!t->clip)
        return AKUNU_OK;
    if (!t->cut.audio)
        find_part(asked, &task.first, &task.end);
    task.language = *language;
    AK_TRY(encode_prompt(t, asked->prompt, &t->prompt, &task.n_prompt, error));
    AK_TRY(encode_prompt(t, asked->prefix, &t->prefix, &task.n_prefix, error));
    task.prompt = t->prompt;
    task.prefix = t->prefix;
    AK_TRY(ak_transcribe_suppressed(t->s->model->tokenizer, &t->tokens, !asked->keep_symbols,
                                    &t->suppressed, &task.n_suppressed, error));
    task.suppressed = t->suppressed;
    AK_TRY(ak_transcribe_blank(t->s->model->tokenizer, &task.blank, error));
    ak_status status = ak_speech_transcribe(&clip, &task, report, t, error);
    return t->no_memory ? ak_fail_memory(error, "words", 0) : status;
}

ak_status ak_transcribe(struct ak_session *s, struct ak_audio *audio,
                        const struct akunu_transcription *asked,
                        const struct ak_transcribe_vad *vad, const struct ak_transcribe_sink *sink,
                        int32_t *language, struct ak_error *error)
{
    struct transcriber t = { .s = s, .sink = sink };
    ak_status status = open_transcriber(&t, error);
    if (status == AKUNU_OK)
        status =
            vad->silero ? open_speech(&t, audio, asked, vad, error) : open_clip(&t, audio, error);
    if (status == AKUNU_OK)
        status = run(&t, asked, language, error);
    close_transcriber(&t);
    return status;
}

ak_status ak_transcribe_languages(struct ak_session *s, struct ak_audio *audio, float *out,
                                  size_t n, struct ak_error *error)
{
    struct transcriber t = { .s = s };
    ak_status status = open_transcriber(&t, error);
    if (status == AKUNU_OK)
        status = open_clip(&t, audio, error);
    if (status == AKUNU_OK && n < (size_t)t.tokens.n_languages)
        status = ak_fail(error, AKUNU_ERROR_ARGUMENT, "room for %zu of %d languages", n,
                         (int)t.tokens.n_languages);
    if (status == AKUNU_OK)
        status = find_languages(&t, out, error);
    close_transcriber(&t);
    return status;
}
