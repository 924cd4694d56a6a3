/* Log-likelihoods of choices.
 *
 * The choices of a question share the tokens that they begin with: these run once, in a sequence
 * of the question, of which each choice then is a fork. Several questions share passes. */
#include "apps/cli/quality/eval.h"

#include <stdlib.h>
#include <string.h>

#include "apps/common/input.h"
#include "apps/common/message.h"

enum {
    PREFIXES_MAX = 6,   /* questions that run together */
    FORKS_MAX = 24,     /* choices that do */
    CONTEXT_MAX = 2048, /* tokens of a session for them, unless one question needs more */
    ALL_CHOICES = -1
};

/* What a token of a pass stands for. */
struct position {
    struct cli_question *question;
    int choice; /* or ALL_CHOICES: the token is of the part that they share */
    size_t at;  /* position in the text */
};

struct scorer {
    struct app_model_session loaded;
    struct cli_questions *questions;
    struct akunu_batch_token *tokens; /* of the next pass, [batch] */
    struct position *positions;
    size_t batch, n_tokens;
    akunu_sequence forks[FORKS_MAX];
    size_t n_forks;
    size_t held, context; /* tokens in the KV cache, and those that it holds */
    struct app_progress progress;
};

/* ---- Tokens ------------------------------------------------------------- */
static int encode_part(const struct scorer *s, akunu_token bos, const char *text, size_t n_bytes,
                       akunu_token **ids, size_t *n)
{
    const struct app_text bytes = { (char *)(uintptr_t)text, n_bytes };
    int code = app_tokenize_text(s->loaded.tokenizer, &bytes, 0, ids, n);
    if (code != APP_EXIT_OK || bos < 0)
        return code;
    akunu_token *larger = realloc(*ids, (*n + 1) * sizeof *larger);
    if (!larger)
        return app_fail_memory();
    memmove(larger + 1, larger, *n * sizeof *larger);
    larger[0] = bos;
    *ids = larger;
    ++*n;
    return APP_EXIT_OK;
}

/* Tokens of a choice. Whitespace at the context's end counts to the text, whose tokens are those
 * after the context's. */
static int encode_choice(const struct scorer *s, akunu_token bos, struct cli_choice *choice)
{
    akunu_token *ids = NULL;
    char *whole;
    size_t n_context = strlen(choice->context);
    int n_whole = asprintf(&whole, "%s%s", choice->context, choice->text);
    if (n_whole < 0)
        return app_fail_memory();
    while (n_context > 0 && strchr(" \t\n\r\v\f", choice->context[n_context - 1]))
        n_context--;
    free(choice->ids);
    choice->ids = NULL;
    int code = encode_part(s, bos, choice->context, n_context, &ids, &choice->n_context);
    free(ids);
    if (code == APP_EXIT_OK)
        code = encode_part(s, bos, whole, (size_t)n_whole, &choice->ids, &choice->n);
    free(whole);
    return code;
}

static int encode_questions(const struct scorer *s, size_t *longest)
{
    akunu_token bos = app_bos_of(s->loaded.tokenizer);
    *longest = 0;
    for (size_t i = 0; i < s->questions->n; i++) {
        struct cli_question *q = &s->questions->list[i];
        for (size_t k = 0; k < q->n_choices; k++) {
            struct cli_choice *choice = &q->choices[k];
            int code = encode_choice(s, bos, choice);
            if (code != APP_EXIT_OK)
                return code;
            if (choice->n_context == 0 || choice->n <= choice->n_context)
                return app_fail("%s:%zu: choice %zu: its context has %zu tokens, and its text none "
                                "of %zu is left for; expected at least one each",
                                s->questions->path, q->line, k + 1, choice->n_context, choice->n);
            choice->logprob = 0.0;
            *longest = choice->n > *longest ? choice->n : *longest;
        }
    }
    return APP_EXIT_OK;
}

/* Tokens that all choices begin with; the last token of each is never run. */
static size_t prefix_of(const struct cli_question *q)
{
    const struct cli_choice *first = &q->choices[0];
    size_t n = first->n - 1;
    for (size_t k = 1; k < q->n_choices; k++) {
        const struct cli_choice *other = &q->choices[k];
        size_t i = 0, limit = n < other->n - 1 ? n : other->n - 1;
        while (i < limit && other->ids[i] == first->ids[i])
            i++;
        n = i;
    }
    return n;
}

