/* Wraps streamed text. Where a line may break: at spaces and tabs, and beside wide East Asian
 * characters and pictures, but never within a grapheme cluster, before closing punctuation or
 * after opening punctuation. */
#include "apps/cli/run/wrap.h"

#include <string.h>
#include <utf8proc.h>

#include "apps/common/message.h"

enum { TAB_COLUMNS = 8, MIN_FENCE = 3 };

void cli_wrap_begin(struct cli_wrap *w, struct app_output *out)
{
    *w = (struct cli_wrap){ .out = out };
}

/* ---- Characters --------------------------------------------------------- */
struct character {
    int32_t code; /* -1: a malformed byte */
    const char *bytes;
    size_t n;
    unsigned columns;
};

static bool is_control(int32_t c)
{
    return (c >= 0 && c < 0x20 && c != '\n' && c != '\t') || (c >= 0x7f && c < 0xa0);
}

static bool is_blank(int32_t c)
{
    return c == ' ' || c == '\t';
}

/* Column behind a character that is shown at `column`. */
static unsigned advance(unsigned column, const struct character *c)
{
    if (c->code == '\t')
        return (column / TAB_COLUMNS + 1) * TAB_COLUMNS;
    return column + c->columns;
}

/* East Asian punctuation that does not begin a line, and that does not end one. */
static bool is_closing(int32_t c)
{
    return c == 0x3001 || c == 0x3002 || c == 0x3005 || c == 0x30fc || c == 0xff01 || c == 0xff0c ||
           c == 0xff0e || c == 0xff1a || c == 0xff1b || c == 0xff1f ||
           (c > 0 && (utf8proc_category(c) == UTF8PROC_CATEGORY_PE ||
                      utf8proc_category(c) == UTF8PROC_CATEGORY_PF));
}

static bool is_opening(int32_t c)
{
    return c > 0 && (utf8proc_category(c) == UTF8PROC_CATEGORY_PS ||
                     utf8proc_category(c) == UTF8PROC_CATEGORY_PI);
}

/* Whether a line may break between the last character, which is no blank, and this one. */
static bool may_break(struct cli_wrap *w, const struct character *c)
{
    int32_t last = w->last, code = c->code >= 0 ? c->code : 0xfffd;
    if (last == 0)
        return false;
    if (!utf8proc_grapheme_break_stateful(last, code, &w->break_state))
        return false;
    bool beside_wide = c->columns == 2 || utf8proc_charwidth(last) == 2;
    return beside_wide && !is_closing(code) && !is_opening(last);
}

/* ---- Writing ------------------------------------------------------------ */
/* Writes what is held back, without its blanks if they are at the end of a line. */
static void write_held(struct cli_wrap *w, bool with_blanks)
{
    size_t skipped = with_blanks ? 0 : w->n_blanks;
    if (w->n_held > skipped)
        app_output_bytes(w->out, w->held + skipped, w->n_held - skipped);
    w->column = with_blanks ? w->end : w->column + w->columns_of_word;
    w->n_held = w->n_blanks = 0;
    w->columns_of_word = 0;
    if (w->columns > 0 && w->column > w->columns)
        w->column %= w->columns;
    w->end = w->column;
}

static void begin_line(struct cli_wrap *w)
{
    app_output_bytes(w->out, "\n", 1);
    w->column = 0;
}

/* Writes the word that is held back, on a new line if it is too long for this one. */
static void write_word(struct cli_wrap *w)
{
    bool fits = w->columns == 0 || w->end <= w->columns;
    if (w->n_held == w->n_blanks)
        return;
    if (!fits && w->column > 0)
        begin_line(w);
    write_held(w, fits);
}

/* Writes a character here; the terminal breaks the line if it has to. */
static void write_here(struct cli_wrap *w, const struct character *c)
{
    app_output_bytes(w->out, c->bytes, c->n);
    w->column = advance(w->column, c);
    if (w->columns > 0 && w->column > w->columns)
        w->column = c->columns;
    w->end = w->column;
}

static void hold(struct cli_wrap *w, const struct character *c)
{
    if (w->n_held + c->n > sizeof w->held)
        write_held(w, true); /* a thousand marks on one letter, or as many spaces */
    memcpy(w->held + w->n_held, c->bytes, c->n);
    w->n_held += c->n;
    w->end = advance(w->end, c);
}

