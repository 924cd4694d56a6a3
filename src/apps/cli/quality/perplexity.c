/* perplexity: exp of the mean negative log-likelihood of a text's tokens, and the distance of a
 * model's predictions from those of a base.
 *
 * It is measured as in llama.cpp, so that figures compare. The text's tokens are split into chunks
 * of the context's size. If the model begins texts with BOS, BOS precedes the text and replaces the
 * first token of each chunk. The tokens after position context/2 of a chunk are scored, each given
 * all before it. The error is the standard error of the mean, carried through exp.
 *
 * --save-logits keeps what a model says of the scored positions, and --kl-base compares another
 * one with it (logits_file.h, divergence.h). */
#include "apps/cli/quality/perplexity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/cli/quality/chunks.h"
#include "apps/common/load.h"
#include "apps/cli/quality/logits_file.h"
#include "apps/common/message.h"
#include "apps/common/output.h"
#include "apps/cli/quality/parallel.h"

enum { CONTEXT_DEFAULT = 512 };

/* What is the same for all chunks. */
struct work {
    struct app_model_session loaded;
    size_t context, n_chunks;
    akunu_token *ids; /* [n_chunks, context], maybe more */
    akunu_token bos;  /* -1: chunks begin with the text's own token */

    /* of a pass: its tokens, those that are scored, and their records if there is a file */
    struct akunu_batch_token *tokens;
    struct position *positions;
    uint16_t *records;
    size_t batch, n_positions;

    struct cli_logits_reader base; /* no file: no base */
    struct cli_logits_writer saved;
    struct cli_scored *scored; /* [n_chunks, context - 1 - context/2] */
    size_t n_scored;
    double nll; /* their sum */
};

/* A position that is scored. */
struct position {
    const float *logits;
    akunu_token next;
};

/* ---- Scoring ------------------------------------------------------------ */
static void score_position(size_t i, void *user)
{
    struct work *w = user;
    const struct position *p = &w->positions[i];
    struct cli_scored *scored = &w->scored[w->n_scored + i];
    size_t n_vocab = w->loaded.info.vocab_size;
    uint16_t *record = w->records ? w->records + i * cli_record_elems(n_vocab) : NULL;
    float largest;
    if (w->base.file) {
        cli_divergence_score(p->logits, n_vocab, p->next, record, scored);
        return;
    }
    double log_sum = cli_log_sum(p->logits, n_vocab, &largest);
    *scored = (struct cli_scored){ .nll = log_sum - (double)p->logits[p->next] };
    if (record)
        cli_record_encode(p->logits, n_vocab, largest, log_sum, record);
}

/* Adds up what score_position made of a pass. */
static int add_scores(struct work *w)
{
    for (size_t i = 0; i < w->n_positions; i++) {
        const struct cli_scored *s = &w->scored[w->n_scored++];
        if (isnan(s->nll) || isnan(s->kl))
            return app_fail("position %zu of chunk %zu: its logits are no finite numbers",
                            w->context / 2 + (w->n_scored - 1) % (w->context - 1 - w->context / 2),
                            (w->n_scored - 1) / (w->context - 1 - w->context / 2) + 1);
        w->nll += s->nll;
    }
    return APP_EXIT_OK;
}

static int score_pass(struct work *w)
{
    int code = APP_EXIT_OK;
    if (w->base.file)
        code = cli_logits_read(&w->base, w->n_positions, w->records);
    if (code != APP_EXIT_OK)
        return code;
    cli_parallel(akunu_session_threads(w->loaded.session), w->n_positions, score_position, w);
    code = add_scores(w);
    if (code == APP_EXIT_OK && w->saved.file.file)
        code = cli_logits_write(&w->saved, w->n_positions, w->records);
    return code;
}

/* Runs n tokens of a chunk, from position `first` on. */
static int run_chunk_part(struct work *w, const akunu_token *ids, size_t first, size_t n)
{
    struct akunu_session *session = w->loaded.session;
    for (size_t i = 0; i < n; i++) {
        size_t at = first + i;
        w->tokens[i] = (struct akunu_batch_token){
            .token = at == 0 && w->bos >= 0 ? w->bos : ids[at],
            .sequence = w->loaded.sequence,
            .logits = at >= w->context / 2 && at + 1 < w->context,
        };
    }
    if (akunu_session_decode(session, w->tokens, n) != AKUNU_OK)
        return app_fail_library();
    w->n_positions = 0;
    for (size_t i = 0; i < n; i++)
        if (w->tokens[i].logits)
            w->positions[w->n_positions++] =
                (struct position){ .logits = akunu_session_logits(session, i),
                                   .next = ids[first + i + 1] };
    int code = score_pass(w);
    return code == APP_EXIT_OK && app_is_interrupted() ? APP_EXIT_INTERRUPTED : code;
}

