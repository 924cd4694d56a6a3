/* Pages are as full as they may be, except where a codec wants its headers on pages of their own.
 */
#include "speech/audio/ogg_pages.h"

#include <string.h>

enum { HEADER = 27, CONTINUED = 1, FIRST = 2, LAST = 4, SERIAL = 1 };

static uint32_t add_to_sum(uint32_t sum, const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        sum ^= (uint32_t)bytes[i] << 24;
        for (int bit = 0; bit < 8; bit++)
            sum = sum << 1 ^ (sum & 0x80000000 ? 0x04c11db7 : 0);
    }
    return sum;
}

void ak_ogg_begin(struct ak_ogg_pages *w, struct ak_scan *scan)
{
    w->scan = scan;
    w->n_pages = 0;
    w->granule = -1;
    w->is_continued = false;
    w->n_segments = 0;
    w->n_body = 0;
}

ak_status ak_ogg_flush(struct ak_ogg_pages *w, bool is_last, int64_t granule,
                       struct ak_error *error)
{
    unsigned char header[HEADER] = "OggS";
    header[5] = (unsigned char)((w->is_continued ? CONTINUED : 0) | (w->n_pages == 0 ? FIRST : 0) |
                                (is_last ? LAST : 0));
    ak_bytes_put(header + 6, 8, (uint64_t)(granule >= 0 ? granule : w->granule), false);
    ak_bytes_put(header + 14, 4, SERIAL, false);
    ak_bytes_put(header + 18, 4, w->n_pages, false);
    header[26] = (unsigned char)w->n_segments;
    uint32_t sum = add_to_sum(0, header, HEADER);
    sum = add_to_sum(sum, w->segments, w->n_segments);
    sum = add_to_sum(sum, w->body, w->n_body);
    ak_bytes_put(header + 22, 4, sum, false);
    AK_TRY(ak_scan_spool(w->scan, header, HEADER, error));
    AK_TRY(ak_scan_spool(w->scan, w->segments, w->n_segments, error));
    AK_TRY(ak_scan_spool(w->scan, w->body, w->n_body, error));
    w->is_continued = false;
    w->n_pages++;
    w->granule = -1;
    w->n_segments = 0;
    w->n_body = 0;
    return AKUNU_OK;
}

ak_status ak_ogg_packet(struct ak_ogg_pages *w, const void *bytes, int64_t at, size_t n,
                        int64_t granule, struct ak_error *error)
{
    size_t done = 0, piece;
    do {
        if (w->n_segments == AK_OGG_SEGMENTS) {
            AK_TRY(ak_ogg_flush(w, false, -1, error));
            w->is_continued = done > 0;
        }
        piece = n - done < AK_OGG_SEGMENT_BYTES ? n - done : AK_OGG_SEGMENT_BYTES;
        const unsigned char *from = bytes ? (const unsigned char *)bytes + done :
                                            ak_bytes_at(&w->scan->in, at + (int64_t)done, piece);
        if (!from)
            return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: the file was changed while it was read",
                           w->scan->name);
        memcpy(w->body + w->n_body, from, piece);
        w->segments[w->n_segments++] = (unsigned char)piece;
        w->n_body += piece;
        done += piece;
    } while (piece == AK_OGG_SEGMENT_BYTES);
    w->granule = granule;
    return AKUNU_OK;
}
