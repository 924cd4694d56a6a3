/* Reads vocab.json with merges.txt, and vocab.txt. Their faults are found here, where file and line
 * are known. */
#include <stdint.h>
#include <string.h>

#include "base/buffer.h"
#include "base/utf8.h"
#include "text/tokenizer/internal.h"
#include "text/tokenizer/slow.h"

struct lines {
    const char *pos, *end;
    size_t number; /* of the line that was read last, from 1 on */
};

/* The next line without its end, "\n" or "\r\n"; false: there is none. */
static bool next_line(struct lines *l, struct ak_text *line)
{
    if (l->pos == l->end)
        return false;
    const char *end = memchr(l->pos, '\n', (size_t)(l->end - l->pos));
    const char *stop = end ? end : l->end;
    *line = (struct ak_text){ l->pos, (uint32_t)(stop - l->pos) };
    if (end && line->n > 0 && line->bytes[line->n - 1] == '\r')
        line->n--;
    l->pos = end ? end + 1 : l->end;
    l->number++;
    return true;
}

static ak_status fail_line(const struct ak_tok_slow *s, const char *file, const struct lines *l,
                           struct ak_text line, const char *expected)
{
    char shown[AK_SHOW_BYTES];
    return ak_fail(s->error, AKUNU_ERROR_FORMAT, "%s: line %zu is \"%s\", where %s is expected",
                   file, l->number, ak_show(line.bytes, ak_min_size(line.n, 64), shown), expected);
}

static bool is_text(struct ak_text line)
{
    return ak_is_utf8(line.bytes, line.n) && !memchr(line.bytes, '\0', line.n);
}

static ak_status open_lines(const struct ak_tok_slow *s, const char *file, struct lines *out)
{
    struct ak_text text;
    if (!ak_provider_file(s->p, file, &text) || text.n == 0)
        return ak_fail(s->error, AKUNU_ERROR_FORMAT, "%s is empty", file);
    *out = (struct lines){ text.bytes, text.bytes + text.n, 0 };
    return AKUNU_OK;
}

static json_t *get_model(const struct ak_tok_slow *s)
{
    return json_object_get(s->root, "model");
}

/* ---- vocab.txt ---------------------------------------------------------- */
/* A line is a token without the whitespace at its end; its number from 0 on is the id. Of two equal
 * lines the last one counts. */
static ak_status read_vocab_lines(const struct ak_tok_slow *s, json_t *vocab)
{
    struct lines lines = { NULL, NULL, 0 };
    struct ak_text line;
    struct ak_buffer key = { .n = 0 };
    ak_status status = open_lines(s, s->vocab_file, &lines);

    while (status == AKUNU_OK && next_line(&lines, &line)) {
        if (!is_text(line)) {
            status = fail_line(s, s->vocab_file, &lines, line, "a token in UTF-8");
            break;
        }
        key.n = 0;
        status = ak_buffer_add(&key, line.bytes,
                               ak_tok_find_whitespace_begin(line.bytes, 0, line.n), s->error);
        if (status == AKUNU_OK)
            status = ak_buffer_add(&key, "", 1, s->error);
        if (status == AKUNU_OK &&
            json_object_set_new_nocheck(vocab, key.bytes,
                                        json_integer((json_int_t)lines.number - 1)) != 0)
            status = ak_tok_slow_fail_memory(s);
    }
    ak_buffer_free(&key);
    return status;
}

ak_status ak_tok_slow_read_wordpiece(struct ak_tok_slow *s)
{
    json_t *vocab = json_object();
    const char *unknown = ak_tok_slow_name(s, "unk_token");

    if (!vocab || json_object_set_new(get_model(s), "vocab", vocab) != 0)
        return ak_tok_slow_fail_memory(s);
    if (unknown && json_object_set_new(get_model(s), "unk_token", json_string(unknown)) != 0)
        return ak_tok_slow_fail_memory(s);
    return read_vocab_lines(s, vocab);
}

/* ---- vocab.json, merges.txt --------------------------------------------- */
/* Whether the line is two tokens with a space between them that together are a token. */
static ak_status check_merge(const struct ak_tok_slow *s, const json_t *vocab, struct ak_text line,
                             struct ak_buffer *work, bool *good)
{
    const char *gap = memchr(line.bytes, ' ', line.n);
    size_t n_left = gap ? (size_t)(gap - line.bytes) : 0;

    *good = false;
    if (!gap || n_left == 0 || n_left + 1 == line.n || !is_text(line) ||
        memchr(gap + 1, ' ', line.n - n_left - 1))
        return AKUNU_OK;
    work->n = 0; /* left NUL right NUL left right NUL */
    AK_TRY(ak_buffer_add(work, line.bytes, line.n, s->error));
    AK_TRY(ak_buffer_add(work, "", 1, s->error));
    AK_TRY(ak_buffer_add(work, line.bytes, n_left, s->error));
    AK_TRY(ak_buffer_add(work, gap + 1, line.n - n_left - 1, s->error));
    AK_TRY(ak_buffer_add(work, "", 1, s->error));
    work->bytes[n_left] = '\0';
    *good = json_object_get(vocab, work->bytes) &&
            json_object_get(vocab, work->bytes + n_left + 1) &&
            json_object_get(vocab, work->bytes + line.n + 1);
    return AKUNU_OK;
}

/* Lines that begin with "#version", and empty ones, are no merges. */
static ak_status read_merges(const struct ak_tok_slow *s, const json_t *vocab, json_t *merges)
{
    static const char file[] = "merges.txt", version[] = "#version";
    struct lines lines = { NULL, NULL, 0 };
    struct ak_text line;
    struct ak_buffer work = { .n = 0 };
    bool good;
    ak_status status = open_lines(s, file, &lines);

    while (status == AKUNU_OK && next_line(&lines, &line)) {
        if (line.n == 0 ||
            (line.n >= sizeof version - 1 && memcmp(line.bytes, version, sizeof version - 1) == 0))
            continue;
        status = check_merge(s, vocab, line, &work, &good);
        if (status == AKUNU_OK && !good)
            status = fail_line(s, file, &lines, line,
                               "a pair of tokens of vocab.json that together are a token");
        if (status == AKUNU_OK &&
            json_array_append_new(merges, json_stringn_nocheck(line.bytes, line.n)) != 0)
            status = ak_tok_slow_fail_memory(s);
    }
    ak_buffer_free(&work);
    return status;
}

ak_status ak_tok_slow_read_bpe(struct ak_tok_slow *s)
{
    json_t *vocab, *merges = json_array();

    if (!merges || json_object_set_new(get_model(s), "merges", merges) != 0)
        return ak_tok_slow_fail_memory(s);
    AK_TRY(ak_provider_json(s->p, s->vocab_file, &vocab, s->error));
    if (!json_is_object(vocab)) {
        ak_fail(s->error, AKUNU_ERROR_FORMAT, "%s is %s, where an object is expected",
                s->vocab_file, ak_json_kind(vocab));
        json_decref(vocab);
        return AKUNU_ERROR_FORMAT;
    }
    if (json_object_set_new(get_model(s), "vocab", vocab) != 0)
        return ak_tok_slow_fail_memory(s);
    return read_merges(s, vocab, merges);
}
