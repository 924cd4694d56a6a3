/* Tokens of a window as words. */
#include "speech/search/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "speech/search/text.h"
#include "speech/search/transcribe.h"
#include "base/math.h"

/* openai/whisper's sets. A text is in a set if it is a part of the string, as in Python. */
#define ASCII_PUNCTUATION "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
#define OPENING "\"'“¿([{-"
#define CLOSING "\"'.。,，!！?？:：”)]}、"
#define SENTENCE_ENDS ".。!！?？"

static const double LONGEST_MEDIAN = 0.7;

/* A word that grows. One that was joined to another has no bytes and no tokens. */
struct piece {
    size_t begin, end; /* bytes of the text */
    size_t n_tokens;
    double start, stop; /* seconds of the window */
    double probability;
};

struct pieces {
    const struct ak_speech_spoken *spoken;
    struct piece *of;
    size_t n;
};

/* ---- Texts -------------------------------------------------------------- */
bool ak_speech_is_part_of(const char *text, size_t n, const char *set)
{
    size_t n_set = strlen(set);
    for (size_t i = 0; i + n <= n_set; i++)
        if (memcmp(set + i, text, n) == 0)
            return true;
    return false;
}

static bool is_in(const struct pieces *p, const struct piece *piece, const char *set)
{
    return ak_speech_is_part_of(p->spoken->text + piece->begin, piece->end - piece->begin, set);
}

static bool is_stripped_in(const struct pieces *p, const struct piece *piece, const char *set)
{
    const char *text = p->spoken->text + piece->begin;
    size_t n = piece->end - piece->begin;
    ak_speech_strip(&text, &n);
    return ak_speech_is_part_of(text, n, set);
}

static bool begins_with_space(const struct pieces *p, const struct piece *piece)
{
    return piece->begin < piece->end && p->spoken->text[piece->begin] == ' ';
}

static bool ends_with_space(const struct pieces *p, const struct piece *piece)
{
    return piece->begin < piece->end && p->spoken->text[piece->end - 1] == ' ';
}

/* ---- Words -------------------------------------------------------------- */
/* Joins what a word has to the word before it, unless a new one begins. */
static void add_token(struct pieces *p, size_t begin, size_t end, size_t n_tokens)
{
    struct piece new = { .begin = begin, .end = end, .n_tokens = n_tokens };
    if (p->n == 0 || !p->spoken->spaced || begins_with_space(p, &new) ||
        is_stripped_in(p, &new, ASCII_PUNCTUATION)) {
        p->of[p->n++] = new;
        return;
    }
    p->of[p->n - 1].end = end;
    p->of[p->n - 1].n_tokens += n_tokens;
}

static void split_words(struct pieces *p)
{
    const struct ak_speech_spoken *s = p->spoken;
    size_t begin = 0, first = 0, n_bytes = s->ends[s->n - 1];
    for (size_t i = 0; i < s->n; i++) {
        if (i + 1 < s->n && ak_speech_character_end(s->text, n_bytes, s->ends[i]) != s->ends[i])
            continue; /* two tokens have a part of the character each */
        add_token(p, begin, s->ends[i], i + 1 - first);
        begin = s->ends[i];
        first = i + 1;
    }
}

static void set_times(struct pieces *p)
{
    const struct ak_speech_spoken *s = p->spoken;
    size_t token = 0;
    for (size_t i = 0; i < p->n; i++) {
        struct piece *w = &p->of[i];
        double sum = 0.0;
        w->start = (double)s->at[token] / AK_SPEECH_TIMES_PER_SECOND;
        for (size_t j = 0; j < w->n_tokens; j++)
            sum += (double)s->probabilities[token++];
        w->stop = (double)s->at[token] / AK_SPEECH_TIMES_PER_SECOND;
        w->probability = sum / (double)w->n_tokens;
    }
}

/* Of the words that last at all, at most 0.7 s; 0: none does. */
static ak_status find_median(const struct pieces *p, double *out, struct ak_error *error)
{
    double *durations = ak_alloc(p->n, sizeof *durations);
    size_t n = 0;
    if (!durations)
        return ak_fail_memory(error, "the times of words", p->n * sizeof *durations);
    for (size_t i = 0; i < p->n; i++)
        if (p->of[i].stop > p->of[i].start)
            durations[n++] = p->of[i].stop - p->of[i].start;
    qsort(durations, n, sizeof *durations, ak_compare_doubles);
    *out = n == 0 ? 0.0 : (durations[(n - 1) / 2] + durations[n / 2]) / 2.0;
    *out = fmin(*out, LONGEST_MEDIAN);
    ak_free(durations);
    return AKUNU_OK;
}

