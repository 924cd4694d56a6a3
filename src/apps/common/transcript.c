/* Writes transcripts. */
#include "apps/common/transcript.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *app_transcript_extension(enum app_transcript_form form)
{
    static const char *const extensions[APP_TRANSCRIPT_FORMS] = { "txt", "vtt", "srt",  "csv",
                                                                  "tsv", "lrc", "json", "json" };
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

static void free_segment(struct app_segment *s)
{
    free(s->text);
    free(s->tokens);
    free(s->probabilities);
    free(s->words);
    free(s->spoken);
}

static bool copy_words(struct app_segment *s)
{
    size_t n_bytes = 0, at = 0;
    for (size_t i = 0; i < s->of.n_words; i++)
        n_bytes += s->of.words[i].n_bytes;
    s->words = copy(s->of.words, s->of.n_words * sizeof *s->words);
    s->spoken = malloc(n_bytes + 1);
    if (!s->words || !s->spoken)
        return false;
    for (size_t i = 0; i < s->of.n_words; i++) {
        memcpy(s->spoken + at, s->words[i].text, s->words[i].n_bytes);
        s->words[i].text = s->spoken + at;
        at += s->words[i].n_bytes;
    }
    s->of.words = s->words;
    return true;
}

bool app_transcript_add(struct app_transcript *t, const struct akunu_segment *segment)
{
    if (t->n == t->capacity) {
        size_t capacity = t->capacity ? 2 * t->capacity : 64;
        struct app_segment *grown = realloc(t->segments, capacity * sizeof *grown);
        if (!grown)
            return false;
        t->segments = grown;
        t->capacity = capacity;
    }
    struct app_segment new = { .of = *segment };
    new.of.text = new.text = copy(segment->text, segment->n_bytes);
    new.of.tokens = new.tokens = copy(segment->tokens, segment->n_tokens * sizeof *new.tokens);
    new.of.token_probabilities = new.probabilities =
        copy(segment->token_probabilities, segment->n_tokens * sizeof *new.probabilities);
    if (!new.text || !new.tokens || !new.probabilities || !copy_words(&new)) {
        free_segment(&new);
        return false;
    }
    t->segments[t->n++] = new;
    return true;
}

void app_transcript_free(struct app_transcript *t)
{
    for (size_t i = 0; i < t->n; i++)
        free_segment(&t->segments[i]);
    free(t->segments);
    *t = (struct app_transcript){ 0 };
}

/* ---- Times and texts ---------------------------------------------------- */
json_int_t app_transcript_milliseconds(double seconds)
{
    return seconds > 0.0 ? llround(seconds * 1000.0) : 0;
}

const char *app_transcript_time(double seconds, char mark, char out[APP_TRANSCRIPT_TIME_BYTES])
{
    unsigned long long ms = (unsigned long long)app_transcript_milliseconds(seconds);
    snprintf(out, APP_TRANSCRIPT_TIME_BYTES, "%02llu:%02llu:%02llu%c%03llu", ms / 3600000,
             ms / 60000 % 60, ms / 1000 % 60, mark, ms % 1000);
    return out;
}

/* "02:03.45" */
static const char *format_lyrics_time(double seconds, char out[APP_TRANSCRIPT_TIME_BYTES])
{
    unsigned long long cs = seconds > 0.0 ? (unsigned long long)llround(seconds * 100.0) : 0;
    snprintf(out, APP_TRANSCRIPT_TIME_BYTES, "%02llu:%02llu.%02llu", cs / 6000, cs / 100 % 60,
             cs % 100);
    return out;
}

const char *app_transcript_strip(const char *text, size_t *n)
{
    while (*n > 0 && (*text == ' ' || (*text >= '\t' && *text <= '\r'))) {
        text++;
        --*n;
    }
    while (*n > 0 && (text[*n - 1] == ' ' || (text[*n - 1] >= '\t' && text[*n - 1] <= '\r')))
        --*n;
    return text;
}

static const char *stripped_text(const struct akunu_segment *s, size_t *n)
{
    *n = s->n_bytes;
    return app_transcript_strip(s->text, n);
}

/* ---- Lines -------------------------------------------------------------- */
typedef void line_fn(const struct akunu_segment *line, void *user);

static size_t count_characters(const struct akunu_word *w)
{
    size_t n = 0;
    for (size_t i = 0; i < w->n_bytes; i++)
        n += (w->text[i] & 0xc0) != 0x80;
    return n;
}

/* The segment's words from `first` on that make a line, as a segment. */
static struct akunu_segment cut_line(const struct app_segment *s, size_t first, uint32_t max)
{
    struct akunu_segment line = s->of;
    size_t n = 0, i = first;
    line.text = s->words[first].text;
    line.words = &s->words[first];
    line.n_bytes = line.n_words = 0;
    for (; i < s->of.n_words; i++) {
        n += count_characters(&s->words[i]);
        if (i > first && n > max + (s->words[first].text[0] == ' '))
            break;
        line.n_bytes += s->words[i].n_bytes;
        line.n_words++;
    }
    line.start = s->words[first].start;
    line.end = s->words[i - 1].end;
    return line;
}

/* Calls `each` for the lines of a segment that has a text. */
static void for_each_line(const struct app_transcript *t, const struct app_segment *s,
                          line_fn *each, void *user)
{
    if (s->of.n_bytes == 0)
        return;
    if (t->max_line == 0 || s->of.n_words == 0) {
        each(&s->of, user);
        return;
    }
    for (size_t i = 0; i < s->of.n_words;) {
        struct akunu_segment line = cut_line(s, i, t->max_line);
        each(&line, user);
        i += line.n_words;
    }
}

struct printer {
    struct app_output *out;
    bool text_only, highlights;
};

/* From red to green, as whisper.cpp colors them. */
static void print_highlighted(struct app_output *out, const struct akunu_segment *line)
{
    static const int colors[] = { 196, 202, 208, 214, 220, 226, 190, 154, 118, 82 };
    enum { N = sizeof colors / sizeof *colors };
    for (size_t i = 0; i < line->n_words; i++) {
        const struct akunu_word *w = &line->words[i];
        double p = w->probability;
        size_t color = (size_t)(p * p * p * N), n = w->n_bytes;
        const char *text = i == 0 ? app_transcript_strip(w->text, &n) : w->text;
        app_output_format(out, "\033[38;5;%dm", colors[color < N ? color : N - 1]);
        app_output_escaped(out, text, n);
    }
    app_output_text(out, "\033[0m");
}

static void print_line(const struct akunu_segment *line, void *user)
{
    const struct printer *p = user;
    char start[APP_TRANSCRIPT_TIME_BYTES], end[APP_TRANSCRIPT_TIME_BYTES];
    size_t n;
    const char *text = stripped_text(line, &n);
    if (!p->text_only)
        app_output_format(p->out, "[%s --> %s]  ", app_transcript_time(line->start, '.', start),
                          app_transcript_time(line->end, '.', end));
    if (p->highlights && line->n_words > 0)
        print_highlighted(p->out, line);
    else
        app_output_escaped(p->out, text, n);
    app_output_text(p->out, "\n");
}

void app_transcript_line(struct app_output *out, const struct app_transcript *t, size_t i,
                         bool text_only)
{
    struct printer p = { out, text_only, t->highlights };
    for_each_line(t, &t->segments[i], print_line, &p);
}

/* ---- Files -------------------------------------------------------------- */
/* "-->" in the text would be read as times: "- ->" is not. */
static void write_cue_text(struct app_output *out, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (i + 3 <= n && memcmp(text + i, "-->", 3) == 0)
            app_output_text(out, "- ");
        else
            app_output_bytes(out, text + i, 1);
}

/* The text, with times between its words: WebVTT's and extended LRC's karaoke. */
static void write_timed_words(struct app_output *out, const struct akunu_segment *s, bool lyrics)
{
    char time[APP_TRANSCRIPT_TIME_BYTES];
    for (size_t i = 0; i < s->n_words; i++) {
        const struct akunu_word *w = &s->words[i];
        size_t n = w->n_bytes;
        const char *text = i == 0 ? app_transcript_strip(w->text, &n) : w->text;
        if (i > 0 || lyrics)
            app_output_format(out, "<%s>",
                              lyrics ? format_lyrics_time(w->start, time) :
                                       app_transcript_time(w->start, '.', time));
        write_cue_text(out, text, n);
    }
}

static void write_subtitle(struct app_output *out, const struct akunu_segment *s, size_t number,
                           enum app_transcript_form form, bool timed)
{
    char start[APP_TRANSCRIPT_TIME_BYTES], end[APP_TRANSCRIPT_TIME_BYTES];
    bool is_srt = form == APP_TRANSCRIPT_SRT;
    char mark = is_srt ? ',' : '.';
    size_t n;
    const char *text = stripped_text(s, &n);
    if (is_srt)
        app_output_format(out, "%zu\n", number);
    app_output_format(out, "%s --> %s\n", app_transcript_time(s->start, mark, start),
                      app_transcript_time(s->end, mark, end));
    if (timed && !is_srt)
        write_timed_words(out, s, false);
    else
        write_cue_text(out, text, n);
    app_output_text(out, "\n\n");
}

static void write_quoted(struct app_output *out, const char *text, size_t n)
{
    app_output_text(out, "\"");
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '"')
            app_output_text(out, "\"");
        app_output_bytes(out, text + i, 1);
    }
    app_output_text(out, "\"");
}

