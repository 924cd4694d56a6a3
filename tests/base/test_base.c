/* base: errors, memory, files and cursors, hashes, threads. */
#include "tests/test.h"
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/chip.h"
#include "base/error.h"
#include "base/file.h"
#include "base/half.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/json/wide.h"
#include "base/system.h"
#include "base/thread.h"
#include "base/utf8.h"

/* ---- Messages ----------------------------------------------------------- */
START_TEST(messages)
{
    struct ak_error error;
    char text[2 * AK_ERROR_MESSAGE_BYTES];
    ck_assert_int_eq(ak_fail(NULL, AKUNU_ERROR_IO, "unheard"), AKUNU_ERROR_IO);
    ck_assert_int_eq(ak_fail(&error, AKUNU_ERROR_IO, "a\tb\033[2J%s", "\xc2\x9b"), AKUNU_ERROR_IO);
    ck_assert_str_eq(error.message, "a?b?[2J??");
    ck_assert_int_eq(error.status, AKUNU_ERROR_IO);
    ak_error_prefix(&error, "there");
    ck_assert_int_eq(error.status, AKUNU_ERROR_IO);
    ak_error_prefix(NULL, "unheard");
    ck_assert_str_eq(error.message, "there: a?b?[2J??");
    ak_fail_memory(&error, "a thing", 12);
    ck_assert_str_eq(error.message, "out of memory for a thing (12 bytes)");

    /* Cut between characters, wherever they lie. */
    for (size_t before = 0; before < 4; before++) {
        memset(text, 'x', before);
        size_t n = before;
        while (n + 3 < sizeof text - 3) {
            memcpy(text + n, "€", 3);
            n += 3;
        }
        text[n] = '\0';
        ak_fail(&error, AKUNU_ERROR_IO, "%s", text);
        size_t length = strlen(error.message);
        ck_assert_uint_ge(length, AK_ERROR_MESSAGE_BYTES - 3);
        ck_assert(ak_is_utf8(error.message, length));
        ck_assert_mem_eq(error.message, text, length);
    }
}
END_TEST

START_TEST(show)
{
    char out[AK_SHOW_BYTES], text[1000];
    ck_assert_str_eq(ak_show("plain ž", 8, out), "plain ž");
    ck_assert_str_eq(ak_show("a\0b\n\xff\xc3", 6, out), "a\\x00b\\x0a\\xff\\xc3");
    ck_assert_str_eq(ak_show("\xed\xa0\x80\xc0\x80", 5, out), "\\xed\\xa0\\x80\\xc0\\x80");
    memset(text, 1, sizeof text);
    ck_assert_uint_lt(strlen(ak_show(text, sizeof text, out)), AK_SHOW_BYTES);
    ck_assert_ptr_nonnull(strstr(out, "…"));
    memset(text, 'y', sizeof text);
    strcpy(text + 990, "/end.gguf");
    ak_show_path(text, out);
    ck_assert_uint_lt(strlen(out), AK_SHOW_BYTES);
    ck_assert(strncmp(out, "…y", 4) == 0 && strstr(out, "/end.gguf"));
    ck_assert_str_eq(ak_show_path("/short", out), "/short");
}
END_TEST

static void keep_line(enum akunu_log_level level, const char *line, void *user)
{
    snprintf(user, 64, "%d %s", (int)level, line);
}

START_TEST(logging)
{
    char line[64] = "";
    ak_log_line(NULL, AKUNU_LOG_INFO, "unheard");
    ak_log_line(&(struct ak_log){ NULL, NULL }, AKUNU_LOG_INFO, "unheard");
    ak_log_line(&(struct ak_log){ keep_line, line }, AKUNU_LOG_WARN, "%d things", 3);
    ck_assert_str_eq(line, "3 3 things");
}
END_TEST

START_TEST(environment)
{
    setenv("AKUNU_CPU", "avx2", 1);
    ck_assert_str_eq(ak_env("AKUNU_CPU"), "avx2");
    setenv("AKUNU_CPU", "", 1);
    ck_assert_ptr_null(ak_env("AKUNU_CPU"));
    unsetenv("AKUNU_CPU");
    ck_assert_ptr_null(ak_env("AKUNU_CPU"));
}
END_TEST

