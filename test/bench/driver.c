// The load driver of `bun run bench`: one thread, one clock, C so that it is not the bottleneck. Speaks to the product and to the floor.
//   driver load PORT PLAN key=value...    PATCHes, followers, probes and GETs as listed in the file PLAN; prints one JSON line
//   driver hold PORT PLAN key=value...    opens count= followers, round robin over the plan, and keeps them until stdin ends
//   driver start PORT PATH cmd args...    spawn to first 200 (PATH), then memory after settle ms (environment SETTLE_MS)
// PLAN, one line each:  patch AGENT PATH TOKEN SOURCE | follow AGENT PATH TOKEN | probe PATH TOKEN | get PATH TOKEN
// Keys of load: secs, warm (both seconds), lines (in a batch), rate (batches/s in total, 0 = closed loop), probe_us (gap of all probes together),
//   barrier=1 (all PATCHes go out together once every follower has all of the last ones), stalled=N (followers of the first plan line that stop reading),
//   drain (seconds to wait at the end for what is still missing, default 10).
// SIGTERM ends the measured window of load early; rates are those of its true length, which is told as seconds.
// Latencies are in ms. Open loop: counted from the time a send was due, not from the time it was done.
#include "driver-net.h"

static Conn conns[24000];
static int count, patches, follows;
static Samples ackTime, followTime, probeTime, getTime;
static uint64_t from, end, acked, delivered, errors, gaps, followersClosed, outstanding, busyNs;
static int lines = 100, barrier, probes;
static char rb[1 << 20];
static volatile sig_atomic_t told;

static void tell(int signal) { (void)signal, told = 1; }

static void readPlan(const char *file) {
  char line[4096], kind[16], path[1024], token[512], source[128];
  FILE *f = fopen(file, "r");
  if (!f) die(file);
  while (fgets(line, sizeof line, f)) {
    Conn *c = &conns[count];
    int agent = 0;
    source[0] = 0;
    if (sscanf(line, "%15s", kind) != 1) continue;
    if (!strcmp(kind, "patch") && sscanf(line, "%*s %d %1023s %511s %127s", &agent, path, token, source) == 4) c->kind = PATCH, c->id = patches++;
    else if (!strcmp(kind, "follow") && sscanf(line, "%*s %d %1023s %511s", &agent, path, token) == 3) c->kind = FOLLOW, c->id = follows++;
    else if (!strcmp(kind, "probe") && sscanf(line, "%*s %1023s %511s", path, token) == 2) c->kind = PROBE, c->id = probes++;
    else if (!strcmp(kind, "get") && sscanf(line, "%*s %1023s %511s", path, token) == 2) c->kind = GET;
    else die("unreadable plan line");
    c->agent = agent, c->path = strdup(path), c->token = strdup(token), c->source = strdup(source);
    if (++count == (int)(sizeof conns / sizeof *conns)) die("plan too long");
  }
  fclose(f);
}

/** Writes the request of a connection once. A batch's first line carries its due time, connection and number: "T=<20>;C=<4>;N=<8>". */
static void prepare(Conn *c) {
  if (c->kind != PATCH) {
    c->request = malloc(2048);
    c->requestLen = snprintf(c->request, 2048, "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept: application/json\r\nService-Session-Token: %s\r\n\r\n", c->path, port, c->token);
    return;
  }
  char *body = malloc(lines * 400 + 256);
  size_t n = sprintf(body, "{\"log_source_id\":\"%s\",\"logs\":[", c->source), timeAt = 0;
  for (int i = 0; i < lines; i++) {
    n += sprintf(body + n, "%s{\"created_at\":\"2026-01-01T00:00:%02d.%03dZ\",\"level\":\"%s\",\"output\":\"", i ? "," : "", i % 60, i * 7 % 1000, i % 9 ? "info" : "warn");
    if (!i) timeAt = n + 2, n += sprintf(body + n, "T=%020d;C=%04d;N=%08d ", 0, c->id, 0);
    n += sprintf(body + n, "\\u001b[0;32mStep %d/17\\u001b[0m : RUN apt-get install -y build-essential libssl-dev pkg-config # layer %08x cached\"}", i % 17, i * 2654435761u);
  }
  n += sprintf(body + n, "]}");
  c->request = malloc(n + 2048);
  int h = snprintf(c->request, 2048, "PATCH %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\nService-Session-Token: %s\r\nContent-Length: %zu\r\n\r\n", c->path, port, c->token, n);
  memcpy(c->request + h, body, n);
  c->requestLen = h + n, c->timeAt = h + timeAt, c->numberAt = c->timeAt + 20 + 8 + 2;
  free(body);
}

