// What was asked of the server before the page that needs it was there (src/web/app/early.ts): by the head of the page, before the app,
// and by a link that is pressed, before the page behind it; and what came with the page itself. Each answer is taken once, by anyone who asks
// for the same.

/** A socket that was opened early, and what it has heard. */
export type EarlySocket = { readonly socket: WebSocket; readonly heard: unknown[] };

/** An answer that is on its way since `at`, by the clock of the page, or one that came with it. */
export type EarlyAnswer = { readonly at: number } & (
  | { readonly answer: Promise<Response>; readonly value?: undefined }
  | { readonly answer?: undefined; readonly value: unknown }
);

export type Early = {
  /** By method, address below /api/v2, and body if there is one, with blanks between. */
  readonly answers: Map<string, EarlyAnswer>;
  readonly sockets: Map<string, EarlySocket>;
  /** What streams would have said first, by their paths below /api/v2: it came with the page. */
  readonly heard: Map<string, string>;
  /** Fetches the files that the page at this address is made of and, if `withData`, asks for what it will ask for first. */
  readonly prepare: (url: URL, withData: boolean) => void;
};

/** Responses that are not requested within this time are outdated. */
const OLD_MS = 20_000;

const early = (): Early | undefined => {
  const found = (globalThis as { early?: Early }).early;
  const now = performance.now();
  for (const [key, { at }] of found?.answers ?? []) if (now - at > OLD_MS) found?.answers.delete(key);
  return found;
};

/** Nothing that was asked before this moment counts any more: something is about to change. */
export const forgetEarly = (): void => {
  (globalThis as { early?: Early }).early?.answers.clear();
};

/** Has the page at this address on its way, if it is one of the app's. */
export const prepare = (url: URL, withData: boolean): void => early()?.prepare(url, withData);

/** The answer that was asked for early, if there is one. */
export const takeAnswer = (method: string, address: string, body?: string): EarlyAnswer | undefined => {
  const key = toKey(method, address, body);
  const { answers } = early() ?? {};
  const found = answers?.get(key);
  answers?.delete(key);
  return found;
};

/** The answer that came with the page; anyone who asks for it still takes it. */
export const cameValue = <T>(method: string, address: string): T | undefined =>
  early()?.answers.get(toKey(method, address))?.value as T | undefined;

/** Whether the answer came with the page. */
export const cameWithPage = (method: string, address: string): boolean => cameValue(method, address) !== undefined;

/** What the stream at this path would have said first, if it came with the page. */
export const takeHeard = (path: string): string | undefined => {
  const { heard } = early() ?? {};
  const found = heard?.get(path);
  heard?.delete(path);
  return found;
};

/** What an answer is known by. */
export const toKey = (method: string, address: string, body?: string): string =>
  body === undefined ? `${method} ${address}` : `${method} ${address} ${body}`;

/** The socket that was opened early at this path, if it is still of use. */
export const takeSocket = (path: string): EarlySocket | undefined => {
  const { sockets } = (globalThis as { early?: Early }).early ?? {};
  const found = sockets?.get(path);
  sockets?.delete(path);
  return found && found.socket.readyState <= WebSocket.OPEN ? found : undefined;
};
