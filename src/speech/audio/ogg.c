/* Ogg files. A link of a chain begins with the first pages of its streams and goes on to the next
 * first page. Of several streams side by side (a video's, say) the first that can be decoded is
 * written out alone. FLAC is written out as a file of its own kind: its packets in a row are one,
 * but for nine bytes in front. */
#include "speech/audio/scan.h"

#include <string.h>

#include "speech/audio/foreign.h"

enum {
    HEADER = 27,
    FIRST = 2,        /* flag of a stream's first page */
    FLAC_PREFIX = 9,  /* before "fLaC" */
    STREAMS_MAX = 16, /* side by side */
    CODEC_BYTES = 8   /* which tell a codec */
};

enum codec { OTHER, VORBIS, OPUS, FLAC };

struct page {
    int64_t at, n; /* with its header; n may go beyond the end of the file */
    int64_t body;
    unsigned flags;
    uint32_t serial;
    uint64_t granule;
};

struct link {
    int64_t begin, end;
    uint32_t serial; /* of the stream that is read */
    enum codec codec;
    const char *other; /* if none is: what there is */
    bool is_mixed;     /* other streams have pages, too */
    unsigned n_sound;  /* streams that can be decoded */
};

static bool read_page(struct ak_bytes *in, int64_t at, struct page *page)
{
    const unsigned char *h = ak_bytes_at(in, at, HEADER);
    if (!h || memcmp(h, "OggS", 5) != 0)
        return false;
    unsigned n_segments = h[26];
    *page = (struct page){ .at = at,
                           .flags = h[5],
                           .granule = ak_bytes_little(h + 6, 8),
                           .serial = (uint32_t)ak_bytes_little(h + 14, 4),
                           .body = at + HEADER + n_segments,
                           .n = HEADER + n_segments };
    const unsigned char *segments = ak_bytes_at(in, at + HEADER, n_segments);
    for (unsigned i = 0; segments && i < n_segments; i++)
        page->n += segments[i];
    return segments != NULL;
}

bool ak_scan_ogg_begins(struct ak_bytes *in, int64_t at)
{
    struct page page;
    return read_page(in, at, &page) && page.flags & FIRST && page.granule == 0;
}

/* The page at *at, or the next one after tags or damage. False: another file begins at *at, or the
 * file ends there. */
static bool next_page(struct ak_bytes *in, int64_t *at, struct page *page)
{
    while (!read_page(in, *at, page)) {
        int64_t tag = ak_scan_id3_bytes(in, *at), next;
        if (tag == 0 && ak_scan_begins(in, *at))
            return false;
        next = tag > 0 ? *at + tag : ak_bytes_find(in, *at + 1, "OggS", 4);
        *at = next >= 0 ? next : in->size;
        if (next < 0)
            return false;
    }
    *at = page->at;
    return true;
}

static enum codec find_codec(struct ak_bytes *in, const struct page *page, const char **other)
{
    static const struct {
        const char *bytes;
        unsigned n;
        enum codec codec;
        const char *other;
    } codecs[] = {
        { "\x01vorbis", 7, VORBIS, NULL },
        { "OpusHead", 8, OPUS, NULL },
        { "\x7f"
          "FLAC",
          5, FLAC, NULL },
        { "Speex   ", 8, OTHER, "an Ogg file with Speex" },
        { "\x80theora", 7, OTHER, "an Ogg file with video alone" },
    };
    for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++)
        if (ak_bytes_are(in, page->body, codecs[i].bytes, codecs[i].n)) {
            *other = *other ? *other : codecs[i].other;
            return codecs[i].codec;
        }
    *other = *other ? *other : "an Ogg file without Vorbis, Opus or FLAC";
    return OTHER;
}

/* Reads the first pages of the link at `at`; returns the offset after them. */
static int64_t read_first_pages(struct ak_bytes *in, int64_t at, struct link *link)
{
    struct page page;
    for (int i = 0; i < STREAMS_MAX && read_page(in, at, &page) && page.flags & FIRST; i++) {
        enum codec codec = find_codec(in, &page, &link->other);
        if (codec != OTHER && link->n_sound++ == 0) {
            link->codec = codec;
            link->serial = page.serial;
        }
        link->is_mixed = link->is_mixed || i > 0;
        at = page.at + page.n;
    }
    return at;
}

static int64_t find_end(struct ak_bytes *in, int64_t at)
{
    struct page page;
    while (next_page(in, &at, &page) && !(page.flags & FIRST))
        at = page.at + page.n;
    return at < in->size ? at : in->size;
}

/* Writes the pages of the link's stream, or what they hold, to the spool. */
static ak_status write_out(struct ak_scan *s, const struct link *link, struct ak_error *error)
{
    struct page page;
    bool is_flac = link->codec == FLAC;
    int64_t prefix = is_flac ? FLAC_PREFIX : 0;
    for (int64_t at = link->begin; next_page(&s->in, &at, &page) && at < link->end;
         at = page.at + page.n) {
        if (page.serial != link->serial)
            continue;
        int64_t from = is_flac ? page.body + prefix : page.at;
        AK_TRY(ak_scan_copy(s, from, page.at + page.n - from, error));
        prefix = 0;
    }
    return AKUNU_OK;
}

ak_status ak_scan_ogg(struct ak_scan *s, int64_t at, int64_t *end, struct ak_error *error)
{
    struct link link = { .begin = at };
    struct ak_audio_part *part;
    int64_t first = s->parts->spool.n;
    link.end = *end = find_end(&s->in, read_first_pages(&s->in, at, &link));
    if (link.codec == OTHER)
        return ak_foreign_fail(error, s->name, link.other);
    if (link.codec != FLAC && !link.is_mixed)
        return ak_scan_add(s, false, at, link.end - at, &part, error);
    if (link.n_sound > 1)
        ak_parts_warn(s->parts, "of %u sound streams only the first is read", link.n_sound);
    AK_TRY(write_out(s, &link, error));
    AK_TRY(ak_scan_add(s, true, first, s->parts->spool.n - first, &part, error));
    if (link.codec == FLAC) {
        unsigned char start[AK_FLAC_START_BYTES];
        if (!ak_spool_read(&s->parts->spool, first, start, sizeof start))
            return ak_foreign_fail(error, s->name, "an Ogg file with FLAC that is cut off");
        ak_flac_correct(part, start);
    }
    return AKUNU_OK;
}
