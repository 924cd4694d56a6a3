/* The harmony format of gpt-oss: a reply is a row of messages, each with a header that says
 * what it is.
 *
 *     <|start|>assistant<|channel|>analysis<|message|>…<|end|>
 *     <|start|>assistant to=functions.NAME<|channel|>commentary
 * <|constrain|>json<|message|>{…}<|call|>
 *     <|start|>assistant<|channel|>final<|message|>…<|return|>
 *
 * The prompt ends with "<|start|>assistant". The recipient stands before the channel or
 * after it. https://cookbook.openai.com/articles/openai-harmony */
#include "toolcall/state.h"

enum { MOST_HEADER = 1024 };

/* Has no markers of its own: the message's end ends it. */
const struct ak_thinking ak_harmony_analysis = { "", "", false };

/* The word after the last `key` of the header; 0: there is none. */
static size_t last_word(const char *header, size_t n, const char *key, const char **word)
{
    size_t length = 0, n_key = strlen(key);

    for (size_t i = 0; i + n_key <= n; i++) {
        if (memcmp(header + i, key, n_key) != 0)
            continue;
        *word = header + i + n_key;
        for (length = 0;
             i + n_key + length < n && !ak_is_blank((*word)[length]) && (*word)[length] != '<';)
            length++;
    }
    return length;
}

static bool is(const char *word, size_t n, const char *what)
{
    return n == strlen(what) && memcmp(word, what, n) == 0;
}

static enum ak_progress begin_call(struct ak_reply *r, const char *name, size_t n, size_t after)
{
    static const char space[] = "functions.";
    size_t n_space = sizeof space - 1;

    AK_GO(ak_call_open(r, NULL, r->at, after));
    r->shape = &r->format->shapes[0];
    r->place = AK_PLACE_BODY;
    if (n > n_space && memcmp(name, space, n_space) == 0)
        name += n_space, n -= n_space;
    if (n > AK_MOST_NAME)
        return ak_broken(r, "a name of more than %d bytes", AK_MOST_NAME);
    memcpy(r->name, name, n);
    r->name[n] = '\0';
    return AK_ON;
}

static enum ak_progress begin(struct ak_reply *r, size_t n, size_t after)
{
    const char *header = r->text.bytes + r->at, *channel = NULL, *to = NULL;
    size_t n_channel = last_word(header, n, "<|channel|>", &channel),
           n_to = last_word(header, n, "to=", &to);

    if (n_to && r->calls && !is(to, n_to, "assistant") && !is(to, n_to, "user"))
        return begin_call(r, to, n_to, after);
    bool analysis = n_channel && is(channel, n_channel, "analysis");
    if (analysis && !r->reasoning)
        AK_GO(ak_emit_text(r, header, after - r->at));
    r->at = after;
    return ak_prose_begin(r, analysis ? &ak_harmony_analysis : NULL);
}

/* Is this the beginning of a header? The first one of a reply may have lost its markers to
 * the prompt, and be a recipient alone; and a model may leave headers out. */
static enum ak_match looks_like_header(const struct ak_reply *r)
{
    static const char *const beginnings[] = { " to=", "<|start|>", "<|channel|>", "<|message|>" };
    enum ak_match best = AK_MATCH_NO;

    for (size_t i = 0, after; i < sizeof beginnings / sizeof beginnings[0]; i++) {
        enum ak_match match = ak_match_loosely(r, r->at, beginnings[i], &after);
        best = match > best ? match : best;
    }
    return best;
}

enum ak_progress ak_harmony_header(struct ak_reply *r)
{
    static const char end[] = "<|message|>";
    enum ak_match looks = looks_like_header(r);

    if (looks == AK_MATCH_PART && !r->closed)
        return AK_WAIT;
    if (looks == AK_MATCH_YES) {
        const char *found =
            memmem(r->text.bytes + r->at, ak_min_size(r->text.n - r->at, MOST_HEADER), end,
                   sizeof end - 1);
        if (found) {
            size_t n = (size_t)(found - r->text.bytes) - r->at;
            return begin(r, n, r->at + n + sizeof end - 1);
        }
        if (r->text.n - r->at < MOST_HEADER && !r->closed)
            return AK_WAIT;
    }
    r->place = AK_PLACE_TEXT;
    r->thinking = NULL;
    r->seen = r->at;
    if (looks == AK_MATCH_NO || r->at == r->text.n)
        return AK_ON;
    if (r->closed && looks == AK_MATCH_YES) { /* nothing of the message came */
        r->at = r->seen = r->text.n;
        return AK_ON;
    }
    /* It is text: its first byte goes by, so that it is not taken for a header again. */
    r->fresh = false;
    AK_GO(ak_emit_text(r, r->text.bytes + r->at, 1));
    r->seen = ++r->at;
    return AK_ON;
}
