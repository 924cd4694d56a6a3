/* Languages, prompts and temperatures of a transcription. */
#include "speech/transcribe/plan.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/buffer.h"
#include "base/mem.h"
#include "speech/search/text.h"
#include "speech/transcribe/suppress.h"

enum { PROMPT_MAX = 1 << 16 };

static ak_status read_language(const struct ak_speech_tokens *tokens,
                               const struct akunu_transcription_params *asked,
                               struct ak_transcribe_plan *plan, struct ak_error *error)
{
    const char *name = asked->language;
    bool detects = name && strcasecmp(name, "auto") == 0;
    int32_t *out = &plan->task.language;
    if (asked->translate && !tokens->multilingual)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "the model knows English alone, and translates nothing");
    *out = name && !detects ? ak_speech_language_find(name) : 0;
    if (*out < 0 || *out >= tokens->n_languages)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "\"%.64s\" is no language of the model", name);
    if (!tokens->multilingual && *out != 0)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "the model knows English alone, and the language is \"%.64s\"", name);
    plan->detects_language = detects && tokens->multilingual;
    return AKUNU_OK;
}

/* Tokens of a text that precedes: a space and the text without those around it. */
static ak_status encode_prompt(const struct ak_tokenizer *tokenizer, const char *text,
                               int32_t **out, size_t *n, struct ak_error *error)
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
    ak_status status =
        *out ? ak_tok_encode(tokenizer, spaced.bytes, bytes + 1, 0, *out, PROMPT_MAX, n, error) :
               ak_fail_memory(error, "a prompt", PROMPT_MAX * sizeof **out);
    ak_buffer_free(&spaced);
    if (status == AKUNU_OK && *n > PROMPT_MAX)
        status = ak_fail(error, AKUNU_ERROR_ARGUMENT, "a prompt of %zu tokens; at most %d", *n,
                         PROMPT_MAX);
    return status;
}

static size_t list_temperatures(const struct akunu_transcription_params *asked, float *out)
{
    size_t n = 1;
    out[0] = asked->temperature;
    /* 1.0 + 1e-6: as openai/whisper counts them */
    for (; asked->temperature_step > 0.0f && n < AK_TRANSCRIBE_TEMPERATURES_MAX; n++) {
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

ak_status ak_transcribe_plan_make(const struct ak_model *m, const struct ak_speech_tokens *tokens,
                                  const struct akunu_transcription_params *asked,
                                  struct ak_transcribe_plan *plan, struct ak_error *error)
{
    struct ak_speech_task *task = &plan->task;
    *task = (struct ak_speech_task){
        .tokens = tokens,
        .context = m->spec.config.context,
        .translate = asked->translate,
        .timestamps = !asked->no_timestamps,
        .words = asked->word_times || !isnan(asked->hallucination_silence),
        .first = frames_of(asked->offset_ms),
        .end = asked->duration_ms ? frames_of(asked->offset_ms) + frames_of(asked->duration_ms) :
                                    UINT64_MAX,
        .keep_prompt = asked->keep_prompt,
        .use_previous = asked->max_previous != 0,
        .previous_max = asked->max_previous > 0 ? (size_t)asked->max_previous : 0,
        .max_tokens = asked->max_tokens,
        .temperatures = plan->temperatures,
        .n_temperatures = list_temperatures(asked, plan->temperatures),
        .beams = asked->beams > 1 ? asked->beams : 0,
        .best_of = asked->best_of,
        .patience = asked->patience,
        .length_penalty = asked->length_penalty,
        .max_compression = asked->max_compression,
        .min_log_prob = asked->min_log_prob,
        .max_no_speech = asked->max_no_speech,
        .hallucination_silence = asked->hallucination_silence,
        .seed = asked->seed,
    };
    if (asked->grammar)
        plan->grammar = ak_grammar_ref(asked->grammar->inner);
    plan->grammar_penalty = asked->grammar_penalty;
    if (asked->hallucination_silence < 0.0f)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "hallucination_silence is %g; expected at least 0 seconds",
                       (double)asked->hallucination_silence);
    plan->audio_context = asked->audio_context;
    if (asked->audio_context > m->spec.config.encoder_context)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "an audio context of %u positions; the encoder of this model has %u",
                       (unsigned)asked->audio_context, (unsigned)m->spec.config.encoder_context);
    AK_TRY(read_language(tokens, asked, plan, error));
    AK_TRY(encode_prompt(m->tokenizer, asked->prompt, &plan->prompt, &task->n_prompt, error));
    AK_TRY(encode_prompt(m->tokenizer, asked->prefix, &plan->prefix, &task->n_prefix, error));
    AK_TRY(encode_prompt(m->tokenizer, asked->hotwords, &plan->hotwords, &task->n_hotwords, error));
    AK_TRY(ak_transcribe_suppressed(m->tokenizer, tokens, !asked->keep_symbols, &plan->suppressed,
                                    &task->n_suppressed, error));
    task->prompt = plan->prompt;
    task->prefix = plan->prefix;
    task->hotwords = plan->hotwords;
    task->suppressed = plan->suppressed;
    return ak_transcribe_blank(m->tokenizer, &task->blank, error);
}

void ak_transcribe_plan_free(struct ak_transcribe_plan *plan)
{
    ak_free(plan->prompt);
    ak_free(plan->prefix);
    ak_free(plan->hotwords);
    ak_free(plan->suppressed);
    ak_grammar_free(plan->grammar);
    *plan = (struct ak_transcribe_plan){ 0 };
}
