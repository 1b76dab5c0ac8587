/* Preloaded into a process under test: adds offsets to its wall clock and its boot clock.
 *
 * The offsets are two signed 64-bit numbers of nanoseconds in the file that PENSTOCK_TEST_CLOCKS names, the wall clock's
 * first. The file is mapped, so a test changes them while the process runs. The monotonic clock is left alone: timers of
 * the kernel go by it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

static const volatile int64_t none[2];
static const volatile int64_t *offsets = none;
static int (*real_clock_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("PENSTOCK_TEST_CLOCKS");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *found = file < 0 ? MAP_FAILED : mmap(0, sizeof none, PROT_READ, MAP_SHARED, file, 0);
    if (file >= 0)
        close(file);
    if (found != MAP_FAILED)
        offsets = found;
}

static void add(struct timespec *time, int64_t offset)
{
    int64_t total = time->tv_nsec + offset % SECOND + SECOND;
    time->tv_sec += offset / SECOND + total / SECOND - 1;
    time->tv_nsec = total % SECOND;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    if (!real_clock_gettime)
        real_clock_gettime = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real_clock_gettime(clock, now);
    int64_t offset = 0;
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
        offset = offsets[0];
    else if (clock == CLOCK_BOOTTIME)
        offset = offsets[1];
    if (!failed && offset)
        add(now, offset);
    return failed;
}

/* The kernel stamps datagrams by the wall clock, too. */
ssize_t recvmsg(int socket, struct msghdr *message, int flags)
{
    static ssize_t (*real_recvmsg)(int, struct msghdr *, int);
    if (!real_recvmsg)
        real_recvmsg = (ssize_t (*)(int, struct msghdr *, int))dlsym(RTLD_NEXT, "recvmsg");
    ssize_t received = real_recvmsg(socket, message, flags);
    struct cmsghdr *part = received < 0 ? 0 : CMSG_FIRSTHDR(message);
    for (; part; part = CMSG_NXTHDR(message, part))
        if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_TIMESTAMPNS) {
            struct timespec came;
            memcpy(&came, CMSG_DATA(part), sizeof came);
            add(&came, offsets[0]);
            memcpy(CMSG_DATA(part), &came, sizeof came);
        }
    return received;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec found;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &found);
    now->tv_sec = found.tv_sec;
    now->tv_usec = found.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *where)
{
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    if (where)
        *where = found.tv_sec;
    return found.tv_sec;
}
