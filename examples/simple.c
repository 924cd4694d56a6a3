/* Continues a prompt: simple MODEL.gguf "Once upon a time" */
#include <akunu/akunu.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool print_piece(akunu_token token, const char *text, size_t n_bytes, void *user)
{
    (void)token;
    (void)user;
    fwrite(text, 1, n_bytes, stdout);
    fflush(stdout);
    return true; /* false would stop */
}

static int complain(void)
{
    fprintf(stderr, "simple: %s\n", akunu_last_error());
    return 1;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: simple MODEL.gguf PROMPT\n");
        return 2;
    }
    const char *prompt = argv[2];

    struct akunu_model *model = akunu_model_load(argv[1], NULL);
    if (!model)
        return complain();
    struct akunu_session *session = akunu_session_new(model, NULL);
    if (!session)
        return complain();
    akunu_sequence sequence = akunu_sequence_new(session);

    const struct akunu_tokenizer *tokenizer = akunu_model_tokenizer(model);
    /* counts */
    int64_t n =
        akunu_tokenizer_encode(tokenizer, prompt, strlen(prompt), AKUNU_ADD_SPECIAL, NULL, 0);
    akunu_token *ids = n > 0 ? calloc((size_t)n, sizeof *ids) : NULL;
    if (!ids)
        return complain();
    akunu_tokenizer_encode(tokenizer, prompt, strlen(prompt), AKUNU_ADD_SPECIAL, ids, (size_t)n);

    struct akunu_generation generation;
    akunu_generation_default(&generation, sizeof generation);
    generation.max_tokens = 64;
    if (akunu_session_generate(session, sequence, ids, (size_t)n, &generation, print_piece, NULL,
                               NULL, NULL) != AKUNU_OK)
        return complain();
    printf("\n");

    free(ids);
    akunu_sequence_free(session, sequence);
    akunu_session_free(session);
    akunu_model_free(model);
    return 0;
}
