// Common steps of the chat actor's messages: asks the table in machine/state.ts for a decision, and turns it into one batch with its
// announcements. Used by the actor and by the files that implement some of its messages.
import { conflict } from "#base/errors.ts";
import { insertAnswer, type RequestKey } from "#db/chats/requests.ts";
import type { Statement } from "#db/engine/sql.ts";
import type { ChatError } from "#schema/chats/chat-error.ts";
import type { MessagePart } from "#schema/chats/chat-part.ts";
import type { Outcome } from "../runtime/actor.ts";
import { announce } from "./announce.ts";
import { buildAttachWrites, buildDetachWrites } from "./attach.ts";
import type { ChatDeps } from "./deps.ts";
import type { ChatState } from "./machine/chat-state.ts";
import type { Change, Command, CommandInput, CommandType } from "./machine/decision.ts";
import { toPromotionPatch } from "./machine/promoted.ts";
import { countMessageIds, transition } from "./machine/state.ts";
import type { ChatPatch, LateResult } from "./messages.ts";
import { buildWrites, toPatchWrites } from "./storage/writes.ts";

type TurnDecision = Change<ChatState> | "stale";

/** Decides a person's command. Throws if it is rejected, with 409 when it comes too late. */
export const decide = async (deps: ChatDeps, state: ChatState, input: CommandInput): Promise<Change<ChatState>> => {
  const decided = await decideReport(deps, state, input);
  if (decided === "stale") throw conflict("The chat has changed. Reload it and try again.");
  return decided;
};

/** Decides a command of a turn or a timer, which may be stale. */
export const decideReport = async (deps: ChatDeps, state: ChatState, input: CommandInput): Promise<TurnDecision> => {
  const { store, clock } = deps;
  const count = countMessageIds(state, input as { type: CommandType });
  const first_id = count === 0 ? 0 : await store.reserve("messages", count);
  const refusal = await findNextTurnRefusal(deps, state, input);
  const decision = transition(state, { ...input, ...refusal, first_id, now: clock.now() } as Command);
  if (decision.kind === "refused") throw decision.error;
  return decision.kind === "stale" ? "stale" : decision;
};

/** For commands that end a turn, returns why the next queued message may not start a turn (rule CH-51). */
const findNextTurnRefusal = async (
  { findTurnRefusal }: ChatDeps,
  { id, queue }: ChatState,
  { type }: CommandInput,
): Promise<{ readonly refusal?: ChatError }> => {
  const endsTurn = type === "finish_turn" || type === "interrupt";
  if (type !== "finish_interruption" && !(endsTurn && queue.length > 0)) return {};
  const reason = await findTurnRefusal(id, queue[0]?.created_at);
  return reason === undefined ? {} : { refusal: toRefusalError(reason) };
};

/** Returns the error of a turn that the chat's owner may not continue. */
export const toRefusalError = (message: string): ChatError => ({ kind: "generic", message, retryable: false });

/** Converts a change to one batch with its announcements. `patch` takes precedence over the changes from promoted messages. */
export const toOutcome = <Reply>(
  deps: ChatDeps,
  before: ChatState,
  change: Change<ChatState>,
  reply: Reply,
  patch: ChatPatch = {},
  content: readonly MessagePart[] = [],
): Outcome<ChatState, Reply> => {
  const { models, clock } = deps;
  const findModel = (id: string) => (models.resolve(id) ?? models.resolve(null))?.id;
  const fullPatch = { ...toPromotionPatch(before, change, findModel), ...patch };
  const patched = { ...change, state: { ...change.state, ...fullPatch } };
  return {
    state: patched.state,
    writes: [
      ...buildWrites(before, patched),
      ...toPatchWrites(before, fullPatch),
      ...buildAttachWrites(before.key, content, clock.now()),
    ],
    after: () => announce(deps, before, patched),
    reply,
  };
};

/** Adds writes to the batch of an outcome. */
export const addWrites = <Reply>(
  outcome: Outcome<ChatState, Reply>,
  writes: readonly Statement[],
): Outcome<ChatState, Reply> => ({ ...outcome, writes: [...(outcome.writes ?? []), ...writes] });

/** Detaches the files that only the removed messages of this change named. */
export const detachFiles = async <Reply>(
  { store }: ChatDeps,
  before: ChatState,
  change: Change<ChatState>,
  outcome: Outcome<ChatState, Reply>,
): Promise<Outcome<ChatState, Reply>> => addWrites(outcome, await buildDetachWrites(store, before, change));

/** Returns the outcome of a report, which may be stale. */
export const toReportOutcome = async (
  deps: ChatDeps,
  state: ChatState,
  input: CommandInput,
): Promise<Outcome<ChatState, LateResult>> => {
  const decided = await decideReport(deps, state, input);
  return decided === "stale" ? { state, reply: "stale" } : toOutcome<LateResult>(deps, state, decided, "done");
};

/** Stores the answer under the idempotency key, so that a retry gets the same answer (rule CH-40). */
export const withAnswer = <Reply>(
  { clock }: ChatDeps,
  { key }: ChatState,
  request: RequestKey,
  outcome: Outcome<ChatState, Reply>,
): Outcome<ChatState, Reply> =>
  addWrites(outcome, insertAnswer(key, request, { answer: outcome.reply, now: clock.now() }));
