// Values derived from an agent's facts at read time, case by case.
import { expect, test } from "bun:test";
import { agentHealth, agentStatus, INACTIVITY_TIMEOUT_MS } from "#actors/agent/status.ts";
import { AGENT_STATUSES, LIFECYCLE_STATES } from "#schema/agents/agent.ts";

const CREATED = 1_000_000;
const makeFacts = (patch: Partial<Parameters<typeof agentStatus>[0]> = {}) => ({
  created_at: CREATED,
  connection_timeout_seconds: 120,
  first_connected_at: null,
  last_connected_at: null,
  disconnected_at: null,
  ...patch,
});
const makeConnectedFacts = (patch = {}) =>
  makeFacts({ first_connected_at: CREATED, last_connected_at: CREATED + 5000, ...patch });

test("[AG-1] the status is derived from the times, and the first matching rule wins", () => {
  const cases: [ReturnType<typeof makeFacts>, number, string][] = [
    [makeFacts(), CREATED, "connecting"],
    [makeFacts(), CREATED + 120_000, "connecting"],
    [makeFacts(), CREATED + 120_001, "timeout"],
    [makeFacts({ connection_timeout_seconds: 0 }), CREATED + 10 ** 9, "connecting"],
    [makeConnectedFacts(), CREATED + 5000, "connected"],
    [makeConnectedFacts(), CREATED + 5000 + INACTIVITY_TIMEOUT_MS, "connected"],
    [makeConnectedFacts(), CREATED + 5001 + INACTIVITY_TIMEOUT_MS, "disconnected"],
    [makeConnectedFacts({ disconnected_at: CREATED + 5000 }), CREATED + 5000, "disconnected"],
    [makeConnectedFacts({ disconnected_at: CREATED + 6000 }), CREATED + 6000, "disconnected"],
    [makeConnectedFacts({ disconnected_at: CREATED + 4000 }), CREATED + 6000, "connected"],
    [makeConnectedFacts(), CREATED + 10 ** 9, "disconnected"],
  ];
  for (const [agent, now, status] of cases)
    expect([agent, now, agentStatus(agent, now)]).toEqual([agent, now, status as never]);
});

test("[AG-2] the health is derived from status and lifecycle; every pair has exactly one result", () => {
  const expectedReason = (status: string, lifecycle: string): string => {
    if (status !== "connected" && lifecycle === "off") return "agent is not running";
    if (status === "timeout") return "agent is taking too long to connect";
    if (status === "disconnected") return "agent has lost its connection";
    if (lifecycle === "start_error") return "a startup script of the agent ended with an error";
    return /^(shut|off)/.test(lifecycle) ? "agent is shutting down" : "healthy";
  };
  for (const status of AGENT_STATUSES) {
    for (const lifecycle of LIFECYCLE_STATES) {
      const health = agentHealth(status, lifecycle);
      expect([status, lifecycle, health.healthy ? "healthy" : health.reason]).toEqual([
        status,
        lifecycle,
        expectedReason(status, lifecycle),
      ]);
    }
  }
  expect(agentHealth("connecting", "created").healthy).toBe(true);
  expect(agentHealth("connected", "start_timeout").healthy).toBe(true);
});
