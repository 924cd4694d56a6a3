/* Drops pages of a sequence's KV cache: those to which the end of the text pays least attention.
 *
 * As in SnapKV (Li et al. 2024, arXiv 2404.14469), the queries of the last tokens say what the rest
 * of the text will need: their attention weights are added up by token and smoothed over neighbors.
 * SnapKV then chooses tokens for each head. Here a page holds its tokens of all layers and heads,
 * so pages are chosen, for all heads at once. */
#include "base/mem.h"
#include "engine/session/session.h"

enum {
    WINDOW = 32,  /* last tokens, whose queries are read, as in the paper */
    SMOOTHED = 7, /* tokens over which a weight is averaged, as in the paper */
};

ak_status ak_session_check_evict(const struct ak_session *s, struct ak_error *error)
{
    if (!s->backend->ops->skips_pages)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "the backend %s cannot drop parts of the KV cache; the cpu can",
                       s->backend->ops->describe(s->backend));
    if (s->model->spec.descriptor.encoder || s->max_windows > 0)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "parts of the KV cache can be dropped in models that continue texts, and "
                       "this one does not");
    if (ak_spec_state_elems(&s->model->spec) > 0)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "the model has recurrent state: parts of its KV cache cannot be dropped");
    return AKUNU_OK;
}

bool ak_session_evicts(const struct ak_session *s, uint32_t n)
{
    return s->kv_keep > 0 && ak_session_kv_pages_of(n) > ak_session_kv_pages_of(s->kv_keep);
}

/* ---- Importance --------------------------------------------------------- */
/* Runs the last tokens again, which are in the cache: their queries alone. */
static ak_status run_window(struct ak_session *s, int32_t sequence,
                            const struct ak_batch_importance *importance, struct ak_error *error)
{
    const struct ak_session_kv_sequence *own = ak_session_kv_sequence(&s->kv, sequence);
    uint32_t first = own->length - (own->length < WINDOW ? own->length : WINDOW), row;
    for (uint32_t n; first < own->length; first += n) {
        n = own->length - first < s->batch ? own->length - first : s->batch;
        row = n - 1;
        for (uint32_t i = 0; i < n; i++) {
            s->tokens[i] = own->tokens[first + i];
            s->positions[i] = first + i;
            s->sequences[i] = (uint32_t)sequence;
            s->caller_rows[i] = AK_OP_NONE;
        }
        struct ak_batch batch = { .n = n,
                                  .tokens = s->tokens,
                                  .positions = s->positions,
                                  .sequences = s->sequences,
                                  .pages = s->kv.tables,
                                  .n_logits = first + n == own->length,
                                  .logit_rows = &row,
                                  .n_best = s->n_best,
                                  .importance = importance };
        s->n_last = 0;
        s->backend->ops->run(s->logits, &batch);
        AK_TRY(s->backend->ops->sync(s->logits, error));
        s->n_passes++;
        s->n_tokens += n;
        s->caller_rows[row] = 0;
        s->n_last = n;
    }
    return AKUNU_OK;
}

/* Largest weight of a page, as the sum over its neighbors; `end`: of the tokens. */
static uint64_t find_peak(const uint64_t *weights, uint32_t page, size_t end)
{
    size_t begin = (size_t)page * AK_KV_PAGE_TOKENS;
    uint64_t largest = 0;
    for (size_t t = begin; t < begin + AK_KV_PAGE_TOKENS; t++) {
        uint64_t sum = 0;
        for (size_t i = t < SMOOTHED / 2 ? 0 : t - SMOOTHED / 2; i <= t + SMOOTHED / 2 && i < end;
             i++)
            sum += weights[i];
        largest = sum > largest ? sum : largest;
    }
    return largest;
}

/* A page's score is its peak in the layer and head that values it most: a fact is looked up by few
 * heads, and the sum over all is that of the others (bench/notes). */
