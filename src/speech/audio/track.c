/* One row per codec: how its stream begins, what a packet becomes, how it ends. */
#include "speech/audio/matroska.h"

#include <math.h>
#include <string.h>

enum {
    OPUS_RATE = 48000,
    OPUS_HEAD_BYTES = 19,
    OPUS_PACKET_MAX = 5760, /* samples: 120 ms */
    VORBIS_HEADERS = 3,
    WAV_HEADER_BYTES = 44
};

static const double NANOSECONDS = 1e9;

typedef ak_status begin_fn(struct ak_track_writer *w, struct ak_error *error);
typedef ak_status packet_fn(struct ak_track_writer *w, int64_t at, size_t n,
                            struct ak_error *error);
typedef ak_status end_fn(struct ak_track_writer *w, struct ak_audio_part **part,
                         struct ak_error *error);

static ak_status new_part(struct ak_track_writer *w, struct ak_audio_part **part,
                          struct ak_error *error)
{
    int64_t n = w->scan->parts->spool.n - w->first;
    return ak_scan_add(w->scan, true, w->first, n, part, error);
}

static ak_status fail_setup(const struct ak_track_writer *w, struct ak_error *error)
{
    return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: the setup of its %s track is damaged",
                   w->scan->name, w->track->codec);
}

/* ---- Opus ---------------------------------------------------------------- */
/* Samples of a packet, 48,000 a second (RFC 6716, section 3.1). 0: it is damaged. */
static int opus_samples(const unsigned char *packet, size_t n)
{
    static const int silk[4] = { 480, 960, 1920, 2880 }, celt[4] = { 120, 240, 480, 960 };
    int config = packet[0] >> 3, frames = packet[0] & 3;
    int each = config < 12 ? silk[config & 3] : config < 16 ? silk[config & 1] : celt[config & 3];
    frames = frames == 0 ? 1 : frames < 3 ? 2 : n > 1 ? packet[1] & 63 : 0;
    return frames * each <= OPUS_PACKET_MAX ? frames * each : 0;
}

static ak_status opus_begin(struct ak_track_writer *w, struct ak_error *error)
{
    static const char tags[16] = "OpusTags"; /* no vendor, no comments */
    unsigned char head[OPUS_HEAD_BYTES] = "OpusHead\x01";
    const struct ak_track *track = w->track;
    bool has_head = ak_bytes_are(&w->scan->in, track->setup, "OpusHead", 8);
    if (!has_head && track->channels > 2)
        return fail_setup(w, error);
    head[9] = track->channels == 2 ? 2 : 1;
    ak_bytes_put(head + 10, 2, track->delay * OPUS_RATE / (uint64_t)NANOSECONDS, false);
    ak_bytes_put(head + 12, 4, OPUS_RATE, false);
    ak_ogg_begin(&w->pages, w->scan);
    AK_TRY(ak_ogg_packet(&w->pages, has_head ? NULL : head, track->setup,
                         has_head ? (size_t)track->n_setup : sizeof head, 0, error));
    AK_TRY(ak_ogg_flush(&w->pages, false, -1, error));
    AK_TRY(ak_ogg_packet(&w->pages, tags, 0, sizeof tags, 0, error));
    return ak_ogg_flush(&w->pages, false, -1, error);
}

static ak_status opus_packet(struct ak_track_writer *w, int64_t at, size_t n,
                             struct ak_error *error)
{
    const unsigned char *bytes = ak_bytes_at(&w->scan->in, at, n < 2 ? n : 2);
    int samples = bytes ? opus_samples(bytes, n) : 0;
    if (samples == 0)
        return AKUNU_OK;
    w->n += samples;
    return ak_ogg_packet(&w->pages, NULL, at, n, w->n, error);
}