static int score_chunk(struct work *w, const akunu_token *ids)
{
    int code = APP_EXIT_OK;
    if (akunu_sequence_rewind(w->loaded.session, w->loaded.sequence, 0) != AKUNU_OK)
        return app_fail_library();
    for (size_t first = 0; code == APP_EXIT_OK && first < w->context; first += w->batch) {
        size_t left = w->context - first;
        code = run_chunk_part(w, ids, first, left < w->batch ? left : w->batch);
    }
    return code;
}

static int score_text(struct work *w)
{
    int code = APP_EXIT_OK;
    for (size_t i = 0; code == APP_EXIT_OK && i < w->n_chunks; i++) {
        code = score_chunk(w, w->ids + i * w->context);
        if (code == APP_EXIT_OK)
            fprintf(stderr, "%s[%zu]%.4f", i ? "," : "", i + 1, exp(w->nll / (double)w->n_scored));
    }
    fputc('\n', stderr);
    return code;
}

/* ---- Text --------------------------------------------------------------- */
static int read_text(const struct app_options *o, const struct app_text *text, struct work *w)
{
    struct cli_chunks chunks;
    w->context = o->session.context ? o->session.context : CONTEXT_DEFAULT;
    int code = cli_read_chunks(&w->loaded, text, 0, w->context, &chunks);
    w->ids = chunks.ids;
    w->n_chunks = chunks.n;
    return code;
}

/* Takes the text from the base's file. */
static int read_base(const struct app_options *o, struct work *w)
{
    int code = cli_logits_open(o->quality.kl_base, w->loaded.info.vocab_size, &w->base);
    if (code != APP_EXIT_OK)
        return code;
    if (o->session.context && o->session.context != w->base.context)
        return app_fail_usage("-c %u: the chunks of %s have %u tokens", o->session.context,
                              o->quality.kl_base, w->base.context);
    w->context = w->base.context;
    w->n_chunks = w->base.n_chunks;
    w->ids = w->base.tokens;
    w->base.tokens = NULL;
    return APP_EXIT_OK;
}

/* ---- Beginning and end -------------------------------------------------- */
static int open_for_chunks(const struct app_options *o, struct work *w)
{
    struct app_options of_chunk = *o;
    size_t n_scored = w->n_chunks * (w->context - 1 - w->context / 2);
    bool has_file = o->quality.kl_base || o->quality.save_logits;
    of_chunk.session.context = (uint32_t)w->context;
    int code = app_open_session(&of_chunk, &w->loaded, 0);
    if (code != APP_EXIT_OK)
        return code;
    w->batch = akunu_session_batch(w->loaded.session);
    w->tokens = malloc(w->batch * sizeof *w->tokens);
    w->positions = malloc(w->batch * sizeof *w->positions);
    w->scored = calloc(n_scored, sizeof *w->scored);
    if (has_file)
        w->records =
            calloc(w->batch, cli_record_elems(w->loaded.info.vocab_size) * sizeof *w->records);
    return w->tokens && w->positions && w->scored && (w->records || !has_file) ? APP_EXIT_OK :
                                                                                 app_fail_memory();
}

/* Tokens a second that follow each other, as in generating: some of the text's. */
static int measure_rate(struct work *w, double *rate)
{
    enum { TOKENS = 64, WARM_UP = 8 };
    struct akunu_session *session = w->loaded.session;
    size_t n = w->context < TOKENS ? w->context : TOKENS, warm_up = n / 2 < WARM_UP ? 0 : WARM_UP;
    double started = app_seconds();
    if (akunu_sequence_rewind(session, w->loaded.sequence, 0) != AKUNU_OK)
        return app_fail_library();
    for (size_t i = 0; i < n; i++) {
        struct akunu_batch_token token = { w->ids[i], w->loaded.sequence, true };
        if (i == warm_up)
            started = app_seconds();
        if (akunu_session_decode(session, &token, 1) != AKUNU_OK)
            return app_fail_library();
    }
    *rate = app_rate((double)(n - warm_up), app_seconds() - started);
    return APP_EXIT_OK;
}

