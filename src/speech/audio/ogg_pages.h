/* Packets as the pages of an Ogg stream (RFC 3533), written to a scan's spool. */
#ifndef AK_SPEECH_AUDIO_OGG_PAGES_H
#define AK_SPEECH_AUDIO_OGG_PAGES_H

#include "speech/audio/scan.h"

enum { AK_OGG_SEGMENTS = 255, AK_OGG_SEGMENT_BYTES = 255 };

struct ak_ogg_pages {
    struct ak_scan *scan;
    uint32_t n_pages;
    int64_t granule;   /* of the last packet that ends in the page; −1: none does */
    bool is_continued; /* the page begins within a packet */
    unsigned n_segments;
    size_t n_body;
    unsigned char segments[AK_OGG_SEGMENTS];
    unsigned char body[AK_OGG_SEGMENTS * AK_OGG_SEGMENT_BYTES];
};

void ak_ogg_begin(struct ak_ogg_pages *w, struct ak_scan *scan);

/* A packet of n bytes: `bytes`, or if NULL those of the scanned file at `at`. `granule`: the
 * codec's position after it. */
ak_status ak_ogg_packet(struct ak_ogg_pages *w, const void *bytes, int64_t at, size_t n,
                        int64_t granule, struct ak_error *error);

/* Ends the page. `granule`, if not negative, takes the place of the last packet's. */
ak_status ak_ogg_flush(struct ak_ogg_pages *w, bool is_last, int64_t granule,
                       struct ak_error *error);

#endif
