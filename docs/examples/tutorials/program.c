/* An old program: all that it knows of the world is msgget, msgsnd and msgrcv.

   program send KEY MTYPE    sends each line of its input, and waits while the queue is full
   program receive KEY N     writes N messages, each as "mtype length body", and waits for them
*/
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>

struct message { long mtype; char text[65536]; };
static struct message m;

static int fail(const char *what) { perror(what); return 1; }

static int send_lines(int queue, long mtype) {
  while (fgets(m.text, sizeof m.text, stdin)) {
    m.mtype = mtype;
    if (msgsnd(queue, &m, strcspn(m.text, "\n"), 0)) return fail("msgsnd");
    puts("sent");
    fflush(stdout);
  }
  return 0;
}

static int receive(int queue, long number) {
  while (number-- > 0) {
    ssize_t size = msgrcv(queue, &m, sizeof m.text, 0, 0);
    if (size < 0) return fail("msgrcv");
    printf("%ld %zd ", m.mtype, size);
    fwrite(m.text, 1, size, stdout);
    putchar('\n');
    fflush(stdout);
  }
  return 0;
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  int queue = msgget((key_t)strtoul(argv[2], NULL, 0), 0);
  if (queue < 0) return fail("msgget");
  return strcmp(argv[1], "send") ? receive(queue, atol(argv[3])) : send_lines(queue, atol(argv[3]));
}
