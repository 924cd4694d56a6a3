/* Sound in containers that libsndfile does not read: streams that it wrote are wrapped by hand as
 * Matroska (RFC 9559) and Ogg (RFC 3533) and must give the same samples. Files that nobody here
 * decodes are named. */
#include "tests/speech/audio/clips.h"

#include "speech/audio/scan.h"

enum { TONE = 440, PACKETS_MAX = 600 };

static const int OPUS = SF_FORMAT_OGG | SF_FORMAT_OPUS, VORBIS = SF_FORMAT_OGG | SF_FORMAT_VORBIS,
                 FLAC = SF_FORMAT_FLAC | SF_FORMAT_PCM_16;

struct packets {
    struct file bytes; /* one after another */
    size_t sizes[PACKETS_MAX], n;
    int64_t granule; /* of the last page */
};

/* The packets of an Ogg file with one stream. */
static struct packets *unwrap(const struct file *ogg)
{
    struct packets *p = calloc(1, sizeof *p);
    for (int64_t at = 0; at < ogg->n;) {
        const unsigned char *page = ogg->bytes + at;
        int n_segments = page[26];
        at += 27 + n_segments;
        for (int i = 0; i < n_segments; i++) {
            file_add(&p->bytes, ogg->bytes + at, page[27 + i]);
            p->sizes[p->n] += page[27 + i];
            at += page[27 + i];
            p->n += page[27 + i] < 255;
            ck_assert_uint_lt(p->n, PACKETS_MAX);
        }
        memcpy(&p->granule, page + 6, 8);
    }
    return p;
}

static void packets_free(struct packets *p)
{
    file_free(&p->bytes);
    free(p);
}

/* ---- Matroska ------------------------------------------------------------ */
enum lacing { NONE, XIPH, FIXED, EBML };

struct layout {
    const char *codec;
    const void *setup;
    size_t n_setup;
    int channels, bits, rate;
    enum lacing lacing;
    unsigned n_open;      /* bytes of the sizes of segment and clusters, which are not known;
                             0: they are known */
    bool is_wide;         /* numbers of eight bytes */
    bool has_groups;      /* blocks in groups, the last with `discard` */
    bool discards_before; /* all groups but the last have it instead */
    uint64_t discard;     /* nanoseconds */
    uint64_t seconds;     /* of the whole, in its header; 0: not there */
    unsigned n_per_block;
};

static void add_id(struct file *f, uint32_t id)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        if (id >> shift)
            file_add(f, &(unsigned char){ (unsigned char)(id >> shift) }, 1);
}

/* An element with a size of four bytes. */
static void add_element(struct file *f, uint32_t id, const void *bytes, size_t n)
{
    add_id(f, id);
    file_add(f, NULL, 4);
    file_put(f, f->n - 4, 4, 0x10000000 | n, true);
    file_add(f, bytes, n);
}

static void add_number(struct file *f, uint32_t id, uint64_t value, size_t n)
{
    unsigned char bytes[8];
    for (size_t i = 0; i < n; i++)
        bytes[n - 1 - i] = (unsigned char)(value >> 8 * i);
    add_element(f, id, bytes, n);
}

/* The unknown size that takes n bytes. */
static uint64_t unknown_size(unsigned n)
{
    return UINT64_MAX >> (63 - 7 * n);
}

static void add_float(struct file *f, uint32_t id, double value, bool is_wide)
{
    float narrow = (float)value;
    uint64_t bits;
    uint32_t narrow_bits;
    memcpy(&bits, &value, 8);
    memcpy(&narrow_bits, &narrow, 4);
    add_number(f, id, is_wide ? bits : narrow_bits, is_wide ? 8 : 4);
}

/* An element that holds others; n_open > 0: of an unknown size that takes so many bytes. Takes over
 * `content`. */
static void add_master(struct file *f, uint32_t id, struct file *content, unsigned n_open)
{
    if (n_open > 0) {
        add_id(f, id);
        file_add(f, NULL, n_open);
        file_put(f, f->n - n_open, n_open, unknown_size(n_open), true);
        file_add(f, content->bytes, (size_t)content->n);
    } else {
        add_element(f, id, content->bytes, (size_t)content->n);
    }
    file_free(content);
}

static void add_tracks(struct file *segment, const struct layout *l)
{
    struct file audio = { 0 }, video = { 0 }, entry = { 0 }, tracks = { 0 };
    add_number(&video, 0xd7, 1, 1);
    add_number(&video, 0x83, 1, 1);
    add_element(&video, 0x86, "V_VP8", 5);
    add_master(&tracks, 0xae, &video, 0);
    add_float(&audio, 0xb5, l->rate, l->is_wide);
    add_number(&audio, 0x9f, (uint64_t)l->channels, 1);
    add_number(&audio, 0x6264, (uint64_t)l->bits, 1);
    add_number(&entry, 0xd7, 2, 1);
    add_number(&entry, 0x83, 2, 1);
    add_element(&entry, 0x86, l->codec, strlen(l->codec));
    if (l->n_setup > 0)
        add_element(&entry, 0x63a2, l->setup, l->n_setup);
    add_master(&entry, 0xe1, &audio, 0);
    add_master(&tracks, 0xae, &entry, 0);
    add_master(segment, 0x1654ae6b, &tracks, 0);
}

/* The number and sizes of laced packets. */
static void add_lacing(struct file *block, enum lacing lacing, const size_t *sizes, unsigned n)
{
    file_add(block, &(unsigned char){ (unsigned char)(n - 1) }, 1);
    for (unsigned i = 0; i + 1 < n; i++) {
        size_t left = sizes[i];
        for (; lacing == XIPH && left >= 255; left -= 255)
            file_add(block, "\xff", 1);
        if (lacing == XIPH)
            file_add(block, &(unsigned char){ (unsigned char)left }, 1);
        if (lacing != EBML)
            continue;
        /* two bytes: the first size, then differences + 8191 */
        size_t value = i == 0 ? sizes[0] : sizes[i] + 8191 - sizes[i - 1];
        file_add(block, NULL, 2);
        file_put(block, block->n - 2, 2, 0x4000 | value, true);
    }
}

