/* What a service manager passes in the environment: a listening socket, and where to report. */
#include "apps/server/server.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { FIRST_GIVEN = 3 };

int server_given_listener(void)
{
    const char *pid = getenv("LISTEN_PID"), *n = getenv("LISTEN_FDS");
    bool ours = pid && n && strtol(pid, NULL, 10) == (long)getpid() && strtol(n, NULL, 10) >= 1;
    unsetenv("LISTEN_PID"); /* not for children */
    unsetenv("LISTEN_FDS");
    return ours ? FIRST_GIVEN : -1;
}

void server_notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    if (!path || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof address.sun_path)
        return;
    strcpy(address.sun_path, path);
    if (path[0] == '@')
        address.sun_path[0] = '\0'; /* a socket without a file */
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    (void)sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path)));
    close(fd);
}
