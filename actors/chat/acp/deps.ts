// The dependencies of turns that a coding agent runs.
import type { ModelTokens } from "#schema/agents/agent-program.ts";
import type { CodingAgent } from "#schema/ai/coding-agents.ts";
import type { LoadAttachment } from "#src/llm/attachments.ts";
import type { AgentBudgets } from "../spending/agent-budgets.ts";
import type { TurnDeps } from "../turn/deps.ts";
import type { AgentSessions } from "./sessions.ts";

export type AgentEngineDeps = TurnDeps & {
  readonly budgets: AgentBudgets;
  readonly loadAttachment: LoadAttachment;
  /** Returns the tokens with which programs of the agent's workspace, and of one chat in it, call the AI gateway. */
  readonly modelTokens: (scope: { agent_id: string; chat_id: string; owner_id: string }) => ModelTokens;
};

export type AgentTurnDeps = AgentEngineDeps & {
  readonly sessions: AgentSessions;
  /** Returns undefined when the coding agent was removed. */
  readonly findProfile: (name: string) => Promise<CodingAgent | undefined>;
};
