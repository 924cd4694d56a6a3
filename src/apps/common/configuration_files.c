/* Finds and reads configuration files: the system's and the user's (XDG base directories). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/common/configuration.h"
#include "apps/common/message.h"

enum { FILE_BYTES_MAX = 1 << 16 };

/* Reads an open file: a regular one, or an empty one such as /dev/null. */
static int read_open(const char *path, int file, struct app_config *config)
{
    struct stat found;
    size_t n = 0;
    char *text = NULL;
    int code = APP_EXIT_OK;
    if (fstat(file, &found) != 0)
        return app_fail_usage("cannot read the configuration %s: %s", path, strerror(errno));
    if (!S_ISREG(found.st_mode) && strcmp(path, "/dev/null") != 0)
        return app_fail_usage("the configuration %s is not a plain file", path);
    if (found.st_size > FILE_BYTES_MAX)
        return app_fail_usage("the configuration %s has %lld bytes; there may be %d", path,
                              (long long)found.st_size, FILE_BYTES_MAX);
    text = malloc(FILE_BYTES_MAX);
    if (!text)
        return app_fail_memory();
    for (ssize_t got = 1;
         code == APP_EXIT_OK && got > 0 && n<FILE_BYTES_MAX; n += got> 0 ? (size_t)got : 0) {
        got = read(file, text + n, FILE_BYTES_MAX - n);
        if (got < 0)
            code = app_fail_usage("cannot read the configuration %s: %s", path, strerror(errno));
    }
    if (code == APP_EXIT_OK)
        code = app_config_parse(path, text, n, config);
    free(text);
    return code;
}

static int read_configuration(const char *path, bool needed, struct app_config *config)
{
    /* does not wait for the writer of a pipe */
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0 && !needed && (errno == ENOENT || errno == ENOTDIR))
        return APP_EXIT_OK;
    if (file < 0)
        return app_fail_usage("cannot read the configuration %s: %s", path, strerror(errno));
    int code = read_open(path, file, config);
    close(file);
    return code;
}

/* Path of the user's file, to be freed; NULL: there is no home. As the XDG base directory
 * specification says, a relative XDG_CONFIG_HOME is ignored. */
static int user_path(char **path)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    int n = 0;
    *path = NULL;
    if (config && config[0] == '/')
        n = asprintf(path, "%s/akunu/config.yaml", config);
    else if (home && *home)
        n = asprintf(path, "%s/.config/akunu/config.yaml", home);
    return n < 0 ? app_fail_memory() : APP_EXIT_OK;
}

int app_config_read(const char *path, struct app_config *out)
{
    char *user;
    *out = (struct app_config){ 0 };
    if (path)
        return read_configuration(path, true, out);
    int code = user_path(&user);
    if (code != APP_EXIT_OK)
        return code;
    code = read_configuration(AK_SYSCONFDIR "/akunu/config.yaml", false, out);
    if (code == APP_EXIT_OK && user)
        code = read_configuration(user, false, out);
    free(user);
    return code;
}

char *app_config_keep(struct app_config *config, const char *text, size_t n)
{
    char **larger = realloc(config->strings, (config->n_strings + 1) * sizeof *larger);
    if (!larger)
        return NULL;
    config->strings = larger;
    char *copy = strndup(text, n);
    if (copy)
        config->strings[config->n_strings++] = copy;
    return copy;
}

static bool is_preset(const struct app_setting *s, const char *name)
{
    return s->preset && strcmp(s->preset, name) == 0;
}

const char *app_config_preset(const struct app_config *config, size_t i)
{
    for (size_t k = 0; k < config->n; k++) {
        const char *preset = config->settings[k].preset;
        bool is_first = preset != NULL;
        for (size_t j = 0; is_first && j < k; j++)
            is_first = !is_preset(&config->settings[j], preset);
        if (is_first && i-- == 0)
            return preset;
    }
    return NULL;
}

bool app_config_has_preset(const struct app_config *config, const char *name)
{
    for (size_t i = 0; i < config->n; i++)
        if (is_preset(&config->settings[i], name))
            return true;
    return false;
}

void app_config_free(struct app_config *config)
{
    for (size_t i = 0; i < config->n_strings; i++)
        free(config->strings[i]);
    free(config->strings);
    free(config->settings);
    *config = (struct app_config){ 0 };
}
