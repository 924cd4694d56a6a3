/* Embeds texts and compares each with the first: embed MODEL.gguf "a cat" "a kitten" "a bridge" */
#include <akunu/akunu.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tokens of a text, with those that the tokenizer adds; the caller frees them. NULL: failure. */
static akunu_token *encode(const struct akunu_tokenizer *tokenizer, const char *text, size_t *n)
{
    size_t n_bytes = strlen(text);
    int64_t count = akunu_tokenizer_encode(tokenizer, text, n_bytes, AKUNU_ADD_SPECIAL, NULL, 0);
    akunu_token *ids = count >= 0 ? calloc((size_t)count + 1, sizeof *ids) : NULL;
    if (ids)
        akunu_tokenizer_encode(tokenizer, text, n_bytes, AKUNU_ADD_SPECIAL, ids, (size_t)count);
    *n = ids ? (size_t)count : 0;
    return ids;
}

static double compare(const float *a, const float *b, size_t width)
{
    double product = 0.0, aa = 0.0, bb = 0.0;
    for (size_t i = 0; i < width; i++) {
        product += (double)a[i] * (double)b[i];
        aa += (double)a[i] * (double)a[i];
        bb += (double)b[i] * (double)b[i];
    }
    return product / sqrt(aa * bb);
}

/* One call for all texts: short ones share a pass. */
static bool embed(const struct akunu_model *model, struct akunu_session *session, char **texts,
                  size_t n)
{
    struct akunu_model_info info = { 0 };
    struct akunu_ids *ids = calloc(n, sizeof *ids);
    akunu_token **owned = calloc(n, sizeof *owned);
    bool good = ids && owned && akunu_model_get_info(model, &info, sizeof info) == AKUNU_OK;
    float *rows = good ? calloc(n * info.width, sizeof *rows) : NULL;
    good = rows != NULL;
    for (size_t i = 0; good && i < n; i++) {
        owned[i] = encode(akunu_model_tokenizer(model), texts[i], &ids[i].n);
        ids[i].ids = owned[i];
        good = owned[i] != NULL;
    }
    good = good && akunu_session_embed(session, ids, n, NULL, rows) == AKUNU_OK;
    for (size_t i = 0; good && i < n; i++)
        printf("%6.3f  %s\n", compare(rows, rows + i * info.width, info.width), texts[i]);
    for (size_t i = 0; owned && i < n; i++)
        free(owned[i]);
    free(owned);
    free(ids);
    free(rows);
    return good;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: embed MODEL TEXT...\n");
        return 2;
    }
    struct akunu_model *model = akunu_model_load(argv[1], NULL);
    struct akunu_session *session = model ? akunu_session_new(model, NULL) : NULL;
    bool good = session && embed(model, session, argv + 2, (size_t)argc - 2);
    if (!good)
        fprintf(stderr, "embed: %s\n", akunu_last_error());
    akunu_session_free(session);
    akunu_model_free(model);
    return good ? 0 : 1;
}
