/* Reads, completes and writes the measured chip profile of this machine. */
#include "engine/session/calibration.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/chip.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "files/store/store.h"

enum { PATH_BYTES = 4096, KEY_DIGITS = 16, KEY_TEXT_BYTES = 256 };

/* False: the path is too long. */
static bool make_path(const struct ak_backend *backend, unsigned threads, const char *dir,
                      char path[PATH_BYTES])
{
    struct ak_chip chip;
    struct ak_sha256 hash;
    char text[KEY_TEXT_BYTES], hex[AK_SHA256_HEX_BYTES];
    ak_chip_detect(&chip);
    int n = snprintf(text, sizeof text, "%s\n%s\n%u\n%d.%d.%d", chip.identity,
                     backend->ops->describe(backend), threads, AKUNU_VERSION_MAJOR,
                     AKUNU_VERSION_MINOR, AKUNU_VERSION_PATCH);
    ak_sha256_begin(&hash);
    ak_sha256_add(&hash, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
    ak_sha256_end_hex(&hash, hex);
    n = snprintf(path, PATH_BYTES, "%s/chip-%.*s.yaml", dir, (int)KEY_DIGITS, hex);
    return n > 0 && n < PATH_BYTES;
}

static void read_measured(const char *path, const struct ak_log *log,
                          struct ak_backend_profile *measured)
{
    struct ak_error error = { 0 };
    struct stat found;
    if (stat(path, &found) == 0 && ak_backend_profile_read(path, log, measured, &error) != AKUNU_OK)
        ak_log_line(log, AKUNU_LOG_WARN, "the measured profile is damaged and made again: %s",
                    error.message);
}

static void write_measured(const char *dir, const char *path, const struct ak_log *log,
                           const struct ak_backend_profile *measured)
{
    struct ak_error error = { 0 };
    char name[AK_SHOW_BYTES];
    int fd = ak_store_open_dir(dir, true);
    if (fd >= 0)
        close(fd);
    if (ak_backend_profile_write(measured, path, &error) == AKUNU_OK)
        ak_log_line(log, AKUNU_LOG_INFO, "measured profile written: %s", ak_show_path(path, name));
    else
        ak_log_line(log, AKUNU_LOG_INFO, "the measured profile is not kept: %s", error.message);
}

void ak_model_calibrate(struct ak_backend *backend, const struct ak_weights *weights,
                        struct ak_pool *pool, const struct akunu_load_params *params,
                        const struct ak_log *log, struct ak_backend_profile *profile)
{
    struct ak_error error = { 0 };
    struct ak_backend_profile measured = { 0 }, before;
    char path[PATH_BYTES], *own = NULL;
    const char *dir = NULL;
    if (!backend->ops->calibrate)
        return;
    if (!params->no_cache)
        dir = params->cache_dir ? params->cache_dir : (own = ak_store_default_dir());
    bool has_path = dir && make_path(backend, ak_pool_threads(pool), dir, path);
    if (has_path)
        read_measured(path, log, &measured);
    memcpy(&before, &measured, sizeof before);
    if (backend->ops->calibrate(backend, weights, pool, profile, &measured, &error) != AKUNU_OK)
        ak_log_line(log, AKUNU_LOG_WARN, "calibration: %s", error.message);
    if (has_path && memcmp(&before, &measured, sizeof before) != 0)
        write_measured(dir, path, log, &measured);
    ak_backend_profile_merge(&measured, profile);
    *profile = measured;
    ak_free(own);
}
