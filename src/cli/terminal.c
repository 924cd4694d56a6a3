/* The width of the terminal. */
#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

unsigned cli_terminal_columns(FILE *stream)
{
    struct winsize size;
    int fd = fileno(stream);
    return isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}
