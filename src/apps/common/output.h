/* Results on standard output; nothing else is written there. Also reasoning on standard error
 * (answer.c) and tables in memory (bench.c). The first error is kept, so that a full disk is
 * reported and a closed pipe ends quietly. Also printing of JSON. */
#ifndef AK_APPS_COMMON_OUTPUT_H
#define AK_APPS_COMMON_OUTPUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct app_output {
    FILE *file;
    int error; /* errno of the first failure; 0: none */
};

struct app_output app_output_stdout(void);

/* Each returns false once anything has failed, and then does nothing. */
bool app_output_bytes(struct app_output *out, const void *bytes, size_t n);
bool app_output_text(struct app_output *out, const char *text);
bool app_output_format(struct app_output *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
bool app_output_flush(struct app_output *out);

/* Writes n bytes for people: control characters and malformed UTF-8 are escaped. */
bool app_output_escaped(struct app_output *out, const char *bytes, size_t n);

/* Flushes and returns the exit code: `code`, or APP_EXIT_FAILURE after a message if output could
 * not be written. A closed pipe is not a failure. */
int app_output_end(struct app_output *out, int code);

/* ---- JSON: json.c ------------------------------------------------------- */
/* JSON values of what a model file may hold, and their printing. */

/* n bytes as a string; malformed UTF-8 becomes U+FFFD. */
json_t *app_json_text(const char *bytes, size_t n);

/* A number; null for infinities and NaN, which JSON lacks. */
json_t *app_json_real(double value);

/* An integer; beyond int64 the nearest real. */
json_t *app_json_unsigned(uint64_t value);

/* Prints `value` on one line and releases it. NULL stands for a failed allocation and counts as a
 * write error with ENOMEM. */
bool app_json_print(struct app_output *out, json_t *value);

#endif