static void write_segment(struct app_output *out, const struct akunu_segment *s, size_t number,
                          enum app_transcript_form form, bool timed)
{
    char start[APP_TRANSCRIPT_TIME_BYTES];
    size_t n;
    const char *text = stripped_text(s, &n);
    switch (form) {
    case APP_TRANSCRIPT_VTT:
    case APP_TRANSCRIPT_SRT: write_subtitle(out, s, number, form, timed); return;
    case APP_TRANSCRIPT_CSV:
        app_output_format(out, "%lld,%lld,", llround(s->start * 1000.0), llround(s->end * 1000.0));
        write_quoted(out, text, n);
        break;
    case APP_TRANSCRIPT_TSV:
        app_output_format(out, "%lld\t%lld\t", llround(s->start * 1000.0),
                          llround(s->end * 1000.0));
        for (size_t i = 0; i < n; i++)
            app_output_bytes(out, text[i] == '\t' ? " " : text + i, 1);
        break;
    case APP_TRANSCRIPT_LRC:
        app_output_format(out, "[%s]", format_lyrics_time(s->start, start));
        if (timed)
            write_timed_words(out, s, true);
        else
            app_output_bytes(out, text, n);
        break;
    default: app_output_bytes(out, text, n); break;
    }
    app_output_text(out, "\n");
}