static void digits(char *at, uint64_t v, int width) {
  while (width--) at[width] = '0' + v % 10, v /= 10;
}

static void sendRequest(Conn *c, uint64_t due) {
  if (c->kind == PATCH) digits(c->request + c->timeAt, due, 20), digits(c->request + c->numberAt, c->sent, 8);
  c->sentAt = due, c->busy = 1, c->sent++;
  sendBytes(c, c->request, c->requestLen);
}

static uint64_t number(const unsigned char *p, int width) {
  uint64_t v = 0;
  while (width--) v = v * 10 + (*p++ - '0');
  return v;
}

/** One message of a follower: counts lines and looks at each batch's mark, so that a lost, doubled or swapped batch is seen. */
static void readMessage(Conn *c, const unsigned char *p, size_t n, uint64_t at) {
  const unsigned char *stop = p + n, *m = p;
  size_t braces = 0;
  for (const unsigned char *q = p; q < stop; q++) braces += *q == '{'; // entries are flat objects and the lines have no brace
  c->lines += braces;
  int inside = at >= from && at <= end;
  if (inside) delivered += braces;
  while (stop - m > 40 && (m = memchr(m, '=', stop - m - 39))) {
    if (m == p || m[-1] != 'T' || m[21] != ';') { m++; continue; }
    uint64_t due = number(m + 1, 20), from_ = number(m + 24, 4), n_ = number(m + 31, 8);
    if (from_ < (uint64_t)patches) {
      if (c->next[from_] != n_) gaps++;
      c->next[from_] = n_ + 1;
    }
    if (inside && due <= at) addSample(&followTime, at - due);
    if (barrier) outstanding--;
    m += 40;
  }
}

static void keepRest(Conn *c, const unsigned char *p, size_t n) {
  if (n > c->inCap) c->in = realloc(c->in, c->inCap = n * 2);
  memmove(c->in, p, n);
  c->inLen = n;
}

static size_t readFrames(Conn *c, const unsigned char *p, size_t n, uint64_t at) {
  size_t o = 0, size, len;
  const unsigned char *body;
  while ((size = frameSize(p + o, n - o, &body, &len))) {
    int op = p[o] & 15;
    if (op == 1 || op == 2) readMessage(c, body, len, at);
    else if (op == 9) sendPong(c, body, len);
    o += size;
  }
  return o;
}

/** One answer, found by its content-length. Returns its size, 0 when it is not complete. */
static size_t readAnswer(Conn *c, char *p, size_t n, uint64_t at) {
  char *e = memmem(p, n, "\r\n\r\n", 4);
  if (!e) return 0;
  *e = 0; // headers as a string; put back below
  char *l = strcasestr(p, "\r\ncontent-length:");
  size_t size = (size_t)(e - p) + 4 + (l ? strtoul(l + 17, 0, 10) : 0);
  if (!l && !strstr(p, " 204")) errno = 0, die("an answer without content-length");
  *e = '\r';
  if (n < size) return 0;
  if (memcmp(p + 8, " 200", 4) && !errors++) fprintf(stderr, "driver: %s: %.*s\n", c->path, (int)(n < 400 ? n : 400), p);
  int inside = at >= from && at <= end;
  Samples *s = c->kind == PATCH ? &ackTime : c->kind == PROBE ? &probeTime : &getTime;
  if (inside) addSample(s, at - c->sentAt);
  if (c->kind == PATCH) {
    c->acked++;
    if (inside) acked++;
    if (barrier) outstanding--;
  }
  c->busy = 0;
  return size;
}

