// Compacts or clears the model's context at the owner's request (rules CM-8, CM-10). Used by the chat's actor.
import { uuid } from "#base/ids.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import type { Outcome } from "../runtime/actor.ts";
import { auditContextChange } from "./audit.ts";
import { addWrites, decide, toOutcome } from "./decide.ts";
import type { ChatDeps } from "./deps.ts";
import type { ChatState } from "./machine/chat-state.ts";
import type { Change, CompactionRequest } from "./machine/decision.ts";
import { toClearingRows } from "./prompt/compact.ts";
import { hasNoAnswer, isCleared } from "./storage/read.ts";

type ContextOutcome = Promise<Outcome<ChatState, void>>;

/** Starts a turn that only compacts the history. Rejects with 409. */
export const requestCompaction = async (
  deps: ChatDeps,
  state: ChatState,
  request: CompactionRequest,
): ContextOutcome => {
  const is_empty = await hasNoAnswer(deps.store, state.key);
  const change = await decide(deps, state, { type: "request_compaction", request, is_empty });
  return withAudit(deps, state, change, "compact");
};

/** Clears the model's context of all earlier messages. Rejects with 409. */
export const clearContext = async (deps: ChatDeps, state: ChatState): ContextOutcome => {
  const is_empty = await isCleared(deps.store, state.key);
  const rows = toClearingRows({ call_id: `clearing-${uuid()}`, now: deps.clock.now() });
  return withAudit(deps, state, await decide(deps, state, { type: "clear", rows, is_empty }), "clear");
};

const withAudit = (deps: ChatDeps, before: ChatState, change: Change<ChatState>, operation: "compact" | "clear") => {
  const entry = insertAudit(auditContextChange(before, operation, deps.clock.now()));
  return addWrites(toOutcome<void>(deps, before, change, undefined), [entry]);
};
