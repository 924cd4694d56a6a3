/* akunu_session_complete: what becomes the prompt, what the sequence keeps, and what is refused.
 * Its texts are those that akunu_session_generate makes of the same tokens. */
#include "tests/api/failure.h"
#include "tests/api/session.h"
#include "tests/gguf_files.h"
#include "tests/golden_model.h"

#include <stdio.h>

enum { TOKENS_MAX = 256 };

static struct akunu_model *load(const char *name, const char *const *override_kv)
{
    struct akunu_load_params params;
    akunu_load_params_default(&params, sizeof params);
    params.n_threads = 1;
    params.no_cache = true;
    params.override_kv = override_kv;
    struct akunu_model *model = akunu_model_load(test_path(name), &params);
    ck_assert_msg(model != NULL, "%s: %s", name, akunu_last_error());
    return model;
}

/* What a call reported. */
struct heard {
    akunu_token tokens[TOKENS_MAX];
    char text[4096];
    size_t n_tokens, n_bytes;
};

static bool on_piece(size_t index, akunu_token token, const char *text, size_t n_bytes, void *user)
{
    struct heard *h = user;
    (void)index;
    ck_assert(h->n_tokens < TOKENS_MAX && n_bytes < sizeof h->text - h->n_bytes);
    if (token >= 0)
        h->tokens[h->n_tokens++] = token;
    memcpy(h->text + h->n_bytes, text, n_bytes);
    h->n_bytes += n_bytes;
    return true;
}

static bool cancel(void *user)
{
    (void)user;
    return true;
}

/* Eight greedy tokens, whatever they are. */
static struct akunu_sampling_params sampling;
static struct akunu_generation_params generation;
static struct akunu_completion_params completion;

static void set_up(void)
{
    akunu_sampling_params_default(&sampling, sizeof sampling);
    sampling.temperature = 0.0f;
    sampling.ignore_end = true;
    akunu_generation_params_default(&generation, sizeof generation);
    generation.sampling = &sampling;
    generation.max_tokens = 8;
    akunu_completion_params_default(&completion, sizeof completion);
    ck_assert(completion.form == AKUNU_PROMPT_AUTO && !completion.system && !completion.chat &&
              !completion.chat_template && !completion.generation);
    completion.generation = &generation;
}

/* What the prompt's tokens give, run by akunu_session_generate. */
static size_t generate(const struct akunu_model *model, const char *prompt, unsigned flags,
                       struct heard *h)
{
    akunu_token ids[TOKENS_MAX];
    struct akunu_session *session = open_session(model);
    int64_t n = akunu_tokenizer_encode(akunu_model_tokenizer(model), prompt, strlen(prompt), flags,
                                       ids, TOKENS_MAX);
    ck_assert(n > 0 && n < TOKENS_MAX);
    *h = (struct heard){ .n_tokens = 0 };
    generation.on_piece = on_piece;
    generation.user = h;
    ck_assert_int_eq(akunu_session_generate(session, akunu_sequence_new(session),
                                            &(struct akunu_ids){ ids, (size_t)n }, &generation,
                                            NULL),
                     AKUNU_OK);
    akunu_session_free(session);
    return (size_t)n;
}

static void check_same(const struct heard *got, const struct heard *want)
{
    ck_assert_uint_eq(got->n_tokens, 8);
    ck_assert_mem_eq(got->tokens, want->tokens, sizeof got->tokens);
    ck_assert(got->n_bytes == want->n_bytes && memcmp(got->text, want->text, got->n_bytes) == 0);
}

/* Completes in a session of its own; the prompt must equal `prompt`. */
static void completes(const struct akunu_model *model, const char *text, const char *prompt,
                      unsigned flags)
{
    struct heard want, got = { .n_tokens = 0 };
    struct akunu_result r = { .size = sizeof r };
    size_t n = generate(model, prompt, flags, &want);
    struct akunu_session *session = open_session(model);
    generation.user = &got;
    ck_assert_msg(akunu_session_complete(session, -1, text, text ? strlen(text) : 0, &completion,
                                         &r) == AKUNU_OK,
                  "%s", akunu_last_error());
    ck_assert(r.n_prompt == n && r.n_kept == 0 && r.n_generated == 8);
    check_same(&got, &want);
    akunu_session_free(session);
}

#define USER "<|im_start|>user\nHi<|im_end|>\n"
#define ASKS "<|im_start|>assistant\n"

