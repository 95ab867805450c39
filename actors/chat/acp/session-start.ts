// Prepares and sends a coding agent's prompt: reads the chat's history, decides whether the open session can continue, and writes the
// prompt to the agent.
import { finishesWithin } from "#base/retry.ts";
import { LARGE_ANSWER_BYTES } from "#base/system/answer-memory.ts";
import type { MessageRow } from "#db/chats/messages.ts";
import type { CodingAgent } from "#schema/ai/coding-agents.ts";
import { isHookRow } from "../hooks/effects.ts";
import type { StartedAttempt } from "../messages.ts";
import { takeHistoryMemory } from "../prompt/history-memory.ts";
import { TurnHistory } from "../prompt/prompt-history.ts";
import { retryUntilAnswered } from "../until-answered.ts";
import { prepareContext } from "./agent-home.ts";
import type { AgentTurnDeps } from "./deps.ts";
import {
  buildHandover,
  CONTINUE,
  findLastPrompt,
  formatHistory,
  type Handover,
  listFiles,
  type Prompt,
} from "./handover.ts";
import { toPromptBlocks } from "./prompt-blocks.ts";
import type { AgentSession } from "./session.ts";

/** After this delay, people see a notice that the agent is starting. */
const START_NOTICE_DELAY_MS = 2_000;
/** How long a workspace may take to accept a prompt. */
const PROMPT_TIMEOUT_MS = 60_000;

export type StartPlan = {
  readonly context: Awaited<ReturnType<typeof prepareContext>>;
  /** Whether the stored session has received the history up to its last prompt. */
  readonly isChatInSession: boolean;
  /** The session that was open before. It may have been ended since, because this turn cannot continue it. */
  readonly previous: AgentSession | undefined;
};
export type SessionStart = {
  /** The instructions of an agent that cannot read them from files. */
  readonly introduction: string;
  /** Whether the opened session has received the history up to its last prompt. */
  readonly knowsHistory: boolean;
};

/**
 * Calls `use` with the history. Waits until memory for the history is available, and holds the memory until `use` resolves (rule CH-54), so
 * `use` must not wait for the agent. Returns undefined once the turn is over.
 */
export const withHistory = async <T>(
  deps: AgentTurnDeps,
  { chat_key, chat: { owner_id } }: StartedAttempt,
  { hasFiles, signal }: { readonly hasFiles: boolean; readonly signal: AbortSignal },
  use: (history: readonly MessageRow[]) => Promise<T>,
): Promise<T | undefined> => {
  const { clock, store } = deps;
  const history = new TurnHistory(store, chat_key);
  const memory = await takeHistoryMemory(deps, { chat_key, owner_id, history, hasFiles, signal });
  if (!memory) return undefined;
  using _hold = memory.hold;
  const rows = await retryUntilAnswered(clock, signal, () => history.read());
  // Awaited here, because the memory is released at the end of the block.
  return rows === "stale" ? undefined : await use(rows);
};

/**
 * Returns the open session if its agent is still working on the last prompt and there are no new messages. Otherwise returns a plan for
 * opening or continuing a session, and ends the open session if this turn cannot continue it.
 */
export const prepareStart = async (
  deps: AgentTurnDeps,
  chat_id: string,
  attempt: StartedAttempt,
  history: readonly MessageRow[],
  profile: CodingAgent,
): Promise<{ readonly running: AgentSession } | StartPlan> => {
  const { sessions } = deps;
  const { isChatInSession, hasNewMessages } = buildHandover(history, attempt.coding_agent?.session ?? null);
  const previous = sessions.findSession(chat_id);
  if (previous?.isPrompting) {
    if (isChatInSession && !hasNewMessages) {
      if (!attempt.awaits_client) declineQuestions(previous, history);
      return { running: previous };
    }
    await previous.cancel();
  }
  const context = await prepareContext(deps, attempt, history, profile);
  // The agent reads its context only at startup.
  if (previous && (!isChatInSession || previous.context_key !== context.key)) sessions.end(chat_id);
  return { context, isChatInSession, previous };
};

/** Declines the open questions in the history, because the chat no longer waits for a person to answer them. */
const declineQuestions = ({ questions }: AgentSession, history: readonly MessageRow[]): void => {
  const storedIds = new Set(history.flatMap(({ content }) => content.map(({ tool_call_id }) => tool_call_id)));
  for (const id of questions.openIds) if (storedIds.has(id)) questions.answer(id, false);
};

/** Sends the agent the messages that it has not received yet, unless the turn has ended. */
export const sendPrompt = async (
  { loadAttachment, clock, sessions }: AgentTurnDeps,
  attempt: StartedAttempt,
  session: AgentSession,
  history: readonly MessageRow[],
  { introduction, knowsHistory }: SessionStart,
  { chat_id, signal }: { readonly chat_id: string; readonly signal: AbortSignal },
): Promise<void> => {
  const { text, files } = knowsHistory
    ? buildPrompt(session, buildHandover(history, attempt.coding_agent?.session ?? null), history)
    : { text: prependInstructions(introduction, formatHistory(history)), files: listFiles(history) };
  const blocks = await toPromptBlocks(text, files, session.promptAbilities, loadAttachment);
  if (signal.aborted) return;
  const isWritten = await finishesWithin(clock, PROMPT_TIMEOUT_MS, session.prompt(blocks));
  // A large prompt that the workspace does not accept would hold memory that other turns need.
  if (!isWritten && JSON.stringify(blocks).length > LARGE_ANSWER_BYTES) sessions.end(chat_id);
};

/** Returns the prompt for a session that has received the earlier history. Without new messages, sends the last ones again if they were lost. */
const buildPrompt = ({ replayed }: AgentSession, handover: Handover, history: readonly MessageRow[]): Prompt => {
  if (handover.newText !== "") return { text: handover.newText, files: handover.files };
  const last = findLastPrompt(history.filter((row) => !isHookRow(row)));
  // A loaded session replays the messages that it has received.
  const hasReceived =
    replayed === undefined || last.text === "" || removeWhitespace(replayed).includes(removeWhitespace(last.text));
  return hasReceived ? { text: CONTINUE, files: [] } : last;
};

const prependInstructions = (introduction: string, text: string): string =>
  introduction === "" ? text : `<instructions>\n${introduction}\n</instructions>\n\n${text}`;

const removeWhitespace = (text: string): string => text.replaceAll(/\s+/g, "");

/** Waits for the session, and shows a notice in the chat if that takes long. */
export const withStartNotice = async (
  { clock, warnings }: AgentTurnDeps,
  chat_id: string,
  { display_name }: CodingAgent,
  opened: Promise<AgentSession>,
): Promise<AgentSession> => {
  const notice = `Starting ${display_name}. The first time in a workspace, it is installed first, which takes about a minute.`;
  const timer = clock.after(START_NOTICE_DELAY_MS, () => warnings.set("workspace", chat_id, [notice]));
  try {
    return await opened;
  } finally {
    timer.cancel();
    if (warnings.from("workspace", chat_id).length > 0) warnings.set("workspace", chat_id, []);
  }
};
