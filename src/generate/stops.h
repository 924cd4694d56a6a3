/* Texts that end a text: what could be the beginning of one is held back until it is known
 * whether it is, so that none of it is ever told. */
#ifndef AK_GENERATE_STOPS_H
#define AK_GENERATE_STOPS_H

#include "base/buffer.h"

enum { AK_GEN_STOPS_MAX = 64, AK_GEN_STOP_BYTES_MAX = 1024 };

/* All zero: nothing ends the text. */
struct ak_gen_stops {
    const char *const *texts;
    size_t n;
    struct ak_buffer holdback; /* what was told last, then what is held back */
    size_t n_reported;
};

/* The texts stay the caller's. An empty one, one that is too long, or too many are
 * AKUNU_ERROR_ARGUMENT. */
ak_status ak_gen_stops_begin(struct ak_gen_stops *s, const char *const *texts, size_t n,
                             struct ak_error *error);
void ak_gen_stops_clear(struct ak_gen_stops *s);

/* Takes more of the text and gives what of it may be told, valid until the next call. After
 * *ended, when it has come to one of the texts, there is no more. */
ak_status ak_gen_stops_push(struct ak_gen_stops *s, const char **text, size_t *n, bool *ended,
                            struct ak_error *error);

/* What is still held back, where the text ends by itself. */
void ak_gen_stops_end(struct ak_gen_stops *s, const char **text, size_t *n);

#endif
