// The result of a call, as a client can know it (RELIABILITY section 6, promises 1 and 2): acknowledged means that the change is on disk,
// refused means that nothing has changed, and everything else is unknown until it is checked.
import type { Client } from "#src/client.ts";
import { scaleTimeout } from "#test/support/pace.ts";

export type CallResult<T> =
  | { outcome: "acknowledged"; answer: T }
  | { outcome: "refused"; status: number; message: string }
  | { outcome: "unknown"; reason: string; status?: number };

const WAIT_TIMEOUT_MS = 30_000;

/** Makes one call and returns its result. Adds a problem if an error does not have the usual body. */
export const call = async <T>(
  client: Client,
  method: string,
  path: string,
  body?: unknown,
  options: { headers?: Record<string, string>; problems?: string[] } = {},
): Promise<CallResult<T>> => {
  let response: Response;
  let text: string;
  try {
    const signal = AbortSignal.timeout(scaleTimeout(WAIT_TIMEOUT_MS));
    response = await client.fetch(method, path, body, { headers: options.headers, signal });
    text = await response.text();
  } catch (error) {
    return { outcome: "unknown", reason: String(error) };
  }
  if (response.ok) return { outcome: "acknowledged", answer: (text === "" ? undefined : JSON.parse(text)) as T };
  const message = parseMessage(text);
  if (message === undefined)
    options.problems?.push(`${method} ${path}: ${response.status} with the body ${text.slice(0, 80)}`);
  if (response.status >= 500)
    return { outcome: "unknown", status: response.status, reason: `${response.status} ${message}` };
  return { outcome: "refused", status: response.status, message: message ?? "" };
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
export const retryUntilAnswered = async <T>(send: () => Promise<CallResult<T>>, timeoutMs = 30_000): Promise<T> => {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const result = await send();
    if (result.outcome === "acknowledged") return result.answer;
    if (result.outcome === "refused") throw new Error(`refused with ${result.status}: ${result.message}`);
    if (performance.now() > deadline) throw new Error(`no answer in ${timeoutMs} ms: ${result.reason}`);
    await Bun.sleep(PAUSE_MS);
  }
};

/** Repeats a GET until it is answered. */
export const read = <T>(client: Client, path: string): Promise<T> =>
  retryUntilAnswered(() => call<T>(client, "GET", path));
