// One request to the consumer and its answer, within one deadline. A connection that fails is tried again with the same token; whatever
// else goes wrong fails the dispatch. The address is the administrator's own, so it is not looked at beyond what the setting allows.
import type { Clock } from "#base/clock.ts";
import { beginOutside } from "#base/network/request-part.ts";
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

/** Bytes of an answer that are read: what the caps of its members take when every letter is escaped. */
const MAX_BYTES = 2 * 1024 * 1024;

export type Consumer = {
  readonly url: string;
  /** The first one signs; answers may be signed with each of them. */
  readonly secrets: readonly string[];
  readonly timeout_ms: number;
};

export type Exchange = { readonly answer: HookAnswer; readonly body: Uint8Array };

/** Why nothing came of it; `cause` is for the server's log. */
export class ExchangeError extends Error {
  override readonly name = "ExchangeError";
  readonly failure: FailureClass;

  constructor(failure: FailureClass, words: string) {
    super(words);
    this.failure = failure;
  }
}

/** The bytes of a request; the model's input stands in them as the model wrote it. */
export const encodeBody = ({ event, meta, data, tool_input }: HookRequest, dispatch_id: string): Uint8Array => {
  const head = { dispatch_id, schema_version: SCHEMA_VERSION, ...meta };
  const members = Object.entries(data).map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`);
  if (tool_input !== undefined) members.push(`"tool_input":${tool_input}`);
  const text = `{"type":${JSON.stringify(event)},"meta":${JSON.stringify(head)},"data":{${members.join(",")}}}`;
  return new TextEncoder().encode(text);
};

type Sent = { readonly request: HookRequest; readonly dispatch_id: string; readonly body: Uint8Array };

/** Throws `ExchangeError`, or the reason of `signal`. `issuer` is the deployment's id. */
export const exchange = async (
  { clock, consumer, issuer }: { readonly clock: Clock; readonly consumer: Consumer; readonly issuer: string },
  { request: { event, meta, accepts = () => true }, dispatch_id, body }: Sent,
  signal?: AbortSignal,
): Promise<Exchange> => {
  beginOutside();
  const { checkSignature, signed } = await import("./sign.ts");
  const { url, secrets, timeout_ms } = consumer;
  const dispatch: Dispatch = { dispatch_id, event, subject: `slipway:chat:${meta.chat_id}`, audience: url };
  const token = await signed(secrets[0] ?? "", dispatch, { issuer, body, now: clock.now() });
  const headers = {
    authorization: `Bearer ${token}`,
    "content-type": "application/json",
    accept: "application/json",
    "accept-encoding": "identity",
    "user-agent": "slipway",
    [EVENT_HEADER]: event,
  };
  const late = new AbortController();
  const timer = clock.after(timeout_ms, () => late.abort());
  const ends = signal ? AbortSignal.any([late.signal, signal]) : late.signal;
  try {
    const response = await connected(url, { method: "POST", headers, body, redirect: "manual", signal: ends }, ends);
    const bytes = await readBytes(response);
    if (!response.ok) throw new ExchangeError("http_error", `the consumer answered ${response.status}`);
    const proof = { issuer, body: bytes, now: clock.now() };
    await checkSignature(response.headers.get(SIGNATURE_HEADER), secrets, dispatch, proof).catch((error) => {
      throw new ExchangeError("signature_invalid", formatError(error));
    });
    const answer = parseAnswer(event, bytes);
    const override = answer.permission?.decision === "allow" ? answer.permission.input_override : undefined;
    if (override && !accepts(override)) throw new AnswerProblem("input_override means different things");
    return { answer, body: bytes };
  } catch (error) {
    signal?.throwIfAborted();
    if (late.signal.aborted) throw new ExchangeError("timeout", `no answer in ${timeout_ms} ms`);
    if (error instanceof ExchangeError) throw error;
    if (error instanceof AnswerProblem) throw new ExchangeError("protocol_error", error.message);
    throw new ExchangeError("connection_failed", formatError(error));
  } finally {
    timer.cancel();
  }
};

/** The head of the answer; a connection that fails before it is made again. */
const connected = async (url: string, init: RequestInit, ends: AbortSignal): Promise<Response> => {
  // A compressed answer is not what was signed: its bytes stay as they came. Bun's types do not know the member.
  const raw = { ...init, decompress: false } as RequestInit;
  try {
    return await fetch(url, raw);
  } catch (error) {
    if (ends.aborted) throw error;
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
