/* bench --load: from the start of loading to a ready session, and to the first token. Cold: the
 * model's files are out of the page cache; warm: they are in it. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/cli/bench/bench.h"
#include "apps/common/load.h"
#include "apps/common/message.h"

/* ---- Page cache --------------------------------------------------------- */
/* nftw passes no user pointer. */
static struct {
    double bytes, kept;
} dropped;

/* Bytes of the file in the page cache; all of them if this is unknown. */
static double resident_bytes(int fd, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), n = (bytes + page - 1) / page, in = n;
    void *map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    unsigned char *pages = malloc(n);
    if (map != MAP_FAILED && pages && mincore(map, bytes, pages) == 0) {
        in = 0;
        for (size_t i = 0; i < n; i++)
            in += pages[i] & 1;
    }
    free(pages);
    if (map != MAP_FAILED)
        munmap(map, bytes);
    return fmin((double)(in * page), (double)bytes); /* the last page goes on after the file */
}

/* Asks the kernel to drop the file's pages. It keeps pages that are dirty or mapped. */
static void drop_file(const char *path)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
        fsync(fd);
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        dropped.bytes += (double)info.st_size;
        dropped.kept += resident_bytes(fd, (size_t)info.st_size);
    }
    if (fd >= 0)
        close(fd);
}

static int on_cached(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)info;
    (void)where;
    if (kind == FTW_F)
        drop_file(path);
    return 0;
}

/* Drops the other files of a split model too: "…-00001-of-00003.gguf". */
static void drop_parts(const char *path)
{
    const char *of = strstr(path, "-of-");
    char part[4096];
    unsigned n;
    if (!of || of - path < 6 || strlen(path) >= sizeof part || sscanf(of, "-of-%5u.gguf", &n) != 1)
        return;
    for (unsigned i = 2; i <= n; i++) {
        snprintf(part, sizeof part, "%.*s-%05u%s", (int)(of - path - 6), path, i, of);
        drop_file(part);
    }
}

static void drop_cache_folder(const struct app_options *o)
{
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char folder[4096] = "";
    if (o->load.no_cache)
        return;
    if (o->load.cache_dir)
        snprintf(folder, sizeof folder, "%s", o->load.cache_dir);
    else if (base && *base)
        snprintf(folder, sizeof folder, "%s/akunu", base);
    else if (home)
        snprintf(folder, sizeof folder, "%s/.cache/akunu", home);
    if (folder[0])
        nftw(folder, on_cached, 8, FTW_PHYS);
}

/* Drops the model's files and the packed ones. Returns the share that stayed, 0 … 1. */
static double drop(const struct app_options *o, const char *path)
{
    dropped.bytes = dropped.kept = 0.0;
    drop_file(path);
    drop_parts(path);
    drop_cache_folder(o);
    return dropped.bytes > 0.0 ? dropped.kept / dropped.bytes : 0.0;
}

/* ---- Loading ------------------------------------------------------------ */
enum { CONTEXT = 512 }; /* unless -c is given */

/* *loaded stays loaded: call app_unload whatever the code. */
static int load_once(const struct app_options *o, struct app_model_session *loaded, double *ready,
                     double *first)
{
    double started = app_seconds();
    int code = app_load_model(o, loaded);
    uint32_t context = loaded->info.context < CONTEXT ? loaded->info.context : CONTEXT;
    if (code == APP_EXIT_OK)
        code = app_open_session(o, loaded, context);
    *ready = app_seconds() - started;
    if (code == APP_EXIT_OK) {
        struct akunu_batch_token token = { .token = 0,
                                           .sequence = loaded->sequence,
                                           .logits = true };
        if (akunu_session_decode(loaded->session, &token, 1) != AKUNU_OK)
            code = app_fail_library();
    }
    *first = app_seconds() - started;
    return code;
}

static int time_loads(const struct app_options *o, const char *path, bool cold, double *seconds,
                      struct cli_bench_context *report)
{
    size_t n = (size_t)o->bench.repetitions;
    double *ready = seconds, *first = seconds + n, kept = 0.0;
    struct app_model_session loaded = { .sequence = -1 };
    int code = APP_EXIT_OK;
    for (size_t i = 0; i < n && code == APP_EXIT_OK; i++) {
        app_unload(&loaded);
        if (cold)
            kept = fmax(kept, drop(o, path));
        code = load_once(o, &loaded, &ready[i], &first[i]);
        if (code == APP_EXIT_OK && app_is_interrupted())
            code = APP_EXIT_INTERRUPTED;
    }
    if (code == APP_EXIT_OK) {
        struct cli_bench_load result = {
            .cold = cold, .ready = ready, .first = first, .n_samples = n, .kept = kept
        };
        if (kept > 0.05)
            app_warn("load-cold is not cold: %.0f %% of the files stayed in the page cache",
                     100.0 * kept);
        report->loaded = &loaded;
        cli_bench_load_row(report, &result);
        if (!app_output_flush(&report->out))
            code = APP_EXIT_FAILURE;
    }
    app_unload(&loaded);
    return code;
}

int cli_bench_loading(const struct app_options *o, struct cli_bench_context *report)
{
    struct app_model_session loaded = { .sequence = -1 };
    double ready, first, *seconds = malloc(2 * (size_t)o->bench.repetitions * sizeof *seconds);
    char *path = NULL;
    int code = seconds ? app_model_path(o, o->model.name, &path) : app_fail_memory();
    if (code == APP_EXIT_OK) /* untimed: it may pack first */
        code = load_once(o, &loaded, &ready, &first);
    app_unload(&loaded);
    if (code == APP_EXIT_OK)
        code = time_loads(o, path, true, seconds, report);
    if (code == APP_EXIT_OK)
        code = time_loads(o, path, false, seconds, report);
    free(path);
    free(seconds);
    return code;
}