/* At the end of a sentence a pause is not part of a word. */
static void shorten_at_sentences(struct pieces *p, double max)
{
    for (size_t i = 1; max > 0.0 && i < p->n; i++) {
        struct piece *w = &p->of[i];
        if (!(w->stop - w->start > max))
            continue;
        if (is_in(p, w, SENTENCE_ENDS))
            w->stop = w->start + max;
        else if (is_in(p, w - 1, SENTENCE_ENDS))
            w->start = w->stop - max;
    }
}

static void empty(struct piece *w)
{
    w->end = w->begin;
    w->n_tokens = 0;
}

static void join_punctuation(struct pieces *p)
{
    for (size_t i = p->n, next = p->n; i-- > 0; next = p->of[i].n_tokens ? i : next) {
        struct piece *w = &p->of[i];
        if (next == p->n || !begins_with_space(p, w) || !is_stripped_in(p, w, OPENING))
            continue;
        p->of[next].begin = w->begin;
        p->of[next].n_tokens += w->n_tokens;
        empty(w);
    }
    for (size_t last = 0, i = 1; i < p->n; i++) {
        struct piece *w = &p->of[i];
        if (ends_with_space(p, &p->of[last]) || !is_in(p, w, CLOSING)) {
            last = i;
            continue;
        }
        if (w->n_tokens == 0)
            continue;
        if (p->of[last].n_tokens == 0)
            p->of[last].begin = w->begin;
        p->of[last].end = w->end;
        p->of[last].n_tokens += w->n_tokens;
        empty(w);
    }
}

/* ---- Segments ----------------------------------------------------------- */
/* As Python's round(x, 2) for times, which are multiples of 0.02 s. */
static double round_time(double seconds)
{
    return rint(seconds * 100.0) / 100.0;
}

/* After a pause the first two words are not longer than twice the median. */
static void shorten_after_pause(struct akunu_word *words, size_t n, double last_end, double median)
{
    double max = 2.0 * median;
    bool is_long =
        words[0].end - words[0].start > max || (n > 1 && words[1].end - words[0].start > 2.0 * max);
    if (!(words[0].end - last_end > 4.0 * median) || !is_long)
        return;
    if (n > 1 && words[1].end - words[1].start > max)
        words[0].end = words[1].start = fmax(words[1].end / 2.0, words[1].end - max);
    words[0].start = fmax(0.0, words[0].end - max);
}

/* The segment's own times hold where a word at its end is too long; else it follows its words. */
static void agree(struct ak_speech_span *span, struct akunu_word *words, size_t n, double median)
{
    struct akunu_word *first = &words[0], *last = &words[n - 1];
    if (span->start < first->end && span->start - 0.5 > first->start)
        first->start = fmax(0.0, fmin(first->end - median, span->start));
    else
        span->start = first->start;
    if (span->end > last->start && span->end + 0.5 < last->end)
        last->end = fmax(last->start + median, span->end);
    else
        span->end = last->end;
}

/* Takes the pieces from *at on until they have the span's tokens. */
static size_t take_words(const struct pieces *p, size_t *at, size_t n_tokens, double offset,
                         struct akunu_word *words)
{
    size_t n = 0, taken = 0;
    for (; *at < p->n && taken < n_tokens; ++*at) {
        const struct piece *w = &p->of[*at];
        taken += w->n_tokens;
        if (w->end > w->begin)
            words[n++] = (struct akunu_word){ .start = round_time(offset + w->start),
                                              .end = round_time(offset + w->stop),
                                              .probability = w->probability,
                                              .text = p->spoken->text + w->begin,
                                              .n_bytes = w->end - w->begin };
    }
    return n;
}

static ak_status find_words(struct pieces *p, double offset, double last_end,
                            struct akunu_word *words, struct ak_speech_span *spans, size_t n_spans,
                            struct ak_error *error)
{
    double median = 0.0;
    size_t at = 0;
    split_words(p);
    set_times(p);
    AK_TRY(find_median(p, &median, error));
    shorten_at_sentences(p, 2.0 * median);
    join_punctuation(p);
    for (size_t i = 0; i < n_spans; i++) {
        struct ak_speech_span *span = &spans[i];
        size_t n = take_words(p, &at, span->n_tokens, offset, words);
        span->words = words;
        span->n_words = n;
        if (n > 0) {
            shorten_after_pause(words, n, last_end, median);
            agree(span, words, n, median);
            last_end = span->end;
        }
        words += n;
    }
    return AKUNU_OK;
}

ak_status ak_speech_find_words(const struct ak_speech_spoken *spoken, double offset,
                               double last_end, struct akunu_word *words,
                               struct ak_speech_span *spans, size_t n_spans, struct ak_error *error)
{
    struct pieces p = { .spoken = spoken, .of = ak_alloc(spoken->n, sizeof *p.of) };
    if (!p.of)
        return ak_fail_memory(error, "the words of a window", spoken->n * sizeof *p.of);
    ak_status status = find_words(&p, offset, last_end, words, spans, n_spans, error);
    ak_free(p.of);
    return status;
}
