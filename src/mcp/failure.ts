// Converts an error of the client package: a message for users, and whether the connection is still usable (rules MC-4, MC-11). Pure.

import { parseJson } from "#base/json/read.ts";
import { type Hide, hideNothing } from "./hidden.ts";

/**
 * `lost`: the server has forgotten the session, and the call did not run. `broken`: the server is unreachable over this connection.
 * `silent`: it did not answer in time. `refused`: it answered with an error.
 */
export type FailureKind = "lost" | "broken" | "silent" | "refused";

/** The server is unreachable or violates the protocol. The message is for logs and users, without secrets. */
export class McpError extends Error {
  override readonly name = "McpError";
  readonly kind: FailureKind;
  /** Status of the HTTP response, if there was one. */
  readonly status: number | undefined;

  constructor(message: string, { kind = "broken", status }: { kind?: FailureKind; status?: number | undefined } = {}) {
    super(message);
    this.kind = kind;
    this.status = status;
  }
}

const MAX_MESSAGE_LENGTH = 500;
/** The specification's status for an expired session, and the one that some servers use instead. */
const LOST_STATUSES: readonly unknown[] = [404, 410];
/** Messages with which servers report an expired session in a 400 or 200 response. */
const LOST_SESSION =
  /\bsession\b.{0,60}\b(not found|expired|invalid|unknown|missing|terminated|closed|not exist|required|gone)\b|\b(no|not|invalid|unknown|expired|missing|bad|without)\b.{0,30}\bsession\b|\bnot (yet )?initialized\b/i;

type FailureContext = {
  /** Removes secrets from the message. */
  readonly hide?: Hide;
  /** The server had started a session. */
  readonly hadSession?: boolean;
  /** The timeout that elapsed. */
  readonly limit_ms?: number;
};

/** Converts an error. `reason`: why the MCP server's program has ended; undefined if it has not. */
export const toMcpError = (error: unknown, reason: string | undefined, context: FailureContext = {}): McpError => {
  // Secrets are removed before the text is shortened: a part of a secret would not be recognized.
  const toSafeText = (message: string): string => shorten((context.hide ?? hideNothing)(message));
  if (reason !== undefined) return new McpError(toSafeText(reason));
  if (error instanceof McpError) return error;
  const { status, text } = readResponse(error);
  const code = getCode(error);
  const message = error instanceof Error ? error.message : String(error);
  if (status !== undefined) {
    const isLost = LOST_STATUSES.includes(status) || (status === 400 && LOST_SESSION.test(text));
    const answerText = text === "" ? `it answered ${status}` : `it answered ${status}: ${text}`;
    return new McpError(toSafeText(answerText), { kind: isLost ? "lost" : "broken", status });
  }
  if (code === "REQUEST_TIMEOUT" && context.limit_ms !== undefined) {
    return new McpError(`it did not answer within ${context.limit_ms / 1_000} s`, { kind: "silent" });
  }
  if (typeof code === "number") {
    const isLost = context.hadSession === true && LOST_SESSION.test(message);
    return new McpError(toSafeText(message), { kind: isLost ? "lost" : "refused" });
  }
  return new McpError(toSafeText(NETWORK_MESSAGES.find(([name]) => message.includes(name))?.[1] ?? message));
};

/** The runtime's network errors, with messages for users. */
const NETWORK_MESSAGES: readonly (readonly [name: string, message: string])[] = [
  ["ECONNREFUSED", "its address refuses connections; is it running?"],
  ["ENOTFOUND", "its host name is unknown"],
  ["ECONNRESET", "the connection was closed before it answered"],
  ["ETIMEDOUT", "its address does not answer"],
];

const getCode = (error: unknown): unknown =>
  typeof error === "object" && error !== null ? (error as { code?: unknown }).code : undefined;

/** Returns one line without URLs, which may contain a secret. */
const shorten = (text: string): string =>
  text
    .replace(/https?:\/\/[^\s"']+/g, (url) => url.replace(/[?#][\s\S]*/, ""))
    .replace(/\s+/g, " ")
    .trim()
    .slice(0, MAX_MESSAGE_LENGTH);

/** Returns the status and message of a response that is not MCP. */
const readResponse = (error: unknown): { status: number | undefined; text: string } => {
  const { data } = (typeof error === "object" && error !== null ? error : {}) as { readonly data?: unknown };
  const { status, text } = (typeof data === "object" && data !== null ? data : {}) as {
    readonly status?: unknown;
    readonly text?: unknown;
  };
  if (typeof status !== "number") return { status: undefined, text: "" };
  return { status, text: typeof text === "string" ? findMessage(text.trim()) : "" };
};

/** Returns the message of an error in JSON, or the text unless it is a web page. */
const findMessage = (text: string): string => {
  if (text.startsWith("<")) return "";
  try {
    const { message, error } = parseJson(text) as { readonly message?: unknown; readonly error?: unknown };
    const inner = typeof error === "object" && error !== null ? (error as { message?: unknown }).message : error;
    return [message, inner].find((one) => typeof one === "string" && one !== "")?.toString() ?? text;
  } catch {
    return text;
  }
};
