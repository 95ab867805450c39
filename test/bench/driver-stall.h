// Two parts of the load driver (driver.c): followers that stop reading, and the time from spawn to the first answered request.

static Conn *stall;
static int stallCount, stallOpen, stallFramed, stallBare, stallCodes[5000];
static char stallReason[128];

/** Opens followers that never read; a small receive buffer lets the server feel it soon. */
static void openStalled(int n) {
  Conn *like = 0;
  for (int i = 0; i < count && !like; i++) if (conns[i].kind == FOLLOW) like = &conns[i];
  if (!like) errno = 0, die("stalled= needs a follow line in the plan");
  stall = calloc(n, sizeof *stall);
  for (int i = 0; i < n; i++) stall[i].kind = STALL, stall[i].path = like->path, stall[i].token = like->token, openFollower(&stall[i], 65536);
  stallCount = n;
  printf("{\"event\":\"stalled\"}\n");
  fflush(stdout);
}

/** After the hold: reads what is left of each stalled connection and says how it ended: close frame, bare end, or still open. */
static void releaseStalled(void) {
  printf("{\"event\":\"released\"}\n");
  fflush(stdout);
  for (int i = 0; i < stallCount; i++) {
    Conn *c = &stall[i];
    struct timeval wait = {.tv_sec = 1};
    setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    int framed = 0;
    ssize_t r;
    while ((r = read(c->fd, rb, sizeof rb)) > 0) {
      if (c->inLen + r > c->inCap) c->in = realloc(c->in, c->inCap = (c->inLen + r) * 2);
      memcpy(c->in + c->inLen, rb, r);
      c->inLen += r;
      size_t o = 0, size, len;
      const unsigned char *body;
      while ((size = frameSize((unsigned char *)c->in + o, c->inLen - o, &body, &len))) {
        if ((c->in[o] & 15) == 8) {
          int code = len >= 2 ? body[0] << 8 | body[1] : 1005;
          framed = 1, stallCodes[code < 5000 ? code : 0]++;
          if (len > 2 && !stallReason[0]) snprintf(stallReason, sizeof stallReason, "%.*s", (int)(len - 2), body + 2);
        }
        o += size;
      }
      keepRest(c, (unsigned char *)c->in + o, c->inLen - o);
    }
    if (framed) stallFramed++;
    else if (r < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) stallOpen++;
    else stallBare++;
    close(c->fd);
  }
}

static void printStalled(void) {
  printf(",\"stalled\":{\"count\":%d,\"closed_with_frame\":%d,\"closed_without_frame\":%d,\"still_open\":%d,\"reason\":\"", stallCount, stallFramed, stallBare, stallOpen);
  for (char *p = stallReason; *p; p++) putchar(*p == '"' || *p == '\\' || *p < ' ' ? ' ' : *p);
  printf("\",\"codes\":{");
  for (int i = 0, first = 1; i < 5000; i++) if (stallCodes[i]) printf("%s\"%d\":%d", first ? "" : ",", i, stallCodes[i]), first = 0;
  printf("}}");
}

/** KiB of a field of /proc/<pid>/<file>, 0 when it is not there. */
static long memoryOf(pid_t pid, const char *file, const char *field) {
  char name[64], line[256];
  long kib = 0;
  snprintf(name, sizeof name, "/proc/%d/%s", pid, file);
  FILE *f = fopen(name, "r");
  while (f && fgets(line, sizeof line, f)) if (!strncmp(line, field, strlen(field))) kib = atol(line + strlen(field));
  if (f) fclose(f);
  return kib;
}

static int answered(const char *path) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), ok = 0;
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (!connect(fd, (void *)&a, sizeof a)) {
    char b[1024];
    int n = snprintf(b, sizeof b, "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n", path, port);
    if (write(fd, b, n) == n && (n = read(fd, b, sizeof b - 1)) > 12) ok = !memcmp(b + 8, " 200", 4);
  }
  close(fd);
  return ok;
}

/** Spawns the command, polls until PATH answers 200, waits, reports, and ends its own child (SIGTERM, after 5 s SIGKILL). */
static int start(const char *path, char **cmd) {
  const char *settle = getenv("SETTLE_MS");
  uint64_t t0 = now();
  pid_t pid = fork();
  if (!pid) {
    int null = open("/dev/null", O_WRONLY);
    dup2(null, 1);
    execvp(cmd[0], cmd);
    _exit(127);
  }
  while (!answered(path)) {
    if (waitpid(pid, 0, WNOHANG)) errno = 0, die("the server ended before it answered");
    if (now() - t0 > 30000000000ull) kill(pid, SIGKILL), errno = 0, die("no answer in 30 s");
    usleep(200);
  }
  double ms = (now() - t0) / 1e6;
  usleep((settle ? atoi(settle) : 300) * 1000);
  printf("{\"start_ms\":%.2f,\"rss_kib\":%ld,\"pss_kib\":%ld}\n", ms, memoryOf(pid, "status", "VmRSS:"), memoryOf(pid, "smaps_rollup", "Pss:"));
  kill(pid, SIGTERM);
  int ended = 0;
  for (int i = 0; i < 500 && !ended; i++) if (!(ended = waitpid(pid, 0, WNOHANG) != 0)) usleep(10000);
  if (!ended) kill(pid, SIGKILL), waitpid(pid, 0, 0);
  return 0;
}