/* ---- Memory ------------------------------------------------------------- */
START_TEST(memory)
{
    size_t size;
    ck_assert(!ak_mul_size(SIZE_MAX / 2, 3, &size));
    ck_assert(ak_mul_size(3, 4, &size) && size == 12);
    ck_assert(!ak_add_size(SIZE_MAX, 1, &size));
    ck_assert_uint_eq(ak_round_up(65, 64), 128);
    ck_assert_ptr_null(ak_alloc(SIZE_MAX / 2, 3));
    ck_assert_ptr_null(ak_realloc(NULL, SIZE_MAX / 2, 3));
    ck_assert_ptr_null(ak_alloc_aligned(SIZE_MAX));
    ck_assert_ptr_null(ak_pages_alloc(SIZE_MAX));
    ck_assert_ptr_null(ak_pages_alloc(SIZE_MAX / 4));

    void *empty = ak_alloc(0, 8);
    ck_assert_ptr_nonnull(empty);
    ak_free(empty);
    uint8_t *bytes = ak_alloc(100, 3);
    for (int i = 0; i < 300; i++)
        ck_assert_uint_eq(bytes[i], 0);
    ak_free(bytes);
    bytes = ak_alloc_aligned(100);
    ck_assert_uint_eq((uintptr_t)bytes % AK_CACHE_LINE, 0);
    ck_assert_uint_eq(bytes[99], 0);
    ak_free(bytes);
    char *text = ak_strndup("abcdef", 3);
    ck_assert_str_eq(text, "abc");
    ak_free(text);

    static const size_t sizes[] = { 0, 1, 4096, (2 << 20) - 1, 2 << 20, (4 << 20) + 5 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint8_t *pages = ak_pages_alloc(sizes[i]);
        ck_assert_ptr_nonnull(pages);
        ck_assert_uint_eq((uintptr_t)pages % (2 << 20), 0);
        for (size_t j = 0; j < sizes[i]; j += 1000)
            ck_assert_uint_eq(pages[j], 0);
        if (sizes[i])
            pages[sizes[i] - 1] = 1;
        ak_pages_free(pages, sizes[i]);
    }
    ak_pages_free(NULL, 5);
}
END_TEST

