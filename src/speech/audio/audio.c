/* Sources of samples. A source gives interleaved floats; one path mixes, resamples and checks them,
 * whatever the source. The parts of a file follow one another, each with a rate of its own: the
 * resampler is emptied at the end of each. */
#include "config.h"

#include "speech/audio/audio.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "speech/audio/decoder.h"
#include "speech/audio/mel.h"
#include "speech/audio/ranges.h"
#include "base/mem.h"
#include "base/utf8.h"

#ifdef HAVE_AK_AUDIO
#include <samplerate.h>
#endif

enum {
    PIECE = 4096, /* samples mixed and resampled at once */
    CHANNELS_MAX = 64,
    RATE_MIN = 1000,
    RATE_MAX = 768000,
};

struct ak_audio {
    char *name;
    unsigned rate, channels; /* of the current part */
    double seconds;          /* as the headers say; 0: unknown */
    double read_seconds;     /* of the parts that were read in this pass */
    uint64_t read;           /* samples of a channel read of the current part */
    bool is_counted;         /* `seconds` are those that were read to the end */

    const float *samples; /* a source in memory; NULL: a file, or ranges */
    size_t n_samples;
    struct ak_ranges *ranges;
    int fd; /* a file; −1: none, or it was spooled */
    struct ak_spool spool;
    struct ak_parts parts;
    size_t part;                 /* the current one */
    struct ak_decoder *decoder;  /* of the current part; NULL: not opened */
    float *frames;               /* [PIECE][channels] as the file has them, of the widest part */
    float weights[CHANNELS_MAX]; /* of the current part's channels in a mono sample */
    float mixed[PIECE];
    size_t n_mixed, used_mixed;
    bool part_ended, ended; /* the part, the source has no more */
#ifdef HAVE_AK_AUDIO
    SRC_STATE *resampler; /* NULL: all rates are right */
#endif
};

static ak_status new_audio(const char *name, struct ak_audio **out, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    struct ak_audio *audio = ak_alloc(1, sizeof *audio);
    if (!audio)
        return ak_fail_memory(error, "audio", sizeof *audio);
    audio->fd = -1;
    audio->spool = audio->parts.spool = ak_spool_none();
    name = ak_show_path(name, shown);
    audio->name = ak_strndup(name, strlen(name));
    if (!audio->name) {
        ak_free(audio);
        return ak_fail_memory(error, "a file's name", strlen(name) + 1);
    }
    *out = audio;
    return AKUNU_OK;
}

static ak_status check_layout(const struct ak_audio *audio, unsigned rate, unsigned channels,
                              uint64_t n, struct ak_error *error)
{
    if (rate < RATE_MIN || rate > RATE_MAX)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s: %u samples a second; expected %d to %d",
                       audio->name, rate, RATE_MIN, RATE_MAX);
    if (channels < 1 || channels > CHANNELS_MAX)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s: %u channels; expected 1 to %d",
                       audio->name, channels, CHANNELS_MAX);
    if (n == 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: there is no sample in it", audio->name);
    return AKUNU_OK;
}

/* ---- Resampling --------------------------------------------------------- */
#ifdef HAVE_AK_AUDIO
static ak_status open_resampler(struct ak_audio *audio, struct ak_error *error)
{
    int code;
    if (audio->resampler)
        return AKUNU_OK;
    audio->resampler = src_new(SRC_SINC_MEDIUM_QUALITY, 1, &code);
    if (!audio->resampler)
        return ak_fail(error, AKUNU_ERROR_MEMORY, "%s: no resampler: %s", audio->name,
                       src_strerror(code));
    return AKUNU_OK;
}

static ak_status resample_piece(struct ak_audio *audio, float *out, size_t max, size_t *n,
                                struct ak_error *error)
{
    SRC_DATA data = {
        .data_in = audio->mixed + audio->used_mixed,
        .input_frames = (long)(audio->n_mixed - audio->used_mixed),
        .data_out = out,
        .output_frames = (long)ak_min_size(max, PIECE),
        .src_ratio = (double)AK_MEL_RATE / audio->rate,
        .end_of_input = audio->part_ended,
    };
    int code = src_process(audio->resampler, &data);
    if (code != 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: cannot be resampled: %s", audio->name,
                       src_strerror(code));
    audio->used_mixed += (size_t)data.input_frames_used;
    *n = (size_t)data.output_frames_gen;
    return AKUNU_OK;
}

static void reset_resampler(struct ak_audio *audio)
{
    if (audio->resampler)
        src_reset(audio->resampler);
}

