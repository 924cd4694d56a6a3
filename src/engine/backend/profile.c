/* Chip profiles as YAML files, read event by event, since the format is flat. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml.h>

#include "engine/backend/profile.h"
#include "base/chip.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/system.h"
#include "base/utf8.h"

enum {
    FILE_BYTES_MAX = 1 << 16,
    PATH_BYTES = 4096,
    THREADS_MAX = 1024,
    CHUNK_MAX = 65536,
    PRICE_MAX = 1000
};

static const char *const class_names[AK_BACKEND_PROFILE_CLASSES] = {
    [AK_BACKEND_PROFILE_FLOAT] = "float",
    [AK_BACKEND_PROFILE_SCALE32] = "scale32",
    [AK_BACKEND_PROFILE_SCALE256] = "scale256",
};

struct reader {
    yaml_parser_t parser;
    yaml_event_t event; /* the current one */
    const char *name;
    char *machine; /* [AK_CHIP_IDENTITY_BYTES] */
    struct ak_error *error;
};

/* ---- Events ------------------------------------------------------------- */
static unsigned long line_of(const struct reader *r)
{
    return (unsigned long)r->event.start_mark.line + 1;
}

static ak_status next(struct reader *r)
{
    yaml_event_delete(&r->event);
    memset(&r->event, 0, sizeof r->event);
    if (yaml_parser_parse(&r->parser, &r->event))
        return AKUNU_OK;
    if (r->parser.error == YAML_MEMORY_ERROR)
        return ak_fail_memory(r->error, "a chip profile", 0);
    return ak_fail(r->error, AKUNU_ERROR_ARGUMENT, "%s:%lu: no valid YAML: %s", r->name,
                   (unsigned long)r->parser.problem_mark.line + 1,
                   r->parser.problem ? r->parser.problem : "unknown");
}

/* The current scalar, for a message. */
static const char *shown(const struct reader *r, char text[AK_SHOW_BYTES])
{
    if (r->event.type == YAML_SCALAR_EVENT)
        return ak_show(r->event.data.scalar.value, r->event.data.scalar.length, text);
    return r->event.type == YAML_ALIAS_EVENT ? "an alias" : "a list or a mapping";
}

static bool is_word(const struct reader *r, const char *word)
{
    return r->event.type == YAML_SCALAR_EVENT && r->event.data.scalar.length == strlen(word) &&
           memcmp(r->event.data.scalar.value, word, strlen(word)) == 0;
}

/* ---- Values ------------------------------------------------------------- */
/* Reads a key's whole number, low … high. */
static ak_status read_range(struct reader *r, const char *key, uint32_t low, uint32_t high,
                            uint32_t *out)
{
    char text[AK_SHOW_BYTES];
    uint64_t value = 0;
    AK_TRY(next(r));
    bool good = r->event.type == YAML_SCALAR_EVENT && r->event.data.scalar.length > 0 &&
                r->event.data.scalar.length < 10;
    for (size_t i = 0; good && i < r->event.data.scalar.length; i++) {
        unsigned char c = r->event.data.scalar.value[i];
        good = c >= '0' && c <= '9';
        value = value * 10 + (c - '0');
    }
    if (!good || value < low || value > high)
        return ak_fail(r->error, AKUNU_ERROR_ARGUMENT,
                       "%s:%lu: %s is '%s': expected a whole number from %u to %u", r->name,
                       line_of(r), key, shown(r, text), (unsigned)low, (unsigned)high);
    *out = (uint32_t)value;
    return AKUNU_OK;
}

static ak_status read_limit(struct reader *r, const char *key, uint32_t high, uint32_t *out)
{
    return read_range(r, key, 1, high, out);
}

/* Reads how prompts run through a class of weights. */
static ak_status read_prefill(struct reader *r, bool *blas)
{
    char text[AK_SHOW_BYTES];
    AK_TRY(next(r));
    *blas = is_word(r, "blas");
    if (*blas || is_word(r, "own"))
        return AKUNU_OK;
    return ak_fail(r->error, AKUNU_ERROR_ARGUMENT, "%s:%lu: prefill is '%s': expected own or blas",
                   r->name, line_of(r), shown(r, text));
}

