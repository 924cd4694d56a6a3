/* Transcriptions of a speech model: a thread of its own with a session, on the threads that all
 * models share, so that their passes take turns. Several clips are transcribed at once; clients
 * with many take turns. */
#ifndef AK_APPS_SERVER_SPEECH_H
#define AK_APPS_SERVER_SPEECH_H

#include "apps/common/transcript.h"
#include "apps/server/server.h"

/* An exchange whose clip is transcribed. */
struct server_transcription {
    struct server_owner owner; /* first: the exchange's data */
    struct server_transcription *next;
    struct server_model *model; /* has it in use once it is queued */
    struct http_exchange *x;    /* NULL: the client is gone */
    uint64_t client;            /* who asks */
    double deadline;            /* of app_seconds; 0: none */
    struct akunu_audio *audio;
    struct akunu_transcription_params params;
    struct akunu_vad_params vad; /* of `params` */
    json_t *form;                /* has the texts of `params` */
    /* Writes what has come since the last call, for a stream, under the speech's lock too. */
    void (*report)(struct server_transcription *t);
    void (*answer)(struct server_transcription *t); /* writes the whole */
    void *own;                                      /* of both; freed with free */
    _Atomic bool is_cancelled, is_late;
    /* by the speech's thread, under its lock while it runs */
    struct app_transcript transcript;
    size_t n_sent; /* segments that `report` has written */
    enum akunu_status status;
    char message[512];
};

/* A transcription of `audio`, which it takes, as it does `own`. NULL: it has answered. Needs no
 * lock. */
struct server_transcription *server_transcription_new(struct server_model *m,
                                                      struct http_exchange *x,
                                                      struct akunu_audio *audio, void *own);
/* Queues it, unless the queue is full. Needs no lock. */
struct server_commit server_transcription_commit(struct server_transcription *t);

/* ---- Voice activity detection: vad.c ------------------------------------ */
/* Loads m->vad: the weights that --vad-model names, else those that there are. Returns an exit
 * code, after a message unless it is APP_EXIT_OK. */
int server_open_vad(struct server_model *m);
/* What a request asks for. *vad: NULL if everything is transcribed. False: it has answered. Needs
 * no lock. */
bool server_read_vad(struct server_model *m, struct http_exchange *x, const json_t *form,
                     const struct akunu_vad **vad, struct akunu_vad_params *out);

/* ---- The thread --------------------------------------------------------- */
/* Starts the thread. False: the library has the message. */
bool server_open_speech(struct server_model *m);
void server_close_speech(struct server_model *m);
/* Bytes that its session has reserved. */
uint64_t server_speech_bytes(const struct server_model *m);
/* Writes what has come, and answers those that have ended. */
void server_take_transcriptions(struct server_model *m);
/* Answers those that have waited longer than --timeout. */
void server_expire_transcriptions(struct server_model *m);

#endif
