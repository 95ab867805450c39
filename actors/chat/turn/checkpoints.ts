// Creates, restores, copies and deletes checkpoints: snapshots of a workspace's files at each message of a person, which the daemon stores
// (rules UN-1, UN-6, UN-10). Deleting a chat also deletes its coding agent's home directory in the workspace.
import { AppError } from "#base/errors.ts";
import { log } from "#base/log.ts";
import { findChatAccessRow } from "#db/chats/chats.ts";
import type { MessageRow } from "#db/chats/messages.ts";
import type { CheckpointTaken, CopyCheckpoints, RestoreResult } from "#schema/agents/checkpoint.ts";
import type { ToolServicesFor } from "#src/tools/services.ts";
import { ToolError, WorkspaceUnreachableError } from "#src/tools/tool.ts";
import { isHookRow } from "../hooks/effects.ts";
import type { PromptChat } from "../prompt/prompt.ts";
import { type AgentDeps, WorkspaceAgent } from "./tool-agent.ts";
import type { ChatWarnings } from "./warnings.ts";

/** A tool waits this long for a checkpoint. The daemon's own limit is shorter, so that the daemon answers first. */
const CHECKPOINT_TIMEOUT_MS = 10_000;
const DAEMON_TIMEOUT_MS = 9_000;
/** Restoring a large repository is slow. */
const RESTORE_TIMEOUT_MS = 10 * 60_000;

/** Maximum chats in one request to delete data. A later checkpoint deletes the rest. */
const MAX_DELETED = 1_000;

export type CheckpointChat = PromptChat & { readonly chat_id: string };
const toServiceScope = (chat: CheckpointChat): ToolServicesFor => ({ ...chat, run_id: chat.chat_id });

/**
 * Creates a checkpoint if the history ends with a person's message, and warns the chat about files that the checkpoint lacks. `waits`:
 * whether to wait for the daemon to reconnect. Never rejects.
 */
export const createCheckpoint = async (
  deps: AgentDeps & { readonly warnings: ChatWarnings },
  chat: CheckpointChat,
  history: readonly MessageRow[],
  { waits, signal }: { readonly waits: boolean; readonly signal: AbortSignal },
): Promise<void> => {
  if (chat.workspace_id === null || !chat.is_root) return;
  const lastMessage = history.findLast((row) => !isHookRow(row));
  const isFromPerson = lastMessage?.role === "user" && lastMessage.replayed === null;
  if (!isFromPerson || lastMessage.visibility === "model") return;
  const timeout = new AbortController();
  const timer = deps.clock.after(CHECKPOINT_TIMEOUT_MS, () =>
    timeout.abort(new Error("the workspace: its files could not be saved within 10 seconds")),
  );
  try {
    const agent = new WorkspaceAgent(deps, toServiceScope(chat), waits);
    const json = { chat_id: chat.chat_id, message_id: lastMessage.id, within_ms: DAEMON_TIMEOUT_MS };
    const eitherSignal = AbortSignal.any([signal, timeout.signal]);
    const request = { method: "POST", path: "/checkpoints", json, signal: eitherSignal, patient: true } as const;
    const { problems = [], chats } = await agent.call<CheckpointTaken>(request);
    warn(deps.warnings, chat, problems);
    // Not awaited, because tools wait for the checkpoint.
    if (chats) void deleteOrphanedData(deps, agent, chats);
  } catch (error) {
    if (signal.aborted) return;
    log("chats").debug("no checkpoint for chat {chat_id}: {error}", { chat_id: chat.chat_id, error });
    // No tool can change files of an unreachable workspace.
    const isUnreachable = error instanceof WorkspaceUnreachableError && !timeout.signal.aborted;
    warn(deps.warnings, chat, isUnreachable ? [] : [error instanceof Error ? error.message : String(error)]);
  } finally {
    timer.cancel();
  }
};

const warn = (warnings: ChatWarnings, { chat_id }: CheckpointChat, problems: readonly string[]): void => {
  const texts = problems.map((problem) => `Undo does not cover this message's changes in ${problem}.`);
  if (texts.length > 0 || warnings.from("checkpoint", chat_id).length > 0) warnings.set("checkpoint", chat_id, texts);
};

/** Restores the files of this message's checkpoint. Rejects with 409 and a readable message when that fails. */
export const restoreCheckpoint = async (
  deps: AgentDeps,
  chat: CheckpointChat,
  message_id: number,
): Promise<RestoreResult> => {
  try {
    const json = { chat_id: chat.chat_id, message_id };
    const agent = new WorkspaceAgent(deps, toServiceScope(chat), false);
    return await agent.call<RestoreResult>({
      method: "POST",
      path: "/checkpoints/restore",
      json,
      answer_ms: RESTORE_TIMEOUT_MS,
    });
  } catch (error) {
    if (error instanceof ToolError) throw new AppError("conflict", error.message);
    throw error;
  }
};

/** The messages of a copied chat: their IDs in the source chat and in the copy. */
export type CopiedMessages = { readonly from_chat_id: string; readonly messages: CopyCheckpoints["messages"] };

/** Copies checkpoints to a copied chat. If that fails, warns in the copy that undo does not cover its messages. Never rejects. */
export const copyCheckpoints = async (
  deps: AgentDeps & { readonly warnings: ChatWarnings },
  chat: CheckpointChat,
  copied: CopiedMessages,
): Promise<void> => {
  if (chat.workspace_id === null || !chat.is_root || copied.messages.length === 0) return;
  try {
    const agent = new WorkspaceAgent(deps, toServiceScope(chat), false);
    await agent.call({ method: "POST", path: "/checkpoints/copy", json: { ...copied, chat_id: chat.chat_id } });
  } catch (error) {
    log("chats").debug("chat {chat_id} has no checkpoints of its source: {error}", { chat_id: chat.chat_id, error });
    const reason =
      error instanceof WorkspaceUnreachableError ? "the workspace could not be reached" : "the workspace rejected them";
    deps.warnings.set("checkpoint", chat.chat_id, [`Undo does not cover the copied messages: ${reason}.`]);
  }
};

/** Deletes the workspace's data about deleted chats (rule UN-10). `chats`: all chats with such data. Never rejects. */
const deleteOrphanedData = async (
  { store }: AgentDeps,
  agent: WorkspaceAgent,
  chats: readonly string[],
): Promise<void> => {
  try {
    const deleted = await Promise.all(
      chats.map(async (id) => ((await store.get(findChatAccessRow({ id }))) ? [] : [id])),
    );
    await deleteChatData(agent, deleted.flat().slice(0, MAX_DELETED));
  } catch (error) {
    log("chats").debug("cannot delete the workspace's data about deleted chats: {error}", { error });
  }
};

const deleteChatData = async (agent: WorkspaceAgent, chat_ids: readonly string[]): Promise<void> => {
  if (chat_ids.length === 0) return;
  for (const path of ["/checkpoints/forget", "/coding-agents/forget"]) {
    await agent.call({ method: "POST", path, json: { chat_ids } });
  }
};

/** Deletes the workspace's data about a chat that was just deleted, if the workspace is running. Never rejects. */
export const deleteChatFiles = async (deps: AgentDeps, chat: CheckpointChat): Promise<void> => {
  if (chat.workspace_id === null || !chat.is_root) return;
  try {
    await deleteChatData(new WorkspaceAgent(deps, toServiceScope(chat), false), [chat.chat_id]);
  } catch (error) {
    log("chats").debug("the workspace's data about chat {chat_id} is deleted later: {error}", {
      chat_id: chat.chat_id,
      error,
    });
  }
};
