/* Matroska files, read as a flat sequence of elements: those that hold others are entered, so their
 * sizes, which live streams leave open, are not needed. The first sound track that can be decoded
 * is read. Times of blocks do not matter, as in ffmpeg without filters: packets follow one another.
 */
#include "speech/audio/matroska.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "speech/audio/foreign.h"
#include "base/mem.h"

enum {
    EBML = 0x1a45dfa3,
    DOC_TYPE = 0x4282,
    SEGMENT = 0x18538067,
    INFO = 0x1549a966,
    TIMESTAMP_SCALE = 0x2ad7b1,
    DURATION = 0x4489,
    TRACKS = 0x1654ae6b,
    TRACK_ENTRY = 0xae,
    TRACK_NUMBER = 0xd7,
    TRACK_TYPE = 0x83,
    CODEC_ID = 0x86,
    CODEC_PRIVATE = 0x63a2,
    CODEC_DELAY = 0x56aa,
    CONTENT_ENCODINGS = 0x6d80,
    AUDIO = 0xe1,
    SAMPLING_FREQUENCY = 0xb5,
    CHANNELS = 0x9f,
    BIT_DEPTH = 0x6264,
    CLUSTER = 0x1f43b675,
    TIMESTAMP = 0xe7,
    SIMPLE_BLOCK = 0xa3,
    BLOCK_GROUP = 0xa0,
    BLOCK = 0xa1,
    DISCARD_PADDING = 0x75a2
};

enum { SOUND = 2 /* of TRACK_TYPE */, HEADER_MAX = 4096, LACES_MAX = 256, PACKET_MAX = 1 << 20 };
enum lacing { LACING_NONE, LACING_XIPH, LACING_FIXED, LACING_EBML };

struct element {
    uint32_t id;
    int64_t data, n; /* n −1: not known */
};

struct reader {
    struct ak_scan *scan;
    int64_t segment_end; /* −1: not known */
    bool has_track, has_sound;
    unsigned n_sound; /* sound tracks */
    struct ak_track track;
    struct ak_track_writer *writer; /* NULL: no track yet */
    double scale, duration;         /* seconds of a tick, ticks */
    uint64_t cluster;               /* ticks */
};

/* ---- Elements ------------------------------------------------------------ */
/* A number of 1 to `most` bytes, the first of which tells how many by its leading zeros. `keep`:
 * with the bit that ends them. Returns its bytes; 0: there is none. *all_ones: the value is
 * reserved. */
static unsigned read_vint(struct ak_bytes *in, int64_t at, unsigned most, bool keep,
                          uint64_t *value, bool *all_ones)
{
    const unsigned char *first = ak_bytes_at(in, at, 1);
    unsigned n = 1;
    while (first && n <= most && !(*first & 0x80 >> (n - 1)))
        n++;
    if (!first || n > most || !(first = ak_bytes_at(in, at, n)))
        return 0;
    uint64_t mark = 1ull << 7 * n;
    *value = ak_bytes_big(first, n);
    *all_ones = (*value & (mark - 1)) == mark - 1;
    if (!keep)
        *value &= mark - 1;
    return n;
}

static bool read_element(struct ak_bytes *in, int64_t at, struct element *e)
{
    uint64_t id, n;
    bool all_ones;
    unsigned n_id = read_vint(in, at, 4, true, &id, &all_ones);
    unsigned n_size = n_id > 0 ? read_vint(in, at + n_id, 8, false, &n, &all_ones) : 0;
    if (n_size == 0)
        return false;
    *e = (struct element){ (uint32_t)id, at + n_id + n_size, all_ones ? -1 : (int64_t)n };
    return true;
}

/* Where the element ends, at most `end`. */
static int64_t element_end(const struct element *e, int64_t end)
{
    return e->n >= 0 && e->n < end - e->data ? e->data + e->n : end;
}

static uint64_t read_unsigned(struct ak_bytes *in, const struct element *e)
{
    const unsigned char *bytes =
        e->n > 0 && e->n <= 8 ? ak_bytes_at(in, e->data, (size_t)e->n) : NULL;
    return bytes ? ak_bytes_big(bytes, (size_t)e->n) : 0;
}

static int64_t read_signed(struct ak_bytes *in, const struct element *e)
{
    int unused = e->n > 0 && e->n <= 8 ? 64 - 8 * (int)e->n : 0;
    return (int64_t)(read_unsigned(in, e) << unused) >> unused;
}

static double read_float(struct ak_bytes *in, const struct element *e)
{
    uint64_t bits = read_unsigned(in, e);
    uint32_t short_bits = (uint32_t)bits;
    float value;
    double result;
    memcpy(&value, &short_bits, sizeof value);
    memcpy(&result, &bits, sizeof result);
    result = e->n == 4 ? (double)value : e->n == 8 ? result : 0.0;
    return isfinite(result) ? result : 0.0;
}

