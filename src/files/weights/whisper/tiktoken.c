/* Vocabularies of OpenAI's tiktoken: a line per token, its bytes in base64 (RFC 4648), a space and
 * its rank. Ranks are ids, and the lines follow them. */
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "files/weights/whisper/whisper.h"

enum { LINE_BYTES_MIN = 6 }; /* "AA== 0" */

static int decode_digit(unsigned char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Decodes n characters; false: not base64. Writes at most n / 4 · 3 bytes. */
static bool decode_base64(const uint8_t *text, size_t n, char *out, size_t *n_out)
{
    *n_out = 0;
    if (n == 0 || n % 4 != 0)
        return false;
    size_t n_pads = text[n - 1] != '=' ? 0 : text[n - 2] != '=' ? 1 : 2;
    for (size_t i = 0; i < n; i += 4) {
        uint32_t group = 0;
        size_t n_pad = i + 4 == n ? n_pads : 0;
        for (size_t k = 0; k < 4; k++) {
            int digit = k >= 4 - n_pad ? 0 : decode_digit(text[i + k]);
            if (digit < 0)
                return false;
            group = group << 6 | (uint32_t)digit;
        }
        for (size_t k = 0; k < 3 - n_pad; k++)
            out[(*n_out)++] = (char)(group >> (16 - 8 * k));
    }
    return true;
}

static bool read_rank(const uint8_t *text, size_t n, uint32_t expected)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9' || i >= 9)
            return false;
        value = 10 * value + (uint64_t)(text[i] - '0');
    }
    return n > 0 && value == expected;
}

static ak_status read_line(struct ak_whisper *w, const struct ak_file *file, const uint8_t *line,
                           size_t n, char **out, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    const uint8_t *space = memchr(line, ' ', n);
    size_t n_text = space ? (size_t)(space - line) : n, n_bytes;
    if (!space || !decode_base64(line, n_text, *out, &n_bytes) ||
        !read_rank(space + 1, n - n_text - 1, w->n_tokens))
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "%s: line %u is no token in base64 with the rank %u",
                       ak_show_path(file->path, shown), w->n_tokens + 1, w->n_tokens);
    w->tokens[w->n_tokens++] = (struct ak_text){ *out, (uint32_t)n_bytes };
    *out += n_bytes;
    return AKUNU_OK;
}

ak_status ak_whisper_read_tiktoken(struct ak_whisper *w, const struct ak_file *file,
                                   struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    uint64_t n_lines = file->bytes / LINE_BYTES_MIN + 1;
    if (n_lines > w->params[AK_WHISPER_VOCAB])
        n_lines = w->params[AK_WHISPER_VOCAB];
    w->tokens = ak_alloc(n_lines, sizeof *w->tokens);
    w->token_bytes = ak_alloc(file->bytes, 1);
    if (!w->tokens || !w->token_bytes)
        return ak_fail_memory(error, "the tokens", n_lines * sizeof *w->tokens + file->bytes);
    char *out = w->token_bytes;
    for (uint64_t at = 0; at < file->bytes;) {
        const uint8_t *line = file->data + at, *end = memchr(line, '\n', file->bytes - at);
        size_t n = end ? (size_t)(end - line) : (size_t)(file->bytes - at);
        if (w->n_tokens >= n_lines)
            return ak_fail(error, AKUNU_ERROR_FORMAT, "%s has more tokens than n_vocab, %u",
                           ak_show_path(file->path, shown), w->params[AK_WHISPER_VOCAB]);
        AK_TRY(read_line(w, file, line, n, &out, error));
        at += n + 1;
    }
    return AKUNU_OK;
}
