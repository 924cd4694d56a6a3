/* POST /v1/audio/transcriptions and /v1/audio/translations, as OpenAI has them, and whisper.cpp's
 * /inference. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "apps/common/conversation.h"
#include "apps/common/json_text.h"
#include "apps/server/speech.h"

#ifdef HAVE_AK_AUDIO
enum { DECODES_FILES = 1 };
#else
enum { DECODES_FILES = 0 };
#endif

enum format { FORMAT_JSON, FORMAT_TEXT, FORMAT_SRT, FORMAT_VERBOSE, FORMAT_VTT, FORMATS };
static const char *const formats[FORMATS] = { "json", "text", "srt", "verbose_json", "vtt" };

/* What the request asks for beside the transcription. */
struct asked {
    enum format format;
    bool translate, stream, segments, words;
    bool has_begun; /* the stream has a text */
    bool is_broken; /* a part of it could not be written */
};

/* ---- Answers ------------------------------------------------------------ */
/* {"type": "duration", "seconds": …}: whole seconds, rounded up, as OpenAI counts them. */
static json_t *usage_of(const struct server_transcription *t)
{
    return json_pack("{s:s, s:I}", "type", "duration", "seconds",
                     (json_int_t)ceil(akunu_audio_seconds(t->audio)));
}

/* The whole text, stripped; NULL: out of memory. */
static json_t *whole_text(const struct server_transcription *t)
{
    size_t n;
    char *text = app_transcript_text(&t->transcript, &n);
    const char *stripped = text ? app_transcript_strip(text, &n) : NULL;
    json_t *value = text ? app_json_text(stripped, n) : NULL;
    free(text);
    return value;
}

/* English name of the text's language: "german". */
static const char *name_language(const struct server_transcription *t)
{
    const struct asked *own = t->own;
    const char *code = t->transcript.language;
    for (size_t i = 0; code && !own->translate && akunu_language_code(i); i++)
        if (strcmp(code, akunu_language_code(i)) == 0)
            return akunu_language_name(i);
    return "english";
}

/* The words of all segments in one list, as OpenAI has them: text without whitespace at its ends,
 * start and end. The segments lose theirs. */
static json_t *take_words(json_t *segments)
{
    json_t *words = json_array(), *segment, *word;
    size_t i, k;
    json_array_foreach (segments, i, segment) {
        json_array_foreach (json_object_get(segment, "words"), k, word) {
            const json_t *text = json_object_get(word, "word");
            size_t n = json_string_length(text);
            const char *stripped = app_transcript_strip(json_string_value(text), &n);
            json_array_append_new(words, json_pack("{s:s%, s:O, s:O}", "word", stripped, n, "start",
                                                   json_object_get(word, "start"), "end",
                                                   json_object_get(word, "end")));
        }
        json_object_del(segment, "words");
    }
    return words;
}

static json_t *verbose_of(const struct server_transcription *t)
{
    const struct asked *own = t->own;
    json_t *segments = app_transcript_segments(&t->transcript);
    json_t *words = own->words ? take_words(segments) : NULL;
    if (!own->segments) {
        json_decref(segments);
        segments = NULL;
    }
    return json_pack("{s:s, s:s, s:f, s:o, s:o*, s:o*, s:o}", "task",
                     own->translate ? "translate" : "transcribe", "language", name_language(t),
                     "duration", akunu_audio_seconds(t->audio), "text", whole_text(t), "words",
                     words, "segments", segments, "usage", usage_of(t));
}

static void answer_text(struct http_exchange *x, const char *text, size_t n)
{
    http_answer(x, 200, "text/plain; charset=utf-8", text, n);
}

/* Subtitles, as akunu-cli writes them to a file. */
static void answer_file(struct server_transcription *t, enum app_transcript_form form)
{
    char *text = NULL;
    size_t n = 0;
    struct app_output out = { .file = open_memstream(&text, &n) };
    if (out.file)
        app_transcript_write(&out, &t->transcript, form);
    bool good = out.file && fclose(out.file) == 0 && !out.error;
    if (good)
        answer_text(t->x, text, n);
    else
        server_fail_memory(t->x);
    free(text);
}

/* The text in one line. */
static void answer_line(struct server_transcription *t)
{
    json_t *text = whole_text(t);
    size_t n = json_string_length(text);
    char *line = text ? malloc(n + 1) : NULL;
    if (line) {
        memcpy(line, json_string_value(text), n);
        line[n] = '\n';
        answer_text(t->x, line, n + 1);
    } else {
        server_fail_memory(t->x);
    }
    free(line);
    json_decref(text);
}

/* ---- Failures ----------------------------------------------------------- */
static unsigned code_of(const struct server_transcription *t, const char **param)
{
    const struct asked *own = t->own;
    *param = NULL;
    switch (t->status) {
    case AKUNU_ERROR_FORMAT: *param = "file"; return 400;
    case AKUNU_ERROR_ARGUMENT: *param = own->translate ? "model" : "language"; return 400;
    case AKUNU_ERROR_MEMORY:
    case AKUNU_ERROR_CANCELLED: return 503;
    default: return 500;
    }
}

