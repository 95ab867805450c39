/*
 * A preloaded library that shifts a program's wall clock by CLOCK_OFFSET seconds. The monotonic clock, which measures durations, is
 * unchanged.   cc -O2 -shared -fPIC -o clock.so clock.c
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long offset;

__attribute__((constructor)) static void read_offset(void) {
    const char *text = getenv("CLOCK_OFFSET");
    offset = text ? atol(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *result) {
    int status = syscall(SYS_clock_gettime, clock, result);
    if (status == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) result->tv_sec += offset;
    return status;
}

int gettimeofday(struct timeval *restrict result, void *restrict zone) {
    int status = syscall(SYS_gettimeofday, result, zone);
    if (status == 0 && result) result->tv_sec += offset;
    return status;
}

time_t time(time_t *result) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (result) *result = now.tv_sec;
    return now.tv_sec;
}

/*
 * A deadline that a program has computed from its time of day must be translated for the kernel. Otherwise, a thread of the runtime that
 * waits would wake up immediately and wait again, which takes the whole processor. A deadline on the other clock counts from the start of
 * the machine and is far smaller.
 */
#define FIRST_TIME_OF_DAY 1000000000

static const struct timespec *translate(const struct timespec *deadline, struct timespec *translated) {
    if (!deadline || deadline->tv_sec < FIRST_TIME_OF_DAY) return deadline;
    *translated = *deadline;
    translated->tv_sec -= offset;
    return translated;
}

typedef int timed_wait(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex, const struct timespec *restrict deadline) {
    static timed_wait *original;
    struct timespec translated;
    if (!original) original = (timed_wait *)dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    return original(condition, mutex, translate(deadline, &translated));
}
