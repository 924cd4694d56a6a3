/* Terminal attributes during an answer, restored on every way out. */
#include "apps/cli/run/terminal.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "apps/common/message.h"

unsigned cli_terminal_columns(FILE *stream)
{
    struct winsize size;
    int fd = fileno(stream);
    return isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/* ---- Typing ------------------------------------------------------------- */
static struct termios found, without_echo;
static volatile sig_atomic_t is_known, is_hidden;

/* Only in the foreground: elsewhere the call would stop the program. Is called by signals. */
static void set(const struct termios *attributes)
{
    if (tcgetpgrp(STDIN_FILENO) == getpgrp())
        tcsetattr(STDIN_FILENO, TCSANOW, attributes);
}

static void on_signal(int signal_number);

static void catch_signals(void)
{
    static const int signals[] = { SIGTERM, SIGHUP, SIGQUIT, SIGTSTP };
    struct sigaction action, before;
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_handler = on_signal;
    /* so that the handler can raise it again, for its usual effect */
    action.sa_flags = (int)SA_RESETHAND | SA_NODEFER | SA_RESTART;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(signals[i], &action, NULL);
}

static void on_signal(int signal_number)
{
    int error = errno;
    if (is_hidden)
        set(&found);
    raise(signal_number);
    /* here after SIGTSTP, when the program goes on */
    catch_signals();
    if (is_hidden)
        set(&without_echo);
    errno = error;
}

void cli_terminal_hide_typing(bool by_line)
{
    if (!is_known) {
        if (tcgetattr(STDIN_FILENO, &found) != 0)
            return;
        is_known = 1;
        catch_signals();
        app_interrupt_at_exit(cli_terminal_show_typing);
    }
    without_echo = found;
    without_echo.c_lflag &= ~(tcflag_t)(by_line ? ECHO : ECHO | ICANON);
    if (!by_line) {
        without_echo.c_cc[VMIN] = 1;
        without_echo.c_cc[VTIME] = 0;
    }
    is_hidden = 1;
    set(&without_echo);
}

void cli_terminal_show_typing(void)
{
    if (is_hidden)
        set(&found);
    is_hidden = 0;
}
