/* Answers a message, or continues a text if the model has no chat template:
 * simple MODEL.gguf "Why is the sky blue?" */
#include <akunu/akunu.h>
#include <stdio.h>
#include <string.h>

static bool print_piece(size_t index, akunu_token token, const char *text, size_t n_bytes,
                        void *user)
{
    (void)index, (void)token, (void)user;
    fwrite(text, 1, n_bytes, stdout);
    fflush(stdout);
    return true; /* false would stop */
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: simple MODEL.gguf TEXT\n");
        return 2;
    }
    struct akunu_generation_params generation;
    struct akunu_completion_params completion;
    akunu_generation_params_default(&generation, sizeof generation);
    akunu_completion_params_default(&completion, sizeof completion);
    generation.max_tokens = 64;
    generation.on_piece = print_piece;
    completion.generation = &generation;

    struct akunu_model *model = akunu_model_load(argv[1], NULL);
    struct akunu_session *session = model ? akunu_session_new(model, NULL) : NULL;
    bool good = session && akunu_session_complete(session, -1, argv[2], strlen(argv[2]),
                                                  &completion, NULL) == AKUNU_OK;
    if (good)
        printf("\n");
    else
        fprintf(stderr, "simple: %s\n", akunu_last_error());
    akunu_session_free(session);
    akunu_model_free(model);
    return good ? 0 : 1;
}
