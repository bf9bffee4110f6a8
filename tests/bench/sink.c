/*
 * The daemon's end of the socket for benchmarks: answers at once that there is no hint.
 *
 * `sink SOCKET`: prints "ready", serves until standard input ends. It looks at no more of a frame than
 * its length, its tag and its run.
 */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { PEERS = 64, ROOM = 512 * 1024, TAG_AT = 7, RUN_AT = 10, RUN_SIZE = 16 };

static const uint8_t HELLO[] = {9, 0, 0, 0, 0x93, 1, 1, 0xc4, 4, 's', 'i', 'n', 'k'};
static uint8_t reply[] = {24, 0, 0, 0, 0x95, 4, 0xc4, 16, 0, 0, 0, 0, 0, 0,
                          0,  0, 0, 0, 0,    0, 0,    0,  0, 0, 0, 0, 0xc4, 0};

static void answer(int fd, const uint8_t *bytes, ssize_t size)
{
    for (ssize_t at = 0; at + 4 < size;) {
        uint32_t length;
        memcpy(&length, bytes + at, sizeof length);
        /* CommandStarting is the one message of more than 15 elements */
        if (bytes[at + 4] == 0xdc && bytes[at + TAG_AT] == 2) {
            memcpy(reply + 8, bytes + at + RUN_AT, RUN_SIZE);
            send(fd, reply, sizeof reply, MSG_NOSIGNAL);
        }
        at += 4 + (ssize_t)length;
    }
}

int main(int argc, char **argv)
{
    static uint8_t bytes[ROOM];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct pollfd peers[PEERS] = {{0, POLLIN, 0}, {-1, POLLIN, 0}};
    nfds_t count = 2;

    if (argc != 2)
        return 2;
    strncpy(address.sun_path, argv[1], sizeof address.sun_path - 1);
    peers[1].fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(peers[1].fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        listen(peers[1].fd, PEERS) < 0)
        return 1;
    puts("ready");
    fflush(stdout);
    while (poll(peers, count, -1) >= 0 && peers[0].revents == 0) {
        if (peers[1].revents != 0 && count < PEERS) {
            peers[count++] = (struct pollfd){accept(peers[1].fd, NULL, NULL), POLLIN, 0};
            send(peers[count - 1].fd, HELLO, sizeof HELLO, MSG_NOSIGNAL);
        }
        for (nfds_t i = 2; i < count; i++) {
            ssize_t size = peers[i].revents == 0 ? 1 : recv(peers[i].fd, bytes, ROOM, 0);
            if (size <= 0) {
                close(peers[i].fd);
                peers[i--] = peers[--count];
            } else if (peers[i].revents != 0) {
                answer(peers[i].fd, bytes, size);
            }
        }
    }
    return 0;
}
