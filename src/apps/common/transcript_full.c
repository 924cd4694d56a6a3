/* The transcript with a time and a probability for each token, and what the model is: the fields of
 * whisper.cpp's full JSON. */
#include "apps/common/transcript.h"

#include <stdlib.h>
#include <string.h>

enum { TIMES = 1501, NAME_BYTES = 32 }; /* TIMES: the last ids of Whisper's vocabulary */

/* A segment's tokens as text, and when they are said. */
struct spelled {
    const struct akunu_segment *s;
    akunu_token first_time; /* 0.00 s; the others follow, 20 ms apart */
    char *bytes;
    size_t *ends; /* [n_tokens]: byte of the text at which token i ends; times have none */
};

/* ---- The model ---------------------------------------------------------- */
static const char *name_size(uint32_t n_layers)
{
    switch (n_layers) {
    case 4: return "tiny";
    case 6: return "base";
    case 12: return "small";
    case 24: return "medium";
    case 32: return "large";
    default: return "unknown";
    }
}

/* GGML's number of a file whose matrices are mostly of a type; -1: it has none. */
static int find_ftype(const char *type)
{
    static const struct {
        const char *type;
        int number;
    } known[] = { { "F32", 0 },   { "F16", 1 },   { "Q4_0", 2 },  { "Q4_1", 3 },  { "Q8_0", 7 },
                  { "Q5_0", 8 },  { "Q5_1", 9 },  { "Q2_K", 10 }, { "Q3_K", 11 }, { "Q4_K", 12 },
                  { "Q5_K", 13 }, { "Q6_K", 14 }, { "BF16", 24 } };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].type, type) == 0)
            return known[i].number;
    return -1;
}

static json_t *sizes_json(uint32_t context, const struct akunu_model_info *m, uint32_t n_layers)
{
    return json_pack("{s:I, s:I, s:I, s:I}", "ctx", (json_int_t)context, "state",
                     (json_int_t)m->width, "head", (json_int_t)m->n_heads, "layer",
                     (json_int_t)n_layers);
}

static json_t *model_json(const struct akunu_model_info *m)
{
    return json_pack("{s:s, s:b, s:I, s:o, s:o, s:I, s:i}", "type", name_size(m->n_encoder_layers),
                     "multilingual", m->vocab_size > 51864, "vocab", (json_int_t)m->vocab_size,
                     "audio", sizes_json(m->encoder_context, m, m->n_encoder_layers), "text",
                     sizes_json(m->context, m, m->n_layers), "mels", (json_int_t)m->n_mels, "ftype",
                     find_ftype(m->weight_type));
}

/* ---- Tokens ------------------------------------------------------------- */
/* Bytes of token i, into `out` if there is room for all of them; -1: the library fails. */
static int64_t spell_token(const struct spelled *p, const struct akunu_tokenizer *tokenizer,
                           size_t i, char *out, size_t room)
{
    /* languages and other marks between the text and the times: a GGML file does not name them */
    akunu_token token = p->s->tokens[i];
    bool is_text = token < p->first_time && (size_t)token < akunu_tokenizer_vocab_size(tokenizer);
    return is_text ? akunu_tokenizer_decode(tokenizer, &token, 1, 0, out, room) : 0;
}

static bool spell(struct spelled *p, const struct akunu_tokenizer *tokenizer)
{
    size_t n = 0, capacity = 0;
    for (size_t i = 0; i < p->s->n_tokens; i++) {
        int64_t more = spell_token(p, tokenizer, i, NULL, 0);
        if (more < 0)
            return false;
        capacity += (size_t)more;
    }
    p->bytes = malloc(capacity + 1);
    p->ends = calloc(p->s->n_tokens + 1, sizeof *p->ends);
    for (size_t i = 0; p->bytes && p->ends && i < p->s->n_tokens; i++) {
        n += (size_t)spell_token(p, tokenizer, i, p->bytes + n, capacity - n);
        p->ends[i] = n;
    }
    return p->bytes && p->ends;
}

/* Does a text end in a character of which bytes are missing? */
static bool is_cut(const char *text, size_t n)
{
    for (size_t back = 1; back <= n && back <= 3; back++) {
        unsigned char c = (unsigned char)text[n - back];
        if ((c & 0xc0) != 0x80)
            return back < (c >= 0xf0 ? 4u : c >= 0xe0 ? 3u : c >= 0xc0 ? 2u : 1u);
    }
    return false;
}

static double interpolate(double start, double end, size_t at, size_t n)
{
    return n > 0 ? start + (end - start) * (double)at / (double)n : start;
}