static struct file wrap(const struct layout *l, const struct packets *p, size_t first)
{
    struct file f = { 0 }, header = { 0 }, segment = { 0 }, cluster = { 0 };
    unsigned per_block = l->n_per_block ? l->n_per_block : 1;
    size_t at = 0;
    for (size_t i = 0; i < first; i++)
        at += p->sizes[i];
    add_element(&header, 0x4282, "webm", 4);
    add_master(&f, 0x1a45dfa3, &header, 0);
    if (l->seconds > 0) {
        struct file info = { 0 };
        add_float(&info, 0x4489, 1000.0 * (double)l->seconds, l->is_wide);
        add_master(&segment, 0x1549a966, &info, 0);
    }
    add_tracks(&segment, l);
    for (size_t i = first; i < p->n; i += per_block) {
        struct file block = { 0 };
        unsigned n = p->n - i < per_block ? (unsigned)(p->n - i) : per_block;
        enum lacing lacing = n > 1 ? l->lacing : NONE;
        if ((i - first) % 20 == 0 && i > first)
            add_master(&segment, 0x1f43b675, &cluster, l->n_open);
        if (cluster.n == 0)
            add_number(&cluster, 0xe7, 20 * i, l->is_wide ? 8 : 4);
        file_add(&block, "\x82\0\0\0", 4); /* track 2, time 0, flags */
        block.bytes[3] = (unsigned char)(lacing << 1);
        if (lacing != NONE)
            add_lacing(&block, lacing, p->sizes + i, n);
        for (unsigned k = 0; k < n; k++) {
            file_add(&block, p->bytes.bytes + at, p->sizes[i + k]);
            at += p->sizes[i + k];
        }
        add_element(&cluster, 0xa3, "\x81\0\0\x80video", 9);
        if (l->has_groups) {
            struct file group = { 0 };
            add_element(&group, 0xa1, block.bytes, (size_t)block.n);
            if ((i + n >= p->n) != l->discards_before)
                add_number(&group, 0x75a2, l->discard, l->is_wide ? 8 : 4);
            add_master(&cluster, 0xa0, &group, 0);
        } else {
            add_element(&cluster, 0xa3, block.bytes, (size_t)block.n);
        }
        file_free(&block);
    }
    add_master(&segment, 0x1f43b675, &cluster, l->n_open);
    add_master(&f, 0x18538067, &segment, l->n_open);
    return f;
}

/* Whether both give the same samples; of `a` there may be `more` at the end. */
static void check_same(const struct file *a, const struct file *b, size_t more)
{
    struct heard *x = hear(a), *y = hear(b);
    ck_assert_msg(x->status == AKUNU_OK, "%s", x->error.message);
    ck_assert_uint_gt(y->n, 0);
    ck_assert_msg(x->n >= y->n && x->n <= y->n + more, "%zu samples, expected %zu", x->n, y->n);
    for (size_t i = 0; i + 200 < y->n; i++)
        ck_assert_msg(fabsf(x->samples[i] - y->samples[i]) < 1e-6f, "sample %zu", i);
    ck_assert_str_eq(x->warning, "");
    free(x);
    free(y);
}

/* Samples of an Opus packet of libsndfile's encoder: 20 ms. */
static uint64_t opus_excess(const struct packets *p)
{
    return (uint64_t)(((int64_t)(p->n - 2) * 960 - p->granule) * 1000000000 / 48000);
}

START_TEST(opus_in_webm)
{
    static const enum lacing lacings[] = { NONE, XIPH, EBML };
    for (int channels = 1; channels <= 2; channels++)
        for (unsigned k = 0; k < 6; k++) {
            static const unsigned n_open[] = { 0, 0, 0, 1, 4, 8 };
            struct file ogg = make_tone(OPUS, 16000, channels, TONE, 0.51);
            struct packets *p = unwrap(&ogg);
            struct layout l = { .codec = "A_OPUS",
                                .setup = p->bytes.bytes,
                                .n_setup = p->sizes[0],
                                .channels = channels,
                                .rate = 48000,
                                .lacing = lacings[k % 3],
                                .n_per_block = k % 3 ? 3 : 1,
                                .n_open = n_open[k],
                                .seconds = n_open[k] > 0 ? 9 : 0,
                                .is_wide = k >= 3,
                                .has_groups = k % 2,
                                .discard = opus_excess(p) };
            struct file webm = wrap(&l, p, 2);
            check_same(&webm, &ogg, l.has_groups ? 0 : 320);

            /* two recordings in one */
            struct file both = { 0 };
            file_add(&both, webm.bytes, (size_t)webm.n);
            file_add(&both, webm.bytes, (size_t)webm.n);
            struct heard *one = hear(&webm), *two = hear(&both);
            ck_assert_uint_eq(two->n, 2 * one->n);
            /* what a recorder writes ahead counts only for a file of known size that is cut off */
            ck_assert_msg(fabs(one->stated - one->seconds) < 0.01, "%.3f s", one->stated);
            free(one);
            free(two);
            file_free(&both);
            file_free(&webm);
            file_free(&ogg);
            packets_free(p);
        }
}
END_TEST

