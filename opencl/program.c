/* Builds OpenCL programs, and keeps their binaries in the cache folder. */
#include "opencl/opencl.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "files/store/store.h"

enum {
    HASH_BYTES = 16,
    HEAD_BYTES = 8 + HASH_BYTES,
    NAME_BYTES = 40,
    BINARY_BYTES_MAX = 256 << 20,
    LOG_SHOWN = 600
};
static const char magic[] = "akunuOCL";

/* ---- What earlier processes kept ---------------------------------------- */
static void hash_text(uint64_t state[2], const char *text)
{
    ak_hash128(text, strlen(text), state);
}

static void make_name(const struct ak_ocl_builder *b, const char *const *sources, uint32_t n,
                      const char *options, char name[NAME_BYTES])
{
    uint64_t state[2] = { 0 };
    hash_text(state, b->device->platform_name);
    hash_text(state, b->device->name);
    hash_text(state, b->device->vendor);
    hash_text(state, b->device->version);
    hash_text(state, b->device->driver);
    hash_text(state, options);
    for (uint32_t i = 0; i < n; i++)
        hash_text(state, sources[i]);
    snprintf(name, NAME_BYTES, "%016llx%016llx.bin", (unsigned long long)state[0],
             (unsigned long long)state[1]);
}

static int open_folder(const struct ak_ocl_builder *b)
{
    char path[4096];
    char *own = b->cache_dir ? NULL : ak_store_default_dir();
    const char *dir = b->cache_dir ? b->cache_dir : own;
    int fd = -1;
    if (dir && (size_t)snprintf(path, sizeof path, "%s/opencl", dir) < sizeof path)
        fd = ak_store_open_dir(path, true);
    ak_free(own);
    return fd;
}

static bool read_whole(int fd, uint8_t *to, size_t n)
{
    for (ssize_t got; n > 0; to += got, n -= (size_t)got)
        if ((got = read(fd, to, n)) <= 0)
            return false;
    return true;
}

static bool write_all(int fd, const uint8_t *from, size_t n)
{
    for (ssize_t done; n > 0; from += done, n -= (size_t)done)
        if ((done = write(fd, from, n)) <= 0)
            return false;
    return true;
}

/* Reads a binary if it is this user's, complete and unchanged: *n bytes. NULL: none. */
static uint8_t *read_binary(int dir, const char *name, size_t *n)
{
    struct stat info;
    uint8_t head[HEAD_BYTES], *binary = NULL;
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
        info.st_size > HEAD_BYTES && info.st_size < BINARY_BYTES_MAX &&
        read_whole(fd, head, sizeof head) && memcmp(head, magic, 8) == 0) {
        uint64_t state[2] = { 0 };
        *n = (size_t)info.st_size - HEAD_BYTES;
        binary = ak_alloc(*n, 1);
        if (binary && read_whole(fd, binary, *n))
            ak_hash128(binary, *n, state);
        if (binary && memcmp(state, head + 8, HASH_BYTES) != 0) {
            ak_free(binary);
            binary = NULL;
        }
    }
    close(fd);
    return binary;
}

/* Under a temporary name first, so that nobody sees an incomplete file. */
static void write_binary(int dir, const char *name, const uint8_t *binary, size_t n)
{
    char temp_name[NAME_BYTES + 24];
    uint8_t head[HEAD_BYTES];
    uint64_t state[2] = { 0 };
    ak_hash128(binary, n, state);
    memcpy(head, magic, 8);
    memcpy(head + 8, state, HASH_BYTES);
    snprintf(temp_name, sizeof temp_name, "%s.%ld.part", name, (long)getpid());
    int fd = openat(dir, temp_name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    bool written = write_all(fd, head, sizeof head) && write_all(fd, binary, n);
    if (close(fd) != 0 || !written || renameat(dir, temp_name, dir, name) != 0)
        (void)unlinkat(dir, temp_name, 0);
}

static void store_program(const struct ak_ocl_builder *b, int dir, const char *name,
                          cl_program program)
{
    size_t bytes = 0;
    if (b->cl->clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, NULL) !=
            CL_SUCCESS ||
        bytes == 0 || bytes >= BINARY_BYTES_MAX)
        return;
    unsigned char *binary = ak_alloc(bytes, 1);
    if (binary && b->cl->clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binary, &binary,
                                          NULL) == CL_SUCCESS)
        write_binary(dir, name, binary, bytes);
    ak_free(binary);
}

