/* Temperatures of a window, and which text stays. */
#include "speech/search/window.h"

#include <zlib.h>

#include "base/gumbel.h"
#include "base/mem.h"
#include "speech/search/text.h"

enum { LATEST_START = AK_SPEECH_TIMES_PER_SECOND /* a window's first time is at most 1 s */ };

struct attempts {
    const struct ak_speech_clip *clip;
    const struct ak_speech_task *task;
    const struct ak_speech_prompt *prompt;
    struct ak_speech_rules rules;
    uint64_t window, seed; /* its first frame; of the window */
    struct ak_error *error;
};

/* ---- Repetition --------------------------------------------------------- */
static ak_status compress_text(const char *text, size_t n, double *out, struct ak_error *error)
{
    uLongf size = compressBound((uLong)n);
    Bytef *packed = ak_alloc(size, 1);
    if (!packed)
        return ak_fail_memory(error, "a text", size);
    compress(packed, &size, (const Bytef *)text, (uLong)n);
    ak_free(packed);
    *out = (double)n / (double)size;
    return AKUNU_OK;
}

/* How much zlib makes of the text of tokens, as openai/whisper measures repetition: special tokens
 * count, times do not. */
static ak_status compression_ratio(const struct attempts *a, const int32_t *tokens, size_t n_tokens,
                                   double *out)
{
    struct ak_buffer utf8 = { 0 };
    const char *text;
    size_t n;
    AK_TRY(ak_speech_spell(a->clip, tokens, n_tokens, a->task->tokens->first_time, &text, &n,
                           a->error));
    ak_status status = ak_speech_add_utf8(&utf8, text, n, a->error);
    text = utf8.bytes;
    n = utf8.n;
    ak_speech_strip(&text, &n);
    if (status == AKUNU_OK)
        status = compress_text(text, n, out, a->error);
    ak_buffer_free(&utf8);
    return status;
}

/* The break of the clip, from 0 on, before which the text from token i on is said: that of the
 * middle between the time before it and the one after it. */
static size_t find_break(const struct attempts *a, const struct ak_speech_text *text, size_t i)
{
    int32_t first_time = a->task->tokens->first_time, start = 0, end;
    size_t next = i, found = 0;
    if (i > 0)
        start = text->tokens[i - 1] - first_time;
    while (next < text->n && text->tokens[next] < first_time)
        next++;
    end = next < text->n ? text->tokens[next] - first_time : start + AK_SPEECH_TIMES_PER_SECOND;
    uint64_t middle = a->window + (uint64_t)(start + end) * AK_SPEECH_FRAMES_PER_SECOND /
                                      (2 * AK_SPEECH_TIMES_PER_SECOND);
    while (found < a->clip->n_breaks && a->clip->breaks[found] <= middle)
        found++;
    return found;
}

/* Measures the whole text, and what is said between breaks. */
static ak_status measure_compression(const struct attempts *a, struct ak_speech_result *r)
{
    const struct ak_speech_text *text = &r->text;
    size_t first = 0, at_break = 0;
    AK_TRY(compression_ratio(a, text->tokens, text->n, &r->compression));
    r->repetition = a->clip->n_breaks > 0 ? 0.0 : r->compression;
    for (size_t i = 0; a->clip->n_breaks > 0 && i <= text->n; i++) {
        bool begins = i < text->n && text->tokens[i] < a->task->tokens->first_time &&
                      (i == 0 || text->tokens[i - 1] >= a->task->tokens->first_time);
        size_t before = begins ? find_break(a, text, i) : at_break;
        if (i < text->n && before == at_break)
            continue;
        double part;
        AK_TRY(compression_ratio(a, text->tokens + first, i - first, &part));
        r->repetition = part > r->repetition ? part : r->repetition;
        first = i;
        at_break = before;
    }
    return AKUNU_OK;
}

/* ---- Attempts ----------------------------------------------------------- */
static ak_status decode_at(const struct attempts *a, size_t attempt, struct ak_speech_result *r)
{
    const struct ak_speech_task *task = a->task;
    float temperature = task->temperatures[attempt];
    struct ak_speech_search search = { .prompt = a->prompt->tokens,
                                       .n_prompt = a->prompt->n,
                                       .start = a->prompt->start,
                                       .rules = &a->rules,
                                       .constraint = a->clip->constraint,
                                       .n_texts = 1,
                                       .patience = task->patience,
                                       .length_penalty = task->length_penalty,
                                       .temperature = temperature,
                                       .seed = ak_gumbel_stream(a->seed, attempt) };
    if (temperature > 0.0f && task->best_of > 0)
        search.n_texts = task->best_of;
    search.beams = temperature <= 0.0f && task->beams > 0;
    if (search.beams)
        search.n_texts = task->beams;
    size_t room = task->context + 1 - search.n_prompt;
    search.max_tokens = task->max_tokens > 0 ? task->max_tokens : task->context / 2;
    if (search.max_tokens > room)
        search.max_tokens = (uint32_t)room;
    AK_TRY(ak_speech_decode(&a->clip->model, &search, &r->text, a->error));
    r->temperature = temperature;
    return measure_compression(a, r);
}

static bool repeats(const struct ak_speech_task *task, const struct ak_speech_result *r)
{
    return r->repetition > (double)task->max_compression;
}

/* Was the window decoded badly? Silence may be. */
static bool needs_fallback(const struct ak_speech_task *task, const struct ak_speech_result *r)
{
    bool unlikely = r->text.mean_log_prob < (double)task->min_log_prob;
    if (r->text.no_speech > (double)task->max_no_speech && unlikely)
        return false;
    return repeats(task, r) || unlikely;
}

/* Of two texts that were decoded badly, one that does not repeat itself is better than one that
 * does, and else the more probable one. If even the warmest texts repeat themselves, so does the
 * speaker. */
static bool is_better(const struct ak_speech_task *task, const struct ak_speech_result *a,
                      const struct ak_speech_result *b)
{
    if (repeats(task, a) != repeats(task, b))
        return !repeats(task, a);
    return a->text.mean_log_prob > b->text.mean_log_prob;
}

/* openai/whisper takes the last text if none is good, as a rule the least probable one. */
ak_status ak_speech_decode_window(const struct ak_speech_clip *clip,
                                  const struct ak_speech_task *task, uint64_t window,
                                  const struct ak_speech_prompt *prompt,
                                  struct ak_speech_result *out, struct ak_error *error)
{
    const struct attempts attempts = {
        .clip = clip,
        .task = task,
        .prompt = prompt,
        .rules = { .tokens = task->tokens,
                   .timestamps = task->timestamps,
                   .latest_start = LATEST_START,
                   .blank = task->blank,
                   .suppressed = task->suppressed,
                   .n_suppressed = task->n_suppressed },
        .window = window,
        .seed = ak_gumbel_stream(task->seed, clip->origin + window),
        .error = error,
    };
    bool good = false;
    *out = (struct ak_speech_result){ .compression = 0.0 };
    for (size_t i = 0; i < task->n_temperatures && !good; i++) {
        struct ak_speech_result tried = { .compression = 0.0 };
        ak_status status = decode_at(&attempts, i, &tried);
        good = status == AKUNU_OK && !needs_fallback(task, &tried);
        if (status == AKUNU_OK && (good || i == 0 || is_better(task, &tried, out))) {
            struct ak_speech_result before = *out;
            *out = tried;
            tried = before;
        }
        ak_speech_text_free(&tried.text);
        out->last_temperature = task->temperatures[i];
        AK_TRY(status);
    }
    return AKUNU_OK;
}
