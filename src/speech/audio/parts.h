/* The parts of an audio file: files of audio that stand one after another in it, as `cat`, radio
 * recorders and speech synthesizers join them. libsndfile decodes the first alone;
 * speech/audio/audio.c opens each as a file of its own.
 *
 * Scanners, one per family of containers (scan.h), find where a part ends. They correct headers
 * that were written before the length was known, and rewrite what libsndfile does not read (Opus in
 * WebM, FLAC in Ogg) to a temporary file in a form that it does read. */
#ifndef AK_SPEECH_AUDIO_PARTS_H
#define AK_SPEECH_AUDIO_PARTS_H

#include "speech/audio/spool.h"

enum {
    AK_AUDIO_PART_PATCHES = 2,
    AK_AUDIO_PART_PREFIX_MAX = 320,
    AK_PARTS_MAX = 1 << 16,
    AK_PARTS_WARNING_BYTES = 256
};

/* Bytes that a decoder reads instead of those of the file. */
struct ak_patch {
    int64_t at; /* offset in the part, without its prefix */
    unsigned n;
    unsigned char bytes[8];
};

struct ak_audio_part {
    bool spooled;     /* bytes of the parts' spool; else of the file */
    int64_t first, n; /* bytes */
    unsigned n_prefix;
    unsigned char prefix[AK_AUDIO_PART_PREFIX_MAX]; /* bytes that a decoder reads before these */
    struct ak_patch patches[AK_AUDIO_PART_PATCHES];
    unsigned n_patches;

    /* What the header says of the length, if libsndfile's count is of no use: samples of a channel
     * (0: see below), and whether the length is unknown. */
    uint64_t stated;
    bool is_unknown;
    double cut; /* of a part that was cut off: stated bytes / bytes there; else 1 */

    /* For speech/audio/audio.c, which sets them when it opens the part. */
    unsigned rate, channels;
    uint64_t samples; /* of a channel, as the header says; UINT64_MAX: unknown */
};

struct ak_parts {
    struct ak_audio_part *part; /* [n] */
    size_t n, capacity;
    struct ak_spool spool;
    char warning[AK_PARTS_WARNING_BYTES]; /* what is not read, for users; "": nothing to say */
};

/* Finds the parts of the `bytes` bytes of `fd`; `name` is for messages. A file that no scanner
 * knows is one part. AKUNU_ERROR_FORMAT: a format that nobody here decodes, which the message
 * names. The caller frees `out`, after failure too. */
ak_status ak_parts_find(struct ak_parts *out, int fd, int64_t bytes, const char *name,
                        struct ak_error *error);
void ak_parts_free(struct ak_parts *p);

/* Keeps the first warning. */
void ak_parts_warn(struct ak_parts *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