static void score_pages(const struct ak_batch_importance *importance, size_t n_heads,
                        const uint32_t *pages, uint32_t end, uint64_t *scores)
{
    for (size_t h = 0; h < n_heads; h++)
        for (uint32_t p = 0; p < end; p++) {
            if (pages[p] == AK_KV_NO_PAGE)
                continue;
            uint64_t peak =
                find_peak(importance->sums + h * importance->stride, p, importance->stride);
            scores[p] = peak > scores[p] ? peak : scores[p];
        }
}

static ak_status score_by_attention(struct ak_session *s, int32_t sequence, uint32_t end,
                                    uint64_t *scores, struct ak_error *error)
{
    const struct ak_session_kv_sequence *own = ak_session_kv_sequence(&s->kv, sequence);
    const struct ak_spec *spec = &s->model->spec;
    size_t n_heads = (size_t)ak_spec_kv_layers(spec) * spec->config.n_kv_heads;
    struct ak_batch_importance importance = {
        .stride = (size_t)ak_session_kv_pages_of(own->length) * AK_KV_PAGE_TOKENS,
        .n_kv_heads = spec->config.n_kv_heads,
    };
    importance.sums = ak_alloc(n_heads * importance.stride, sizeof *importance.sums);
    if (!importance.sums)
        return ak_fail_memory(error, "the importance of tokens",
                              n_heads * importance.stride * sizeof *importance.sums);
    ak_status status = run_window(s, sequence, &importance, error);
    if (status == AKUNU_OK)
        score_pages(&importance, n_heads, own->pages, end, scores);
    ak_free(importance.sums);
    return status;
}

/* ---- Choice ------------------------------------------------------------- */
/* Drops pages of least score among those before page `end` until n_drop are dropped; of equal ones,
 * the first. The first page of a sequence stays. */
static void drop_least(struct ak_session *s, int32_t sequence, uint32_t end, uint32_t n_drop,
                       const uint64_t *scores)
{
    const uint32_t *pages = s->kv.sequences[sequence].pages;
    for (; n_drop > 0; n_drop--) {
        uint32_t least = 0;
        for (uint32_t p = 1; p < end; p++)
            if (pages[p] != AK_KV_NO_PAGE && (least == 0 || scores[p] < scores[least]))
                least = p;
        if (least == 0)
            return;
        ak_session_kv_drop_page(&s->kv, sequence, least);
    }
}

ak_status ak_session_evict(struct ak_session *s, int32_t sequence, uint32_t n_tokens,
                           enum akunu_kv_choice choice, struct ak_error *error)
{
    const struct ak_session_kv_sequence *own;
    AK_TRY(ak_session_find(s, sequence, &own, error));
    AK_TRY(ak_session_check_evict(s, error));
    if (n_tokens < AKUNU_KV_KEEP_MIN)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "%u tokens of the KV cache are to stay: expected %d or more",
                       (unsigned)n_tokens, AKUNU_KV_KEEP_MIN);
    uint32_t n_pages = ak_session_kv_pages_of(own->length),
             n_keep = ak_session_kv_pages_of(n_tokens), present = n_pages - own->n_dropped,
             end = own->length < WINDOW ? 0 : (own->length - WINDOW) / AK_KV_PAGE_TOKENS;
    if (present <= n_keep)
        return AKUNU_OK;
    uint64_t *scores = ak_alloc(n_pages, sizeof *scores);
    if (!scores)
        return ak_fail_memory(error, "the importance of tokens", n_pages * sizeof *scores);
    ak_status status = AKUNU_OK;
    if (choice == AKUNU_KV_IMPORTANT)
        status = score_by_attention(s, sequence, end, scores, error);
    else
        for (uint32_t p = 0; p < n_pages; p++)
            scores[p] = p;
    if (status == AKUNU_OK) {
        drop_least(s, sequence, end, present - n_keep, scores);
        ak_log_line(&s->log, AKUNU_LOG_INFO, "KV cache: %u of %u pages of %d tokens stay",
                    (unsigned)(n_pages - own->n_dropped), (unsigned)n_pages, AK_KV_PAGE_TOKENS);
    }
    ak_free(scores);
    return status;
}