static void readConn(Conn *c) {
  ssize_t r = read(c->fd, rb, sizeof rb);
  if (r < 0 && errno == EAGAIN) return;
  if (r <= 0) {
    if (c->kind != FOLLOW) die("the server closed a connection");
    if (!followersClosed++) fprintf(stderr, "driver: follower %d was closed\n", c->id);
    c->closed = 1;
    close(c->fd);
    return;
  }
  uint64_t at = now();
  unsigned char *p = (unsigned char *)rb;
  size_t n = r;
  if (c->inLen) {
    if (c->inLen + n > c->inCap) c->in = realloc(c->in, c->inCap = (c->inLen + n) * 2);
    memcpy(c->in + c->inLen, rb, n);
    p = (unsigned char *)c->in, n += c->inLen;
  }
  size_t used = c->kind == FOLLOW ? readFrames(c, p, n, at) : readAnswer(c, (char *)p, n, at);
  if (used < n) keepRest(c, p + used, n - used);
  else c->inLen = 0;
}

/** Waits for events until `until` (ns); below 1 ms it spins, so that an open loop keeps its schedule. */
static void turn(uint64_t until) {
  struct epoll_event ev[512];
  int64_t left = (int64_t)(until - now());
  int k = epoll_wait(ep, ev, 512, left <= 0 ? 0 : left > 50000000 ? 50 : (int)(left / 1000000));
  uint64_t t0 = now();
  for (int i = 0; i < k; i++) {
    Conn *c = ev[i].data.ptr;
    if (ev[i].events & EPOLLOUT) flushBytes(c);
    if (ev[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR) && !c->closed) readConn(c);
  }
  if (k > 0 && t0 >= from && t0 <= end) busyNs += now() - t0;
}

/** Sends what is due and returns the next time at which something is due. */
static uint64_t sendDue(uint64_t t, double gap, uint64_t probeGap) {
  uint64_t next = end;
  if (barrier && outstanding == 0) {
    for (int i = 0; i < count; i++) if (conns[i].kind == PATCH) outstanding += 1 + follows;
    for (int i = 0; i < count; i++) if (conns[i].kind == PATCH) sendRequest(&conns[i], now());
  }
  for (int i = 0; i < count; i++) {
    Conn *c = &conns[i];
    if (c->busy || c->kind == FOLLOW || (barrier && c->kind == PATCH)) continue;
    if (c->kind == PROBE && !probeGap) continue;
    if ((c->kind == PATCH && gap > 0) || c->kind == PROBE) {
      if (t >= c->due) {
        sendRequest(c, c->due);
        c->due += c->kind == PATCH ? (uint64_t)gap : probeGap * probes;
        if (c->kind == PROBE && c->due + 200000000ull < t) c->due = t;
      } else if (c->due < next) next = c->due;
    } else sendRequest(c, now());
  }
  return next;
}

#include "driver-stall.h"

static double option(int argc, char **argv, const char *key, double otherwise) {
  size_t n = strlen(key);
  for (int i = 0; i < argc; i++) if (!strncmp(argv[i], key, n) && argv[i][n] == '=') return atof(argv[i] + n + 1);
  return otherwise;
}

static int caughtUp(void) {
  uint64_t total = 0;
  for (int i = 0; i < count; i++) if (conns[i].kind != FOLLOW && conns[i].kind != PROBE && conns[i].busy) return 0;
  for (int i = 0; i < count; i++) {
    if (conns[i].kind != FOLLOW || conns[i].closed) continue;
    for (int j = 0; j < count; j++)
      if (conns[j].kind == PATCH && conns[j].agent == conns[i].agent && conns[i].next[conns[j].id] < conns[j].acked) total++;
  }
  return total == 0;
}

static uint64_t missing(void) {
  uint64_t lost = 0;
  for (int i = 0; i < count; i++) {
    if (conns[i].kind != FOLLOW) continue;
    uint64_t expected = 0;
    for (int j = 0; j < count; j++) if (conns[j].kind == PATCH && conns[j].agent == conns[i].agent) expected += (uint64_t)conns[j].acked * lines;
    lost += expected > conns[i].lines ? expected - conns[i].lines : conns[i].lines - expected;
  }
  return lost;
}

