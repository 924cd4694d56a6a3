/* Reads and writes files of base logits. */
#include "apps/cli/quality/logits_file.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "apps/common/input.h"
#include "apps/common/message.h"

static const char magic[8] = { '_', 'l', 'o', 'g', 'i', 't', 's', '_' };

/* Positions that are scored in a chunk. */
static uint64_t scored_of(uint32_t context)
{
    return context - 1 - context / 2;
}

/* ---- Reading ------------------------------------------------------------ */
struct header {
    char magic[sizeof magic];
    uint32_t context, n_vocab, n_chunks;
};

static int fail_read(const struct cli_logits_reader *r)
{
    return app_fail("cannot read %s: %s", r->path,
                    ferror(r->file) ? strerror(errno) : "the file ended early");
}

/* Bytes of a whole file; UINT64_MAX: more than there can be. */
static uint64_t bytes_of(const struct cli_logits_reader *r)
{
    uint64_t tokens, records, bytes;
    uint64_t record_bytes = cli_record_elems(r->n_vocab) * sizeof(uint16_t);
    if (__builtin_mul_overflow((uint64_t)r->n_chunks * r->context, sizeof(akunu_token), &tokens) ||
        __builtin_mul_overflow(r->n_chunks * scored_of(r->context), record_bytes, &records) ||
        __builtin_add_overflow(tokens, records, &bytes) ||
        __builtin_add_overflow(bytes, sizeof(struct header), &bytes))
        return UINT64_MAX;
    return bytes;
}

static int check_header(const struct cli_logits_reader *r, size_t n_vocab)
{
    struct stat st;
    if (r->n_vocab != n_vocab)
        return app_fail("%s: its vocabulary has %u tokens, and the model's %zu: logits are "
                        "compared between models of one vocabulary",
                        r->path, r->n_vocab, n_vocab);
    if (r->context < 4 || r->n_chunks == 0)
        return app_fail("%s: %u chunks of %u tokens; expected at least one of at least 4", r->path,
                        r->n_chunks, r->context);
    if (fstat(fileno(r->file), &st) != 0)
        return fail_read(r);
    uint64_t bytes = bytes_of(r);
    if ((uint64_t)st.st_size != bytes)
        return app_fail("%s: it has %llu bytes, and %u chunks of %u tokens with a vocabulary of %u "
                        "take %llu",
                        r->path, (unsigned long long)st.st_size, r->n_chunks, r->context,
                        r->n_vocab, (unsigned long long)bytes);
    return APP_EXIT_OK;
}

static int read_chunk_tokens(struct cli_logits_reader *r)
{
    size_t n = (size_t)r->n_chunks * r->context;
    r->tokens = malloc(n * sizeof *r->tokens);
    if (!r->tokens)
        return app_fail_memory();
    if (fread(r->tokens, sizeof *r->tokens, n, r->file) != n)
        return fail_read(r);
    return app_check_ids(r->path, r->tokens, n, r->n_vocab);
}

int cli_logits_open(const char *path, size_t n_vocab, struct cli_logits_reader *out)
{
    struct stat st;
    struct header header;
    *out = (struct cli_logits_reader){ .path = path };
    if (stat(path, &st) != 0)
        return app_fail_usage("cannot read --kl-base %s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return app_fail_usage("--kl-base %s: not a regular file", path);
    out->file = fopen(path, "rbe");
    if (!out->file)
        return app_fail_usage("cannot read --kl-base %s: %s", path, strerror(errno));
    if (fread(&header, sizeof header, 1, out->file) != 1 ||
        memcmp(header.magic, magic, sizeof magic) != 0)
        return app_fail("%s: no file of base logits, which begins with \"_logits_\" (--save-logits "
                        "writes one)",
                        path);
    out->context = header.context;
    out->n_vocab = header.n_vocab;
    out->n_chunks = header.n_chunks;
    int code = check_header(out, n_vocab);
    return code == APP_EXIT_OK ? read_chunk_tokens(out) : code;
}

int cli_logits_read(struct cli_logits_reader *r, size_t n, uint16_t *records)
{
    size_t elems = cli_record_elems(r->n_vocab);
    if (fread(records, elems * sizeof *records, n, r->file) != n)
        return fail_read(r);
    for (size_t i = 0; i < n; i++) {
        float scale, least;
        memcpy(&scale, records + i * elems, sizeof scale);
        memcpy(&least, records + i * elems + 2, sizeof least);
        if (!(scale >= 0.0f && scale < 1.0f && least <= 0.0f && least > -1e6f))
            return app_fail("%s: record %zu: scale %g and least log-probability %g; expected "
                            "0 … 1 and at most 0",
                            r->path, r->n_read + i, (double)scale, (double)least);
    }
    r->n_read += n;
    return APP_EXIT_OK;
}

void cli_logits_close(struct cli_logits_reader *r)
{
    if (r->file)
        fclose(r->file);
    free(r->tokens);
    *r = (struct cli_logits_reader){ 0 };
}

/* ---- Writing ------------------------------------------------------------ */
static int write_bytes(struct cli_logits_writer *w, const void *bytes, size_t size, size_t n)
{
    return fwrite(bytes, size, n, w->file.file) == n ?
               APP_EXIT_OK :
               app_fail("cannot write %s %s: %s", w->file.flag, w->file.path, strerror(errno));
}

int cli_logits_create(const char *path, const akunu_token *tokens, uint32_t context,
                      uint32_t n_chunks, size_t n_vocab, struct cli_logits_writer *out)
{
    struct header header = { .context = context,
                             .n_vocab = (uint32_t)n_vocab,
                             .n_chunks = n_chunks };
    memcpy(header.magic, magic, sizeof magic);
    out->n_vocab = n_vocab;
    int code = cli_new_file_begin("--save-logits", path, &out->file);
    if (code == APP_EXIT_OK)
        code = write_bytes(out, &header, sizeof header, 1);
    if (code == APP_EXIT_OK)
        code = write_bytes(out, tokens, sizeof *tokens, (size_t)n_chunks * context);
    return code;
}

int cli_logits_write(struct cli_logits_writer *w, size_t n, const uint16_t *records)
{
    return write_bytes(w, records, cli_record_elems(w->n_vocab) * sizeof *records, n);
}

void cli_record_encode(const float *logits, size_t n_vocab, float largest, double log_sum,
                       uint16_t *record)
{
    const float range = 16.0f, rounder = 0x1.8p23f; /* a sum with it has no bits below 1 */
    float least = largest;
    for (size_t i = 0; i < n_vocab; i++)
        least = logits[i] < least ? logits[i] : least;
    least = least > largest - range ? least : largest - range;
    float scale = (largest - least) / 65535.0f, log_least = (float)((double)least - log_sum);
    float inverse = scale > 0.0f ? 1.0f / scale : 0.0f;
    memcpy(record, &scale, sizeof scale);
    memcpy(record + 2, &log_least, sizeof log_least);
    record += CLI_RECORD_HEAD;
    for (size_t i = 0; i < n_vocab; i++) {
        float above = logits[i] > least ? inverse * (logits[i] - least) : 0.0f;
        above = above < 65535.0f ? above : 65535.0f;
        record[i] = (uint16_t)(int32_t)((above + rounder) - rounder);
    }
    if (n_vocab % 2)
        record[n_vocab] = 0;
}
