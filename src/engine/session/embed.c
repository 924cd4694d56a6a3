/* Embeds texts. Several texts share a pass, each as a sequence of its own, so nothing is padded. A
 * text's pooled hidden states are summed in token order, in doubles and across passes, so the other
 * texts of a pass never change its embedding. */
#include "engine/session/session.h"

#include <math.h>

#include "base/mem.h"
#include "engine/spec/stages.h"

/* A group of texts that share passes, and its progress. */
struct group {
    const struct akunu_ids *texts;   /* all texts of the call */
    size_t first, n;                 /* of the group */
    size_t text, token;              /* next to run */
    size_t pooled_text, row;         /* being pooled; its next token */
    double weights[AK_POOLINGS_MAX]; /* of the tokens in its sums, by kind */
};

/* One call: the request, and the table that runs it. */
struct job {
    struct ak_session *s;
    struct ak_backend_table *prepared;
    enum akunu_pooling kinds[AK_POOLINGS_MAX]; /* [n_kinds], joined */
    uint32_t n_kinds, width;                   /* width: elements of a row of `out` */
    size_t n_prompt;                           /* leading tokens that are not pooled */
    bool normalize, measures_all;              /* measures_all: the length before cutting counts */
    const uint32_t *seconds;                   /* as in ak_session_embed */
    uint32_t *type_starts; /* [sequences], of those of the group; NULL: as `seconds` */
    akunu_cancel_fn *cancel;
    void *user;
    float *out;
    struct ak_error *error;
};

static ak_status check_texts(const struct job *job, const struct akunu_ids *texts, size_t n)
{
    const struct ak_session *s = job->s;
    struct ak_error *error = job->error;
    uint32_t n_vocab = s->model->spec.config.vocab_size;
    uint32_t n_max =
        s->model->spec.descriptor.encoder && s->batch < s->kv.context ? s->batch : s->kv.context;
    for (size_t i = 0; i < n; i++) {
        size_t number = s->first_text + i;
        if (!texts[i].ids || texts[i].n == 0)
            return ak_fail(error, AKUNU_ERROR_ARGUMENT, "text %zu has no tokens", number);
        if (texts[i].n <= job->n_prompt)
            return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                           "text %zu has %zu tokens, and the %zu of its prompt do not count",
                           number, texts[i].n, job->n_prompt);
        if (texts[i].n > n_max)
            return ak_fail(error, AKUNU_ERROR_CONTEXT,
                           "text %zu is too long: it has %zu tokens, but the %s holds %u", number,
                           texts[i].n, n_max < s->kv.context ? "pass" : "context", (unsigned)n_max);
        for (size_t j = 0; j < texts[i].n; j++)
            if (texts[i].ids[j] < 0 || (uint32_t)texts[i].ids[j] >= n_vocab)
                return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                               "token %zu of text %zu is %d, and the vocabulary has %u", j, number,
                               (int)texts[i].ids[j], (unsigned)n_vocab);
    }
    return AKUNU_OK;
}

/* Resolves pooling and normalization from the request and the model's files. */
static ak_status choose_pooling(const struct ak_session *s,
                                const struct akunu_embedding_params *embedding, struct job *job)
{
    const struct ak_spec_pooling *model_pooling = &s->model->spec.pooling;
    uint32_t width = ak_spec_embedding_width(&s->model->spec, embedding->pooling);
    if ((unsigned)embedding->pooling > AKUNU_POOLING_WEIGHTED_MEAN)
        return ak_fail(job->error, AKUNU_ERROR_ARGUMENT,
                       "pooling is %d; expected a value of enum akunu_pooling",
                       (int)embedding->pooling);
    if ((unsigned)embedding->normalize > AKUNU_NORMALIZE_L2)
        return ak_fail(job->error, AKUNU_ERROR_ARGUMENT,
                       "normalize is %d; expected a value of enum akunu_normalize",
                       (int)embedding->normalize);
    if (embedding->pooling == AKUNU_POOLING_MODEL && model_pooling->unsupported[0])
        return ak_fail(job->error, AKUNU_ERROR_UNSUPPORTED,
                       "the model's files ask for %s, which is not supported; choose a pooling "
                       "(mean, cls or last) to do without it",
                       model_pooling->unsupported);
    if (width != (embedding->width ? embedding->width : s->model->spec.config.width))
        return ak_fail(job->error, AKUNU_ERROR_ARGUMENT,
                       "an embedding has %u elements, and the caller expects %zu: see "
                       "akunu_model_embedding_width",
                       (unsigned)width,
                       embedding->width ? embedding->width : (size_t)s->model->spec.config.width);
    job->width = width;
    job->n_prompt = embedding->n_prompt;
    job->n_kinds = embedding->pooling == AKUNU_POOLING_MODEL ? model_pooling->n_kinds : 1;
    for (uint32_t i = 0; i < job->n_kinds; i++)
        job->kinds[i] = embedding->pooling == AKUNU_POOLING_MODEL ? model_pooling->kinds[i] :
                                                                    embedding->pooling;
    job->measures_all = embedding->normalize == AKUNU_NORMALIZE_MODEL;
    job->normalize = embedding->normalize == AKUNU_NORMALIZE_MODEL ?
                         model_pooling->is_normalized :
                         embedding->normalize == AKUNU_NORMALIZE_L2;
    return AKUNU_OK;
}