/* ---- JSON --------------------------------------------------------------- */
json_t *app_transcript_word(const struct akunu_word *w)
{
    return json_pack("{s:o, s:o, s:o, s:o}", "word", app_json_text(w->text, w->n_bytes), "start",
                     app_json_real(w->start), "end", app_json_real(w->end), "probability",
                     app_json_real(w->probability));
}

static json_t *words_json(const struct akunu_segment *s)
{
    json_t *words = json_array();
    for (size_t i = 0; i < s->n_words; i++)
        json_array_append_new(words, app_transcript_word(&s->words[i]));
    return words;
}

static json_t *segment_json(const struct akunu_segment *s, bool has_words)
{
    json_t *tokens = json_array();
    for (size_t i = 0; i < s->n_tokens; i++)
        json_array_append_new(tokens, json_integer(s->tokens[i]));
    json_t *all =
        json_pack("{s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "id", (json_int_t)s->id,
                  "seek", (json_int_t)s->window, "start", app_json_real(s->start), "end",
                  app_json_real(s->end), "text", app_json_text(s->text, s->n_bytes), "tokens",
                  tokens, "temperature", app_json_real((double)s->temperature), "avg_logprob",
                  app_json_real(s->mean_log_prob), "compression_ratio",
                  app_json_real(s->compression), "no_speech_prob", app_json_real(s->no_speech));
    if (has_words)
        json_object_set_new(all, "words", words_json(s));
    return all;
}

json_t *app_transcript_segments(const struct app_transcript *t)
{
    json_t *segments = json_array();
    for (size_t i = 0; i < t->n; i++)
        json_array_append_new(segments, segment_json(&t->segments[i].of, t->has_words));
    return segments;
}

char *app_transcript_text(const struct app_transcript *t, size_t *n)
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

static json_t *transcript_json(const struct app_transcript *t)
{
    size_t n;
    char *text = app_transcript_text(t, &n);
    json_t *all =
        text ? json_pack("{s:o, s:s, s:o}", "text", app_json_text(text, n), "language",
                         t->language ? t->language : "en", "segments", app_transcript_segments(t)) :
               NULL;
    free(text);
    return all;
}

struct writer {
    struct app_output *out;
    enum app_transcript_form form;
    bool timed;
    size_t n_lines;
};

static void write_line(const struct akunu_segment *line, void *user)
{
    struct writer *w = user;
    write_segment(w->out, line, ++w->n_lines, w->form, w->timed && line->n_words > 0);
}

void app_transcript_write(struct app_output *out, const struct app_transcript *t,
                          enum app_transcript_form form)
{
    struct writer w = { .out = out, .form = form, .timed = t->karaoke };
    if (form == APP_TRANSCRIPT_JSON || form == APP_TRANSCRIPT_JSON_FULL) {
        app_json_print(out,
                       form == APP_TRANSCRIPT_JSON ? transcript_json(t) : app_transcript_full(t));
        app_output_text(out, "\n");
        return;
    }
    if (form == APP_TRANSCRIPT_VTT)
        app_output_text(out, "WEBVTT\n\n");
    if (form == APP_TRANSCRIPT_CSV)
        app_output_text(out, "start,end,text\n");
    if (form == APP_TRANSCRIPT_TSV)
        app_output_text(out, "start\tend\ttext\n");
    for (size_t i = 0; i < t->n; i++)
        for_each_line(t, &t->segments[i], write_line, &w);
}
