/* Characters that are divided or incomplete. */
#include "speech/search/text.h"

#include "base/mem.h"
#include "base/utf8.h"

enum { CHARACTER_BYTES_MAX = 4 };

ak_status ak_speech_spell(const struct ak_speech_clip *clip, const int32_t *tokens, size_t n,
                          int32_t limit, const char **out, size_t *n_bytes, struct ak_error *error)
{
    int32_t *words = ak_alloc(n, sizeof *words);
    size_t n_words = 0;
    if (!words)
        return ak_fail_memory(error, "a text", n * sizeof *words);
    for (size_t i = 0; i < n; i++)
        if (tokens[i] < limit)
            words[n_words++] = tokens[i];
    ak_status status = clip->text(clip->user, words, n_words, out, n_bytes, error);
    ak_free(words);
    return status;
}

ak_status ak_speech_add_utf8(struct ak_buffer *out, const char *bytes, size_t n,
                             struct ak_error *error)
{
    static const char replacement[] = "\xef\xbf\xbd";
    for (size_t at = 0; at < n;) {
        size_t valid = ak_utf8_valid_bytes(bytes + at, n - at);
        AK_TRY(ak_buffer_add(out, bytes + at, valid, error));
        at += valid;
        if (at == n)
            break;
        AK_TRY(ak_buffer_add(out, replacement, sizeof replacement - 1, error));
        at += ak_utf8_next(bytes + at, n - at).bytes;
    }
    return AKUNU_OK;
}

static bool continues(char c)
{
    return (c & 0xc0) == 0x80;
}

size_t ak_speech_character_end(const char *text, size_t n, size_t at)
{
    size_t back = 1;
    if (at == 0 || at >= n || !continues(text[at]))
        return at;
    while (back < at && back < CHARACTER_BYTES_MAX - 1 && continues(text[at - back]))
        back++;
    size_t begin = at - back, end = begin + ak_utf8_next(text + begin, n - begin).bytes;
    return end > at ? end : at;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

void ak_speech_strip(const char **text, size_t *n)
{
    while (*n > 0 && is_space(**text)) {
        ++*text;
        --*n;
    }
    while (*n > 0 && is_space((*text)[*n - 1]))
        --*n;
}
