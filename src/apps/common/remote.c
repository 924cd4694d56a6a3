/* Which names are those of models on the network, and what a build without libcurl says of them. */
#include "apps/common/remote.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "apps/common/message.h"
#include "config.h"

bool app_is_remote(const char *name)
{
    return strncasecmp(name, "https://", 8) == 0 || strncasecmp(name, "http://", 7) == 0 ||
           strncmp(name, "hf:", 3) == 0;
}

#ifndef HAVE_AK_CURL
static int fail_without_curl(void)
{
    return app_fail("this build downloads nothing, since libcurl was missing when it was "
                    "configured: apt-get install libcurl4-gnutls-dev, then configure and build "
                    "again, or download the file and name it with -m FILE");
}

int cli_pull(const struct app_options *o)
{
    (void)o;
    return fail_without_curl();
}

int app_remote_path(const struct app_options *o, const char *name, char **path)
{
    (void)o, (void)name;
    *path = NULL;
    return fail_without_curl();
}

int app_remote_header(const struct app_options *o, const char *name,
                      struct app_remote_header *header)
{
    (void)o, (void)name;
    *header = (struct app_remote_header){ 0 };
    return fail_without_curl();
}

const char *app_remote_version(void)
{
    return NULL;
}

void app_remote_header_free(struct app_remote_header *header)
{
    (void)header;
}
#endif
