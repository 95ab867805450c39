// Parses strace's output of a server: incoming requests, outgoing responses, and the writes and flushes in between.

/** Returns a strace command whose output this file can parse. The server remains the direct child (-D), so that signals reach it. */
export const traceCommand = (file: string): string[] => {
  const calls = "recvfrom,sendto,sendmsg,write,writev,pwrite64,ftruncate,fsync,fdatasync";
  return ["strace", "-D", "-f", "-yy", "-s", "256", "-e", `trace=${calls}`, "-o", file];
};

/** One response, and what the server did between the request and the response. */
export type TracedResponse = {
  request: string;
  status: number;
  /** Number of writes to the database's write-ahead log, and of its flushes. */
  writes: number;
  flushes: number;
  /** Flushes of uploaded files and their folders. */
  fileFlushes: number;
  /** Number of writes to that log that were not flushed when the response was sent. */
  unflushed: number;
};

/** Marks the first half of a call that another thread's call interrupted. A later `resumed` line has the second half. */
const UNFINISHED = " <unfinished ...>";
const REQUEST = /^recvfrom\(\d+<TCP.*?\]>, "((?:GET|POST|PUT|PATCH|DELETE) [^ ]+) HTTP/;
const RESPONSE = /^send(?:to|msg)\(\d+<TCP.*"HTTP\/1\.1 (\d{3})/;

/** Returns the responses of a server with sequential requests, in order. */
export const parseResponses = (trace: string): TracedResponse[] => {
  const responses: TracedResponse[] = [];
  const started = new Map<string, string>();
  let current = createEmptyResponse("");
  let unflushed = 0;
  for (const line of trace.split("\n")) {
    const [, pid = "", call = ""] = /^(\d+)\s+(.*)$/.exec(line) ?? [];
    // An interrupted call has two lines. A write counts from its start, a flush from its end.
    const resumed = /^<\.\.\. \w+ resumed>(.*)$/.exec(call);
    const callStart = resumed ? (started.get(pid) ?? "") : call;
    if (!resumed && call.endsWith(UNFINISHED)) started.set(pid, call.slice(0, -UNFINISHED.length));
    const isDone = resumed !== null || !call.endsWith(UNFINISHED);
    const request = isDone && REQUEST.exec(resumed ? callStart + (resumed[1] ?? "") : call)?.[1];
    if (request) current = createEmptyResponse(request);
    if (!resumed && /^pwrite64\(\d+<[^>]*slipway\.db-wal>/.test(call)) {
      current.writes += 1;
      unflushed += 1;
    }
    if (isDone && /^f(data)?sync\(\d+<[^>]*slipway\.db-wal>/.test(callStart) && / = 0$/.test(call)) {
      current.flushes += 1;
      unflushed = 0;
    }
    if (isDone && /^f(data)?sync\(\d+<[^>]*\/files/.test(callStart)) current.fileFlushes += 1;
    const status = !resumed && RESPONSE.exec(call)?.[1];
    if (status) responses.push({ ...current, status: Number(status), unflushed });
  }
  return responses;
};

const createEmptyResponse = (request: string): TracedResponse => ({
  request,
  status: 0,
  writes: 0,
  flushes: 0,
  fileFlushes: 0,
  unflushed: 0,
});
