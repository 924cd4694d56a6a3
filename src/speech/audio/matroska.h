/* Matroska's sound tracks (RFC 9559) as a stream that libsndfile reads. speech/audio/matroska.c
 * finds the track and its packets, speech/audio/track.c writes them to the spool. */
#ifndef AK_SPEECH_AUDIO_MATROSKA_H
#define AK_SPEECH_AUDIO_MATROSKA_H

#include "speech/audio/ogg_pages.h"

enum { AK_TRACK_CODEC_BYTES = 32 };

struct ak_track {
    uint64_t number;
    char codec[AK_TRACK_CODEC_BYTES]; /* "A_OPUS" */
    int64_t setup, n_setup;           /* CodecPrivate, in the file */
    double rate;
    uint64_t channels, bits, delay; /* delay: CodecDelay, in nanoseconds */
    bool is_encoded;                /* compressed or encrypted by the container */
};

struct ak_track_writer {
    struct ak_scan *scan;
    const struct ak_track *track;
    const struct ak_track_codec *codec;
    int64_t first;    /* where the stream begins in the spool */
    int64_t n, setup; /* Opus and Vorbis: samples; PCM: bytes */
    uint64_t discard; /* nanoseconds that the last packet has too many */
    double seconds;   /* time of the last block */
    struct ak_ogg_pages pages;
};

/* Whether the codec is one of those that are written. */
bool ak_track_is_known(const struct ak_track *track);

/* `track` is used until the end. AKUNU_ERROR_FORMAT: its setup is damaged. */
ak_status ak_track_begin(struct ak_track_writer *w, struct ak_scan *scan,
                         const struct ak_track *track, struct ak_error *error);
ak_status ak_track_packet(struct ak_track_writer *w, int64_t at, size_t n, struct ak_error *error);

/* Adds the part; `seconds`: what the file says of its length if it was cut off, else 0. */
ak_status ak_track_end(struct ak_track_writer *w, double seconds, struct ak_error *error);

#endif
