/* How vocabularies write bytes: "<0x0A>", the printable form of byte-level BPE, ▁ for a space. */
#include <string.h>

#include "text/tokenizer/internal.h"
#include "base/unicode.h"

/* The byte that a character of the printable form stands for; -1: none. Printable Latin-1
 * characters stand for themselves; the other 68 bytes are U+0100 to U+0143. */
static int byte_of_printable(uint32_t code)
{
    if ((code >= 0x21 && code <= 0x7E) || (code >= 0xA1 && code <= 0xFF && code != 0xAD))
        return (int)code;
    if (code >= 0x100 && code <= 0x120)
        return (int)code - 0x100;
    if (code >= 0x121 && code <= 0x142)
        return (int)code - 0x121 + 0x7F;
    return code == 0x143 ? 0xAD : -1;
}

bool ak_tok_decode_printable(const char *text, uint32_t n, char *out, uint32_t *n_out)
{
    *n_out = 0;
    for (uint32_t at = 0; at < n;) {
        if (text[at] > 0x20 && text[at] < 0x7F) { /* the common case */
            out[(*n_out)++] = text[at++];
            continue;
        }
        /* All other characters of the printable form have two bytes in UTF-8. */
        bool two = n - at >= 2 && (text[at] & 0xE0) == 0xC0 && (text[at + 1] & 0xC0) == 0x80;
        uint32_t code =
            two ? (uint32_t)(text[at] & 0x1F) << 6 | (uint32_t)(text[at + 1] & 0x3F) : 0;
        int byte = code >= 0x80 ? byte_of_printable(code) : -1;
        if (byte < 0)
            return false;
        out[(*n_out)++] = (char)byte;
        at += 2;
    }
    return true;
}

size_t ak_tok_encode_printable(unsigned char byte, char out[4])
{
    uint32_t code = byte;
    if (byte <= 0x20)
        code = 0x100u + byte;
    else if (byte >= 0x7F && byte <= 0xA0)
        code = 0x121u + byte - 0x7Fu;
    else if (byte == 0xAD)
        code = 0x143;
    return ak_utf8_encode(code, out);
}

uint32_t ak_tok_decode_metaspace(const char *text, size_t n, char *out)
{
    uint32_t n_out = 0;

    for (size_t at = 0; at < n;) {
        const char *mark = memmem(text + at, n - at, AK_TOK_METASPACE, AK_TOK_METASPACE_BYTES);
        size_t plain = mark ? (size_t)(mark - text) - at : n - at;
        memcpy(out + n_out, text + at, plain);
        n_out += (uint32_t)plain;
        at += plain;
        if (mark) {
            out[n_out++] = ' ';
            at += AK_TOK_METASPACE_BYTES;
        }
    }
    return n_out;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int ak_tok_parse_byte(struct ak_text text)
{
    if (text.n != 6 || memcmp(text.bytes, "<0x", 3) != 0 || text.bytes[5] != '>')
        return -1;
    int high = hex_digit(text.bytes[3]), low = hex_digit(text.bytes[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}
