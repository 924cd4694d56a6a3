/* Each part keeps a list of segments until it is the first that has not ended. */
#include "speech/transcribe/order.h"

#include <string.h>

#include "base/mem.h"
#include "speech/transcribe/transcribe.h"

struct ak_order_part {
    struct ak_segment_copy *first, **last;
    bool ended;
};

/* ---- Copies ------------------------------------------------------------- */
/* What the segment points to stands behind it, words first: their alignment is the strictest. */
struct ak_segment_copy *ak_segment_copy_new(const struct akunu_segment *s)
{
    size_t bytes = s->n_words * sizeof *s->words + s->n_bytes +
                   s->n_tokens * (sizeof *s->tokens + sizeof *s->token_probabilities);
    for (size_t i = 0; i < s->n_words; i++)
        bytes += s->words[i].n_bytes;
    struct ak_segment_copy *copy = ak_alloc(1, sizeof *copy + bytes);
    if (!copy)
        return NULL;
    copy->segment = *s;
    copy->words = (struct akunu_word *)(copy + 1);
    akunu_token *tokens = (akunu_token *)(copy->words + s->n_words);
    float *probabilities = (float *)(tokens + s->n_tokens);
    char *text = (char *)(probabilities + s->n_tokens);
    if (s->n_words > 0)
        memcpy(copy->words, s->words, s->n_words * sizeof *s->words);
    if (s->n_tokens > 0) {
        memcpy(tokens, s->tokens, s->n_tokens * sizeof *tokens);
        memcpy(probabilities, s->token_probabilities, s->n_tokens * sizeof *probabilities);
    }
    if (s->n_bytes > 0)
        memcpy(text, s->text, s->n_bytes);
    copy->segment.words = copy->words;
    copy->segment.tokens = tokens;
    copy->segment.token_probabilities = probabilities;
    copy->segment.text = text;
    text += s->n_bytes;
    for (size_t i = 0; i < s->n_words; text += s->words[i++].n_bytes) {
        memcpy(text, s->words[i].text, s->words[i].n_bytes);
        copy->words[i].text = text;
    }
    return copy;
}

/* ---- Parts -------------------------------------------------------------- */
static void free_copies(struct ak_order_part *part)
{
    for (struct ak_segment_copy *copy = part->first, *next; copy; copy = next) {
        next = copy->next;
        ak_free(copy);
    }
    part->first = NULL;
    part->last = &part->first;
}

ak_status ak_order_open(struct ak_order *o, size_t n_parts, struct ak_error *error)
{
    o->parts = ak_alloc(n_parts, sizeof *o->parts);
    if (!o->parts)
        return ak_fail_memory(error, "chunks of speech", n_parts * sizeof *o->parts);
    o->n = n_parts;
    for (size_t i = 0; i < n_parts; i++)
        free_copies(&o->parts[i]); /* empty lists */
    return AKUNU_OK;
}

void ak_order_close(struct ak_order *o)
{
    for (size_t i = 0; i < o->n; i++)
        free_copies(&o->parts[i]);
    ak_free(o->parts);
    *o = (struct ak_order){ .parts = NULL };
}

ak_status ak_order_report(struct ak_order *o, struct akunu_segment *segment, struct ak_error *error)
{
    segment->id = o->n_segments++;
    return o->on_segment(segment, o->user) ? AKUNU_OK : ak_transcribe_fail_cancelled(error);
}

ak_status ak_order_add(struct ak_order *o, size_t part, struct ak_segment_copy *copy,
                       struct ak_error *error)
{
    if (part != o->head) {
        *o->parts[part].last = copy;
        o->parts[part].last = &copy->next;
        return AKUNU_OK;
    }
    ak_status status = ak_order_report(o, &copy->segment, error);
    ak_free(copy);
    return status;
}

ak_status ak_order_end(struct ak_order *o, size_t part, struct ak_error *error)
{
    o->parts[part].ended = true;
    while (o->head < o->n && o->parts[o->head].ended) {
        if (++o->head == o->n)
            break;
        struct ak_order_part *next = &o->parts[o->head];
        for (struct ak_segment_copy *copy = next->first; copy; copy = copy->next)
            AK_TRY(ak_order_report(o, &copy->segment, error));
        free_copies(next);
    }
    return AKUNU_OK;
}