/* A file of another kind begins where the segment ends. */
START_TEST(webm_before_wav)
{
    struct file ogg = make_tone(OPUS, 16000, 1, TONE, 0.5);
    struct file wav = make_tone(SF_FORMAT_WAV | SF_FORMAT_PCM_16, 16000, 1, 3 * TONE, 0.5);
    struct packets *p = unwrap(&ogg);
    struct layout l = { .codec = "A_OPUS", .setup = p->bytes.bytes, .n_setup = p->sizes[0] };
    struct file both = wrap(&l, p, 2);
    struct heard *one = hear(&both);
    file_add(&both, wav.bytes, (size_t)wav.n);
    struct heard *h = hear(&both);
    ck_assert_uint_eq(h->n, one->n + 8000);
    ck_assert(tone_share(h, h->seconds - 0.45, h->seconds - 0.05, 3 * TONE) > 0.95);
    ck_assert_str_eq(h->warning, "");
    free(one);
    free(h);
    file_free(&both);
    file_free(&wav);
    file_free(&ogg);
    packets_free(p);
}
END_TEST

/* Only what the last block says to discard is at the end. */
START_TEST(discarded_before_the_end)
{
    struct file ogg = make_tone(OPUS, 16000, 1, TONE, 0.5);
    struct packets *p = unwrap(&ogg);
    struct layout l = { .codec = "A_OPUS",
                        .setup = p->bytes.bytes,
                        .n_setup = p->sizes[0],
                        .channels = 1,
                        .rate = 48000,
                        .has_groups = true,
                        .discards_before = true,
                        .discard = 10000000 };
    struct file webm = wrap(&l, p, 2);
    l.has_groups = false;
    struct file whole = wrap(&l, p, 2);
    check_same(&webm, &whole, 0);
    file_free(&webm);
    file_free(&whole);
    file_free(&ogg);
    packets_free(p);
}
END_TEST

/* What is read of Opus packets with these first bytes, without the last 5 ms of the last one, which
 * `discard` says and only the sum of the lengths finds. */
static void check_opus_length(unsigned char config, unsigned char count, double seconds)
{
    enum { BYTES = 42 };
    unsigned char packet[BYTES] = { config, count };
    struct packets p = { .n = 5 };
    struct layout l = {
        .codec = "A_OPUS", .channels = 1, .rate = 48000, .has_groups = true, .discard = 5000000
    };
    for (unsigned i = 2; i < BYTES; i++)
        packet[i] = (unsigned char)(37 * i);
    for (unsigned i = 0; i < p.n; i++) {
        p.sizes[i] = (config & 3) == 1 ? BYTES - 1 : BYTES; /* two halves behind one byte */
        file_add(&p.bytes, packet, p.sizes[i]);
    }
    struct file webm = wrap(&l, &p, 0);
    struct heard *h = hear(&webm);
    ck_assert_msg(h->status == AKUNU_OK, "%s", h->error.message);
    ck_assert_msg(fabs(h->seconds - ((double)p.n * seconds - 0.005)) < 0.001, "%u: %.4f s", config,
                  h->seconds);
    free(h);
    file_free(&webm);
    file_free(&p.bytes);
}

/* Every mode of Opus (RFC 6716, table 2) in packets of one frame, of two, and of two by a count. */
START_TEST(lengths_of_opus_packets)
{
    static const double silk[] = { 0.01, 0.02, 0.04, 0.06 }, hybrid[] = { 0.01, 0.02 },
                        celt[] = { 0.0025, 0.005, 0.01, 0.02 };
    for (unsigned char mode = 0; mode < 32; mode++) {
        double frame = mode < 12 ? silk[mode % 4] : mode < 16 ? hybrid[mode % 2] : celt[mode % 4];
        unsigned char config = (unsigned char)(mode << 3);
        check_opus_length(config, 7, frame);
        check_opus_length(config | 1, 7, 2 * frame);
        check_opus_length(config | 3, 2, 2 * frame);
    }
}
END_TEST

/* Packets that are cut at fixed sizes, as codecs without packets of their own may be. */
static struct packets *cut(const unsigned char *bytes, size_t n, size_t size)
{
    struct packets *p = calloc(1, sizeof *p);
    file_add(&p->bytes, bytes, n);
    for (; n > 0; n -= p->sizes[p->n - 1])
        p->sizes[p->n++] = n < size ? n : size;
    return p;
}

