/* Embeddings and scores of a model: a thread of its own with a session, beside the scheduler's, on
 * the threads that it shares with that: their passes take turns. */
#ifndef AK_APPS_SERVER_EMBEDDER_H
#define AK_APPS_SERVER_EMBEDDER_H

#include "apps/server/server.h"

/* An exchange whose texts are encoded. */
struct server_encoding {
    struct server_owner owner; /* first: the exchange's data */
    struct server_encoding *next;
    struct server_model *model; /* has it in use once it is queued */
    struct http_exchange *x;    /* NULL: the client is gone */
    bool scores;                /* the texts are pairs that get scores; else embeddings */
    const char *name;           /* the member of the request that has the texts */
    bool is_list;               /* it is a list */
    size_t n_prompt;            /* tokens of each text's beginning that are not pooled */
    struct akunu_pair *texts;   /* [n] */
    size_t n, n_done, n_tokens, width;
    float *rows; /* [n, width] */
    void (*answer)(struct server_encoding *e);
    void *own;                  /* of `answer`; freed with free */
    void (*release)(void *own); /* before that; NULL: nothing */
    _Atomic bool is_cancelled;
    enum akunu_status status;
    char message[512];
};

/* An encoding of n texts to rows of `width` numbers, which takes `own`. NULL: it has answered.
 * Needs no lock. */
struct server_encoding *server_encoding_new(struct server_model *m, struct http_exchange *x,
                                            size_t n, size_t width, void *own);
/* Adds a text, and takes its ids. Needs no lock. */
void server_encoding_add(struct server_encoding *e, akunu_token *ids, size_t n, size_t second);
/* Queues it, unless the queue is full. If a text is too long it has answered, and freed it. Needs
 * no lock. */
struct server_commit server_encoding_commit(struct server_encoding *e);
/* Needs no lock. */
void server_encoding_free(struct server_encoding *e);

/* ---- The thread --------------------------------------------------------- */
/* Starts the thread. False: the library has the message. */
bool server_open_embedder(struct server_model *m);
void server_close_embedder(struct server_model *m);
/* The largest number of tokens that a text or a pair may have. */
size_t server_embedder_max_tokens(const struct server_model *m);
/* Bytes that its session has reserved. */
uint64_t server_embedder_bytes(const struct server_model *m);
/* Answers those that are ready. */
void server_take_encodings(struct server_model *m);

/* ---- Answers in the form of an API: embed.c ------------------------------ */
/* Both take `rows`, the vectors as JSON; NULL: out of memory. */
json_t *server_openai_embeddings(const struct server_encoding *e, json_t *rows);
json_t *server_ollama_embeddings(const struct server_encoding *e, json_t *rows);

#endif
