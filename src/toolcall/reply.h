/* What a model writes, taken apart while it comes: see akunu_reply in akunu.h.
 *
 *     bytes → UTF-8 → text and its markers → a call's shape → its body → events → message
 *     intake.c        prose.c, harmony.c      call.c          *_body.c   emit.c   message.c
 */
#ifndef AK_TEXT_CALLS_REPLY_H
#define AK_TEXT_CALLS_REPLY_H

#include "toolcall/format.h"

struct ak_reply;

struct ak_reply_settings {
    const struct ak_call_format *format;
    const char *prompt, *tools; /* NULL allowed */
    bool calls, reasoning;
    uint64_t seed;
    akunu_reply_fn *on_event; /* NULL allowed */
    void *user;
};

/* Copies what it needs of the settings. */
ak_status ak_reply_create(const struct ak_reply_settings *settings, struct ak_reply **out,
                          struct ak_error *error);
void ak_reply_free(struct ak_reply *r); /* NULL allowed */

ak_status ak_reply_push(struct ak_reply *r, const char *bytes, size_t n, struct ak_error *error);
ak_status ak_reply_end(struct ak_reply *r, struct ak_error *error);

/* The message as JSON text, which belongs to the reply. */
ak_status ak_reply_message(struct ak_reply *r, const char **out, struct ak_error *error);
const char *ak_reply_notes(const struct ak_reply *r);
const struct ak_call_format *ak_reply_format(const struct ak_reply *r);

#endif
