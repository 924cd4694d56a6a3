/* Files are read with pread through libsndfile's virtual files: a map of a file that somebody
 * truncates would end the process. */
#include "config.h"

#include "speech/audio/decoder.h"

#include <string.h>

#ifdef HAVE_AK_AUDIO
#include <errno.h>
#include <sndfile.h>
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"

/* libsndfile's count of a cut Ogg file, or of FLAC without a count, is the largest integer. */
static const uint64_t SAMPLES_MAX = 1ull << 48;

/* Subformats that older libraries do not declare. */
enum { MPEG_LAYER_1 = 0x80, MPEG_LAYER_3 = 0x82 };

struct ak_decoder {
    const struct ak_audio_part *part;
    int fd;
    int64_t offset; /* in the part, with its prefix */
    SNDFILE *file;
    SF_INFO info;
};

static sf_count_t part_bytes(void *user)
{
    const struct ak_audio_part *part = ((struct ak_decoder *)user)->part;
    return part->n_prefix + part->n;
}

static sf_count_t part_seek(sf_count_t offset, int whence, void *user)
{
    struct ak_decoder *d = user;
    sf_count_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? d->offset : part_bytes(user);
    if (offset < -base || offset > INT64_MAX - base)
        return -1;
    return d->offset = base + offset;
}

/* Puts patches over the n bytes that were read at `at`. */
static void apply_patches(const struct ak_audio_part *part, unsigned char *bytes, int64_t at,
                          int64_t n)
{
    for (unsigned p = 0; p < part->n_patches; p++)
        for (unsigned i = 0; i < part->patches[p].n; i++) {
            int64_t to = part->patches[p].at + i - at;
            if (to >= 0 && to < n)
                bytes[to] = part->patches[p].bytes[i];
        }
}

/* Up to n bytes at `at` of the part without its prefix. */
static sf_count_t read_bytes(const struct ak_decoder *d, void *to, sf_count_t n, int64_t at)
{
    const struct ak_audio_part *part = d->part;
    sf_count_t done = 0;
    n = n < part->n - at ? n : part->n - at;
    while (done < n) {
        ssize_t got = pread(d->fd, (char *)to + done, (size_t)(n - done), part->first + at + done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        done += got;
    }
    apply_patches(part, to, at, done);
    return done;
}

static sf_count_t part_read(void *to, sf_count_t n, void *user)
{
    struct ak_decoder *d = user;
    sf_count_t done = 0, left = d->part->n_prefix - d->offset;
    if (left > 0) {
        done = n < left ? n : left;
        memcpy(to, d->part->prefix + d->offset, (size_t)done);
    }
    if (done < n)
        done += read_bytes(d, (char *)to + done, n - done, d->offset + done - d->part->n_prefix);
    d->offset += done;
    return done;
}

static sf_count_t part_write(const void *from, sf_count_t n, void *user)
{
    (void)from, (void)n, (void)user;
    return 0;
}

static sf_count_t part_tell(void *user)
{
    return ((struct ak_decoder *)user)->offset;
}

static SF_VIRTUAL_IO part_calls = {
    .get_filelen = part_bytes,
    .seek = part_seek,
    .read = part_read,
    .write = part_write,
    .tell = part_tell,
};

ak_status ak_decoder_open(const struct ak_audio_part *part, int fd, const char *name,
                          struct ak_decoder **out, struct ak_error *error)
{
    struct ak_decoder *d = ak_alloc(1, sizeof *d);
    *out = NULL;
    if (!d)
        return ak_fail_memory(error, "a decoder", sizeof *d);
    d->part = part;
    d->fd = fd;
    d->file = sf_open_virtual(&part_calls, SFM_READ, &d->info, d);
    if (!d->file) {
        ak_free(d);
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "%s: not audio that can be decoded (%s); WAV, FLAC, Ogg Vorbis, Opus, MP3, "
                       "AIFF, WebM and others of libsndfile can; if it is audio, convert it to WAV "
                       "first, for example with ffmpeg -i INPUT OUTPUT.wav",
                       name, sf_strerror(NULL));
    }
    *out = d;
    return AKUNU_OK;
}

void ak_decoder_close(struct ak_decoder *d)
{
    if (d)
        sf_close(d->file);
    ak_free(d);
}

/* Of MPEG frames in a WAV file libsndfile estimates the length from the bit rate. */
static bool is_estimated(int format)
{
    int codec = format & SF_FORMAT_SUBMASK;
    return (format & SF_FORMAT_TYPEMASK) == SF_FORMAT_WAV && codec >= MPEG_LAYER_1 &&
           codec <= MPEG_LAYER_3;
}

uint64_t ak_decoder_samples(const struct ak_decoder *d)
{
    const struct ak_audio_part *part = d->part;
    uint64_t n = part->stated > 0   ? part->stated :
                 d->info.frames > 0 ? (uint64_t)d->info.frames :
                                      0;
    if (n == 0)
        return 0;
    return part->is_unknown || n >= SAMPLES_MAX || is_estimated(d->info.format) ?
               UINT64_MAX :
               (uint64_t)((double)n * part->cut);
}

unsigned ak_decoder_rate(const struct ak_decoder *d)
{
    return (unsigned)d->info.samplerate;
}

unsigned ak_decoder_channels(const struct ak_decoder *d)
{
    return (unsigned)d->info.channels;
}

