/* A file is a sequence of parts of any families. After a part, bytes that no family knows end the
 * file, with a warning unless they are few: padding and tags. */
#include "speech/audio/parts.h"

#include <stdio.h>
#include <string.h>

#include "speech/audio/foreign.h"
#include "speech/audio/scan.h"
#include "base/mem.h"
#include "base/array.h"

enum {
    REST_MAX = 4096,    /* bytes after a part that need no warning: tags, padding */
    LEAD_MAX = 1 << 16, /* bytes of a cut frame, or of padding, before MPEG frames */
    ID3_HEADER = 10
};

/* In this order: MPEG frames are recognized by 12 bits alone. */
static const struct {
    ak_scan_begins_fn *begins;
    ak_scan_fn *scan;
} families[] = {
    { ak_scan_chunks_begins, ak_scan_chunks }, { ak_scan_flac_begins, ak_scan_flac },
    { ak_scan_ogg_begins, ak_scan_ogg },       { ak_scan_matroska_begins, ak_scan_matroska },
    { ak_scan_au_begins, ak_scan_au },         { ak_scan_mpeg_begins, ak_scan_mpeg },
};
enum { N_FAMILIES = sizeof families / sizeof *families };

static int find_family(struct ak_bytes *in, int64_t at)
{
    for (int i = 0; i < N_FAMILIES; i++)
        if (families[i].begins(in, at))
            return i;
    return -1;
}

bool ak_scan_begins(struct ak_bytes *in, int64_t at)
{
    return find_family(in, at) >= 0;
}

int64_t ak_scan_id3_bytes(struct ak_bytes *in, int64_t at)
{
    int64_t begin = at;
    const unsigned char *h;
    while ((h = ak_bytes_at(in, at, ID3_HEADER)) != NULL && memcmp(h, "ID3", 3) == 0 &&
           h[3] < 0xff && h[4] < 0xff && !((h[6] | h[7] | h[8] | h[9]) & 0x80)) {
        int64_t n = h[6] << 21 | h[7] << 14 | h[8] << 7 | h[9];
        n += h[5] & 0x10 ? 2 * ID3_HEADER : ID3_HEADER; /* with a footer */
        if (n > in->size - at)
            break;
        at += n;
    }
    return at - begin;
}

int64_t ak_scan_find(struct ak_bytes *in, int64_t at)
{
    static const char first_bytes[] = "RBFcrfO.\x1aI"; /* of all families but MPEG, and of tags */
    while ((at = ak_bytes_find_any(in, at, first_bytes, sizeof first_bytes - 1)) >= 0) {
        if (ak_scan_begins(in, at + ak_scan_id3_bytes(in, at)))
            return at;
        at++;
    }
    return in->size;
}

ak_status ak_scan_add(struct ak_scan *s, bool spooled, int64_t first, int64_t n,
                      struct ak_audio_part **out, struct ak_error *error)
{
    struct ak_parts *p = s->parts;
    if (p->n == AK_PARTS_MAX)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s: more than %d parts", s->name,
                       AK_PARTS_MAX);
    AK_TRY(ak_reserve_or_fail(&p->part, &p->capacity, p->n, 1, "parts of an audio file", error));
    *out = &p->part[p->n++];
    **out = (struct ak_audio_part){ .spooled = spooled, .first = first, .n = n, .cut = 1.0 };
    return AKUNU_OK;
}

void ak_scan_patch(struct ak_audio_part *part, int64_t at, uint64_t value, unsigned n, bool big)
{
    struct ak_patch *patch = &part->patches[part->n_patches++];
    patch->at = at;
    patch->n = n;
    ak_bytes_put(patch->bytes, n, value, big);
}

ak_status ak_scan_spool(struct ak_scan *s, const void *bytes, size_t n, struct ak_error *error)
{
    return ak_spool_add(&s->parts->spool, s->name, bytes, n, error);
}

