// Lifecycle hooks: report to the deployment's consumer what chats are about to do and have done, and return its decisions. Called by
// request handlers and turns, outside of every mailbox. Fails closed: without a valid response, the action is not performed (rules HK-1 to
// HK-9).
import type { Clock } from "#base/clock.ts";
import { uuid } from "#base/ids.ts";
import { log } from "#base/log.ts";
import { type Pool, type SlotLimits, Slots } from "./dispatch-slots.ts";
import { type Consumer, ExchangeError, encodeBody, sendHookRequest } from "./exchange.ts";
import { applyOverride, mergeAnswers } from "./merge.ts";
import {
  type FailureClass,
  type HookAnswer,
  type HookDecision,
  type HookEvent,
  HookFailure,
  type HookRequest,
  NO_DECISION,
  toDecision,
} from "./protocol.ts";

/**
 * `off`: the consumer receives nothing. `observe`: it receives events, but cannot change or delay anything. `enforce`: its response is
 * applied.
 */
export type HookMode = "off" | "observe" | "enforce";

/** The result of a dispatch, for the ledger. */
export type DispatchRecord = {
  readonly id: string;
  readonly event: HookEvent;
  readonly chat_id: string;
  readonly owner_id: string;
  /** Only for tool events. */
  readonly tool_name: string | null;
  readonly mode: Exclude<HookMode, "off">;
  /** Where the decision was made: by the deployment's consumer, or by a program in the chat's workspace. */
  readonly source: "deployment" | "workspace";
  readonly result: HookDecision | FailureClass;
  /** Milliseconds since 1970, and the duration. */
  readonly created_at: number;
  readonly duration_ms: number;
  /** The request and response as text; null unless contents are recorded. */
  readonly request: string | null;
  readonly response: string | null;
};

export type HooksDeps = {
  readonly clock: Clock;
  readonly mode: HookMode;
  /** Undefined in mode `off`. */
  readonly consumer: Consumer | undefined;
  /** The deployment's ID. */
  readonly issuer: () => Promise<string>;
  /** Resolves when the entry is on disk. */
  readonly record: (entry: DispatchRecord) => Promise<void>;
  readonly recordsContents: boolean;
  readonly slots?: SlotLimits;
  /** Hooks that workspaces declare; undefined unless an administrator allows them. */
  readonly workspaces?: WorkspaceHooks | undefined;
};

/** Returns the decisions of the hooks in the chat's workspace. `keep` writes the ledger. */
export interface WorkspaceHooks {
  decide(
    request: HookRequest,
    keep: (entry: DispatchRecord) => Promise<void>,
    signal: AbortSignal | undefined,
  ): Promise<HookAnswer>;
}

export class Hooks {
  readonly #deps: HooksDeps;
  readonly #slots: Slots;
  readonly #dispatches = new Set<Promise<unknown>>();
  /** Number of dispatches since the start, by `event result`. */
  readonly counts = new Map<string, number>();

  constructor(deps: HooksDeps) {
    this.#deps = deps;
    this.#slots = new Slots(deps.clock, deps.slots);
  }

  get mode(): HookMode {
    return this.#deps.mode;
  }

  /** Returns whether no hook is called. */
  get isOff(): boolean {
    return this.mode === "off" && this.#deps.workspaces === undefined;
  }

  /** Returns whether any hook's decisions are applied. */
  get isEnforced(): boolean {
    return this.mode === "enforce" || this.#deps.workspaces !== undefined;
  }

  /** Number of dispatches in progress. */
  get open(): number {
    return this.#slots.size;
  }

  /**
   * Returns the decision of the hooks: first the workspace's, then the consumer's, which takes precedence. The decision of a consumer that
   * only observes is ignored. Throws `HookFailure` if there is no valid response, and the reason of `signal` once the caller has stopped
   * waiting. A retry is a new dispatch.
   */
  async decide(request: HookRequest, signal?: AbortSignal): Promise<HookAnswer> {
    const { workspaces } = this.#deps;
    const first = workspaces
      ? await this.#track(workspaces.decide(request, (entry) => this.record(entry), signal))
      : NO_DECISION;
    if (first.permission?.decision === "deny") return first;
    return mergeAnswers(first, await this.#askConsumer(applyOverride(request, first), signal));
  }

  async #askConsumer(request: HookRequest, signal: AbortSignal | undefined): Promise<HookAnswer> {
    if (this.mode === "off") return NO_DECISION;
    const dispatch = this.#track(this.#dispatch(request, signal));
    if (this.mode === "enforce") return dispatch;
    dispatch.catch(() => {});
    return NO_DECISION;
  }

