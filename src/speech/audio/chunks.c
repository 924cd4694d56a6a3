/* Files of chunks: an identifier and a size each. A chunk with the samples ends where its size
 * says, and where the writer did not know the size (it wrote to a pipe, or was killed) at the end
 * of the file, as in ffmpeg. The size of the whole, which is often wrong, is not used. */
#include "speech/audio/scan.h"

#include <ctype.h>
#include <string.h>

#define W64_TAIL "\xf3\xac\xd3\x11\x8c\xd1\x00\xc0\x4f\x8e\xdb\x8a"

enum {
    CHUNKS_MAX = 1 << 16,
    DS64_BYTES = 16, /* sizes of the whole and of the samples */
    MARK_MAX = 16
};

/* Programs that write to a pipe give such a size, or a larger one; in 64 bits, too. */
static const uint64_t UNKNOWN_32 = 0x7fff0000, UNKNOWN_64 = 1ull << 62;

static const struct form {
    const char *id, *type; /* at offset 0 and `type_at` */
    unsigned n_id, n_type, type_at;
    unsigned n_header; /* bytes before the first chunk */
    unsigned n_mark, n_size;
    bool big;
    bool counts_header;   /* the size of a chunk includes its header */
    unsigned align;       /* of chunks */
    const char *data;     /* identifier of the chunk with the samples */
    unsigned data_header; /* bytes in it before the samples */
} forms[] = {
    { "RIFF", "WAVE", 4, 4, 8, 12, 4, 4, false, false, 2, "data", 0 },
    { "RIFX", "WAVE", 4, 4, 8, 12, 4, 4, true, false, 2, "data", 0 },
    { "RF64", "WAVE", 4, 4, 8, 12, 4, 4, false, false, 2, "data", 0 },
    { "BW64", "WAVE", 4, 4, 8, 12, 4, 4, false, false, 2, "data", 0 },
    { "FORM", "AIFF", 4, 4, 8, 12, 4, 4, true, false, 2, "SSND", 8 },
    { "FORM", "AIFC", 4, 4, 8, 12, 4, 4, true, false, 2, "SSND", 8 },
    { "caff", "desc", 4, 4, 8, 8, 4, 8, true, false, 1, "data", 4 },
    { "riff\x2e\x91\xcf\x11\xa5\xd6\x28\xdb\x04\xc1\x00\x00", "wave" W64_TAIL, 16, 16, 24, 40, 16,
      8, false, true, 8, "data" W64_TAIL, 0 },
};
enum { N_FORMS = sizeof forms / sizeof *forms };

/* What a walk over the chunks finds. */
struct walk {
    const struct form *form;
    int64_t begin;    /* of the file */
    int64_t at;       /* after the last chunk */
    int64_t size_at;  /* where the size of the samples stands, of n_size bytes; 0: nowhere yet */
    unsigned n_size;  /* 8 in a ds64 chunk */
    uint64_t size;    /* as stated there, without the header of the chunk */
    int64_t ds64_at;  /* of RF64: its sizes; 0: none */
    int64_t data, n;  /* the samples, and what belongs to them in the chunk; data 0: none yet */
    bool is_measured; /* n is not what the header says */
};

static const struct form *find_form(struct ak_bytes *in, int64_t at)
{
    for (int i = 0; i < N_FORMS; i++)
        if (ak_bytes_are(in, at, forms[i].id, forms[i].n_id) &&
            ak_bytes_are(in, at + forms[i].type_at, forms[i].type, forms[i].n_type))
            return &forms[i];
    return NULL;
}

bool ak_scan_chunks_begins(struct ak_bytes *in, int64_t at)
{
    return find_form(in, at) != NULL;
}

static bool is_unknown(uint64_t size, unsigned n_size)
{
    return size == 0 || size >= (n_size == 4 ? UNKNOWN_32 : UNKNOWN_64);
}

