/* The page of report: sizes, speeds and losses of several models as HTML with plots. */
#ifndef AK_APPS_CLI_QUALITY_REPORT_H
#define AK_APPS_CLI_QUALITY_REPORT_H

#include <stdio.h>

#include "apps/cli/quality/perplexity.h"

struct cli_report_row {
    const char *name; /* of the file, without its folder */
    struct cli_text_score score;
};

/* Writes a page that needs no other file and no JavaScript. `base` names what the rows are compared
 * with. Write errors stay with the stream. */
void cli_report_page(FILE *file, const char *base, const struct cli_report_row *rows, size_t n);

#endif
