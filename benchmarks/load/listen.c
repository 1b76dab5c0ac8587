/* Those that only listen: what is pushed to them is counted, cheaply, as there may be a hundred of them to a publisher.
 * And publishers that get no answer, whom nothing but the listeners' progress holds back.
 */
#define _GNU_SOURCE
#include <string.h>

#include "load.h"

enum { STAMP_DIGITS = 16 };  /* ns of the monotonic clock, hexadecimal, at the beginning of a message */

/* What follows the second space: of `SEND <tag> <message>` as of `MESSAGE <id> <message>`. NULL if nothing does. */
static const uint8_t *message_of(const uint8_t *line, const uint8_t *end) {
    for (int spaces = 0; line < end && spaces < 2; line++) spaces += *line == ' ';
    return end - line >= STAMP_DIGITS ? line : NULL;
}

void stamp(uint8_t *request, size_t n, uint64_t due) {
    uint8_t *at = (uint8_t *)message_of(request, request + n);
    for (int i = 0; at && i < STAMP_DIGITS; i++) at[i] = (uint8_t)"0123456789abcdef"[due >> (60 - 4 * i) & 15];
}

static uint64_t read_stamp(const uint8_t *at) {
    uint64_t due = 0;
    for (int i = 0; i < STAMP_DIGITS; i++) due = due << 4 | (uint64_t)(at[i] <= '9' ? at[i] - '0' : at[i] - 'a' + 10);
    return due;
}

/* text-messages: MESSAGE <id> <message>, one a line. */
long text_messages(struct conn *c, const uint8_t *p, size_t n) {
    const uint8_t *at = p, *end = p + n, *newline;
    size_t whole = 0;
    for (; (newline = memchr(at, '\n', (size_t)(end - at))) != NULL; at = newline + 1) {
        const uint8_t *message;
        if (newline - at < 10 || memcmp(at, "MESSAGE ", 8) != 0) return broken(c, "a subscriber got no MESSAGE");
        if (!c->run->stamped) {
            whole++;
        } else if ((message = message_of(at, newline)) != NULL) {
            heard_since(c, read_stamp(message));
        } else {
            return broken(c, "a MESSAGE bears no stamp");
        }
    }
    heard(c, whole);
    return at - p;
}

/* The last number of `MSG <subject> <sid> <bytes>\r\n`: read from behind, as the subject may be long. */
static size_t last_number(const uint8_t *line, const uint8_t *newline) {
    size_t value = 0, place = 1;
    for (const uint8_t *p = newline - 2; p > line && *p >= '0' && *p <= '9'; p--, place *= 10)
        value += place * (size_t)(*p - '0');
    return value;
}

/* A line that is no MSG. */
static long nats_control(struct conn *c, const uint8_t *line, const uint8_t *newline) {
    if (newline - line >= 4 && memcmp(line, "PING", 4) == 0) return emit(c, "PONG\r\n", 6), 0;
    if (newline - line >= 4 && memcmp(line, "-ERR", 4) == 0) return broken(c, "NATS answered -ERR");
    return 0;
}

/* nats-messages: MSG <subject> <sid> <bytes>, the message, CRLF. */
long nats_messages(struct conn *c, const uint8_t *p, size_t n) {
    const uint8_t *at = p, *end = p + n, *newline;
    size_t whole = 0;
    while ((newline = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        const uint8_t *next = newline + 1;
        if (newline - at > 6 && memcmp(at, "MSG ", 4) == 0) {
            next += last_number(at, newline) + 2;
            if (next > end) break;
            whole++;
        } else if (nats_control(c, at, newline) < 0) {
            return -1;
        }
        at = next;
    }
    heard(c, whole);
    return at - p;
}

/* nats-publish: core NATS answers no PUB. */
long nats_publish(struct conn *c, const uint8_t *p, size_t n) {
    const uint8_t *at = p, *end = p + n, *newline;
    for (; (newline = memchr(at, '\n', (size_t)(end - at))) != NULL; at = newline + 1)
        if (nats_control(c, at, newline) < 0) return -1;
    return at - p;
}
