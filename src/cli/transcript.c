/* Writes transcripts. */
#include "cli/transcript.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *cli_transcript_extension(enum cli_transcript_form form)
{
    static const char *const extensions[CLI_TRANSCRIPT_FORMS] = { "txt", "vtt", "srt",
                                                                  "csv", "lrc", "json" };
    return extensions[form];
}

/* A copy with a NUL after it; NULL: out of memory. */
static void *copy(const void *from, size_t n)
{
    char *to = malloc(n + 1);
    if (!to)
        return NULL;
    if (n > 0)
        memcpy(to, from, n);
    to[n] = '\0';
    return to;
}

static void free_segment(struct cli_segment *s)
{
    for (size_t i = 0; i < s->n_words; i++)
        free(s->words[i].text);
    free(s->words);
    free(s->text);
    free(s->tokens);
}

static bool copy_words(struct cli_segment *s)
{
    s->words = calloc(s->of.n_words + 1, sizeof *s->words);
    for (; s->words && s->n_words < s->of.n_words; s->n_words++) {
        struct cli_word *to = &s->words[s->n_words];
        to->of = s->of.words[s->n_words];
        to->text = copy(to->of.text, to->of.n_bytes);
        to->of.text = to->text;
        if (!to->text)
            return false;
    }
    s->of.words = NULL;
    return s->words != NULL;
}

bool cli_transcript_add(struct cli_transcript *t, const struct akunu_segment *segment)
{
    if (t->n == t->capacity) {
        size_t capacity = t->capacity ? 2 * t->capacity : 64;
        struct cli_segment *grown = realloc(t->segments, capacity * sizeof *grown);
        if (!grown)
            return false;
        t->segments = grown;
        t->capacity = capacity;
    }
    struct cli_segment new = { .of = *segment };
    new.of.text = new.text = copy(segment->text, segment->n_bytes);
    new.of.tokens = new.tokens = copy(segment->tokens, segment->n_tokens * sizeof *new.tokens);
    if (!new.text || !new.tokens || !copy_words(&new)) {
        free_segment(&new);
        return false;
    }
    t->segments[t->n++] = new;
    return true;
}

void cli_transcript_free(struct cli_transcript *t)
{
    for (size_t i = 0; i < t->n; i++)
        free_segment(&t->segments[i]);
    free(t->segments);
    *t = (struct cli_transcript){ 0 };
}

/* ---- Times and texts ---------------------------------------------------- */
enum { TIME_BYTES = 32 };

/* "01:02:03.456", with another mark before the milliseconds for SubRip. */
static const char *format_time(double seconds, char mark, char out[TIME_BYTES])
{
    unsigned long long ms = seconds > 0.0 ? (unsigned long long)llround(seconds * 1000.0) : 0;
    snprintf(out, TIME_BYTES, "%02llu:%02llu:%02llu%c%03llu", ms / 3600000, ms / 60000 % 60,
             ms / 1000 % 60, mark, ms % 1000);
    return out;
}

/* "02:03.45" */
static const char *format_lyrics_time(double seconds, char out[TIME_BYTES])
{
    unsigned long long cs = seconds > 0.0 ? (unsigned long long)llround(seconds * 100.0) : 0;
    snprintf(out, TIME_BYTES, "%02llu:%02llu.%02llu", cs / 6000, cs / 100 % 60, cs % 100);
    return out;
}

const char *cli_transcript_strip(const char *text, size_t *n)
{
    while (*n > 0 && (*text == ' ' || (*text >= '\t' && *text <= '\r'))) {
        text++;
        --*n;
    }
    while (*n > 0 && (text[*n - 1] == ' ' || (text[*n - 1] >= '\t' && text[*n - 1] <= '\r')))
        --*n;
    return text;
}

static const char *strip(const struct akunu_segment *s, size_t *n)
{
    *n = s->n_bytes;
    return cli_transcript_strip(s->text, n);
}

void cli_transcript_line(struct cli_output *out, const struct akunu_segment *s, bool text_only)
{
    char start[TIME_BYTES], end[TIME_BYTES];
    size_t n;
    const char *text = strip(s, &n);
    if (n == 0)
        return;
    if (!text_only)
        cli_output_format(out, "[%s --> %s]  ", format_time(s->start, '.', start),
                          format_time(s->end, '.', end));
    cli_output_escaped(out, text, n);
    cli_output_text(out, "\n");
}

/* ---- Files -------------------------------------------------------------- */
static void write_subtitle(struct cli_output *out, const struct akunu_segment *s, size_t number,
                           enum cli_transcript_form form)
{
    char start[TIME_BYTES], end[TIME_BYTES];
    bool is_srt = form == CLI_TRANSCRIPT_SRT;
    char mark = is_srt ? ',' : '.';
    size_t n;
    const char *text = strip(s, &n);
    if (is_srt)
        cli_output_format(out, "%zu\n", number);
    cli_output_format(out, "%s --> %s\n", format_time(s->start, mark, start),
                      format_time(s->end, mark, end));
    /* "-->" in the text would be read as times: "- ->" is not */
    for (size_t i = 0; i < n; i++)
        if (i + 3 <= n && memcmp(text + i, "-->", 3) == 0)
            cli_output_text(out, "- ");
        else
            cli_output_bytes(out, text + i, 1);
    cli_output_text(out, "\n\n");
}