START_TEST(other_codecs_in_matroska)
{
    struct file flac = make_tone(FLAC, 22050, 2, TONE, 0.5);
    int64_t sound = 4;
    while (!(flac.bytes[sound] & 0x80))
        sound +=
            4 + (flac.bytes[sound + 1] << 16 | flac.bytes[sound + 2] << 8 | flac.bytes[sound + 3]);
    sound += 4 + (flac.bytes[sound + 1] << 16 | flac.bytes[sound + 2] << 8 | flac.bytes[sound + 3]);
    struct layout l = { .codec = "A_FLAC", .setup = flac.bytes, .n_setup = (size_t)sound };
    struct packets *p = cut(flac.bytes + sound, (size_t)(flac.n - sound), 1000);
    struct file mka = wrap(&l, p, 0);
    check_same(&mka, &flac, 0);
    packets_free(p);
    file_free(&mka);
    file_free(&flac);

    static const struct {
        int format, bits;
        const char *codec;
    } pcm[] = { { SF_FORMAT_PCM_16, 16, "A_PCM/INT/LIT" },
                { SF_FORMAT_PCM_24, 24, "A_PCM/INT/LIT" },
                { SF_FORMAT_PCM_U8, 8, "A_PCM/INT/LIT" },
                { SF_FORMAT_FLOAT, 32, "A_PCM/FLOAT/IEEE" } };
    for (int i = 0; i < 4; i++) {
        struct file wav = make_tone(SF_FORMAT_WAV | pcm[i].format, 11025, 2, TONE, 0.5);
        int64_t data = file_find(&wav, 0, "data", 4) + 8;
        size_t n = (size_t)(11025 / 2 + 1) * 2 * (size_t)pcm[i].bits / 8;
        l = (struct layout){ .codec = pcm[i].codec,
                             .channels = 2,
                             .bits = pcm[i].bits,
                             .rate = 11025,
                             .is_wide = i % 2,
                             .lacing = FIXED,
                             .n_per_block = 4 };
        p = cut(wav.bytes + data, n, 400);
        mka = wrap(&l, p, 0);
        check_same(&mka, &wav, 0);
        packets_free(p);
        file_free(&mka);
        file_free(&wav);
    }

    struct file ogg = make_tone(VORBIS, 44100, 1, TONE, 0.5);
    p = unwrap(&ogg);
    unsigned char setup[1 << 14] = { 2 };
    size_t n_setup = 1, n_headers = p->sizes[0] + p->sizes[1] + p->sizes[2];
    for (int i = 0; i < 2; i++) {
        size_t left = p->sizes[i];
        for (; left >= 255; left -= 255)
            setup[n_setup++] = 255;
        setup[n_setup++] = (unsigned char)left;
    }
    ck_assert_uint_lt(n_setup + n_headers, sizeof setup);
    memcpy(setup + n_setup, p->bytes.bytes, n_headers);
    l = (struct layout){ .codec = "A_VORBIS",
                         .setup = setup,
                         .n_setup = n_setup + n_headers,
                         .channels = 1,
                         .rate = 44100 };
    mka = wrap(&l, p, 3);
    check_same(&mka, &ogg, 800); /* the end of the last packet is not cut off */
    packets_free(p);
    file_free(&mka);
    file_free(&ogg);
}
END_TEST

/* PCM gets a header of WAV (RFC 2361): format, channels, rate, bytes of a second and of a frame,
 * bits. */