/* ---- Mixing down --------------------------------------------------------- */
enum { LAYOUT_MAX = 8 };

/* Channels of files that do not say what theirs are, by their number: F: front left and right, C:
 * center, B: at the back or the sides, L: low frequencies. Xiph's are those of the specifications
 * of Vorbis and Opus, the others ffmpeg's default ones. */
static const char *const xiph_layouts[LAYOUT_MAX + 1] = {
    [3] = "FCF", [4] = "FFBB", [5] = "FCFBB", [6] = "FCFBBL", [7] = "FCFBBBL", [8] = "FCFBBBBL",
};
static const char *const flac_layouts[LAYOUT_MAX + 1] = {
    [3] = "FFC", [4] = "FFBB", [5] = "FFCBB", [6] = "FFCLBB", [7] = "FFCLBBB", [8] = "FFCLBBBB",
};
static const char *const other_layouts[LAYOUT_MAX + 1] = {
    [3] = "FFL", [4] = "FFCB", [5] = "FFCBB", [6] = "FFCLBB", [7] = "FFCLBBB", [8] = "FFCLBBBB",
};

static char kind_of_channel(int channel)
{
    switch (channel) {
    case SF_CHANNEL_MAP_MONO:
    case SF_CHANNEL_MAP_CENTER:
    case SF_CHANNEL_MAP_FRONT_CENTER: return 'C';
    case SF_CHANNEL_MAP_LEFT:
    case SF_CHANNEL_MAP_RIGHT:
    case SF_CHANNEL_MAP_FRONT_LEFT:
    case SF_CHANNEL_MAP_FRONT_RIGHT:
    case SF_CHANNEL_MAP_FRONT_LEFT_OF_CENTER:
    case SF_CHANNEL_MAP_FRONT_RIGHT_OF_CENTER: return 'F';
    case SF_CHANNEL_MAP_REAR_CENTER:
    case SF_CHANNEL_MAP_REAR_LEFT:
    case SF_CHANNEL_MAP_REAR_RIGHT:
    case SF_CHANNEL_MAP_SIDE_LEFT:
    case SF_CHANNEL_MAP_SIDE_RIGHT: return 'B';
    default: return 'L'; /* and those above, which ffmpeg drops, too */
    }
}

/* Kinds of the channels as the file says them; false: it does not. Of AIFF libsndfile 1.2 gives
 * numbers from memory that it did not set. */
static bool read_layout(const struct ak_decoder *d, char *kinds)
{
    int map[LAYOUT_MAX] = { 0 }, n = d->info.channels;
    if ((d->info.format & SF_FORMAT_TYPEMASK) == SF_FORMAT_AIFF ||
        sf_command(d->file, SFC_GET_CHANNEL_MAP_INFO, map, n * (int)sizeof *map) != SF_TRUE)
        return false;
    for (int i = 0; i < n; i++)
        kinds[i] = kind_of_channel(map[i]);
    return true;
}

static const char *default_layout(const struct ak_decoder *d)
{
    switch (d->info.format & SF_FORMAT_TYPEMASK) {
    case SF_FORMAT_OGG: return xiph_layouts[d->info.channels];
    case SF_FORMAT_FLAC: return flac_layouts[d->info.channels];
    default: return other_layouts[d->info.channels];
    }
}

static float weight_of(char kind)
{
    return kind == 'C' ? 1.0f : kind == 'F' ? 0.70710678f : kind == 'B' ? 0.5f : 0.0f;
}

void ak_decoder_weights(const struct ak_decoder *d, float *weights)
{
    char said[LAYOUT_MAX];
    int n = d->info.channels;
    const char *kinds = NULL;
    float sum = 0.0f;
    if (n > 1 && n <= LAYOUT_MAX)
        kinds = read_layout(d, said) ? said : default_layout(d);
    for (int i = 0; kinds && i < n; i++)
        sum += weights[i] = weight_of(kinds[i]);
    for (int i = 0; i < n; i++)
        weights[i] = sum > 0.0f ? weights[i] / sum : 1.0f / (float)n;
}

size_t ak_decoder_read(struct ak_decoder *d, float *out, size_t max)
{
    sf_count_t got = sf_readf_float(d->file, out, (sf_count_t)max);
    return got > 0 ? (size_t)got : 0;
}
#else
ak_status ak_decoder_open(const struct ak_audio_part *part, int fd, const char *name,
                          struct ak_decoder **out, struct ak_error *error)
{
    (void)part, (void)fd;
    *out = NULL;
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s: %s", name, AK_DECODER_ABSENT);
}

void ak_decoder_close(struct ak_decoder *d)
{
    (void)d;
}

uint64_t ak_decoder_samples(const struct ak_decoder *d)
{
    (void)d;
    return 0;
}

unsigned ak_decoder_rate(const struct ak_decoder *d)
{
    (void)d;
    return 0;
}

unsigned ak_decoder_channels(const struct ak_decoder *d)
{
    (void)d;
    return 0;
}

void ak_decoder_weights(const struct ak_decoder *d, float *weights)
{
    (void)d, (void)weights;
}

size_t ak_decoder_read(struct ak_decoder *d, float *out, size_t max)
{
    (void)d, (void)out, (void)max;
    return 0;
}
#endif
