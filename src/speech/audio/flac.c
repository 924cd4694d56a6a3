/* FLAC streams. Frames have no length, so a stream ends where the marker and the first block of
 * another begin, or the file ends. The number of samples in the first block may be missing or
 * wrong: the decoder is not told of it and reads to the end of the part. */
#include "speech/audio/scan.h"

enum {
    START_BYTES = AK_FLAC_START_BYTES,
    INFO = 8,          /* offset of STREAMINFO */
    COUNT = INFO + 13, /* of the 36 bits of the number of samples */
    RATE_MAX = 1 << 20
};

/* "fLaC" and the header of a STREAMINFO block, the last of its stream or not. */
static bool has_marker(const unsigned char *h)
{
    return ak_bytes_big(h, 4) == 0x664c6143 && (h[4] & 0x7f) == 0 && ak_bytes_big(h + 5, 3) == 34;
}

bool ak_scan_flac_begins(struct ak_bytes *in, int64_t at)
{
    const unsigned char *h = ak_bytes_at(in, at, START_BYTES);
    if (!h || !has_marker(h))
        return false;
    uint64_t block_min = ak_bytes_big(h + INFO, 2), block_max = ak_bytes_big(h + INFO + 2, 2),
             rate = ak_bytes_big(h + INFO + 10, 3) >> 4;
    return block_min >= 16 && block_max >= block_min && rate > 0 && rate < RATE_MAX;
}

/* Offset of the first frame, so that nothing is sought in pictures and cue sheets. */
static int64_t skip_blocks(struct ak_bytes *in, int64_t at)
{
    const unsigned char *h;
    at += 4;
    while ((h = ak_bytes_at(in, at, 4)) != NULL) {
        bool is_last = h[0] & 0x80;
        at += 4 + (int64_t)ak_bytes_big(h + 1, 3);
        if (is_last)
            break;
    }
    return at < in->size ? at : in->size;
}

void ak_flac_correct(struct ak_audio_part *part, const unsigned char *start)
{
    part->stated = ak_bytes_big(start + COUNT, 5) & 0xfffffffff;
    part->is_unknown = part->stated == 0;
    ak_scan_patch(part, COUNT, (uint64_t)(start[COUNT] & 0xf0) << 32, 5, true);
}

ak_status ak_scan_flac(struct ak_scan *s, int64_t at, int64_t *end, struct ak_error *error)
{
    struct ak_audio_part *part;
    *end = ak_scan_find(&s->in, skip_blocks(&s->in, at));
    AK_TRY(ak_scan_add(s, false, at, *end - at, &part, error));
    const unsigned char *start = ak_bytes_at(&s->in, at, START_BYTES);
    if (start)
        ak_flac_correct(part, start);
    return AKUNU_OK;
}
