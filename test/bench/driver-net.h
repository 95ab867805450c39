// Sockets, clock, samples and WebSocket framing of the load driver (driver.c). One thread, loopback only, Linux (epoll).
// Refuses: TLS, chunked answers, fragmented messages; none of the measured routes uses them.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum Kind { FOLLOW = 1, PATCH = 2, PROBE = 3, GET = 4, STALL = 5 };

typedef struct {
  int fd, kind, id, agent, busy, closed;
  char *path, *token, *source;
  char *request;         // a complete request, written once; a batch only changes its time and number
  size_t requestLen, timeAt, numberAt;
  char *in;              // bytes received but not yet understood
  size_t inLen, inCap;
  char *out;             // bytes the kernel did not take yet
  size_t outLen, outOff;
  uint64_t sentAt, due;
  uint32_t sent, acked;  // batches
  uint32_t *next;        // follower: next batch number expected, for each PATCH connection
  uint64_t lines;        // follower: lines received
} Conn;

typedef struct { uint32_t *v; size_t n, cap; } Samples; // in units of 100 ns

static int ep, port;

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void die(const char *what) {
  if (errno) fprintf(stderr, "driver: %s: %s\n", what, strerror(errno));
  else fprintf(stderr, "driver: %s\n", what);
  exit(1);
}

static int compareSamples(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

static void addSample(Samples *s, uint64_t ns) {
  if (s->n == s->cap) s->v = realloc(s->v, (s->cap = s->cap ? s->cap * 2 : 65536) * sizeof *s->v);
  s->v[s->n++] = ns / 100 > UINT32_MAX ? UINT32_MAX : (uint32_t)(ns / 100);
}

static double quantile(const Samples *s, double p) { return s->n ? s->v[(size_t)(p * (s->n - 1) + 0.5)] / 10000.0 : 0; }

static void printSamples(const char *name, Samples *s) {
  if (s->n) qsort(s->v, s->n, sizeof *s->v, compareSamples);
  printf(",\"%s\":{\"n\":%zu,\"p50\":%.4f,\"p90\":%.4f,\"p99\":%.4f,\"p999\":%.4f,\"max\":%.4f}", name, s->n,
         quantile(s, .5), quantile(s, .9), quantile(s, .99), quantile(s, .999), quantile(s, 1));
}

static int dial(int receiveBuffer) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
  if (fd < 0) die("socket");
  if (receiveBuffer) setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receiveBuffer, sizeof receiveBuffer);
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (connect(fd, (void *)&a, sizeof a)) die("connect");
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return fd;
}

static void watchConn(Conn *c) {
  fcntl(c->fd, F_SETFL, O_NONBLOCK);
  struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
  epoll_ctl(ep, EPOLL_CTL_ADD, c->fd, &e);
}

/** Sends now what the kernel takes and keeps the rest for EPOLLOUT. */
static void sendBytes(Conn *c, const char *p, size_t n) {
  if (c->closed) return;
  if (c->outLen == c->outOff) {
    ssize_t w = send(c->fd, p, n, MSG_NOSIGNAL);
    if (w < 0 && errno != EAGAIN) die("send");
    if (w < 0) w = 0;
    if ((size_t)w == n) return;
    p += w, n -= w, c->outLen = c->outOff = 0;
  }
  c->out = realloc(c->out, c->outLen + n);
  memcpy(c->out + c->outLen, p, n);
  c->outLen += n;
  struct epoll_event e = {.events = EPOLLIN | EPOLLOUT, .data.ptr = c};
  epoll_ctl(ep, EPOLL_CTL_MOD, c->fd, &e);
}

static void flushBytes(Conn *c) {
  while (c->outOff < c->outLen) {
    ssize_t w = send(c->fd, c->out + c->outOff, c->outLen - c->outOff, MSG_NOSIGNAL);
    if (w < 0 && errno == EAGAIN) return;
    if (w < 0) die("send");
    c->outOff += w;
  }
  c->outLen = c->outOff = 0;
  struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
  epoll_ctl(ep, EPOLL_CTL_MOD, c->fd, &e);
}

/** Blocking WebSocket handshake; reads byte by byte so that the first frame stays in the kernel. */
static void openFollower(Conn *c, int receiveBuffer) {
  char b[2048];
  c->fd = dial(receiveBuffer);
  int n = snprintf(b, sizeof b,
                   "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nService-Session-Token: %s\r\nUpgrade: websocket\r\n"
                   "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
                   c->path, port, c->token);
  if (write(c->fd, b, n) != n) die("handshake");
  size_t got = 0;
  while (got < 4 || memcmp(b + got - 4, "\r\n\r\n", 4)) {
    if (got == sizeof b - 1 || read(c->fd, b + got, 1) != 1) die("the server ended the handshake");
    got++;
  }
  b[got] = 0;
  if (!strstr(b, " 101 ")) fprintf(stderr, "driver: no upgrade of %s: %s\n", c->path, b), exit(1);
}

/** Size of the frame at p, or 0 when it is not complete; *body and *len tell its payload. Server frames are unmasked. */
static size_t frameSize(const unsigned char *p, size_t n, const unsigned char **body, size_t *len) {
  if (n < 2) return 0;
  size_t h = 2, l = p[1] & 127;
  if (l == 126) {
    if (n < 4) return 0;
    l = (size_t)p[2] << 8 | p[3], h = 4;
  } else if (l == 127) {
    if (n < 10) return 0;
    l = 0, h = 10;
    for (int i = 2; i < 10; i++) l = l << 8 | p[i];
  }
  if (n < h + l) return 0;
  *body = p + h, *len = l;
  return h + l;
}

static void sendPong(Conn *c, const unsigned char *body, size_t len) {
  char f[6 + 125] = {(char)0x8a, (char)(0x80 | len)}; // a zero mask leaves the payload as it is
  if (len > 125) return;
  memcpy(f + 6, body, len);
  sendBytes(c, f, 6 + len);
}
