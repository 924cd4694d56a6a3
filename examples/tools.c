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

static int complain(void)
{
    fprintf(stderr, "tools: %s\n", akunu_last_error());
    return 1;
}

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

static bool push_piece(akunu_token token, const char *text, size_t n_bytes, void *user)
{
    struct akunu_reply *reply = user;
    (void)token;
    return akunu_reply_push(reply, text, n_bytes) == AKUNU_OK;
}

/* The question and the tools in the form that the model knows. */
static char *render(const struct akunu_template *chat_template, const char *question)
{
    size_t n = strlen(question), n_messages = 2 * n + 64;
    char *messages = malloc(n_messages), *at = messages;
    if (!messages)
        return NULL;
    at += sprintf(at, "[{\"role\": \"user\", \"content\": \"");
    for (; *question; question++) {
        if (*question == '"' || *question == '\\')
            *at++ = '\\';
        *at++ = (unsigned char)*question < ' ' ? ' ' : *question;
    }
    strcpy(at, "\"}]");

    struct akunu_chat chat;
    akunu_chat_default(&chat, sizeof chat);
    chat.messages = messages;
    chat.tools = tools;
    char *prompt = akunu_template_render(chat_template, &chat, NULL);
    free(messages);
    return prompt;
}

int main(int argc, char **argv)
{
    if (argc != 3 && argc != 4) {
        fprintf(stderr, "usage: tools MODEL.gguf QUESTION [auto | required | NAME]\n");
        return 2;
    }
    struct akunu_model *model = akunu_model_load(argv[1], NULL);
    if (!model)
        return complain();
    struct akunu_session *session = akunu_session_new(model, NULL);
    struct akunu_template *chat_template = akunu_model_template(model);
    char *prompt = session && chat_template ? render(chat_template, argv[2]) : NULL;
    if (!prompt)
        return complain();
    akunu_sequence sequence = akunu_sequence_new(session);

    const struct akunu_tokenizer *tokenizer = akunu_model_tokenizer(model);
    /* counts */
    int64_t n =
        akunu_tokenizer_encode(tokenizer, prompt, strlen(prompt), AKUNU_PARSE_SPECIAL, NULL, 0);
    akunu_token *ids = n > 0 ? calloc((size_t)n, sizeof *ids) : NULL;
    if (!ids)
        return complain();
    akunu_tokenizer_encode(tokenizer, prompt, strlen(prompt), AKUNU_PARSE_SPECIAL, ids, (size_t)n);

    /* The same parameters tell the reader of calls and the grammar how this model writes them. */
    struct akunu_reply_params params;
    akunu_reply_params_default(&params, sizeof params);
    params.chat_template = akunu_template_text(chat_template, NULL, true, NULL);
    params.tokenizer = tokenizer;
    params.prompt = prompt;
    params.tools = tools;
    struct akunu_reply *reply = akunu_reply_new(&params, print_event, NULL);

    struct akunu_tool_grammar_params calls;
    struct akunu_grammar *grammar = NULL;
    akunu_tool_grammar_params_default(&calls, sizeof calls);
    calls.choice = argc == 4 ? argv[3] : "auto";
    if (!reply || akunu_grammar_from_tools(&params, &calls, &grammar) != AKUNU_OK)
        return complain();

    struct akunu_generation generation;
    struct akunu_sampling sampling;
    struct akunu_result result = { .size = sizeof result };
    akunu_generation_default(&generation, sizeof generation);
    akunu_sampling_default(&sampling, sizeof sampling);
    generation.sampling = &sampling;
    generation.max_tokens = 128;
    generation.special = true; /* what marks a call may be a control token */
    sampling.temperature = 0.0f;
    sampling.grammar = grammar;
    if (akunu_session_generate(session, sequence, ids, (size_t)n, &generation, push_piece, NULL,
                               reply, &result) != AKUNU_OK ||
        akunu_reply_end(reply) != AKUNU_OK)
        return complain();
    printf("\n%s%s\n", akunu_reply_message(reply),
           result.stop == AKUNU_STOP_LENGTH ? "\n(cut after 128 tokens)" : "");

    akunu_reply_free(reply);
    free(ids);
    akunu_text_free(prompt);
    akunu_template_free(chat_template);
    akunu_sequence_free(session, sequence);
    akunu_session_free(session);
    akunu_model_free(model);
    akunu_grammar_free(grammar);
    return 0;
}
