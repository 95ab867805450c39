/*
 * A disk that fails on demand, for programs that use SQLite: preloaded, it counts the calls on files whose path contains
 * FAULT_FILES and lets the n-th fail.   cc -O2 -shared -fPIC -o fault.so fault.c -ldl
 *   FAULT=<fsync|write>:<n>:<EIO|ENOSPC|SHORT>[:<times>]   times: how many calls in a row, default all that follow
 *   FAULT_FILES=<part of a path>
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { NONE, FLUSH, WRITE };

static int kind = NONE;
static int answer; /* errno, or 0 for a short write */
static long first, times;
static const char *files = "";
static atomic_long seen;

__attribute__((constructor)) static void read_order(void) {
    const char *order = getenv("FAULT");
    char what[16] = "", how[16] = "";
    times = -1;
    if (!order || sscanf(order, "%15[^:]:%ld:%15[^:]:%ld", what, &first, how, &times) < 3) return;
    kind = !strcmp(what, "fsync") ? FLUSH : WRITE;
    answer = !strcmp(how, "EIO") ? EIO : !strcmp(how, "ENOSPC") ? ENOSPC : 0;
    if (getenv("FAULT_FILES")) files = getenv("FAULT_FILES");
}

static int is_ours(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return strstr(path, files) != NULL && strstr(path, "-shm") == NULL;
}

static int fails(int what, int fd) {
    if (kind != what || !is_ours(fd)) return 0;
    long n = atomic_fetch_add(&seen, 1) + 1;
    return n >= first && (times < 0 || n < first + times);
}

int fsync(int fd) {
    static int (*real)(int);
    if (!real) real = dlsym(RTLD_NEXT, "fsync");
    if (!fails(FLUSH, fd)) return real(fd);
    errno = answer;
    return -1;
}

int fdatasync(int fd) {
    static int (*real)(int);
    if (!real) real = dlsym(RTLD_NEXT, "fdatasync");
    if (!fails(FLUSH, fd)) return real(fd);
    errno = answer;
    return -1;
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t offset) {
    static ssize_t (*real)(int, const void *, size_t, off64_t);
    if (!real) real = dlsym(RTLD_NEXT, "pwrite64");
    if (!fails(WRITE, fd)) return real(fd, bytes, count, offset);
    if (answer == 0) return real(fd, bytes, (count + 1) / 2, offset);
    errno = answer;
    return -1;
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) { return pwrite64(fd, bytes, count, offset); }
