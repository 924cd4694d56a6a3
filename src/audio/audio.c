/* Sources of samples. A source gives interleaved floats; one path mixes, resamples and checks them,
 * whatever the source. Files are read with pread through libsndfile's virtual files: a map of a
 * file that somebody truncates would end the process. */
#include "config.h"

#include "audio/audio.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audio/length.h"
#include "audio/mel.h"
#include "audio/ranges.h"
#include "base/mem.h"
#include "base/system.h"
#include "base/utf8.h"

#ifdef HAVE_AK_AUDIO
#include <samplerate.h>
#include <sndfile.h>
#endif

enum {
    PIECE = 4096, /* samples mixed and resampled at once */
    CHANNELS_MAX = 64,
    RATE_MIN = 1000,
    RATE_MAX = 768000,
    SPOOL_BYTES = 1 << 16,
    PATH_BYTES = 4096,
    FORMAT_MPEG = 0x230000, /* SF_FORMAT_MPEG, which older libraries do not declare */
};

struct ak_audio {
    char *name;
    unsigned rate, channels;
    uint64_t n;      /* samples of a channel, as the header says */
    uint64_t read;   /* samples of a channel read until now */
    bool is_counted; /* n are those that were read to the end */

    const float *samples; /* a source in memory; NULL: a file, or ranges */
    struct ak_ranges *ranges;
    int fd;
    int64_t offset, bytes; /* of the file */
    float *frames;         /* [PIECE][channels] as the file has them */
    float mixed[PIECE];
    size_t n_mixed, used_mixed;
    bool ended; /* the source has no more */
#ifdef HAVE_AK_AUDIO
    SNDFILE *file;
    SRC_STATE *resampler; /* NULL: the rate is right */
#endif
};

static ak_status new_audio(const char *name, struct ak_audio **out, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    struct ak_audio *audio = ak_alloc(1, sizeof *audio);
    if (!audio)
        return ak_fail_memory(error, "audio", sizeof *audio);
    audio->fd = -1;
    name = ak_show_path(name, shown);
    audio->name = ak_strndup(name, strlen(name));
    if (!audio->name) {
        ak_free(audio);
        return ak_fail_memory(error, "a file's name", strlen(name) + 1);
    }
    *out = audio;
    return AKUNU_OK;
}

static ak_status check_layout(const struct ak_audio *audio, struct ak_error *error)
{
    if (audio->rate < RATE_MIN || audio->rate > RATE_MAX)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s: %u samples a second; expected %d to %d",
                       audio->name, audio->rate, RATE_MIN, RATE_MAX);
    if (audio->channels < 1 || audio->channels > CHANNELS_MAX)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s: %u channels; expected 1 to %d",
                       audio->name, audio->channels, CHANNELS_MAX);
    if (audio->n == 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: there is no sample in it", audio->name);
    return AKUNU_OK;
}

#ifdef HAVE_AK_AUDIO
/* ---- A file for libsndfile ---------------------------------------------- */
static sf_count_t file_bytes(void *user)
{
    return ((struct ak_audio *)user)->bytes;
}

static sf_count_t file_seek(sf_count_t offset, int whence, void *user)
{
    struct ak_audio *audio = user;
    sf_count_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? audio->offset : audio->bytes;
    if (offset < -base || offset > INT64_MAX - base)
        return -1;
    return audio->offset = base + offset;
}