START_TEST(pcm_header)
{
    static const struct {
        const char *codec;
        int bits, format;
    } cases[] = { { "A_PCM/INT/LIT", 16, 1 }, { "A_PCM/FLOAT/IEEE", 32, 3 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct layout l = {
            .codec = cases[i].codec, .channels = 2, .bits = cases[i].bits, .rate = 11025
        };
        unsigned char header[44], expected[44] = "RIFF....WAVEfmt \x10";
        struct packets *p = cut((const unsigned char *)"12345678", 8, 8);
        struct file mka = wrap(&l, p, 0);
        struct ak_parts parts;
        struct ak_error error;
        int frame = 2 * cases[i].bits / 8;
        FILE *file = tmpfile();
        ck_assert(file && fwrite(mka.bytes, 1, (size_t)mka.n, file) == (size_t)mka.n &&
                  fflush(file) == 0);
        ck_assert_int_eq(ak_parts_find(&parts, fileno(file), mka.n, "clip", &error), AKUNU_OK);
        ck_assert(parts.n == 1 && parts.part[0].spooled);
        ck_assert(ak_spool_read(&parts.spool, parts.part[0].first, header, sizeof header));
        ak_bytes_put(expected + 20, 2, (uint64_t)cases[i].format, false);
        ak_bytes_put(expected + 22, 2, 2, false);
        ak_bytes_put(expected + 24, 4, 11025, false);
        ak_bytes_put(expected + 28, 4, (uint64_t)(11025 * frame), false);
        ak_bytes_put(expected + 32, 2, (uint64_t)frame, false);
        ak_bytes_put(expected + 34, 2, (uint64_t)cases[i].bits, false);
        memcpy(expected + 36, "data", 4);
        memcpy(expected + 4, header + 4, 4); /* sizes */
        memcpy(expected + 40, header + 40, 4);
        ck_assert_mem_eq(header, expected, sizeof header);
        ak_parts_free(&parts);
        fclose(file);
        packets_free(p);
        file_free(&mka);
    }
}
END_TEST

/* The length of FLAC that was cut off stands in its own header: the cut does not lengthen it. */
START_TEST(cut_flac_in_matroska)
{
    struct file flac = make_tone(FLAC, 16000, 1, TONE, 2.0);
    int64_t sound = 4;
    while (!(flac.bytes[sound] & 0x80))
        sound += 4 + (int64_t)ak_bytes_big(flac.bytes + sound + 1, 3);
    sound += 4 + (int64_t)ak_bytes_big(flac.bytes + sound + 1, 3);
    struct layout l = {
        .codec = "A_FLAC", .setup = flac.bytes, .n_setup = (size_t)sound, .seconds = 2
    };
    struct packets *p = cut(flac.bytes + sound, (size_t)(flac.n - sound), 400);
    struct file mka = wrap(&l, p, 0);
    mka.n = mka.n * 6 / 10;
    struct heard *h = hear(&mka);
    ck_assert_msg(h->status == AKUNU_OK, "%s", h->error.message);
    ck_assert_msg(fabs(h->stated - 2.0) < 0.001 && h->seconds < 1.5, "%.3f s of %.3f s", h->seconds,
                  h->stated);
    free(h);
    packets_free(p);
    file_free(&mka);
    file_free(&flac);
}
END_TEST

/* A damaged element, or a cut: the clusters before and after it are read. */
START_TEST(damaged_webm)
{
    struct file ogg = make_tone(OPUS, 16000, 1, TONE, 1.2);
    struct packets *p = unwrap(&ogg);
    struct layout l = { .codec = "A_OPUS", .setup = p->bytes.bytes, .n_setup = p->sizes[0] };
    struct file webm = wrap(&l, p, 2);
    struct heard *whole = hear(&webm);
    int64_t second = file_find(&webm, 0, "\x1f\x43\xb6\x75", 4) + 4;
    second = file_find(&webm, second, "\x1f\x43\xb6\x75", 4);
    for (unsigned n_open = 0; n_open <= 8; n_open++) {
        memset(webm.bytes + second - 300, 0, 300);
        if (n_open > 0) { /* only segments and clusters may be of unknown size */
            webm.bytes[second - 300] = 0xec;
            file_put(&webm, second - 299, n_open, unknown_size(n_open), true);
        }
        struct heard *h = hear(&webm);
        ck_assert_int_eq(h->status, AKUNU_OK);
        ck_assert(h->n < whole->n && h->n > whole->n * 3 / 4);
        free(h);
    }
    webm.n = webm.n * 2 / 3;
    struct heard *h = hear(&webm);
    ck_assert_int_eq(h->status, AKUNU_OK);
    ck_assert(h->n < whole->n * 3 / 4 && h->n > whole->n / 2);
    free(h);
    for (int64_t n = 0; n < second && n < webm.n; n += 101) { /* never worse than an error */
        struct file cut_file = webm;
        cut_file.n = n + 1;
        free(hear(&cut_file));
    }
    free(whole);
    file_free(&webm);
    file_free(&ogg);
    packets_free(p);
}
END_TEST

/* ---- Ogg ----------------------------------------------------------------- */
static void add_page(struct file *f, int flags, uint32_t serial, const void *bytes, size_t n)
{
    unsigned char header[27] = "OggS";
    header[5] = (unsigned char)flags;
    memcpy(header + 14, &serial, 4);
    header[26] = (unsigned char)((n + 254) / 255);
    file_add(f, header, sizeof header);
    for (size_t left = n; left > 0; left -= left < 255 ? left : 255)
        file_add(f, &(unsigned char){ (unsigned char)(left < 255 ? left : 255) }, 1);
    file_add(f, bytes, n);
}

START_TEST(flac_in_ogg)
{
    struct file flac = make_tone(FLAC, 16000, 1, TONE, 0.5), f = { 0 }, first = { 0 };
    file_add(&first,
             "\x7f"
             "FLAC\1\0\0\1",
             9);
    file_add(&first, flac.bytes, 42);
    add_page(&f, 2, 7, first.bytes, (size_t)first.n);
    for (int64_t at = 42; at < flac.n; at += 3000)
        add_page(&f, at + 3000 < flac.n ? 0 : 4, 7, flac.bytes + at,
                 (size_t)(flac.n - at < 3000 ? flac.n - at : 3000));
    check_same(&f, &flac, 0);
    f.n = 60; /* cut in the first block */
    struct heard *h = hear(&f);
    ck_assert_int_eq(h->status, AKUNU_ERROR_FORMAT);
    free(h);
    file_free(&f);
    file_free(&first);
    file_free(&flac);
}
END_TEST

/* Bytes of the page at `at`. */
static int64_t page_bytes(const struct file *ogg, int64_t at)
{
    int64_t n = 27 + ogg->bytes[at + 26];
    for (int i = 0; i < ogg->bytes[at + 26]; i++)
        n += ogg->bytes[at + 27 + i];
    return n;
}

/* Vorbis beside a stream of another codec, page by page, as in a video. */
START_TEST(streams_side_by_side)
{
    struct file ogg = make_tone(VORBIS, 44100, 1, TONE, 0.5), f = { 0 };
    add_page(&f, 2, 99, "\x80theora video", 13);
    for (int64_t at = 0; at < ogg.n;) {
        int64_t n = page_bytes(&ogg, at);
        file_add(&f, ogg.bytes + at, (size_t)n);
        at += n;
        add_page(&f, 0, 99, "a picture", 9);
    }
    check_same(&f, &ogg, 0);
    file_free(&f);
    file_free(&ogg);
}
END_TEST

/* Two streams of sound, as in a video with two languages: the first one is heard. Their first pages
 * come before all others (RFC 3533, section 4). */
START_TEST(two_streams_of_sound)
{
    const int formats[] = { VORBIS, OPUS };
    for (int i = 0; i < 2; i++) {
        struct file one = make_tone(formats[i], 48000, 1, TONE, 0.5),
                    two = make_tone(formats[1 - i], 48000, 1, 3 * TONE, 0.5), f = { 0 };
        int64_t n_one = page_bytes(&one, 0), n_two = page_bytes(&two, 0);
        file_add(&f, one.bytes, (size_t)n_one);
        file_add(&f, two.bytes, (size_t)n_two);
        file_add(&f, one.bytes + n_one, (size_t)(one.n - n_one));
        file_add(&f, two.bytes + n_two, (size_t)(two.n - n_two));
        struct heard *h = hear(&f);
        ck_assert_msg(h->status == AKUNU_OK, "%s", h->error.message);
        ck_assert_msg(fabs(h->seconds - 0.5) < 0.01, "%.3f s", h->seconds);
        ck_assert(tone_share(h, 0.1, 0.4, TONE) > 0.95);
        ck_assert_str_eq(h->warning, "of 2 sound streams only the first is read");
        free(h);
        file_free(&f);
        file_free(&one);
        file_free(&two);
    }
}
END_TEST

/* Whether a file of a family that is read begins with these bytes. */
static bool begins(const unsigned char *bytes, size_t n)
{
    static struct ak_bytes in;
    FILE *file = tmpfile();
    ck_assert(file && fwrite(bytes, 1, n, file) == n && fflush(file) == 0);
    ak_bytes_open(&in, fileno(file), (int64_t)n);
    bool found = ak_scan_begins(&in, 0);
    fclose(file);
    return found;
}

/* ---- MP3 ----------------------------------------------------------------- */
/* Frames whose first one, of facts, counts fewer; after a cut; with tags between and after. */
START_TEST(mp3)
{
    struct file a = make_tone(SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III, 16000, 1, TONE, 0.5),
                f = { 0 };
    if (a.n == 0)
        return;
    int64_t xing = -1;
    for (int64_t at = 0; xing < 0 && at < 200; at++)
        if (memcmp(a.bytes + at, "Xing", 4) == 0 || memcmp(a.bytes + at, "Info", 4) == 0)
            xing = at;
    if (xing >= 0) {
        file_add(&f, a.bytes, (size_t)a.n);
        file_put(&f, xing + 8, 4, 3, true);
        struct heard *h = hear(&f);
        ck_assert_msg(h->status == AKUNU_OK && h->seconds >= 0.5 && h->seconds < 0.65, "%.3f s",
                      h->seconds);
        ck_assert(fabs(h->stated - h->seconds) < 0.001);
        free(h);
        file_free(&f);
    }
    /* without that frame, and its length: not what the first bit rate would make of it */
    file_add(&f, a.bytes + 300, (size_t)(a.n - 300));
    struct heard *h = hear(&f);
    ck_assert_msg(h->status == AKUNU_OK, "%s", h->error.message);
    ck_assert(h->seconds > 0.35 && h->seconds < 0.62);
    free(h);
    file_free(&f);

    file_add(&f, a.bytes, (size_t)a.n);
    file_add(&f, "TAG", 3);
    file_add(&f, NULL, 125);
    file_add(&f, "ID3\x04\0\0\0\0\x1f\x10", 10); /* 31 * 128 + 16 bytes */
    file_add(&f, NULL, 31 * 128 + 16);
    memset(f.bytes + f.n - 3900, 0xff, 3800); /* no frames */
    file_add(&f, a.bytes, (size_t)a.n);
    h = hear(&f);
    ck_assert_msg(h->status == AKUNU_OK && fabs(h->seconds - 1.0) < 0.22, "%.3f s", h->seconds);
    ck_assert(tone_share(h, h->seconds - 0.35, h->seconds - 0.15, TONE) > 0.95);
    ck_assert_str_eq(h->warning, "");
    free(h);
    file_free(&f);
    file_free(&a);
}
END_TEST

/* Frames without a count before them are all read: silence of MPEG 2, layer 3, at 16,000 Hz and
 * 8,000 bits a second, which is 72 * 8000 / 16000 bytes and 576 samples a frame. */
START_TEST(mp3_without_a_count)
{
    enum { FRAMES = 20, BYTES = 36, SAMPLES = 576 };
    struct file f = { 0 };
    SF_INFO info = { 0, 16000, 1, SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III, 0, 0 };
    if (!sf_format_check(&info))
        return;
    for (int i = 0; i < FRAMES; i++) {
        file_add(&f, "\xff\xf3\x18\xc0", 4);
        file_add(&f, NULL, BYTES - 4);
    }
    struct heard *h = hear(&f);
    ck_assert_msg(h->status == AKUNU_OK, "%s", h->error.message);
    ck_assert_msg(h->n == FRAMES * SAMPLES, "%zu samples", h->n); /* as ffmpeg 5.1 */
    free(h);
    file_free(&f);
}
END_TEST

static struct file tone_in_mp3(double seconds, int64_t *xing)
{
    struct file f = make_tone(SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III, 16000, 1, TONE, seconds);
    *xing = -1;
    for (int64_t at = 0; *xing < 0 && at < 200 && at < f.n; at++)
        if (memcmp(f.bytes + at, "Xing", 4) == 0 || memcmp(f.bytes + at, "Info", 4) == 0)
            *xing = at;
    return f;
}

enum { MP3_DELAY = 576 + 529 /* samples of LAME and of the decoder */ };

/* Encoders whose name makes ffmpeg drop the delay that they state. */
START_TEST(encoders_of_mp3)
{
    static const struct {
        const char *name;
        bool counts;
    } cases[] = {
        { "LAME", true }, { "Lavf", true }, { "Lavc", true }, { "GOGO", false }, { "L3.9", false }
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t xing;
        struct file a = tone_in_mp3(1.0, &xing);
        if (xing >= 0) {
            memcpy(a.bytes + file_find(&a, xing, "LAME", 4), cases[i].name, 4);
            struct heard *h = hear(&a);
            ck_assert_msg(cases[i].counts ? h->n == 16000 : h->n >= 16000 + MP3_DELAY,
                          "%s: %zu samples", cases[i].name, h->n);
            free(h);
        }
        file_free(&a);
    }
}
END_TEST

/* Only a head of an encoder that gives its name says what to drop: without it, and without a head,
 * ffmpeg keeps both delays. */
START_TEST(delays_of_mp3)
{
    enum { HEADER = 13 /* before "Xing" of MPEG 2, mono */ };
    int64_t xing;
    struct file a = tone_in_mp3(1.0, &xing), headless = { 0 };
    if (xing < HEADER) {
        file_free(&a);
        return;
    }
    struct heard *whole = hear(&a);
    ck_assert_uint_eq(whole->n, 16000);
    file_put(&a, xing + 8, 4, 3, true); /* a count that is too small does not change the delay */
    struct heard *more = hear(&a);
    ck_assert_uint_ge(more->n, whole->n);
    for (size_t k = 0; k < whole->n; k++)
        ck_assert_msg(fabsf(more->samples[k] - whole->samples[k]) < 1e-4f, "sample %zu", k);
    free(more);
    file_free(&a);
    a = tone_in_mp3(1.0, &xing);
    int64_t name = file_find(&a, xing, "LAME", 4), sound = xing;
    do
        sound = file_find(&a, sound + 1, (char *)a.bytes + xing - HEADER, 2);
    while (begins(a.bytes + sound, (size_t)(a.n - sound)) == false);
    memset(a.bytes + name, 0, 4);
    file_add(&headless, a.bytes + sound, (size_t)(a.n - sound));
    const struct file *files[] = { &a, &headless };
    for (int i = 0; i < 2; i++) {
        struct heard *h = hear(files[i]);
        ck_assert_msg(h->n % 576 == 0 && h->n >= 16000 + MP3_DELAY, "%d: %zu samples", i, h->n);
        for (size_t k = 0; k < whole->n; k++)
            ck_assert_msg(fabsf(h->samples[k + MP3_DELAY] - whole->samples[k]) < 1e-4f,
                          "%d: sample %zu", i, k);
        ck_assert_str_eq(h->warning, "");
        ck_assert(fabs(h->stated - h->seconds) < 0.001);
        free(h);
    }
    a.n = a.n * 6 / 10; /* what is missing is still known */
    struct heard *h = hear(&a);
    ck_assert_msg(fabs(h->stated - whole->seconds) < 0.12 && h->seconds < 0.7, "%.3f s of %.3f s",
                  h->seconds, h->stated);
    free(h);
    free(whole);
    file_free(&a);
    file_free(&headless);
}
END_TEST

/* Damage in the middle is named, and the frames after it are not counted twice. */
START_TEST(damaged_mp3)
{
    int64_t xing;
    struct file a = tone_in_mp3(1.0, &xing);
    if (xing < 0) {
        file_free(&a);
        return;
    }
    memset(a.bytes + a.n / 2, 0, 300);
    struct heard *h = hear(&a);
    ck_assert_msg(h->status == AKUNU_OK && h->seconds > 0.6 && h->seconds < 0.95, "%.3f s",
                  h->seconds);
    ck_assert_msg(fabs(h->stated - 1.0) < 0.12, "%.3f s", h->stated);
    ck_assert_msg(strstr(h->warning, "it is damaged at byte ") != NULL, "%s", h->warning);
    free(h);
    file_free(&a);
}
END_TEST

/* mpg123 is not asked to find frames in what begins with a tag or with two bytes of one. */
START_TEST(no_mp3)
{
    static const struct {
        const char *bytes;
        size_t n;
    } files[] = { { "ID3\x04\0\0\0\0\0\x0a", 10 }, { "\xff\xe4\x22\x79", 4 } };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct file f = { 0 };
        file_add(&f, files[i].bytes, files[i].n);
        file_add(&f, NULL, 500);
        struct heard *h = hear(&f);
        ck_assert_int_eq(h->status, AKUNU_ERROR_FORMAT);
        ck_assert_msg(strstr(h->error.message, "begins as an MP3 file does") != NULL, "%s",
                      h->error.message);
        free(h);
        file_free(&f);
    }
    struct file text = { 0 };
    for (int i = 0; i < 100; i++)
        file_add(&text, "This is no audio.\n", 18);
    struct heard *h = hear(&text);
    ck_assert_msg(strstr(h->error.message, "not audio that can be decoded") != NULL, "%s",
                  h->error.message);
    free(h);
    file_free(&text);
}
END_TEST

