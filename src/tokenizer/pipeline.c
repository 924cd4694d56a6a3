#include "tokenizer/pipeline.h"

#include "base/mem.h"
#include "tokenizer/state.h"

void ak_pipeline_free(struct ak_pipeline *p)
{
    if (!p)
        return;
    ak_steps_free(&p->normalizers);
    ak_steps_free(&p->splits);
    ak_pieces_free(&p->words);
    ak_trie_free(&p->trie);
    ak_specials_free(&p->normalized);
    ak_buffer_free(&p->added_text);
    ak_free(p->scores);
    ak_free(p);
}

static uint64_t steps_bytes(const struct ak_steps *s)
{
    uint64_t bytes = s->n * sizeof *s->list;

    for (uint32_t i = 0; i < s->n; i++) {
        const struct ak_step *step = &s->list[i];
        bytes += step->n_text + step->n_literal +
                 (uint64_t)step->map.n_nodes * sizeof *step->map.nodes + step->map.n_texts;
        if (step->pattern)
            bytes += ak_regex_bytes(step->pattern);
    }
    return bytes;
}

uint64_t ak_pipeline_bytes(const struct ak_pipeline *p)
{
    if (!p)
        return 0;
    return sizeof *p + steps_bytes(&p->normalizers) + steps_bytes(&p->splits) +
           ak_pieces_bytes(&p->words) + (uint64_t)p->trie.n * sizeof *p->trie.order +
           p->added_text.capacity + p->normalized.n * sizeof *p->normalized.sorted +
           (p->scores ? (uint64_t)p->words.n * sizeof *p->scores : 0);
}

static ak_status add_word(struct ak_run *r, const char *word, size_t n, struct ak_error *error)
{
    switch (r->t->pipeline->core) {
    case AK_CORE_UNIGRAM: return ak_unigram_word(r, word, n, error);
    case AK_CORE_WORDPIECE: return ak_wordpiece_word(r, word, n, error);
    default: return ak_bpe_word(r, word, n, error);
    }
}

/* What is between two special tokens of the normal form, which is in work.piece. */
static ak_status add_normal(struct ak_run *r, const char *text, size_t n, bool control, bool start,
                            struct ak_error *error)
{
    struct ak_work *w = &r->work;

    (void)control;
    w->text.n = 0;
    AK_TRY(ak_buffer_add(&w->text, text, n, error));
    AK_TRY(ak_split_text(&r->t->pipeline->splits, 0, n, start, r->matcher, w, error));
    for (size_t i = 0; i < w->cuts.n; i++)
        AK_TRY(add_word(r, w->text.bytes + w->cuts.list[i].begin,
                        w->cuts.list[i].end - w->cuts.list[i].begin, error));
    return AKUNU_OK;
}

ak_status ak_pipeline_text(struct ak_run *r, const char *text, size_t n, bool control, bool start,
                           struct ak_error *error)
{
    const struct ak_pipeline *p = r->t->pipeline;

    if (!r->matcher)
        AK_TRY(ak_matcher_create(&r->matcher, error));
    AK_TRY(ak_normalize(&p->normalizers, text, n, r->matcher, &r->work, error));
    ak_buffer_swap(&r->work.text, &r->work.piece);
    return ak_add_parts(r, &p->normalized, r->work.piece.bytes, r->work.piece.n, control, start,
                        add_normal, error);
}