static void take_data(struct walk *w, struct ak_bytes *in, int64_t size_at, uint64_t size)
{
    const struct form *form = w->form;
    const unsigned char *sizes;
    w->data = w->at;
    w->size_at = size_at;
    w->n_size = form->n_size;
    if (w->ds64_at > 0 && (sizes = ak_bytes_at(in, w->ds64_at, DS64_BYTES)) != NULL) {
        w->size_at = w->ds64_at + 8;
        w->n_size = 8;
        size = ak_bytes_little(sizes + 8, 8);
    }
    w->size = size;
    int64_t left = in->size - w->data;
    bool unknown = is_unknown(size <= form->data_header ? 0 : size, w->n_size);
    w->is_measured = unknown || size > (uint64_t)left;
    w->n = w->is_measured ? ak_scan_find(in, w->data) - w->data : (int64_t)size;
    w->at = w->data + w->n;
}

/* Goes to the next chunk, which may have been written without padding before it. */
static void align(struct walk *w, struct ak_bytes *in)
{
    int64_t rest = (w->at - w->begin) % w->form->align;
    if (rest > 0 && !ak_scan_begins(in, w->at))
        w->at += w->form->align - rest;
    w->at = w->at < in->size ? w->at : in->size;
}

static bool is_mark(const unsigned char *mark)
{
    for (int i = 0; i < 4; i++)
        if (!isascii(mark[i]) || !isprint(mark[i]))
            return false;
    return true;
}

/* Reads the chunk at w->at. False: there is none. */
static bool read_chunk(struct walk *w, struct ak_bytes *in)
{
    const struct form *form = w->form;
    unsigned n_header = form->n_mark + form->n_size;
    unsigned char mark[MARK_MAX];
    const unsigned char *header = ak_bytes_at(in, w->at, n_header);
    if (!header || !is_mark(header) || (w->data > 0 && ak_scan_begins(in, w->at)))
        return false;
    header = ak_bytes_at(in, w->at, n_header);
    if (!header)
        return false;
    memcpy(mark, header, form->n_mark);
    header += form->n_mark;
    uint64_t size =
        form->big ? ak_bytes_big(header, form->n_size) : ak_bytes_little(header, form->n_size);
    int64_t size_at = w->at + form->n_mark;
    if (form->counts_header)
        size = size > n_header ? size - n_header : 0;
    w->at += n_header;
    if (w->data == 0 && memcmp(mark, form->data, form->n_mark) == 0) {
        take_data(w, in, size_at, size);
    } else {
        if (size > (uint64_t)(in->size - w->at)) {
            w->at -= n_header;
            return false;
        }
        if (memcmp(mark, "ds64", 4) == 0 && size >= DS64_BYTES)
            w->ds64_at = w->at;
        w->at += (int64_t)size;
    }
    align(w, in);
    return true;
}

/* Lets libsndfile see the size that was found. */
static void correct(const struct walk *w, struct ak_audio_part *part)
{
    const struct form *form = w->form;
    unsigned n_header = form->counts_header ? form->n_mark + form->n_size : 0;
    if (memcmp(form->id, "BW64", 4) == 0)
        ak_scan_patch(part, 0, 0x52463634 /* RF64 */, 4, true);
    if (!w->is_measured)
        return;
    uint64_t most = w->n_size == 4 ? UINT32_MAX : (uint64_t)INT64_MAX,
             n = (uint64_t)w->n + n_header;
    ak_scan_patch(part, w->size_at - w->begin, n < most ? n : most, w->n_size, form->big);
    if (!is_unknown(w->size, w->n_size) && w->size > form->data_header && w->n > 0)
        part->cut = (double)w->size / (double)w->n;
}

ak_status ak_scan_chunks(struct ak_scan *s, int64_t at, int64_t *end, struct ak_error *error)
{
    struct walk w = { .form = find_form(&s->in, at), .begin = at };
    struct ak_audio_part *part;
    w.at = at + w.form->n_header;
    for (int i = 0; i < CHUNKS_MAX && read_chunk(&w, &s->in); i++)
        continue;
    *end = w.at;
    int64_t n = w.data > 0 ? w.at - at : s->in.size - at; /* without samples: libsndfile says so */
    AK_TRY(ak_scan_add(s, false, at, n, &part, error));
    if (w.data > 0)
        correct(&w, part);
    else
        *end = s->in.size;
    return AKUNU_OK;
}
