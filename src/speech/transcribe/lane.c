/* What a lane asks of the session runs in the thread of the call; the rest in its own. */
#include "speech/transcribe/lane.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "speech/transcribe/score.h"

ak_status ak_lane_open(struct ak_lane *lane, struct ak_meeting *meeting, struct ak_session *s,
                       const struct ak_speech_tokens *tokens, struct ak_error *error)
{
    const struct ak_spec_config *config = &s->model->spec.config;
    size_t frames = (size_t)AK_SPEECH_WINDOW * config->n_mels;
    *lane = (struct ak_lane){ .meeting = meeting, .s = s, .tokens = tokens, .window = -1 };
    lane->frames = ak_alloc(frames, sizeof *lane->frames);
    lane->batch = ak_alloc(s->batch, sizeof *lane->batch);
    lane->rows = ak_alloc(s->batch, sizeof *lane->rows);
    if (!lane->frames || !lane->batch || !lane->rows)
        return ak_fail_memory(error, "a window", frames * sizeof *lane->frames);
    return AKUNU_OK;
}

static void free_texts(struct ak_lane *lane)
{
    for (size_t i = 0; i < lane->n_texts; i++)
        ak_session_kv_sequence_free(&lane->s->kv, lane->texts[i]);
    lane->n_texts = 0;
}

void ak_lane_close(struct ak_lane *lane)
{
    if (lane->s) {
        free_texts(lane);
        if (lane->window >= 0)
            ak_session_kv_sequence_free(&lane->s->kv, lane->window);
    }
    ak_free(lane->frames);
    ak_free(lane->batch);
    ak_free(lane->rows);
    ak_buffer_free(&lane->text);
    *lane = (struct ak_lane){ .window = -1 };
}

static ak_status begin_pass(const struct ak_lane *lane, struct ak_error *error)
{
    return lane->on_pass ? lane->on_pass(lane->user, lane->first, error) : AKUNU_OK;
}

/* ---- Windows ------------------------------------------------------------ */
static ak_status encode_frames(void *user, struct ak_error *error)
{
    struct ak_lane *lane = user;
    free_texts(lane);
    AK_TRY(begin_pass(lane, error));
    if (lane->window < 0)
        AK_TRY(ak_session_sequence_new(lane->s, &lane->window, error));
    AK_TRY(ak_session_rewind(lane->s, lane->window, 0, error));
    return ak_session_encode(lane->s, lane->frames, lane->window, lane->audio_context, false,
                             error);
}

/* Frames [first, first + n) of the clip and zeros. Reading them takes a while: other lanes go on.
 */
static ak_status lane_encode(void *user, uint64_t first, uint32_t n, struct ak_error *error)
{
    struct ak_lane *lane = user;
    size_t n_mels = lane->s->model->spec.config.n_mels;
    ak_meeting_leave(lane->meeting);
    ak_status status = ak_clip_window(lane->clip, first, n, lane->frames, error);
    memset(lane->frames + n * n_mels, 0, (AK_SPEECH_WINDOW - n) * n_mels * sizeof *lane->frames);
    lane->first = first;
    ak_meeting_join(lane->meeting);
    return status == AKUNU_OK ? ak_meeting_use(lane->meeting, encode_frames, lane, error) : status;
}

/* ---- Texts -------------------------------------------------------------- */
struct beginning {
    struct ak_lane *lane;
    const int32_t *prompt;
    size_t n, start;
};

static ak_status prepare_beginning(void *user, struct ak_error *error)
{
    const struct beginning *b = user;
    struct ak_lane *lane = b->lane;
    free_texts(lane);
    AK_TRY(begin_pass(lane, error));
    AK_TRY(ak_session_sequence_new(lane->s, &lane->texts[0], error));
    lane->n_texts = 1;
    for (size_t i = 0; i < b->n; i++)
        lane->batch[i] = (struct akunu_batch_token){ .token = b->prompt[i],
                                                     .sequence = lane->texts[0],
                                                     .logits = i == b->start || i + 1 == b->n };
    return ak_session_attend(lane->s, lane->texts[0], lane->window, error);
}

static ak_status lane_begin(void *user, const int32_t *prompt, size_t n, size_t start,
                            const float **last, const float **at, struct ak_error *error)
{
    struct ak_lane *lane = user;
    struct beginning beginning = { lane, prompt, n, start };
    struct ak_meeting_pass pass = { prepare_beginning, &beginning, lane->batch, n, lane->rows };
    AK_TRY(ak_meeting_decode(lane->meeting, &pass, error));
    *last = lane->rows[n - 1];
    *at = lane->rows[start];
    return AKUNU_OK;
}

/* After the prompt all texts are the first one. */
static size_t origin_of(size_t n_texts, uint32_t text)
{
    return n_texts == 1 ? 0 : text;
}

/* Gives each text a sequence: the first that continues an old one takes it over, further ones
 * fork. */
