/* Texts that end a text: what could be the beginning of one is held back until it is known
 * whether it is, so that none of it is ever told. */
#ifndef AK_SESSION_STOPS_H
#define AK_SESSION_STOPS_H

#include "base/buffer.h"

enum { AK_STOPS_MOST = 64, AK_STOP_MOST_BYTES = 1024 };

/* All zero: nothing ends the text. */
struct ak_stops {
    const char *const *texts;
    size_t n;
    struct ak_buffer held; /* what was told last, then what is held back */
    size_t n_told;
};

/* The texts stay the caller's. An empty one, one that is too long, or too many are
 * AKUNU_ERROR_ARGUMENT. */
ak_status ak_stops_begin(struct ak_stops *s, const char *const *texts, size_t n,
                         struct ak_error *error);
void ak_stops_clear(struct ak_stops *s);

/* Takes more of the text and gives what of it may be told, valid until the next call. After
 * *ended, when it has come to one of the texts, there is no more. */
ak_status ak_stops_push(struct ak_stops *s, const char **text, size_t *n, bool *ended,
                        struct ak_error *error);

/* What is still held back, where the text ends by itself. */
void ak_stops_end(struct ak_stops *s, const char **text, size_t *n);

#endif
