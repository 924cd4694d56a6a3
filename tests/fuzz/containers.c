/* The parts of audio files, found without decoding them, which is slower: whatever the bytes, each
 * part lies in the file or in the spool, the spool is not much larger than the file, and patches
 * lie in their parts. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "speech/audio/parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_part(const struct ak_parts *parts, const struct ak_audio_part *part, int64_t size)
{
    int64_t end = part->spooled ? parts->spool.n : size;
    if (part->first < 0 || part->n < 0 || part->first > end || part->n > end - part->first)
        abort();
    if (part->n_patches > AK_AUDIO_PART_PATCHES || part->n_prefix > AK_AUDIO_PART_PREFIX_MAX)
        abort();
    if (!(part->cut >= 0.0)) /* a number */
        abort();
    for (unsigned i = 0; i < part->n_patches; i++)
        if (part->patches[i].at < 0 || part->patches[i].n > sizeof part->patches[i].bytes)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ak_parts parts;
    struct ak_error error;
    int fd = memfd_create("containers", 0);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    if (ak_parts_find(&parts, fd, (int64_t)size, "file", &error) == AKUNU_OK)
        for (size_t i = 0; i < parts.n; i++)
            check_part(&parts, &parts.part[i], (int64_t)size);
    if (parts.spool.n > 64 * (int64_t)size + 4096) /* a page per packet of a byte */
        abort();
    ak_parts_free(&parts);
    close(fd);
    return 0;
}