static sf_count_t file_read(void *to, sf_count_t n, void *user)
{
    struct ak_audio *audio = user;
    sf_count_t done = 0;
    while (done < n) {
        ssize_t got = pread(audio->fd, (char *)to + done, (size_t)(n - done), audio->offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        done += got;
        audio->offset += got;
    }
    return done;
}

static sf_count_t file_write(const void *from, sf_count_t n, void *user)
{
    (void)from, (void)n, (void)user;
    return 0;
}

static sf_count_t file_tell(void *user)
{
    return ((struct ak_audio *)user)->offset;
}

static SF_VIRTUAL_IO file_calls = {
    .get_filelen = file_bytes,
    .seek = file_seek,
    .read = file_read,
    .write = file_write,
    .tell = file_tell,
};

/* Of a WAV file that was cut off, libsndfile counts what is there. */
static void count_cut(struct ak_audio *audio)
{
    int64_t at = 0;
    uint32_t n = ak_wav_bytes(audio->fd, &at);
    if (n > 0 && at < audio->bytes && n > audio->bytes - at)
        audio->n = (uint64_t)((double)audio->n * n / (double)(audio->bytes - at));
}

static SNDFILE *open_virtual(struct ak_audio *audio, SF_INFO *info)
{
    *info = (SF_INFO){ 0 };
    audio->offset = 0;
    return sf_open_virtual(&file_calls, SFM_READ, info, audio);
}

static ak_status open_decoder(struct ak_audio *audio, struct ak_error *error)
{
    SF_INFO info;
    if (audio->bytes == 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: the file is empty", audio->name);
    audio->file = open_virtual(audio, &info);
    if (!audio->file)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "%s: not audio that can be decoded (%s); WAV, FLAC, Ogg Vorbis, Opus, MP3, "
                       "AIFF and others of libsndfile can",
                       audio->name, sf_strerror(NULL));
    audio->rate = (unsigned)info.samplerate;
    audio->channels = (unsigned)info.channels;
    audio->n = info.frames > 0 ? (uint64_t)info.frames : 0;
    AK_TRY(check_layout(audio, error));
    count_cut(audio);
    if ((info.format & SF_FORMAT_TYPEMASK) == FORMAT_MPEG && !ak_mp3_has_length(audio->fd))
        audio->n = UINT64_MAX; /* unknown */
    audio->frames = ak_alloc((size_t)PIECE * audio->channels, sizeof *audio->frames);
    if (!audio->frames)
        return ak_fail_memory(error, "samples", (size_t)PIECE * audio->channels * sizeof(float));
    return AKUNU_OK;
}

static ak_status open_resampler(struct ak_audio *audio, struct ak_error *error)
{
    int code;
    if (audio->rate == AK_MEL_RATE)
        return AKUNU_OK;
    audio->resampler = src_new(SRC_SINC_MEDIUM_QUALITY, 1, &code);
    if (!audio->resampler)
        return ak_fail(error, AKUNU_ERROR_MEMORY, "%s: no resampler: %s", audio->name,
                       src_strerror(code));
    return AKUNU_OK;
}

/* Opens a file without a name. */
static ak_status open_unnamed(struct ak_audio *audio, struct ak_error *error)
{
    char path[PATH_BYTES], shown[AK_SHOW_BYTES];
    const char *folder = ak_env("TMPDIR");
    folder = folder && *folder ? folder : "/tmp";
    audio->fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (audio->fd < 0 &&
        (size_t)snprintf(path, sizeof path, "%s/akunu-XXXXXX", folder) < sizeof path) {
        audio->fd = mkostemp(path, O_CLOEXEC); /* a file system that has no O_TMPFILE */
        if (audio->fd >= 0)
            unlink(path);
    }
    if (audio->fd >= 0)
        return AKUNU_OK;
    int code = errno;
    return ak_fail(error, AKUNU_ERROR_IO, "%s: no temporary file in %s: %s", audio->name,
                   ak_show_path(folder, shown), strerror(code));
}

static ak_status append_bytes(struct ak_audio *audio, const char *bytes, size_t n,
                              struct ak_error *error)
{
    for (size_t done = 0; done < n;) {
        ssize_t put = write(audio->fd, bytes + done, n - done);
        if (put < 0 && errno != EINTR)
            return ak_fail(error, AKUNU_ERROR_IO, "%s: its temporary file: %s", audio->name,
                           strerror(errno));
        done += put > 0 ? (size_t)put : 0;
    }
    audio->bytes += (int64_t)n;
    return AKUNU_OK;
}

/* Copies a pipe's bytes to a file, since decoders go back and forth. */
static ak_status spool(struct ak_audio *audio, int fd, struct ak_error *error)
{
    char bytes[SPOOL_BYTES];
    AK_TRY(open_unnamed(audio, error));
    for (;;) {
        ssize_t got = read(fd, bytes, sizeof bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return ak_fail(error, AKUNU_ERROR_IO, "%s: cannot be read: %s", audio->name,
                           strerror(errno));
        if (got == 0)
            return AKUNU_OK;
        AK_TRY(append_bytes(audio, bytes, (size_t)got, error));
    }
}

static ak_status take_file(struct ak_audio *audio, int fd, struct ak_error *error)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "%s: not an open descriptor", audio->name);
    if (!S_ISREG(st.st_mode)) {
        AK_TRY(spool(audio, fd, error));
    } else {
        audio->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        if (audio->fd < 0)
            return ak_fail(error, AKUNU_ERROR_IO, "%s: cannot be opened: %s", audio->name,
                           strerror(errno));
        audio->bytes = st.st_size;
    }
    return AKUNU_OK;
}

