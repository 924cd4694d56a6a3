/* AU files: a header of six numbers or more, then samples to the end of the file. */
#include "speech/audio/scan.h"

enum {
    HEADER_BYTES = 24,
    HEADER_MAX = 1 << 20, /* with an annotation */
    ENCODINGS_MAX = 32,
    CHANNELS_MAX = 256,
    RATE_MAX = 1 << 20
};

bool ak_scan_au_begins(struct ak_bytes *in, int64_t at)
{
    const unsigned char *h = ak_bytes_at(in, at, HEADER_BYTES);
    if (!h || ak_bytes_big(h, 4) != 0x2e736e64) /* ".snd" */
        return false;
    uint64_t data = ak_bytes_big(h + 4, 4), encoding = ak_bytes_big(h + 12, 4),
             rate = ak_bytes_big(h + 16, 4), channels = ak_bytes_big(h + 20, 4);
    return data >= HEADER_BYTES && data <= HEADER_MAX && encoding >= 1 &&
           encoding <= ENCODINGS_MAX && rate >= 1 && rate <= RATE_MAX && channels >= 1 &&
           channels <= CHANNELS_MAX;
}

ak_status ak_scan_au(struct ak_scan *s, int64_t at, int64_t *end, struct ak_error *error)
{
    struct ak_audio_part *part;
    const unsigned char *h = ak_bytes_at(&s->in, at, HEADER_BYTES);
    if (!h)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: cut off in its header", s->name);
    int64_t data = at + (int64_t)ak_bytes_big(h + 4, 4);
    uint64_t size = ak_bytes_big(h + 8, 4);
    data = data < s->in.size ? data : s->in.size;
    bool is_unknown = size == 0 || size == UINT32_MAX,
         is_cut = size > (uint64_t)(s->in.size - data);
    *end = is_unknown || is_cut ? ak_scan_find(&s->in, data) : data + (int64_t)size;
    AK_TRY(ak_scan_add(s, false, at, *end - at, &part, error));
    if (is_unknown || is_cut)
        ak_scan_patch(part, 8, (uint64_t)(*end - data), 4, true);
    if (is_cut && !is_unknown && *end > data)
        part->cut = (double)size / (double)(*end - data);
    return AKUNU_OK;
}