/* ---- Tracks -------------------------------------------------------------- */
static void read_codec(struct ak_bytes *in, const struct element *e, char *codec)
{
    size_t n = e->n > 0 && e->n < AK_TRACK_CODEC_BYTES ? (size_t)e->n : 0;
    const unsigned char *bytes = ak_bytes_at(in, e->data, n);
    for (size_t i = 0; bytes && i < n && bytes[i] > ' ' && bytes[i] < 0x7f; i++)
        codec[i] = (char)bytes[i];
}

static void read_track_entry(struct ak_bytes *in, int64_t at, int64_t end, struct ak_track *track,
                             uint64_t *type)
{
    struct element e;
    for (; at < end && read_element(in, at, &e); at = element_end(&e, end)) {
        switch (e.id) {
        case TRACK_NUMBER: track->number = read_unsigned(in, &e); break;
        case TRACK_TYPE: *type = read_unsigned(in, &e); break;
        case CODEC_ID: read_codec(in, &e, track->codec); break;
        case CODEC_DELAY: track->delay = read_unsigned(in, &e); break;
        case CONTENT_ENCODINGS: track->is_encoded = true; break;
        case SAMPLING_FREQUENCY: track->rate = read_float(in, &e); break;
        case CHANNELS: track->channels = read_unsigned(in, &e); break;
        case BIT_DEPTH: track->bits = read_unsigned(in, &e); break;
        case CODEC_PRIVATE:
            track->setup = e.data;
            track->n_setup = element_end(&e, end) - e.data;
            break;
        case AUDIO: e.n = 0; break; /* entered */
        default: break;
        }
    }
}

/* Keeps the first sound track that can be decoded, or the first of all, for the message. */
static void read_tracks(struct reader *r, int64_t at, int64_t end)
{
    struct ak_bytes *in = &r->scan->in;
    struct element e;
    for (; at < end && read_element(in, at, &e); at = element_end(&e, end)) {
        struct ak_track track = { .channels = 1, .rate = 8000.0 };
        uint64_t type = 0;
        if (e.id != TRACK_ENTRY)
            continue;
        read_track_entry(in, e.data, element_end(&e, end), &track, &type);
        if (type != SOUND)
            continue;
        bool is_known = ak_track_is_known(&track);
        if (r->n_sound++ == 0 || (is_known && !r->has_track))
            r->track = track;
        r->has_track = r->has_track || is_known;
    }
}

static ak_status begin_track(struct reader *r, struct ak_error *error)
{
    char what[AK_TRACK_CODEC_BYTES + 64];
    if (!r->has_track) {
        snprintf(what, sizeof what, "a Matroska or WebM file %s%s",
                 r->n_sound == 0 ? "without sound" : "with ",
                 r->n_sound == 0 ? "" : r->track.codec);
        return ak_foreign_fail(error, r->scan->name, what);
    }
    if (r->n_sound > 1)
        ak_parts_warn(r->scan->parts, "of %u sound tracks only the first is read (%s)", r->n_sound,
                      r->track.codec);
    r->writer = ak_alloc(1, sizeof *r->writer);
    if (!r->writer)
        return ak_fail_memory(error, "a sound track", sizeof *r->writer);
    return ak_track_begin(r->writer, r->scan, &r->track, error);
}

/* ---- Blocks -------------------------------------------------------------- */
/* Sizes of the packets of a block but the last, which takes the rest. False: damaged. */
static bool read_laces(struct ak_bytes *in, enum lacing lacing, int64_t *at, int64_t end, int n,
                       int64_t *sizes)
{
    for (int i = 0; i + 1 < n; i++) {
        uint64_t value = 0;
        bool all_ones;
        unsigned n_bytes = 0;
        const unsigned char *byte = NULL;
        sizes[i] = 0;
        if (lacing == LACING_EBML) {
            n_bytes = read_vint(in, *at, 8, false, &value, &all_ones);
            sizes[i] = (int64_t)value;
            if (i > 0) /* the difference to the size before */
                sizes[i] += sizes[i - 1] - ((1ll << (7 * n_bytes - (n_bytes > 0))) - 1);
            *at += n_bytes;
        }
        while (lacing == LACING_XIPH && (byte = ak_bytes_at(in, (*at)++, 1)) != NULL) {
            sizes[i] += *byte;
            if (*byte != 255)
                break;
        }
        if ((n_bytes == 0 && !byte) || sizes[i] < 0 || sizes[i] > PACKET_MAX || *at > end)
            return false;
    }
    return true;
}

static ak_status read_packets(struct reader *r, enum lacing lacing, int64_t at, int64_t end,
                              struct ak_error *error)
{
    struct ak_bytes *in = &r->scan->in;
    int64_t sizes[LACES_MAX];
    const unsigned char *count = lacing == LACING_NONE ? NULL : ak_bytes_at(in, at++, 1);
    int n = count ? *count + 1 : 1;
    if (lacing != LACING_NONE && !count)
        return AKUNU_OK;
    for (int i = 0; lacing == LACING_FIXED && i + 1 < n; i++)
        sizes[i] = (end - at) / n;
    if ((lacing == LACING_XIPH || lacing == LACING_EBML) &&
        !read_laces(in, lacing, &at, end, n, sizes))
        return AKUNU_OK;
    for (int i = 0; i < n && at < end; i++) {
        int64_t size = i + 1 < n && sizes[i] < end - at ? sizes[i] : end - at;
        if (size <= PACKET_MAX)
            AK_TRY(ak_track_packet(r->writer, at, (size_t)size, error));
        at += size;
    }
    return AKUNU_OK;
}