/* ---- Fences ------------------------------------------------------------- */
static void note_fence(struct cli_wrap *w, const struct character *c)
{
    if (is_blank(c->code)) {
        w->has_blank = w->has_blank || w->n_marks > 0;
    } else if ((c->code == '`' || c->code == '~') && !w->has_text && !w->has_blank &&
               (w->n_marks == 0 || w->mark == (char)c->code)) {
        w->mark = (char)c->code;
        w->n_marks++;
    } else {
        w->has_text = true;
        w->has_tick = w->has_tick || c->code == '`';
    }
}

/* At the end of a line. */
static void take_fence(struct cli_wrap *w)
{
    if (w->fence) {
        if (w->mark == w->fence && w->n_marks >= w->n_fence && !w->has_text)
            w->fence = '\0';
    } else if (w->n_marks >= MIN_FENCE && !(w->mark == '`' && w->has_tick)) {
        w->fence = w->mark;
        w->n_fence = w->n_marks;
    }
    w->mark = '\0';
    w->n_marks = 0;
    w->has_blank = w->has_text = w->has_tick = false;
}

/* ---- Text --------------------------------------------------------------- */
/* Writes what is held back, but no blanks beyond the margin. */
static void write_rest(struct cli_wrap *w)
{
    write_word(w);
    write_held(w, w->columns == 0 || w->end <= w->columns);
}

static void end_line(struct cli_wrap *w)
{
    write_rest(w);
    begin_line(w);
    take_fence(w);
    w->end = 0;
    w->last = 0;
    w->break_state = 0;
    w->in_word = false;
    w->keeps_line = w->fence != '\0';
}

static void add_blank(struct cli_wrap *w, const struct character *c)
{
    write_word(w);
    w->in_word = false;
    hold(w, c);
    w->n_blanks = w->n_held;
}

static void add_to_word(struct cli_wrap *w, const struct character *c)
{
    if (may_break(w, c)) {
        write_word(w);
        w->in_word = false;
    }
    if (w->in_word) {
        write_here(w, c);
        return;
    }
    hold(w, c);
    w->columns_of_word += c->columns;
    if (w->end > w->columns) {
        write_word(w);
        w->in_word = true;
    }
}

static void add_character(struct cli_wrap *w, const struct character *c)
{
    if (is_control(c->code))
        return;
    /* after a resize, the terminal has broken the line anew */
    if (w->columns > 0 && w->column > w->columns) {
        w->end -= w->column - w->column % w->columns;
        w->column %= w->columns;
    }
    if (c->code == '\n') {
        end_line(w);
        return;
    }
    note_fence(w, c);
    if (w->last == 0 && is_blank(c->code))
        w->keeps_line = true;
    if (w->columns == 0 || w->keeps_line) {
        write_held(w, true); /* of before the terminal's size was lost */
        write_here(w, c);
    } else if (is_blank(c->code)) {
        add_blank(w, c);
    } else {
        add_to_word(w, c);
    }
    w->last = c->code >= 0 ? c->code : 0xfffd;
    if (is_blank(c->code))
        w->break_state = 0;
}

/* ---- Bytes -------------------------------------------------------------- */
/* Bytes of the character that `first` begins; 1 if it begins none. */
static size_t length_of(unsigned char first)
{
    return first < 0xc2 || first > 0xf4 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
}

/* Takes the first character of n bytes; returns its bytes. A malformed byte is shown as U+FFFD. */
static size_t take_character(struct cli_wrap *w, const char *text, size_t n)
{
    static const char replacement[] = "\xef\xbf\xbd";
    struct character c = { .code = -1, .bytes = text, .n = app_utf8_length(text, n), .columns = 1 };
    if (c.n > 0) {
        utf8proc_iterate((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)c.n, &c.code);
        int columns = utf8proc_charwidth(c.code);
        c.columns = columns > 0 ? (unsigned)columns : 0;
        add_character(w, &c);
        return c.n;
    }
    c.bytes = replacement;
    c.n = strlen(replacement);
    add_character(w, &c);
    return 1;
}

static void take_partial(struct cli_wrap *w)
{
    size_t taken = take_character(w, w->partial, w->n_partial);
    w->n_partial -= taken;
    memmove(w->partial, w->partial + taken, w->n_partial);
}

void cli_wrap_push(struct cli_wrap *w, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        w->partial[w->n_partial++] = text[i];
        while (w->n_partial > 0 && w->n_partial >= length_of((unsigned char)w->partial[0]))
            take_partial(w);
    }
}

void cli_wrap_end(struct cli_wrap *w)
{
    while (w->n_partial > 0)
        take_partial(w);
    write_rest(w);
}

void cli_write_plain(struct app_output *out, const char *text, size_t n)
{
    struct cli_wrap w;
    cli_wrap_begin(&w, out);
    cli_wrap_push(&w, text, n);
    cli_wrap_end(&w);
}
