/* MPEG audio frame by frame. A part ends where the rate, the layer or the number of channels
 * changes, where tags or damage stand between frames, and before a Xing or VBRI frame, which begins
 * a file: mpg123, libsndfile's decoder, stops at all of these. */
#include "speech/audio/scan.h"

#include <string.h>

enum {
    HEADER = 4,
    XING_BYTES = 12, /* name, flags, number of frames */
    XING_COUNT = 1,  /* flags: number of frames, of bytes, table of positions, quality */
    XING_SIZE = 2,
    XING_TABLE = 4,
    XING_QUALITY = 8,
    TABLE_BYTES = 100,
    LAME_BYTES = 24, /* after the Xing header: name, and at LAME_DELAY two delays of 12 bits */
    LAME_DELAY = 21,
    DECODER_DELAY = 529, /* samples */
    DELAY_MAX = 4095,
    ID3V1_BYTES = 128,
    APE_BYTES = 32,
    CHAIN = 3, /* frames in a row that prove that a frame begins here */
    LAYER_1 = 3,
    LAYER_2 = 2,
    LAYER_3 = 1,
    MPEG_1 = 3,
    MPEG_25 = 0,
    MONO = 3
};

struct frame {
    int version, layer, rate, bytes; /* bytes 0: free format, of unknown length */
    bool is_mono;
};

/* In bits a second / 1000: of MPEG 1 by layer 1 to 3, then of the others by layer 1, and 2 and 3.
 */
static const short bit_rates[5][15] = {
    { 0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448 },
    { 0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384 },
    { 0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320 },
    { 0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256 },
    { 0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160 },
};

static int frame_bytes(const struct frame *f, int kbits, bool padded)
{
    if (f->layer == LAYER_1)
        return (12000 * kbits / f->rate + padded) * 4;
    int slots = f->layer == LAYER_3 && f->version != MPEG_1 ? 72000 : 144000;
    return slots * kbits / f->rate + padded;
}

static bool read_frame(struct ak_bytes *in, int64_t at, struct frame *f)
{
    static const int rates[3] = { 44100, 48000, 32000 };
    const unsigned char *h = ak_bytes_at(in, at, HEADER);
    if (!h || h[0] != 0xff || (h[1] & 0xe0) != 0xe0)
        return false;
    int rate = h[2] >> 2 & 3, bits = h[2] >> 4;
    f->version = h[1] >> 3 & 3;
    f->layer = h[1] >> 1 & 3;
    if (f->version == 1 || f->layer == 0 || rate == 3 || bits == 15)
        return false;
    f->rate = rates[rate] >> (f->version == MPEG_1 ? 0 : f->version == MPEG_25 ? 2 : 1);
    f->is_mono = h[3] >> 6 == MONO;
    int row = f->version == MPEG_1 ? 3 - f->layer : f->layer == LAYER_1 ? 3 : 4;
    f->bytes = bits == 0 ? 0 : frame_bytes(f, bit_rates[row][bits], h[2] & 2);
    return true;
}

static bool alike(const struct frame *a, const struct frame *b)
{
    return a->version == b->version && a->layer == b->layer && a->rate == b->rate &&
           a->is_mono == b->is_mono;
}

/* Whether CHAIN alike frames stand at `at`, or fewer and then the end of the file or a tag. */
static bool begins_chain(struct ak_bytes *in, int64_t at, struct frame *first)
{
    struct frame f;
    if (!read_frame(in, at, first))
        return false;
    at += first->bytes;
    for (int i = 1; first->bytes > 0 && i < CHAIN; i++) {
        if (at >= in->size || ak_bytes_are(in, at, "TAG", 3) || ak_bytes_are(in, at, "ID3", 3))
            return at <= in->size;
        if (!read_frame(in, at, &f) || !alike(first, &f) || f.bytes == 0)
            return false;
        at += f.bytes;
    }
    return true;
}

bool ak_scan_mpeg_begins(struct ak_bytes *in, int64_t at)
{
    struct frame f;
    return begins_chain(in, at, &f);
}

/* Bytes of layer 3's side information, after which a Xing header stands. */
static unsigned side_bytes(const struct frame *f)
{
    return f->version == MPEG_1 ? (f->is_mono ? 17 : 32) : f->is_mono ? 9 : 17;
}

