/* Runs a pipeline: normalizes the text, matches special tokens in the normal form, pre-tokenizes
 * the rest and hands each word to the model. */
#include "text/tokenizer/pipeline.h"

#include <string.h>

#include "base/mem.h"
#include "text/tokenizer/internal.h"

void ak_tok_pipeline_free(struct ak_tok_pipeline *p)
{
    if (!p)
        return;
    ak_tok_transforms_free(&p->normalizers);
    ak_tok_transforms_free(&p->pretokenizers);
    ak_tok_bytes_free(&p->words);
    ak_tok_trie_free(&p->trie);
    ak_tok_specials_free(&p->normalized_specials);
    ak_buffer_free(&p->added_text);
    ak_free(p->scores);
    ak_free(p);
}

static uint64_t steps_bytes(const struct ak_tok_transforms *s)
{
    uint64_t bytes = s->n * sizeof *s->list;

    for (uint32_t i = 0; i < s->n; i++) {
        const struct ak_tok_transform *step = &s->list[i];
        bytes += step->n_text + step->n_literal +
                 (uint64_t)step->map.n_nodes * sizeof *step->map.nodes + step->map.n_text_bytes;
        if (step->pattern)
            bytes += ak_tok_regex_memory(step->pattern);
    }
    return bytes;
}

uint64_t ak_tok_pipeline_memory(const struct ak_tok_pipeline *p)
{
    if (!p)
        return 0;
    return sizeof *p + steps_bytes(&p->normalizers) + steps_bytes(&p->pretokenizers) +
           ak_tok_bytes_memory(&p->words) + (uint64_t)p->trie.n * sizeof *p->trie.order +
           p->added_text.capacity +
           p->normalized_specials.n * sizeof *p->normalized_specials.sorted +
           (p->scores ? (uint64_t)p->words.n * sizeof *p->scores : 0);
}

ak_status ak_tok_find_match(const struct ak_tok_transform *s, struct ak_tok_matcher *m,
                            const char *subject, size_t n, size_t from, bool empty, size_t *begin,
                            size_t *end, struct ak_error *error)
{
    if (s->pattern)
        return ak_tok_regex_find(s->pattern, m, subject, n, from, empty, begin, end, error);
    const char *found = memmem(subject + from, n - from, s->literal, s->n_literal);
    *begin = found ? (size_t)(found - subject) : SIZE_MAX;
    *end = *begin + s->n_literal;
    return AKUNU_OK;
}

static ak_status add_word(struct ak_tok_encoding *r, const char *word, size_t n,
                          struct ak_error *error)
{
    switch (r->t->pipeline->model) {
    case AK_TOK_MODEL_UNIGRAM: return ak_tok_unigram_encode_word(r, word, n, error);
    case AK_TOK_MODEL_WORDPIECE: return ak_tok_wordpiece_encode_word(r, word, n, error);
    default: return ak_tok_bpe_encode_word(r, word, n, error);
    }
}

/* A part of the normalized text (r->scratch.piece) between two special tokens. */
static ak_status add_normal(struct ak_tok_encoding *r, const char *text, size_t n, bool control,
                            bool start, struct ak_error *error)
{
    struct ak_tok_scratch *w = &r->scratch;

    (void)control;
    w->text.n = 0;
    AK_TRY(ak_buffer_add(&w->text, text, n, error));
    AK_TRY(ak_tok_apply_pretokenizers(&r->t->pipeline->pretokenizers, 0, n, start, r->matcher, w,
                                      error));
    for (size_t i = 0; i < w->spans.n; i++)
        AK_TRY(add_word(r, w->text.bytes + w->spans.list[i].begin,
                        w->spans.list[i].end - w->spans.list[i].begin, error));
    return AKUNU_OK;
}

ak_status ak_tok_pipeline_encode(struct ak_tok_encoding *r, const char *text, size_t n,
                                 bool control, bool start, struct ak_error *error)
{
    const struct ak_tok_pipeline *p = r->t->pipeline;

    if (!r->matcher)
        AK_TRY(ak_tok_matcher_create(&r->matcher, error));
    AK_TRY(ak_tok_normalize(&p->normalizers, text, n, r->matcher, &r->scratch, error));
    ak_buffer_swap(&r->scratch.text, &r->scratch.piece);
    return ak_tok_encode_parts(r, &p->normalized_specials, r->scratch.piece.bytes,
                               r->scratch.piece.n, control, start, add_normal, error);
}
