/* Lets a model call tools: tools MODEL.gguf "What is the weather in Paris?" [auto | required |
 * NAME] */
#include <akunu/akunu.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Two tools, as OpenAI's API has them; the parameters are JSON Schema. */
static const char tools[] =
    "[{\"type\": \"function\", \"function\": {\"name\": \"get_weather\", \"description\": \"The "
    "weather of a city\","
    " \"parameters\": {\"type\": \"object\", \"properties\": {\"city\": {\"type\": \"string\"},"
    " \"unit\": {\"type\": \"string\", \"enum\": [\"celsius\", \"fahrenheit\"]}},"
    " \"required\": [\"city\", \"unit\"], \"additionalProperties\": false}}},"
    " {\"type\": \"function\", \"function\": {\"name\": \"add\", \"description\": \"The sum of two "
    "integers\","
    " \"parameters\": {\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"integer\"}, "
    "\"b\": {\"type\": \"integer\"}},"
    " \"required\": [\"a\", \"b\"], \"additionalProperties\": false}}}]";

/* What the model says is printed as it comes, a call when it is complete. */
static void print_event(const struct akunu_reply_event *event, void *user)
{
    (void)user;
    switch (event->kind) {
    case AKUNU_REPLY_REASONING:
    case AKUNU_REPLY_CONTENT: fwrite(event->text, 1, event->n_bytes, stdout); break;
    case AKUNU_REPLY_CALL: printf("\ncall %.*s", (int)event->n_bytes, event->text); break;
    case AKUNU_REPLY_ARGUMENTS: break; /* a piece of what AKUNU_REPLY_CALL_END has whole */
    case AKUNU_REPLY_CALL_END: printf(" with %.*s\n", (int)event->n_bytes, event->text); break;
    case AKUNU_REPLY_BROKEN:
        printf(", which is none: %.*s\n", (int)event->n_bytes, event->text);
        break;
    }
    fflush(stdout);
}

static bool push_piece(size_t index, akunu_token token, const char *text, size_t n_bytes,
                       void *user)
{
    struct akunu_reply *reply = user;
    (void)index, (void)token;
    return akunu_reply_push(reply, text, n_bytes) == AKUNU_OK;
}

/* A JSON list of one message; the caller frees it. */
static char *make_messages(const char *question)
{
    static const char head[] = "[{\"role\": \"user\", \"content\": \"", tail[] = "\"}]";
    char *messages = malloc(sizeof head + 2 * strlen(question) + sizeof tail), *at = messages;
    if (!messages)
        return NULL;
    at += sprintf(at, "%s", head);
    for (; *question; question++) {
        if (*question == '"' || *question == '\\')
            *at++ = '\\';
        *at++ = (unsigned char)*question < ' ' ? ' ' : *question;
    }
    strcpy(at, tail);
    return messages;
}

/* What one answer needs. */
struct answer {
    struct akunu_session *session;
    const struct akunu_template *chat_template;
    struct akunu_chat chat;
    struct akunu_reply *reply;
    struct akunu_grammar *grammar;
};

/* The same parameters tell the reader of calls and the grammar how this model writes them. */
static bool begin_answer(struct answer *a, const struct akunu_tokenizer *tokenizer,
                         const char *prompt, const char *choice)
{
    struct akunu_reply_params params;
    struct akunu_tool_grammar_params calls;
    akunu_reply_params_default(&params, sizeof params);
    params.chat_template = akunu_template_text(a->chat_template, NULL, true, NULL);
    params.tokenizer = tokenizer;
    params.prompt = prompt;
    params.tools = tools;
    akunu_tool_grammar_params_default(&calls, sizeof calls);
    calls.choice = choice;
    a->reply = akunu_reply_new(&params, print_event, NULL);
    return a->reply && akunu_grammar_from_tools(&params, &calls, &a->grammar) == AKUNU_OK;
}

static bool run_answer(struct answer *a)
{
    struct akunu_completion_params completion;
    struct akunu_generation_params generation;
    struct akunu_sampling_params sampling;
    struct akunu_result result;
    akunu_completion_params_default(&completion, sizeof completion);
    akunu_generation_params_default(&generation, sizeof generation);
    akunu_sampling_params_default(&sampling, sizeof sampling);
    akunu_result_default(&result, sizeof result);
    completion.chat = &a->chat;
    completion.chat_template = a->chat_template;
    completion.generation = &generation;
    generation.sampling = &sampling;
    generation.max_tokens = 128;
    generation.special = true; /* what marks a call may be a control token */
    generation.on_piece = push_piece;
    generation.user = a->reply;
    sampling.temperature = 0.0f;
    sampling.grammar = a->grammar;
    if (akunu_session_complete(a->session, -1, NULL, 0, &completion, &result) != AKUNU_OK ||
        akunu_reply_end(a->reply) != AKUNU_OK)
        return false;
    printf("\n%s%s\n", akunu_reply_message(a->reply),
           result.stop == AKUNU_STOP_LENGTH ? "\n(cut after 128 tokens)" : "");
    return true;
}

static bool ask(struct answer *a, const struct akunu_tokenizer *tokenizer, const char *question,
                const char *choice)
{
    char *messages = make_messages(question), *prompt = NULL;
    akunu_chat_default(&a->chat, sizeof a->chat);
    a->chat.messages = messages;
    a->chat.tools = tools;
    if (messages)
        prompt = akunu_template_render(a->chat_template, &a->chat, NULL);
    bool good = prompt && begin_answer(a, tokenizer, prompt, choice) && run_answer(a);
    akunu_reply_free(a->reply);
    akunu_grammar_free(a->grammar);
    akunu_text_free(prompt);
    free(messages);
    return good;
}

int main(int argc, char **argv)
{
    if (argc != 3 && argc != 4) {
        fprintf(stderr, "usage: tools MODEL.gguf QUESTION [auto | required | NAME]\n");
        return 2;
    }
    struct akunu_model *model = akunu_model_load(argv[1], NULL);
    struct akunu_template *chat_template = model ? akunu_model_template(model) : NULL;
    struct answer a = { .chat_template = chat_template };
    a.session = chat_template ? akunu_session_new(model, NULL) : NULL;
    bool good =
        a.session && ask(&a, akunu_model_tokenizer(model), argv[2], argc == 4 ? argv[3] : "auto");
    if (!good)
        fprintf(stderr, "tools: %s\n", akunu_last_error());
    akunu_session_free(a.session);
    akunu_template_free(chat_template);
    akunu_model_free(model);
    return good ? 0 : 1;
}
