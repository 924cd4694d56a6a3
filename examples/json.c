/* Gets an answer as JSON of a given form: json MODEL.gguf "Ada Lovelace was born in 1815." */
#include <akunu/akunu.h>
#include <stdio.h>
#include <string.h>

/* A JSON Schema: the model can write nothing else. */
static const char schema[] =
    "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\", \"maxLength\": 40},"
    " \"year\": {\"type\": \"integer\", \"minimum\": 0, \"maximum\": 9999}},"
    " \"required\": [\"name\", \"year\"], \"additionalProperties\": false}";

static bool print_piece(size_t index, akunu_token token, const char *text, size_t n_bytes,
                        void *user)
{
    (void)index, (void)token, (void)user;
    fwrite(text, 1, n_bytes, stdout);
    return true;
}

static bool ask(struct akunu_session *session, const struct akunu_grammar *grammar,
                const char *text)
{
    struct akunu_sampling_params sampling;
    struct akunu_generation_params generation;
    struct akunu_completion_params completion;
    struct akunu_result result;
    akunu_sampling_params_default(&sampling, sizeof sampling);
    akunu_generation_params_default(&generation, sizeof generation);
    akunu_completion_params_default(&completion, sizeof completion);
    akunu_result_default(&result, sizeof result);
    sampling.temperature = 0.0f;
    sampling.grammar = grammar;
    generation.sampling = &sampling;
    generation.max_tokens = 256; /* a string of 40 characters may have 160 bytes */
    generation.on_piece = print_piece;
    completion.generation = &generation;
    completion.form = AKUNU_PROMPT_MESSAGE;
    completion.system = "Answer in JSON: who is it, and in which year?";
    if (akunu_session_complete(session, -1, text, strlen(text), &completion, &result) != AKUNU_OK)
        return false;
    printf("\n");
    if (result.stop != AKUNU_STOP_END) /* only a complete text is JSON */
        fprintf(stderr, "json: the answer was cut after %llu tokens\n",
                (unsigned long long)result.n_generated);
    return true;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: json MODEL.gguf TEXT\n");
        return 2;
    }
    struct akunu_grammar *grammar = akunu_grammar_from_schema(schema, strlen(schema), NULL);
    struct akunu_model *model = grammar ? akunu_model_load(argv[1], NULL) : NULL;
    struct akunu_session *session = model ? akunu_session_new(model, NULL) : NULL;
    bool good = session && ask(session, grammar, argv[2]);
    if (!good)
        fprintf(stderr, "json: %s\n", akunu_last_error());
    akunu_session_free(session);
    akunu_model_free(model);
    akunu_grammar_free(grammar);
    return good ? 0 : 1;
}