/* FLAC by its marker and a first block that may be one (RFC 9639, section 8.2: blocks of at least
 * 16 samples, a rate that is not 0), MPEG by its frames. */
START_TEST(beginnings)
{
    static const struct {
        unsigned least, most, rate;
        bool begins;
    } blocks[] = { { 16, 16, 1, true },          { 4096, 4608, 44100, true },
                   { 4096, 4096, 655350, true }, { 15, 4096, 44100, false },
                   { 4096, 4095, 44100, false }, { 4096, 4096, 0, false } };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        unsigned char flac[AK_FLAC_START_BYTES] = "fLaC\x80\0\0\x22";
        ak_bytes_put(flac + 8, 2, blocks[i].least, true);
        ak_bytes_put(flac + 10, 2, blocks[i].most, true);
        ak_bytes_put(flac + 18, 3, blocks[i].rate << 4, true);
        ck_assert_msg(begins(flac, sizeof flac) == blocks[i].begins, "%u to %u, %u",
                      blocks[i].least, blocks[i].most, blocks[i].rate);
    }
    /* of free format, whose frames do not tell their length; reserved version, layer, rates */
    static const unsigned char free_format[200] = { 0xff, 0xfb, 0x04, 0xc0 },
                               reserved[][4] = { { 0xff, 0xeb, 0x14, 0xc0 },
                                                 { 0xff, 0xf9, 0x14, 0xc0 },
                                                 { 0xff, 0xfb, 0x1c, 0xc0 },
                                                 { 0xff, 0xfb, 0xf4, 0xc0 } };
    ck_assert(begins(free_format, sizeof free_format));
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        ck_assert(!begins(reserved[i], 4));
}
END_TEST

