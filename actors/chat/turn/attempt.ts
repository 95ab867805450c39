// Handles two of a turn's reports in the chat's actor: the start of an attempt, and the end of a step.
import { pinContextOnce } from "#db/chats/context.ts";
import { resolveChatModel } from "#src/llm/chat-model.ts";
import type { ModelInfo } from "#src/llm/model.ts";
import type { Outcome } from "../../runtime/actor.ts";
import { addWrites, decideReport, toOutcome, toRefusalError, toReportOutcome } from "../decide.ts";
import type { ChatDeps } from "../deps.ts";
import type { ChatState } from "../machine/chat-state.ts";
import type { CommandInput } from "../machine/decision.ts";
import { sortCalls } from "../machine/permissions.ts";
import type { ReportResult, StartedAttempt, Step } from "../messages.ts";
import { combineChanges } from "../storage/writes.ts";
import { loadEditFolder } from "./agent-choice.ts";
import { buildToolOffer, offersProviderTools, selectTurnCalls, toPromptScope } from "./offer.ts";

type ReportOutcome<T> = Promise<Outcome<ChatState, T | "stale">>;

/** Starts an attempt: a model call, or a run of the calls that have no result yet. Returns `stale` if the turn may not continue. */
export const startAttempt = async (
  deps: ChatDeps,
  state: ChatState,
  history_version: number,
): ReportOutcome<StartedAttempt> => {
  const refusal = await findRefusal(deps, state, history_version);
  if (refusal) {
    const outcome = await toReportOutcome(deps, state, refusal);
    return { ...outcome, reply: "stale" };
  }
  const folder = await loadEditFolder(deps.store, state);
  const { calls, refused, asked } = await sortCalls(state, selectTurnCalls(state), folder, deps.clock);
  // All open calls wait for a person's approval or for the client. After a crash, the chat may not have entered that state yet.
  const mustWait = state.pending_calls.length > 0 && calls.length === 0;
  const decided = await decideReport(
    deps,
    state,
    mustWait
      ? { type: "enter_requires_action", history_version, asked, approval_ms: deps.approval_ms }
      : { type: "record_attempt", history_version },
  );
  if (decided === "stale") return { state, reply: "stale" };
  const next = decided.state;
  const id = next.last_model_config_id;
  // An unusable model is called nevertheless: its error says why, and the history is not sent to another model (rule MO-34).
  const model: ModelInfo = resolveChatModel(deps.models, id) ?? { id, provider: "", display_name: "" };
  const attempt: StartedAttempt = {
    fence: { history_version: next.history_version, generation_attempt: next.generation_attempt },
    chat_key: next.key,
    part: next.part,
    model_id: model.id,
    provider: model.provider,
    provider_name: model.provider_name ?? "",
    reasoning_effort: next.last_reasoning_effort,
    context_limit: model.context_limit ?? 0,
    compression_threshold: model.compression_threshold ?? null,
    provider_tools: offersProviderTools(next),
    tools: buildToolOffer(next),
    calls,
    permissions: next.permissions,
    refused,
    compaction: state.compaction,
    awaits_client: state.pending_calls.length > calls.length,
    chat: toPromptScope(next),
    family: { parent_chat_id: next.parent_chat_id, root_chat_id: next.root_chat_id },
    mcp_server_ids: next.mcp_server_ids,
    coding_agent: next.coding_agent === null ? null : { name: next.coding_agent, session: next.agent_session },
  };
  const outcome = toOutcome<StartedAttempt | "stale">(deps, state, decided, mustWait ? "stale" : attempt);
  if (next.workspace_id === null || next.generation_attempt !== 1) return outcome;
  // When the chat was created, its workspace may not have been running, so there was no context to pin.
  return addWrites(outcome, [pinContextOnce(next.key, next.workspace_id, deps.clock.now())]);
};

/** Returns the command that fails the turn if the chat's owner may not continue it (rule CH-51). */
const findRefusal = async (
  { findTurnRefusal, clock }: ChatDeps,
  { id, status, compaction, history_version, generation_attempt }: ChatState,
  reported_version: number,
): Promise<CommandInput | undefined> => {
  if (status !== "running" || history_version !== reported_version) return undefined;
  // A compaction is requested without a message, so the time of the last message does not apply.
  const reason = await findTurnRefusal(id, compaction ? clock.now() : undefined);
  if (reason === undefined) return undefined;
  return { type: "finish_error", fence: { history_version, generation_attempt }, error: toRefusalError(reason) };
};

/** Stores a finished step: its messages and all consequences in one commit. */
export const storeStep = async (deps: ChatDeps, state: ChatState, reported: Step): ReportOutcome<ReportResult> => {
  const { fence, messages, then } = reported;
  const step = await decideReport(deps, state, { type: "commit_step", fence, messages });
  if (step === "stale") return { state, reply: "stale" };
  const { history_version, generation_attempt } = step.state;
  if (then === "fail") {
    const current = { history_version, generation_attempt };
    const failed = await decideReport(deps, step.state, {
      type: "finish_error",
      fence: current,
      error: reported.error,
    });
    const combined = failed === "stale" ? step : combineChanges(step, failed);
    return toOutcome<ReportResult | "stale">(deps, state, combined, { history_version, continues: false });
  }
  const folder = await loadEditFolder(deps.store, step.state);
  const { calls, asked } = await sortCalls(step.state, selectTurnCalls(step.state), folder, deps.clock);
  // The turn runs or refuses its own calls before a person is asked about others (rule PE-10). The calls of a coding agent already run
  // inside the agent, which may wait for the person's answer before it reports any of their results.
  const isAgentWaiting = step.state.coding_agent !== null && asked.length > 0;
  const continues = then === "continue" || (then === "act" && calls.length > 0 && !isAgentWaiting);
  const act = { type: "enter_requires_action", history_version, asked, approval_ms: deps.approval_ms } as const;
  const ending = then === "act" ? act : ({ type: "finish_turn", history_version } as const);
  const end = continues ? undefined : await decideReport(deps, step.state, ending);
  const change = end && end !== "stale" ? combineChanges(step, end) : step;
  return toOutcome<ReportResult | "stale">(deps, state, change, { history_version, continues });
};