ak_status ak_scan_copy(struct ak_scan *s, int64_t at, int64_t n, struct ak_error *error)
{
    n = n < s->in.size - at ? n : s->in.size - at;
    while (n > 0) {
        size_t piece = n < AK_BYTES_MAX ? (size_t)n : AK_BYTES_MAX;
        const unsigned char *bytes = ak_bytes_at(&s->in, at, piece);
        if (!bytes)
            break;
        AK_TRY(ak_scan_spool(s, bytes, piece, error));
        at += (int64_t)piece;
        n -= (int64_t)piece;
    }
    return AKUNU_OK;
}

void ak_parts_warn(struct ak_parts *p, const char *format, ...)
{
    va_list args;
    if (p->warning[0] != '\0')
        return;
    va_start(args, format);
    vsnprintf(p->warning, sizeof p->warning, format, args);
    va_end(args);
}

/* A file whose first bytes no scanner knows: MPEG frames after a cut or padding, or what libsndfile
 * may know. What it would take for MPEG frames because of a tag or two bytes is refused here:
 * mpg123 would print lines of its own. */
static ak_status add_unknown(struct ak_scan *s, int64_t *end, struct ak_error *error)
{
    struct ak_audio_part *part;
    int64_t at = ak_scan_id3_bytes(&s->in, 0);
    const char *foreign = ak_foreign_format(&s->in, at);
    if (foreign)
        return ak_foreign_fail(error, s->name, foreign);
    const unsigned char *sync = ak_bytes_at(&s->in, at, 2);
    bool is_mpeg = at > 0 || (sync && ak_bytes_big(sync, 2) >= 0xffe0);
    for (int64_t to = at + LEAD_MAX; at < to; at++)
        if (ak_bytes_are(&s->in, at, "\xff", 1) && ak_scan_mpeg_begins(&s->in, at))
            return ak_scan_mpeg(s, at, end, error);
    if (is_mpeg)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "%s: begins as an MP3 file does, but no frame of sound is in its first %d "
                       "bytes; expected a whole audio file",
                       s->name, LEAD_MAX);
    *end = s->in.size;
    return ak_scan_add(s, false, 0, s->in.size, &part, error);
}

static ak_status find_parts(struct ak_scan *s, struct ak_error *error)
{
    for (int64_t at = 0, end = 0; at < s->in.size; at = end) {
        int64_t begin = at + ak_scan_id3_bytes(&s->in, at);
        int family = find_family(&s->in, begin);
        if (family < 0 && at == 0) {
            AK_TRY(add_unknown(s, &end, error));
            continue;
        }
        if (family < 0) {
            if (s->in.size - begin > REST_MAX)
                ak_parts_warn(s->parts,
                              "the last %lld bytes, from byte %lld on, are not audio that can be "
                              "decoded, and are not read",
                              (long long)(s->in.size - begin), (long long)begin);
            break;
        }
        ak_status status = families[family].scan(s, begin, &end, error);
        if (status != AKUNU_OK && (s->parts->n == 0 || status != AKUNU_ERROR_FORMAT))
            return status;
        if (status != AKUNU_OK) {
            ak_parts_warn(s->parts, "from byte %lld on it cannot be decoded", (long long)begin);
            break;
        }
    }
    return AKUNU_OK;
}

ak_status ak_parts_find(struct ak_parts *out, int fd, int64_t bytes, const char *name,
                        struct ak_error *error)
{
    *out = (struct ak_parts){ .spool = ak_spool_none() };
    struct ak_scan *s = ak_alloc(1, sizeof *s);
    if (!s)
        return ak_fail_memory(error, "an audio file", sizeof *s);
    ak_bytes_open(&s->in, fd, bytes);
    s->name = name;
    s->parts = out;
    ak_status status = find_parts(s, error);
    ak_free(s);
    return status;
}

void ak_parts_free(struct ak_parts *p)
{
    ak_free(p->part);
    ak_spool_close(&p->spool);
    *p = (struct ak_parts){ .spool = ak_spool_none() };
}
