#include "cli/interrupt.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli/message.h"

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    if (interrupted)
        _exit(CLI_EXIT_INTERRUPTED);
    interrupted = 1;
}

void cli_interrupt_install(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_handler = on_interrupt; /* no SA_RESTART: a read of the terminal must end too */
    sigaction(SIGINT, &action, NULL);
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, NULL);
    sigaction(SIGXFSZ, &action, NULL);
}

bool cli_is_interrupted(void)
{
    return interrupted != 0;
}

void cli_interrupt_clear(void)
{
    interrupted = 0;
}