/* Scores the text with the model that is loaded. */
static int score_whole_text(const struct app_options *o, const struct app_text *text,
                            struct work *w)
{
    w->bos = app_bos_of(w->loaded.tokenizer);
    int code = o->quality.kl_base ? read_base(o, w) : read_text(o, text, w);
    if (code == APP_EXIT_OK && o->quality.chunks > 0 && (size_t)o->quality.chunks < w->n_chunks)
        w->n_chunks = (size_t)o->quality.chunks;
    if (code == APP_EXIT_OK)
        code = open_for_chunks(o, w);
    if (code == APP_EXIT_OK && o->quality.save_logits)
        code = cli_logits_create(o->quality.save_logits, w->ids, (uint32_t)w->context,
                                 (uint32_t)w->n_chunks, w->loaded.info.vocab_size, &w->saved);
    if (code == APP_EXIT_OK)
        code = score_text(w);
    return cli_new_file_end(&w->saved.file, code);
}

static int summarize(const struct app_options *o, struct work *w, struct cli_text_score *out)
{
    struct akunu_file_info file = { .bytes = 0 };
    if (akunu_file_get_info(akunu_model_file(w->loaded.model), &file, sizeof file) != AKUNU_OK)
        return app_fail_library();
    *out = (struct cli_text_score){
        .context = w->context,
        .n_chunks = w->n_chunks,
        .n_tokens = w->n_scored,
        .perplexity = cli_perplexity_of(&w->scored->nll, w->n_scored, sizeof *w->scored),
        .file_bytes = file.bytes,
    };
    int code = o->command == APP_REPORT ? measure_rate(w, &out->rate) : APP_EXIT_OK;
    if (code == APP_EXIT_OK && o->quality.kl_base)
        code = cli_divergence_summarize(w->scored, w->n_scored, &out->divergence);
    return code;
}

int cli_score_text(const struct app_options *o, const struct app_text *text,
                   struct cli_text_score *out)
{
    struct work work = { .loaded.sequence = -1, .bos = -1 };
    int code = app_load_model(o, &work.loaded);
    if (code == APP_EXIT_OK)
        code = app_need_tokenizer(&work.loaded, "perplexity");
    if (code == APP_EXIT_OK)
        code = score_whole_text(o, text, &work);
    if (code == APP_EXIT_OK)
        code = summarize(o, &work, out);
    cli_logits_close(&work.base);
    free(work.records);
    free(work.scored);
    free(work.positions);
    free(work.tokens);
    free(work.ids);
    app_unload(&work.loaded);
    return code;
}

/* ---- The command -------------------------------------------------------- */
static int check_flags(const struct app_options *o)
{
    if (o->quality.kl_base && o->quality.save_logits)
        return app_fail_usage("--kl-base and --save-logits exclude each other");
    if (o->quality.kl_base && (o->prompt.text || o->prompt.file))
        return app_fail_usage("%s has no effect with --kl-base, whose file has the text's tokens",
                              o->prompt.text ? "-p" : "-f");
    return APP_EXIT_OK;
}

static void print_score(const struct app_options *o, const struct cli_text_score *score,
                        struct app_output *out)
{
    if (!o->output.json) {
        app_output_format(out, "perplexity: %.4f ± %.4f (%zu chunks of %zu)\n",
                          score->perplexity.value, score->perplexity.error, score->n_chunks,
                          score->context);
        if (o->quality.kl_base)
            cli_divergence_print(&score->divergence, out);
        return;
    }
    json_t *value = json_pack(
        "{s:o, s:o, s:I, s:I, s:I}", "perplexity", app_json_real(score->perplexity.value), "error",
        app_json_real(score->perplexity.error), "chunks", (json_int_t)score->n_chunks, "context",
        (json_int_t)score->context, "tokens", (json_int_t)score->n_tokens);
    if (o->quality.kl_base)
        cli_divergence_json(&score->divergence, value);
    app_json_print(out, value);
    app_output_text(out, "\n");
}

int cli_perplexity(const struct app_options *o)
{
    struct app_output out = app_output_stdout();
    struct cli_text_score score;
    struct app_text text = { 0 };
    int code = check_flags(o);
    if (code == APP_EXIT_OK && !o->quality.kl_base)
        code = app_read_text(o, "the text", &text);
    if (code == APP_EXIT_OK)
        code = cli_score_text(o, &text, &score);
    if (code == APP_EXIT_OK)
        print_score(o, &score, &out);
    free(text.bytes);
    return app_output_end(&out, code);
}
