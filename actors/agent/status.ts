// What is derived from an agent's facts when it is read, never stored: its status and its health (facts/platform 2.3 and 2.4).
import type { AgentRow } from "#db/agents/agents.ts";
import type { AgentStatus } from "#schema/agents/agent.ts";

/** A connected agent is heard of at least this often. */
export const HEARTBEAT_MS = 15_000;
/** An agent not heard of for this long counts as disconnected. */
export const INACTIVE_MS = 30_000;

type ConnectionFacts = Pick<
  AgentRow,
  "created_at" | "connection_timeout_seconds" | "first_connected_at" | "last_connected_at" | "disconnected_at"
>;

/** The status at `now`, milliseconds since 1970; the first rule that fits wins (rule AG-1). */
export const agentStatus = (agent: ConnectionFacts, now: number): AgentStatus => {
  const { last_connected_at: last, disconnected_at: gone } = agent;
  if (agent.first_connected_at === null || last === null) {
    const allowed = agent.connection_timeout_seconds * 1000;
    return allowed > 0 && now - agent.created_at > allowed ? "timeout" : "connecting";
  }
  // Connecting clears the time of the disconnection, so the same millisecond means: gone.
  if (gone !== null && gone >= last) return "disconnected";
  return now - last > INACTIVE_MS ? "disconnected" : "connected";
};

const SHUTTING_DOWN = new Set(["shutting_down", "shutdown_timeout", "shutdown_error", "off"]);

/** Healthy or why not; the first rule that fits wins (rule AG-2). */
export const agentHealth = (
  status: AgentStatus,
  lifecycle: string,
): { healthy: true } | { healthy: false; reason: string } => {
  const ill = (reason: string) => ({ healthy: false as const, reason });
  if (status !== "connected" && lifecycle === "off") return ill("agent is not running");
  if (status === "timeout") return ill("agent is taking too long to connect");
  if (status === "disconnected") return ill("agent has lost its connection");
  if (lifecycle === "start_error") return ill("a startup script of the agent ended with an error");
  if (SHUTTING_DOWN.has(lifecycle)) return ill("agent is shutting down");
  return { healthy: true };
};
