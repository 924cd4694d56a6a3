/* Files of a conversation: /save and /load, a JSON list of messages that apply-template and other
 * programs read, and texts for the next message (/read). */
#include "apps/cli/chat/chat.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/common/json_text.h"
#include "apps/common/message.h"

enum { MAX_READ_MB = 16 };

char *cli_chat_path(const char *path)
{
    const char *home = path[0] == '~' && path[1] == '/' ? getenv("HOME") : NULL;
    char *out = NULL;
    if (asprintf(&out, "%s%s", home ? home : "", home ? path + 1 : path) < 0)
        return NULL;
    size_t n = strlen(out);
    while (n > 0 && isspace((unsigned char)out[n - 1]))
        out[--n] = '\0';
    return out;
}

/* Looks at a file; fails unless it is a regular one. */
static int look_at(const char *path, struct stat *info)
{
    if (stat(path, info) != 0)
        return app_fail("cannot read %s: %s", path, strerror(errno));
    return S_ISREG(info->st_mode) ?
               APP_EXIT_OK :
               app_fail("%s is %s, not a file", path,
                        S_ISDIR(info->st_mode) ? "a folder" : "a pipe or a device");
}

/* ---- Conversations ------------------------------------------------------ */
/* What is wrong with a list of messages; NULL: nothing. */
static const char *fault_of(const json_t *messages)
{
    size_t i;
    const json_t *message;
    if (!json_is_array(messages))
        return "it is not a list of messages";
    json_array_foreach (messages, i, message) {
        const json_t *content = json_object_get(message, "content");
        if (!json_is_string(json_object_get(message, "role")))
            return "a message has no role";
        if (!json_is_string(content) && !json_is_array(content) && !json_is_null(content) &&
            !json_is_array(json_object_get(message, "tool_calls")))
            return "a message has no content";
    }
    return NULL;
}

/* Reads to the end of the file. */
static json_t *read_json(FILE *file, size_t flags, json_error_t *error)
{
    char *text = NULL;
    size_t capacity = 0;
    ssize_t n = getdelim(&text, &capacity, '\0', file); /* JSON has no such byte */
    json_t *value = app_json_read(text ? text : "", n > 0 ? (size_t)n : 0, flags | JSON_ALLOW_NUL,
                                  APP_JSON_PYTHON, error);
    free(text);
    return value;
}

/* Reads a conversation; NULL after a message. */
static json_t *read_messages(const char *path)
{
    json_error_t error;
    FILE *file = fopen(path, "re");
    if (!file) {
        app_fail("cannot read %s: %s", path, strerror(errno));
        return NULL;
    }
    json_t *messages = read_json(file, JSON_REJECT_DUPLICATES, &error);
    fclose(file);
    if (!messages) {
        app_fail("%s:%d: no valid JSON: %s", path, error.line, error.text);
        return NULL;
    }
    const char *fault = fault_of(messages);
    if (fault) {
        json_decref(messages);
        app_fail("%s holds no conversation: %s", path, fault);
        return NULL;
    }
    return messages;
}

/* Whether /save may replace the file: it is empty or a conversation. */
static int check_replaceable(const char *path, const struct stat *info)
{
    if (info->st_size == 0)
        return APP_EXIT_OK;
    FILE *file = fopen(path, "re");
    json_t *messages = file ? read_json(file, 0, NULL) : NULL;
    bool good = messages && !fault_of(messages);
    if (file)
        fclose(file);
    json_decref(messages);
    return good ? APP_EXIT_OK :
                  app_fail("%s is there and holds no conversation, so it is not replaced", path);
}

static bool write_messages(const json_t *messages, int fd)
{
    FILE *file = fdopen(fd, "w");
    if (!file) {
        close(fd);
        return false;
    }
    char *text = app_json_write(messages, JSON_INDENT(2));
    bool good = text && fputs(text, file) != EOF && fputc('\n', file) != EOF && fflush(file) == 0;
    int error = errno;
    free(text);
    if (fclose(file) != 0)
        return false;
    errno = error ? error : EIO;
    return good;
}