/* What a frame says of the file that it begins. */
struct head {
    uint64_t n;     /* frames; 0: it does not count them */
    bool has_delay; /* encoders that give their name say what to drop at both ends */
    unsigned delay; /* samples, beside the decoder's own */
};

/* Whether the frame at `at` holds no sound but a Xing or VBRI header. */
static bool begins_file(struct ak_bytes *in, int64_t at, const struct frame *f, struct head *head)
{
    *head = (struct head){ 0 };
    if (f->layer != LAYER_3)
        return false;
    if (ak_bytes_are(in, at + HEADER + 32, "VBRI", 4))
        return true;
    int64_t xing = at + HEADER + side_bytes(f);
    const unsigned char *h = ak_bytes_at(in, xing, XING_BYTES);
    if (!h || (memcmp(h, "Xing", 4) != 0 && memcmp(h, "Info", 4) != 0))
        return false;
    unsigned flags = h[7];
    head->n = flags & XING_COUNT ? ak_bytes_big(h + 8, 4) : 0;
    xing += 8 + (flags & XING_COUNT ? 4 : 0) + (flags & XING_SIZE ? 4 : 0) +
            (flags & XING_TABLE ? TABLE_BYTES : 0) + (flags & XING_QUALITY ? 4 : 0);
    head->has_delay = ak_bytes_are(in, xing, "LAME", 4) || ak_bytes_are(in, xing, "Lavf", 4) ||
                      ak_bytes_are(in, xing, "Lavc", 4);
    h = ak_bytes_at(in, xing + LAME_DELAY, 3);
    head->delay = h ? (unsigned)ak_bytes_big(h, 3) >> 12 : 0;
    return true;
}

/* Bytes of the tag at `at`. 0: there is none. */
static int64_t tag_bytes(struct ak_bytes *in, int64_t at)
{
    int64_t n = ak_scan_id3_bytes(in, at);
    const unsigned char *h = ak_bytes_at(in, at, APE_BYTES);
    if (n == 0 && ak_bytes_are(in, at, "TAG", 3))
        n = ID3V1_BYTES;
    else if (n == 0 && h && memcmp(h, "APETAGEX", 8) == 0)
        n = APE_BYTES + (int64_t)ak_bytes_little(h + 12, 4);
    return n < in->size - at ? n : in->size - at;
}

/* The next frames after what stands between them, or a file of another family, or the end.
 * *skipped: bytes that are not of tags. */
static int64_t find_frames(struct ak_bytes *in, int64_t at, int64_t *skipped)
{
    *skipped = 0;
    while (at < in->size) {
        int64_t n = tag_bytes(in, at);
        if (n == 0 && ak_scan_begins(in, at))
            return at;
        int64_t from = at;
        at += n > 0 ? n : 1;
        if (n == 0 && (at = ak_bytes_find(in, at, "\xff", 1)) < 0)
            break;
        *skipped += n == 0 ? at - from : 0;
    }
    return in->size;
}

/* Puts two frames before the part, at the lowest bit rate whose frames have room for them: a Xing
 * frame with the number of frames, and a silent one. Without a count, or with one that is too
 * small, libsndfile would stop after the time that the file would take at the bit rate of the first
 * frame. With a count mpg123 drops at least the 529 samples that the decoder is late, which ffmpeg
 * keeps unless the head of the file says otherwise. So the frame says that the encoder was late,
 * too, by as much as is left of the silent frame, or by all of it and what the head says. */
static void add_count(struct ak_audio_part *part, const unsigned char *header,
                      const struct frame *f, const struct head *head, uint64_t n)
{
    if (!header || n > UINT32_MAX - 1)
        return;
    unsigned char *to = part->prefix;
    int row = f->version == MPEG_1 ? 2 : 4, bits = 1;
    unsigned xing = HEADER + side_bytes(f), samples = f->version == MPEG_1 ? 1152 : 576;
    while (frame_bytes(f, bit_rates[row][bits], false) < (int)(xing + XING_BYTES + LAME_BYTES))
        bits++;
    unsigned n_frame = (unsigned)frame_bytes(f, bit_rates[row][bits], false);
    part->n_prefix = 2 * n_frame;
    to[0] = 0xff;
    to[1] = header[1] | 1; /* no checksum */
    to[2] = (unsigned char)(bits << 4 | (header[2] & 0x0c));
    to[3] = header[3];
    memcpy(to + n_frame, to, HEADER);
    memcpy(to + xing, "Xing\0\0\0\1", 8);
    ak_bytes_put(to + xing + 8, 4, n + 1, true);
    memcpy(to + xing + XING_BYTES, "akunu", 5); /* zeros would end the header here */
    unsigned delay = head->has_delay ? samples + head->delay : samples - DECODER_DELAY;
    ak_bytes_put(to + xing + XING_BYTES + LAME_DELAY, 3,
                 (delay < DELAY_MAX ? delay : DELAY_MAX) << 12, true);
}

