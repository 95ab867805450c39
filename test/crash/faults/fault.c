/*
 * A preloaded library that simulates a failing disk for programs with SQLite: it counts the calls on files whose path contains
 * FAULT_FILES, and the n-th call fails.   cc -O2 -shared -fPIC -o fault.so fault.c -ldl
 *   FAULT=<fsync|write>:<n>:<EIO|ENOSPC|SHORT>[:<times>]   times: number of consecutive failures; all later calls by default
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
static int error_code; /* errno, or 0 for a short write */
static long first, times;
static const char *files = "";
static atomic_long call_count;

__attribute__((constructor)) static void read_settings(void) {
    const char *fault = getenv("FAULT");
    char operation[16] = "", error[16] = "";
    times = -1;
    if (!fault || sscanf(fault, "%15[^:]:%ld:%15[^:]:%ld", operation, &first, error, &times) < 3) return;
    kind = !strcmp(operation, "fsync") ? FLUSH : WRITE;
    error_code = !strcmp(error, "EIO") ? EIO : !strcmp(error, "ENOSPC") ? ENOSPC : 0;
    if (getenv("FAULT_FILES")) files = getenv("FAULT_FILES");
}

static int has_matching_path(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return strstr(path, files) != NULL && strstr(path, "-shm") == NULL;
}

static int should_fail(int operation, int fd) {
    if (kind != operation || !has_matching_path(fd)) return 0;
    long n = atomic_fetch_add(&call_count, 1) + 1;
    return n >= first && (times < 0 || n < first + times);
}

int fsync(int fd) {
    static int (*real)(int);
    if (!real) real = dlsym(RTLD_NEXT, "fsync");
    if (!should_fail(FLUSH, fd)) return real(fd);
    errno = error_code;
    return -1;
}

int fdatasync(int fd) {
    static int (*real)(int);
    if (!real) real = dlsym(RTLD_NEXT, "fdatasync");
    if (!should_fail(FLUSH, fd)) return real(fd);
    errno = error_code;
    return -1;
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t offset) {
    static ssize_t (*real)(int, const void *, size_t, off64_t);
    if (!real) real = dlsym(RTLD_NEXT, "pwrite64");
    if (!should_fail(WRITE, fd)) return real(fd, bytes, count, offset);
    if (error_code == 0) return real(fd, bytes, (count + 1) / 2, offset);
    errno = error_code;
    return -1;
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) { return pwrite64(fd, bytes, count, offset); }
