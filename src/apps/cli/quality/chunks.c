/* Tokenizes a text and splits it into chunks. */
#include "apps/cli/quality/chunks.h"

#include <stdlib.h>
#include <string.h>

#include "apps/common/message.h"

/* Puts BOS first if there is one. Tokens that a model adds at the end of a text are left out. */
static int tokenize_text(const struct app_model_session *loaded, const struct app_text *text,
                         unsigned flags, struct cli_chunks *out, size_t *n)
{
    int code = app_tokenize_text(loaded->tokenizer, text, flags, &out->ids, n);
    if (code != APP_EXIT_OK || out->bos < 0)
        return code;
    akunu_token *larger = realloc(out->ids, (*n + 1) * sizeof *larger);
    if (!larger)
        return app_fail_memory();
    memmove(larger + 1, larger, *n * sizeof *larger);
    larger[0] = out->bos;
    out->ids = larger;
    ++*n;
    return APP_EXIT_OK;
}

int cli_read_chunks(const struct app_model_session *loaded, const struct app_text *text,
                    unsigned flags, size_t size, struct cli_chunks *out)
{
    size_t n = 0;
    *out = (struct cli_chunks){ .size = size, .bos = app_bos_of(loaded->tokenizer) };
    int code = tokenize_text(loaded, text, flags, out, &n);
    if (code != APP_EXIT_OK)
        return code;
    out->n = n / size;
    if (out->n == 0)
        return app_fail("the text has %zu tokens, and one chunk takes %zu (-c)", n, size);
    return APP_EXIT_OK;
}

const akunu_token *cli_get_chunk(struct cli_chunks *chunks, size_t i)
{
    akunu_token *ids = chunks->ids + i * chunks->size;
    if (chunks->bos >= 0)
        ids[0] = chunks->bos;
    return ids;
}
