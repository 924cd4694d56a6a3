/* The APIs whose clients the server understands: how each writes what all of them have. Implemented
 * by openai.c, anthropic.c and ollama.c; route.c says which route is whose. */
#ifndef AK_APPS_SERVER_API_H
#define AK_APPS_SERVER_API_H

#include <jansson.h>

struct server_encoding;
struct server_job;

struct server_api {
    /* The body of an error. `type` is OpenAI's name for the code; `param` and `code_name` may be
     * NULL. Takes `message`. NULL: out of memory. */
    json_t *(*error)(unsigned code, const char *type, const char *param, const char *code_name,
                     json_t *message);
    /* Ends a stream that has begun with an error, which it takes. */
    void (*fail_stream)(struct server_job *job, json_t *error);
    /* The answer to a request for embeddings. Takes `rows`, a list with the vector of each text.
     * NULL: this API has none. */
    json_t *(*embeddings)(const struct server_encoding *e, json_t *rows);
    /* Whether clients may ask for vectors in Base64 (encoding_format). */
    bool has_base64;
};

extern const struct server_api server_openai, server_anthropic, server_ollama;

#endif