ak_status ak_session_prepare_hidden(struct ak_session *s, struct ak_backend_table **out,
                                    struct ak_error *error)
{
    if (!s->model->spec.descriptor.encoder && !s->hidden)
        AK_TRY(s->backend->ops->prepare(s->backend, &s->model->hidden_table, &s->model->weights,
                                        ak_model_own_spec(s->model), &s->options, s->kv.pool,
                                        &s->hidden, error));
    *out = s->model->spec.descriptor.encoder ? s->logits : s->hidden;
    return AKUNU_OK;
}

/* Opens a group: as many texts from `first` on as fit into one pass, at least one, each with a
 * sequence of its own. */
static ak_status open_group(struct ak_session *s, const struct akunu_ids *texts, size_t first,
                            size_t n, struct group *g, struct ak_error *error)
{
    size_t tokens = 0;
    uint32_t pages = 0;
    *g = (struct group){ .texts = texts, .first = first, .text = first, .pooled_text = first };
    for (size_t i = first; i < n; i++) {
        tokens += texts[i].n;
        pages += ak_session_kv_pages_of(texts[i].n);
        if (g->n > 0 &&
            (g->n == s->kv.n_sequences || tokens > s->pass_target || pages > s->kv.n_free))
            break;
        int32_t sequence = ak_session_kv_sequence_new(&s->kv);
        if (sequence < 0)
            break;
        s->text_sequences[g->n++] = sequence;
    }
    if (g->n == 0) {
        int32_t sequence;
        return ak_session_sequence_new(s, &sequence, error); /* sets the error */
    }
    return AKUNU_OK;
}

static void close_group(struct ak_session *s, const struct group *g)
{
    for (size_t i = 0; i < g->n; i++)
        ak_session_kv_sequence_free(&s->kv, s->text_sequences[i]);
}

/* Whether a token of a text of n tokens counts. */
static bool is_pooled(const struct job *job, enum akunu_pooling kind, size_t token, size_t n)
{
    return kind == AKUNU_POOLING_CLS  ? token == job->n_prompt :
           kind == AKUNU_POOLING_LAST ? token + 1 == n :
                                        token >= job->n_prompt;
}

static bool is_needed(const struct job *job, size_t token, size_t n)
{
    bool needed = false;
    for (uint32_t k = 0; k < job->n_kinds; k++)
        needed = needed || is_pooled(job, job->kinds[k], token, n);
    return needed;
}

/* Fills the pass with the group's next tokens. Returns their number. */
static size_t fill_pass(const struct job *job, struct group *g)
{
    struct ak_session *s = job->s;
    size_t n = 0;
    for (; g->text < g->first + g->n; g->text++, g->token = 0) {
        const struct akunu_ids *text = &g->texts[g->text];
        for (; g->token < text->n; g->token++) {
            if (n == s->batch)
                return n;
            s->chunk[n++] =
                (struct akunu_batch_token){ .token = text->ids[g->token],
                                            .sequence = s->text_sequences[g->text - g->first],
                                            .logits = is_needed(job, g->token, text->n) };
        }
    }
    return n;
}

/* ---- Sums ---------------------------------------------------------------- */
/* Prepares the sums for the next text. */
static void clear_sums(const struct job *job, struct group *g)
{
    uint32_t width = job->s->model->spec.config.width;
    for (uint32_t k = 0; k < job->n_kinds; k++) {
        double first = job->kinds[k] == AKUNU_POOLING_MAX ? (double)-INFINITY : 0.0;
        for (uint32_t j = 0; j < width; j++)
            job->s->sums[(size_t)k * width + j] = first;
        g->weights[k] = 0.0;
    }
    g->row = 0;
}

/* Adds a token's hidden state to the sums. */
static void add_row(const struct job *job, struct group *g, size_t token, size_t n,
                    const float *row)
{
    uint32_t width = job->s->model->spec.config.width;
    for (uint32_t k = 0; k < job->n_kinds; k++) {
        double *sums = job->s->sums + (size_t)k * width;
        double weight = job->kinds[k] == AKUNU_POOLING_WEIGHTED_MEAN ? (double)token + 1.0 : 1.0;
        if (!is_pooled(job, job->kinds[k], token, n))
            continue;
        g->weights[k] += weight;
        for (uint32_t j = 0; j < width; j++)
            sums[j] = job->kinds[k] != AKUNU_POOLING_MAX ? sums[j] + weight * (double)row[j] :
                      (double)row[j] > sums[j]           ? (double)row[j] :
                                                           sums[j];
    }
}

