/* How each peer's replies are counted. Every rule takes a whole chunk and returns what it consumed of it. */
#define _GNU_SOURCE
#include <string.h>

#include "load.h"

/* tmq-put: one status byte a message. */
static long tmq_put(struct conn *c, const uint8_t *p, size_t n) {
    size_t good = 0;
    for (size_t i = 0; i < n; i++) good += p[i] == c->run->ok_status;
    done(c, good);
    refused(c, n - good);
    return (long)n;
}

/* One reply to a DNQ: i32 length and so many bytes; -1 says that the queue is empty. 0 = unfinished. */
static long sized_reply(struct conn *c, const uint8_t *p, size_t n) {
    if (n < 4) return 0;
    uint32_t size = be32(p);
    if (size == UINT32_MAX) return empty(c), 4;
    if (size > INPUT_BYTES - 4) return broken(c, "a reply longer than the buffer");
    if (n < 4 + (size_t)size) return 0;
    done(c, 1);
    return 4 + (long)size;
}

/* tmq-take: i32 length and body, again and again. */
static long tmq_take(struct conn *c, const uint8_t *p, size_t n) {
    size_t at = 0;
    for (long used; (used = sized_reply(c, p + at, n - at)) != 0; at += (size_t)used)
        if (used < 0) return -1;
    return (long)at;
}

/* tmq-mixed: per_request / 2 statuses, then as many bodies, again and again. */
static long tmq_mixed(struct conn *c, const uint8_t *p, size_t n) {
    size_t at = 0, half = c->run->per_request / 2;
    while (at < n) {
        long used = c->phase < half ? tmq_put(c, p + at, 1) : sized_reply(c, p + at, n - at);
        if (used < 0) return -1;
        if (used == 0) break;
        at += (size_t)used;
        c->phase = (c->phase + 1) % (2 * half);
    }
    return (long)at;
}

/* ring: u32 operation, 510 bytes that repeat the request's, u32 length, message. 5 is OK; 4 is ERROR, with its reason. */
enum { RING_HEAD = 518, RING_ERROR = 4, RING_OK = 5 };

static long ring(struct conn *c, const uint8_t *p, size_t n) {
    size_t at = 0;
    while (n - at >= RING_HEAD) {
        uint32_t operation = be32(p + at), size = be32(p + at + RING_HEAD - 4);
        if (size > INPUT_BYTES - RING_HEAD) return broken(c, "a reply longer than the buffer");
        if (n - at < RING_HEAD + (size_t)size) break;
        if (operation == RING_OK) done(c, 1);
        else if (operation != RING_ERROR) return broken(c, "the ring edge answered neither OK nor ERROR");
        else if (size == 5 && memcmp(p + at + RING_HEAD, "empty", 5) == 0) empty(c);
        else refused(c, 1);
        at += RING_HEAD + (size_t)size;
    }
    return (long)at;
}

/* The end of the line that begins at p (after its \n), or NULL. */
static const uint8_t *line_end(const uint8_t *p, const uint8_t *end) {
    const uint8_t *newline = memchr(p, '\n', (size_t)(end - p));
    return newline ? newline + 1 : NULL;
}

static bool begins(const uint8_t *line, const uint8_t *next, const char *prefix) {
    size_t n = strlen(prefix);
    return (size_t)(next - line) >= n && memcmp(line, prefix, n) == 0;
}

/* A word of a line; by hand, as sscanf would look for the end of the whole buffer each time. */
struct word {
    const uint8_t *at;
    size_t n;
};

static size_t split(const uint8_t *line, const uint8_t *next, struct word *words, size_t max) {
    size_t count = 0;
    for (const uint8_t *p = line; p < next; p++) {
        bool blank = *p <= ' ';
        if (!blank && (p == line || p[-1] <= ' ')) {
            if (count == max) return count;
            words[count++] = (struct word){p, 0};
        }
        if (!blank) words[count - 1].n++;
    }
    return count;
}

