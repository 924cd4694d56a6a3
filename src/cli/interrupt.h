/* Ctrl-C: the first asks the work to stop, a second one ends the program. */
#ifndef AK_CLI_INTERRUPT_H
#define AK_CLI_INTERRUPT_H

#include <stdbool.h>

/* Installs the handler and makes a closed pipe, and a file as large as files may be, an error of
 * writing instead of a signal. */
void cli_interrupt_install(void);

/* Whether Ctrl-C was pressed. */
bool cli_is_interrupted(void);

/* Takes notice of it: the next one is a first one again. */
void cli_interrupt_clear(void);

#endif
