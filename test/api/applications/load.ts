// Generates load on an app through the server, comparing every response with the app's own, and sends data through its WebSocket.
import { readFileSync } from "node:fs";

/** Where an app is called: at its own port, or at its host on the server. */
export type Target = { readonly origin: string; readonly headers: Readonly<Record<string, string>> };

export type LoadRequest = {
  readonly path: string;
  readonly method?: string;
  readonly body?: Buffer;
  readonly type?: string;
};

type Answer = { readonly status: number; readonly headers: string; readonly body: Uint8Array };

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
): Promise<Answer> => {
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

const differ = (one: Answer, other: Answer): string | undefined => {
  if (one.status !== other.status) return `status ${one.status}, ${other.status}`;
  if (one.headers !== other.headers) return `headers\n${one.headers}\n--\n${other.headers}`;
  const isSame = one.body.length === other.body.length && Buffer.compare(one.body, other.body) === 0;
  return isSame ? undefined : `bodies of ${one.body.length} and ${other.body.length} bytes`;
};

export type Load = {
  readonly answers: number;
  readonly bytes: number;
  readonly seconds: number;
  /** Responses that differ from the app's own. */
  readonly different: readonly string[];
  /** Paths for which the app's own responses vary, which are skipped. */
  readonly unsteady: readonly string[];
};

/** Repeats these requests over several connections until the time is over. */
export const loadApp = async (
  { direct, through }: { direct: Target; through: Target },
  asks: readonly LoadRequest[],
  { connections, ms }: { connections: number; ms: number },
): Promise<Load> => {
  const known: { asked: LoadRequest; wanted: Answer }[] = [];
  const unsteady: string[] = [];
  for (const requested of asks) {
    const wanted = await sendRequest(direct, requested);
    if (differ(wanted, await sendRequest(direct, requested)) === undefined) known.push({ asked: requested, wanted });
    else unsteady.push(requested.path);
  }
  const different: string[] = [];
  let [answers, bytes, next] = [0, 0, 0];
  const started = performance.now();
  const work = async (): Promise<void> => {
    while (performance.now() - started < ms) {
      const { asked, wanted } = known[next++ % known.length] as (typeof known)[number];
      const got = await sendRequest(through, asked).catch(
        (error: unknown): Answer => ({ status: 0, headers: String(error), body: new Uint8Array() }),
      );
      const difference = differ(wanted, got);
      if (difference !== undefined) different.push(`${asked.path}: ${difference}`);
      answers += 1;
      bytes += got.body.length;
    }
  };
  await Promise.all(Array.from({ length: connections }, work));
  return { answers, bytes, seconds: (performance.now() - started) / 1000, different, unsteady };
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

/** Sends this many bytes through an echoing WebSocket, in messages of this size, and compares the response. Resolves with seconds. */
export const echoBytes = async (side: Target, path: string, total: number, size: number): Promise<number> => {
  const socket = await openSocket(side, path);
  const noise = Buffer.alloc(size + 256);
  for (let at = 0, seed = 1; at < noise.length; at += 1) {
    seed = (seed * 1_103_515_245 + 12_345) & 0x7fffffff;
    noise[at] = seed >> 16;
  }
  /** Consecutive messages differ, so that a lost or duplicated message is detected. */
  const message = (n: number): Buffer => noise.subarray(n % 256, (n % 256) + size);
  const count = Math.ceil(total / size);
  let [sent, got] = [0, 0];
  const started = performance.now();
  await new Promise<void>((resolve, reject) => {
    const send = (): void => {
      while (sent < count && sent - got < MAX_IN_FLIGHT) socket.send(message(sent++) as Buffer<ArrayBuffer>);
    };
    socket.onmessage = ({ data }) => {
      if (Buffer.compare(data as unknown as Buffer, message(got)) !== 0)
        return reject(new Error(`message ${got} of ${path} came back changed`));
      got += 1;
      if (got === count) return resolve();
      send();
    };
    socket.onclose = ({ code, reason }) => reject(new Error(`closed with ${code} ${reason} after ${got} of ${count}`));
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
    const mean = (of: number[]): number => of.reduce((sum, one) => sum + one, 0) / of.length;
    return this.#pids.map((_, n) => {
      const own = this.#samples.map((sample) => sample[n] ?? 0);
      return { first: mean(own.slice(0, third)), last: mean(own.slice(-third)), peak: Math.max(...own) };
    });
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}
