/* The loop: keep every window full (or keep the pace), read, count, stop by itself. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "load.h"

static const uint64_t SECOND = 1000 * 1000 * 1000;  /* ns */
static const uint64_t GRACE = 3;                    /* s for replies that are under way when time is up */
static const uint64_t GRACE_TO_HEAR = 5;            /* s for all that listeners have still to hear */

static uint64_t clock_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static void *allocate(size_t n, size_t size) {
    void *p = calloc(n, size);
    if (!p) abort();
    return p;
}

/* -- what rules call -- */

void done(struct conn *c, size_t messages) {
    struct run *run = c->run;
    for (size_t i = 0; i < messages && c->head != c->tail; i++, c->head++) {
        uint64_t waited = (run->now - c->sent[c->head & c->mask]) / 100;
        if (run->done < run->count && !run->stamped) run->latencies[run->done] = waited > UINT32_MAX ? UINT32_MAX : (uint32_t)waited;
        run->done++;
    }
}

void heard(struct conn *c, size_t messages) {
    c->heard += messages;
    c->run->heard += messages;
}

void heard_since(struct conn *c, uint64_t due) {
    struct run *run = c->run;
    uint64_t waited = run->now > due ? (run->now - due) / 100 : 0;
    if (run->heard < run->count) run->latencies[run->heard] = waited > UINT32_MAX ? UINT32_MAX : (uint32_t)waited;
    heard(c, 1);
}

void refused(struct conn *c, size_t messages) {
    for (size_t i = 0; i < messages && c->head != c->tail; i++, c->head++) c->run->refused++;
}

void empty(struct conn *c) {
    if (c->head == c->tail) return;
    c->head++;
    c->run->empty++;
    c->run->asked--;
}

long broken(struct conn *c, const char *why) {
    c->run->error = why;
    return -1;
}

void emit(struct conn *c, const void *bytes, size_t n) {
    if (c->out_from == c->out_to) c->out_from = c->out_to = 0;
    if (c->out_to + n > c->out_size && c->out_from > c->out_size / 2) {
        memmove(c->out, c->out + c->out_from, c->out_to - c->out_from);
        c->out_to -= c->out_from;
        c->out_from = 0;
    }
    if (c->out_to + n > c->out_size) {
        c->out_size = 2 * (c->out_to + n);
        c->out = realloc(c->out, c->out_size);
        if (!c->out) abort();
    }
    memcpy(c->out + c->out_to, bytes, n);
    c->out_to += n;
}

/* -- asking -- */

static void ask(struct conn *c, uint64_t at) {
    struct run *run = c->run;
    emit(c, c->request + c->part * c->request_bytes, c->request_bytes);
    if (run->stamped) stamp(c->out + c->out_to - c->request_bytes, c->request_bytes, at);
    if (++c->part == run->parts) c->part = 0;
    if (run->rule->request_once) c->request_bytes = 0;
    for (size_t i = 0; i < run->per_request; i++) c->sent[c->tail++ & c->mask] = at;
    run->asked += run->per_request;
    if (run->rule->unanswered) done(c, run->per_request);
}

/* A peer that pushes does not know our count: its window stays full to the end. */
static bool may_ask(const struct conn *c) {
    const struct run *run = c->run;
    if (run->stopping || c->listens || c->tail - c->head + run->per_request > run->window) return false;
    if (run->ahead && run->asked + run->per_request > run->slowest + run->ahead) return false;
    return run->asked < run->count || run->rule->request_once;
}

/* When the next message is due: now, or in paced mode its place in time (a late one's wait is counted). */
static uint64_t due(const struct run *run) {
    if (run->rate == 0) return run->now;
    return run->started + (uint64_t)((double)(run->asked / run->per_request) * (double)SECOND / run->rate);
}

static void refill(struct conn *c) {
    for (uint64_t at; may_ask(c) && (at = due(c->run)) <= c->run->now;) ask(c, at);
}

/* -- sockets -- */

static void watch(int epoll, struct conn *c, bool out) {
    struct epoll_event e = {.events = EPOLLIN | (out ? EPOLLOUT : 0), .data.ptr = c};
    if (out != c->watching_out) epoll_ctl(epoll, EPOLL_CTL_MOD, c->fd, &e);
    c->watching_out = out;
}

static void flush(int epoll, struct conn *c) {
    while (c->out_from < c->out_to) {
        ssize_t n = send(c->fd, c->out + c->out_from, c->out_to - c->out_from, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR) broken(c, "the peer closed the connection (send)");
        if (n < 0) break;
        c->out_from += (size_t)n;
    }
    watch(epoll, c, c->out_from < c->out_to);
}

static void receive(struct conn *c) {
    ssize_t n = recv(c->fd, c->in + c->have, INPUT_BYTES - c->have, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) {
        broken(c, "the peer closed the connection");
        return;
    }
    c->run->now = clock_ns();
    c->have += (size_t)n;
    const struct rule *rule = c->listens ? c->run->listen : c->run->rule;
    long used = rule->replies(c, c->in, c->have);
    if (used < 0) return;
    c->have -= (size_t)used;
    memmove(c->in, c->in + used, c->have);
    if (c->have == INPUT_BYTES) broken(c, "a reply longer than the buffer");
}

