/* The public handle of a session. */
#ifndef AK_API_SESSION_H
#define AK_API_SESSION_H

#include "session/session.h"

struct akunu_session {
    struct ak_session *inner;
};

/* The session behind a handle; NULL, with the error filled in, where that is NULL. */
struct ak_session *ak_api_session(const struct akunu_session *session, struct ak_error *error);

#endif