static void close_resampler(struct ak_audio *audio)
{
    if (audio->resampler)
        src_delete(audio->resampler);
}
#else
static ak_status open_resampler(struct ak_audio *audio, struct ak_error *error)
{
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                   "%s: %u samples a second, where %d are expected: %s", audio->name, audio->rate,
                   AK_MEL_RATE, AK_DECODER_ABSENT);
}

static ak_status resample_piece(struct ak_audio *audio, float *out, size_t max, size_t *n,
                                struct ak_error *error)
{
    (void)out, (void)max;
    *n = 0;
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s: %s", audio->name, AK_DECODER_ABSENT);
}

static void reset_resampler(struct ak_audio *audio)
{
    (void)audio;
}

static void close_resampler(struct ak_audio *audio)
{
    (void)audio;
}
#endif

/* ---- Files -------------------------------------------------------------- */
static int part_fd(const struct ak_audio *audio, const struct ak_audio_part *part)
{
    return part->spooled ? audio->parts.spool.fd : audio->fd >= 0 ? audio->fd : audio->spool.fd;
}

/* What the part's header says. AKUNU_ERROR_FORMAT or _UNSUPPORTED: it cannot be read. */
static ak_status probe_part(const struct ak_audio *audio, struct ak_audio_part *part,
                            struct ak_error *error)
{
    struct ak_decoder *decoder;
    part->samples = UINT64_MAX;
    AK_TRY(ak_decoder_open(part, part_fd(audio, part), audio->name, &decoder, error));
    part->rate = ak_decoder_rate(decoder);
    part->channels = ak_decoder_channels(decoder);
    part->samples = ak_decoder_samples(decoder);
    ak_decoder_close(decoder);
    return check_layout(audio, part->rate, part->channels, part->samples, error);
}

/* Drops parts that cannot be read, with a warning, unless all are. */
static ak_status probe_parts(struct ak_audio *audio, struct ak_error *error)
{
    struct ak_parts *parts = &audio->parts;
    struct ak_error first = { 0 }, other;
    size_t n = 0;
    for (size_t i = 0; i < parts->n; i++) {
        ak_status status = probe_part(audio, &parts->part[i], &other);
        if (status == AKUNU_ERROR_MEMORY)
            return ak_fail(error, status, "%s", other.message);
        if (status == AKUNU_OK)
            parts->part[n++] = parts->part[i];
        else if (first.status == AKUNU_OK)
            first = other;
        if (status != AKUNU_OK && parts->part[i].samples != 0)
            ak_parts_warn(parts, "part %zu of %zu, from byte %lld on, cannot be decoded", i + 1,
                          parts->n, (long long)parts->part[i].first);
    }
    parts->n = n;
    return n > 0 ? AKUNU_OK : ak_fail(error, first.status, "%s", first.message);
}

static ak_status open_parts(struct ak_audio *audio, struct ak_error *error)
{
    int fd = audio->fd >= 0 ? audio->fd : audio->spool.fd;
    int64_t bytes = audio->spool.n;
    struct stat st;
    if (audio->fd >= 0 && fstat(fd, &st) == 0)
        bytes = st.st_size;
    if (bytes == 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: the file is empty", audio->name);
    AK_TRY(ak_parts_find(&audio->parts, fd, bytes, audio->name, error));
    AK_TRY(probe_parts(audio, error));
    unsigned channels = 0;
    bool is_unknown = false;
    for (size_t i = 0; i < audio->parts.n; i++) {
        const struct ak_audio_part *part = &audio->parts.part[i];
        channels = part->channels > channels ? part->channels : channels;
        is_unknown = is_unknown || part->samples == UINT64_MAX;
        audio->seconds += (double)part->samples / part->rate;
        if (part->rate != AK_MEL_RATE)
            AK_TRY(open_resampler(audio, error));
    }
    audio->seconds = is_unknown ? 0.0 : audio->seconds;
    audio->frames = ak_alloc((size_t)PIECE * channels, sizeof *audio->frames);
    if (!audio->frames)
        return ak_fail_memory(error, "samples", (size_t)PIECE * channels * sizeof(float));
    return ak_audio_rewind(audio, error);
}

/* A pipe's bytes are copied to a file, since decoders go back and forth. */
static ak_status take_file(struct ak_audio *audio, int fd, struct ak_error *error)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "%s: not an open descriptor", audio->name);
    if (!S_ISREG(st.st_mode))
        return ak_spool_drain(&audio->spool, audio->name, fd, error);
    audio->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (audio->fd < 0)
        return ak_fail(error, AKUNU_ERROR_IO, "%s: cannot be opened: %s", audio->name,
                       strerror(errno));
    return AKUNU_OK;
}

