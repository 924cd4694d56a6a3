/* Files of speech models: whisper.cpp's GGML files, and Silero's. Whatever the bytes: tensors lie
 * inside the file, and nothing is left after closing. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "speech/vad/silero.h"
#include "files/weights/provider.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sum;

static void read_provider(const char *path)
{
    struct ak_provider *p;
    struct ak_error error;
    struct ak_tensor t;
    struct ak_meta meta;
    struct ak_vocab vocab;
    if (ak_provider_open(path, &p, &error) != AKUNU_OK)
        return;
    for (size_t i = 0; ak_provider_tensor(p, i, &t); i++)
        for (uint64_t j = 0; !t.composed_tensor && j < t.bytes; j += 61)
            sum += ((const uint8_t *)t.data)[j];
    for (size_t i = 0; ak_provider_meta(p, i, &meta); i++)
        sum += meta.n;
    if (ak_provider_vocab(p, &vocab, &error) == AKUNU_OK)
        sum += vocab.model.n;
    ak_provider_close(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    struct ak_silero *silero;
    struct ak_error error;
    int fd = memfd_create("model", 0);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    read_provider(path);
    if (ak_silero_open(path, &silero, &error) == AKUNU_OK)
        ak_free(silero);
    close(fd);
    return 0;
}
