/* Header of a cache file, the check of a whole file, and the progress of its writer. */
#include "files/store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const magics[] = {
    [AK_STORE_PACKED] = "akunuPKD", [AK_STORE_PROMPT] = "akunuKVS"
};
static const char progress_magic[] = "akunuPRT";
static const uint32_t byte_order = 0x01020304;

enum {
    AT_VERSION = 8,
    AT_ORDER = 12,
    AT_BYTES = 16,
    AT_BUILT = 24,
    AT_KEY = 32,
    AT_SOURCE_BYTES = 64,
    AT_SOURCE_TIME = 72,
    AT_TOKENS = 80,
    AT_BACKEND = 96,
    AT_SOURCE = 128,
    AT_DIGEST = AT_SOURCE + AK_STORE_SOURCE_BYTES,
    AT_SUM = AK_STORE_HEADER_BYTES - AK_SHA256_BYTES
};

static void checksum(const uint8_t *page, uint8_t sum[AK_SHA256_BYTES])
{
    struct ak_sha256 h;
    ak_sha256_begin(&h);
    ak_sha256_add(&h, page, AT_SUM);
    ak_sha256_end(&h, sum);
}

/* Numbers are in this machine's byte order, as the block is; `byte_order` detects another. */
void ak_store_header_write(const struct ak_store_header *header,
                           uint8_t page[AK_STORE_HEADER_BYTES])
{
    const uint32_t version = AK_STORE_VERSION;
    memset(page, 0, AK_STORE_HEADER_BYTES);
    memcpy(page, magics[header->kind], 8);
    memcpy(page + AT_VERSION, &version, 4);
    memcpy(page + AT_ORDER, &byte_order, 4);
    memcpy(page + AT_BYTES, &header->block_bytes, 8);
    memcpy(page + AT_BUILT, &header->built, 8);
    memcpy(page + AT_KEY, header->key.digest, sizeof header->key.digest);
    memcpy(page + AT_SOURCE_BYTES, &header->source_bytes, 8);
    memcpy(page + AT_SOURCE_TIME, &header->source_mtime_ns, 8);
    memcpy(page + AT_BACKEND, header->backend, sizeof header->backend);
    memcpy(page + AT_SOURCE, header->source, sizeof header->source);
    memcpy(page + AT_TOKENS, &header->n_tokens, 8);
    memcpy(page + AT_DIGEST, header->digest, sizeof header->digest);
    checksum(page, page + AT_SUM);
}

bool ak_store_header_read(const uint8_t page[AK_STORE_HEADER_BYTES], struct ak_store_header *out)
{
    uint8_t sum[AK_SHA256_BYTES];
    uint32_t version, order;
    memcpy(&version, page + AT_VERSION, 4);
    memcpy(&order, page + AT_ORDER, 4);
    checksum(page, sum);
    out->kind = memcmp(page, magics[AK_STORE_PROMPT], 8) == 0 ? AK_STORE_PROMPT : AK_STORE_PACKED;
    if (memcmp(page, magics[out->kind], 8) != 0 || version != AK_STORE_VERSION ||
        order != byte_order || memcmp(sum, page + AT_SUM, sizeof sum) != 0)
        return false;
    memcpy(&out->block_bytes, page + AT_BYTES, 8);
    memcpy(&out->built, page + AT_BUILT, 8);
    memcpy(out->key.digest, page + AT_KEY, sizeof out->key.digest);
    memcpy(&out->source_bytes, page + AT_SOURCE_BYTES, 8);
    memcpy(&out->source_mtime_ns, page + AT_SOURCE_TIME, 8);
    memcpy(out->backend, page + AT_BACKEND, sizeof out->backend);
    memcpy(out->source, page + AT_SOURCE, sizeof out->source);
    memcpy(&out->n_tokens, page + AT_TOKENS, 8);
    memcpy(out->digest, page + AT_DIGEST, sizeof out->digest);
    if (out->backend[sizeof out->backend - 1] == '\0' &&
        out->source[sizeof out->source - 1] == '\0')
        return true;
    *out = (struct ak_store_header){ 0 };
    return false;
}

bool ak_store_check(int fd, struct ak_store_header *out)
{
    uint8_t page[AK_STORE_HEADER_BYTES];
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || (st.st_mode & (S_IWGRP | S_IWOTH)) ||
        (st.st_uid != geteuid() && st.st_uid != 0))
        return false;
    if (st.st_size < AK_STORE_HEADER_BYTES ||
        pread(fd, page, sizeof page, 0) != (ssize_t)sizeof page || !ak_store_header_read(page, out))
        return false;
    uint64_t begin = out->kind == AK_STORE_PROMPT ? AK_STORE_HEADER_BYTES : AK_STORE_BLOCK_OFFSET,
             bytes = (uint64_t)st.st_size;
    return out->block_bytes > 0 && bytes > begin && out->block_bytes == bytes - begin &&
           st.st_mtim.tv_sec == out->built && st.st_mtim.tv_nsec == 0;
}

void ak_store_header_set_source(struct ak_store_header *header, const struct ak_provider *provider)
{
    struct ak_provider_fingerprint source;
    ak_provider_fingerprint(provider, &source);
    header->source_bytes = source.bytes;
    header->source_mtime_ns = source.mtime_ns;
    char *path = realpath(source.path, NULL);
    if (path && strlen(path) < sizeof header->source)
        snprintf(header->source, sizeof header->source, "%s", path);
    free(path); /* allocated by the C library */
}

/* ---- How far a writer is ------------------------------------------------ */
struct progress {
    char magic[8];
    uint64_t done, total;
};

bool ak_store_put_progress(int fd, uint64_t done, uint64_t total)
{
    struct progress p = { .done = done, .total = total };
    memcpy(p.magic, progress_magic, 8);
    return pwrite(fd, &p, sizeof p, 0) == (ssize_t)sizeof p;
}

bool ak_store_get_progress(int fd, uint64_t *done, uint64_t *total)
{
    struct progress p;
    if (pread(fd, &p, sizeof p, 0) != (ssize_t)sizeof p ||
        memcmp(p.magic, progress_magic, 8) != 0 || p.done > p.total || p.total == 0)
        return false;
    *done = p.done;
    *total = p.total;
    return true;
}
