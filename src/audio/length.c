/* WAV and MP3 alone: of other formats libsndfile knows the length, or says that it does not. */
#include "audio/length.h"

#include <string.h>
#include <unistd.h>

enum {
    MP3_HEAD = 64, /* bytes of a frame that hold the beginning of a Xing header */
    WAV_CHUNKS_MAX = 64,
    WAV_UNKNOWN = 0x7fff0000 /* programs that write to a pipe give such a length, or a larger one */
};

uint32_t ak_wav_bytes(int fd, int64_t *at)
{
    unsigned char head[12];
    if (pread(fd, head, 12, 0) != 12 || memcmp(head, "RIFF", 4) != 0 ||
        memcmp(head + 8, "WAVE", 4) != 0)
        return 0;
    *at = 12;
    for (int i = 0; i < WAV_CHUNKS_MAX && pread(fd, head, 8, *at) == 8; i++) {
        uint32_t n = (uint32_t)head[4] | (uint32_t)head[5] << 8 | (uint32_t)head[6] << 16 |
                     (uint32_t)head[7] << 24;
        *at += 8;
        if (memcmp(head, "data", 4) == 0)
            return n < WAV_UNKNOWN ? n : 0;
        *at += (int64_t)n + n % 2;
    }
    return 0;
}

bool ak_mp3_has_length(int fd)
{
    unsigned char head[MP3_HEAD];
    int64_t at = 0;
    if (pread(fd, head, 10, 0) == 10 && memcmp(head, "ID3", 3) == 0)
        at = 10 + ((head[6] & 0x7f) << 21 | (head[7] & 0x7f) << 14 | (head[8] & 0x7f) << 7 |
                   (head[9] & 0x7f));
    ssize_t n = pread(fd, head, sizeof head, at);
    for (ssize_t i = 0; i + 4 <= n; i++)
        if (memcmp(head + i, "Xing", 4) == 0 || memcmp(head + i, "Info", 4) == 0)
            return true;
    return false;
}
