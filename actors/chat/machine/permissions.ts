// Applies the chat's rules and people's answers to a turn's calls: which calls run, which are refused, and which need a person's permission
// (rules PE-1, PE-5, PE-10). Pure, except that it gives the event loop turns. Used by the chat's actor.
import type { Clock } from "#base/clock.ts";
import { invalid } from "#base/errors.ts";
import { Slices } from "#base/retry.ts";
import { decidePermission, makeRules } from "#src/tools/permission.ts";
import { findToolUse } from "#src/tools/registry.ts";
import type { AnsweredPermissions, ChatPatch } from "../messages.ts";
import { toPromptScope, toToolScope } from "../turn/offer.ts";
import type { ChatState } from "./chat-state.ts";
import type { PendingCall } from "./decision.ts";

/** Maximum rules of one chat. */
export const MAX_RULES = 200;

type Verdict = "granted" | "asked" | "denied" | "refused" | "withdrawn";

/** The results that the model gets for calls that do not run. */
const REFUSAL_REASONS: { readonly [V in Verdict]?: string } = {
  denied:
    "The rules of this chat do not allow this call. Do not try to work around them. Continue without the call, or ask.",
  refused: "The user denied this call. Continue without it, or ask what to do instead.",
  withdrawn:
    "The chat moved to another workspace before this call had a result. Call it again if it is still needed there.",
};

export type SortedCalls = {
  /** Calls that the turn handles now: it runs them, or answers them with the reason for the refusal. */
  readonly calls: readonly PendingCall[];
  /** IDs of refused calls, each with the reason. */
  readonly refused: readonly (readonly [id: string, reason: string])[];
  /** IDs of calls that wait for a person. */
  readonly asked: readonly string[];
};

/**
 * Sorts the calls that have no result. The turn runs the calls in `ownCalls`, and the client runs the others (rule PE-10). `folder`: the
 * agent's working directory, if known. An answer can have hundreds of calls, each of which takes long to parse.
 */
export const sortCalls = async (
  state: ChatState,
  ownCalls: readonly PendingCall[],
  folder: string | undefined,
  clock: Pick<Clock, "monotonic">,
): Promise<SortedCalls> => {
  const slices = new Slices(clock);
  const decided: { readonly call: PendingCall; readonly verdict: Verdict }[] = [];
  for (const call of state.pending_calls) {
    await slices.next();
    decided.push({ call, verdict: decideCall(state, call, folder) });
  }
  const isForClient = ({ call, verdict }: (typeof decided)[number]) =>
    verdict === "granted" && !ownCalls.includes(call);
  return {
    calls: decided.filter((one) => one.verdict !== "asked" && !isForClient(one)).map(({ call }) => call),
    refused: decided.flatMap(({ call, verdict }) => {
      const reason = REFUSAL_REASONS[verdict];
      return reason === undefined ? [] : [[call.tool_call_id, reason] as const];
    }),
    asked: decided.filter(({ verdict }) => verdict === "asked").map(({ call }) => call.tool_call_id),
  };
};

const decideCall = (state: ChatState, call: PendingCall, folder: string | undefined): Verdict => {
  if (call.is_withdrawn) return "withdrawn";
  if (call.permission !== undefined) return call.permission;
  const use = findToolUse(call.tool_name, toToolScope(state.id, toPromptScope(state)));
  const action = decidePermission(state.permissions, call, { use, folder });
  if (action === "allow") return "granted";
  return action === "ask" ? "asked" : "denied";
};

/** Returns the chat's rules, preceded by rules for the answers with scope `always`. Throws 400 for a command that cannot become a rule. */
export const addRememberedRules = (
  { permissions, pending_calls }: Pick<ChatState, "permissions" | "pending_calls">,
  answers: AnsweredPermissions["answers"],
): ChatPatch => {
  const rules = answers.flatMap(({ tool_call_id, decision, scope, command }, index) => {
    const call = pending_calls.find((pending) => pending.tool_call_id === tool_call_id);
    if (scope !== "always" || !call) return [];
    const newRules = makeRules(call, decision, command);
    if (newRules.length > 0) return newRules;
    const detail =
      "cannot be remembered, because the command is not a single plain one. Set the words that it must begin with in `command`.";
    throw invalid("Invalid answers.", [{ field: `answers.${index}`, detail }]);
  });
  if (rules.length === 0) return {};
  const current = permissions ?? { default: "allow", rules: [] };
  const all = [...rules, ...current.rules.filter((old) => !rules.some((rule) => isSame(rule, old)))];
  if (all.length > MAX_RULES) throw invalid("The chat already has the maximum number of rules.", []);
  return { permissions: { ...current, rules: all } };
};

type Rule = NonNullable<ChatState["permissions"]>["rules"][number];
const isSame = (one: Rule, other: Rule): boolean =>
  one.tool === other.tool && one.command === other.command && (one.exact ?? false) === (other.exact ?? false);
