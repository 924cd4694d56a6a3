/* Input of commands: text from -p, -f or standard input, ids, and tokenizing. */
#include "apps/common/input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/common/message.h"

/* Appends all bytes of a stream, and a NUL. */
static int read_whole_stream(FILE *file, const char *name, struct app_text *out)
{
    size_t capacity = 0;
    for (;;) {
        if (capacity - out->n < 2) {
            capacity = capacity ? 2 * capacity : 65536;
            char *larger = capacity > out->n ? realloc(out->bytes, capacity) : NULL;
            if (!larger)
                return app_fail_memory();
            out->bytes = larger;
        }
        errno = 0;
        out->n += fread(out->bytes + out->n, 1, capacity - out->n - 1, file);
        out->bytes[out->n] = '\0';
        if (app_is_interrupted())
            return APP_EXIT_INTERRUPTED;
        if (ferror(file))
            return app_fail("cannot read %s: %s", name, strerror(errno));
        if (feof(file))
            return APP_EXIT_OK;
    }
}

int app_read_file(const char *flag, const char *path, struct app_text *out)
{
    bool standard = strcmp(path, "-") == 0;
    *out = (struct app_text){ 0 };
    FILE *file = standard ? stdin : fopen(path, "rb");
    if (!file)
        return app_fail_usage("cannot read %s %s: %s", flag, path, strerror(errno));
    int code = read_whole_stream(file, standard ? "standard input" : path, out);
    if (!standard)
        fclose(file);
    if (code != APP_EXIT_OK) {
        free(out->bytes);
        *out = (struct app_text){ 0 };
    }
    return code;
}

bool app_has_input(const struct app_options *o)
{
    return o->prompt.text || o->prompt.file || o->prompt.ids || !isatty(STDIN_FILENO);
}

int app_read_text(const struct app_options *o, const char *what, struct app_text *out)
{
    *out = (struct app_text){ 0 };
    if (o->prompt.text) {
        out->n = strlen(o->prompt.text);
        out->bytes = strdup(o->prompt.text);
        return out->bytes ? APP_EXIT_OK : app_fail_memory();
    }
    if (!app_has_input(o))
        return app_fail_usage("%s is missing: give it with -p TEXT, -f FILE or through a pipe",
                              what);
    return app_read_file("-f", o->prompt.file ? o->prompt.file : "-", out);
}

void app_drop_newline(char *text, size_t *n)
{
    if (*n == 0 || text[*n - 1] != '\n')
        return;
    --*n;
    if (*n > 0 && text[*n - 1] == '\r')
        --*n;
    text[*n] = '\0';
}

int app_read_prompt(const struct app_options *o, const char *what, struct app_text *out)
{
    int code = app_read_text(o, what, out);
    if (code == APP_EXIT_OK && !o->prompt.text)
        app_drop_newline(out->bytes, &out->n);
    return code;
}

bool app_ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), n_end = strlen(end);
    return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' :
           c >= 'a' && c <= 'f' ? c - 'a' + 10 :
           c >= 'A' && c <= 'F' ? c - 'A' + 10 :
                                  -1;
}

void app_unescape(char *text)
{
    static const char escapes[] = "nrt'\"\\", meant[] = "\n\r\t'\"\\";
    char *out = text;
    while (*text) {
        const char *found = *text == '\\' && text[1] ? strchr(escapes, text[1]) : NULL;
        int high = *text == '\\' && text[1] == 'x' ? hex_digit(text[2]) : -1;
        int low = high >= 0 ? hex_digit(text[3]) : -1;
        if (found) {
            *out++ = meant[found - escapes];
            text += 2;
        } else if (low >= 0 && (high | low)) {
            *out++ = (char)(16 * high + low);
            text += 4;
        } else {
            *out++ = *text++;
        }
    }
    *out = '\0';
}

const char *app_ids_name(const struct app_options *o)
{
    return o->prompt.ids                                      ? "--ids" :
           o->prompt.file && strcmp(o->prompt.file, "-") != 0 ? o->prompt.file :
                                                                "standard input";
}