/* -- the run -- */

static size_t ring_size(const struct run *run) {
    size_t size = 2;
    while (size < run->window + run->per_request + 1) size *= 2;
    return size;
}

static int open_loop(struct run *run) {
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    size_t ring = ring_size(run);
    for (struct conn *c = run->conns; c < run->conns + run->connections; c++) {
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
        c->run = run;
        c->in = allocate(INPUT_BYTES, 1);
        c->sent = allocate(ring, sizeof *c->sent);
        c->confirmed = allocate(ring, 1);
        c->mask = ring - 1;
        epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &e);
    }
    return epoll;
}

/* Paced: a timer that fires when the next message is due (epoll's own time-out knows milliseconds only). */
static int open_timer(int epoll) {
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = NULL};
    epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &e);
    return timer;
}

static void arm(int timer, uint64_t at) {
    struct itimerspec t = {.it_value = {(time_t)(at / SECOND), (long)(at % SECOND)}};
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &t, NULL);
}

/* All that ask in turn, beginning after the one that had the last turn. */
static void refill_all(int epoll, struct run *run) {
    static size_t turn;
    for (size_t i = 0; i < run->askers; i++) {
        struct conn *c = &run->conns[turn++ % run->askers];
        refill(c);
        flush(epoll, c);
        if (run->rate > 0 && due(run) > run->now) break;
    }
}

static void on_timer(int epoll, int timer, struct run *run) {
    uint64_t expirations;
    if (read(timer, &expirations, sizeof expirations) < 0) return;
    refill_all(epoll, run);
    arm(timer, due(run) > run->now ? due(run) : run->now + SECOND / 1000);
}

/* What listeners have heard lets publishers go on. */
static void go_on(int epoll, struct run *run) {
    run->slowest = UINT64_MAX;
    for (struct conn *c = run->conns + run->askers; c < run->conns + run->connections; c++)
        if (c->heard < run->slowest) run->slowest = c->heard;
    refill_all(epoll, run);
}

static void turn_once(int epoll, int timer, struct run *run) {
    struct epoll_event events[64];
    int n = epoll_wait(epoll, events, 64, 50);
    run->now = clock_ns();
    for (int i = 0; i < n && !run->error; i++) {
        struct conn *c = events[i].data.ptr;
        if (!c) {
            on_timer(epoll, timer, run);
            continue;
        }
        if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) receive(c);
        refill(c);
        flush(epoll, c);
    }
    if (run->ahead && !run->error) go_on(epoll, run);
}

/* All has been answered that was to be asked for, and heard wherever it is pushed to. */
static bool is_complete(const struct run *run) {
    return run->done + run->refused >= run->count && run->heard >= run->done * run->fan;
}

static bool is_answered(const struct run *run) {
    for (size_t i = 0; i < run->connections; i++)
        if (run->conns[i].head != run->conns[i].tail) return false;
    return true;
}

static bool is_flushed(const struct run *run) {
    for (size_t i = 0; i < run->connections; i++)
        if (run->conns[i].out_from != run->conns[i].out_to) return false;
    return true;
}

static bool is_settled(const struct run *run) {
    return is_complete(run) || (is_answered(run) && run->heard >= run->done * run->fan);
}

/* What comes later is not counted as in time. With listeners all is waited for, and the time is that of all of it. */
static void finish(struct run *run) {
    run->finished = run->now;
    run->done_in_time = run->done < run->count ? run->done : run->count;
    run->measured = run->stamped ? (run->heard < run->count ? run->heard : run->count) : run->done_in_time;
}

/* Where everybody hears everything each is looked at by itself: one message too few here and one too many there differ. */
static bool all_heard_once(const struct run *run) {
    bool everybody = run->fan == run->connections - run->askers;
    for (size_t i = run->askers; everybody && i < run->connections; i++)
        if (run->conns[i].heard != run->done) return false;
    return run->heard == run->done * run->fan;
}

void run_load(struct run *run) {
    int epoll = open_loop(run), timer = run->rate > 0 ? open_timer(epoll) : -1;
    run->latencies = allocate(run->count, sizeof *run->latencies);
    bool pushes = run->askers < run->connections;
    run->started = run->now = clock_ns();
    uint64_t deadline = run->started + (uint64_t)(run->seconds * (double)SECOND);
    refill_all(epoll, run);
    if (timer >= 0) arm(timer, due(run));
    while (!run->error && !is_complete(run) && run->now < deadline) turn_once(epoll, timer, run);
    if (!pushes) finish(run);
    run->stopping = true;
    deadline = run->now + (pushes ? GRACE_TO_HEAR : GRACE) * SECOND;
    while (!run->error && run->now < deadline && !(is_flushed(run) && is_settled(run))) turn_once(epoll, timer, run);
    if (pushes) finish(run);
    if (!run->error && !all_heard_once(run)) run->error = "listeners did not hear each message once";
    close(epoll);
}
