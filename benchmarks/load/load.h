/* The load generator: prebuilt requests on sockets that the caller has connected and greeted.
 *
 * One loop for every peer. A peer differs only in its rule: how replies are counted in its byte stream,
 * and what it has to be sent for each (an acknowledgement, a pong). See ../generator.py for the caller.
 */
#ifndef PENSTOCK_LOAD_H
#define PENSTOCK_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    INPUT_BYTES = 256 * 1024,    /* read buffer of a connection */
    REQUEST_BYTES = 4 * 1024 * 1024, /* all parts of a connection's request */
    MAX_CONNECTIONS = 2000,
    MAX_WINDOW = 1 << 16,        /* messages in flight on a connection */
    MAX_PARTS = 1 << 16,
    MAX_COUNT = 50 * 1000 * 1000,
    MAX_SECONDS = 600,
};

struct run;

struct conn {
    int fd;
    struct run *run;
    uint8_t *in;                 /* bytes of an unfinished reply */
    size_t have;
    uint8_t *out;                /* what is still to be sent: out[out_from..out_to) */
    size_t out_from, out_to, out_size;
    bool watching_out;
    bool listens;                /* asks for nothing: what is pushed to it is counted by run->listen */
    uint64_t heard;              /* messages pushed to it */
    const uint8_t *request;      /* prebuilt: run->parts of request_bytes each, sent in turn */
    size_t request_bytes, part;  /* a part asks for run->per_request messages */
    uint64_t *sent;              /* ring: when each message in flight was asked for, oldest first */
    size_t mask;                 /* ring size - 1 */
    size_t head, tail;           /* tail - head messages are in flight */
    size_t phase;                /* tmq-mixed: place in the pattern. amqp-take: body bytes to come */
    uint64_t tag;                /* amqp-put: all up to this are confirmed; amqp-take: all are whole */
    uint64_t delivering;         /* amqp-take: the tag whose content is coming */
    uint8_t *confirmed;          /* amqp-put: ring of tags confirmed out of order */
};

/* Bytes consumed of p[0..n), or -1 when the reply makes no sense (then run->error says why). */
typedef long (*rule_fn)(struct conn *c, const uint8_t *p, size_t n);

struct rule {
    const char *name;
    rule_fn replies;
    bool request_once;           /* the peer pushes: one request starts it, further ones have no bytes */
    bool unanswered;             /* what is asked for is done: only run->ahead holds it back */
};

struct run {
    const struct rule *rule, *listen;
    struct conn *conns;          /* those that ask, then those that listen */
    size_t connections, askers, window, per_request, parts;
    uint64_t fan;                /* each message done is pushed so many times to those that listen, all together */
    uint64_t ahead;              /* of the slowest listener, who hears every message; 0: not looked at */
    bool stamped;                /* messages say when they were due: listeners' latencies instead of askers' */
    uint64_t count;              /* messages to do */
    double seconds, rate;        /* time limit; messages/s offered in paced mode, 0 = as fast as it goes */
    const char *ok;              /* line: prefix of a good reply */
    uint8_t ok_status;           /* tmq-put: the byte that says yes */
    uint64_t asked, done, refused, empty, heard;
    uint64_t slowest;            /* what the slowest listener has heard */
    uint64_t started, now, finished;   /* ns, monotonic */
    uint64_t done_in_time;
    uint32_t *latencies;         /* 0.1 us each, `measured` of them once finished */
    uint64_t measured;
    bool stopping;               /* time is up: nothing new is asked for */
    const char *error;
};

const struct rule *find_rule(const char *name);

/* What rules call. */
void done(struct conn *c, size_t messages);     /* the oldest ones in flight have been answered well */
void refused(struct conn *c, size_t messages);  /* answered with a no: spent */
void empty(struct conn *c);                     /* nothing there: will be asked for again */
void emit(struct conn *c, const void *bytes, size_t n);
long broken(struct conn *c, const char *why);   /* always -1 */
void heard(struct conn *c, size_t messages);    /* pushed to a listener */
void heard_since(struct conn *c, uint64_t due); /* one, with its stamp */

/* listen.c: rules of those that listen, and of publishers that are not answered. */
long text_messages(struct conn *c, const uint8_t *p, size_t n);
long nats_messages(struct conn *c, const uint8_t *p, size_t n);
long nats_publish(struct conn *c, const uint8_t *p, size_t n);
void stamp(uint8_t *request, size_t n, uint64_t due);  /* writes into the message; it must have room */

void run_load(struct run *run);                 /* fills in the results; on failure run->error */
int run_sink(size_t request_bytes, const char *reply_hex, double seconds);

static inline uint32_t be32(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}
static inline uint64_t be64(const uint8_t *p) { return (uint64_t)be32(p) << 32 | be32(p + 4); }

#endif