START_TEST(prompts)
{
    static const char *const bos[] = { "tokenizer.ggml.bos_token_id=int:413",
                                       "tokenizer.ggml.add_bos_token=bool:true", NULL };
    static const char *const no_template[] = { "tokenizer.chat_template=int:0", NULL };
    struct akunu_chat chat;
    set_up();
    struct akunu_model *model = load("model.gguf", NULL);
    completes(model, "Hi", USER ASKS, AKUNU_PARSE_SPECIAL);
    completion.form = AKUNU_PROMPT_MESSAGE;
    completion.system = "Be \"brief\".";
    completes(model, "Hi", "<|im_start|>system\nBe \"brief\".<|im_end|>\n" USER ASKS,
              AKUNU_PARSE_SPECIAL);
    completion.system = NULL;
    completion.form = AKUNU_PROMPT_RAW;
    completes(model, "Hi<|im_end|>", "Hi<|im_end|>", AKUNU_PARSE_SPECIAL);
    akunu_chat_default(&chat, sizeof chat);
    chat.messages = "[{\"role\": \"user\", \"content\": \"Hi\"}]";
    chat.add_generation_prompt = false;
    completion.chat = &chat;
    completes(model, NULL, USER, AKUNU_PARSE_SPECIAL);
    completion.chat = NULL;

    /* another template */
    struct akunu_template *other = akunu_template_parse("{{ messages[0].content }}!", 26, NULL);
    completion.chat_template = other;
    completion.form = AKUNU_PROMPT_AUTO;
    completes(model, "Hi", "Hi!", AKUNU_PARSE_SPECIAL);
    akunu_template_free(other);
    akunu_model_free(model);

    /* BOS comes first, once, though the template leaves it to the tokenizer */
    set_up();
    model = load("model.gguf", bos);
    completes(model, "Hi", "<|endoftext|>" USER ASKS, AKUNU_PARSE_SPECIAL);
    completion.form = AKUNU_PROMPT_RAW;
    completes(model, "Hi", "Hi", AKUNU_ADD_SPECIAL);
    akunu_model_free(model);

    /* a model without a template continues the text, unless it is told otherwise */
    set_up();
    model = load("model.gguf", no_template);
    struct akunu_template *own = akunu_model_template(model);
    ck_assert(own && akunu_template_is_fallback(own));
    akunu_template_free(own);
    completes(model, "Hi", "Hi", AKUNU_ADD_SPECIAL);
    completion.form = AKUNU_PROMPT_MESSAGE;
    completes(model, "Hi", USER ASKS, AKUNU_ADD_SPECIAL | AKUNU_PARSE_SPECIAL);
    akunu_model_free(model);
}
END_TEST

/* A conversation that grows runs what is new; another one replaces what differs. */
START_TEST(kept_prefixes)
{
    struct heard h = { .n_tokens = 0 }, want;
    struct akunu_result r = { .size = sizeof r };
    char text[2][2048];
    set_up();
    struct akunu_model *model = load("model.gguf", NULL);
    struct akunu_session *session = open_session(model);
    akunu_sequence sequence = akunu_sequence_new(session);
    completion.form = AKUNU_PROMPT_RAW;

    strcpy(text[0], " the the the");
    generation.on_piece = on_piece;
    generation.user = &h;
    ck_assert_int_eq(
        akunu_session_complete(session, sequence, text[0], strlen(text[0]), &completion, &r),
        AKUNU_OK);
    ck_assert(r.n_prompt == 3 && r.n_kept == 0);

    /* the same again: all but the last token is there; what came after it is gone */
    struct heard again = { .n_tokens = 0 };
    generation.user = &again;
    ck_assert_int_eq(
        akunu_session_complete(session, sequence, text[0], strlen(text[0]), &completion, &r),
        AKUNU_OK);
    ck_assert(r.n_prompt == 1 && r.n_kept == 2);
    check_same(&again, &h);
    ck_assert_uint_eq(akunu_sequence_length(session, sequence), 3 + 7);

    /* longer, and different from the third token on */
    size_t n = generate(model, " the the( the", 0, &want);
    h = (struct heard){ .n_tokens = 0 };
    generation.user = &h;
    ck_assert_int_eq(
        akunu_session_complete(session, sequence, " the the( the", 13, &completion, &r), AKUNU_OK);
    ck_assert(r.n_kept == 2 && r.n_prompt == n - 2);
    check_same(&h, &want);

    /* the generated text is kept too, if it is in the next prompt as the same tokens */
    akunu_token ids[TOKENS_MAX];
    h.text[h.n_bytes] = '\0';
    int n_text = snprintf(text[1], sizeof text[1], " the the( the%s", h.text);
    int64_t n_ids = akunu_tokenizer_encode(akunu_model_tokenizer(model), text[1], (size_t)n_text, 0,
                                           ids, TOKENS_MAX);
    size_t same = n;
    while (same + 1 < (size_t)n_ids && same - n < 7 && ids[same] == h.tokens[same - n])
        same++;
    generate(model, text[1], 0, &want);
    h = (struct heard){ .n_tokens = 0 };
    generation.user = &h;
    ck_assert_int_eq(
        akunu_session_complete(session, sequence, text[1], (size_t)n_text, &completion, &r),
        AKUNU_OK);
    ck_assert_uint_eq(r.n_kept, same);
    ck_assert_uint_gt(r.n_kept, 3);
    check_same(&h, &want);

    /* a sequence of the call's own leaves no trace, also if the call fails */
    generation.on_piece = NULL;
    for (int i = 0; i < 4; i++) {
        generation.cancel = i % 2 ? cancel : NULL;
        ck_assert_int_eq(akunu_session_complete(session, -1, "Hi", 2, &completion, NULL),
                         i % 2 ? AKUNU_ERROR_CANCELLED : AKUNU_OK);
    }
    generation.cancel = NULL;
    ck_assert_int_ge(akunu_sequence_new(session), 0);
    ck_assert_int_eq(akunu_session_complete(session, -1, "Hi", 2, &completion, NULL),
                     AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "in use (max_sequences)");
    akunu_session_free(session);
    akunu_model_free(model);
}
END_TEST

