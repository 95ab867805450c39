// What a chat's owner decides about what its model is given: a history made shorter, or nothing of it (rules CM-8, CM-10). Used by the
// chat's actor.
import { uuid } from "#base/ids.ts";
import { audited } from "#db/reports/audit/audit.ts";
import type { Outcome } from "../runtime/actor.ts";
import { chatSteered } from "./audit.ts";
import { decide, toOutcome } from "./decide.ts";
import type { ChatDeps } from "./deps.ts";
import type { ChatState } from "./machine/chat-state.ts";
import type { Change, CompactionRequest } from "./machine/decision.ts";
import { clearedRows } from "./prompt/compact.ts";
import { hasNoAnswer, isCleared } from "./storage/read.ts";

type Steered = Promise<Outcome<ChatState, void>>;

/** A turn begins that makes the history shorter and ends. 409. */
export const compacted = async (deps: ChatDeps, state: ChatState, request: CompactionRequest): Steered => {
  const is_empty = await hasNoAnswer(deps.store, state.key);
  const change = await decide(deps, state, { type: "request_compaction", request, is_empty });
  return withAudit(deps, state, change, "compact");
};

/** From here on a model is given nothing of what was said before. 409. */
export const cleared = async (deps: ChatDeps, state: ChatState): Steered => {
  const is_empty = await isCleared(deps.store, state.key);
  const rows = clearedRows({ call_id: `clearing-${uuid()}`, now: deps.clock.now() });
  return withAudit(deps, state, await decide(deps, state, { type: "clear", rows, is_empty }), "clear");
};

const withAudit = (deps: ChatDeps, before: ChatState, change: Change<ChatState>, operation: "compact" | "clear") => {
  const outcome = toOutcome<void>(deps, before, change, undefined);
  const entry = audited(chatSteered(before, operation, deps.clock.now()));
  return { ...outcome, writes: [...(outcome.writes ?? []), entry] };
};
