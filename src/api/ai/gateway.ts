// The AI gateway: forwards calls in the Anthropic, OpenAI and Gemini formats to the providers that an administrator has configured. Bodies
// pass unchanged, except for a mapped model name, the request for usage and masked keys. The provider's key is added here and appears
// nowhere else. Each call is reserved in the ledger before it begins and settled when it ends.
import type { OpenCall } from "#actors/chat/spending/ledger.ts";
import type { OpenAnswer } from "#actors/chat/spending/open-answers.ts";
import type { ModelCatalog } from "#actors/models/model-settings.ts";
import { log } from "#base/log.ts";
import type { Metrics } from "#base/metrics.ts";
import { waitForAbort } from "#base/retry.ts";
import { runInSpan, type Span } from "#base/spans.ts";
import { type CallResult, endCall, isPaid, listCountedTargets, openCall } from "#domain/ai/ledger.ts";
import { listNames, listTargets, type Target } from "#domain/ai/names.ts";
import { type CallBody, readCallBody } from "#src/llm/gateway/call-body.ts";
import { DEFAULT_BASE_URL, DIALECTS, type Dialect, type Endpoint, findEndpoint } from "#src/llm/gateway/endpoint.ts";
import { Recording } from "#src/llm/gateway/recording.ts";
import { type Refusal, toRefusalResponse } from "#src/llm/gateway/refusal.ts";
import { ModelError } from "#src/llm/model.ts";
import { maskSecrets } from "#src/llm/secrets.ts";
import type { ApiContext } from "../context.ts";
import { readBytes } from "../http/body/body.ts";
import { MAX_IDENTITY_AGE_MS } from "../http/caller.ts";
import { getPath } from "../http/errors.ts";
import type { CallerDeps } from "../http/identify.ts";
import { GatewayMetrics } from "../metrics/gateway.ts";
import { beginModelSpan, toConventionalProvider, toUsageAttributes } from "../metrics/model-spans.ts";
import { type GatewayCaller, identifyGatewayCaller } from "./caller.ts";
import {
  addBrowserHeaders,
  findProviderRequestId,
  refuseSelection,
  toCallerHeaders,
  toProviderHeaders,
  toProviderUrl,
} from "./headers.ts";
import { presentModelList } from "./model-list.ts";
import { OpenCalls } from "./open-calls.ts";
import {
  getProviderName,
  type ProviderResponse,
  passResponse,
  type Recorder,
  type StreamOptions,
} from "./pass-response.ts";
import {
  CALLER_LEFT,
  MAX_BODY_BYTES,
  MAX_UNDECLARED_BYTES,
  toBudgetRefusal,
  toCanceled,
  toMissingPrice,
  toRefusal,
  toUnknownModel,
  toUnreadable,
} from "./refusals.ts";

export const GATEWAY_PREFIX = "/api/v2/ai/";

/** Maximum bytes of a provider's error that are read and passed on. */
const MAX_ERROR_BYTES = 256 * 1024;

/** Returns whether the status makes the gateway fall back to the next provider. */
const isTransient = (status: number): boolean => status === 408 || status === 429 || status >= 500;

/** Returns the dialect and the rest of the path for a gateway request, or undefined for any other request. */
const parseGatewayPath = (path: string): { dialect: Dialect; rest: string } | undefined => {
  if (!path.startsWith(GATEWAY_PREFIX)) return undefined;
  const [, name, rest = ""] = /^([a-z]+)(\/.*)?$/.exec(path.slice(GATEWAY_PREFIX.length)) ?? [];
  const dialect = DIALECTS.find((one) => one === name);
  return dialect && { dialect, rest };
};

/** Returns whether a request is for the gateway rather than for the API routes next to it. */
export const isGatewayPath = (path: string): boolean => parseGatewayPath(path) !== undefined;

export class AiGateway {
  readonly #ctx: ApiContext;
  readonly #callerDeps: CallerDeps;
  readonly #calls: OpenCalls;
  readonly #metrics = new GatewayMetrics();

