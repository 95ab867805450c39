// Constructs the engines that run chats' turns: Slipway's own loop, and coding agents that speak the Agent Client Protocol.
import { findCodingAgent } from "#db/models/coding-agents.ts";
import { resolveProfile } from "#src/acp/presets.ts";
import type { Engine, Engines } from "../turn/engine.ts";
import { Turn } from "../turn/turn.ts";
import type { AgentEngineDeps } from "./deps.ts";
import { AgentSessions } from "./sessions.ts";
import { AgentTurn } from "./turn.ts";

export const openEngines = (deps: AgentEngineDeps): Engines => {
  const { store, clock } = deps;
  const sessions = new AgentSessions(clock);
  const findProfile = async (name: string) => resolveProfile(name, await findCodingAgent(store, name));
  const ownEngine: Engine = { begin: (scope, started) => new Turn(deps, scope, started) };
  const withSessions = Object.assign({}, deps, { sessions, findProfile });
  const agentEngine: Engine = { begin: (scope, started) => new AgentTurn(withSessions, scope, started) };
  return {
    of: (coding_agent) => (coding_agent === null ? ownEngine : agentEngine),
    listChatsWithState: () => sessions.chats(),
    forget: (chat_id) => sessions.end(chat_id),
    release: (isLeaving) => sessions.release(isLeaving),
  };
};