static ak_status opus_end(struct ak_track_writer *w, struct ak_audio_part **part,
                          struct ak_error *error)
{
    double discard = (double)w->discard * OPUS_RATE / NANOSECONDS;
    discard = discard < OPUS_PACKET_MAX ? discard : 0.0;
    int64_t last = w->n - (int64_t)llround(discard);
    AK_TRY(ak_ogg_flush(&w->pages, true, last > 0 ? last : 0, error));
    return new_part(w, part, error);
}

/* ---- Vorbis -------------------------------------------------------------- */
/* The three headers stand in the setup one after another, with the sizes of two in front, each as
 * bytes of 255 and one smaller. */
static ak_status vorbis_begin(struct ak_track_writer *w, struct ak_error *error)
{
    const struct ak_track *track = w->track;
    int64_t at = track->setup + 1, end = track->setup + track->n_setup,
            sizes[VORBIS_HEADERS] = { 0 };
    if (!ak_bytes_are(&w->scan->in, track->setup, "\x02", 1))
        return fail_setup(w, error);
    for (int i = 0; i + 1 < VORBIS_HEADERS; i++) {
        const unsigned char *size;
        do {
            size = at < end ? ak_bytes_at(&w->scan->in, at++, 1) : NULL;
            if (!size)
                return fail_setup(w, error);
            sizes[i] += *size;
        } while (*size == 255);
    }
    sizes[2] = end - at - sizes[0] - sizes[1];
    if (sizes[2] < 0)
        return fail_setup(w, error);
    ak_ogg_begin(&w->pages, w->scan);
    for (int i = 0; i < VORBIS_HEADERS; i++) {
        AK_TRY(ak_ogg_packet(&w->pages, NULL, at, (size_t)sizes[i], 0, error));
        if (i != 1)
            AK_TRY(ak_ogg_flush(&w->pages, false, -1, error));
        at += sizes[i];
    }
    return AKUNU_OK;
}

/* The position after a packet is not known without decoding, and is not given. */
static ak_status vorbis_packet(struct ak_track_writer *w, int64_t at, size_t n,
                               struct ak_error *error)
{
    return ak_ogg_packet(&w->pages, NULL, at, n, -1, error);
}

/* The last position is a bound: a smaller one would cut samples off. */
static ak_status vorbis_end(struct ak_track_writer *w, struct ak_audio_part **part,
                            struct ak_error *error)
{
    double rate = w->track->rate > 0.0 && w->track->rate < 1e6 ? w->track->rate : 1e6;
    double bound = (w->seconds < 1e6 ? w->seconds : 1e6) + 10.0;
    AK_TRY(ak_ogg_flush(&w->pages, false, (int64_t)(bound * rate), error));
    AK_TRY(new_part(w, part, error));
    (*part)->is_unknown = true;
    return AKUNU_OK;
}

/* ---- FLAC, MP3, PCM ------------------------------------------------------ */
static ak_status flac_begin(struct ak_track_writer *w, struct ak_error *error)
{
    if (!ak_scan_flac_begins(&w->scan->in, w->track->setup))
        return fail_setup(w, error);
    return ak_scan_copy(w->scan, w->track->setup, w->track->n_setup, error);
}

static ak_status mpeg_begin(struct ak_track_writer *w, struct ak_error *error)
{
    (void)w, (void)error;
    return AKUNU_OK;
}

static ak_status copy_packet(struct ak_track_writer *w, int64_t at, size_t n,
                             struct ak_error *error)
{
    return ak_scan_copy(w->scan, at, (int64_t)n, error);
}

static ak_status flac_end(struct ak_track_writer *w, struct ak_audio_part **part,
                          struct ak_error *error)
{
    unsigned char start[AK_FLAC_START_BYTES];
    AK_TRY(new_part(w, part, error));
    if (!ak_spool_read(&w->scan->parts->spool, w->first, start, sizeof start))
        return fail_setup(w, error);
    ak_flac_correct(*part, start);
    return AKUNU_OK;
}