/* ---- Files -------------------------------------------------------------- */
START_TEST(cursor)
{
    static const uint8_t data[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
    struct ak_cursor c = ak_cursor_init(data, sizeof data);
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64 = 5;
    const uint8_t *bytes;
    ck_assert(ak_cursor_read_u8(&c, &u8) && u8 == 1);
    ck_assert(ak_cursor_read_u16(&c, &u16) && u16 == 0x0302);
    ck_assert(ak_cursor_read_u32(&c, &u32) && u32 == 0x07060504);
    ck_assert_uint_eq(ak_cursor_offset(&c), 7);
    ck_assert_uint_eq(ak_cursor_bytes_left(&c), 8);
    struct ak_cursor again = c;
    ck_assert(ak_cursor_read_u64(&c, &u64) && u64 == UINT64_C(0x0f0e0d0c0b0a0908));
    ck_assert(ak_cursor_read_bytes(&c, 0, &bytes));
    ck_assert(!ak_cursor_read_u8(&c, &u8) && c.failed);

    ck_assert(!ak_cursor_read_bytes(&again, 9, &bytes));
    ck_assert(again.failed && !ak_cursor_read_u8(&again, &u8)); /* stays failed */
    ck_assert_uint_eq(ak_cursor_bytes_left(&again), 0);
    again = ak_cursor_init(data, sizeof data);
    ck_assert(!ak_cursor_read_bytes(&again, UINT64_MAX, &bytes));
    c = ak_cursor_init(NULL, 0);
    ck_assert(!ak_cursor_read_u8(&c, &u8));
}
END_TEST

static void check_refused(const char *path, const char *part)
{
    struct ak_file file = { .bytes = 1 };
    struct ak_error error;
    ck_assert_int_eq(ak_file_open(path, &file, &error), AKUNU_ERROR_FORMAT);
    ck_assert_msg(strstr(error.message, path) && strstr(error.message, part), "%s", error.message);
    ck_assert(!file.data && !file.path && file.bytes == 0);
}

START_TEST(files)
{
    char folder[] = "/tmp/akunu-test-XXXXXX", path[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    check_refused(folder, "a folder");
    check_refused("/dev/zero", "a device");
    snprintf(path, sizeof path, "%s/x", folder);
    check_refused(path, "no such file");
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    check_refused(path, "a pipe");
    unlink(path);
    ck_assert_int_eq(symlink(path, path), 0);
    check_refused(path, "loop");
    unlink(path);

    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    struct ak_file file;
    ck_assert_int_eq(ak_file_open(path, &file, NULL), AKUNU_OK);
    ck_assert(file.bytes == 0 && !file.data);
    ak_file_close(&file);
    ck_assert_int_eq(write(fd, "content", 7), 7);
    close(fd);
    ck_assert_int_eq(ak_file_open(path, &file, NULL), AKUNU_OK);
    unlink(path);
    ck_assert_uint_eq(file.bytes, 7);
    ck_assert_mem_eq(file.data, "content", 7);
    ck_assert_str_eq(file.path, path);
    ck_assert(file.mtime_ns > INT64_C(1500000000) * 1000000000);
    ak_file_close(&file);
    ck_assert_ptr_null(file.data);
    ak_file_close(&file);
    rmdir(folder);
}
END_TEST

/* ---- SHA-256: the examples of FIPS 180-4's authors, and a long message -- */
static void check_hash(const char *piece, size_t bytes, int times, const char *wanted)
{
    struct ak_sha256 h;
    char hex[AK_SHA256_HEX_BYTES];
    ak_sha256_begin(&h);
    for (int i = 0; i < times; i++)
        ak_sha256_add(&h, piece, bytes);
    ak_sha256_end_hex(&h, hex);
    ck_assert_str_eq(hex, wanted);
}

START_TEST(sha256)
{
    static const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    static const char many[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                               "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    check_hash("", 0, 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check_hash("abc", 3, 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check_hash(two_blocks, 56, 1,
               "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    check_hash(many, 100, 10000,
               "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    check_hash(many, 1, 1000000,
               "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}
END_TEST

/* ---- JSON --------------------------------------------------------------- */
/* Brackets in a string nest nothing, behind an escaped quote and before a string's end too. */
START_TEST(quoted_brackets)
{
    char text[2 * AK_JSON_DEPTH_MAX + 64];
    struct ak_error error;
    json_t *json = NULL;
    for (int i = 0; i < 2; i++) {
        int n = sprintf(text, "[\"%s", i == 0 ? "\\\"" : "");
        memset(text + n, '[', AK_JSON_DEPTH_MAX);
        strcpy(text + n + AK_JSON_DEPTH_MAX, i == 0 ? "\"]" : "\\\\\"]");
        ck_assert_msg(ak_json_parse(text, strlen(text), &json, &error) == AKUNU_OK, "%s: %s", text,
                      error.message);
        ck_assert_uint_eq(json_string_length(json_array_get(json, 0)), AK_JSON_DEPTH_MAX + 1);
        json_decref(json);
    }
    memset(text, '[', AK_JSON_DEPTH_MAX + 1);
    ck_assert_int_eq(ak_json_parse(text, AK_JSON_DEPTH_MAX + 1, &json, &error), AKUNU_ERROR_FORMAT);
    ck_assert_ptr_nonnull(strstr(error.message, "nesting"));
}
END_TEST

/* The texts that become wide numbers, or reals, or stay as they are. */
START_TEST(wide_numbers)
{
    static const struct {
        const char *text,
            *marked; /* marked: with the digits kept, $ for the mark; NULL: as it is */
    } cases[] = {
        { "[9223372036854775807, -9223372036854775808, 1.5, 1e308, -0]", NULL },
        { "[9223372036854775808]", "[{\"$\":\"9223372036854775808\"}]" },
        { "[-9223372036854775809,2]", "[{\"$\":\"-9223372036854775809\"},2]" },
        { "1.7976931348623157e+308", NULL }, /* the largest double */
        { "17976931348623157e292", NULL },
        { "0.0000017976931348623157e314", NULL },
        { "1.7976931348623159e+308", "{\"$\":\"1.7976931348623159e+308\"}" },
        { "-1E+999", "{\"$\":\"-1E+999\"}" },
        { "0e999", NULL },
        { "1e-999", NULL },
        { "\"12345678901234567890 \\\" NaN\"", NULL },
        { "{\"NaN\": NaN, \"a\": -Infinity}",
          "{\"NaN\": {\"$\":\"NaN\"}, \"a\": {\"$\":\"-Infinity\"}}" },
        { "12345678901234567890x", "{\"$\":\"12345678901234567890\"}x" },
        { "012345678901234567890", NULL },
        { "12345678901234567890.", NULL },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char marked[256], want[256], *end = want;
        const char *text = cases[i].text;
        for (const char *c = cases[i].marked ? cases[i].marked : text; *c; c++)
            end = *c == '$' ? stpcpy(end, "\xef\xbf\xbf") : (*end = *c, end + 1);
        *end = '\0';
        size_t n = ak_wide_mark(text, strlen(text), AK_WIDE_DIGITS | AK_WIDE_PYTHON, marked);
        marked[n] = '\0';
        ck_assert_str_eq(marked, want);
        ck_assert_uint_eq(ak_wide_mark(text, strlen(text), AK_WIDE_DIGITS | AK_WIDE_PYTHON, NULL),
                          n);
        ak_wide_unmark(marked);
        ck_assert_str_eq(marked, text);
    }
}
END_TEST

/* Who reads a text decides what its wide numbers are. */
START_TEST(readers_of_json)
{
    typedef ak_status reader(const void *bytes, size_t n, json_t **out, struct ak_error *error);
    static const struct {
        reader *read;
        bool digits, python;
    } readers[] = {
        { ak_json_parse, false, false },
        { ak_json_parse_file, false, true },
        { ak_json_parse_exact, true, true },
        { ak_json_parse_input, true, true },
    };
    static const char integer[] = "[1000000000000000019884624838656, 7]", nan[] = "[NaN]",
                      mark[] = "\xef\xbb\xbf[1]";
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
        struct ak_error error;
        json_t *json;
        ck_assert_int_eq(readers[i].read(integer, strlen(integer), &json, &error), AKUNU_OK);
        const json_t *first = json_array_get(json, 0);
        if (readers[i].digits)
            ck_assert_str_eq(ak_wide_text(first), "1000000000000000019884624838656");
        else
            ck_assert(json_is_real(first) && json_real_value(first) == 1e30);
        ck_assert(json_is_integer(json_array_get(json, 1)));
        json_decref(json);
        ak_status want = readers[i].python ? AKUNU_OK : AKUNU_ERROR_FORMAT;
        ck_assert_int_eq(readers[i].read(nan, strlen(nan), &json, &error), want);
        ck_assert(!json || strcmp(ak_json_kind(json_array_get(json, 0)), "NaN") == 0);
        json_decref(json);
        ck_assert_int_eq(readers[i].read(mark, strlen(mark), &json, &error), want);
        json_decref(json);
    }
    /* an object that looks like a mark is one only around a wide number */
    json_t *json = json_pack("{s:s}", "\xef\xbf\xbf", "12");
    ck_assert_ptr_null(ak_wide_text(json));
    json_decref(json);
}
END_TEST

/* ---- Halves: every float16 there is goes to float and back -------------- */
START_TEST(halves)
{
    for (uint32_t h = 0; h < 0x10000; h++) {
        float x = ak_f16_to_float((uint16_t)h);
        bool is_nan = (h & 0x7c00) == 0x7c00 && (h & 0x3ff);
        ck_assert_uint_eq(ak_float_to_f16(x), is_nan ? h | 0x200 : h);
#ifdef __FLT16_MANT_DIG__
        _Float16 native;
        uint16_t bits = (uint16_t)h;
        memcpy(&native, &bits, sizeof native);
        ck_assert(is_nan || ak_float_bits((float)native) == ak_float_bits(x));
#endif
        ck_assert_uint_eq(ak_float_to_bf16(ak_bf16_to_float((uint16_t)h)),
                          (h & 0x7f80) == 0x7f80 && (h & 0x7f) ? h | 0x40 : h);
    }
#ifdef __FLT16_MANT_DIG__
    for (uint64_t u = 0; u < UINT64_C(1) << 32; u += 10007) { /* rounding, over all exponents */
        float x = ak_bits_float((uint32_t)u);
        _Float16 native = (_Float16)x;
        uint16_t bits;
        memcpy(&bits, &native, sizeof bits);
        if (x == x)
            ck_assert_msg(ak_float_to_f16(x) == bits, "%a: %04x, not %04x", (double)x,
                          ak_float_to_f16(x), bits);
    }
#endif
    static const struct {
        float x;
        uint16_t f16, bf16;
    } cases[] = {
        { 65519.0f, 0x7bff, 0x4780 },          { 65520.0f, 0x7c00, 0x4780 },
        { 0x1p-25f, 0x0000, 0x3300 },          { 0x1.000002p-25f, 0x0001, 0x3300 },
        { 0x1.8p-24f, 0x0002, 0x33c0 },        { 1.0f + 0x1p-11f, 0x3c00, 0x3f80 },
        { 1.0f + 0x1.8p-10f, 0x3c02, 0x3f80 }, { 1.0f + 0x1p-8f, 0x3c04, 0x3f80 },
        { 1.0f + 0x1.8p-7f, 0x3c0c, 0x3f82 },  { -2.0f, 0xc000, 0xc000 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_uint_eq(ak_float_to_f16(cases[i].x), cases[i].f16);
        ck_assert_uint_eq(ak_float_to_bf16(cases[i].x), cases[i].bf16);
    }
}
END_TEST

/* ---- Threads ------------------------------------------------------------ */
enum { MAX_THREADS = 8 };

struct work {
    struct ak_pool *pool;
    unsigned n_threads;
    int rounds;
    int counts[MAX_THREADS][AK_CACHE_LINE / sizeof(int)]; /* not atomic: the barriers order them */
    atomic_uint wrong;
};

/* Every thread counts; between two barriers all counts are the same. */
static void count_together(void *context, unsigned thread)
{
    struct work *w = context;
    for (int round = 0; round < w->rounds; round++) {
        w->counts[thread][0]++;
        ak_pool_barrier(w->pool, thread);
        for (unsigned i = 0; i < w->n_threads; i++)
            if (w->counts[i][0] != w->counts[thread][0])
                atomic_fetch_add(&w->wrong, 1);
        ak_pool_barrier(w->pool, thread);
    }
}

static void run_pool(unsigned n_threads, int regions, int rounds)
{
    struct work w = { .n_threads = n_threads, .rounds = rounds };
    struct ak_error error;
    ck_assert_msg(ak_pool_create(n_threads, &w.pool, &error) == AKUNU_OK, "%s", error.message);
    ck_assert_uint_eq(ak_pool_threads(w.pool), n_threads);
    for (int region = 1; region <= regions; region++) {
        ak_pool_run(w.pool, count_together, &w);
        for (unsigned i = 0; i < n_threads; i++)
            ck_assert_int_eq(w.counts[i][0], region * rounds);
    }
    ck_assert_uint_eq(w.wrong, 0);
    ak_pool_free(w.pool);
}

START_TEST(pool)
{
    run_pool(1, 100, 3);
    run_pool(2, 200, 5);
    run_pool(3, 50, 0);
    run_pool(3, 50, 5);
}
END_TEST

/* All threads on one CPU: a thread that waits sleeps and leaves the CPU to the others. One
 * that spins until the system takes the CPU away would never leave it by itself. */
START_TEST(pool_oversubscribed)
{
    enum { REGIONS = 4, ROUNDS = 5, BARRIERS = REGIONS * 2 * ROUNDS };
    struct rusage before, after;
    cpu_set_t allowed, one;
    ck_assert_int_eq(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    CPU_ZERO(&one);
    for (size_t cpu = 0; CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &allowed))
            CPU_SET(cpu, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    ck_assert_int_eq(getrusage(RUSAGE_SELF, &before), 0);
    run_pool(MAX_THREADS, REGIONS, ROUNDS);
    ck_assert_int_eq(getrusage(RUSAGE_SELF, &after), 0);
    ck_assert_int_eq(sched_setaffinity(0, sizeof allowed, &allowed), 0);
    ck_assert_int_ge(after.ru_nvcsw - before.ru_nvcsw, BARRIERS);
}
END_TEST

/* Sleeping threads wake: a pause is longer than all spinning. */
START_TEST(pool_after_a_pause)
{
    struct work w = { .n_threads = 2, .rounds = 1 };
    ck_assert_int_eq(ak_pool_create(2, &w.pool, NULL), AKUNU_OK);
    for (int i = 0; i < 5; i++) {
        nanosleep(&(struct timespec){ 0, 20000000 }, NULL);
        ak_pool_run(w.pool, count_together, &w);
    }
    ck_assert_int_eq(w.counts[1][0], 5);
    ak_pool_free(w.pool);
    ak_pool_free(NULL);
}
END_TEST

START_TEST(pool_sizes)
{
    struct ak_pool *p;
    struct ak_error error;
    ck_assert_int_eq(ak_pool_create(0, &p, &error), AKUNU_ERROR_ARGUMENT);
    ck_assert_ptr_null(p);
    ck_assert_int_eq(ak_pool_create(1000000, &p, &error), AKUNU_ERROR_ARGUMENT);
    ck_assert_uint_ge(ak_physical_cores(), 1);
    ck_assert_int_le((int)ak_physical_cores(), (int)sysconf(_SC_NPROCESSORS_CONF));
}
END_TEST

START_TEST(system_lists)
{
    const char *list = "0-7,64,70-71\n";
    char text[16] = "x";
    unsigned long first, last;
    ck_assert(ak_system_parse_range(&list, &first, &last) && first == 0 && last == 7);
    ck_assert(ak_system_parse_range(&list, &first, &last) && first == 64 && last == 64);
    ck_assert(ak_system_parse_range(&list, &first, &last) && first == 70 && last == 71);
    ck_assert(!ak_system_parse_range(&list, &first, &last));
    ck_assert(!ak_system_read("/nowhere", text, sizeof text));
    ck_assert_str_eq(text, "");
}
END_TEST

static void put_file(const char *folder, const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert(fputs(text, f) >= 0 && fclose(f) == 0);
}

/* Four nodes, of which one has no CPU and one none that may be used. */
START_TEST(memory_nodes)
{
    static const char *const made[] = { "online", "node0/cpulist", "node1/cpulist", "node2/cpulist",
                                        "node4/cpulist" };
    static const char *const text[] = { "0-2,4\n", "0-3,8-11\n", "4-7,12-15\n", "\n", "16\n" };
    char folder[] = "/tmp/akunu-test-XXXXXX", path[128];
    struct ak_numa_nodes nodes;
    cpu_set_t allowed;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        snprintf(path, sizeof path, "%s/%.5s", folder, made[i]);
        if (i > 0)
            ck_assert_int_eq(mkdir(path, 0700), 0);
        put_file(folder, made[i], text[i]);
    }
    CPU_ZERO(&allowed);
    for (size_t cpu = 2; cpu < 14; cpu++)
        CPU_SET(cpu, &allowed);
    ak_numa_read(folder, &allowed, &nodes);
    ck_assert_uint_eq(nodes.n, 2);
    ck_assert_int_eq(CPU_COUNT(&nodes.cpus[0]), 6);
    ck_assert_int_eq(CPU_COUNT(&nodes.cpus[1]), 6);
    ck_assert(CPU_ISSET(3, &nodes.cpus[0]) && CPU_ISSET(8, &nodes.cpus[0]) &&
              CPU_ISSET(13, &nodes.cpus[1]));
    ak_numa_read("/nowhere", &allowed, &nodes);
    ck_assert_uint_eq(nodes.n, 0);
    ak_numa_detect(&nodes);
    ck_assert_uint_le(nodes.n, AK_NUMA_NODES_MAX);
    for (size_t i = sizeof made / sizeof *made; i-- > 0;) {
        snprintf(path, sizeof path, "%s/%s", folder, made[i]);
        unlink(path);
        snprintf(path, sizeof path, "%s/%.5s", folder, made[i]);
        rmdir(path);
    }
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

START_TEST(cpus)
{
    static const char *const bad[] = { "",     ",",      "1,",
                                       "-1",   "1-",     "2-1",
                                       "1024", "0-1024", "99999999999999999999",
                                       "x",    "1 2",    "1-2-3" };
    struct ak_cpus list;
    struct ak_error error;
    ck_assert_int_eq(ak_cpus_parse("0-2,8,1,10-10", &list, &error), AKUNU_OK);
    ck_assert_uint_eq(list.n, 5);
    ck_assert_uint_eq(list.cpu[2], 2);
    ck_assert_uint_eq(list.cpu[4], 10);
    ck_assert_int_eq(ak_cpus_parse("0-1023,0-1023", &list, &error), AKUNU_OK);
    ck_assert_uint_eq(list.n, AK_CPUS_MAX);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(ak_cpus_parse(bad[i], &list, &error) == AKUNU_ERROR_ARGUMENT,
                      "\"%s\" is taken", bad[i]);
}
END_TEST

START_TEST(pool_pinned)
{
    struct ak_pool *p;
    struct ak_error error;
    struct ak_cpus list = { .n = 1, .cpu = { 0 } };
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return;
    while (!CPU_ISSET(list.cpu[0], &allowed))
        list.cpu[0]++;
    ck_assert_int_eq(ak_pool_create(3, &p, &error), AKUNU_OK);
    ck_assert_int_eq(ak_pool_pin(p, &list, &error), AKUNU_OK);
    list.cpu[0] = AK_CPUS_MAX - 1;
    if (!CPU_ISSET(list.cpu[0], &allowed)) {
        ck_assert_int_eq(ak_pool_pin(p, &list, &error), AKUNU_ERROR_ARGUMENT);
        ck_assert_ptr_nonnull(strstr(error.message, "CPU 1023"));
    }
    ak_pool_free(p);
}
END_TEST

START_TEST(split)
{
    for (size_t count = 0; count < 40; count++)
        for (unsigned n = 1; n < 9; n++) {
            size_t next = 0, longest = 0, shortest = SIZE_MAX;
            for (unsigned i = 0; i < n; i++) {
                size_t begin, end;
                ak_chunk_range(count, n, i, &begin, &end);
                ck_assert_uint_eq(begin, next);
                ck_assert_uint_le(begin, end);
                ck_assert(end - begin <= shortest); /* the first ones are the longer ones */
                longest = ak_max_size(longest, end - begin);
                shortest = ak_min_size(shortest, end - begin);
                next = end;
            }
            ck_assert_uint_eq(next, count);
            ck_assert_uint_le(longest - shortest, 1);
        }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("base");
    TCase *t = tcase_create("base"), *threads = tcase_create("threads");
    suite_add_tcase(suite, t);
    suite_add_tcase(suite, threads);
    tcase_add_test(t, messages);
    tcase_add_test(t, show);
    tcase_add_test(t, logging);
    tcase_add_test(t, environment);
    tcase_add_test(t, memory);
    tcase_add_test(t, cursor);
    tcase_add_test(t, files);
    tcase_add_test(t, sha256);
    tcase_add_test(t, halves);
    tcase_add_test(threads, pool);
    tcase_add_test(threads, pool_oversubscribed);
    tcase_add_test(threads, pool_after_a_pause);
    tcase_add_test(threads, pool_sizes);
    tcase_add_test(threads, split);
    tcase_add_test(t, system_lists);
    tcase_add_test(t, memory_nodes);
    tcase_add_test(t, cpus);
    t = tcase_create("json");
    tcase_add_test(t, quoted_brackets);
    tcase_add_test(t, wide_numbers);
    tcase_add_test(t, readers_of_json);
    suite_add_tcase(suite, t);
    tcase_add_test(threads, pool_pinned);
    return test_run(suite);
}