  constructor(ctx: ApiContext, callerDeps: CallerDeps, metrics: Metrics | undefined) {
    this.#ctx = ctx;
    this.#callerDeps = callerDeps;
    this.#calls = new OpenCalls(ctx.clock, ctx.callMemory);
    if (metrics) this.#metrics.register(metrics, () => this.#calls.count);
  }

  /** Responds to a gateway request. Errors also use the format of its dialect. */
  async answer(request: Request): Promise<Response> {
    return addBrowserHeaders(await this.#respond(request));
  }

  async #respond(request: Request): Promise<Response> {
    const { dialect, rest } = parseGatewayPath(getPath(request.url)) as { dialect: Dialect; rest: string };
    try {
      const endpoint = findEndpoint(dialect, request.method, rest);
      if (endpoint?.kind === "probe") return new Response(null, { status: 200 });
      return await this.#ctx.requests.run(request, async () => {
        const result = await this.#answer(request, dialect, endpoint);
        return result instanceof Response ? result : this.#refuse(dialect, result);
      });
    } catch (error) {
      return this.#refuse(dialect, toRefusal(error, request));
    }
  }

  #refuse(dialect: Dialect, refusal: Refusal): Response {
    this.#metrics.countRefusal(dialect, refusal.code);
    return toRefusalResponse(dialect, refusal);
  }

  async #answer(request: Request, dialect: Dialect, endpoint: Endpoint | undefined): Promise<Response | Refusal> {
    const { clock } = this.#ctx;
    const admitted_at = clock.monotonic();
    let admitted = await this.#admit(request, dialect);
    if ("status" in admitted) return admitted;
    if (!endpoint)
      return {
        status: 404,
        code: "unknown_url",
        message: `The gateway does not forward ${request.method} requests to this path.`,
      };
    if (endpoint.kind === "models")
      return Response.json(
        presentModelList(dialect, listNames(admitted.catalog, dialect, admitted.caller.modelCaller)),
      );
    // Counted before the body is read, because the body is held in memory.
    const slot = await this.#calls.open(admitted.caller.payer.user_id, getMaxBodyBytes(request), request.signal);
    if ("status" in slot) return slot;
    try {
      const bytes = await readBytes(request, getMaxBodyBytes(request));
      if (clock.monotonic() - admitted_at > MAX_IDENTITY_AGE_MS) admitted = await this.#admit(request, dialect);
      if ("status" in admitted) {
        slot.release();
        return admitted;
      }
      const { caller, catalog } = admitted;
      const body = readCallBody(endpoint, bytes);
      slot.setBodySize(bytes.byteLength);
      refuseSelection(dialect, request);
      const targets = listTargets(catalog, dialect, body.model, caller.modelCaller);
      const recording = catalog.settings.recording.enabled ? new Recording(bytes) : undefined;
      const { release, setBodySize } = slot;
      const call: Call = {
        request,
        endpoint,
        caller,
        body,
        targets,
        recording,
        release,
        setBodySize,
        recorderReleasesSlot: false,
      };
      const result = targets.length === 0 ? toUnknownModel(body.model) : await this.#call(call);
      // A call that has begun keeps its body and its slot until it has been recorded, even if its caller disconnects.
      if (!call.recorderReleasesSlot || (result instanceof Response && result.body === null)) slot.release();
      return result;
    } catch (error) {
      slot.release();
      throw error;
    }
  }

  /** Returns the caller and the settings. Refuses unknown callers, and everyone while the gateway is disabled. */
  async #admit(request: Request, dialect: Dialect): Promise<Admitted | Refusal> {
    const caller = await identifyGatewayCaller(request, dialect, this.#callerDeps);
    if ("status" in caller) return caller;
    const catalog = await this.#ctx.modelSettings.catalog();
    return catalog.settings.enabled
      ? { caller, catalog }
      : { status: 403, code: "gateway_disabled", message: "An administrator has not enabled the AI gateway." };
  }

  async #call(call: Call): Promise<Response | Refusal> {
    const { request, endpoint, caller, body } = call;
    const { clock } = this.#ctx;
    const isFree = endpoint.kind === "count";
    const targets = isFree ? call.targets : await listCountedTargets(this.#ctx, caller.payer, call.targets);
    const [first] = targets;
    if (!first) return toMissingPrice(body.model);
    const sentAt = clock.monotonic();
    const { signal } = request;
    // From here on, the duration depends on other open calls and the model.
    this.#ctx.requests.exempt(request);
    const reserved = isFree
      ? undefined
      : await openCall(this.#ctx, { payer: caller.payer, target: first, body, signal });
    if (reserved && "isReserved" in reserved) {
      const { chat_id } = caller.payer;
      // The chat asks its user whether to continue; its coding agent would only retry.
      if (chat_id !== "" && !reserved.isReserved) this.#ctx.topics.publish("agent_refused", chat_id, {});
      return toBudgetRefusal(this.#ctx, reserved);
    }
    const answer = this.#ctx.ledger.answers.open(caller.payer.user_id);
    signal.addEventListener("abort", () => answer.leave(CALLER_LEFT));
    if (signal.aborted) answer.leave(CALLER_LEFT);
    const unwatch = caller.whenLost(this.#ctx, this.#callerDeps, (reason) => answer.leave(toCanceled(reason)));
    const span = beginGatewaySpan(call, first);
    const record = this.#recorder(call, { reserved, sentAt, span, answer, unwatch });
    call.recorderReleasesSlot = true;
    const answering = this.#callAndPass(call, targets, { record, answer, sentAt, span });
    const result = await Promise.race([answering, waitForAbort(answer.callerLeft).then(() => undefined)]);
    // The result is undefined when the caller has disconnected. The call is then settled in the background.
    return result ?? this.#refuse(endpoint.dialect, answer.callerLeft.reason as Refusal);
  }

  /** Calls the providers and returns the response for the caller. Settles the call when the response ends, or earlier. */
  async #callAndPass(
    call: Call,
    targets: readonly Target[],
    { record, answer, sentAt, span }: Omit<StreamOptions, "clock"> & Pick<RecordedCall, "span">,
  ): Promise<Response | Refusal> {
    let target = targets[0] as Target;
    answer.callerLeft.addEventListener("abort", () => {
      if (!mayHideCost(call.endpoint, target)) answer.hangUp();
    });
    try {
      if (answer.callerLeft.aborted) {
        await record(target, { outcome: "aborted" });
        return answer.callerLeft.reason as Refusal;
      }
      const result = await runInSpan(span, () =>
        this.#callProviders(call, targets, answer, (next) => {
          target = next;
        }),
      );
      if ("status" in result) {
        await record(target, { outcome: "failed" });
        return result;
      }
      // Releases the memory of the request now, because a caller may take long to read the answer.
      call.body.dropContent();
      call.setBodySize(0);
      const { status } = result.response;
      if (status >= 400) return await this.#passError(call, result, record);
      if (status >= 300) return await this.#refuseRedirect(result, record);
      return await passResponse(call, result, { clock: this.#ctx.clock, record, answer, sentAt });
    } catch (error) {
      // The provider processes and charges for what it received, whether or not the caller still waits.
      const hasCallerLeft = answer.callerLeft.aborted;
      await record(target, { outcome: hasCallerLeft ? "aborted" : "failed", was_begun: hasCallerLeft });
      throw error;
    }
  }

  /** Tries one provider after the other until one returns something other than a transient error. */
  async #callProviders(
    { request, endpoint, body }: Call,
    targets: readonly Target[],
    { callerLeft, hungUp }: OpenAnswer,
    onTarget: (target: Target) => void,
  ): Promise<ProviderResponse | Refusal> {
    let unreachable: Refusal | undefined;
    for (const [index, target] of targets.entries()) {
      const isLast = index === targets.length - 1;
      onTarget(target);
      const { provider, model } = target;
      const key = provider.key();
      const url = toProviderUrl(provider, {
        defaultUrl: DEFAULT_BASE_URL[provider.provider] ?? "",
        path: endpoint.path,
        model,
        query: new URL(request.url).searchParams,
      });
      const headers = toProviderHeaders(request.headers, endpoint.dialect, key);
      const send = (bytes: Uint8Array) =>
        this.#ctx.modelFetch(url, {
          method: request.method,
          headers,
          body: bytes as Uint8Array<ArrayBuffer>,
          signal: hungUp,
        });
      try {
        let response = await send(body.bytesFor(model));
        let hidesUsage = body.hidesUsage;
        if (
          hidesUsage &&
          !callerLeft.aborted &&
          response.status === 400 &&
          (await isUsageRejected(response.clone() as Response))
        ) {
          // An older provider server: the call is sent unchanged and its usage is estimated.
          await response.body?.cancel();
          response = await send(body.bytesWithoutUsage(model));
          hidesUsage = false;
        }
        if (isLast || callerLeft.aborted || !isTransient(response.status)) return { target, response, key, hidesUsage };
        await response.body?.cancel();
      } catch (error) {
        if (hungUp.aborted) throw error;
        const reason = error instanceof ModelError ? error.message : "it cannot be reached";
        log("models").warn("the provider {provider} did not respond to a gateway call: {error}", {
          provider: getProviderName(target),
          error: maskSecrets(String(error), key),
        });
        const message = `The model provider ${getProviderName(target)} did not answer: ${reason}.`;
        unreachable = { status: 502, code: "provider_unreachable", message };
        if (isLast || callerLeft.aborted) return unreachable;
      }
    }
    return unreachable ?? { status: 502, code: "provider_unreachable", message: "No model provider answered." };
  }

  /** Passes on a provider's error without the provider's key or anything else that looks like a key. */
  async #passError(
    { recording }: Call,
    { target, response, key }: ProviderResponse,
    record: Recorder,
  ): Promise<Response | Refusal> {
    // An error that is truncated or cannot be decompressed is still an error.
    const read = await readText(response, MAX_ERROR_BYTES).catch(() => undefined);
    const text = read === undefined ? undefined : maskSecrets(read, key);
    if (text !== undefined) recording?.read(Buffer.from(text));
    await record(target, { outcome: "failed", provider_request_id: findProviderRequestId(response.headers, key) });
    const name = getProviderName(target);
    if (response.status === 401) {
      const message = `The model provider ${name} refused the server's credentials. Ask an administrator to check its API key.`;
      return { status: 502, code: "provider_credentials", message };
    }
    if (text === undefined) return toUnreadable(name);
    return new Response(text, {
      status: response.status,
      headers: toCallerHeaders(response.headers, key),
    });
  }

  /** Rejects a redirect from a provider: the gateway does not follow it and does not pass it to the caller. */
  async #refuseRedirect({ target, response, key }: ProviderResponse, record: Recorder): Promise<Refusal> {
    await response.body?.cancel();
    await record(target, { outcome: "failed", provider_request_id: findProviderRequestId(response.headers, key) });
    const message = `The model provider ${getProviderName(target)} responded with a redirect (${response.status}). Ask an administrator to check its address.`;
    return { status: 502, code: "provider_redirects", message };
  }

  /** Returns a function that settles the call once and releases its slot. */
  #recorder(
    { body, caller, recording, release, endpoint }: Call,
    { reserved, sentAt, span, answer, unwatch }: RecordedCall,
  ): Recorder {
    let isSettled = false;
    return async (target, partialResult) => {
      if (isSettled) return;
      isSettled = true;
      const isCutShort = answer.isCutShort && mayHideCost(endpoint, target);
      release();
      unwatch();
      if (span) endGatewaySpan(span, target, partialResult);
      const duration_ms = Math.round(this.#ctx.clock.monotonic() - sentAt);
      const { outcome, first_byte_ms = null } = partialResult;
      const model = target.isNamed ? target.model : undefined;
      this.#metrics.count({ dialect: endpoint.dialect, model, outcome, first_byte_ms, duration_ms });
      if (!reserved) return answer.end();
      const result: CallResult = {
        usage: undefined,
        text_bytes: 0,
        was_begun: false,
        first_byte_ms: null,
        provider_request_id: "",
        duration_ms,
        read: isCutShort ? "cut_short" : "broken",
        ...partialResult,
      };
      try {
        await endCall(this.#ctx, reserved, { payer: caller.payer, target, body, recording }, result);
      } catch (error) {
        // The reservation expires and is settled at the reserved amount, which is an upper estimate of the usage.
        log("models").error("a model call could not be recorded in the ledger: {error}", { error });
      } finally {
        answer.end();
      }
    };
  }
}

type Admitted = { readonly caller: GatewayCaller; readonly catalog: ModelCatalog };
type Call = {
  readonly request: Request;
  readonly endpoint: Endpoint;
  readonly caller: GatewayCaller;
  readonly body: CallBody;
  readonly targets: readonly Target[];
  /** Undefined when administrators have not enabled recording. */
  readonly recording: Recording | undefined;
  readonly release: () => void;
  readonly setBodySize: (bytes: number) => void;
  /** Whether the recorder releases the slot. */
  recorderReleasesSlot: boolean;
};
type RecordedCall = {
  readonly reserved: OpenCall | undefined;
  readonly sentAt: number;
  readonly span: Span | undefined;
  readonly answer: OpenAnswer;
  readonly unwatch: () => void;
};
/** Starts the trace span of a call, named after the first provider. */
const beginGatewaySpan = ({ endpoint, body }: Call, { provider, model }: Target): Span | undefined => {
  const span = beginModelSpan(endpoint.kind === "embed" ? "embeddings" : "chat", model, provider.provider);
  span?.set({ "slipway.gateway.dialect": endpoint.dialect, "gen_ai.request.stream": body.streams });
  return span;
};

const endGatewaySpan = (
  span: Span,
  { provider, model }: Target,
  { outcome, usage, first_byte_ms }: Partial<CallResult>,
): void => {
  span.set({ "gen_ai.provider.name": toConventionalProvider(provider.provider), "gen_ai.response.model": model });
  if (usage) span.set(toUsageAttributes(usage));
  span.set({ "slipway.gateway.first_byte_ms": first_byte_ms ?? undefined });
  if (outcome !== "ok") span.fail(outcome ?? "failed");
  span.end();
};

/**
 * Returns whether a response may cost more than the part of it that has arrived, because a paid model's reasoning is hidden. A self-hosted
 * model costs nothing, so its call can be canceled.
 */
const mayHideCost = ({ kind }: Endpoint, target: Target): boolean => kind === "generate" && isPaid(target);

/** Returns the maximum size of the body, for which memory is reserved: the declared length, unless the body is compressed. */
const getMaxBodyBytes = ({ headers }: Request): number => {
  const declared = headers.has("content-encoding") ? null : headers.get("content-length");
  return declared === null
    ? Math.min(MAX_UNDECLARED_BYTES, MAX_BODY_BYTES)
    : Math.min(Number(declared), MAX_BODY_BYTES);
};

/** Returns whether a provider rejects the option to report the usage of a stream. */
const isUsageRejected = async (response: { readonly body: ReadableStream<Uint8Array> | null }): Promise<boolean> =>
  /stream_options|include_usage/.test(await readText(response, MAX_ERROR_BYTES));

const readText = async (
  response: { readonly body: ReadableStream<Uint8Array> | null },
  limit: number,
): Promise<string> => {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of response.body ?? []) {
    pieces.push(piece);
    size += piece.length;
    if (size >= limit) break;
  }
  return new TextDecoder().decode(Buffer.concat(pieces).subarray(0, limit));
};
