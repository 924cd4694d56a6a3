/* The harmony format of gpt-oss: a reply is a sequence of messages, each with a header that states
 * its channel and recipient.
 *
 *     <|start|>assistant<|channel|>analysis<|message|>…<|end|>
 *     <|start|>assistant to=functions.NAME<|channel|>commentary <|constrain|>json<|message|>{…}
 *         <|call|>
 *     <|start|>assistant<|channel|>final<|message|>…<|return|>
 *
 * The prompt ends with "<|start|>assistant". The recipient may also follow the channel. See
 * https://cookbook.openai.com/articles/openai-harmony */
#include "text/toolcall/parser.h"

enum { HEADER_MAX = 1024 };

/* Without markers: the end of the message ends it. */
const struct ak_tc_reasoning ak_tc_harmony_analysis = { "", "", false };

/* *word gets the word after the last `key` of the header. Returns its length; 0: none. */
static size_t find_last_word(const char *header, size_t n, const char *key, const char **word)
{
    size_t length = 0, n_key = strlen(key);

    for (size_t i = 0; i + n_key <= n; i++) {
        if (memcmp(header + i, key, n_key) != 0)
            continue;
        *word = header + i + n_key;
        for (length = 0; i + n_key + length < n && !ak_tc_is_whitespace((*word)[length]) &&
                         (*word)[length] != '<';)
            length++;
    }
    return length;
}

static bool word_equals(const char *word, size_t n, const char *what)
{
    return n == strlen(what) && memcmp(word, what, n) == 0;
}

static enum ak_tc_result begin_call(struct ak_tc_parser *r, const char *name, size_t n,
                                    size_t after)
{
    static const char space[] = "functions.";
    size_t n_space = sizeof space - 1;

    AK_TC_TRY(ak_tc_begin_call(r, NULL, r->pos, after));
    r->syntax = &r->format->syntaxes[0];
    r->state = AK_TC_STATE_ARGUMENTS;
    if (n > n_space && memcmp(name, space, n_space) == 0)
        name += n_space, n -= n_space;
    if (n > AK_TC_NAME_MAX)
        return ak_tc_set_malformed(r, "a name of more than %d bytes", AK_TC_NAME_MAX);
    memcpy(r->name, name, n);
    r->name[n] = '\0';
    return AK_TC_CONTINUE;
}

static enum ak_tc_result begin_message(struct ak_tc_parser *r, size_t n, size_t after)
{
    const char *header = r->text.bytes + r->pos, *channel = NULL, *to = NULL;
    size_t n_channel = find_last_word(header, n, "<|channel|>", &channel),
           n_to = find_last_word(header, n, "to=", &to);

    if (n_to && r->parses_calls && !word_equals(to, n_to, "assistant") &&
        !word_equals(to, n_to, "user"))
        return begin_call(r, to, n_to, after);
    bool analysis = n_channel && word_equals(channel, n_channel, "analysis");
    if (analysis && !r->parses_reasoning)
        AK_TC_TRY(ak_tc_emit_text(r, header, after - r->pos));
    r->pos = after;
    return ak_tc_begin_content(r, analysis ? &ak_tc_harmony_analysis : NULL);
}

/* Whether a header begins at r->pos. The first one of a reply may be only a recipient, since the
 * prompt has its markers; and a model may omit headers. */
static enum ak_tc_match looks_like_header(const struct ak_tc_parser *r)
{
    static const char *const beginnings[] = { " to=", "<|start|>", "<|channel|>", "<|message|>" };
    enum ak_tc_match best = AK_TC_MATCH_NO;

    for (size_t i = 0, after; i < sizeof beginnings / sizeof beginnings[0]; i++) {
        enum ak_tc_match match = ak_tc_match_loose_marker(r, r->pos, beginnings[i], &after);
        best = match > best ? match : best;
    }
    return best;
}

enum ak_tc_result ak_tc_read_harmony_header(struct ak_tc_parser *r)
{
    static const char end[] = "<|message|>";
    enum ak_tc_match looks = looks_like_header(r);

    if (looks == AK_TC_MATCH_PARTIAL && !r->is_closed)
        return AK_TC_NEED_MORE;
    if (looks == AK_TC_MATCH_YES) {
        const char *found =
            memmem(r->text.bytes + r->pos, ak_min_size(r->text.n - r->pos, HEADER_MAX), end,
                   sizeof end - 1);
        if (found) {
            size_t n = (size_t)(found - r->text.bytes) - r->pos;
            return begin_message(r, n, r->pos + n + sizeof end - 1);
        }
        if (r->text.n - r->pos < HEADER_MAX && !r->is_closed)
            return AK_TC_NEED_MORE;
    }
    r->state = AK_TC_STATE_TEXT;
    r->reasoning = NULL;
    r->scanned = r->pos;
    if (looks == AK_TC_MATCH_NO || r->pos == r->text.n)
        return AK_TC_CONTINUE;
    if (r->is_closed && looks == AK_TC_MATCH_YES) { /* the text ends inside the header */
        r->pos = r->scanned = r->text.n;
        return AK_TC_CONTINUE;
    }
    /* It is text after all. Report its first byte, so that it is not taken for a header again. */
    r->at_start = false;
    AK_TC_TRY(ak_tc_emit_text(r, r->text.bytes + r->pos, 1));
    r->scanned = ++r->pos;
    return AK_TC_CONTINUE;
}