/* What the sums of a kind are divided by. */
static double divisor(enum akunu_pooling kind, double weights)
{
    return kind == AKUNU_POOLING_MAX       ? 1.0 :
           kind == AKUNU_POOLING_MEAN_SQRT ? sqrt(weights) :
                                             weights;
}

/* Writes a text's embedding from its sums. The model's own unit length is that of all elements,
 * one that the caller asks for that of the elements which are left. */
static ak_status finish_text(const struct job *job, struct group *g, size_t text)
{
    struct ak_session *s = job->s;
    uint32_t width = s->model->spec.config.width, n_all = width * job->n_kinds;
    uint32_t n_measured = job->measures_all ? n_all : job->width;
    float *out = job->out + text * job->width;
    double squares = 0.0, length = 1.0;
    for (uint32_t i = 0; i < n_all; i++) {
        s->sums[i] /= divisor(job->kinds[i / width], g->weights[i / width]);
        if (i < n_measured)
            squares += s->sums[i] * s->sums[i];
    }
    if (job->normalize && squares > 0.0)
        length = sqrt(squares);
    for (uint32_t i = 0; i < job->width; i++) {
        out[i] = (float)(s->sums[i] / length);
        if (!isfinite(out[i]))
            return ak_fail(job->error, AKUNU_ERROR_NUMERIC,
                           "embedding of text %zu: element %u is not a finite number",
                           s->first_text + text, (unsigned)i);
    }
    clear_sums(job, g);
    return AKUNU_OK;
}

/* Adds the pooled rows of a pass of n tokens to the sums. */
static ak_status pool_rows(const struct job *job, struct group *g, size_t n)
{
    struct ak_session *s = job->s;
    for (size_t i = 0; i < n; i++) {
        size_t n_text = g->texts[g->pooled_text].n, token = g->row++;
        if (s->chunk[i].logits)
            add_row(job, g, token, n_text,
                    s->backend->ops->logits(job->prepared, s->caller_rows[i]));
        if (token + 1 == n_text) {
            AK_TRY(finish_text(job, g, g->pooled_text));
            g->pooled_text++;
        }
    }
    return AKUNU_OK;
}

static ak_status run_group(const struct job *job, struct group *g)
{
    struct ak_session *s = job->s;
    while (g->text < g->first + g->n) {
        if (job->cancel && job->cancel(job->user))
            return ak_fail(job->error, AKUNU_ERROR_CANCELLED, "cancelled at text %zu",
                           s->first_text + g->text);
        size_t n = fill_pass(job, g);
        s->type_starts = job->type_starts;
        ak_status status = ak_session_run_pass(s, job->prepared, s->chunk, n,
                                               (struct ak_gumbel_params){ 0 }, job->error);
        s->type_starts = NULL;
        AK_TRY(status);
        AK_TRY(pool_rows(job, g, n));
    }
    return AKUNU_OK;
}

/* Notes where the second parts of the group's texts begin. */
static void note_seconds(const struct job *job, const struct group *g)
{
    for (size_t i = 0; job->seconds && i < g->n; i++)
        job->type_starts[job->s->text_sequences[i]] = job->seconds[g->first + i];
}

static ak_status run_texts(struct job *job, const struct akunu_ids *texts, size_t n)
{
    for (size_t first = 0; first < n;) {
        struct group g;
        AK_TRY(open_group(job->s, texts, first, n, &g, job->error));
        clear_sums(job, &g);
        note_seconds(job, &g);
        ak_status status = run_group(job, &g);
        close_group(job->s, &g);
        AK_TRY(status);
        first += g.n;
    }
    return AKUNU_OK;
}

ak_status ak_session_embed(struct ak_session *s, const struct akunu_ids *texts,
                           const uint32_t *seconds, size_t n,
                           const struct akunu_embedding_params *embedding, float *out,
                           struct ak_error *error)
{
    struct job job = { .s = s,
                       .seconds = seconds,
                       .cancel = embedding->cancel,
                       .user = embedding->user,
                       .out = out,
                       .error = error };
    AK_TRY(choose_pooling(s, embedding, &job));
    AK_TRY(check_texts(&job, texts, n));
    AK_TRY(ak_session_prepare_hidden(s, &job.prepared, error));
    s->n_last = 0; /* the previous pass's logits can no longer be read */
    if (seconds)
        job.type_starts = ak_alloc(s->kv.n_sequences, sizeof *job.type_starts);
    if (seconds && !job.type_starts)
        return ak_fail_memory(error, "types of tokens", s->kv.n_sequences * sizeof(uint32_t));
    ak_status status = run_texts(&job, texts, n);
    ak_free(job.type_starts);
    return status;
}
