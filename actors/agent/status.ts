// Derives an agent's status and health on each read; neither is stored (facts/platform 2.3 and 2.4).
import type { AgentRow } from "#db/agents/agents.ts";
import type { AgentStatus } from "#schema/agents/agent.ts";

/** Maximum interval between two messages of a connected agent. */
export const HEARTBEAT_MS = 15_000;
/** An agent that is silent for this long is considered disconnected. */
export const INACTIVITY_TIMEOUT_MS = 30_000;

type ConnectionFacts = Pick<
  AgentRow,
  "created_at" | "connection_timeout_seconds" | "first_connected_at" | "last_connected_at" | "disconnected_at"
>;

/** Returns the status at `now` (milliseconds since 1970). The first matching rule wins (rule AG-1). */
export const agentStatus = (agent: ConnectionFacts, now: number): AgentStatus => {
  const { last_connected_at: lastConnectedAt, disconnected_at: disconnectedAt } = agent;
  if (agent.first_connected_at === null || lastConnectedAt === null) {
    const timeoutMs = agent.connection_timeout_seconds * 1000;
    return timeoutMs > 0 && now - agent.created_at > timeoutMs ? "timeout" : "connecting";
  }
  // Connecting clears the time of the disconnect, so equal times mean that the agent disconnected last.
  if (disconnectedAt !== null && disconnectedAt >= lastConnectedAt) return "disconnected";
  return now - lastConnectedAt > INACTIVITY_TIMEOUT_MS ? "disconnected" : "connected";
};

const SHUTTING_DOWN = new Set(["shutting_down", "shutdown_timeout", "shutdown_error", "off"]);

/** Returns whether the agent is healthy, or why not. The first matching rule wins (rule AG-2). */
export const agentHealth = (
  status: AgentStatus,
  lifecycle: string,
): { healthy: true } | { healthy: false; reason: string } => {
  const unhealthy = (reason: string) => ({ healthy: false as const, reason });
  if (status !== "connected" && lifecycle === "off") return unhealthy("agent is not running");
  if (status === "timeout") return unhealthy("agent is taking too long to connect");
  if (status === "disconnected") return unhealthy("agent has lost its connection");
  if (lifecycle === "start_error") return unhealthy("a startup script of the agent ended with an error");
  if (SHUTTING_DOWN.has(lifecycle)) return unhealthy("agent is shutting down");
  return { healthy: true };
};
