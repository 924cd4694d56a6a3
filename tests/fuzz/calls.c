/* Tool calls and reasoning: the first byte chooses the format, the second how the text is
 * cut into pieces, the rest is what a model wrote. Cut or whole, the message is the same. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "text/toolcall/toolcall.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char tools[] = "[{\"type\": \"function\", \"function\": {\"name\": \"f\", "
                            "\"parameters\": {\"type\": \"object\", \"properties\": "
                            "{\"a\": {\"type\": \"string\"}, \"b\": {\"type\": \"integer\"}}}}}]";

static struct ak_tc_parser *read_reply(const struct ak_tc_format *format, const char *text,
                                       size_t n, size_t piece, const char **message)
{
    struct ak_tc_parser_params settings = {
        .format = format, .tools = tools, .calls = true, .reasoning = true
    };
    struct ak_tc_parser *r;

    if (ak_tc_parser_create(&settings, &r, NULL) != AKUNU_OK)
        abort();
    for (size_t at = 0; at < n; at += piece)
        if (ak_tc_parser_push(r, text + at, piece < n - at ? piece : n - at, NULL) != AKUNU_OK)
            abort();
    if (ak_tc_parser_end(r, NULL) != AKUNU_OK || ak_tc_parser_message(r, message, NULL) != AKUNU_OK)
        abort();
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    size_t n_formats = 0;
    const char *text = (const char *)data + 2, *whole, *cut;

    if (n < 2)
        return 0;
    while (ak_tc_format_at(n_formats))
        n_formats++;
    const struct ak_tc_format *format = ak_tc_format_at(data[0] % n_formats);
    struct ak_tc_parser *a = read_reply(format, text, n - 2, n, &whole),
                        *b = read_reply(format, text, n - 2, 1 + data[1] % 8, &cut);
    if (strcmp(whole, cut) != 0 || strcmp(ak_tc_parser_notes(a), ak_tc_parser_notes(b)) != 0)
        abort();
    ak_tc_parser_free(a);
    ak_tc_parser_free(b);
    return 0;
}
