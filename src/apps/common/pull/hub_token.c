/* The token of the repositories' host. It is never printed, and kept nowhere. */
#include "apps/common/pull/hub.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <fcntl.h>

#include "apps/common/message.h"

enum { MAX_TOKEN = 4096 };

/* The file in which `hf auth login` keeps it, to be freed; NULL: no folder is known. */
static char *token_path(void)
{
    const char *file = getenv("HF_TOKEN_PATH"), *home = getenv("HF_HOME");
    const char *cache = getenv("XDG_CACHE_HOME"), *user = getenv("HOME");
    char *path = NULL;
    int n = -1;
    if (file && *file)
        return strdup(file);
    if (home && *home)
        n = asprintf(&path, "%s/token", home);
    else if (cache && *cache)
        n = asprintf(&path, "%s/huggingface/token", cache);
    else if (user && *user)
        n = asprintf(&path, "%s/.cache/huggingface/token", user);
    return n < 0 ? NULL : path;
}

/* The file's text; NULL: there is none. */
static char *read_token_file(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    char *text = calloc(1, MAX_TOKEN + 1);
    ssize_t n = text && fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ?
                    read(fd, text, MAX_TOKEN) :
                    0;
    if (fd >= 0)
        close(fd);
    if (n > 0)
        return text;
    free(text);
    return NULL;
}

/* Drops whitespace around it. */
static void trim(char *text)
{
    size_t skip = strspn(text, " \t\r\n"), n = strlen(text + skip);
    memmove(text, text + skip, n + 1);
    while (n > 0 && strchr(" \t\r\n", text[n - 1]))
        text[--n] = '\0';
}

/* A header takes visible ASCII alone. */
static bool is_plain(const char *text)
{
    for (; *text; text++)
        if (*text <= 0x20 || *text >= 0x7f)
            return false;
    return true;
}

int app_hub_read_token(char **token)
{
    const char *variable = getenv("HF_TOKEN");
    char *path = variable && *variable ? NULL : token_path();
    *token = variable && *variable ? strdup(variable) : path ? read_token_file(path) : NULL;
    free(path);
    if (*token)
        trim(*token);
    if (*token && !is_plain(*token)) {
        free(*token);
        *token = NULL;
        return app_fail_usage("the token of Hugging Face (%s) has characters that no token has",
                              variable && *variable ? "HF_TOKEN" : "its file");
    }
    if (*token && !**token) {
        free(*token);
        *token = NULL;
    }
    return APP_EXIT_OK;
}