static ak_status fork_texts(struct ak_lane *lane, size_t n, const uint32_t *from,
                            struct ak_error *error)
{
    struct ak_session *s = lane->s;
    int32_t old[AK_SPEECH_TEXTS_MAX];
    bool is_continued[AK_SPEECH_TEXTS_MAX] = { false }, is_taken[AK_SPEECH_TEXTS_MAX] = { false };
    size_t n_old = lane->n_texts;
    ak_status status = AKUNU_OK;
    memcpy(old, lane->texts, sizeof old);
    for (size_t i = 0; i < n; i++)
        is_continued[origin_of(n_old, from[i])] = true;
    for (size_t i = 0; i < n_old; i++)
        if (!is_continued[i])
            ak_session_kv_sequence_free(&s->kv, old[i]);
    for (lane->n_texts = 0; lane->n_texts < n && status == AKUNU_OK;) {
        size_t origin = origin_of(n_old, from[lane->n_texts]);
        int32_t *text = &lane->texts[lane->n_texts];
        *text = old[origin];
        if (is_taken[origin])
            status = ak_session_fork(
                s, old[origin], ak_session_kv_sequence(&s->kv, old[origin])->length, text, error);
        is_taken[origin] = true;
        lane->n_texts += status == AKUNU_OK;
    }
    for (size_t i = 0; i < n_old; i++) /* after a failure */
        if (is_continued[i] && !is_taken[i])
            ak_session_kv_sequence_free(&s->kv, old[i]);
    return status;
}

struct next {
    struct ak_lane *lane;
    size_t n;
    const uint32_t *from;
    const int32_t *tokens;
};

static ak_status prepare_next(void *user, struct ak_error *error)
{
    const struct next *next = user;
    struct ak_lane *lane = next->lane;
    AK_TRY(begin_pass(lane, error));
    AK_TRY(fork_texts(lane, next->n, next->from, error));
    for (size_t i = 0; i < next->n; i++)
        lane->batch[i] = (struct akunu_batch_token){ .token = next->tokens[i],
                                                     .sequence = lane->texts[i],
                                                     .logits = true };
    return AKUNU_OK;
}

static ak_status step(void *user, size_t n, const uint32_t *from, const int32_t *tokens,
                      const float *const **logits, struct ak_error *error)
{
    struct ak_lane *lane = user;
    struct next next = { lane, n, from, tokens };
    struct ak_meeting_pass pass = { prepare_next, &next, lane->batch, n, lane->rows };
    AK_TRY(ak_meeting_decode(lane->meeting, &pass, error));
    *logits = lane->rows;
    return AKUNU_OK;
}

/* The text of those tokens that are words: others need not be in the vocabulary. */
static ak_status get_text(void *user, const int32_t *tokens, size_t n, const char **out,
                          size_t *n_bytes, struct ak_error *error)
{
    struct ak_lane *lane = user;
    const struct ak_tokenizer *tokenizer = lane->s->model->tokenizer;
    int32_t *words = ak_alloc(n, sizeof *words);
    size_t n_words = 0;
    if (!words)
        return ak_fail_memory(error, "a text", n * sizeof *words);
    for (size_t i = 0; i < n; i++)
        if (tokens[i] < lane->tokens->end)
            words[n_words++] = tokens[i];
    ak_status status = ak_tok_decode(tokenizer, words, n_words, 0, NULL, 0, n_bytes, error);
    if (status == AKUNU_OK)
        status = ak_buffer_reserve(&lane->text, *n_bytes + 1, error);
    if (status == AKUNU_OK)
        status =
            ak_tok_decode(tokenizer, words, n_words, 0, lane->text.bytes, *n_bytes, n_bytes, error);
    *out = lane->text.bytes;
    ak_free(words);
    return status;
}

/* ---- Scores ------------------------------------------------------------- */
struct scoring {
    struct ak_lane *lane;
    const int32_t *tokens;
    size_t n;
    float *probabilities;
    struct ak_speech_scores *scores;
};

static ak_status run_scoring(void *user, struct ak_error *error)
{
    const struct scoring *r = user;
    free_texts(r->lane);
    AK_TRY(begin_pass(r->lane, error));
    return ak_transcribe_score(r->lane->s, r->lane->window, r->tokens, r->n, r->lane->tokens->end,
                               r->probabilities, r->scores, error);
}

static ak_status score(void *user, const int32_t *tokens, size_t n, float *probabilities,
                       struct ak_speech_scores *scores, struct ak_error *error)
{
    struct ak_lane *lane = user;
    struct scoring scoring = { lane, tokens, n, probabilities, scores };
    return ak_meeting_use(lane->meeting, run_scoring, &scoring, error);
}

struct ak_speech_clip ak_lane_clip(struct ak_lane *lane)
{
    return (struct ak_speech_clip){ .user = lane,
                                    .n_frames = ak_clip_samples(lane->clip) / AK_MEL_HOP,
                                    .encode = lane_encode,
                                    .model = { lane, lane_begin, step },
                                    .text = get_text,
                                    .score = score };
}

/* ---- Languages ---------------------------------------------------------- */
static ak_status find_languages(struct ak_lane *lane, const float **logits, struct ak_error *error)
{
    const float *same;
    AK_TRY(lane_encode(lane, 0, AK_SPEECH_WINDOW, error));
    return lane_begin(lane, &lane->tokens->start, 1, 0, logits, &same, error);
}

ak_status ak_lane_languages(struct ak_lane *lane, float *out, struct ak_error *error)
{
    const struct ak_speech_tokens *tokens = lane->tokens;
    const float *logits;
    ak_meeting_join(lane->meeting);
    ak_status status = find_languages(lane, &logits, error);
    if (status == AKUNU_OK) {
        double sum = 0.0;
        float max = -INFINITY;
        logits += tokens->first_language;
        for (int32_t i = 0; i < tokens->n_languages; i++)
            max = fmaxf(max, logits[i]);
        for (int32_t i = 0; i < tokens->n_languages; i++)
            sum += exp((double)(logits[i] - max));
        for (int32_t i = 0; i < tokens->n_languages; i++)
            out[i] = (float)(exp((double)(logits[i] - max)) / sum);
    }
    ak_meeting_leave(lane->meeting);
    return status;
}
