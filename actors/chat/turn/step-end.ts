// Stores a finished answer of the model as a step, and decides whether the turn continues. Used by turn.ts.
import type { MessagePart } from "#schema/chats/chat-part.ts";
import { isServerTool } from "#src/tools/registry.ts";
import { toRefusal } from "../hooks/proposals.ts";
import type { ProposedStep, TurnHooks } from "../hooks/turn-hooks.ts";
import type { NewMessage, Usage } from "../machine/decision.ts";
import type { ReportResult, StartedAttempt } from "../messages.ts";
import type { Collector } from "./collector.ts";
import {
  FILTERED_NOTICE,
  INCOMPLETE_NOTICE,
  isCutOff,
  MAX_CONTINUATIONS,
  MAX_RESUMPTIONS,
  selectCalls,
  type Tries,
  toAssistantMessage,
  toCutOffRows,
  toNotice,
} from "./ending.ts";
import type { McpOffer } from "./mcp.ts";
import { withServer } from "./mcp-turn.ts";
import { findFailingCalls } from "./previews.ts";
import type { Reporter } from "./reporter.ts";
import type { ReachDeps } from "./tool-agent.ts";

/** Returns the messages of an incomplete answer. Each of its calls gets `error` as its result. */
export const toPartialAnswer = (content: readonly MessagePart[], now: number, error: string): NewMessage[] =>
  content.length === 0
    ? []
    : [toAssistantMessage(content, null, null), ...selectCalls(content).map((call) => toRefusal(call, error, now))];

type AnswerEnd = {
  readonly usage: Usage | null;
  readonly now: number;
  /** Whether the turn has made its maximum number of model calls. */
  readonly isLast: boolean;
  /** The answer was cut off at the model's output limit. */
  readonly isCut: boolean;
  /** The answer was cut off, and the model is asked to continue. */
  readonly isContinued: boolean;
  /** The provider's content filter ended the answer early. */
  readonly isFiltered: boolean;
  /** The provider paused the answer. The next request sends it back, so that the model continues. */
  readonly isResumed: boolean;
  /** The answer may be incomplete. */
  readonly isIncomplete: boolean;
  readonly mcp: Pick<McpOffer, "has">;
};

type StepEnd = { readonly messages: NewMessage[]; readonly then: "finish" | "act" | "continue" };

/** Returns the messages of a step and what happens next: the turn continues, waits for the client's tools, or ends. */
const endStep = ({ model_id, tools }: StartedAttempt, proposed: ProposedStep, end: AnswerEnd): StepEnd => {
  const { content, refused } = proposed;
  const { usage, now, isLast, isCut, isContinued, isFiltered, isResumed, isIncomplete, mcp } = end;
  const calls = selectCalls(content);
  const unknownCalls = calls.filter(({ tool_name }) => !tools.some(({ name }) => name === tool_name));
  const messages = [
    ...(content.length === 0 ? [] : [toAssistantMessage(content, usage, model_id)]),
    ...unknownCalls.map((call) => toRefusal(call, `There is no tool "${call.tool_name}".`, now)),
    ...refused,
    ...(isCut ? toCutOffRows(isContinued) : []),
    ...(isFiltered ? [toNotice(FILTERED_NOTICE)] : []),
    ...(isIncomplete ? [toNotice(INCOMPLETE_NOTICE)] : []),
  ];
  const refusedIds = new Set(refused.flatMap((message) => message.content.map(({ tool_call_id }) => tool_call_id)));
  const openCalls = calls.filter((call) => !unknownCalls.includes(call) && !refusedIds.has(call.tool_call_id));
  const hasServerCalls = openCalls.some(({ tool_name = "" }) => isServerTool(tool_name) || mcp.has(tool_name));
  const continues = hasServerCalls || isContinued || isResumed || (calls.length > 0 && !isLast);
  const continueOrFinish = continues ? "continue" : "finish";
  const then = openCalls.length > 0 && !hasServerCalls ? "act" : continueOrFinish;
  return { messages, then };
};

type Answer = {
  readonly chat_id: string;
  readonly attempt: StartedAttempt;
  readonly collector: Collector;
  readonly mcp: McpOffer;
  readonly now: number;
  /** Whether the turn has made its maximum number of model calls. */
  readonly isLast: boolean;
};
type Deps = { readonly hooks: TurnHooks; readonly reporter: Reporter; readonly agents: ReachDeps };

/** Stores the step and returns the actor's reply; undefined if the turn was stopped or a hook failed before. */
export const reportAnswer = async (
  { hooks, reporter, agents }: Deps,
  { chat_id, attempt, collector, mcp, now, isLast }: Answer,
  tries: Tries,
): Promise<ReportResult | "stale" | undefined> => {
  const { fence, model_id } = attempt;
  const { usage, inputs, finish } = collector;
  const content = collector.content(now).map((part) => withServer(part, mcp));
  const isCut = isCutOff(content, finish);
  const isContinued = isCut && !isLast && tries.continued < MAX_CONTINUATIONS;
  tries.continued = isContinued ? tries.continued + 1 : 0;
  const isPaused = finish === "paused" && selectCalls(content).length === 0;
  const isResumed = isPaused && !isLast && tries.resumed < MAX_RESUMPTIONS;
  tries.resumed = isResumed ? tries.resumed + 1 : 0;
  // If the hook fails, only the text is stored, because nothing has allowed the calls.
  const texts = content.filter(({ type, text }) => type === "text" && text !== undefined && text !== "");
  const textMessages = texts.length === 0 ? [] : [toAssistantMessage(texts, usage, model_id)];
  const proposed = await reporter.askHooks(attempt, textMessages, () => hooks.propose(attempt, content, inputs));
  if (!proposed) return undefined;
  const allowed = { chat_id, attempt, mcp, content: proposed.content };
  const failingCalls = await findFailingCalls(agents, allowed, reporter.signal);
  if (reporter.signal.aborted) return undefined;
  const refused = [...proposed.refused, ...failingCalls.map(([call, why]) => toRefusal(call, why, now))];
  const isFiltered = finish === "content_filter";
  const isIncomplete = finish === "incomplete" || (isPaused && !isResumed);
  const ending = { usage, now, isLast, mcp, isCut, isContinued, isFiltered, isResumed, isIncomplete };
  const { messages, then } = endStep(attempt, { ...proposed, refused }, ending);
  const all = [...messages, ...proposed.rows];
  const stopRows =
    then === "finish" ? await reporter.askHooks(attempt, all, () => hooks.askForRows(attempt, "stop")) : [];
  if (!stopRows) return undefined;
  return reporter.report("reportStep", { fence, messages: [...all, ...stopRows], then });
};
