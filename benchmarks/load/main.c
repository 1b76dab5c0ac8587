/* load: options, the requests on standard input, and one line of JSON as the result.
 *
 *   load --rule NAME --fds 5,6,7 --window N --count N --seconds S [--per-request N] [--rate R]
 *        [--ok TEXT] [--ok-status N] [--parts N]
 *        [--listeners N --listen NAME --fan N [--ahead N] [--stamped]]    the last N of the sockets only listen
 *        < requests: for each connection that asks u32 length (big-endian), bytes
 *   load --sink --request-bytes N --reply HEX --seconds S
 *
 * The sockets are inherited: connected, greeted, and their other end must be on loopback.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "load.h"

static void fail(const char *why) {
    fprintf(stderr, "load: %s\n", why);
    exit(2);
}

static double ranged(const char *text, double low, double high, const char *option) {
    char *end;
    double value = strtod(text, &end);
    if (*end || value < low || value > high) {
        fprintf(stderr, "load: --%s must be %g to %g, not %s\n", option, low, high, text);
        exit(2);
    }
    return value;
}

/* Anything but loopback is refused: this program sends as fast as it can. */
static bool is_loopback(int fd) {
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    if (getpeername(fd, (struct sockaddr *)&address, &size) < 0) return false;
    if (address.ss_family == AF_INET)
        return ntohl(((struct sockaddr_in *)&address)->sin_addr.s_addr) >> 24 == 127;
    return address.ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&((struct sockaddr_in6 *)&address)->sin6_addr);
}

static void adopt(struct run *run, char *fds) {
    run->conns = calloc(MAX_CONNECTIONS, sizeof *run->conns);
    for (char *word = strtok(fds, ","); word; word = strtok(NULL, ",")) {
        if (run->connections == MAX_CONNECTIONS) fail("too many connections");
        int fd = (int)ranged(word, 0, 1 << 20, "fds");
        if (!is_loopback(fd)) fail("refused: the other end of a socket is not on loopback");
        fcntl(fd, F_SETFL, O_NONBLOCK);
        run->conns[run->connections++].fd = fd;
    }
}

static void read_requests(struct run *run) {
    for (struct conn *c = run->conns; c < run->conns + run->askers; c++) {
        uint8_t length[4];
        if (fread(length, 1, 4, stdin) != 4) fail("a request is missing on standard input");
        c->request_bytes = be32(length);
        if (c->request_bytes > REQUEST_BYTES) fail("a request is too long");
        uint8_t *bytes = malloc(c->request_bytes + 1);
        if (!bytes || fread(bytes, 1, c->request_bytes, stdin) != c->request_bytes) fail("a request is cut short");
        if (c->request_bytes % run->parts) fail("the parts of a request must be of one length");
        c->request_bytes /= run->parts;
        c->request = bytes;
    }
}

