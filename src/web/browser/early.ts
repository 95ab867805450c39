// What the head of the page has asked the server for before the app was there (src/web/app/early.ts): each answer is taken once, by
// whoever asks for the same.

/** A socket that was opened early, and what it has heard. */
export type EarlySocket = { readonly socket: WebSocket; readonly heard: unknown[] };

export type Early = {
  /** By method, address below /api/v2, and body if there is one, with blanks between. */
  readonly answers: Map<string, Promise<Response>>;
  readonly sockets: Map<string, EarlySocket>;
};

/** Milliseconds after the page was opened: what nobody has asked for until then is old. */
const OLD_MS = 20_000;

const early = (): Early | undefined => {
  const found = (globalThis as { early?: Early }).early;
  if (found && performance.now() > OLD_MS) forgetEarly();
  return found;
};

/** Nothing that was asked before this moment counts any more: something is about to change. */
export const forgetEarly = (): void => {
  (globalThis as { early?: Early }).early?.answers.clear();
};

/** The answer that was asked for early, if there is one. */
export const takeAnswer = (method: string, address: string, body?: string): Promise<Response> | undefined => {
  const key = keyOf(method, address, body);
  const answer = early()?.answers.get(key);
  early()?.answers.delete(key);
  return answer;
};

/** What an answer is known by. */
export const keyOf = (method: string, address: string, body?: string): string =>
  body === undefined ? `${method} ${address}` : `${method} ${address} ${body}`;

/** The socket that was opened early at this path, if it is still of use. */
export const takeSocket = (path: string): EarlySocket | undefined => {
  const { sockets } = (globalThis as { early?: Early }).early ?? {};
  const found = sockets?.get(path);
  sockets?.delete(path);
  return found && found.socket.readyState <= WebSocket.OPEN ? found : undefined;
};