static ak_status mpeg_end(struct ak_track_writer *w, struct ak_audio_part **part,
                          struct ak_error *error)
{
    AK_TRY(new_part(w, part, error));
    (*part)->is_unknown = true;
    return AKUNU_OK;
}

static ak_status pcm_begin(struct ak_track_writer *w, struct ak_error *error)
{
    unsigned char header[WAV_HEADER_BYTES] = "RIFF\xff\xff\xff\xffWAVEfmt \x10";
    const struct ak_track *track = w->track;
    bool is_float = strcmp(track->codec, "A_PCM/FLOAT/IEEE") == 0;
    if (track->bits % 8 != 0 || track->bits < 8 || track->bits > 64 || track->channels < 1 ||
        track->channels > 64 || !(track->rate >= 1.0 && track->rate < 1e6))
        return fail_setup(w, error);
    uint64_t frame = track->channels * track->bits / 8, rate = (uint64_t)track->rate;
    ak_bytes_put(header + 20, 2, is_float ? 3 : 1, false);
    ak_bytes_put(header + 22, 2, track->channels, false);
    ak_bytes_put(header + 24, 4, rate, false);
    ak_bytes_put(header + 28, 4, rate * frame, false);
    ak_bytes_put(header + 32, 2, frame, false);
    ak_bytes_put(header + 34, 2, track->bits, false);
    memcpy(header + 36, "data\xff\xff\xff\xff", 8);
    return ak_scan_spool(w->scan, header, sizeof header, error);
}

static ak_status pcm_end(struct ak_track_writer *w, struct ak_audio_part **part,
                         struct ak_error *error)
{
    AK_TRY(new_part(w, part, error));
    if ((*part)->n - WAV_HEADER_BYTES < UINT32_MAX)
        ak_scan_patch(*part, WAV_HEADER_BYTES - 4, (uint64_t)((*part)->n - WAV_HEADER_BYTES), 4,
                      false);
    return AKUNU_OK;
}

/* ---- All ----------------------------------------------------------------- */
struct ak_track_codec {
    const char *name;
    begin_fn *begin;
    packet_fn *packet;
    end_fn *end;
};

static const struct ak_track_codec codecs[] = {
    { "A_OPUS", opus_begin, opus_packet, opus_end },
    { "A_VORBIS", vorbis_begin, vorbis_packet, vorbis_end },
    { "A_FLAC", flac_begin, copy_packet, flac_end },
    { "A_MPEG/L3", mpeg_begin, copy_packet, mpeg_end },
    { "A_PCM/INT/LIT", pcm_begin, copy_packet, pcm_end },
    { "A_PCM/FLOAT/IEEE", pcm_begin, copy_packet, pcm_end },
};

static const struct ak_track_codec *find_codec(const struct ak_track *track)
{
    for (size_t i = 0; !track->is_encoded && i < sizeof codecs / sizeof *codecs; i++)
        if (strcmp(codecs[i].name, track->codec) == 0)
            return &codecs[i];
    return NULL;
}

bool ak_track_is_known(const struct ak_track *track)
{
    return find_codec(track) != NULL;
}

ak_status ak_track_begin(struct ak_track_writer *w, struct ak_scan *scan,
                         const struct ak_track *track, struct ak_error *error)
{
    w->scan = scan;
    w->track = track;
    w->codec = find_codec(track);
    w->first = scan->parts->spool.n;
    return w->codec->begin(w, error);
}

ak_status ak_track_packet(struct ak_track_writer *w, int64_t at, size_t n, struct ak_error *error)
{
    return n > 0 ? w->codec->packet(w, at, n, error) : AKUNU_OK;
}

ak_status ak_track_end(struct ak_track_writer *w, double seconds, struct ak_error *error)
{
    struct ak_audio_part *part;
    AK_TRY(w->codec->end(w, &part, error));
    if (seconds > w->seconds && w->seconds > 0.0 && part->stated == 0)
        part->cut = seconds / w->seconds;
    return AKUNU_OK;
}
