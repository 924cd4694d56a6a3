/* Segments of a clip's parts, reported in the order of the parts, however the parts run. */
#ifndef AK_SPEECH_TRANSCRIBE_ORDER_H
#define AK_SPEECH_TRANSCRIBE_ORDER_H

#include "akunu/speech.h"
#include "base/error.h"

/* A segment with all that it points to; free with ak_free. */
struct ak_segment_copy {
    struct akunu_segment segment;
    struct akunu_word *words; /* segment.words */
    struct ak_segment_copy *next;
};
/* NULL: out of memory. */
struct ak_segment_copy *ak_segment_copy_new(const struct akunu_segment *segment);

struct ak_order_part;

struct ak_order {
    akunu_segment_fn *on_segment;
    void *user;
    uint32_t n_segments;         /* reported */
    struct ak_order_part *parts; /* [n] */
    size_t n, head;              /* head: the part whose segments are reported as they come */
};
ak_status ak_order_open(struct ak_order *o, size_t n_parts, struct ak_error *error);
void ak_order_close(struct ak_order *o); /* accepts zeros */

/* Reports a segment, and sets its id. AKUNU_ERROR_CANCELLED: the callback wants no more. */
ak_status ak_order_report(struct ak_order *o, struct akunu_segment *segment,
                          struct ak_error *error);
/* Takes a segment of a part: reports it now, or keeps it until the parts before have ended. */
ak_status ak_order_add(struct ak_order *o, size_t part, struct ak_segment_copy *copy,
                       struct ak_error *error);
/* The part has no more of them. */
ak_status ak_order_end(struct ak_order *o, size_t part, struct ak_error *error);

#endif
