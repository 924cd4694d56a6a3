/* Continues several prompts at once: batch MODEL.gguf "Once upon" "The sea" "In the morning"
 *
 * Each prompt is a sequence of its own, and each pass has a token of every sequence: the weights
 * are read once for all of them. */
#include <akunu/akunu.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS_MAX = 32 };

struct line {
    akunu_sequence sequence;
    struct akunu_sampler *sampler;
    akunu_token token; /* sampled last; -1: the text has ended */
    akunu_token tokens[TOKENS_MAX];
    size_t n_tokens;
};

struct batch {
    const struct akunu_tokenizer *tokenizer;
    struct akunu_session *session;
    struct line *lines;
    size_t n;
};

/* Samples the next token of a line from row i of the logits. */
static bool sample(const struct batch *b, struct line *line, size_t i)
{
    const float *logits = akunu_session_logits(b->session, i);
    line->token = logits ? akunu_sampler_sample(line->sampler, logits) : -1;
    if (line->token < 0)
        return false;
    akunu_sampler_accept(line->sampler, line->token);
    if (akunu_tokenizer_is_end(b->tokenizer, line->token))
        line->token = -1;
    else
        line->tokens[line->n_tokens++] = line->token;
    return true;
}

/* Runs a prompt and samples the first token. */
static bool begin_line(const struct batch *b, struct line *line, const char *prompt)
{
    size_t n_bytes = strlen(prompt), last;
    int64_t n = akunu_tokenizer_encode(b->tokenizer, prompt, n_bytes, AKUNU_ADD_SPECIAL, NULL, 0);
    akunu_token *ids = n >= 0 ? calloc((size_t)n + 1, sizeof *ids) : NULL;
    line->sequence = akunu_sequence_new(b->session);
    bool good = ids && line->sequence >= 0 && line->sampler;
    if (good) {
        akunu_tokenizer_encode(b->tokenizer, prompt, n_bytes, AKUNU_ADD_SPECIAL, ids, (size_t)n);
        for (int64_t i = 0; i < n; i++) /* for the penalties */
            akunu_sampler_accept(line->sampler, ids[i]);
        const struct akunu_ids all = { ids, (size_t)n };
        good = akunu_session_prefill(b->session, line->sequence, &all, NULL, NULL, &last) ==
                   AKUNU_OK &&
               sample(b, line, last);
    }
    free(ids);
    return good;
}

/* One pass: a token of each line that goes on. *n_running: how many those are. */
static bool run_pass(const struct batch *b, struct akunu_batch_token *tokens, size_t *n_running)
{
    size_t n = 0, row = 0;
    for (size_t i = 0; i < b->n; i++)
        if (b->lines[i].token >= 0 && b->lines[i].n_tokens < TOKENS_MAX)
            tokens[n++] = (struct akunu_batch_token){ .token = b->lines[i].token,
                                                      .sequence = b->lines[i].sequence,
                                                      .logits = true };
    *n_running = n;
    if (n > 0 && akunu_session_decode(b->session, tokens, n) != AKUNU_OK)
        return false;
    for (size_t i = 0; n > 0 && i < b->n; i++)
        if (b->lines[i].token >= 0 && b->lines[i].n_tokens < TOKENS_MAX &&
            !sample(b, &b->lines[i], row++))
            return false;
    return true;
}

static void print_line(const struct batch *b, const struct line *line, const char *prompt)
{
    char text[TOKENS_MAX * 64];
    int64_t n = akunu_tokenizer_decode(b->tokenizer, line->tokens, line->n_tokens,
                                       AKUNU_CONTINUE | AKUNU_SKIP_SPECIAL, text, sizeof text);
    n = n < (int64_t)sizeof text ? n : (int64_t)sizeof text;
    printf("%s%.*s\n", prompt, n > 0 ? (int)n : 0, text);
}

static bool run(const struct batch *b, struct akunu_sampler *sampler, char **prompts)
{
    struct akunu_batch_token *tokens = calloc(b->n, sizeof *tokens);
    size_t n_running = b->n;
    bool good = tokens != NULL;
    for (size_t i = 0; good && i < b->n; i++) {
        b->lines[i].sampler = akunu_sampler_clone(sampler);
        good = begin_line(b, &b->lines[i], prompts[i]);
    }
    while (good && n_running > 0)
        good = run_pass(b, tokens, &n_running);
    for (size_t i = 0; good && i < b->n; i++)
        print_line(b, &b->lines[i], prompts[i]);
    for (size_t i = 0; i < b->n; i++)
        akunu_sampler_free(b->lines[i].sampler);
    free(tokens);
    return good;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: batch MODEL.gguf PROMPT...\n");
        return 2;
    }
    struct akunu_session_params params;
    akunu_session_params_default(&params, sizeof params);
    params.max_sequences = (uint32_t)argc - 2;

    struct batch b = { .n = (size_t)argc - 2 };
    struct akunu_model *model = akunu_model_load(argv[1], NULL);
    b.tokenizer = akunu_model_tokenizer(model);
    b.session = model ? akunu_session_new(model, &params) : NULL;
    b.lines = calloc(b.n, sizeof *b.lines);
    struct akunu_sampler *sampler = model ? akunu_sampler_new(model, NULL) : NULL;
    bool good = b.session && b.lines && sampler && run(&b, sampler, argv + 2);
    if (!good)
        fprintf(stderr, "batch: %s\n", akunu_last_error());
    free(b.lines);
    akunu_sampler_free(sampler);
    akunu_session_free(b.session);
    akunu_model_free(model);
    return good ? 0 : 1;
}
