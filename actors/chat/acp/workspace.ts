// Starts the stopped workspace in which a coding agent is to run, and shows a notice in the chat during the start.
import { listAgentsOfBuild } from "#db/agents/agents.ts";
import { findWorkspace } from "#db/workspaces/workspaces.ts";
import type { CodingAgent } from "#schema/ai/coding-agents.ts";
import type { PromptChat } from "../prompt/prompt.ts";
import type { TurnDeps } from "../turn/deps.ts";

type AgentStart = {
  readonly chat_id: string;
  readonly chat: PromptChat;
  readonly profile: Pick<CodingAgent, "starts_workspace" | "display_name">;
};

/**
 * Waits until the workspace has started, and starts it if necessary. Rejects with a readable message if the start is not allowed or fails.
 * Does nothing if the workspace has a workspace agent, was deleted or is dormant.
 */
export const ensureWorkspaceStarted = async (
  { store, toolServices, warnings }: Pick<TurnDeps, "store" | "toolServices" | "warnings">,
  { chat_id, chat, profile }: AgentStart,
  signal: AbortSignal,
): Promise<void> => {
  const { workspace_id } = chat;
  const workspace = workspace_id === null ? undefined : await store.get(findWorkspace({ id: workspace_id }));
  if (!workspace || workspace.deleted || workspace.dormant_at !== null) return;
  const agents = await store.all(listAgentsOfBuild({ build_id: workspace.latest_build_id }));
  if (agents.length > 0) return;
  if (profile.starts_workspace === false) {
    throw new Error(
      `${profile.display_name} needs the workspace "${workspace.name}", which is ${workspace.status}. Start it first.`,
    );
  }
  warnings.set("workspace", chat_id, [`Starting workspace "${workspace.name}".`]);
  try {
    await toolServices({ ...chat, chat_id, run_id: chat_id }).startWorkspace({}, signal);
  } finally {
    warnings.set("workspace", chat_id, []);
  }
};