static int load(int argc, char **argv) {
  double secs = option(argc, argv, "secs", 2), warm = option(argc, argv, "warm", 1), rate = option(argc, argv, "rate", 0);
  uint64_t probeGap = (uint64_t)(option(argc, argv, "probe_us", 0) * 1000);
  int stalled = (int)option(argc, argv, "stalled", 0);
  signal(SIGTERM, tell);
  lines = (int)option(argc, argv, "lines", 100), barrier = (int)option(argc, argv, "barrier", 0);
  for (int i = 0; i < count; i++) {
    Conn *c = &conns[i];
    if (c->kind == FOLLOW) c->next = calloc(patches + 1, sizeof *c->next), openFollower(c, 0);
    else c->fd = dial(0), prepare(c);
    watchConn(c);
  }
  uint64_t t0 = now() + 200000000ull;
  from = UINT64_MAX;
  while (now() < t0) turn(t0);
  double gap = rate > 0 ? 1e9 * patches / rate : 0;
  for (int i = 0; i < count; i++) conns[i].due = t0 + (conns[i].kind == PATCH ? (uint64_t)(gap * conns[i].id / patches) : conns[i].kind == PROBE ? probeGap * conns[i].id : 0);
  from = t0 + (uint64_t)(warm * 1e9), end = from + (uint64_t)(secs * 1e9);
  for (uint64_t t = now(); t <= end; t = now()) {
    if (told && t > from) {
      end = t;
      break;
    }
    if (stalled && !stallCount && t >= from) openStalled(stalled);
    uint64_t b = now(), next = sendDue(t, gap, probeGap), a = now();
    if (a - b > 2000 && b >= from) busyNs += a - b; // below: nothing was due
    turn(next < end ? next : end);
  }
  secs = (end - from) / 1e9;
  if (stalled) releaseStalled();
  uint64_t limit = now() + (uint64_t)(option(argc, argv, "drain", 10) * 1e9);
  while (!caughtUp() && now() < limit) turn(now() + 1000000);
  printf("{\"errors\":%llu,\"gaps\":%llu,\"lines_wrong\":%llu,\"followers_closed\":%llu,\"seconds\":%.3f,\"driver_busy\":%.3f,\"batches_per_s\":%.1f,\"lines_per_s\":%.0f,\"deliveries_per_s\":%.0f,\"gets_per_s\":%.0f",
         (unsigned long long)errors, (unsigned long long)gaps, (unsigned long long)missing(), (unsigned long long)followersClosed, secs, busyNs / (secs * 1e9),
         acked / secs, acked * lines / secs, delivered / secs, getTime.n / secs);
  printSamples("ack", &ackTime), printSamples("follow", &followTime), printSamples("probe", &probeTime), printSamples("get", &getTime);
  if (stalled) printStalled();
  printf("}\n");
  return 0;
}

/** Opens followers round robin over the plan's follow lines and reads (pings, end) until stdin is closed. */
static int hold(int argc, char **argv) {
  int n = (int)option(argc, argv, "count", 10000), planned = count;
  uint64_t t0 = now();
  if (n > (int)(sizeof conns / sizeof *conns) - planned) die("count too large");
  for (int i = 0; i < n; i++) {
    Conn *c = &conns[planned + i], *like = &conns[i % planned];
    c->kind = FOLLOW, c->id = i, c->path = like->path, c->token = like->token, c->next = calloc(1, sizeof *c->next);
    openFollower(c, 0);
    watchConn(c);
  }
  printf("{\"event\":\"opened\",\"count\":%d,\"seconds\":%.3f}\n", n, (now() - t0) / 1e9);
  fflush(stdout);
  struct pollfd p = {.fd = 0, .events = POLLIN};
  while (poll(&p, 1, 0) == 0) turn(now() + 50000000);
  printf("{\"followers_closed\":%llu}\n", (unsigned long long)followersClosed);
  return 0;
}

int main(int argc, char **argv) {
  if (argc < 4) return fprintf(stderr, "driver: load|hold PORT PLAN key=value..., start PORT PATH cmd...\n"), 2;
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  signal(SIGPIPE, SIG_IGN);
  port = atoi(argv[2]);
  if (!strcmp(argv[1], "start")) return start(argv[3], argv + 4);
  ep = epoll_create1(EPOLL_CLOEXEC);
  readPlan(argv[3]);
  return !strcmp(argv[1], "hold") ? hold(argc, argv) : load(argc, argv);
}
