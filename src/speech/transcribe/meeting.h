/* Where lanes meet the session that they share. A lane is a thread that transcribes one part of a
 * clip after another; the thread of the call serves them: it alone runs passes and callbacks. Once
 * all lanes wait for the session, the decoder's passes that they ask for become one.
 *
 * Without threads, one lane runs in the thread of the call, and everything happens at once. */
#ifndef AK_SPEECH_TRANSCRIBE_MEETING_H
#define AK_SPEECH_TRANSCRIBE_MEETING_H

#include "engine/session/session.h"

struct ak_meeting;

/* threaded: several lanes; AKUNU_ERROR_MEMORY alone. */
ak_status ak_meeting_new(struct ak_session *s, bool threaded, struct ak_meeting **out,
                         struct ak_error *error);
void ak_meeting_free(struct ak_meeting *m); /* accepts NULL */

/* ---- A lane's side ------------------------------------------------------ */
/* From joining until leaving, the session's passes wait until the lane asks for one, so that they
 * can run together. */
void ak_meeting_join(struct ak_meeting *m);
void ak_meeting_leave(struct ak_meeting *m);

typedef ak_status ak_meeting_fn(void *user, struct ak_error *error);

/* Runs fn in the thread of the call, soon: no use of the session. */
ak_status ak_meeting_call(struct ak_meeting *m, ak_meeting_fn *fn, void *user,
                          struct ak_error *error);
/* Runs fn in the thread of the call, which may use the session: logits of other lanes are no
 * longer needed then. The lane has joined. */
ak_status ak_meeting_use(struct ak_meeting *m, ak_meeting_fn *fn, void *user,
                         struct ak_error *error);

/* Tokens of the lane for a pass of the decoder. `prepare` runs as fn of ak_meeting_use and fills
 * tokens and n. */
struct ak_meeting_pass {
    ak_meeting_fn *prepare;
    void *user;
    const struct akunu_batch_token *tokens;
    size_t n;           /* at most the session's batch */
    const float **rows; /* [n]: logits, NULL where none are wanted; valid until the next request */
};
ak_status ak_meeting_decode(struct ak_meeting *m, struct ak_meeting_pass *pass,
                            struct ak_error *error);

/* The lane's last call. */
void ak_meeting_end(struct ak_meeting *m);

/* ---- The side of the call ----------------------------------------------- */
/* Serves n lanes until all have ended. */
void ak_meeting_serve(struct ak_meeting *m, size_t n);

#endif
