// The result of a call, as a client can know it (RELIABILITY section 6, promises 1 and 2): acknowledged means that the change is on disk,
// refused means that nothing has changed, and everything else is unknown until it is checked.
import type { Client } from "#src/client.ts";
import { scaleTimeout } from "#test/support/pace.ts";

export type Fate<T> =
  | { fate: "acknowledged"; answer: T }
  | { fate: "refused"; status: number; message: string }
  | { fate: "unknown"; why: string; status?: number };

const WAIT_TIMEOUT_MS = 30_000;

/** Makes one call and returns its result. Adds a problem if an error does not have the usual body. */
export const call = async <T>(
  client: Client,
  method: string,
  path: string,
  body?: unknown,
  options: { headers?: Record<string, string>; problems?: string[] } = {},
): Promise<Fate<T>> => {
  let response: Response;
  let text: string;
  try {
    const signal = AbortSignal.timeout(scaleTimeout(WAIT_TIMEOUT_MS));
    response = await client.fetch(method, path, body, { headers: options.headers, signal });
    text = await response.text();
  } catch (error) {
    return { fate: "unknown", why: String(error) };
  }
  if (response.ok) return { fate: "acknowledged", answer: (text === "" ? undefined : JSON.parse(text)) as T };
  const message = parseMessage(text);
  if (message === undefined)
    options.problems?.push(`${method} ${path}: ${response.status} with the body ${text.slice(0, 80)}`);
  if (response.status >= 500) return { fate: "unknown", status: response.status, why: `${response.status} ${message}` };
  return { fate: "refused", status: response.status, message: message ?? "" };
};

const parseMessage = (text: string): string | undefined => {
  try {
    const { message } = JSON.parse(text) as { message?: unknown };
    return typeof message === "string" ? message : undefined;
  } catch {
    return undefined;
  }
};

export const PAUSE_MS = 10;

/** Repeats the call until the result is definite: for reads, and for idempotent writes. */
export const retryUntilAnswered = async <T>(send: () => Promise<Fate<T>>, timeoutMs = 30_000): Promise<T> => {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const outcome = await send();
    if (outcome.fate === "acknowledged") return outcome.answer;
    if (outcome.fate === "refused") throw new Error(`refused with ${outcome.status}: ${outcome.message}`);
    if (performance.now() > deadline) throw new Error(`no answer in ${timeoutMs} ms: ${outcome.why}`);
    await Bun.sleep(PAUSE_MS);
  }
};

/** Repeats a GET until it is answered. */
export const read = <T>(client: Client, path: string): Promise<T> =>
  retryUntilAnswered(() => call<T>(client, "GET", path));