static size_t number(struct word word) {
    size_t value = 0;
    for (size_t i = 0; i < word.n && word.at[i] >= '0' && word.at[i] <= '9'; i++) value = value * 10 + word.at[i] - '0';
    return value;
}

/* line: one line a message; good if it begins with run->ok. */
static long line(struct conn *c, const uint8_t *p, size_t n) {
    const uint8_t *at = p, *end = p + n, *next;
    for (; (next = line_end(at, end)) != NULL; at = next)
        begins(at, next, c->run->ok) ? done(c, 1) : refused(c, 1);
    return at - p;
}

/* resp: one RESP2 reply a message: a line, or $<n> and n bytes and CRLF. "-..." is a refusal. */
static long resp(struct conn *c, const uint8_t *p, size_t n) {
    const uint8_t *at = p, *end = p + n, *next;
    while ((next = line_end(at, end)) != NULL) {
        if (*at == '$') next += number((struct word){at + 1, (size_t)(next - at - 1)}) + 2;
        if (next > end) break;
        *at == '-' ? refused(c, 1) : done(c, 1);
        at = next;
    }
    return at - p;
}

/* beanstalkd-take: RESERVED <id> <bytes>, the job, CRLF; a delete is sent; DELETED is the message's end. */
static long beanstalkd_take(struct conn *c, const uint8_t *p, size_t n) {
    const uint8_t *at = p, *end = p + n, *next;
    while ((next = line_end(at, end)) != NULL) {
        struct word words[3];
        if (begins(at, next, "RESERVED ") && split(at, next, words, 3) == 3) {
            next += number(words[2]) + 2;
            if (next > end) break;
            emit(c, "delete ", 7);
            emit(c, words[1].at, words[1].n);
            emit(c, "\r\n", 2);
        } else if (begins(at, next, "DELETED")) {
            done(c, 1);
        } else if (begins(at, next, "TIMED_OUT")) {
            empty(c);
        } else {
            return broken(c, "beanstalkd answered neither RESERVED nor DELETED");
        }
        at = next;
    }
    return at - p;
}

/* MSG <subject> <sid> [<reply to>] <bytes>: a consumer's message has a reply subject, its acknowledgement. */
static void on_nats_message(struct conn *c, const struct word *words, size_t n, const uint8_t *body) {
    if (n == 5) {
        emit(c, "PUB ", 4);
        emit(c, words[3].at, words[3].n);
        emit(c, " 4\r\n+ACK\r\n", 10);
        done(c, 1);
    } else if (memmem(body, number(words[3]), "\"error\"", 7)) {
        refused(c, 1);
    } else {
        done(c, 1);
    }
}

/* nats: publishing, MSG on the inbox is the stream's ack; taking, MSG is the message and is acked. */
static long nats(struct conn *c, const uint8_t *p, size_t n) {
    const uint8_t *at = p, *end = p + n, *next;
    while ((next = line_end(at, end)) != NULL) {
        if (begins(at, next, "MSG ")) {
            struct word words[5];
            size_t count = split(at, next, words, 5);
            if (count < 4) return broken(c, "NATS sent a MSG line of an unknown form");
            const uint8_t *body = next;
            next += number(words[count - 1]) + 2;
            if (next > end) break;
            on_nats_message(c, words, count, body);
        } else if (begins(at, next, "PING")) {
            emit(c, "PONG\r\n", 6);
        } else if (begins(at, next, "HMSG ")) {
            return broken(c, "NATS ended a fetch before it was full");
        } else if (begins(at, next, "-ERR")) {
            return broken(c, "NATS answered -ERR");
        }
        at = next;
    }
    return at - p;
}

/* AMQP 0-9-1: type u8, channel u16, size u32, payload, 0xCE. */
enum { FRAME_METHOD = 1, FRAME_HEADER = 2, FRAME_BODY = 3, FRAME_OVERHEAD = 8 };
enum {
    CONNECTION_CLOSE = 10 << 16 | 50,
    CHANNEL_CLOSE = 20 << 16 | 40,
    BASIC_DELIVER = 60 << 16 | 60,
    BASIC_ACK = 60 << 16 | 80,
    BASIC_NACK = 60 << 16 | 120,
};

