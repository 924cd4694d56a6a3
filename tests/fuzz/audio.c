/* Audio files of any kind, read twice, as a clip is: for its maximum, then for a window of log-mel
 * frames. Whatever the bytes, and though a damaged file need not give the same samples twice:
 * samples and frames are finite. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "speech/audio/clip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 1 << 20, MELS = 80, FRAMES = 40 };

static void check(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            abort();
}

/* Up to MOST samples. False: there are more, or an error came. */
static bool read_all(struct ak_audio *audio)
{
    float samples[1000];
    size_t n, total = 0;
    struct ak_error error;
    while (total < MOST) {
        if (ak_audio_read(audio, samples, 1000, &n, &error) != AKUNU_OK)
            return false;
        if (n == 0)
            return true;
        check(samples, n);
        total += n;
    }
    return false;
}

static void read_clip(struct ak_audio *audio)
{
    static struct ak_mel *mel;
    static float frames[FRAMES * MELS];
    struct ak_clip *clip;
    struct ak_error error;
    if (!mel && ak_mel_new(MELS, AK_MEL_BINS, NULL, &mel, &error) != AKUNU_OK)
        abort();
    if (ak_clip_new(audio, mel, NULL, NULL, &clip, &error) != AKUNU_OK)
        return;
    for (uint64_t first = 0; first < 3 * FRAMES; first += 2 * FRAMES)
        if (ak_clip_window(clip, first, FRAMES, frames, &error) == AKUNU_OK)
            check(frames, FRAMES * MELS);
    ak_clip_free(clip);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ak_audio *audio;
    struct ak_error error;
    int fd = memfd_create("audio", 0);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET) != 0)
        abort();
    if (ak_audio_open_fd(fd, "audio", &audio, &error) == AKUNU_OK) {
        if (read_all(audio))
            read_clip(audio);
        (void)ak_audio_seconds(audio);
        ak_audio_close(audio);
    }
    close(fd);
    return 0;
}
