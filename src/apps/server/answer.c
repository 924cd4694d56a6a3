/* Answers and errors as JSON. */
#include "apps/server/server.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/json_text.h"
#include "apps/common/output.h"

void server_answer(struct http_exchange *x, unsigned code, json_t *value)
{
    char *text = value ? app_json_write(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    json_decref(value);
    if (!text) {
        server_fail_memory(x);
        return;
    }
    http_answer(x, code, "application/json", text, strlen(text));
    free(text);
}

static const char *type_of(unsigned code)
{
    switch (code) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 429: return "rate_limit_error";
    case 500:
    case 501: return "server_error";
    case 503: return "unavailable_error";
    default: return "invalid_request_error";
    }
}

json_t *server_error(const struct http_exchange *x, unsigned code, const char *param,
                     const char *code_name, const char *message)
{
    json_t *text = app_json_text(message, strlen(message)); /* it may quote what a client sent */
    return server_api_of(x)->error(code, type_of(code), param, code_name, text);
}

void server_fail(struct http_exchange *x, unsigned code, const char *param, const char *code_name,
                 const char *format, ...)
{
    char message[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (code == 401)
        http_add_header(x, "WWW-Authenticate", "Bearer");
    if (code == 429)
        http_add_header(x, "Retry-After", "1");
    server_answer(x, code, server_error(x, code, param, code_name, message));
}

void server_fail_memory(struct http_exchange *x)
{
    static const char text[] = "{\"error\":{\"message\":\"out of memory\",\"type\":"
                               "\"unavailable_error\",\"param\":null,\"code\":null}}";
    http_answer(x, 503, "application/json", text, sizeof text - 1);
}

void server_fail_library(struct http_exchange *x, const char *param)
{
    server_fail_library_at(x, param, 0, 1);
}

void server_fail_library_at(struct http_exchange *x, const char *param, size_t i, size_t n)
{
    char where[64] = "";
    if (n > 1)
        snprintf(where, sizeof where, "%s[%zu]: ", param, i);
    switch (akunu_last_status()) {
    case AKUNU_ERROR_MEMORY: server_fail_memory(x); return;
    case AKUNU_ERROR_BUSY: server_fail(x, 429, NULL, NULL, "%s", akunu_last_error()); return;
    case AKUNU_ERROR_CONTEXT:
        server_fail(x, 400, param, "context_length_exceeded", "%s%s", where, akunu_last_error());
        return;
    default: server_fail(x, 400, param, NULL, "%s%s", where, akunu_last_error());
    }
}
