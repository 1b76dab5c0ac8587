/* The trivial server that the generator's own ceiling is measured against: it counts bytes and says yes. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "load.h"

enum { MAX_REPLIES = 64 * 1024 };  /* in one write */

struct sink {
    int epoll, listener;
    size_t request_bytes, reply_bytes;
    uint8_t *replies;              /* MAX_REPLIES of them, end to end */
    size_t received[1 << 16];      /* bytes of an unfinished request, by fd */
};

static void prepare_replies(struct sink *s, const char *hex) {
    s->reply_bytes = strlen(hex) / 2;
    s->replies = malloc(MAX_REPLIES * s->reply_bytes);
    if (!s->replies) abort();
    for (size_t i = 0; i < MAX_REPLIES * s->reply_bytes; i++) {
        char pair[3] = {hex[i % s->reply_bytes * 2], hex[i % s->reply_bytes * 2 + 1], 0};
        s->replies[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
}

static void watch(struct sink *s, int fd) {
    struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
    epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &e);
}

static int listen_on_loopback(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fd, (struct sockaddr *)&address, size) < 0 || listen(fd, 1024) < 0) return -1;
    getsockname(fd, (struct sockaddr *)&address, &size);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

static void serve(struct sink *s, int fd) {
    static uint8_t buffer[INPUT_BYTES];
    ssize_t n = recv(fd, buffer, sizeof buffer, 0);
    if (n <= 0) {
        s->received[fd] = 0;
        close(fd);
        return;
    }
    s->received[fd] += (size_t)n;
    size_t whole = s->received[fd] / s->request_bytes;
    s->received[fd] %= s->request_bytes;
    if (whole > 0 && send(fd, s->replies, whole * s->reply_bytes, MSG_NOSIGNAL) < 0) close(fd);
}

/* Prints its port; ends when its standard input does, or when time is up. */
int run_sink(size_t request_bytes, const char *reply_hex, double seconds) {
    static struct sink s;
    struct epoll_event events[64];
    s.request_bytes = request_bytes;
    s.epoll = epoll_create1(EPOLL_CLOEXEC);
    prepare_replies(&s, reply_hex);
    if ((s.listener = listen_on_loopback()) < 0) return 1;
    watch(&s, s.listener);
    watch(&s, STDIN_FILENO);
    for (time_t end = time(NULL) + (time_t)seconds; time(NULL) < end;) {
        int n = epoll_wait(s.epoll, events, 64, 1000);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd == STDIN_FILENO) return 0;
            if (fd == s.listener) {
                int peer = accept4(s.listener, NULL, NULL, SOCK_CLOEXEC);
                if (peer >= 0 && peer < 1 << 16) watch(&s, peer);
            } else {
                serve(&s, fd);
            }
        }
    }
    return 0;
}
