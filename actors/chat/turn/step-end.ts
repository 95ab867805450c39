// The end of a model's answer: its messages in the history, what follows from it, and how it is stored as a step. Used by turn.ts.
import type { MessagePart } from "#schema/chats/chat-part.ts";
import { isServerTool } from "#src/tools/registry.ts";
import { keepTextOnly } from "../hooks/proposals.ts";
import type { ProposedStep, TurnHooks } from "../hooks/turn-hooks.ts";
import type { NewMessage, Usage } from "../machine/decision.ts";
import { toolMessage } from "../machine/draft.ts";
import type { ReportResult, StartedAttempt } from "../messages.ts";
import type { Collector } from "./collector.ts";
import {
  isCutOff,
  MAX_CONTINUATIONS,
  MAX_RESUMPTIONS,
  selectCalls,
  type Tries,
  toCutOffRows,
  toFilterNotice,
  toIncompleteNotice,
} from "./ending.ts";
import type { McpOffer } from "./mcp.ts";
import { withServer } from "./mcp-turn.ts";
import { failingCalls } from "./previews.ts";
import type { Reporter } from "./reporter.ts";
import type { ReachDeps } from "./tool-agent.ts";

const toAssistantMessage = (
  content: readonly MessagePart[],
  usage: Usage | null,
  model_config_id: string | null,
): NewMessage => ({
  role: "assistant",
  visibility: "both",
  content,
  created_by: null,
  model_config_id,
  usage,
});

/** Returns the result of a call that is not run. */
const makeResult = ({ tool_call_id = "", tool_name = "" }: MessagePart, error: string, now: number): NewMessage =>
  toolMessage({ tool_call_id, tool_name, result: { error }, is_error: true, now });

/** Returns the messages of an incomplete answer. `missing` is the error that each of its calls gets as a result. */
export const toPartialAnswer = (content: readonly MessagePart[], now: number, missing: string): NewMessage[] =>
  content.length === 0
    ? []
    : [toAssistantMessage(content, null, null), ...selectCalls(content).map((call) => makeResult(call, missing, now))];

type AnswerEnd = {
  readonly usage: Usage | null;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** Whether this is the turn's last model call. */
  readonly isLast: boolean;
  /** The answer was cut off at the model's output limit. */
  readonly isCut: boolean;
  /** The answer was cut off, and the model is asked to continue. */
  readonly isContinued: boolean;
  /** The provider's filter ended the answer early. */
  readonly isFiltered: boolean;
  /** The provider paused the answer; the next request sends it back so that the model continues. */
  readonly isResumed: boolean;
  /** The answer ended for an unknown reason. */
  readonly isUnknown: boolean;
  /** MCP tools. */
  readonly mcp: Pick<McpOffer, "has">;
};

type StepEnd = { readonly messages: NewMessage[]; readonly then: "finish" | "act" | "continue" };

/** Returns the messages of a step and what happens next: the turn continues, waits for the client's tools, or ends. */
export const endOfStep = ({ model_id, tools }: StartedAttempt, proposed: ProposedStep, end: AnswerEnd): StepEnd => {
  const { content, refused } = proposed;
  const { usage, now, isLast, isCut, isContinued, isFiltered, isResumed, isUnknown, mcp } = end;
  const calls = selectCalls(content);
  const unknown = calls.filter(({ tool_name }) => !tools.some(({ name }) => name === tool_name));
  const messages = [
    ...(content.length === 0 ? [] : [toAssistantMessage(content, usage, model_id)]),
    ...unknown.map((call) => makeResult(call, `There is no tool "${call.tool_name}".`, now)),
    ...refused,
    ...(isCut ? toCutOffRows(isContinued) : []),
    ...(isFiltered ? toFilterNotice() : []),
    ...(isUnknown ? toIncompleteNotice() : []),
  ];
  const done = new Set(refused.flatMap((message) => message.content.map(({ tool_call_id }) => tool_call_id)));
  const openCalls = calls.filter((call) => !unknown.includes(call) && !done.has(call.tool_call_id));
  const hasOwnCalls = openCalls.some(({ tool_name = "" }) => isServerTool(tool_name) || mcp.has(tool_name));
  const isContinuing = hasOwnCalls || isContinued || isResumed || (calls.length > 0 && !isLast);
  const then = !hasOwnCalls && openCalls.length > 0 ? "act" : isContinuing ? "continue" : "finish";
  return { messages, then };
};

type Answer = {
  readonly chat_id: string;
  readonly attempt: StartedAttempt;
  readonly collector: Collector;
  readonly mcp: McpOffer;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** Whether this is the turn's last model call. */
  readonly isLast: boolean;
};
type Deps = { readonly hooks: TurnHooks; readonly reporter: Reporter; readonly agents: ReachDeps };

/** Stores the step and returns the actor's answer; undefined when it was not stored, because the turn was stopped or a hook failed it. */
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
  const texts = keepTextOnly(content);
  const textMessages = texts.length === 0 ? [] : [toAssistantMessage(texts, usage, model_id)];
  const decided = await reporter.askHooks(attempt, textMessages, () => hooks.propose(attempt, content, inputs));
  if (!decided) return undefined;
  const failingCallResults = await failingCalls(
    agents,
    { chat_id, attempt, mcp, content: decided.content },
    reporter.signal,
  );
  if (reporter.signal.aborted) return undefined;
  const refused = [...decided.refused, ...failingCallResults.map(([part, why]) => makeResult(part, why, now))];
  const proposed = { ...decided, refused };
  const ending = {
    isCut,
    isContinued,
    isFiltered: finish === "content_filter",
    isResumed,
    isUnknown: finish === "incomplete" || (isPaused && !isResumed),
  };
  const { messages, then } = endOfStep(attempt, proposed, { usage, now, isLast, mcp, ...ending });
  const all = [...messages, ...proposed.rows];
  const stopRows =
    then === "finish" ? await reporter.askHooks(attempt, all, () => hooks.askForRows(attempt, "stop")) : [];
  if (!stopRows) return undefined;
  return reporter.report("reportStep", { fence, messages: [...all, ...stopRows], then });
};
