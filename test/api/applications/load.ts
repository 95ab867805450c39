// Generates load on an app through the server, compares every response with a direct one, and sends data through its WebSocket.
import { readFileSync } from "node:fs";

/** The place to call an app: its own port, or its host on the server. */
export type Target = { readonly origin: string; readonly headers: Readonly<Record<string, string>> };

export type LoadRequest = {
  readonly path: string;
  readonly method?: string;
  readonly body?: Buffer;
  readonly type?: string;
};

type AppResponse = { readonly status: number; readonly headers: string; readonly body: Uint8Array };

/**
 * Headers of a single connection (including body framing), headers with the response time, and those the server adds so that no shared
 * cache stores a private response.
 */
const CONNECTION_HEADERS = new Set([
  ...["connection", "keep-alive", "transfer-encoding", "content-length", "date", "expires", "vary", "cache-control"],
]);

const sendRequest = async (
  { origin, headers }: Target,
  { path, method = "GET", body, type }: LoadRequest,
): Promise<AppResponse> => {
  const response = await fetch(`${origin}${path}`, {
    method,
    headers: { ...headers, ...(type === undefined ? {} : { "content-type": type }) },
    redirect: "manual",
    decompress: false,
    ...(body === undefined ? {} : { body: new Uint8Array(body) }),
  } as RequestInit);
  const shown = [...response.headers].filter(([name]) => !CONNECTION_HEADERS.has(name)).map((pair) => pair.join(": "));
  return { status: response.status, headers: shown.sort().join("\n"), body: await response.bytes() };
};

const describeDifference = (first: AppResponse, second: AppResponse): string | undefined => {
  if (first.status !== second.status) return `status ${first.status}, ${second.status}`;
  if (first.headers !== second.headers) return `headers\n${first.headers}\n--\n${second.headers}`;
  const isSame = first.body.length === second.body.length && Buffer.compare(first.body, second.body) === 0;
  return isSame ? undefined : `bodies of ${first.body.length} and ${second.body.length} bytes`;
};

export type Load = {
  readonly answers: number;
  readonly bytes: number;
  readonly seconds: number;
  /** Responses that differ from the app's own. */
  readonly different: readonly string[];
  /** Paths for which the app's own responses vary, which are skipped. */
  readonly unstablePaths: readonly string[];
};

/** Repeats these requests over several connections until the time is over. */
export const loadApp = async (
  { direct, through }: { direct: Target; through: Target },
  requests: readonly LoadRequest[],
  { connections, ms }: { connections: number; ms: number },
): Promise<Load> => {
  const steadyRequests: { request: LoadRequest; expected: AppResponse }[] = [];
  const unsteady: string[] = [];
  for (const request of requests) {
    const expected = await sendRequest(direct, request);
    if (describeDifference(expected, await sendRequest(direct, request)) === undefined)
      steadyRequests.push({ request, expected });
    else unsteady.push(request.path);
  }
  const different: string[] = [];
  let [responseCount, byteCount, nextIndex] = [0, 0, 0];
  const started = performance.now();
  const sendRequests = async (): Promise<void> => {
    while (performance.now() - started < ms) {
      const { request, expected } = steadyRequests[
        nextIndex++ % steadyRequests.length
      ] as (typeof steadyRequests)[number];
      const response = await sendRequest(through, request).catch(
        (error: unknown): AppResponse => ({ status: 0, headers: String(error), body: new Uint8Array() }),
      );
      const difference = describeDifference(expected, response);
      if (difference !== undefined) different.push(`${request.path}: ${difference}`);
      responseCount += 1;
      byteCount += response.body.length;
    }
  };
  await Promise.all(Array.from({ length: connections }, sendRequests));
  return {
    answers: responseCount,
    bytes: byteCount,
    seconds: (performance.now() - started) / 1000,
    different,
    unstablePaths: unsteady,
  };
};

/** Opens an app's WebSocket. */
export const openSocket = async (
  { origin, headers }: Target,
  path: string,
  { protocols, more = {} }: { protocols?: string[]; more?: Record<string, string> } = {},
): Promise<WebSocket> => {
  const socket = new WebSocket(`${origin.replace("http", "ws")}${path}`, {
    headers: { ...headers, ...more },
    ...(protocols ? { protocols } : {}),
  } as never);
  socket.binaryType = "nodebuffer" as never;
  await new Promise<void>((resolve, reject) => {
    socket.onopen = () => resolve();
    socket.onerror = () => reject(new Error(`the WebSocket ${path} was refused`));
  });
  return socket;
};

/** Number of messages in flight: enough to keep both directions busy, and few enough for this process's memory. */
const MAX_IN_FLIGHT = 8;

/** Sends `total` bytes through an echoing WebSocket in messages of `size` bytes, compares the echo, and returns the seconds. */
export const echoBytes = async (target: Target, path: string, total: number, size: number): Promise<number> => {
  const socket = await openSocket(target, path);
  const randomBytes = Buffer.alloc(size + 256);
  for (let i = 0, seed = 1; i < randomBytes.length; i += 1) {
    seed = (seed * 1_103_515_245 + 12_345) & 0x7fffffff;
    randomBytes[i] = seed >> 16;
  }
  /** Consecutive messages differ, so that a lost or duplicated message is detected. */
  const getMessage = (n: number): Buffer => randomBytes.subarray(n % 256, (n % 256) + size);
  const count = Math.ceil(total / size);
  let [sent, received] = [0, 0];
  const started = performance.now();
  await new Promise<void>((resolve, reject) => {
    const send = (): void => {
      while (sent < count && sent - received < MAX_IN_FLIGHT) socket.send(getMessage(sent++) as Buffer<ArrayBuffer>);
    };
    socket.onmessage = ({ data }) => {
      if (Buffer.compare(data as unknown as Buffer, getMessage(received)) !== 0)
        return reject(new Error(`the echo of message ${received} of ${path} is different`));
      received += 1;
      if (received === count) return resolve();
      send();
    };
    socket.onclose = ({ code, reason }) =>
      reject(new Error(`closed with ${code} ${reason} after ${received} of ${count}`));
    send();
  });
  socket.close();
  return (performance.now() - started) / 1000;
};

/** Returns a process's resident memory in MiB. */
const readResidentMiB = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024;

/** Samples the memory of processes. */
export class MemoryWatch implements Disposable {
  readonly #pids: readonly number[];
  readonly #timer: ReturnType<typeof setInterval>;
  #samples: number[][] = [];

  constructor(pids: readonly number[]) {
    this.#pids = pids;
    this.#timer = setInterval(() => this.#sample(), 250);
    this.#sample();
  }

  #sample(): void {
    this.#samples.push(this.#pids.map(readResidentMiB));
  }

  /** Returns for each process the mean of the first and last third of the samples, and the peak, in MiB. */
  read(): { first: number; last: number; peak: number }[] {
    this.#sample();
    const third = Math.max(1, Math.floor(this.#samples.length / 3));
    const mean = (values: number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
    return this.#pids.map((_, n) => {
      const samples = this.#samples.map((sample) => sample[n] ?? 0);
      return { first: mean(samples.slice(0, third)), last: mean(samples.slice(-third)), peak: Math.max(...samples) };
    });
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}