static void fail_transcription(struct server_transcription *t)
{
    const char *param,
        *message = t->is_late ? "the request took longer than --timeout" : t->message;
    unsigned code = code_of(t, &param);
    if (http_code(t->x) == 0) {
        server_fail(t->x, code, param, NULL, "%s", message);
        return;
    }
    server_sse_send(t->x, NULL, server_error(t->x, code, param, NULL, message));
    server_sse_close(t->x);
}

/* ---- Streams ------------------------------------------------------------ */
static void send_event(struct server_transcription *t, json_t *value)
{
    struct asked *own = t->own;
    if (own->is_broken) {
        json_decref(value);
    } else if (!server_sse_send(t->x, NULL, value)) {
        own->is_broken = true;
        t->is_cancelled = true;
    }
}

/* A segment is final when it comes, so that each is a delta. */
static void report_segments(struct server_transcription *t)
{
    struct asked *own = t->own;
    for (; !own->is_broken && t->n_sent < t->transcript.n; t->n_sent++) {
        const struct akunu_segment *s = &t->transcript.segments[t->n_sent].of;
        size_t n = s->n_bytes;
        const char *text = own->has_begun ? s->text : app_transcript_strip(s->text, &n);
        n = s->n_bytes - (size_t)(text - s->text); /* whitespace at the end stays */
        own->has_begun |= n > 0;
        if (n > 0)
            send_event(t, json_pack("{s:s, s:o}", "type", "transcript.text.delta", "delta",
                                    app_json_text(text, n)));
    }
}

static void end_stream(struct server_transcription *t)
{
    send_event(t, json_pack("{s:s, s:o, s:o}", "type", "transcript.text.done", "text",
                            whole_text(t), "usage", usage_of(t)));
    server_sse_close(t->x);
}

static void transcriptions_answer(struct server_transcription *t)
{
    const struct asked *own = t->own;
    if (own->stream && t->status == AKUNU_OK)
        report_segments(t);
    if (own->is_broken) {
        t->status = AKUNU_ERROR_MEMORY;
        snprintf(t->message, sizeof t->message, "out of memory");
    }
    if (t->status != AKUNU_OK)
        fail_transcription(t);
    else if (own->stream)
        end_stream(t);
    else if (own->format == FORMAT_SRT || own->format == FORMAT_VTT)
        answer_file(t, own->format == FORMAT_SRT ? APP_TRANSCRIPT_SRT : APP_TRANSCRIPT_VTT);
    else if (own->format == FORMAT_TEXT)
        answer_line(t);
    else if (own->format == FORMAT_VERBOSE)
        server_answer(t->x, 200, verbose_of(t));
    else
        server_answer(t->x, 200,
                      json_pack("{s:o, s:o}", "text", whole_text(t), "usage", usage_of(t)));
}

/* ---- The request -------------------------------------------------------- */
static bool read_format(struct http_exchange *x, const json_t *form, struct asked *out)
{
    const json_t *found = json_object_get(form, "response_format");
    const char *text = json_string_value(found);
    while (text && out->format < FORMATS && strcmp(text, formats[out->format]) != 0)
        out->format++;
    if ((found && !text) || out->format == FORMATS) {
        server_fail_member(x, "response_format", found, "json, text, srt, verbose_json or vtt");
        return false;
    }
    if (out->stream && out->format != FORMAT_JSON && out->format != FORMAT_TEXT) {
        server_fail(x, 400, "stream", NULL,
                    "stream is true, and response_format is %s; a stream is expected with json or "
                    "text",
                    formats[out->format]);
        return false;
    }
    return true;
}

/* Members that may be a list of texts, or one text. */
static bool is_listed(const json_t *found, const char *word)
{
    const json_t *one;
    size_t i;
    if (json_is_string(found))
        return strcmp(json_string_value(found), word) == 0;
    json_array_foreach ((json_t *)(uintptr_t)found, i, one)
        if (strcmp(json_string_value(one), word) == 0)
            return true;
    return false;
}

static bool read_granularities(struct http_exchange *x, const json_t *form, struct asked *out)
{
    static const char name[] = "timestamp_granularities";
    const json_t *found = json_object_get(form, name);
    size_t n = json_is_array(found) ? json_array_size(found) : 1, n_known;
    out->segments = !found || is_listed(found, "segment");
    out->words = found && is_listed(found, "word");
    n_known = (size_t)(found && out->segments) + (size_t)out->words;
    if (found && n != n_known)
        server_fail_member(x, name, json_is_array(found) ? json_array_get(found, n - 1) : found,
                           "segment, word or both, each once");
    else if (found && out->format != FORMAT_VERBOSE)
        server_fail(x, 400, name, NULL,
                    "timestamp_granularities goes with response_format verbose_json, not %s",
                    formats[out->format]);
    return http_code(x) == 0;
}

