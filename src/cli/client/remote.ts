// Functions shared by all commands that talk to a server: finding the server, formatting errors, and handling Ctrl-C (rules CV-2 to CV-4).
// A stored session is never sent to a server other than its own.
import { type Clock, keepProcessAlive } from "#base/clock.ts";
import { loadClientConfig } from "#base/config.ts";
import { describeNetworkError } from "#base/network/failure-words.ts";
import { pause, waitForAbort } from "#base/retry.ts";
import { UsageError } from "#base/usage-error.ts";
import type { JobLog } from "#schema/workspaces/job.ts";
import { ApiError, Client, type ClientSocket } from "#src/client.ts";
import { VerbFailure } from "../failure.ts";
import { OutputClosedError } from "../output.ts";
import { toPlainLine } from "../text.ts";
import { EXIT, type VerbInput } from "../verb.ts";
import { readSession } from "./session.ts";

export interface Remote {
  readonly client: Client;
  /** Runs `handler` on Ctrl-C before the program ends. */
  onInterrupt(handler: () => Promise<void> | void): void;
  /** Sets the server named in connection errors. */
  setServer(url: URL): void;
}

type Flags = { url?: string; token?: string };

/** Creates a client from the flags, the environment or the stored session, in this order. Throws VerbFailure if there is no session. */
export const makeClient = (input: VerbInput, flags: Flags): Client => {
  const given = { url: flags.url, token: flags.token };
  const { url, token } = loadClientConfig(input, given, readSession(input));
  if (token === undefined) {
    throw new VerbFailure(
      `you are not signed in to ${url.origin}. Run \`slipway login ${url.origin}\`, or set SLIPWAY_TOKEN.`,
    );
  }
  return new Client(url, token, input.headers);
};

/** What a command does. Returns its exit code; undefined means success. */
type Work<Context> = (context: Context) => Promise<number | undefined>;

/** Runs `work` with a signed-in client and returns the exit code. */
export const withServer = (verb: string, input: VerbInput, flags: Flags, work: Work<Remote>): Promise<number> =>
  explainError(verb, input, (remote) => {
    const client = makeClient(input, flags);
    remote.setServer(client.url);
    return work({ ...remote, client });
  });

/** Runs `work`, prints errors as a sentence, and ends on Ctrl-C. Returns the exit code. */
export const explainError = async (
  verb: string,
  { signal, printError }: Pick<VerbInput, "signal" | "printError">,
  work: Work<Omit<Remote, "client">>,
): Promise<number> => {
  const keepAlive = keepProcessAlive();
  let interruptHandler: () => Promise<void> | void = () => {};
  let server = "the server";
  try {
    const working = work({
      onInterrupt: (handler) => {
        interruptHandler = handler;
      },
      setServer(url) {
        server = url.origin;
      },
    });
    const code = await Promise.race([working.then((given) => given ?? EXIT.ok), waitForAbort(signal)]);
    if (code !== undefined) return code;
    working.catch(() => {});
    await interruptHandler();
    return EXIT.interrupted;
  } catch (error) {
    if (signal.aborted) return EXIT.interrupted;
    if (error instanceof OutputClosedError) return EXIT.failed;
    const message = formatError(error, server, verb);
    if (message === undefined) throw error;
    printError(`slipway ${verb}: ${message}\n`);
    return EXIT.failed;
  } finally {
    keepAlive.cancel();
  }
};

/** Returns the message of an error that the user can fix; undefined for a bug in this program. */
const formatError = (error: unknown, server: string, verb: string): string | undefined => {
  if (error instanceof UsageError) return undefined;
  if (error instanceof VerbFailure) return error.message;
  if (error instanceof ApiError) return formatApiError(error, verb);
  const { code } = error as { code?: unknown };
  if (typeof code !== "string") return undefined;
  if (DECOMPRESSION_ERROR.test(code)) return `${server} sent a response that cannot be decompressed (${code})`;
  return isNetworkError(code) ? `${server} does not answer (${toPlainLine(describeNetworkError(error))})` : undefined;
};

const formatApiError = ({ status, body, message }: ApiError, verb: string): string => {
  const fields = (body.validations ?? []).map(
    ({ field, detail }) => `\n  ${toPlainLine(field)}: ${toPlainLine(detail)}`,
  );
  const hint = status === 401 && verb !== "login" ? " Run `slipway login` to sign in." : "";
  return `${toPlainLine(message)}${fields.join("")}${hint}`;
};

/** The runtime's codes for a response whose content does not match its `content-encoding`. */
const DECOMPRESSION_ERROR = /^(Zlib|Brotli|Zstd)\w*Error$/;

const isNetworkError = (code: string): boolean =>
  /^(E(CONN|HOST|NET|PIPE|TIMEDOUT|NOTFOUND|AI)|Connection|FailedToOpenSocket|Timeout|DNS|HTTP|InvalidHTTP|Unexpected|Malformed)|CERT|SSL|TLS|SIGNED/.test(
    code,
  );

/** Opens a WebSocket. If it is refused, throws with the server's message, which a WebSocket does not provide. */
export const openSocket = async (client: Client, path: string): Promise<ClientSocket> => {
  try {
    return await client.socket(path);
  } catch (error) {
    // 426 means that only the upgrade was missing. Any other error is the reason.
    const response = await client.fetch("GET", path, undefined, { headers: { accept: "application/json" } });
    if (response.ok || response.status === 426) throw new VerbFailure((error as Error).message);
    await client.get(path);
    throw error;
  }
};

/** A stream ended prematurely and can be resumed. */
export class StreamBroken extends VerbFailure {}

/** Close codes for missing access or a client error: retrying is pointless. */
export const FINAL_CODES = [1002, 1008, 1009];

/** Yields each message as JSON until the server ends the stream. Throws StreamBroken, or VerbFailure with the server's reason. */
export async function* readMessages<T>(client: Client, path: string): AsyncGenerator<T> {
  using socket = await openSocket(client, path);
  for await (const message of socket) yield JSON.parse(String(message)) as T;
  const { code, reason } = await socket.closed;
  if (code === 1000) return;
  const message = `the server ended the stream (${code}${reason ? `: ${toPlainLine(reason)}` : ""})`;
  throw FINAL_CODES.includes(code) ? new VerbFailure(message) : new StreamBroken(message);
}

/** How long to retry while the server is unreachable, for example during a restart. */
const RETRY_TIMEOUT_MS = 60_000;
const RETRY_INTERVAL_MS = 500;

/** Yields the complete log of a job, across reconnects and without repeating lines (rule CV-6). */
export async function* followJobLog(clock: Clock, client: Client, path: string): AsyncGenerator<JobLog> {
  let after = 0;
  let lostAt: number | undefined;
  for (let isFirst = true; ; isFirst = false) {
    try {
      for await (const line of readMessages<JobLog>(client, `${path}/logs?follow=true&after=${after}`)) {
        after = line.id;
        lostAt = undefined;
        yield line;
      }
      return;
    } catch (error) {
      lostAt ??= clock.monotonic();
      const isTemporaryFailure = error instanceof StreamBroken || (!isFirst && isTemporary(error));
      if (!isTemporaryFailure || clock.monotonic() - lostAt > RETRY_TIMEOUT_MS) throw error;
    }
    await pause(clock, RETRY_INTERVAL_MS);
  }
}

/** True if the server is unreachable or temporarily unavailable. */
export const isTemporary = (error: unknown): boolean => {
  if (error instanceof StreamBroken) return true;
  if (error instanceof ApiError) return error.status >= 500;
  const { code } = error as { code?: unknown };
  return typeof code === "string" && isNetworkError(code);
};
