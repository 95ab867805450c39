// The files of a chat's workspace as they were at each message of a person, kept and brought back by the daemon (rules UN-1, UN-6, UN-10).
// Used by turns, which keep them before the first tool runs, by edits that want them back, and when chats are copied or deleted. What the
// workspace keeps of a deleted chat goes, the home of its coding agent too.
import { AppError } from "#base/errors.ts";
import { log } from "#base/log.ts";
import { findChatPlace } from "#db/chats/chats.ts";
import type { MessageRow } from "#db/chats/messages.ts";
import type { CheckpointTaken, CopyCheckpoints, Restored } from "#schema/agents/checkpoint.ts";
import type { ServicesOf } from "#src/tools/services.ts";
import { ToolError, WorkspaceAway } from "#src/tools/tool.ts";
import { isHookRow } from "../hooks/effects.ts";
import type { PromptOf } from "../prompt/prompt.ts";
import { type AgentDeps, WorkspaceAgent } from "./tool-agent.ts";
import type { ChatWarnings } from "./warnings.ts";

/** No tool waits longer for it; what takes longer is not kept, and the daemon says so a little earlier. */
const PATIENCE_MS = 10_000;
const WITHIN_MS = 9_000;
/** Writing a large repository again takes its time. */
const RESTORE_MS = 10 * 60_000;

/** Chats that the daemon takes at once; the others go another day. */
const MAX_FORGOTTEN = 1_000;

type Of = PromptOf & { readonly chat_id: string };
const toServicesOf = (of: Of): ServicesOf => ({ ...of, run_id: of.chat_id });

/**
 * Keeps the files as they are for the last message, where that is a person's and new, and warns the chat of what could not be kept.
 * `waits`: for a daemon that may not be back yet. Never rejects.
 */
export const keepFiles = async (
  parts: AgentDeps & { readonly warnings: ChatWarnings },
  of: Of,
  history: readonly MessageRow[],
  { waits, signal }: { readonly waits: boolean; readonly signal: AbortSignal },
): Promise<void> => {
  if (of.workspace_id === null || !of.is_root) return;
  const last = history.findLast((row) => !isHookRow(row));
  if (last?.role !== "user" || last.replayed !== null || last.visibility === "model") return;
  const late = new AbortController();
  const limit = parts.clock.after(PATIENCE_MS, () =>
    late.abort(new Error("the workspace: its files could not be kept within 10 seconds")),
  );
  try {
    const agent = new WorkspaceAgent(parts, toServicesOf(of), waits);
    const json = { chat_id: of.chat_id, message_id: last.id, within_ms: WITHIN_MS };
    const both = AbortSignal.any([signal, late.signal]);
    const asked = { method: "POST", path: "/checkpoints", json, signal: both, patient: true } as const;
    const { problems = [], chats } = await agent.call<CheckpointTaken>(asked);
    warn(parts.warnings, of, problems);
    // No tool waits for it.
    if (chats) void forgetGone(parts, agent, chats);
  } catch (error) {
    if (signal.aborted) return;
    log("chats").debug("no checkpoint for chat {chat_id}: {error}", { chat_id: of.chat_id, error });
    // A workspace that is away has no files that a tool could change.
    const isAway = error instanceof WorkspaceAway && !late.signal.aborted;
    warn(parts.warnings, of, isAway ? [] : [error instanceof Error ? error.message : String(error)]);
  } finally {
    limit.cancel();
  }
};

const warn = (warnings: ChatWarnings, { chat_id }: Of, problems: readonly string[]): void => {
  const texts = problems.map((problem) => `Undo does not cover this message's changes in ${problem}.`);
  if (texts.length > 0 || warnings.from("checkpoint", chat_id).length > 0) warnings.set("checkpoint", chat_id, texts);
};

/** Brings back the files of this message. 409 in words when none returned. */
export const bringFilesBack = async (parts: AgentDeps, of: Of, message_id: number): Promise<Restored> => {
  try {
    const json = { chat_id: of.chat_id, message_id };
    const agent = new WorkspaceAgent(parts, toServicesOf(of), false);
    return await agent.call<Restored>({ method: "POST", path: "/checkpoints/restore", json, answer_ms: RESTORE_MS });
  } catch (error) {
    if (error instanceof ToolError) throw new AppError("conflict", error.message);
    throw error;
  }
};

/** Messages of a chat, by the numbers that they have in the chat they are copies of. */
export type CopiedMessages = { readonly from_chat_id: string; readonly messages: CopyCheckpoints["messages"] };

/** Gives a copy of a chat its checkpoints, or warns it that undo does not cover what was copied. Never rejects. */
export const copyFiles = async (
  parts: AgentDeps & { readonly warnings: ChatWarnings },
  of: Of,
  copied: CopiedMessages,
): Promise<void> => {
  if (of.workspace_id === null || !of.is_root || copied.messages.length === 0) return;
  try {
    const agent = new WorkspaceAgent(parts, toServicesOf(of), false);
    await agent.call({ method: "POST", path: "/checkpoints/copy", json: { ...copied, chat_id: of.chat_id } });
  } catch (error) {
    log("chats").debug("chat {chat_id} has no checkpoints of its source: {error}", { chat_id: of.chat_id, error });
    const why =
      error instanceof WorkspaceAway ? "the workspace could not be reached" : "the workspace did not take them";
    parts.warnings.set("checkpoint", of.chat_id, [`Undo does not cover the copied messages: ${why}.`]);
  }
};

/** The workspace forgets what it keeps of chats that are no more (rule UN-10). Never rejects: it is asked again another day. */
const forgetGone = async ({ store }: AgentDeps, agent: WorkspaceAgent, chats: readonly string[]): Promise<void> => {
  try {
    const found = await Promise.all(chats.map(async (id) => ((await store.get(findChatPlace({ id }))) ? [] : [id])));
    await forget(agent, found.flat().slice(0, MAX_FORGOTTEN));
  } catch (error) {
    log("chats").debug("what the workspace keeps of deleted chats was not forgotten: {error}", { error });
  }
};

const forget = async (agent: WorkspaceAgent, chat_ids: readonly string[]): Promise<void> => {
  if (chat_ids.length === 0) return;
  for (const path of ["/checkpoints/forget", "/coding-agents/forget"]) {
    await agent.call({ method: "POST", path, json: { chat_ids } });
  }
};

/** The same at once for a chat that was just deleted, where its workspace runs. Never rejects. */
export const forgetFiles = async (parts: AgentDeps, of: Of): Promise<void> => {
  if (of.workspace_id === null || !of.is_root) return;
  try {
    await forget(new WorkspaceAgent(parts, toServicesOf(of), false), [of.chat_id]);
  } catch (error) {
    log("chats").debug("what the workspace keeps of chat {chat_id} is forgotten later: {error}", {
      chat_id: of.chat_id,
      error,
    });
  }
};
