// What a turn reads and waits for before its coding agent gets a prompt: the history within its memory, whether the open session can go
// on, and the prompt itself.

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

/** A start that takes longer is explained to people. */
const START_NOTICE_DELAY_MS = 2_000;
/** A workspace takes a prompt within this time, and a large one only then. */
const PROMPT_TIMEOUT_MS = 60_000;

export type StartPlan = {
  readonly context: Awaited<ReturnType<typeof prepareContext>>;
  /** Whether the stored session knows the history up to its last prompt. */
  readonly isChatInSession: boolean;
  /** The session that was open, even if it was ended now. */
  readonly live: AgentSession | undefined;
};
export type SessionStart = {
  /** The instructions for a session without them. */
  readonly introduction: string;
  /** Whether the agent knows the history up to its last prompt. */
  readonly isSame: boolean;
};

/**
 * Calls `use` with the history once its memory is available, which is held until `use` has resolved (rule CH-54). Returns undefined once
 * the turn is over. What waits for the agent stays outside: it would keep the memory from others.
 */
export const withHistory = async <T>(
  deps: AgentTurnDeps,
  { chat_key, about: { owner_id } }: StartedAttempt,
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

/** Returns what a session starts with, or the session whose agent still works. Ends one that this turn cannot continue. */
export const prepareStart = async (
  deps: AgentTurnDeps,
  chat_id: string,
  begun: StartedAttempt,
  history: readonly MessageRow[],
  profile: CodingAgent,
): Promise<{ readonly running: AgentSession } | StartPlan> => {
  const { sessions } = deps;
  const { isChatInSession, hasNewMessages } = buildHandover(history, begun.coding_agent?.session ?? null);
  const live = sessions.findSession(chat_id);
  if (live?.isPrompting) {
    if (isChatInSession && !hasNewMessages) {
      // The chat no longer waits for a person, so the questions in its history are declined.
      for (const id of begun.awaits_client ? [] : live.questions.open) {
        if (history.some(({ content }) => content.some((one) => one.tool_call_id === id))) {
          live.questions.answer(id, false);
        }
      }
      return { running: live };
    }
    await live.cancel();
  }
  const context = await prepareContext(deps, begun, history, profile);
  // Something that the agent reads only at startup has changed (instructions, skills, MCP servers, workspace), or its session has another
  // history.
  if (live && (!isChatInSession || live.given_key !== context.key)) sessions.end(chat_id);
  return { context, isChatInSession, live };
};

/** Sends the agent what is new to it, unless `signal` has ended the turn. */
export const sendPrompt = async (
  { loadAttachment, clock, sessions }: AgentTurnDeps,
  begun: StartedAttempt,
  session: AgentSession,
  history: readonly MessageRow[],
  { introduction, isSame }: SessionStart,
  { chat_id, signal }: { readonly chat_id: string; readonly signal: AbortSignal },
): Promise<void> => {
  const { text, files } = isSame
    ? buildPrompt(session, buildHandover(history, begun.coding_agent?.session ?? null), history)
    : { text: prependInstructions(introduction, formatHistory(history)), files: listFiles(history) };
  const blocks = await toPromptBlocks(text, files, session.promptAbilities, loadAttachment);
  if (signal.aborted) return;
  const isWritten = await finishesWithin(clock, PROMPT_TIMEOUT_MS, session.prompt(blocks));
  // A workspace that does not take a large prompt would keep memory from others.
  if (!isWritten && JSON.stringify(blocks).length > LARGE_ANSWER_BYTES) sessions.end(chat_id);
};

/** Returns the prompt for a session that knows the chat. A prompt that the session replayed has already reached it. */
const buildPrompt = ({ replayed }: AgentSession, handover: Handover, history: readonly MessageRow[]): Prompt => {
  if (handover.newText !== "") return { text: handover.newText, files: handover.files };
  const last = findLastPrompt(history.filter((row) => !isHookRow(row)));
  const hasIt =
    replayed === undefined || last.text === "" || removeWhitespace(replayed).includes(removeWhitespace(last.text));
  return hasIt ? { text: CONTINUE, files: [] } : last;
};

const prependInstructions = (introduction: string, text: string): string =>
  introduction === "" ? text : `<instructions>\n${introduction}\n</instructions>\n\n${text}`;

const removeWhitespace = (text: string): string => text.replaceAll(/\s+/g, "");

/** Tells people why they have to wait: the first start in a workspace installs the agent. */
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