/* Bytes of frames (ISO/IEC 11172-3 and 13818-3): 384 samples in layer 1, whose slots are of four
 * bytes, 1152 in layers 2 and 3, but 576 in layer 3 of MPEG 2 and 2.5. The second of two frames
 * stands where the first one ends. */
START_TEST(lengths_of_mpeg_frames)
{
    static const struct {
        int version, layer, samples, slot;
        int kbits[14];
    } kinds[] = {
        { 3, 3, 384, 4, { 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448 } },
        { 3, 2, 1152, 1, { 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384 } },
        { 3, 1, 1152, 1, { 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320 } },
        { 2, 3, 384, 4, { 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256 } },
        { 2, 2, 1152, 1, { 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160 } },
        { 2, 1, 576, 1, { 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160 } },
        { 0, 1, 576, 1, { 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160 } },
    };
    static const int rates[] = { 44100, 48000, 32000 };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (int k = 0; k < 14; k++) {
            unsigned char frames[2 * 4096] = { 0 };
            int rate = rates[k % 3] >> (kinds[i].version == 3 ? 0 : kinds[i].version == 2 ? 1 : 2);
            int slots = kinds[i].samples / 8 * 1000 * kinds[i].kbits[k] / rate / kinds[i].slot,
                padded = k % 2, n = (slots + padded) * kinds[i].slot;
            ck_assert_int_lt(n, 4096);
            const unsigned char header[4] = {
                0xff, (unsigned char)(0xe1 | kinds[i].version << 3 | kinds[i].layer << 1),
                (unsigned char)((k + 1) << 4 | k % 3 << 2 | padded << 1), 0xc0
            };
            memcpy(frames, header, 4);
            memcpy(frames + n, header, 4);
            ck_assert_msg(begins(frames, 2 * (size_t)n), "kind %zu, %d kbit/s", i,
                          kinds[i].kbits[k]);
        }
}
END_TEST

