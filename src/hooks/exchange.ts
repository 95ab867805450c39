// Sends one request to the consumer and reads its response, within one deadline. A failed connection is retried with the same token; any
// other error fails the dispatch. The URL comes from the administrator, so its address is not checked.
import type { Clock } from "#base/clock.ts";
import { markSideEffect } from "#base/network/current-request.ts";
import { parseAnswer } from "./answer.ts";
import {
  AnswerProblem,
  EVENT_HEADER,
  type FailureClass,
  type HookAnswer,
  type HookRequest,
  SCHEMA_VERSION,
  SIGNATURE_HEADER,
} from "./protocol.ts";
import type { Dispatch } from "./sign.ts";

/** Maximum size of a response. Fits all members at their limits with every character escaped. */
const MAX_BYTES = 2 * 1024 * 1024;

export type Consumer = {
  readonly url: string;
  /** The first secret signs requests. Responses may be signed with any of them. */
  readonly secrets: readonly string[];
  readonly timeout_ms: number;
};

export type Exchange = { readonly answer: HookAnswer; readonly body: Uint8Array };

/** Thrown when an exchange fails. The message is for the server's log. */
export class ExchangeError extends Error {
  override readonly name = "ExchangeError";
  readonly failure: FailureClass;

  constructor(failure: FailureClass, message: string) {
    super(message);
    this.failure = failure;
  }
}

/** Encodes a request. The model's input is included exactly as the model wrote it. */
export const encodeBody = ({ event, meta, data, tool_input }: HookRequest, dispatch_id: string): Uint8Array => {
  const head = { dispatch_id, schema_version: SCHEMA_VERSION, ...meta };
  const members = Object.entries(data).map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`);
  if (tool_input !== undefined) members.push(`"tool_input":${tool_input}`);
  const text = `{"type":${JSON.stringify(event)},"meta":${JSON.stringify(head)},"data":{${members.join(",")}}}`;
  return new TextEncoder().encode(text);
};

type SentRequest = { readonly request: HookRequest; readonly dispatch_id: string; readonly body: Uint8Array };

/** Sends the request and returns the answer. Throws `ExchangeError`, or the reason of `signal`. `issuer` is the deployment's ID. */
export const sendHookRequest = async (
  { clock, consumer, issuer }: { readonly clock: Clock; readonly consumer: Consumer; readonly issuer: string },
  { request: { event, meta, accepts = () => true }, dispatch_id, body }: SentRequest,
  signal?: AbortSignal,
): Promise<Exchange> => {
  markSideEffect();
  const { checkSignature, signRequest } = await import("./sign.ts");
  const { url, secrets, timeout_ms } = consumer;
  const dispatch: Dispatch = { dispatch_id, event, subject: `slipway:chat:${meta.chat_id}`, audience: url };
  const token = await signRequest(secrets[0] ?? "", dispatch, { issuer, body, now: clock.now() });
  const headers = {
    authorization: `Bearer ${token}`,
    "content-type": "application/json",
    accept: "application/json",
    "accept-encoding": "identity",
    "user-agent": "slipway",
    [EVENT_HEADER]: event,
  };
  const timeout = new AbortController();
  const timer = clock.after(timeout_ms, () => timeout.abort());
  const stopSignal = signal ? AbortSignal.any([timeout.signal, signal]) : timeout.signal;
  try {
    const response = await connect(
      url,
      { method: "POST", headers, body, redirect: "manual", signal: stopSignal },
      stopSignal,
    );
    const bytes = await readBytes(response);
    if (!response.ok) throw new ExchangeError("http_error", `the consumer answered ${response.status}`);
    const proof = { issuer, body: bytes, now: clock.now() };
    await checkSignature(response.headers.get(SIGNATURE_HEADER), secrets, dispatch, proof).catch((error) => {
      throw new ExchangeError("signature_invalid", formatError(error));
    });
    const answer = parseAnswer(event, bytes);
    const override = answer.permission?.decision === "allow" ? answer.permission.input_override : undefined;
    if (override && !accepts(override)) throw new AnswerProblem("the tool does not accept input_override");
    return { answer, body: bytes };
  } catch (error) {
    signal?.throwIfAborted();
    if (timeout.signal.aborted) throw new ExchangeError("timeout", `no answer in ${timeout_ms} ms`);
    if (error instanceof ExchangeError) throw error;
    if (error instanceof AnswerProblem) throw new ExchangeError("protocol_error", error.message);
    throw new ExchangeError("connection_failed", formatError(error));
  } finally {
    timer.cancel();
  }
};

/** Returns the response once its headers have arrived. Retries once if the connection fails before. */
const connect = async (url: string, init: RequestInit, stopSignal: AbortSignal): Promise<Response> => {
  // The signature covers the bytes as received, so a compressed response must not be decompressed. Bun's types lack this option.
  const raw = { ...init, decompress: false } as RequestInit;
  try {
    return await fetch(url, raw);
  } catch (error) {
    if (stopSignal.aborted) throw error;
    return fetch(url, raw);
  }
};

const readBytes = async (response: Response): Promise<Uint8Array> => {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength;
    if (size > MAX_BYTES) throw new AnswerProblem("the answer is too long");
    chunks.push(chunk);
  }
  return new Uint8Array(Buffer.concat(chunks));
};

const formatError = (error: unknown): string => (error instanceof Error ? error.message : String(error));