static ak_status read_machine(struct reader *r)
{
    char text[AK_SHOW_BYTES];
    AK_TRY(next(r));
    if (r->event.type != YAML_SCALAR_EVENT || r->event.data.scalar.length >= AK_CHIP_IDENTITY_BYTES)
        return ak_fail(r->error, AKUNU_ERROR_ARGUMENT,
                       "%s:%lu: machine is '%s': expected the name of a processor", r->name,
                       line_of(r), shown(r, text));
    memcpy(r->machine, r->event.data.scalar.value, r->event.data.scalar.length);
    r->machine[r->event.data.scalar.length] = '\0';
    return AKUNU_OK;
}

static ak_status unknown_key(struct reader *r, const char *known)
{
    char text[AK_SHOW_BYTES];
    return ak_fail(r->error, AKUNU_ERROR_ARGUMENT, "%s:%lu: unknown key '%s'; known are %s",
                   r->name, line_of(r), shown(r, text), known);
}

/* Marks key i as seen. */
static ak_status see(struct reader *r, const char *key, unsigned i, unsigned *seen)
{
    if (*seen & (1u << i))
        return ak_fail(r->error, AKUNU_ERROR_ARGUMENT, "%s:%lu: %s is given twice", r->name,
                       line_of(r), key);
    *seen |= 1u << i;
    return AKUNU_OK;
}

static ak_status expect_mapping(struct reader *r, const char *key)
{
    char text[AK_SHOW_BYTES];
    if (r->event.type == YAML_MAPPING_START_EVENT)
        return AKUNU_OK;
    return ak_fail(r->error, AKUNU_ERROR_ARGUMENT, "%s:%lu: %s is '%s': expected keys and values",
                   r->name, line_of(r), key, shown(r, text));
}

static ak_status read_class(struct reader *r, const char *name, uint32_t *skinny_max, bool *blas)
{
    unsigned seen = 0;
    AK_TRY(next(r));
    AK_TRY(expect_mapping(r, name));
    for (;;) {
        AK_TRY(next(r));
        if (r->event.type == YAML_MAPPING_END_EVENT)
            return AKUNU_OK;
        if (is_word(r, "small_n")) {
            AK_TRY(see(r, "small_n", 0, &seen));
            AK_TRY(read_limit(r, "small_n", AK_SKINNY_MAX, skinny_max));
        } else if (is_word(r, "prefill")) {
            AK_TRY(see(r, "prefill", 1, &seen));
            AK_TRY(read_prefill(r, blas));
        } else {
            return unknown_key(r, "small_n, prefill");
        }
    }
}

/* The type that the current scalar names; AK_QUANT_COUNT: none. */
static int find_type(const struct reader *r)
{
    int type = 0;
    while (type < AK_QUANT_COUNT && !is_word(r, ak_quant_info((enum ak_quant_type)type)->name))
        type++;
    return type;
}

/* Reads "TYPE: [GEMV, SKINNY]" lines of distances in bytes. */
static ak_status read_prefetch(struct reader *r, uint32_t prefetch[AK_QUANT_COUNT][2])
{
    char text[AK_SHOW_BYTES];
    bool seen[AK_QUANT_COUNT] = { false };
    AK_TRY(next(r));
    AK_TRY(expect_mapping(r, "prefetch"));
    for (;;) {
        AK_TRY(next(r));
        if (r->event.type == YAML_MAPPING_END_EVENT)
            return AKUNU_OK;
        int type = find_type(r);
        if (type == AK_QUANT_COUNT)
            return ak_fail(r->error, AKUNU_ERROR_ARGUMENT,
                           "%s:%lu: prefetch: '%s' is not a type of weights", r->name, line_of(r),
                           shown(r, text));
        const char *name = ak_quant_info((enum ak_quant_type)type)->name;
        if (seen[type])
            return ak_fail(r->error, AKUNU_ERROR_ARGUMENT, "%s:%lu: %s is given twice", r->name,
                           line_of(r), name);
        seen[type] = true;
        AK_TRY(next(r));
        if (r->event.type != YAML_SEQUENCE_START_EVENT)
            return ak_fail(r->error, AKUNU_ERROR_ARGUMENT,
                           "%s:%lu: prefetch of %s is '%s': expected a list of two distances",
                           r->name, line_of(r), name, shown(r, text));
        for (int i = 0; i < 2; i++) {
            uint32_t bytes = 0;
            AK_TRY(read_range(r, name, 0, AK_BACKEND_PREFETCH_MAX, &bytes));
            prefetch[type][i] = bytes ? bytes : AK_BACKEND_PREFETCH_OFF;
        }
        AK_TRY(next(r));
        if (r->event.type != YAML_SEQUENCE_END_EVENT)
            return ak_fail(r->error, AKUNU_ERROR_ARGUMENT,
                           "%s:%lu: prefetch of %s has more than two distances", r->name,
                           line_of(r), name);
    }
}

