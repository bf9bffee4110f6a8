#include "far_end.h"

#include <poll.h>
#include <stddef.h>
#include <sys/socket.h>

bool far_end_is_byte_stream(int fd)
{
    int type = 0;
    socklen_t size = sizeof type;

    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

bool far_end_has_reader(int fd)
{
    struct pollfd end = {fd, 0, 0};

    return poll(&end, 1, 0) <= 0 || (end.revents & (POLLERR | POLLHUP)) == 0;
}