/* Writes a new file and gives it its name when it is complete. */
static int replace(const json_t *messages, const char *path, mode_t mode)
{
    char *whole = realpath(path, NULL), *part = NULL; /* a link stays one */
    if (asprintf(&part, "%s.%ld", whole ? whole : path, (long)getpid()) < 0)
        part = NULL;
    int fd = part ? open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode) : -1;
    bool good = fd >= 0 && write_messages(messages, fd) && rename(part, whole ? whole : path) == 0;
    int code = good  ? APP_EXIT_OK :
               !part ? app_fail_memory() :
                       app_fail("cannot write %s: %s", path, strerror(errno));
    if (fd >= 0 && !good)
        unlink(part);
    free(part);
    free(whole);
    return code;
}

int cli_chat_save(struct cli_chat *chat, const char *argument)
{
    struct stat info = { .st_mode = 0666 };
    char *path = cli_chat_path(argument);
    int code = path ? APP_EXIT_OK : app_fail_memory();
    if (code == APP_EXIT_OK && access(path, F_OK) == 0) {
        code = look_at(path, &info);
        if (code == APP_EXIT_OK)
            code = check_replaceable(path, &info);
    }
    if (code == APP_EXIT_OK)
        code = replace(chat->messages, path, info.st_mode & 0777);
    if (code == APP_EXIT_OK)
        app_aside("saved %zu messages in %s", json_array_size(chat->messages), path);
    free(path);
    return code;
}

int cli_chat_load(struct cli_chat *chat, const char *argument)
{
    struct stat info;
    char *path = cli_chat_path(argument);
    int code = path ? look_at(path, &info) : app_fail_memory();
    json_t *messages = code == APP_EXIT_OK ? read_messages(path) : NULL;
    if (messages) {
        json_decref(chat->messages);
        chat->messages = messages;
        app_aside("%zu messages from %s", json_array_size(messages), path);
    } else if (code == APP_EXIT_OK) {
        code = APP_EXIT_FAILURE;
    }
    free(path);
    return code;
}

/* ---- Texts -------------------------------------------------------------- */
/* Adds a text for the next message, with an empty line behind it. */
static int attach(struct cli_chat *chat, const struct app_text *text)
{
    struct app_text *to = &chat->attached;
    char *larger = realloc(to->bytes, to->n + text->n + 3);
    if (!larger)
        return app_fail_memory();
    to->bytes = larger;
    memcpy(larger + to->n, text->bytes, text->n);
    to->n += text->n;
    if (larger[to->n - 1] != '\n')
        larger[to->n++] = '\n';
    larger[to->n++] = '\n';
    larger[to->n] = '\0';
    return APP_EXIT_OK;
}

/* Reads a text; fails if it is none. */
static int read_text(const char *path, struct app_text *text)
{
    struct stat info;
    int code = look_at(path, &info);
    *text = (struct app_text){ 0 };
    if (code != APP_EXIT_OK)
        return code;
    if (info.st_size > (off_t)MAX_READ_MB * 1000 * 1000)
        return app_fail("%s has %.0f MB; /read takes at most %d MB", path,
                        (double)info.st_size / 1e6, MAX_READ_MB);
    if (strcmp(path, "-") == 0)
        return app_fail("- would be standard input; write ./-");
    code = app_read_file("file", path, text);
    if (code == APP_EXIT_OK && text->n == 0)
        return app_fail("%s is empty", path);
    if (code == APP_EXIT_OK && memchr(text->bytes, '\0', text->n))
        return app_fail("%s is no text: it has NUL bytes", path);
    return code;
}

int cli_chat_read(struct cli_chat *chat, const char *argument)
{
    struct app_text text = { 0 };
    char *path = cli_chat_path(argument);
    int code = path ? read_text(path, &text) : app_fail_memory();
    if (code == APP_EXIT_OK)
        code = attach(chat, &text);
    if (code == APP_EXIT_OK) {
        int64_t n = akunu_tokenizer_encode(chat->loaded->tokenizer, text.bytes, text.n, 0, NULL, 0);
        app_aside("%s goes with the next message: %zu bytes, %lld tokens", path, text.n,
                  n > 0 ? (long long)n : 0);
    }
    free(text.bytes);
    free(path);
    return code;
}