/* The peer confirms one tag, or all up to it; single ones come in any order. */
static void confirm(struct conn *c, uint64_t tag, bool multiple) {
    size_t fresh = 0;
    for (uint64_t t = multiple ? c->tag + 1 : tag; t <= tag; t++) {
        fresh += !c->confirmed[t & c->mask];
        c->confirmed[t & c->mask] = 1;
    }
    for (; c->confirmed[(c->tag + 1) & c->mask]; c->tag++) c->confirmed[(c->tag + 1) & c->mask] = 0;
    done(c, fresh);
}

/* basic.ack with multiple: everything delivered whole up to this tag. */
static void ack_deliveries(struct conn *c) {
    uint8_t frame[] = {1, 0, 1, 0, 0, 0, 13, 0, 60, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xCE};
    for (int i = 0; i < 8; i++) frame[11 + i] = (uint8_t)(c->tag >> (56 - 8 * i));
    emit(c, frame, sizeof frame);
}

static long on_amqp_method(struct conn *c, const uint8_t *payload, size_t size) {
    uint32_t method = be32(payload);
    if (method == CONNECTION_CLOSE || method == CHANNEL_CLOSE) return broken(c, "RabbitMQ closed the channel");
    if (method == BASIC_NACK) return broken(c, "RabbitMQ refused a message (basic.nack)");
    if (method == BASIC_ACK && size >= 13) confirm(c, be64(payload + 4), payload[12] & 1);
    if (method == BASIC_DELIVER) c->delivering = be64(payload + 5 + payload[4]);
    return 0;
}

/* A content header announces the body's bytes; the message is done with the last of them. */
static void on_amqp_content(struct conn *c, uint8_t type, const uint8_t *payload, size_t size) {
    c->phase = type == FRAME_HEADER ? (size_t)be64(payload + 4) : c->phase - size;
    if (c->phase != 0) return;
    c->tag = c->delivering;
    done(c, 1);
}

static long amqp(struct conn *c, const uint8_t *p, size_t n) {
    size_t at = 0;
    while (n - at >= FRAME_OVERHEAD) {
        uint8_t type = p[at];
        size_t size = be32(p + at + 3);
        if (size > INPUT_BYTES - FRAME_OVERHEAD) return broken(c, "an AMQP frame longer than the buffer");
        if (n - at < size + FRAME_OVERHEAD) break;
        if (p[at + size + 7] != 0xCE) return broken(c, "an AMQP frame without its end byte");
        if (type == FRAME_METHOD && on_amqp_method(c, p + at + 7, size) < 0) return -1;
        if (type == FRAME_HEADER || type == FRAME_BODY) on_amqp_content(c, type, p + at + 7, size);
        at += size + FRAME_OVERHEAD;
    }
    return (long)at;
}

/* amqp-take: the whole messages of a chunk are acknowledged together. */
static long amqp_take(struct conn *c, const uint8_t *p, size_t n) {
    uint64_t before = c->run->done;
    long used = amqp(c, p, n);
    if (used >= 0 && c->run->done > before) ack_deliveries(c);
    return used;
}

static const struct rule RULES[] = {
    {"tmq-put", tmq_put, false, false},
    {"tmq-take", tmq_take, false, false},
    {"tmq-mixed", tmq_mixed, false, false},
    {"ring", ring, false, false},
    {"line", line, false, false},
    {"resp", resp, false, false},
    {"beanstalkd-take", beanstalkd_take, false, false},
    {"nats", nats, false, false},
    {"amqp-put", amqp, false, false},
    {"amqp-take", amqp_take, true, false},
    {"nats-publish", nats_publish, false, true},
    {"text-messages", text_messages, false, false},
    {"nats-messages", nats_messages, false, false},
};

const struct rule *find_rule(const char *name) {
    for (size_t i = 0; i < sizeof RULES / sizeof *RULES; i++)
        if (strcmp(RULES[i].name, name) == 0) return &RULES[i];
    return NULL;
}