/* ---- Foreign ------------------------------------------------------------- */
static void check_foreign(const struct file *f, const char *what)
{
    struct heard *h = hear(f);
    ck_assert_int_eq(h->status, AKUNU_ERROR_FORMAT);
    ck_assert_msg(strstr(h->error.message, what) != NULL, "%s", h->error.message);
    ck_assert(strstr(h->error.message, "clip: ") && strstr(h->error.message, "ffmpeg -i"));
    free(h);
}

START_TEST(foreign_files)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *what;
    } files[] = { { "\0\0\0\x20"
                    "ftypM4A \0\0\0\0",
                    16, "an M4A file" },
                  { "\0\0\0\x20"
                    "ftypisom\0\0\0\0",
                    16, "an MP4 file" },
                  { "\0\0\0\x20"
                    "ftyp3gp4\0\0\0\0",
                    16, "a 3GP file" },
                  { "#!AMR-WB\n", 9, "an AMR file" },
                  { "\x30\x26\xb2\x75\x8e\x66\xcf\x11", 8, "a Windows Media file" },
                  { "\xff\xf1\x50\x80", 4, "an AAC file" },
                  { "ID3\x04\0\0\0\0\0\0\xff\xf9\x50\x80", 14, "an AAC file" },
                  { "RIFF\0\0\0\0AVI LIST", 16, "an AVI file" },
                  { "wvpk\0\0\0\0", 8, "a WavPack file" } };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct file f = { 0 };
        file_add(&f, files[i].bytes, files[i].n);
        file_add(&f, NULL, 500);
        check_foreign(&f, files[i].what);
        file_free(&f);
    }
    for (size_t size = 188; size <= 192; size += 4) { /* packets of a transport stream */
        struct file f = { 0 };
        file_add(&f, NULL, 5 * size);
        for (size_t i = 0; i < 5; i++)
            f.bytes[i * size + size - 188] = 'G';
        check_foreign(&f, "an MPEG transport stream");
        for (size_t i = 0; i < 4; i++) { /* the first four packets have to begin so */
            f.bytes[i * size + size - 188] = 'g';
            struct heard *h = hear(&f);
            ck_assert_int_eq(h->status, AKUNU_ERROR_FORMAT);
            ck_assert_msg(strstr(h->error.message, "not audio that can be decoded") != NULL,
                          "packet %zu: %s", i, h->error.message);
            free(h);
            f.bytes[i * size + size - 188] = 'G';
        }
        file_free(&f);
    }
    struct packets p = { .n = 0 };
    struct layout l = { .codec = "A_AAC", .channels = 1, .rate = 44100 };
    struct file f = wrap(&l, &p, 0);
    struct heard *h = hear(&f);
    ck_assert_msg(strstr(h->error.message, "WebM file with A_AAC") != NULL, "%s", h->error.message);
    free(h);
    file_free(&f);
}
END_TEST

/* Ogg with streams that are not decoded is named by the first of them. */
START_TEST(foreign_ogg)
{
    static const struct {
        const char *streams[2];
        const char *what;
    } files[] = { { { "Speex   1.2", NULL }, "an Ogg file with Speex" },
                  { { "\x80theora", NULL }, "an Ogg file with video alone" },
                  { { "\x80theora", "Speex   1.2" }, "an Ogg file with video alone" },
                  { { "Speex   1.2", "\x80theora" }, "an Ogg file with Speex" },
                  { { "fishead", "Speex   1.2" }, "an Ogg file without Vorbis, Opus or FLAC" } };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct file f = { 0 };
        for (uint32_t k = 0; k < 2 && files[i].streams[k]; k++)
            add_page(&f, 2, k, files[i].streams[k], strlen(files[i].streams[k]));
        add_page(&f, 0, 0, "more", 4);
        check_foreign(&f, files[i].what);
        file_free(&f);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("containers");
    TCase *any = tcase_create("any");
    tcase_add_test(any, opus_in_webm);
    tcase_add_test(any, discarded_before_the_end);
    tcase_add_test(any, webm_before_wav);
    tcase_add_test(any, lengths_of_opus_packets);
    tcase_add_test(any, other_codecs_in_matroska);
    tcase_add_test(any, pcm_header);
    tcase_add_test(any, damaged_webm);
    tcase_add_test(any, flac_in_ogg);
    tcase_add_test(any, streams_side_by_side);
    tcase_add_test(any, two_streams_of_sound);
    tcase_add_test(any, mp3);
    tcase_add_test(any, mp3_without_a_count);
    tcase_add_test(any, delays_of_mp3);
    tcase_add_test(any, encoders_of_mp3);
    tcase_add_test(any, damaged_mp3);
    tcase_add_test(any, no_mp3);
    tcase_add_test(any, cut_flac_in_matroska);
    tcase_add_test(any, beginnings);
    tcase_add_test(any, lengths_of_mpeg_frames);
    tcase_add_test(any, foreign_files);
    tcase_add_test(any, foreign_ogg);
    suite_add_tcase(suite, any);
    return test_run(suite);
}
