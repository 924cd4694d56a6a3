/* Reads typed lines with libedit if it was built in and there is a terminal, else with getline. */
#include "apps/cli/chat/line_edit.h"

#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/common/input.h"
#include "apps/common/message.h"
#include "apps/cli/run/terminal.h"
#include "apps/cli/run/wrap.h"
#include "config.h"

#ifdef HAVE_AK_LIBEDIT
#include <histedit.h>
#include <wchar.h>

enum { HISTORY_LINES = 1000 };
#endif

struct cli_line_editor {
    bool typed;
    char *line;                 /* getline's buffer */
    size_t capacity;            /* of `line` */
    cli_complete_fn *completer; /* NULL: none */
    void *user;                 /* of the completer */
#ifdef HAVE_AK_LIBEDIT
    EditLine *edit; /* NULL: the terminal edits lines itself */
    History *history;
    char prompt[64]; /* \1 encloses escape sequences, which take no column */
#endif
};

/* ---- Without libedit ---------------------------------------------------- */
static enum cli_line read_plain(struct cli_line_editor *e, const char *prompt, const char **text,
                                size_t *n)
{
    struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
    bool unseen = e->typed && poll(&input, 1, 0) > 0; /* typed before the prompt */
    if (e->typed) {
        cli_terminal_show_typing();
        fputs(prompt, stderr);
        fflush(stderr);
    }
    errno = 0;
    ssize_t got = app_is_interrupted() ? -1 : getline(&e->line, &e->capacity, stdin);
    if (got < 0) {
        bool interrupted = app_is_interrupted(), no_memory = errno == ENOMEM;
        clearerr(stdin);
        if (e->typed)
            fputc('\n', stderr);
        return interrupted ? CLI_LINE_INTERRUPTED : no_memory ? CLI_LINE_NO_MEMORY : CLI_LINE_END;
    }
    if (unseen)
        fputs(e->line, stderr);
    *text = e->line;
    *n = (size_t)got;
    app_drop_newline(e->line, n);
    return CLI_LINE_TEXT;
}

/* ---- libedit ------------------------------------------------------------ */
#ifdef HAVE_AK_LIBEDIT
static char *prompt_of(EditLine *edit)
{
    void *editor = NULL;
    el_get(edit, EL_CLIENTDATA, &editor);
    return ((struct cli_line_editor *)editor)->prompt;
}

/* Signals that libedit answers by drawing, in its handler: a new size of the terminal frees what it
 * draws from. They are blocked except during the wait for a key. */
static const int redrawing[] = { SIGWINCH, SIGCONT };

static sigset_t block_redrawing(void)
{
    sigset_t set, before;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof redrawing / sizeof *redrawing; i++)
        sigaddset(&set, redrawing[i]);
    sigprocmask(SIG_BLOCK, &set, &before);
    return before;
}

/* Waits for a byte. Ctrl-C is unblocked only during the wait, so none is lost between the check and
 * the wait. */
