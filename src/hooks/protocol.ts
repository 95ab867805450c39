// The vocabulary of lifecycle hooks: events, the metadata of a request, the members of a response, and the kinds of failures. docs/hooks.md
// is the contract for consumers.

import { AppError } from "#base/errors.ts";
import { HOOK_EVENTS, type HookEvent } from "#schema/chats/hook-event.ts";

export { HOOK_EVENTS, type HookEvent };

/** Version of the request format, in `meta.schema_version`. */
export const SCHEMA_VERSION = 1;
/** The header of every 2xx response: a JWT over the exact bytes of its body. */
export const SIGNATURE_HEADER = "service-hook-signature";
/** The header with the event's name, for routing requests without parsing them. */
export const EVENT_HEADER = "service-hook-event";

/** Maximum sizes of response members in UTF-8 bytes. Longer ones are rejected, never truncated. */
export const MAX_BYTES_BY_MEMBER = {
  reason: 4_096,
  input_override: 262_144,
  model_context: 16_384,
  user_message: 16_384,
} as const;

/** The reasons why a dispatch failed. */
export const FAILURES = [
  /** Too many dispatches are running. */
  "over_capacity",
  "connection_failed",
  "timeout",
  /** A status other than 2xx. */
  "http_error",
  /** The response is not signed with the secret, for this dispatch and these bytes. */
  "signature_invalid",
  /** The response is not JSON of the documented form, or contains a member that this event does not allow. */
  "protocol_error",
  /** A program of the workspace failed. */
  "program_failed",
  /** The ledger could not be written. */
  "not_recorded",
  /** The caller has stopped waiting: the turn was interrupted, or the server is stopping. */
  "cancelled",
] as const;
export type FailureClass = (typeof FAILURES)[number];

/** The decision of a response: none, or a permission with or without a replaced input. */
export const DECISIONS = ["none", "allow", "rewrite", "deny"] as const;
export type HookDecision = (typeof DECISIONS)[number];

/** The subject of the event. Only sub-chats have `parent_chat_id` and `root_chat_id`; `turn_id` is set while a turn runs. */
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
  /** JSON text, included in `data.tool_input` byte for byte. */
  readonly tool_input?: string | undefined;
  /** Returns false if the replaced input is not allowed; the response is then invalid. */
  readonly accepts?: ((override: unknown) => boolean) | undefined;
};

export type Permission =
  | { readonly decision: "deny"; readonly reason?: string }
  | {
      readonly decision: "allow";
      readonly reason?: string;
      readonly input_override?: Readonly<Record<string, unknown>>;
    };

/** A validated response of a consumer. */
export type HookAnswer = {
  readonly permission?: Permission;
  readonly model_context?: string;
  readonly user_message?: string;
  /** The complete message for the denied call, set by hooks that are not the deployment's consumer. A consumer cannot send it. */
  readonly denial?: string;
};

export const NO_DECISION: HookAnswer = {};

/** A failed dispatch. Contains no part of the consumer's address or response. */
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

/** A prompt denied by the policy; the message is for users. */
export class HookDenied extends Error {
  override readonly name = "HookDenied";
}

/** Returns the error for callers when a hook denied a prompt or did not answer; undefined for other errors. */
export const asHookRefusal = (error: unknown): AppError | undefined => {
  if (error instanceof HookDenied) return new AppError("forbidden", error.message, { reason: "hook_denied" });
  if (!(error instanceof HookFailure)) return undefined;
  const detail = { detail: error.message, reason: "hook_dispatch_failed" };
  return new AppError("bad_gateway", "A lifecycle hook returned no valid response: nothing was done.", detail);
};

/** An invalid response; the message is only for the server's log. */
export class AnswerProblem extends Error {
  override readonly name = "AnswerProblem";
}

export const toDecision = ({ permission }: HookAnswer): HookDecision => {
  if (permission === undefined) return "none";
  if (permission.decision === "deny") return "deny";
  return permission.input_override === undefined ? "allow" : "rewrite";
};