  #track<T>(dispatch: Promise<T>): Promise<T> {
    this.#dispatches.add(dispatch);
    const removeDispatch = () => this.#dispatches.delete(dispatch);
    dispatch.then(removeDispatch, removeDispatch);
    return dispatch;
  }

  /** Resolves when all running dispatches have ended, which takes no longer than the timeout of one. */
  async drain(): Promise<void> {
    await Promise.allSettled(this.#dispatches);
  }

  /** Records a decision in the ledger. Throws `HookFailure` if it cannot be stored. */
  async record(entry: DispatchRecord): Promise<void> {
    const { event, result, id } = entry;
    const key = `${event} ${result}`;
    this.counts.set(key, (this.counts.get(key) ?? 0) + 1);
    try {
      await this.#deps.record(entry);
    } catch (error) {
      log("hooks").error("dispatch {id} could not be recorded: {error}", { id, error });
      throw new HookFailure(event, "not_recorded", id);
    }
  }

  async #dispatch(request: HookRequest, signal?: AbortSignal): Promise<HookAnswer> {
    const { clock, recordsContents } = this.#deps;
    const dispatch_id = uuid();
    const { event, meta, data } = request;
    const created_at = clock.now();
    const startedAt = clock.monotonic();
    const body = encodeBody(request, dispatch_id);
    const recordResult = (result: DispatchRecord["result"], answer: Uint8Array | null): Promise<void> =>
      this.record({
        id: dispatch_id,
        event,
        chat_id: meta.chat_id,
        owner_id: meta.owner_id,
        result,
        created_at,
        source: "deployment",
        mode: this.mode === "observe" ? "observe" : "enforce",
        tool_name: typeof data.tool_name === "string" ? data.tool_name : null,
        duration_ms: Math.round(clock.monotonic() - startedAt),
        request: recordsContents ? decodeText(body) : null,
        response: recordsContents && answer ? decodeText(answer) : null,
      });
    try {
      const { answer, body: bytes } = await this.#exchange({ request, dispatch_id, body }, signal);
      await recordResult(toDecision(answer), bytes);
      return answer;
    } catch (error) {
      if (error instanceof HookFailure) throw error;
      const failure = error instanceof ExchangeError ? error.failure : signal?.aborted ? "cancelled" : "protocol_error";
      log("hooks").warn("dispatch {dispatch_id} of {event} failed: {failure}: {error}", {
        dispatch_id,
        event,
        failure,
        error: error instanceof Error ? error.message : String(error),
      });
      await recordResult(failure, null);
      if (failure === "cancelled") throw error;
      throw new HookFailure(event, failure, dispatch_id);
    }
  }

  async #exchange(sent: Parameters<typeof sendHookRequest>[1], signal?: AbortSignal) {
    const { clock, consumer, issuer } = this.#deps;
    if (!consumer) throw new ExchangeError("connection_failed", "no consumer is configured");
    const pool: Pool = sent.request.event === "user_prompt_submit" ? "prompt" : "turn";
    const releaseSlot = await this.#slots.acquire(pool);
    if (!releaseSlot) throw new ExchangeError("over_capacity", "too many concurrent dispatches");
    try {
      return await sendHookRequest({ clock, consumer, issuer: await issuer() }, sent, signal);
    } finally {
      releaseSlot();
    }
  }
}

/** Maximum size of a request or response in the ledger. */
const MAX_RECORDED_BYTES = 65_536;

const decodeText = (bytes: Uint8Array): string => {
  const text = new TextDecoder().decode(bytes.subarray(0, MAX_RECORDED_BYTES));
  return bytes.length > MAX_RECORDED_BYTES ? `${text}… (${bytes.length} bytes)` : text;
};