static ak_status read_profile(struct reader *r, struct ak_backend_profile *p)
{
    unsigned seen = 0;
    AK_TRY(expect_mapping(r, "the profile"));
    for (;;) {
        int class = AK_BACKEND_PROFILE_CLASSES;
        AK_TRY(next(r));
        if (r->event.type == YAML_MAPPING_END_EVENT)
            return AKUNU_OK;
        for (int i = 0; i < AK_BACKEND_PROFILE_CLASSES; i++)
            if (class_names[i] && is_word(r, class_names[i]))
                class = i;
        if (is_word(r, "threads")) {
            AK_TRY(see(r, "threads", 0, &seen));
            AK_TRY(read_limit(r, "threads", THREADS_MAX, &p->threads));
        } else if (is_word(r, "prefill_chunk")) {
            AK_TRY(see(r, "prefill_chunk", 1, &seen));
            AK_TRY(read_limit(r, "prefill_chunk", CHUNK_MAX, &p->prefill_chunk));
        } else if (is_word(r, "token_price")) {
            AK_TRY(see(r, "token_price", 3 + AK_BACKEND_PROFILE_CLASSES, &seen));
            AK_TRY(read_limit(r, "token_price", PRICE_MAX, &p->token_price));
        } else if (is_word(r, "machine")) {
            AK_TRY(see(r, "machine", 4 + AK_BACKEND_PROFILE_CLASSES, &seen));
            AK_TRY(read_machine(r));
        } else if (is_word(r, "prefetch")) {
            AK_TRY(see(r, "prefetch", 2 + AK_BACKEND_PROFILE_CLASSES, &seen));
            AK_TRY(read_prefetch(r, p->prefetch));
        } else if (class < AK_BACKEND_PROFILE_CLASSES) {
            AK_TRY(see(r, class_names[class], 2 + (unsigned)class, &seen));
            AK_TRY(read_class(r, class_names[class], &p->skinny_max[class], &p->blas[class]));
        } else {
            return unknown_key(r, "machine, threads, prefill_chunk, token_price, scale32, "
                                  "scale256, float, prefetch");
        }
    }
}

/* Reads one document or none: a file may hold comments only. */
static ak_status read_stream(struct reader *r, struct ak_backend_profile *p)
{
    AK_TRY(next(r)); /* start of the stream */
    AK_TRY(next(r));
    if (r->event.type == YAML_STREAM_END_EVENT)
        return AKUNU_OK;
    AK_TRY(next(r));
    if (r->event.type != YAML_SCALAR_EVENT ||
        r->event.data.scalar.length > 0) /* "---" alone is an empty scalar */
        AK_TRY(read_profile(r, p));
    AK_TRY(next(r)); /* end of the document */
    AK_TRY(next(r));
    if (r->event.type != YAML_STREAM_END_EVENT)
        return ak_fail(r->error, AKUNU_ERROR_ARGUMENT,
                       "%s:%lu: a second document; a profile is one", r->name, line_of(r));
    return AKUNU_OK;
}