/* Seconds at a byte of the text: between the times of its word, else of the segment, in proportion
 * to bytes. */
static double time_at(const struct akunu_segment *s, size_t byte, bool is_end)
{
    size_t at = byte;
    for (size_t i = 0; i < s->n_words; i++) {
        const struct akunu_word *w = &s->words[i];
        if (is_end ? at <= w->n_bytes : at < w->n_bytes)
            return interpolate(w->start, w->end, at, w->n_bytes);
        at -= w->n_bytes;
    }
    return s->n_words > 0 ? s->end : interpolate(s->start, s->end, byte, s->n_bytes);
}

static void set_times(json_t *object, double start, double end)
{
    char from[APP_TRANSCRIPT_TIME_BYTES], to[APP_TRANSCRIPT_TIME_BYTES];
    json_object_set_new(object, "timestamps",
                        json_pack("{s:s, s:s}", "from", app_transcript_time(start, ',', from), "to",
                                  app_transcript_time(end, ',', to)));
    json_object_set_new(object, "offsets",
                        json_pack("{s:I, s:I}", "from", app_transcript_milliseconds(start), "to",
                                  app_transcript_milliseconds(end)));
}

/* A time is said at the beginning of the segment or at its end. */
static json_t *time_json(const struct spelled *p, size_t i)
{
    char name[NAME_BYTES];
    akunu_token step = p->s->tokens[i] - p->first_time;
    double time = p->ends[i] == 0 ? p->s->start : p->s->end;
    json_t *all = json_object();
    snprintf(name, sizeof name, step == 0 ? "[_BEG_]" : "[_TT_%d]", (int)step);
    json_object_set_new(all, "text", json_string(name));
    set_times(all, time, time);
    return all;
}

/* Tokens [first, end) of the text, which spell whole characters. */
static json_t *text_json(const struct spelled *p, size_t first, size_t end)
{
    size_t start = first > 0 ? p->ends[first - 1] : 0, stop = p->ends[end - 1];
    json_t *all = json_object();
    json_object_set_new(all, "text", app_json_text(p->bytes + start, stop - start));
    set_times(all, time_at(p->s, start, false), time_at(p->s, stop, true));
    return all;
}

/* Tokens that share a character are one entry, with what is said of the first. */
static json_t *tokens_json(const struct spelled *p)
{
    json_t *tokens = json_array();
    for (size_t i = 0, end; i < p->s->n_tokens; i = end) {
        bool is_time = p->s->tokens[i] >= p->first_time;
        for (end = i + 1; !is_time && end < p->s->n_tokens && is_cut(p->bytes, p->ends[end - 1]);)
            end++;
        json_t *token = is_time ? time_json(p, i) : text_json(p, i, end);
        json_object_set_new(token, "id", json_integer(p->s->tokens[i]));
        json_object_set_new(token, "p", app_json_real((double)p->s->token_probabilities[i]));
        json_object_set_new(token, "t_dtw", json_integer(-1));
        json_array_append_new(tokens, token);
    }
    return tokens;
}

/* ---- Segments ----------------------------------------------------------- */
static json_t *segment_json(const struct app_transcript *t, const struct akunu_segment *s)
{
    const struct app_transcript_source *source = t->source;
    struct spelled p = { .s = s, .first_time = (akunu_token)source->model->vocab_size - TIMES };
    json_t *all = NULL;
    if (spell(&p, source->tokenizer)) {
        all = json_object();
        set_times(all, s->start, s->end);
        json_object_set_new(all, "text", app_json_text(s->text, s->n_bytes));
        json_object_set_new(all, "tokens", tokens_json(&p));
    }
    free(p.bytes);
    free(p.ends);
    return all;
}

json_t *app_transcript_full(const struct app_transcript *t)
{
    const struct app_transcript_source *source = t->source;
    char system[256];
    json_t *segments = json_array();
    for (size_t i = 0; i < t->n; i++)
        if (t->segments[i].of.n_bytes > 0 &&
            json_array_append_new(segments, segment_json(t, &t->segments[i].of)) != 0) {
            json_decref(segments);
            return NULL;
        }
    snprintf(system, sizeof system, "%s, %s", akunu_build_info(), source->model->cpu);
    return json_pack("{s:s, s:o, s:{s:o, s:s, s:b}, s:{s:s}, s:o}", "systeminfo", system, "model",
                     model_json(source->model), "params", "model",
                     app_json_text(source->path, strlen(source->path)), "language",
                     source->language, "translate", (int)source->translate, "result", "language",
                     t->language ? t->language : "en", "transcription", segments);
}