static cl_program load_program(const struct ak_ocl_builder *b, int dir, const char *name,
                               const char *options)
{
    size_t n = 0;
    uint8_t *binary = read_binary(dir, name, &n);
    const unsigned char *at = binary;
    cl_int code = CL_SUCCESS, of_binary = CL_SUCCESS;
    if (!binary)
        return NULL;
    cl_program program =
        b->cl->clCreateProgramWithBinary(b->context, 1, &b->device->id, &n, &at, &of_binary, &code);
    ak_free(binary);
    if (code == CL_SUCCESS &&
        b->cl->clBuildProgram(program, 1, &b->device->id, options, NULL, NULL) == CL_SUCCESS)
        return program;
    if (code == CL_SUCCESS)
        b->cl->clReleaseProgram(program);
    return NULL;
}

/* ---- Building ----------------------------------------------------------- */
/* The beginning of a text as one line: runs of whitespace become a space. */
static void trim(const char *text, char out[LOG_SHOWN])
{
    size_t n = 0;
    for (; *text && n + 1 < LOG_SHOWN; text++) {
        bool is_space = *text == ' ' || *text == '\t' || *text == '\r' || *text == '\n';
        if (!is_space || (n > 0 && out[n - 1] != ' '))
            out[n++] = is_space ? ' ' : *text;
    }
    n -= n > 0 && out[n - 1] == ' ';
    out[n] = 0;
}

/* Fails with the beginning of the compiler's output; the log has all of it. */
static ak_status fail_build(const struct ak_ocl_builder *b, cl_program program, cl_int code,
                            struct ak_error *error)
{
    size_t n = 0;
    char *text = NULL, shown[LOG_SHOWN];
    if (b->cl->clGetProgramBuildInfo(program, b->device->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &n) ==
            CL_SUCCESS &&
        n > 0 && n < BINARY_BYTES_MAX)
        text = ak_alloc(n + 1, 1);
    if (text && b->cl->clGetProgramBuildInfo(program, b->device->id, CL_PROGRAM_BUILD_LOG, n, text,
                                             NULL) != CL_SUCCESS)
        text[0] = 0;
    for (const char *line = text; line && *line; line += strspn(line, "\n")) {
        size_t length = strcspn(line, "\n");
        ak_log_line(b->log, AKUNU_LOG_WARN, "opencl: %.*s", (int)length, line);
        line += length;
    }
    trim(text && text[0] ? text : "it does not say why", shown);
    ak_free(text);
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s does not build akunu's kernels (%s): %s",
                   b->device->name, ak_ocl_error_name(code), shown);
}

ak_status ak_ocl_build_program(const struct ak_ocl_builder *b, const char *const *sources,
                               uint32_t n, const char *options, cl_program *out,
                               struct ak_error *error)
{
    char name[NAME_BYTES];
    const char *texts[AK_OCL_SOURCES_MAX];
    cl_int code;
    int dir = b->cache_dir && !*b->cache_dir ? -1 : open_folder(b);
    make_name(b, sources, n, options, name);
    *out = dir >= 0 ? load_program(b, dir, name, options) : NULL;
    if (*out) {
        close(dir);
        return AKUNU_OK;
    }
    for (uint32_t i = 0; i < n; i++)
        texts[i] = sources[i];
    ak_status status = AKUNU_OK;
    cl_program program = b->cl->clCreateProgramWithSource(b->context, n, texts, NULL, &code);
    if (code != CL_SUCCESS)
        status = ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s takes no kernels: %s", b->device->name,
                         ak_ocl_error_name(code));
    else if ((code = b->cl->clBuildProgram(program, 1, &b->device->id, options, NULL, NULL)) !=
             CL_SUCCESS)
        status = fail_build(b, program, code, error);
    if (status == AKUNU_OK && dir >= 0)
        store_program(b, dir, name, program);
    if (status != AKUNU_OK && program)
        b->cl->clReleaseProgram(program);
    *out = status == AKUNU_OK ? program : NULL;
    if (dir >= 0)
        close(dir);
    return status;
}