int app_read_ids(const struct app_options *o, akunu_token **ids, size_t *n)
{
    *ids = NULL;
    *n = 0;
    if (o->prompt.ids)
        return app_parse_ids("--ids", o->prompt.ids, strlen(o->prompt.ids), ids, n);
    if (!app_has_input(o))
        return app_fail_usage(
            "token ids are missing: give them with --ids \"1 2 3\", -f FILE or through a pipe");
    struct app_text text;
    int code = app_read_text(o, "", &text);
    if (code == APP_EXIT_OK)
        code = app_parse_ids(app_ids_name(o), text.bytes, text.n, ids, n);
    free(text.bytes);
    return code;
}

/* Makes a text's tokens: writes at most `capacity` ids and returns the number of all, or -1. */
typedef int64_t encode_fn(void *user, const struct app_text *text, akunu_token *ids,
                          size_t capacity);

static int encode_text(encode_fn *encode, void *user, const struct app_text *text,
                       akunu_token **ids, size_t *n)
{
    /* enough for nearly every text, else asked again */
    size_t capacity = text->n / 2 + 16;
    *ids = NULL;
    *n = 0;
    for (;;) {
        akunu_token *larger = realloc(*ids, capacity * sizeof **ids);
        if (!larger) {
            free(*ids);
            *ids = NULL;
            return app_fail_memory();
        }
        *ids = larger;
        int64_t count = encode(user, text, *ids, capacity);
        if (count < 0) {
            free(*ids);
            *ids = NULL;
            return app_fail_library();
        }
        if ((uint64_t)count <= capacity) {
            *n = (size_t)count;
            return APP_EXIT_OK;
        }
        capacity = (size_t)count;
    }
}

struct plain {
    const struct akunu_tokenizer *tokenizer;
    unsigned flags;
};

static int64_t encode_plain(void *user, const struct app_text *text, akunu_token *ids,
                            size_t capacity)
{
    const struct plain *plain = user;
    return akunu_tokenizer_encode(plain->tokenizer, text->bytes, text->n, plain->flags, ids,
                                  capacity);
}

int app_tokenize_text(const struct akunu_tokenizer *tokenizer, const struct app_text *text,
                      unsigned flags, akunu_token **ids, size_t *n)
{
    struct plain plain = { tokenizer, flags };
    return encode_text(encode_plain, &plain, text, ids, n);
}

struct embedded {
    const struct akunu_model *model;
    struct akunu_embedding_text *how;
};

static int64_t encode_embedded(void *user, const struct app_text *text, akunu_token *ids,
                               size_t capacity)
{
    const struct embedded *e = user;
    return akunu_model_encode_embedding(e->model, text->bytes, text->n, e->how, ids, capacity);
}

int app_encode_embedding(const struct akunu_model *model, const struct app_text *text,
                         struct akunu_embedding_text *how, akunu_token **ids, size_t *n)
{
    struct embedded e = { model, how };
    return encode_text(encode_embedded, &e, text, ids, n);
}

char *app_token_bytes(const struct akunu_tokenizer *tokenizer, akunu_token token, unsigned flags,
                      size_t *n)
{
    int64_t length = akunu_tokenizer_decode(tokenizer, &token, 1, flags, NULL, 0);
    *n = length > 0 ? (size_t)length : 0;
    char *bytes = malloc(*n + 1);
    if (bytes && *n > 0)
        akunu_tokenizer_decode(tokenizer, &token, 1, flags, bytes, *n);
    if (bytes)
        bytes[*n] = '\0';
    return bytes;
}

akunu_token app_bos_of(const struct akunu_tokenizer *tokenizer)
{
    akunu_token first = -1;
    akunu_token bos = akunu_tokenizer_bos(tokenizer);
    int64_t n = akunu_tokenizer_encode(tokenizer, "", 0, AKUNU_ADD_SPECIAL, &first, 1);
    return n >= 1 && first == bos ? bos : -1;
}
