/* perplexity: exp of the mean negative log-likelihood of a text's tokens.
 *
 * It is measured as in llama.cpp, so that figures compare. The text's tokens are split into chunks
 * of the context's size. If the model begins texts with BOS, BOS precedes the text and replaces the
 * first token of each chunk. The tokens after position context/2 of a chunk are scored, each given
 * all before it. The error is the standard error of the mean, carried through exp. */
#include "cli/options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/input.h"
#include "cli/load.h"
#include "cli/message.h"
#include "cli/output.h"

/* Sums over the tokens scored so far. */
struct score {
    uint64_t n;
    double sum, sum_of_squares;
};

static double perplexity_of(const struct score *s)
{
    return exp(s->sum / (double)s->n);
}

static double error_of(const struct score *s)
{
    double n = (double)s->n, mean = s->sum / n;
    double variance = s->sum_of_squares / n - mean * mean;
    return s->n > 1 && variance > 0.0 ? sqrt(variance / (n - 1.0)) * perplexity_of(s) : 0.0;
}

/* -log p of one token: log-sum-exp in doubles, relative to the largest logit. */
static double nll_of(const float *logits, size_t n_vocab, akunu_token token)
{
    float largest = logits[0];
    for (size_t i = 1; i < n_vocab; i++)
        if (logits[i] > largest)
            largest = logits[i];
    double sum = 0.0;
    for (size_t i = 0; i < n_vocab; i++)
        sum += exp((double)logits[i] - (double)largest);
    return log(sum) + (double)largest - (double)logits[token];
}

/* What is the same for all chunks. */
struct work {
    struct cli_model_session *loaded;
    struct akunu_batch_token *tokens; /* of a pass */
    size_t batch, context;
    akunu_token bos; /* -1: chunks begin with the text's own token */
};

/* Runs one chunk of `context` ids and adds its scores. */
static int score_chunk(const struct work *work, const akunu_token *ids, struct score *score)
{
    struct akunu_session *session = work->loaded->session;
    if (akunu_sequence_rewind(session, work->loaded->sequence, 0) != AKUNU_OK)
        return cli_fail_library();
    for (size_t first = 0; first < work->context; first += work->batch) {
        size_t n = work->context - first < work->batch ? work->context - first : work->batch;
        for (size_t i = 0; i < n; i++) {
            size_t at = first + i;
            work->tokens[i] = (struct akunu_batch_token){
                .token = at == 0 && work->bos >= 0 ? work->bos : ids[at],
                .sequence = work->loaded->sequence,
                .logits = at >= work->context / 2 && at + 1 < work->context,
            };
        }
        if (akunu_session_decode(session, work->tokens, n) != AKUNU_OK)
            return cli_fail_library();
        for (size_t i = 0; i < n; i++) {
            if (!work->tokens[i].logits)
                continue;
            double nll = nll_of(akunu_session_logits(session, i), work->loaded->info.vocab_size,
                                ids[first + i + 1]);
            score->n++;
            score->sum += nll;
            score->sum_of_squares += nll * nll;
        }
        if (cli_is_interrupted())
            return CLI_EXIT_INTERRUPTED;
    }
    return CLI_EXIT_OK;
}

/* The BOS that the tokenizer adds before a text; -1: none. */
static akunu_token bos_of(const struct akunu_tokenizer *tokenizer)
{
    akunu_token first = -1;
    akunu_token bos = akunu_tokenizer_bos(tokenizer);
    int64_t n = akunu_tokenizer_encode(tokenizer, "", 0, AKUNU_ADD_SPECIAL, &first, 1);
    return n >= 1 && first == bos ? bos : -1;
}

/* Tokenizes the text, with BOS first if there is one. Tokens that a model adds at the end of a text
 * are left out. */
static int tokenize_text(const struct work *work, const struct cli_text *text, akunu_token **ids,
                         size_t *n)
{
    int code = cli_tokenize_text(work->loaded->tokenizer, text, 0, ids, n);
    if (code != CLI_EXIT_OK || work->bos < 0)
        return code;
    akunu_token *larger = realloc(*ids, (*n + 1) * sizeof **ids);
    if (!larger)
        return cli_fail_memory();
    memmove(larger + 1, larger, *n * sizeof *larger);
    larger[0] = work->bos;
    *ids = larger;
    ++*n;
    return CLI_EXIT_OK;
}

static int score_text(const struct work *work, const akunu_token *ids, size_t n_chunks,
                      struct score *score)
{
    int code = CLI_EXIT_OK;
    for (size_t i = 0; code == CLI_EXIT_OK && i < n_chunks; i++) {
        code = score_chunk(work, ids + i * work->context, score);
        if (code == CLI_EXIT_OK)
            fprintf(stderr, "%s[%zu]%.4f", i ? "," : "", i + 1, perplexity_of(score));
    }
    fputc('\n', stderr);
    return code;
}

static void print_score(const struct cli_options *o, const struct score *score, size_t n_chunks,
                        struct cli_output *out)
{
    double perplexity = perplexity_of(score), error = error_of(score);
    if (!o->json) {
        cli_output_format(out, "perplexity: %.4f ± %.4f (%zu chunks of %lld)\n", perplexity, error,
                          n_chunks, (long long)o->session.context);
        return;
    }
    json_t *value =
        json_pack("{s:o, s:o, s:I, s:I, s:I}", "perplexity", cli_json_real(perplexity), "error",
                  cli_json_real(error), "chunks", (json_int_t)n_chunks, "context",
                  (json_int_t)o->session.context, "tokens", (json_int_t)score->n);
    cli_json_print(out, value);
    cli_output_text(out, "\n");
}

int cli_perplexity(const struct cli_options *o)
{
    struct cli_output out = cli_output_stdout();
    struct cli_model_session loaded = { .sequence = -1 };
    struct work work = { .loaded = &loaded, .context = o->session.context, .bos = -1 };
    struct score score = { 0 };
    akunu_token *ids = NULL;
    size_t n = 0, n_chunks = 0;
    struct cli_text text;

    int code = cli_read_text(o, "the text", &text);
    if (code == CLI_EXIT_OK)
        code = cli_load_model(o, &loaded);
    if (code == CLI_EXIT_OK)
        code = cli_need_tokenizer(&loaded, "perplexity");
    if (code == CLI_EXIT_OK) {
        work.bos = bos_of(loaded.tokenizer);
        code = tokenize_text(&work, &text, &ids, &n);
    }
    if (code == CLI_EXIT_OK && n < work.context)
        code = cli_fail("the text has %zu tokens, and one chunk takes %zu (-c)", n, work.context);
    if (code == CLI_EXIT_OK)
        code = cli_open_session(o, &loaded, 0);
    if (code == CLI_EXIT_OK) {
        n_chunks = n / work.context;
        if (o->chunks > 0 && (size_t)o->chunks < n_chunks)
            n_chunks = (size_t)o->chunks;
        work.batch = akunu_session_batch(loaded.session);
        work.tokens = malloc(work.batch * sizeof *work.tokens);
        code = work.tokens ? score_text(&work, ids, n_chunks, &score) : cli_fail_memory();
    }
    if (code == CLI_EXIT_OK)
        print_score(o, &score, n_chunks, &out);
    free(work.tokens);
    free(ids);
    free(text.bytes);
    cli_unload(&loaded);
    return cli_output_end(&out, code);
}