/* Opens the file that it has as *out, or closes it. */
static ak_status finish_open(struct ak_audio *audio, ak_status status, struct ak_audio **out,
                             struct ak_error *error)
{
    if (status == AKUNU_OK)
        status = open_parts(audio, error);
    if (status == AKUNU_OK)
        *out = audio;
    else
        ak_audio_close(audio);
    return status;
}

ak_status ak_audio_open_fd(int fd, const char *name, struct ak_audio **out, struct ak_error *error)
{
    *out = NULL;
    struct ak_audio *audio = NULL;
    AK_TRY(new_audio(name, &audio, error));
    return finish_open(audio, take_file(audio, fd, error), out, error);
}

ak_status ak_audio_open_bytes(const void *bytes, size_t n, const char *name, struct ak_audio **out,
                              struct ak_error *error)
{
    *out = NULL;
    struct ak_audio *audio = NULL;
    AK_TRY(new_audio(name, &audio, error));
    return finish_open(audio, ak_spool_add(&audio->spool, audio->name, bytes, n, error), out,
                       error);
}

/* Waits for a pipe's writer. Read before there is one, it would be at its end. */
static void await_writer(int fd)
{
    struct pollfd in = { .fd = fd, .events = POLLIN };
    while (poll(&in, 1, -1) < 0 && errno == EINTR)
        continue;
    fcntl(fd, F_SETFL, 0); /* it was opened with O_NONBLOCK */
}

ak_status ak_audio_open(const char *path, struct ak_audio **out, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    struct stat st;
    *out = NULL;
    /* O_NONBLOCK: a pipe's writer may have come and gone, and a device could wait for ever. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: %s", ak_show_path(path, shown),
                       strerror(errno));
    ak_status status = AKUNU_OK;
    st.st_mode = fstat(fd, &st) == 0 ? st.st_mode : 0;
    if (S_ISFIFO(st.st_mode))
        await_writer(fd);
    else if (!S_ISREG(st.st_mode))
        status = ak_fail(error, AKUNU_ERROR_FORMAT, "%s: %s, where an audio file is expected",
                         ak_show_path(path, shown), S_ISDIR(st.st_mode) ? "a folder" : "no file");
    if (status == AKUNU_OK)
        status = ak_audio_open_fd(fd, path, out, error);
    close(fd);
    return status;
}

/* ---- Samples ------------------------------------------------------------ */
ak_status ak_audio_open_samples(const float *samples, size_t n, unsigned rate,
                                struct ak_audio **out, struct ak_error *error)
{
    *out = NULL;
    struct ak_audio *audio = NULL;
    AK_TRY(new_audio("samples", &audio, error));
    audio->samples = samples;
    audio->n_samples = n;
    audio->rate = rate;
    audio->channels = 1;
    audio->weights[0] = 1.0f;
    ak_status status = check_layout(audio, rate, 1, n, error);
    if (status == AKUNU_OK)
        audio->seconds = (double)n / rate;
    if (status == AKUNU_OK && rate != AK_MEL_RATE)
        status = open_resampler(audio, error);
    if (status != AKUNU_OK) {
        ak_audio_close(audio);
        return status;
    }
    *out = audio;
    return AKUNU_OK;
}

/* ---- Ranges ------------------------------------------------------------- */
ak_status ak_audio_open_ranges(struct ak_audio *of, const struct ak_audio_range *ranges, size_t n,
                               uint32_t silence, struct ak_audio **out, struct ak_error *error)
{
    *out = NULL;
    struct ak_audio *audio = NULL;
    AK_TRY(new_audio(of->name, &audio, error));
    ak_status status = ak_ranges_open(of, ranges, n, silence, &audio->ranges, error);
    if (status != AKUNU_OK) {
        ak_audio_close(audio);
        return status;
    }
    audio->rate = AK_MEL_RATE;
    audio->seconds = (double)ak_ranges_samples(audio->ranges) / AK_MEL_RATE;
    *out = audio;
    return AKUNU_OK;
}

/* ---- Reading ------------------------------------------------------------ */
/* Opens the current part. What a decoder made of damage the first time, it makes again. */
static ak_status open_part(struct ak_audio *audio, struct ak_error *error)
{
    const struct ak_audio_part *part = &audio->parts.part[audio->part];
    ak_status status =
        ak_decoder_open(part, part_fd(audio, part), audio->name, &audio->decoder, error);
    if (status == AKUNU_OK && (ak_decoder_channels(audio->decoder) != part->channels ||
                               ak_decoder_rate(audio->decoder) != part->rate))
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: the file was changed while it was read",
                       audio->name);
    if (status == AKUNU_OK)
        ak_decoder_weights(audio->decoder, audio->weights);
    return status;
}

