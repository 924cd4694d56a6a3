/* Scanners of audio files, one per family of containers, for speech/audio/parts.c. */
#ifndef AK_SPEECH_AUDIO_SCAN_H
#define AK_SPEECH_AUDIO_SCAN_H

#include "speech/audio/bytes.h"
#include "speech/audio/parts.h"

struct ak_scan {
    struct ak_bytes in;
    const char *name; /* for messages */
    struct ak_parts *parts;
};

/* Whether a file of this family begins at `at`. */
typedef bool ak_scan_begins_fn(struct ak_bytes *in, int64_t at);

/* Adds the part, or the parts, that begin at `at`; *end: the offset after them, larger than `at`.
 * AKUNU_ERROR_FORMAT: there is nothing in it that can be decoded. */
typedef ak_status ak_scan_fn(struct ak_scan *s, int64_t at, int64_t *end, struct ak_error *error);

/* WAV (RIFF, RIFX, RF64, BW64), Wave64, AIFF and AIFF-C, CAF. */
ak_scan_begins_fn ak_scan_chunks_begins;
ak_scan_fn ak_scan_chunks;

ak_scan_begins_fn ak_scan_au_begins;
ak_scan_fn ak_scan_au;

ak_scan_begins_fn ak_scan_flac_begins;
ak_scan_fn ak_scan_flac;

/* "fLaC", the header of a block, STREAMINFO. */
enum { AK_FLAC_START_BYTES = 4 + 4 + 34 };
/* Keeps the number of samples in a stream's first AK_FLAC_START_BYTES bytes from the decoder. */
void ak_flac_correct(struct ak_audio_part *part, const unsigned char *start);

ak_scan_begins_fn ak_scan_ogg_begins;
ak_scan_fn ak_scan_ogg;

/* Matroska and WebM. */
ak_scan_begins_fn ak_scan_matroska_begins;
ak_scan_fn ak_scan_matroska;

/* MP3, and layers 1 and 2. */
ak_scan_begins_fn ak_scan_mpeg_begins;
ak_scan_fn ak_scan_mpeg;

/* Whether a file of any of these families begins at `at`. */
ak_scan_begins_fn ak_scan_begins;

/* Offset of the first file of any family, or of the ID3v2 tag before it, at or after `at`: within
 * bytes of any content. MPEG frames count only after a tag, since too little tells them from other
 * bytes. The size of the file: there is none. */
int64_t ak_scan_find(struct ak_bytes *in, int64_t at);

/* Bytes of the ID3v2 tags at `at`. */
int64_t ak_scan_id3_bytes(struct ak_bytes *in, int64_t at);

/* Adds a part of n bytes from `first` on, of the file or, if `spooled`, of the spool. */
ak_status ak_scan_add(struct ak_scan *s, bool spooled, int64_t first, int64_t n,
                      struct ak_audio_part **out, struct ak_error *error);

/* Lets the decoder read `value` at an offset of the part, in n bytes. */
void ak_scan_patch(struct ak_audio_part *part, int64_t at, uint64_t value, unsigned n, bool big);

/* Appends to the spool. */
ak_status ak_scan_spool(struct ak_scan *s, const void *bytes, size_t n, struct ak_error *error);
/* Appends n bytes of the file, or those that are there. */
ak_status ak_scan_copy(struct ak_scan *s, int64_t at, int64_t n, struct ak_error *error);

#endif
