/* transcribe --stream: writes down speech from standard input while it is spoken. Ctrl-C ends the
 * audio: what was read until then is still written. */
#include "apps/cli/speech/stream.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/common/message.h"
#include "apps/common/output.h"

enum { PIECE = 1 << 16, LINE_BYTES = 80 };

struct stream {
    const struct app_options *o;
    struct app_output *out;
    bool is_terminal;
    bool has_partial; /* words that are not final end the terminal's line */
    size_t n_line;    /* bytes of the line that are final */
    char line[4 * LINE_BYTES];
    unsigned char bytes[PIECE];
    size_t n_bytes; /* that are no whole sample yet */
    float samples[PIECE / 2];
};

/* ---- Words -------------------------------------------------------------- */
static void print_words_json(struct stream *s, const struct akunu_word *words, size_t n,
                             bool is_final)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, app_transcript_word(&words[i]));
    app_json_print(s->out, json_pack("{s:b, s:o}", "final", is_final, "words", list));
    app_output_text(s->out, "\n");
}

/* Final words in lines; on a terminal with the others after them, which the next call replaces. */
static void print_text(struct stream *s, const struct akunu_word *words, size_t n, bool is_final)
{
    if (s->has_partial)
        app_output_text(s->out, "\r\033[K");
    if (s->has_partial && s->n_line > 0)
        app_output_escaped(s->out, s->line, s->n_line);
    s->has_partial = false;
    if (!is_final && !s->is_terminal)
        return;
    size_t n_line = s->n_line;
    for (size_t i = 0; i < n; i++) {
        const char *text = words[i].text;
        size_t n_bytes = words[i].n_bytes;
        if (n_line == 0)
            text = app_transcript_strip(text, &n_bytes);
        if (!is_final && n_line + n_bytes > LINE_BYTES)
            break;
        app_output_escaped(s->out, text, n_bytes);
        if (is_final && n_line + n_bytes < sizeof s->line)
            memcpy(s->line + n_line, text, n_bytes);
        n_line += n_bytes;
        if (is_final && n_line + 12 > LINE_BYTES) {
            app_output_text(s->out, "\n");
            n_line = 0;
        }
    }
    s->has_partial = !is_final && n > 0;
    if (is_final)
        s->n_line = n_line;
}

static bool on_words(const struct akunu_word *words, size_t n, bool is_final, void *user)
{
    struct stream *s = user;
    if (s->o->output.json && (n > 0 || !is_final))
        print_words_json(s, words, n, is_final);
    else if (!s->o->output.json)
        print_text(s, words, n, is_final);
    app_output_flush(s->out);
    return true;
}

/* ---- Samples ------------------------------------------------------------ */
static bool has_more(void)
{
    struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
    return poll(&in, 1, 0) > 0 && (in.revents & POLLIN);
}

/* Waits for bytes. 0: the end, or Ctrl-C; -1: an error. */
static ssize_t read_bytes(void *to, size_t max)
{
    ssize_t n;
    do
        n = read(STDIN_FILENO, to, max);
    while (n < 0 && errno == EINTR && !app_is_interrupted());
    return n < 0 && errno == EINTR ? 0 : n;
}

/* Waits for bytes, and takes all that are there, up to a piece. 0: the end; -1: an error. */
static int read_piece(struct stream *s)
{
    size_t before = s->n_bytes;
    do {
        ssize_t n = read_bytes(s->bytes + s->n_bytes, sizeof s->bytes - s->n_bytes);
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        s->n_bytes += (size_t)n;
    } while (s->n_bytes < sizeof s->bytes && has_more());
    return s->n_bytes > before;
}

/* What kind of file begins so; NULL: none that is known. The first bytes of an MP3 file without ID3
 * are as likely a sample. */
static const char *find_kind(const unsigned char *bytes, size_t n)
{
    static const struct {
        const char *magic, *kind;
    } known[] = {
        { "RIFF", "a WAV" }, { "fLaC", "a FLAC" }, { "OggS", "an Ogg" }, { "ID3", "an MP3" }
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t n_magic = strlen(known[i].magic);
        if (n >= n_magic && memcmp(bytes, known[i].magic, n_magic) == 0)
            return known[i].kind;
    }
    return NULL;
}

/* 16-bit little-endian samples as floats. */
static size_t convert(struct stream *s)
{
    size_t n = s->n_bytes / 2;
    for (size_t i = 0; i < n; i++) {
        int value = s->bytes[2 * i] | s->bytes[2 * i + 1] << 8;
        s->samples[i] = (float)(value < 0x8000 ? value : value - 0x10000) * 0x1p-15f;
    }
    if (s->n_bytes % 2)
        s->bytes[0] = s->bytes[s->n_bytes - 1];
    s->n_bytes %= 2;
    return n;
}

static int feed_stream(struct stream *s, struct akunu_speech_stream *stream)
{
    enum akunu_status status = AKUNU_OK;
    int more = 1;
    for (bool first = true; status == AKUNU_OK && more > 0 && !app_is_interrupted();
         first = false) {
        more = read_piece(s);
        if (more < 0)
            return app_fail("cannot read standard input: %s", strerror(errno));
        const char *kind = first ? find_kind(s->bytes, s->n_bytes) : NULL;
        if (kind)
            return app_fail("standard input is %s file; --stream reads 16-bit samples without a "
                            "header. Transcribe a file without --stream",
                            kind);
        status = akunu_speech_stream_push(stream, s->samples, convert(s));
    }
    if (status == AKUNU_OK)
        status = akunu_speech_stream_end(stream);
    if (!s->o->output.json && s->n_line > 0)
        app_output_text(s->out, "\n");
    if (status != AKUNU_OK)
        return app_fail_library();
    return app_is_interrupted() ? APP_EXIT_INTERRUPTED : APP_EXIT_OK;
}

int cli_stream(const struct app_options *o, struct akunu_session *session,
               const struct akunu_transcription_params *params, struct app_output *out)
{
    struct stream *s = calloc(1, sizeof *s);
    if (!s)
        return app_fail_memory();
    s->o = o;
    s->out = out;
    s->is_terminal = isatty(STDOUT_FILENO);
    struct akunu_speech_stream *stream =
        akunu_speech_stream_new(session, o->speech.rate, params, on_words, s);
    int code = stream ? feed_stream(s, stream) : app_fail_library();
    akunu_speech_stream_free(stream);
    free(s);
    return code;
}