/* What OpenAI's API has and Whisper's models do not. */
static bool check_others(struct http_exchange *x, const json_t *form)
{
    static const char *const refused[] = { "include", "known_speaker_names",
                                           "known_speaker_references" };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (json_object_get(form, refused[i])) {
            server_fail(x, 400, refused[i], NULL, "%s is not supported by speech models of Whisper",
                        refused[i]);
            return false;
        }
    return true;
}

/* A code or a name. */
static bool read_language(struct http_exchange *x, const json_t *form, const char **out)
{
    const json_t *found = json_object_get(form, "language");
    const char *text = json_string_value(found);
    bool detects = !found || (text && (!*text || strcasecmp(text, "auto") == 0));
    *out = detects ? "auto" : text ? akunu_language_find(text) : NULL;
    if (!*out)
        server_fail_member(x, "language", found, "a language as ISO 639-1 has it, such as de");
    return *out != NULL;
}

static bool read_transcription(struct server_model *m, struct http_exchange *x, const json_t *form,
                               struct akunu_transcription_params *params,
                               struct akunu_vad_params *vad, struct asked *out)
{
    double temperature, step, audio_context, context_max = m->loaded.info.encoder_context;
    *params = m->options->transcription;
    if (m->options->speech.no_fallback)
        params->temperature_step = 0.0f;
    temperature = (double)params->temperature;
    step = (double)params->temperature_step;
    audio_context = (double)params->audio_context;
    if (!server_form_get_bool(x, form, "stream", &out->stream) || !read_format(x, form, out) ||
        !read_granularities(x, form, out) || !check_others(x, form) ||
        !server_read_vad(m, x, form, &params->vad, vad) ||
        !read_language(x, form, &params->language) ||
        !server_get_string(x, form, "prompt", &params->prompt) ||
        !server_form_get_bool(x, form, "translate", &out->translate) ||
        !server_form_get_real(x, form, "temperature", 0.0, 1.0, &temperature) ||
        !server_form_get_real(x, form, "temperature_inc", 0.0, 1.0, &step) ||
        !server_form_get_real(x, form, "audio_ctx", 0.0, context_max, &audio_context))
        return false;
    params->audio_context = (uint32_t)audio_context;
    params->word_times = out->words;
    params->translate = out->translate;
    params->temperature = (float)temperature;
    params->temperature_step = (float)step;
    return true;
}

/* ---- The clip ----------------------------------------------------------- */
static void fail_clip(struct http_exchange *x)
{
    if (akunu_last_status() == AKUNU_ERROR_IO)
        server_fail(x, 503, NULL, NULL, "%s", akunu_last_error());
    else if (!DECODES_FILES)
        server_fail(x, 501, NULL, NULL, "%s", akunu_last_error());
    else
        server_fail_library(x, "file");
}

/* The clip is on disk until its turn, so that a long queue takes no memory. NULL: it has
 * answered. */
static struct akunu_audio *read_clip(struct http_exchange *x, const json_t *form)
{
    const json_t *file = json_object_get(form, "file");
    const char *name = json_string_value(json_object_get(file, "name"));
    size_t n = (size_t)json_integer_value(json_object_get(file, "n")), n_body;
    const char *body = http_body(x, &n_body) + json_integer_value(json_object_get(file, "at"));
    if (!app_json_is_object(file)) {
        server_fail_member(x, "file", file, "a part with an audio file");
        return NULL;
    }
    struct akunu_audio *audio = akunu_audio_open_bytes(body, n, name && *name ? name : "file");
    if (!audio)
        fail_clip(x);
    return audio;
}

/* translates: what a form means that does not say. */
static struct server_commit transcribe(struct server_model *m, struct http_exchange *x,
                                       const json_t *form, bool translates)
{
    struct akunu_transcription_params params;
    struct akunu_vad_params vad;
    struct asked asked = { .translate = translates }, *own;
    if (!read_transcription(m, x, form, &params, &vad, &asked))
        return server_answered;
    struct akunu_audio *audio = read_clip(x, form);
    if (!audio)
        return server_answered;
    own = malloc(sizeof *own);
    struct server_transcription *t = own ? server_transcription_new(m, x, audio, own) : NULL;
    if (!own) {
        akunu_audio_free(audio);
        server_fail_memory(x);
    }
    if (!t)
        return server_answered;
    *own = asked;
    t->params = params;
    t->vad = vad;
    t->params.vad_params = &t->vad;
    t->transcript.has_words = asked.words;
    t->form = json_incref((json_t *)(uintptr_t)form);
    t->report = asked.stream ? report_segments : NULL;
    t->answer = transcriptions_answer;
    return server_transcription_commit(t);
}

struct server_commit server_transcriptions(struct server_model *m, struct http_exchange *x,
                                           const json_t *form)
{
    return transcribe(m, x, form, false);
}

struct server_commit server_translations(struct server_model *m, struct http_exchange *x,
                                         const json_t *form)
{
    return transcribe(m, x, form, true);
}