/* ---- Passes ------------------------------------------------------------- */
/* Whether the logits after position `at` predict a token of the choice's text. */
static bool is_scored(const struct cli_choice *choice, size_t at)
{
    return at + 1 >= choice->n_context && at + 1 < choice->n;
}

/* The choices that a token stands for. */
static struct cli_choice *choices_at(const struct position *position, size_t *n)
{
    *n = position->choice == ALL_CHOICES ? position->question->n_choices : 1;
    return position->question->choices + (position->choice == ALL_CHOICES ? 0 : position->choice);
}

static int add_logprobs(const struct scorer *s, const struct position *position,
                        const float *logits)
{
    size_t n;
    struct cli_choice *choices = choices_at(position, &n);
    for (size_t k = 0; k < n; k++) {
        float logprob;
        if (!is_scored(&choices[k], position->at))
            continue;
        if (akunu_logprobs_compute(logits, s->loaded.info.vocab_size,
                                   choices[k].ids[position->at + 1], &logprob, NULL, 0) != AKUNU_OK)
            return app_fail_library();
        choices[k].logprob += (double)logprob;
    }
    return APP_EXIT_OK;
}

/* Runs the tokens that wait. */
static int run_waiting(struct scorer *s)
{
    struct akunu_session *session = s->loaded.session;
    int code = APP_EXIT_OK;
    if (s->n_tokens == 0)
        return APP_EXIT_OK;
    if (akunu_session_decode(session, s->tokens, s->n_tokens) != AKUNU_OK)
        return app_fail_library();
    for (size_t i = 0; code == APP_EXIT_OK && i < s->n_tokens; i++)
        if (s->tokens[i].logits)
            code = add_logprobs(s, &s->positions[i], akunu_session_logits(session, i));
    s->n_tokens = 0;
    return code == APP_EXIT_OK && app_is_interrupted() ? APP_EXIT_INTERRUPTED : code;
}

/* Adds the positions first … end of a text to the next passes. */
static int add_tokens(struct scorer *s, akunu_sequence sequence, struct position position,
                      size_t end)
{
    int code = APP_EXIT_OK;
    for (; code == APP_EXIT_OK && position.at < end; position.at++) {
        size_t n;
        const struct cli_choice *choices = choices_at(&position, &n);
        struct akunu_batch_token *token = &s->tokens[s->n_tokens];
        *token =
            (struct akunu_batch_token){ .token = choices->ids[position.at], .sequence = sequence };
        for (size_t k = 0; k < n; k++)
            token->logits |= is_scored(&choices[k], position.at);
        s->positions[s->n_tokens++] = position;
        if (s->n_tokens == s->batch)
            code = run_waiting(s);
    }
    return code;
}

/* ---- Groups of questions ------------------------------------------------ */
struct group {
    struct cli_question *questions[PREFIXES_MAX];
    akunu_sequence sequences[PREFIXES_MAX]; /* -1: nothing is shared */
    size_t prefixes[PREFIXES_MAX];
    size_t n, held; /* questions, and the tokens of their prefixes */
};

/* Runs the forks to their end, and frees them. */
static int end_forks(struct scorer *s, const struct group *group)
{
    int code = run_waiting(s);
    for (size_t i = 0; i < s->n_forks; i++)
        akunu_sequence_free(s->loaded.session, s->forks[i]);
    s->n_forks = 0;
    s->held = group->held;
    return code;
}

static int add_choice(struct scorer *s, const struct group *group, size_t i, size_t k)
{
    enum { PAGE = 64 }; /* of which a fork copies a part */
    struct cli_choice *choice = &group->questions[i]->choices[k];
    size_t prefix = group->prefixes[i], end = choice->n - 1;
    size_t n = prefix % PAGE + end - prefix;
    int code = APP_EXIT_OK;
    if (end == prefix)
        return APP_EXIT_OK;
    if (s->n_forks == FORKS_MAX || s->held + n > s->context)
        code = end_forks(s, group);
    if (code != APP_EXIT_OK)
        return code;
    akunu_sequence fork =
        prefix > 0 ? akunu_sequence_fork(s->loaded.session, group->sequences[i], (uint32_t)prefix) :
                     akunu_sequence_new(s->loaded.session);
    if (fork < 0)
        return app_fail_library();
    s->forks[s->n_forks++] = fork;
    s->held += n;
    return add_tokens(s, fork, (struct position){ group->questions[i], (int)k, prefix }, end);
}

