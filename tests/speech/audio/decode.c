/* Writes the samples that the library reads of an audio file to standard output, for
 * tests/golden/clips.py and audio_clips.py: 16,000 floats a second. Standard error gets the seconds
 * that the headers say, those that were read, and the warning. A FILE of "-" is standard input. */
#include <stdio.h>
#include <string.h>

#include "speech/audio/audio.h"

int main(int argc, char **argv)
{
    struct ak_audio *audio;
    struct ak_error error;
    float samples[4096];
    size_t n;
    const char *path = argc > 1 ? argv[1] : "-";
    ak_status status = strcmp(path, "-") == 0 ? ak_audio_open_fd(0, "-", &audio, &error) :
                                                ak_audio_open(path, &audio, &error);
    if (status != AKUNU_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    double stated = ak_audio_seconds(audio);
    do {
        status = ak_audio_read(audio, samples, 4096, &n, &error);
        if (status == AKUNU_OK)
            fwrite(samples, sizeof *samples, n, stdout);
    } while (status == AKUNU_OK && n == 4096);
    const char *warning = ak_audio_warning(audio);
    if (status == AKUNU_OK)
        fprintf(stderr, "%.4f %.4f %s\n", stated, ak_audio_seconds(audio), warning ? warning : "");
    else
        fprintf(stderr, "%s\n", error.message);
    ak_audio_close(audio);
    return status == AKUNU_OK ? 0 : 1;
}
