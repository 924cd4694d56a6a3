/* What was typed in earlier chats: a file of lines, newest last, which several programs may read
 * and write at once. */
#ifndef AK_APPS_CLI_CHAT_HISTORY_H
#define AK_APPS_CLI_CHAT_HISTORY_H

#include <stdbool.h>
#include <stddef.h>

/* The file has at most so many bytes, then the older half of its lines goes. Longer lines than
 * CLI_HISTORY_LINE are not kept. */
enum { CLI_HISTORY_BYTES = 256 << 10, CLI_HISTORY_LINE = 8 << 10 };

/* ${XDG_STATE_HOME:-~/.local/state}/akunu/history, to be freed; NULL: out of memory, or HOME is not
 * set. */
char *cli_history_path(void);

/* Calls `each` with every line, oldest first. A file that is missing or unreadable has none. */
void cli_history_read(const char *path, void (*each)(const char *line, void *user), void *user);

/* Adds a line; creates the file and its folders, for their owner alone. *created: the file is new.
 * Returns 0 or an errno. */
int cli_history_add(const char *path, const char *line, bool *created);

#endif