static ak_status read_block(struct reader *r, const struct element *e, struct ak_error *error)
{
    struct ak_bytes *in = &r->scan->in;
    uint64_t number;
    bool all_ones;
    int64_t end = element_end(e, in->size);
    unsigned n = read_vint(in, e->data, 8, false, &number, &all_ones);
    const unsigned char *h = n > 0 ? ak_bytes_at(in, e->data + n, 3) : NULL;
    if (!h || !r->writer || number != r->track.number)
        return AKUNU_OK;
    double ticks = (double)r->cluster + (int16_t)ak_bytes_big(h, 2);
    r->writer->seconds = ticks * r->scale;
    r->writer->discard = 0;
    return read_packets(r, (enum lacing)(h[2] >> 1 & 3), e->data + n + 3, end, error);
}

/* ---- The file ------------------------------------------------------------ */
static void read_info(struct reader *r, int64_t at, int64_t end)
{
    struct element e;
    for (; at < end && read_element(&r->scan->in, at, &e); at = element_end(&e, end)) {
        if (e.id == TIMESTAMP_SCALE)
            r->scale = (double)read_unsigned(&r->scan->in, &e) / 1e9;
        if (e.id == DURATION)
            r->duration = read_float(&r->scan->in, &e);
    }
}

/* Reads the element and sets *at to the next: its first child if it is entered. */
static ak_status read_any(struct reader *r, const struct element *e, int64_t *at,
                          struct ak_error *error)
{
    struct ak_bytes *in = &r->scan->in;
    int64_t end = element_end(e, in->size), padding;
    *at = end;
    switch (e->id) {
    case SEGMENT:
        r->segment_end = e->n >= 0 ? e->data + e->n : -1;
        *at = e->data;
        return AKUNU_OK;
    case CLUSTER:
    case BLOCK_GROUP: *at = e->data; return AKUNU_OK;
    case INFO: read_info(r, e->data, end); return AKUNU_OK;
    case TIMESTAMP: r->cluster = read_unsigned(in, e); return AKUNU_OK;
    case TRACKS:
        if (r->writer)
            return AKUNU_OK;
        read_tracks(r, e->data, end);
        return begin_track(r, error);
    case SIMPLE_BLOCK:
    case BLOCK: return read_block(r, e, error);
    case DISCARD_PADDING:
        padding = read_signed(in, e);
        if (r->writer && padding > 0)
            r->writer->discard = (uint64_t)padding;
        return AKUNU_OK;
    default: return AKUNU_OK;
    }
}

/* The element at *at, or the next cluster after damage. False: the file ends, or another begins. */
static bool next_element(const struct reader *r, int64_t *at, struct element *e)
{
    struct ak_bytes *in = &r->scan->in;
    if (*at == r->segment_end && ak_scan_begins(in, *at))
        return false;
    while (*at < in->size) {
        if (read_element(in, *at, e) && (e->n >= 0 || e->id == SEGMENT || e->id == CLUSTER))
            return e->id != EBML;
        int64_t next = ak_bytes_find(in, *at + 1, "\x1f\x43\xb6\x75", 4);
        *at = next >= 0 ? next : in->size;
    }
    return false;
}

static ak_status read_clusters(struct reader *r, int64_t at, int64_t *end, struct ak_error *error)
{
    struct element e;
    if (!read_element(&r->scan->in, at, &e))
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: cut off in its header", r->scan->name);
    at = element_end(&e, r->scan->in.size);
    while (next_element(r, &at, &e))
        AK_TRY(read_any(r, &e, &at, error));
    *end = at;
    if (!r->writer)
        return begin_track(r, error); /* says that there is none */
    bool is_cut = r->segment_end > r->scan->in.size;
    return ak_track_end(r->writer, is_cut ? r->duration * r->scale : 0.0, error);
}

bool ak_scan_matroska_begins(struct ak_bytes *in, int64_t at)
{
    struct element e, type;
    if (!read_element(in, at, &e) || e.id != EBML || e.n < 0 || e.n > HEADER_MAX)
        return false;
    for (int64_t child = e.data, end = e.data + e.n; child < end && read_element(in, child, &type);
         child = element_end(&type, end))
        if (type.id == DOC_TYPE)
            return ak_bytes_are(in, type.data, "webm", 4) ||
                   ak_bytes_are(in, type.data, "matroska", 8);
    return false;
}

ak_status ak_scan_matroska(struct ak_scan *s, int64_t at, int64_t *end, struct ak_error *error)
{
    struct reader r = { .scan = s, .segment_end = -1, .scale = 1e-3 };
    ak_status status = read_clusters(&r, at, end, error);
    ak_free(r.writer);
    return status;
}