/* Opens the file that it has as *out, or closes it. */
static ak_status finish(struct ak_audio *audio, ak_status status, struct ak_audio **out,
                        struct ak_error *error)
{
    if (status == AKUNU_OK)
        status = open_decoder(audio, error);
    if (status == AKUNU_OK)
        status = open_resampler(audio, error);
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
    return finish(audio, take_file(audio, fd, error), out, error);
}

ak_status ak_audio_open_bytes(const void *bytes, size_t n, const char *name, struct ak_audio **out,
                              struct ak_error *error)
{
    *out = NULL;
    struct ak_audio *audio = NULL;
    AK_TRY(new_audio(name, &audio, error));
    ak_status status = open_unnamed(audio, error);
    if (status == AKUNU_OK)
        status = append_bytes(audio, bytes, n, error);
    return finish(audio, status, out, error);
}

/* Up to `max` frames of the file, interleaved; fewer at its end. */
static size_t decode(struct ak_audio *audio, size_t max)
{
    sf_count_t got = sf_readf_float(audio->file, audio->frames, (sf_count_t)max);
    return got > 0 ? (size_t)got : 0;
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
        .end_of_input = audio->ended,
    };
    int code = src_process(audio->resampler, &data);
    if (code != 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: cannot be resampled: %s", audio->name,
                       src_strerror(code));
    audio->used_mixed += (size_t)data.input_frames_used;
    *n = (size_t)data.output_frames_gen;
    return AKUNU_OK;
}

/* A decoder that met damage does not always go back to the beginning; a new one meets it at the
 * same sample. */
static ak_status renew_decoder(struct ak_audio *audio, struct ak_error *error)
{
    SF_INFO info;
    if (audio->file)
        sf_close(audio->file);
    audio->file = open_virtual(audio, &info);
    if (!audio->file)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "%s: damaged, it cannot be decoded a second time (libsndfile: %s)",
                       audio->name, sf_strerror(NULL));
    if (info.channels == (int)audio->channels && info.samplerate == (int)audio->rate)
        return AKUNU_OK;
    sf_close(audio->file);
    audio->file = NULL;
    return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: the file was changed while it was read",
                   audio->name);
}

static ak_status rewind_decoder(struct ak_audio *audio, struct ak_error *error)
{
    bool is_file = audio->fd >= 0;
    if (is_file && (!audio->file || sf_seek(audio->file, 0, SEEK_SET) != 0))
        AK_TRY(renew_decoder(audio, error));
    if (audio->resampler)
        src_reset(audio->resampler);
    return AKUNU_OK;
}

static void close_decoder(struct ak_audio *audio)
{
    if (audio->file)
        sf_close(audio->file);
    if (audio->resampler)
        src_delete(audio->resampler);
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
#else
/* ---- Without the libraries ---------------------------------------------- */
static const char absent[] = "akunu was built without libsndfile and libsamplerate";

ak_status ak_audio_open(const char *path, struct ak_audio **out, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    *out = NULL;
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s: %s", ak_show_path(path, shown), absent);
}

ak_status ak_audio_open_fd(int fd, const char *name, struct ak_audio **out, struct ak_error *error)
{
    (void)fd;
    return ak_audio_open(name, out, error);
}

ak_status ak_audio_open_bytes(const void *bytes, size_t n, const char *name, struct ak_audio **out,
                              struct ak_error *error)
{
    (void)bytes, (void)n;
    return ak_audio_open(name, out, error);
}

static ak_status open_resampler(struct ak_audio *audio, struct ak_error *error)
{
    if (audio->rate == AK_MEL_RATE)
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                   "%s: %u samples a second, where %d are expected: %s", audio->name, audio->rate,
                   AK_MEL_RATE, absent);
}

static size_t decode(struct ak_audio *audio, size_t max)
{
    (void)audio, (void)max;
    return 0;
}

static ak_status resample_piece(struct ak_audio *audio, float *out, size_t max, size_t *n,
                                struct ak_error *error)
{
    (void)out, (void)max;
    *n = 0;
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s: %s", audio->name, absent);
}

