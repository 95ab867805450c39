// Prefetched answers and sockets (src/web/app/early.ts): requested by the head of the page before the app, requested by a pressed link
// before its page, or included in the page itself. Each answer is used once, by the first matching request.

/** A socket that was opened early, and the messages it has received. */
export type EarlySocket = { readonly socket: WebSocket; readonly messages: unknown[] };

/** An answer requested at `at`, by the page's clock, or included in the page. */
export type EarlyAnswer = { readonly at: number } & (
  | { readonly answer: Promise<Response>; readonly value?: undefined }
  | { readonly answer?: undefined; readonly value: unknown }
);

export type Early = {
  /** By method, address below /api/v2, and body if any, separated by spaces. */
  readonly answers: Map<string, EarlyAnswer>;
  readonly sockets: Map<string, EarlySocket>;
  /** The first messages of streams, which were included in the page, by path below /api/v2. */
  readonly firstMessages: Map<string, string>;
  /** Prefetches the files of the page at this address and, if `withData`, its first data. */
  readonly prepare: (url: URL, withData: boolean) => void;
};

/** Prefetched answers expire if they are not used within this time. */
const PREFETCH_TTL_MS = 20_000;

const getEarly = (): Early | undefined => {
  const early = (globalThis as { early?: Early }).early;
  const now = performance.now();
  for (const [key, { at }] of early?.answers ?? []) if (now - at > PREFETCH_TTL_MS) early?.answers.delete(key);
  return early;
};

/** Discards all prefetched answers, because a change is about to be sent. */
export const clearPrefetched = (): void => {
  (globalThis as { early?: Early }).early?.answers.clear();
};

/** Prefetches the page at this address, if it is a page of the app. */
export const prepare = (url: URL, withData: boolean): void => getEarly()?.prepare(url, withData);

/** Returns the prefetched answer, if there is one. */
export const takeAnswer = (method: string, address: string, body?: string): EarlyAnswer | undefined => {
  const key = toKey(method, address, body);
  const { answers } = getEarly() ?? {};
  const found = answers?.get(key);
  answers?.delete(key);
  return found;
};

/** Returns the answer that came with the page without consuming it. */
export const peekAnswer = <T>(method: string, address: string): T | undefined =>
  getEarly()?.answers.get(toKey(method, address))?.value as T | undefined;

/** True if the answer came with the page. */
export const cameWithPage = (method: string, address: string): boolean => peekAnswer(method, address) !== undefined;

/** Returns the first message of the stream at this path, if it came with the page. */
export const takeFirstMessage = (path: string): string | undefined => {
  const { firstMessages } = getEarly() ?? {};
  const found = firstMessages?.get(path);
  firstMessages?.delete(path);
  return found;
};

/** Returns the key under which an answer is stored. */
export const toKey = (method: string, address: string, body?: string): string =>
  body === undefined ? `${method} ${address}` : `${method} ${address} ${body}`;

/** Returns the socket that was opened early at this path, if it is still usable. */
export const takeSocket = (path: string): EarlySocket | undefined => {
  const { sockets } = (globalThis as { early?: Early }).early ?? {};
  const found = sockets?.get(path);
  sockets?.delete(path);
  return found && found.socket.readyState <= WebSocket.OPEN ? found : undefined;
};