static int score_group(struct scorer *s, struct group *group)
{
    int code = APP_EXIT_OK;
    s->held = group->held;
    for (size_t i = 0; code == APP_EXIT_OK && i < group->n; i++) {
        if (group->prefixes[i] == 0)
            continue;
        group->sequences[i] = akunu_sequence_new(s->loaded.session);
        code = group->sequences[i] < 0 ?
                   app_fail_library() :
                   add_tokens(s, group->sequences[i],
                              (struct position){ group->questions[i], ALL_CHOICES, 0 },
                              group->prefixes[i]);
    }
    if (code == APP_EXIT_OK)
        code = run_waiting(s);
    for (size_t i = 0; code == APP_EXIT_OK && i < group->n; i++)
        for (size_t k = 0; code == APP_EXIT_OK && k < group->questions[i]->n_choices; k++)
            code = add_choice(s, group, i, k);
    int ended = code == APP_EXIT_OK ? end_forks(s, group) : code;
    for (size_t i = 0; i < group->n; i++)
        if (group->sequences[i] >= 0)
            akunu_sequence_free(s->loaded.session, group->sequences[i]);
    return ended;
}

/* Takes the next questions whose prefixes fill a pass, at most, and half of the KV cache. */
static struct group next_group(const struct scorer *s, size_t first)
{
    struct group group = { 0 };
    for (size_t i = first; i < s->questions->n && group.n < PREFIXES_MAX; i++) {
        size_t prefix = prefix_of(&s->questions->list[i]), held = group.held + prefix;
        if (group.n > 0 && (held > s->batch || held > s->context / 2))
            break;
        group.questions[group.n] = &s->questions->list[i];
        group.sequences[group.n] = -1;
        group.prefixes[group.n++] = prefix;
        group.held = held;
    }
    return group;
}

static int score_all(struct scorer *s)
{
    int code = APP_EXIT_OK;
    s->progress = app_progress_begin();
    for (size_t done = 0; code == APP_EXIT_OK && done < s->questions->n;) {
        struct group group = next_group(s, done);
        code = score_group(s, &group);
        done += group.n;
        app_progress_show(&s->progress, "questions", (double)done / (double)s->questions->n);
    }
    app_progress_end(&s->progress);
    return code;
}

/* ---- Session ------------------------------------------------------------ */
static int open_scorer(const struct app_options *o, struct scorer *s, size_t longest)
{
    size_t model = s->loaded.info.context, context = model < CONTEXT_MAX ? model : CONTEXT_MAX;
    size_t limit = o->session.context ? o->session.context : model;
    if (longest > limit)
        return app_fail("%s: the longest question has %zu tokens, and the context holds %zu (-c "
                        "sets its size)",
                        s->questions->path, longest, limit);
    s->loaded.max_sequences = PREFIXES_MAX + FORKS_MAX;
    int code = app_open_session(o, &s->loaded, (uint32_t)(longest > context ? longest : context));
    if (code != APP_EXIT_OK)
        return code;
    akunu_sequence_free(s->loaded.session, s->loaded.sequence);
    s->loaded.sequence = -1;
    s->context = akunu_session_context(s->loaded.session);
    s->batch = akunu_session_batch(s->loaded.session);
    s->tokens = malloc(s->batch * sizeof *s->tokens);
    s->positions = malloc(s->batch * sizeof *s->positions);
    return s->tokens && s->positions ? APP_EXIT_OK : app_fail_memory();
}

int cli_questions_score(const struct app_options *o, struct cli_questions *questions)
{
    struct scorer s = { .loaded.sequence = -1, .questions = questions };
    size_t longest;
    int code = app_load_model(o, &s.loaded);
    if (code == APP_EXIT_OK)
        code = app_need_tokenizer(&s.loaded, "eval");
    if (code == APP_EXIT_OK)
        code = encode_questions(&s, &longest);
    if (code == APP_EXIT_OK)
        code = open_scorer(o, &s, longest);
    double started = app_seconds();
    if (code == APP_EXIT_OK)
        code = score_all(&s);
    if (code == APP_EXIT_OK)
        app_aside("%s: %zu question%s in %.1f s", s.loaded.path, questions->n,
                  questions->n == 1 ? "" : "s", app_seconds() - started);
    free(s.tokens);
    free(s.positions);
    app_unload(&s.loaded);
    return code;
}