static ak_status rewind_decoder(struct ak_audio *audio, struct ak_error *error)
{
    (void)audio, (void)error;
    return AKUNU_OK;
}

static void close_decoder(struct ak_audio *audio)
{
    (void)audio;
}
#endif

/* ---- Samples ------------------------------------------------------------ */
ak_status ak_audio_open_samples(const float *samples, size_t n, unsigned rate,
                                struct ak_audio **out, struct ak_error *error)
{
    *out = NULL;
    struct ak_audio *audio = NULL;
    AK_TRY(new_audio("samples", &audio, error));
    audio->samples = samples;
    audio->n = n;
    audio->rate = rate;
    audio->channels = 1;
    ak_status status = check_layout(audio, error);
    if (status == AKUNU_OK)
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
    audio->n = ak_ranges_samples(audio->ranges);
    *out = audio;
    return AKUNU_OK;
}

/* ---- Reading ------------------------------------------------------------ */
/* Up to `max` frames of the source, interleaved; fewer at its end. */
static size_t read_frames(struct ak_audio *audio, size_t max, const float **out)
{
    *out = audio->samples ? audio->samples + audio->read : audio->frames;
    return audio->samples ? ak_min_size(max, (size_t)(audio->n - audio->read)) : decode(audio, max);
}

/* Mono samples of the source's rate: the mean of the channels. */
static ak_status mix(struct ak_audio *audio, float *out, size_t max, size_t *n,
                     struct ak_error *error)
{
    const float *frames;
    *n = read_frames(audio, max, &frames);
    for (size_t i = 0; i < *n; i++) {
        float sum = 0.0f;
        for (unsigned c = 0; c < audio->channels; c++)
            sum += frames[i * audio->channels + c];
        out[i] = sum / (float)audio->channels;
        if (!isfinite(out[i]))
            return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: sample %llu is not a finite number",
                           audio->name, (unsigned long long)(audio->read + i));
    }
    audio->read += *n;
    audio->ended = *n < max;
    if (audio->ended && !audio->is_counted) {
        audio->n = audio->read;
        audio->is_counted = true;
    }
    return AKUNU_OK;
}

static ak_status resample(struct ak_audio *audio, float *out, size_t max, size_t *n,
                          struct ak_error *error)
{
    *n = 0;
    while (*n < max) {
        size_t got = 0;
        if (audio->used_mixed == audio->n_mixed && !audio->ended) {
            audio->used_mixed = audio->n_mixed = 0;
            AK_TRY(mix(audio, audio->mixed, PIECE, &audio->n_mixed, error));
        }
        AK_TRY(resample_piece(audio, out + *n, max - *n, &got, error));
        *n += got;
        if (audio->ended && got == 0)
            break;
    }
    return AKUNU_OK;
}

ak_status ak_audio_read(struct ak_audio *audio, float *out, size_t max, size_t *n,
                        struct ak_error *error)
{
    if (audio->ranges)
        return ak_ranges_read(audio->ranges, out, max, n, error);
    if (audio->rate != AK_MEL_RATE)
        return resample(audio, out, max, n, error);
    *n = 0;
    while (*n < max && !audio->ended) {
        size_t got;
        AK_TRY(mix(audio, out + *n, ak_min_size(max - *n, PIECE), &got, error));
        *n += got;
    }
    return AKUNU_OK;
}

ak_status ak_audio_rewind(struct ak_audio *audio, struct ak_error *error)
{
    if (audio->ranges)
        return ak_ranges_rewind(audio->ranges, error);
    AK_TRY(rewind_decoder(audio, error));
    audio->read = 0;
    audio->n_mixed = audio->used_mixed = 0;
    audio->ended = false;
    return AKUNU_OK;
}

double ak_audio_seconds(const struct ak_audio *audio)
{
    /* libsndfile's count of a cut Ogg file is the largest integer there is. */
    return audio->n < 1ull << 48 ? (double)audio->n / audio->rate : 0.0;
}

void ak_audio_close(struct ak_audio *audio)
{
    if (!audio)
        return;
    close_decoder(audio);
    if (audio->fd >= 0)
        close(audio->fd);
    ak_ranges_free(audio->ranges);
    ak_free(audio->frames);
    ak_free(audio->name);
    ak_free(audio);
}