ak_status ak_backend_profile_parse(const char *name, const void *text, size_t bytes,
                                   struct ak_backend_profile *profile,
                                   char machine[AK_CHIP_IDENTITY_BYTES], struct ak_error *error)
{
    struct ak_backend_profile read = *profile;
    struct reader r = { .name = name, .machine = machine, .error = error };
    machine[0] = '\0';
    if (bytes > FILE_BYTES_MAX)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "%s: %zu bytes; a chip profile has at most %d",
                       name, bytes, FILE_BYTES_MAX);
    if (!yaml_parser_initialize(&r.parser))
        return ak_fail_memory(error, "a chip profile", 0);
    yaml_parser_set_input_string(&r.parser, bytes ? text : (const void *)"", bytes);
    ak_status status = read_stream(&r, &read);
    yaml_event_delete(&r.event);
    yaml_parser_delete(&r.parser);
    if (status == AKUNU_OK)
        *profile = read;
    return status;
}

/* ---- Files -------------------------------------------------------------- */
ak_status ak_backend_profile_read(const char *path, const struct ak_log *log,
                                  struct ak_backend_profile *profile, struct ak_error *error)
{
    struct ak_file file;
    struct ak_chip chip;
    struct ak_backend_profile read = *profile;
    char name[AK_SHOW_BYTES], shown_machine[AK_SHOW_BYTES], machine[AK_CHIP_IDENTITY_BYTES];
    ak_status status = ak_file_open(path, &file, error);
    if (status == AKUNU_ERROR_FORMAT) {
        status = AKUNU_ERROR_ARGUMENT; /* a profile, not a model, is at fault */
        if (error)
            error->status = status;
    }
    if (status == AKUNU_OK)
        status = ak_backend_profile_parse(ak_show_path(path, name), file.data,
                                          file.bytes < SIZE_MAX ? (size_t)file.bytes : SIZE_MAX,
                                          &read, machine, error);
    ak_file_close(&file);
    if (status != AKUNU_OK)
        return status;
    if (machine[0])
        ak_chip_detect(&chip);
    if (machine[0] && strcmp(machine, chip.identity) != 0) {
        ak_log_line(log, AKUNU_LOG_WARN,
                    "profile ignored: %s is for another machine, %s; this is %s", name,
                    ak_show(machine, strlen(machine), shown_machine), chip.identity);
        return AKUNU_OK;
    }
    ak_log_line(log, AKUNU_LOG_INFO, "profile: %s", name);
    *profile = read;
    return AKUNU_OK;
}

static ak_status read_where_present(const char *folder, const char *below, const struct ak_log *log,
                                    struct ak_backend_profile *out, struct ak_error *error)
{
    char path[PATH_BYTES];
    struct stat found;
    int n = snprintf(path, sizeof path, "%s%s", folder, below);
    if (n < 0 || (size_t)n >= sizeof path || stat(path, &found) != 0)
        return AKUNU_OK;
    return ak_backend_profile_read(path, log, out, error);
}

ak_status ak_backend_profile_find(const char *path, const struct ak_log *log,
                                  struct ak_backend_profile *out, struct ak_error *error)
{
    const char *config = ak_env("XDG_CONFIG_HOME"), *home = ak_env("HOME");
    *out = (struct ak_backend_profile){ 0 };
    if (path)
        return ak_backend_profile_read(path, log, out, error);
    AK_TRY(read_where_present(AK_SYSCONFDIR, "/akunu/profile.yaml", log, out, error));
    if (config)
        return read_where_present(config, "/akunu/profile.yaml", log, out, error);
    return home ? read_where_present(home, "/.config/akunu/profile.yaml", log, out, error) :
                  AKUNU_OK;
}

/* ---- Values as text ----------------------------------------------------- */
void ak_backend_profile_merge(struct ak_backend_profile *p, const struct ak_backend_profile *over)
{
    p->threads = over->threads ? over->threads : p->threads;
    p->prefill_chunk = over->prefill_chunk ? over->prefill_chunk : p->prefill_chunk;
    p->token_price = over->token_price ? over->token_price : p->token_price;
    for (int i = 0; i < AK_BACKEND_PROFILE_CLASSES; i++) {
        p->skinny_max[i] = over->skinny_max[i] ? over->skinny_max[i] : p->skinny_max[i];
        p->blas[i] = p->blas[i] || over->blas[i];
    }
    for (int type = 0; type < AK_QUANT_COUNT; type++)
        for (int i = 0; i < 2; i++)
            if (over->prefetch[type][i])
                p->prefetch[type][i] = over->prefetch[type][i];
}

