/* A text that the model writes itself, for imatrix: several at once, each begun with BOS and
 * sampled at temperature 1 from all tokens, so that what the model was trained on comes in its
 * proportions. Seeds count up from 1: the same model writes the same text on every machine. */
#include "apps/cli/quality/chunks.h"

#include <stdlib.h>
#include <string.h>

#include "apps/common/message.h"

enum { LANES = 16, ROUNDS_MAX = 64 };

/* Texts of one round, [LANES][size] tokens. */
struct own_text {
    struct app_model_session *loaded;
    struct app_progress *progress;
    struct cli_chunks *out;
    akunu_token begin, *lanes;
    size_t lengths[LANES], n, end; /* tokens of out->ids; when that is enough */
    size_t n_now;                  /* with those of this round */
};

static bool keep(size_t lane, akunu_token token, const char *text, size_t n, void *user)
{
    struct own_text *t = user;
    (void)text;
    (void)n;
    if (token < 0)
        return true;
    if (t->n_now >= t->end)
        return false;
    t->lanes[lane * t->out->size + t->lengths[lane]++] = token;
    app_progress_show(t->progress, "writing a text", (double)++t->n_now / (double)t->end);
    return true;
}

static bool is_cancelled(void *user)
{
    (void)user;
    return app_is_interrupted();
}

static int write_round(struct own_text *t, uint64_t seed)
{
    struct akunu_sampling_params sampling;
    struct akunu_generation_params generation;
    akunu_sequence sequences[LANES];
    akunu_sampling_params_default(&sampling, sizeof sampling);
    akunu_generation_params_default(&generation, sizeof generation);
    sampling.samplers = "";
    sampling.temperature = 1.0f;
    sampling.seed = seed;
    generation.sampling = &sampling;
    generation.max_tokens = (int64_t)t->out->size - 1;
    generation.on_piece = keep;
    generation.cancel = is_cancelled;
    generation.user = t;
    memset(t->lengths, 0, sizeof t->lengths);
    t->n_now = t->n;
    sequences[0] = akunu_sequence_new(t->loaded->session);
    if (sequences[0] < 0)
        return app_fail_library();
    enum akunu_status status =
        akunu_session_generate_parallel(t->loaded->session, sequences, LANES,
                                        &(struct akunu_ids){ &t->begin, 1 }, &generation, NULL);
    for (size_t i = 0; i < LANES; i++)
        akunu_sequence_free(t->loaded->session, sequences[i]);
    if (status == AKUNU_ERROR_CANCELLED)
        return APP_EXIT_INTERRUPTED;
    return status == AKUNU_OK ? APP_EXIT_OK : app_fail_library();
}

/* Appends the texts of the round, each after the token that it began with. */
static void append_round(struct own_text *t)
{
    for (size_t i = 0; i < LANES; i++)
        for (size_t k = 0; k <= t->lengths[i] && t->n < t->end; k++)
            t->out->ids[t->n++] = k == 0 ? t->begin : t->lanes[i * t->out->size + k - 1];
}

static int write_all(struct own_text *t)
{
    uint64_t seed = 1;
    for (unsigned round = 0; t->n < t->end; round++, seed += LANES) {
        if (round == ROUNDS_MAX)
            return app_fail("%s writes too little by itself: %zu tokens in %u texts; a text has to "
                            "be given (-f)",
                            t->loaded->path, t->n, ROUNDS_MAX * LANES);
        int code = write_round(t, seed);
        if (code != APP_EXIT_OK)
            return code;
        append_round(t);
    }
    return APP_EXIT_OK;
}

/* BOS; of a model without, the token that ends texts, which stands between those of its training.
 */
static akunu_token find_begin(const struct akunu_tokenizer *tokenizer)
{
    akunu_token bos = akunu_tokenizer_bos(tokenizer);
    return bos >= 0 ? bos : akunu_tokenizer_special(tokenizer, AKUNU_TOKEN_EOS);
}

int cli_write_own_chunks(const struct app_options *o, struct app_model_session *loaded, size_t size,
                         size_t n, struct app_progress *progress, struct cli_chunks *out)
{
    struct app_options of_texts = *o;
    struct own_text t = { .loaded = loaded,
                          .progress = progress,
                          .out = out,
                          .begin = find_begin(loaded->tokenizer),
                          .end = size * n };
    *out = (struct cli_chunks){ .n = n, .size = size, .bos = app_bos_of(loaded->tokenizer) };
    if (t.begin < 0)
        return app_fail("%s has no token that begins a text; a text has to be given (-f)",
                        loaded->path);
    out->ids = malloc(t.end * sizeof *out->ids);
    t.lanes = malloc(LANES * size * sizeof *t.lanes);
    int code = out->ids && t.lanes ? APP_EXIT_OK : app_fail_memory();
    of_texts.session.context = (uint32_t)(LANES * size);
    loaded->max_sequences = LANES;
    if (code == APP_EXIT_OK)
        code = app_open_session(&of_texts, loaded, 0);
    if (code == APP_EXIT_OK) {
        akunu_sequence_free(loaded->session, loaded->sequence);
        loaded->sequence = -1;
        code = write_all(&t);
    }
    app_close_session(loaded);
    loaded->max_sequences = 0;
    free(t.lanes);
    return code;
}