static void write_quoted(struct cli_output *out, const char *text, size_t n)
{
    cli_output_text(out, "\"");
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '"')
            cli_output_text(out, "\"");
        cli_output_bytes(out, text + i, 1);
    }
    cli_output_text(out, "\"");
}

static void write_segment(struct cli_output *out, const struct akunu_segment *s, size_t number,
                          enum cli_transcript_form form)
{
    char start[TIME_BYTES];
    size_t n;
    const char *text = strip(s, &n);
    switch (form) {
    case CLI_TRANSCRIPT_VTT:
    case CLI_TRANSCRIPT_SRT: write_subtitle(out, s, number, form); return;
    case CLI_TRANSCRIPT_CSV:
        cli_output_format(out, "%lld,%lld,", llround(s->start * 1000.0), llround(s->end * 1000.0));
        write_quoted(out, text, n);
        break;
    case CLI_TRANSCRIPT_LRC:
        cli_output_format(out, "[%s]", format_lyrics_time(s->start, start));
        cli_output_bytes(out, text, n);
        break;
    default: cli_output_bytes(out, text, n); break;
    }
    cli_output_text(out, "\n");
}

/* ---- JSON --------------------------------------------------------------- */
json_t *cli_transcript_word(const struct akunu_word *w)
{
    return json_pack("{s:o, s:o, s:o, s:o}", "word", cli_json_text(w->text, w->n_bytes), "start",
                     cli_json_real(w->start), "end", cli_json_real(w->end), "probability",
                     cli_json_real(w->probability));
}

static json_t *words_json(const struct cli_segment *s)
{
    json_t *words = json_array();
    for (size_t i = 0; i < s->n_words; i++)
        json_array_append_new(words, cli_transcript_word(&s->words[i].of));
    return words;
}

static json_t *segment_json(const struct cli_segment *segment, bool has_words)
{
    const struct akunu_segment *s = &segment->of;
    json_t *tokens = json_array();
    for (size_t i = 0; i < s->n_tokens; i++)
        json_array_append_new(tokens, json_integer(s->tokens[i]));
    json_t *all =
        json_pack("{s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "id", (json_int_t)s->id,
                  "seek", (json_int_t)s->window, "start", cli_json_real(s->start), "end",
                  cli_json_real(s->end), "text", cli_json_text(s->text, s->n_bytes), "tokens",
                  tokens, "temperature", cli_json_real((double)s->temperature), "avg_logprob",
                  cli_json_real(s->mean_log_prob), "compression_ratio",
                  cli_json_real(s->compression), "no_speech_prob", cli_json_real(s->no_speech));
    if (has_words)
        json_object_set_new(all, "words", words_json(segment));
    return all;
}

json_t *cli_transcript_segments(const struct cli_transcript *t)
{
    json_t *segments = json_array();
    for (size_t i = 0; i < t->n; i++)
        json_array_append_new(segments, segment_json(&t->segments[i], t->has_words));
    return segments;
}

char *cli_transcript_text(const struct cli_transcript *t, size_t *n)
{
    size_t n_bytes = 0;
    for (size_t i = 0; i < t->n; i++)
        n_bytes += t->segments[i].of.n_bytes;
    char *text = malloc(n_bytes + 1);
    *n = 0;
    for (size_t i = 0; text && i < t->n; i++) {
        memcpy(text + *n, t->segments[i].of.text, t->segments[i].of.n_bytes);
        *n += t->segments[i].of.n_bytes;
    }
    if (text)
        text[*n] = '\0';
    return text;
}

static json_t *transcript_json(const struct cli_transcript *t)
{
    size_t n;
    char *text = cli_transcript_text(t, &n);
    json_t *all =
        text ? json_pack("{s:o, s:s, s:o}", "text", cli_json_text(text, n), "language",
                         t->language ? t->language : "en", "segments", cli_transcript_segments(t)) :
               NULL;
    free(text);
    return all;
}

void cli_transcript_write(struct cli_output *out, const struct cli_transcript *t,
                          enum cli_transcript_form form)
{
    size_t number = 0;
    if (form == CLI_TRANSCRIPT_JSON) {
        cli_json_print(out, transcript_json(t));
        return;
    }
    if (form == CLI_TRANSCRIPT_VTT)
        cli_output_text(out, "WEBVTT\n\n");
    if (form == CLI_TRANSCRIPT_CSV)
        cli_output_text(out, "start,end,text\n");
    for (size_t i = 0; i < t->n; i++)
        if (t->segments[i].of.n_bytes > 0)
            write_segment(out, &t->segments[i].of, ++number, form);
}