static ssize_t read_byte(char *out)
{
    struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
    sigset_t interrupt, before, during;
    int ready = -1;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    sigprocmask(SIG_BLOCK, &interrupt, &before);
    during = before;
    for (size_t i = 0; i < sizeof redrawing / sizeof *redrawing; i++)
        sigdelset(&during, redrawing[i]);
    while (!app_is_interrupted() && ready < 0) {
        ready = ppoll(&input, 1, NULL, &during);
        if (ready < 0 && errno != EINTR)
            break;
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return ready > 0 ? read(STDIN_FILENO, out, 1) : -1;
}

/* Reads one character. libedit's own reader continues after Ctrl-C. A NUL, left over from a Ctrl-D
 * typed during an answer, is skipped. */
static int read_character(EditLine *edit, wchar_t *out)
{
    char bytes[8];
    mbstate_t state = { 0 };
    (void)edit;
    for (size_t n = 0; n < sizeof bytes; n++) {
        ssize_t got = read_byte(bytes + n);
        if (got <= 0)
            return (int)got;
        memset(&state, 0, sizeof state);
        size_t length = mbrtowc(out, bytes, n + 1, &state);
        if (length == 0) {
            n = (size_t)-1;
            continue;
        }
        if (length <= n + 1)
            return 1;
        if (length == (size_t)-1) {
            *out = L'?';
            return 1;
        }
    }
    return -1;
}

/* Color codes are enclosed in \1, so that libedit does not count them. It never prints what follows
 * the last character, so color ends before that one, a space. */
static void set_prompt(struct cli_line_editor *e, const char *prompt)
{
    if (app_supports_color(stderr))
        snprintf(e->prompt, sizeof e->prompt, "\1\033[1m\1%.*s\1\033[0m\1 ",
                 (int)strlen(prompt) - 1, prompt);
    else
        snprintf(e->prompt, sizeof e->prompt, "%s", prompt);
}

static enum cli_line read_edited(struct cli_line_editor *e, const char *prompt, const char **text,
                                 size_t *n)
{
    int count = 0;
    set_prompt(e, prompt);
    el_resize(e->edit);
    cli_terminal_show_typing();
    /* before the prompt appears, so that keys typed then arrive one by one */
    el_set(e->edit, EL_PREP_TERM, 1);
    sigset_t before = block_redrawing();
    const char *line = el_gets(e->edit, &count);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (app_is_interrupted()) {
        const LineInfo *typed = el_line(e->edit);
        bool dropped = typed && typed->lastchar > typed->buffer;
        fputc('\n', stderr);
        el_reset(e->edit);
        return dropped ? CLI_LINE_DROPPED : CLI_LINE_INTERRUPTED;
    }
    if (!line || count <= 0) {
        fputc('\n', stderr);
        return CLI_LINE_END;
    }
    free(e->line);
    e->line = strdup(line);
    if (!e->line)
        return CLI_LINE_NO_MEMORY;
    *n = strcspn(e->line, "\n");
    e->line[*n] = '\0';
    *text = e->line;
    return CLI_LINE_TEXT;
}

/* ---- Completion --------------------------------------------------------- */
/* Bytes that all words begin with, in whole characters. */
static size_t common_of(const struct cli_candidates *c)
{
    size_t n = strlen(c->words[0]);
    for (size_t i = 1; i < c->n; i++) {
        size_t same = 0;
        while (same < n && c->words[i][same] == c->words[0][same])
            same++;
        n = same;
    }
    while (n > 0 && ((unsigned char)c->words[0][n] & 0xc0) == 0x80)
        n--;
    return n;
}

static void list(const struct cli_candidates *c)
{
    char shown[APP_SHOWN_BYTES];
    fputc('\n', stderr);
    for (size_t i = 0; i < c->n; i++)
        fprintf(stderr, "%s%s", i > 0 ? "  " : "", app_show_text(c->words[i], shown));
    fputc('\n', stderr);
}

static void free_candidates(struct cli_candidates *c)
{
    for (size_t i = 0; i < c->n; i++)
        free(c->words[i]);
    free(c->words);
}

/* Tab: inserts the common beginning of all candidates, or lists them. */
static unsigned char complete(EditLine *edit, wint_t key)
{
    void *user = NULL;
    struct cli_candidates found = { 0 };
    unsigned char result = CC_ERROR;
    (void)key;
    el_get(edit, EL_CLIENTDATA, &user);
    struct cli_line_editor *e = user;
    const LineInfo *line = el_line(edit);
    size_t n = (size_t)(line->cursor - line->buffer);
    if (e->completer)
        e->completer(line->buffer, n, &found, e->user);
    if (found.as_text) {
        result = el_insertstr(edit, "\t") == 0 ? CC_REFRESH : CC_ERROR;
    } else if (found.n > 0) {
        size_t typed = n - found.begin, common = common_of(&found);
        if (common > typed) {
            found.words[0][common] = '\0';
            result = el_insertstr(edit, found.words[0] + typed) == 0 ? CC_REFRESH : CC_ERROR;
        } else if (found.n > 1) {
            list(&found);
            result = CC_REDISPLAY;
        }
    }
    free_candidates(&found);
    return result;
}

/* Uses the locale's characters; without one UTF-8, as files are. */
static void choose_characters(void)
{
    const char *chosen = setlocale(LC_CTYPE, "");
    if (!chosen || strcmp(chosen, "C") == 0 || strcmp(chosen, "POSIX") == 0)
        setlocale(LC_CTYPE, "C.UTF-8");
}

static void begin_editing(struct cli_line_editor *e)
{
    HistEvent event;
    const char *terminal = getenv("TERM");
    if (!terminal || strcmp(terminal, "dumb") == 0)
        return;
    choose_characters();
    e->edit = el_init("akunu-cli", stdin, stderr, stderr);
    if (!e->edit)
        return;
    el_set(e->edit, EL_CLIENTDATA, e);
    el_set(e->edit, EL_PROMPT_ESC, prompt_of, '\1');
    el_set(e->edit, EL_EDITOR, "emacs");
    el_set(e->edit, EL_SIGNAL, 1); /* restores the terminal on any signal */
    el_set(e->edit, EL_GETCFN, read_character);
    /* the names are wide, since el_set would leak copies of them */
    el_wset(e->edit, EL_ADDFN, L"akunu-complete", L"complete a command", complete);
    el_set(e->edit, EL_BIND, "^I", "akunu-complete", NULL);
    el_source(e->edit, NULL); /* the user's ~/.editrc */
    e->history = history_init();
    if (e->history) {
        history(e->history, &event, H_SETSIZE, HISTORY_LINES);
        history(e->history, &event, H_SETUNIQUE, 1);
        el_set(e->edit, EL_HIST, history, e->history);
    }
}
#endif

/* ---- Interface ---------------------------------------------------------- */
static void hide_typing(const struct cli_line_editor *e)
{
#ifdef HAVE_AK_LIBEDIT
    bool by_line = e->edit == NULL;
#else
    bool by_line = true;
#endif
    if (e->typed)
        cli_terminal_hide_typing(by_line);
}

struct cli_line_editor *cli_line_editor_new(void)
{
    struct cli_line_editor *e = calloc(1, sizeof *e);
    if (!e)
        return NULL;
    e->typed = isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
#ifdef HAVE_AK_LIBEDIT
    if (e->typed)
        begin_editing(e);
#endif
    hide_typing(e);
    return e;
}

void cli_line_editor_free(struct cli_line_editor *e)
{
    if (!e)
        return;
#ifdef HAVE_AK_LIBEDIT
    if (e->history)
        history_end(e->history);
    if (e->edit)
        el_end(e->edit);
#endif
    cli_terminal_show_typing();
    free(e->line);
    free(e);
}

bool cli_line_is_typed(const struct cli_line_editor *e)
{
    return e->typed;
}

enum cli_line cli_line_read(struct cli_line_editor *e, const char *prompt, const char **text,
                            size_t *n)
{
    enum cli_line result;
#ifdef HAVE_AK_LIBEDIT
    if (e->edit)
        result = read_edited(e, prompt, text, n);
    else
#endif
        result = read_plain(e, prompt, text, n);
    hide_typing(e);
    return result;
}

bool cli_line_is_waiting(const struct cli_line_editor *e)
{
#ifdef HAVE_AK_LIBEDIT
    struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
    return e->edit && poll(&input, 1, 0) > 0 && (input.revents & POLLIN);
#else
    (void)e;
    return false;
#endif
}

bool cli_line_has_history(const struct cli_line_editor *e)
{
#ifdef HAVE_AK_LIBEDIT
    return e->history != NULL;
#else
    (void)e;
    return false;
#endif
}

void cli_line_remember(struct cli_line_editor *e, const char *text)
{
#ifdef HAVE_AK_LIBEDIT
    HistEvent event;
    if (e->history && *text)
        history(e->history, &event, H_ENTER, text);
#else
    (void)e;
    (void)text;
#endif
}

void cli_line_show(const char *prompt, const char *more, const char *text, size_t n,
                   size_t max_lines)
{
    bool bold = app_supports_color(stderr);
    struct app_output out = { .file = stderr };
    const char *end = text + n;
    for (size_t i = 0; i < max_lines && text < end; i++) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t n_line = (size_t)((newline ? newline : end) - text);
        fprintf(stderr, bold ? "\033[1m%s\033[0m" : "%s", i == 0 ? prompt : more);
        cli_write_plain(&out, text, n_line);
        fputc('\n', stderr);
        text += n_line + (newline != NULL);
    }
    if (text < end)
        app_aside("and %zu bytes more", (size_t)(end - text));
}

/* ---- Candidates --------------------------------------------------------- */
void cli_line_set_completer(struct cli_line_editor *e, cli_complete_fn *fn, void *user)
{
    e->completer = fn;
    e->user = user;
}

void cli_candidates_add(struct cli_candidates *out, const char *typed, size_t n_typed,
                        const char *word, const char *suffix)
{
    char *copy = NULL, **larger;
    if (strncmp(word, typed, n_typed) != 0 || asprintf(&copy, "%s%s", word, suffix) < 0)
        return;
    larger = realloc(out->words, (out->n + 1) * sizeof *larger);
    if (!larger) {
        free(copy);
        return;
    }
    out->words = larger;
    out->words[out->n++] = copy;
}