static void refuses(struct akunu_session *session, const char *text, size_t n_bytes,
                    enum akunu_status status, const char *said)
{
    struct akunu_result r = { .size = sizeof r, .n_generated = 7 };
    forget();
    ck_assert_int_eq(akunu_session_complete(session, -1, text, n_bytes, &completion, &r), status);
    failed_with(status, said);
    ck_assert_uint_eq(r.n_generated, 0);
}

START_TEST(refusals)
{
    static const char *const no_vocabulary[] = { "tokenizer.ggml.model=str:none", NULL };
    static char much[4 * TOKENS_MAX];
    struct akunu_chat chat;
    struct akunu_result r = { .size = 8 };
    set_up();
    struct akunu_model *model = load("model.gguf", NULL);
    struct akunu_session *session = open_session(model);
    refuses(session, NULL, 0, AKUNU_ERROR_ARGUMENT, "neither a text nor a conversation");
    refuses(session, "\xff", 1, AKUNU_ERROR_ARGUMENT, "user message is not valid UTF-8");
    completion.system = "\xff";
    refuses(session, "Hi", 2, AKUNU_ERROR_ARGUMENT, "system message is not valid UTF-8");
    completion.system = "Hi";
    completion.form = AKUNU_PROMPT_RAW;
    refuses(session, "Hi", 2, AKUNU_ERROR_ARGUMENT, "a system message is given");
    completion.system = NULL;
    refuses(session, "", 0, AKUNU_ERROR_ARGUMENT, "the prompt is empty");
    memset(much, 'x', sizeof much);
    refuses(session, much, sizeof much, AKUNU_ERROR_CONTEXT, "256");
    completion.form = (enum akunu_prompt_form)3;
    refuses(session, "Hi", 2, AKUNU_ERROR_ARGUMENT, "form of the prompt is 3");
    completion.form = AKUNU_PROMPT_AUTO;

    akunu_chat_default(&chat, sizeof chat);
    completion.chat = &chat;
    refuses(session, "Hi", 2, AKUNU_ERROR_ARGUMENT, "both a text and a conversation");
    refuses(session, NULL, 0, AKUNU_ERROR_ARGUMENT, "no messages");
    chat.messages = "[";
    refuses(session, NULL, 0, AKUNU_ERROR_ARGUMENT, "messages");
    chat.messages = "[]";
    completion.system = "Hi";
    refuses(session, NULL, 0, AKUNU_ERROR_ARGUMENT, "put it into the conversation");
    chat.size = 8;
    completion.system = NULL;
    refuses(session, NULL, 0, AKUNU_ERROR_ARGUMENT, "akunu_chat");
    completion.chat = NULL;
    generation.size = 8;
    refuses(session, "Hi", 2, AKUNU_ERROR_ARGUMENT, "akunu_generation_params");
    generation.size = sizeof generation;
    generation.draft = session;
    refuses(session, "Hi", 2, AKUNU_ERROR_ARGUMENT, "the one that generates");
    generation.draft = NULL;

    ck_assert_int_eq(akunu_session_complete(session, 5, "Hi", 2, NULL, NULL), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "no sequence 5");
    ck_assert_int_eq(akunu_session_complete(NULL, -1, "Hi", 2, NULL, NULL), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "the session is NULL");
    ck_assert_int_eq(akunu_session_complete(session, -1, "Hi", 2, NULL, &r), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "akunu_result");
    completion.size = 8;
    ck_assert_int_eq(akunu_session_complete(session, -1, "Hi", 2, &completion, NULL),
                     AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "akunu_completion_params");
    akunu_session_free(session);
    akunu_model_free(model);

    set_up();
    model = load("model.gguf", no_vocabulary);
    session = open_session(model);
    refuses(session, "Hi", 2, AKUNU_ERROR_UNSUPPORTED, "no vocabulary");
    akunu_session_free(session);
    akunu_model_free(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("complete");
    TCase *t = tcase_create("complete");
    suite_add_tcase(suite, t);
    tcase_add_test(t, prompts);
    tcase_add_test(t, kept_prefixes);
    tcase_add_test(t, refusals);
    return test_run(suite);
}