/* Lets mpg123 see the bytes that there are in the part's Xing frame, if it has a number of them. It
 * prints a line to standard error if they are others, as after a cut. */
static void correct_bytes(struct ak_audio_part *part, struct ak_bytes *in, const struct frame *f)
{
    unsigned at = HEADER + side_bytes(f) + 4; /* of the flags */
    const unsigned char *flags = ak_bytes_at(in, part->first + at, 4);
    if (flags && flags[3] & XING_SIZE)
        ak_scan_patch(part, at + (flags[3] & XING_COUNT ? 8 : 4), (uint64_t)part->n, 4, true);
}

/* Frames that are decoded as one. */
struct run {
    struct head head;
    bool has_head;
    uint64_t n; /* frames, without the head */
};

/* Adds the frames from `at` on; *end: what follows. */
static ak_status add_run(struct ak_scan *s, int64_t at, struct run *run, int64_t *end,
                         struct ak_error *error)
{
    struct frame first, f;
    struct ak_audio_part *part;
    struct head other;
    uint64_t n = 0;
    if (!begins_chain(&s->in, at, &first))
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: no MPEG frame", s->name);
    bool has_head = begins_file(&s->in, at, &first, &run->head);
    const struct head head = run->head;
    int64_t to = at + first.bytes, sound = has_head && first.bytes > 0 ? to : at;
    if (first.bytes == 0)
        to = s->in.size;
    while (read_frame(&s->in, to, &f) && alike(&first, &f) && f.bytes > 0 &&
           !begins_file(&s->in, to, &f, &other)) {
        to += f.bytes;
        n++;
    }
    to = to < s->in.size ? to : s->in.size;
    *end = to;
    run->has_head = has_head;
    run->n = has_head ? n : n + 1;
    if (run->n == 0)
        return AKUNU_OK;
    bool is_counted = has_head && head.has_delay && head.n > 0 && n <= head.n,
         is_countable = first.layer == LAYER_3;
    int64_t from = is_counted || !is_countable ? at : sound;
    AK_TRY(ak_scan_add(s, false, from, to - from, &part, error));
    if (!is_counted && is_countable && first.bytes > 0)
        add_count(part, ak_bytes_at(&s->in, at, HEADER), &first, &head, run->n);
    if (!is_counted && head.n > n)
        part->cut = (double)head.n / (double)n;
    if (is_counted)
        correct_bytes(part, &s->in, &first);
    part->is_unknown = !is_counted && part->n_prefix == 0;
    return AKUNU_OK;
}

/* Frames that the head of an earlier run counts, after damage: they are no longer missing there,
 * but from the last run, if there are fewer. */
static void move_missing(struct ak_parts *parts, const struct run *before, struct run *run)
{
    uint64_t missing = before->head.n > before->n ? before->head.n - before->n : 0;
    if (run->has_head || missing == 0 || before->n == 0 || run->n == 0 || parts->n < 2)
        return;
    struct ak_audio_part *last = &parts->part[parts->n - 1];
    last[-1].cut *= (double)before->n / (double)before->head.n;
    run->head.n = missing;
    if (missing > run->n)
        last->cut = (double)missing / (double)run->n;
}

ak_status ak_scan_mpeg(struct ak_scan *s, int64_t at, int64_t *end, struct ak_error *error)
{
    struct run before = { 0 }, run;
    do {
        int64_t skipped;
        AK_TRY(add_run(s, at, &run, &at, error));
        move_missing(s->parts, &before, &run);
        before = run;
        int64_t stopped = at;
        at = find_frames(&s->in, at, &skipped);
        if (skipped > 0 && run.head.n > run.n && at < s->in.size)
            ak_parts_warn(s->parts, "it is damaged at byte %lld; %lld bytes there are not read",
                          (long long)stopped, (long long)skipped);
    } while (at < s->in.size && ak_scan_mpeg_begins(&s->in, at));
    *end = at;
    return AKUNU_OK;
}