static void print_prefetch(FILE *f, const struct ak_backend_profile *p)
{
    bool is_first = true;
    for (int type = 0; type < AK_QUANT_COUNT; type++) {
        const uint32_t *value = p->prefetch[type];
        if (!value[0] && !value[1])
            continue;
        fputs(is_first ? "prefetch:\n" : "", f);
        is_first = false;
        fprintf(f, "  %s: [%zu, %zu]\n", ak_quant_info((enum ak_quant_type)type)->name,
                ak_backend_profile_prefetch(p, (enum ak_quant_type)type, 1),
                ak_backend_profile_prefetch(p, (enum ak_quant_type)type, 2));
    }
}

ak_status ak_backend_profile_print(const struct ak_backend_profile *p, char **text,
                                   struct ak_error *error)
{
    struct ak_chip chip;
    char *buffer = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&buffer, &n);
    if (!f)
        return ak_fail_memory(error, "a chip profile", 0);
    ak_chip_detect(&chip);
    fprintf(f,
            "# Chip profile of akunu. What is missing has its default. Other machines ignore it, "
            "unless\n# `machine` is missing.\nmachine: \"%s\"\n",
            chip.identity);
    if (p->threads)
        fprintf(f, "threads: %u\n", (unsigned)p->threads);
    if (p->prefill_chunk)
        fprintf(f, "prefill_chunk: %u\n", (unsigned)p->prefill_chunk);
    if (p->token_price)
        fprintf(f, "token_price: %u\n", (unsigned)p->token_price);
    for (int i = 0; i < AK_BACKEND_PROFILE_CLASSES; i++) {
        if (!class_names[i] || !(p->skinny_max[i] || p->blas[i]))
            continue;
        fprintf(f, "%s:\n", class_names[i]);
        if (p->skinny_max[i])
            fprintf(f, "  small_n: %u\n", (unsigned)p->skinny_max[i]);
        if (p->blas[i])
            fputs("  prefill: blas\n", f);
    }
    print_prefetch(f, p);
    bool good = !ferror(f);
    if (fclose(f) != 0 || !good) {
        free(buffer);
        return ak_fail_memory(error, "a chip profile", n);
    }
    *text = ak_strndup(buffer, n);
    free(buffer);
    return *text ? AKUNU_OK : ak_fail_memory(error, "a chip profile", n);
}

static ak_status write_text(const char *text, size_t n, const char *path, struct ak_error *error)
{
    char temporary[PATH_BYTES], name[AK_SHOW_BYTES];
    char machine[AK_CHIP_IDENTITY_BYTES];
    struct ak_backend_profile check = { 0 };
    AK_TRY(ak_backend_profile_parse("the profile to write", text, n, &check, machine, error));
    int length = snprintf(temporary, sizeof temporary, "%s.%ld.new", path, (long)getpid());
    if (length < 0 || (size_t)length >= sizeof temporary)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "%s: the path is too long",
                       ak_show_path(path, name));
    FILE *file = fopen(temporary, "we");
    bool good =
        file && fwrite(text, 1, n, file) == n && fflush(file) == 0 && fsync(fileno(file)) == 0;
    int code = errno;
    if (file && fclose(file) != 0 && good) {
        code = errno;
        good = false;
    }
    if (good && rename(temporary, path) != 0) {
        code = errno;
        good = false;
    }
    if (good)
        return AKUNU_OK;
    if (file)
        unlink(temporary);
    return ak_fail(error, AKUNU_ERROR_IO, "%s: cannot write: %s", ak_show_path(path, name),
                   strerror(code));
}

ak_status ak_backend_profile_write(const struct ak_backend_profile *profile, const char *path,
                                   struct ak_error *error)
{
    char *text;
    AK_TRY(ak_backend_profile_print(profile, &text, error));
    ak_status status = write_text(text, strlen(text), path, error);
    ak_free(text);
    return status;
}
