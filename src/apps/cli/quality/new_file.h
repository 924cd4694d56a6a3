/* Files that appear under their name when they are whole: an interruption, an error or a full disk
 * leaves nothing behind, and an older file of the name stays. */
#ifndef AK_APPS_CLI_QUALITY_NEW_FILE_H
#define AK_APPS_CLI_QUALITY_NEW_FILE_H

#include <stdio.h>

struct cli_new_file {
    const char *flag; /* for messages */
    char *path;       /* where it will be; links are followed */
    char *part;       /* name until then; NULL: it has none */
    FILE *file;       /* to write to; NULL: not open */
};

/* Begins a file. `flag` names the flag that has the path, and must stay. Returns an exit code,
 * after a message unless it is APP_EXIT_OK; then call cli_new_file_end. */
int cli_new_file_begin(const char *flag, const char *path, struct cli_new_file *out);

/* Gives the file its name if `code`, that of the work so far, is APP_EXIT_OK and all was written;
 * else drops it. Returns the exit code of both. An all-zero struct is allowed. */
int cli_new_file_end(struct cli_new_file *file, int code);

#endif