static int by_value(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static double quantile(const struct run *run, double q) {
    if (run->measured == 0) return 0;
    return run->latencies[(uint64_t)(q * (double)(run->measured - 1))] / 10.0;
}

static double cpu_seconds(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void report(struct run *run, double cpu) {
    qsort(run->latencies, run->measured, sizeof *run->latencies, by_value);
    printf("{\"messages\": %llu, \"seconds\": %.6f, \"settled\": %llu, \"refused\": %llu, \"empty\": %llu, \"heard\": %llu, "
           "\"p50_us\": %.1f, \"p99_us\": %.1f, \"max_us\": %.1f, \"cpu_s\": %.3f, \"error\": %s%s%s}\n",
           (unsigned long long)run->done_in_time, (double)(run->finished - run->started) / 1e9,
           (unsigned long long)run->done, (unsigned long long)run->refused, (unsigned long long)run->empty,
           (unsigned long long)run->heard, quantile(run, 0.5), quantile(run, 0.99), quantile(run, 1), cpu, run->error ? "\"" : "",
           run->error ? run->error : "null", run->error ? "\"" : "");
}

static const struct option OPTIONS[] = {
    {"rule", required_argument, NULL, 'u'},        {"fds", required_argument, NULL, 'f'},
    {"window", required_argument, NULL, 'w'},      {"count", required_argument, NULL, 'n'},
    {"seconds", required_argument, NULL, 's'},     {"per-request", required_argument, NULL, 'p'},
    {"rate", required_argument, NULL, 'r'},        {"ok", required_argument, NULL, 'o'},
    {"ok-status", required_argument, NULL, 'y'},   {"sink", no_argument, NULL, 'k'},
    {"request-bytes", required_argument, NULL, 'b'}, {"reply", required_argument, NULL, 'a'},
    {"parts", required_argument, NULL, 't'},       {"listeners", required_argument, NULL, 'l'},
    {"listen", required_argument, NULL, 'i'},      {"fan", required_argument, NULL, 'x'},
    {"ahead", required_argument, NULL, 'd'},       {"stamped", no_argument, NULL, 'm'},
    {NULL, 0, NULL, 0},
};

/* The last ones of the sockets listen. */
static void split_off(struct run *run, size_t listeners) {
    if (listeners >= run->connections) fail("at least one connection must send requests");
    if (listeners && (!run->listen || !run->fan)) fail("--listeners need --listen (a rule that exists) and --fan");
    run->askers = run->connections - listeners;
    for (size_t i = run->askers; i < run->connections; i++) run->conns[i].listens = true;
}

int main(int argc, char **argv) {
    static struct run run = {
        .window = 1, .per_request = 1, .parts = 1, .count = 1000, .seconds = 1, .ok = "", .ok_status = 1};
    size_t listeners = 0;
    char *fds = NULL, *reply = NULL;
    size_t request_bytes = 0;
    bool sink = false;
    for (int option; (option = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1;) {
        switch (option) {
        case 'u': run.rule = find_rule(optarg); break;
        case 'f': fds = optarg; break;
        case 'w': run.window = (size_t)ranged(optarg, 1, MAX_WINDOW, "window"); break;
        case 'n': run.count = (uint64_t)ranged(optarg, 1, MAX_COUNT, "count"); break;
        case 's': run.seconds = ranged(optarg, 0.001, MAX_SECONDS, "seconds"); break;
        case 'p': run.per_request = (size_t)ranged(optarg, 1, MAX_WINDOW, "per-request"); break;
        case 'r': run.rate = ranged(optarg, 1, 1e7, "rate"); break;
        case 'o': run.ok = optarg; break;
        case 'y': run.ok_status = (uint8_t)ranged(optarg, 0, 255, "ok-status"); break;
        case 'k': sink = true; break;
        case 'b': request_bytes = (size_t)ranged(optarg, 4, INPUT_BYTES, "request-bytes"); break;
        case 'a': reply = optarg; break;
        case 't': run.parts = (size_t)ranged(optarg, 1, MAX_PARTS, "parts"); break;
        case 'l': listeners = (size_t)ranged(optarg, 1, MAX_CONNECTIONS, "listeners"); break;
        case 'i': run.listen = find_rule(optarg); break;
        case 'x': run.fan = (uint64_t)ranged(optarg, 1, MAX_CONNECTIONS, "fan"); break;
        case 'd': run.ahead = (uint64_t)ranged(optarg, 1, MAX_COUNT, "ahead"); break;
        case 'm': run.stamped = true; break;
        default: return 2;
        }
    }
    if (sink) return request_bytes && reply ? run_sink(request_bytes, reply, run.seconds) : 2;
    if (!run.rule || !fds) fail("--rule (one that exists) and --fds are needed");
    if (run.window < run.per_request) fail("--window must hold a whole request");
    adopt(&run, fds);
    split_off(&run, listeners);
    read_requests(&run);
    double before = cpu_seconds();
    run_load(&run);
    report(&run, cpu_seconds() - before);
    return run.error ? 1 : 0;
}