/* Up to `max` frames of the current part, interleaved; fewer at its end. */
static ak_status read_frames(struct ak_audio *audio, size_t max, const float **out, size_t *n,
                             struct ak_error *error)
{
    if (audio->samples) {
        *out = audio->samples + audio->read;
        *n = ak_min_size(max, audio->n_samples - (size_t)audio->read);
        return AKUNU_OK;
    }
    if (!audio->decoder)
        AK_TRY(open_part(audio, error));
    *out = audio->frames;
    *n = ak_decoder_read(audio->decoder, audio->frames, max);
    return AKUNU_OK;
}

/* Mono samples of the part's rate. */
static ak_status mix(struct ak_audio *audio, float *out, size_t max, size_t *n,
                     struct ak_error *error)
{
    const float *frames;
    AK_TRY(read_frames(audio, max, &frames, n, error));
    for (size_t i = 0; i < *n; i++) {
        float sum = 0.0f;
        for (unsigned c = 0; c < audio->channels; c++)
            sum += audio->weights[c] * frames[i * audio->channels + c];
        out[i] = sum;
        if (!isfinite(out[i]))
            return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: sample %llu is not a finite number",
                           audio->name, (unsigned long long)(audio->read + i));
    }
    audio->read += *n;
    audio->part_ended = *n < max;
    return AKUNU_OK;
}

static ak_status resample(struct ak_audio *audio, float *out, size_t max, size_t *n,
                          struct ak_error *error)
{
    if (audio->used_mixed == audio->n_mixed && !audio->part_ended) {
        audio->used_mixed = audio->n_mixed = 0;
        AK_TRY(mix(audio, audio->mixed, PIECE, &audio->n_mixed, error));
    }
    return resample_piece(audio, out, max, n, error);
}

/* Begins part `i`, of which nothing is read yet. */
static void begin_part(struct ak_audio *audio, size_t i)
{
    ak_decoder_close(audio->decoder);
    audio->decoder = NULL;
    audio->part = i;
    if (i < audio->parts.n) {
        audio->rate = audio->parts.part[i].rate;
        audio->channels = audio->parts.part[i].channels;
    }
    audio->read = 0;
    audio->n_mixed = audio->used_mixed = 0;
    audio->part_ended = false;
    reset_resampler(audio);
}

static void end_part(struct ak_audio *audio)
{
    audio->read_seconds += (double)audio->read / audio->rate;
    audio->ended = audio->part + 1 >= audio->parts.n;
    if (!audio->ended)
        begin_part(audio, audio->part + 1);
    if (audio->ended && !audio->is_counted) {
        audio->seconds = audio->read_seconds;
        audio->is_counted = true;
    }
}

/* Samples beyond the range of 16 bits are cut off at it: openai-whisper reads files so. Decoders of
 * loud music and resamplers exceed it. */
static void clip_samples(float *samples, size_t n)
{
    for (size_t i = 0; i < n; i++)
        samples[i] = fminf(fmaxf(samples[i], -1.0f), 1.0f);
}

ak_status ak_audio_read(struct ak_audio *audio, float *out, size_t max, size_t *n,
                        struct ak_error *error)
{
    if (audio->ranges)
        return ak_ranges_read(audio->ranges, out, max, n, error);
    *n = 0;
    while (*n < max && !audio->ended) {
        size_t got = 0;
        bool is_direct = audio->rate == AK_MEL_RATE;
        if (is_direct)
            AK_TRY(mix(audio, out + *n, ak_min_size(max - *n, PIECE), &got, error));
        else
            AK_TRY(resample(audio, out + *n, max - *n, &got, error));
        if (!audio->samples)
            clip_samples(out + *n, got);
        *n += got;
        if (audio->part_ended && (is_direct || got == 0))
            end_part(audio);
    }
    return AKUNU_OK;
}

ak_status ak_audio_rewind(struct ak_audio *audio, struct ak_error *error)
{
    if (audio->ranges)
        return ak_ranges_rewind(audio->ranges, error);
    begin_part(audio, 0);
    audio->read_seconds = 0.0;
    audio->ended = false;
    return AKUNU_OK;
}

double ak_audio_seconds(const struct ak_audio *audio)
{
    return audio->seconds;
}

const char *ak_audio_warning(const struct ak_audio *audio)
{
    return audio->parts.warning[0] != '\0' ? audio->parts.warning : NULL;
}

void ak_audio_close(struct ak_audio *audio)
{
    if (!audio)
        return;
    ak_decoder_close(audio->decoder);
    close_resampler(audio);
    if (audio->fd >= 0)
        close(audio->fd);
    ak_spool_close(&audio->spool);
    ak_parts_free(&audio->parts);
    ak_ranges_free(audio->ranges);
    ak_free(audio->frames);
    ak_free(audio->name);
    ak_free(audio);
}
