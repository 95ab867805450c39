// The words of lifecycle hooks: which events there are, what a request says of its chat, what an answer may hold, and how a dispatch can
// fail. The contract for consumers is docs/hooks.md.

import { HOOK_EVENTS, type HookEvent } from "#schema/chats/hook-event.ts";

export { HOOK_EVENTS, type HookEvent };

/** Version of the request's layout, in `meta.schema_version`. */
export const SCHEMA_VERSION = 1;
/** The header of every 2xx answer: a JWT over the exact bytes of its body. */
export const SIGNATURE_HEADER = "service-hook-signature";
/** The header that names the event, for anyone who routes requests without reading them. */
export const EVENT_HEADER = "service-hook-event";

/** Bytes of UTF-8 that members of an answer may have; longer ones are refused, never cut. */
export const CAPS = { reason: 4_096, input_override: 262_144, model_context: 16_384, user_message: 16_384 } as const;

/** Why nothing usable came of a dispatch. */
export const FAILURES = [
  /** No place was free: so many dispatches run already. */
  "over_capacity",
  "connection_failed",
  "timeout",
  /** A status other than 2xx. */
  "http_error",
  /** The answer is not signed, or not by someone who knows the secret, for this dispatch and these bytes. */
  "signature_invalid",
  /** The answer is no JSON of the documented form, or says what it may not say on this event. */
  "protocol_error",
  /** A program of the workspace did not end well. */
  "program_failed",
  /** The ledger could not be written. */
  "not_recorded",
  /** No caller waits any more: the turn was interrupted, or the server stops. */
  "cancelled",
] as const;
export type FailureClass = (typeof FAILURES)[number];

/** What an answer decides: nothing, or one of the permissions with or without another input. */
export const DECISIONS = ["none", "allow", "rewrite", "deny"] as const;
export type HookDecision = (typeof DECISIONS)[number];

/** Whose event it is. `parent_chat_id` and `root_chat_id` for sub-chats only; `turn_id` while a turn runs. */
export type HookMeta = {
  readonly chat_id: string;
  readonly owner_id: string;
  readonly workspace_id?: string | undefined;
  readonly turn_id?: string | undefined;
  readonly parent_chat_id?: string | undefined;
  readonly root_chat_id?: string | undefined;
};

export type HookRequest = {
  readonly event: HookEvent;
  readonly meta: HookMeta;
  readonly data: Readonly<Record<string, unknown>>;
  /** JSON text that stands in `data.tool_input` byte for byte. */
  readonly tool_input?: string | undefined;
  /** False for another input that may not take the place of the model's: the answer is then no valid one. */
  readonly accepts?: ((override: unknown) => boolean) | undefined;
};

export type Permission =
  | { readonly decision: "deny"; readonly reason?: string }
  | {
      readonly decision: "allow";
      readonly reason?: string;
      readonly input_override?: Readonly<Record<string, unknown>>;
    };

/** What a consumer has answered, checked. */
export type HookAnswer = {
  readonly permission?: Permission;
  readonly model_context?: string;
  readonly user_message?: string;
  /** Whole words of a denied call where it was not the deployment's consumer; never part of what is answered. */
  readonly denial?: string;
};

export const NOTHING: HookAnswer = {};

/** A dispatch that failed. Says nothing of the consumer's address or answer. */
export class HookFailure extends Error {
  override readonly name = "HookFailure";
  readonly event: HookEvent;
  readonly failure: FailureClass;
  readonly dispatch_id: string;

  constructor(event: HookEvent, failure: FailureClass, dispatch_id: string) {
    super(`${event} : ${failure} (${dispatch_id})`);
    this.event = event;
    this.failure = failure;
    this.dispatch_id = dispatch_id;
  }
}

/** A prompt that the policy does not allow; the message is for people. */
export class HookDenied extends Error {
  override readonly name = "HookDenied";
}

/** A problem of an answer, in words for the server's log alone. */
export class AnswerProblem extends Error {
  override readonly name = "AnswerProblem";
}

export const toDecision = ({ permission }: HookAnswer): HookDecision => {
  if (permission === undefined) return "none";
  if (permission.decision === "deny") return "deny";
  return permission.input_override === undefined ? "allow" : "rewrite";
};
