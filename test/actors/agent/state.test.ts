// The agent's reports as pure functions: state changes and writes.
import { describe, expect, test } from "bun:test";
import type { AgentState } from "#actors/agent/state.ts";
import * as state from "#actors/agent/state.ts";
import { LIFECYCLE_STATES, type LifecycleState } from "#schema/agents/agent.ts";

const NOW = 1_900_000_000_000;

const createAgentState = (): AgentState => ({
  agent: {
    key: 1,
    id: "a",
    part: 0,
    workspace_id: "w",
    token_hash: null,
    token_generation: 0,
    daemon_id: "",
    connection_timeout_seconds: 120,
    created_at: NOW,
    lifecycle_state: "created",
    lifecycle_changed_at: null,
    started_at: null,
    ready_at: null,
    first_connected_at: null,
    last_connected_at: null,
    disconnected_at: null,
    resources: null,
    logs_length: 0,
    logs_overflowed: false,
  },
  sources: new Map(),
  apps: [],
  scripts: [],
  metadata: [{ key: "cpu" }],
  connection: undefined,
});

const report = (from: AgentState, to: LifecycleState, changed_at: number) =>
  state.lifecycle(from, { state: to, changed_at, now: NOW });

describe("lifecycle", () => {
  test("[AG-3] each report sets and clears the times in the table", () => {
    const startupEnds = ["ready", "start_timeout", "start_error"];
    for (const to of LIFECYCLE_STATES) {
      const before = createAgentState();
      const started = { ...before, agent: { ...before.agent, started_at: NOW - 50, ready_at: NOW - 40 } };
      const getTimes = (from: AgentState) => {
        const { agent } = report(from, to, NOW - 10).state;
        return [agent.lifecycle_state, agent.started_at, agent.ready_at];
      };
      if (to === "starting") {
        expect(getTimes(before)).toEqual([to, NOW - 10, null]);
        expect(getTimes(started)).toEqual([to, NOW - 10, null]);
      } else if (startupEnds.includes(to)) {
        expect(getTimes(before)).toEqual([to, NOW - 10, NOW - 10]);
        expect(getTimes(started)).toEqual([to, NOW - 50, NOW - 10]);
      } else {
        expect(getTimes(before)).toEqual([to, null, null]);
        expect(getTimes(started)).toEqual([to, NOW - 50, NOW - 40]);
      }
    }
  });

  test("[AG-4] any state may follow any other; the newest report by the agent's clock wins, and a repeated report writes nothing", () => {
    for (const from of LIFECYCLE_STATES) {
      for (const to of LIFECYCLE_STATES) {
        const first = report(createAgentState(), from, NOW - 20).state;
        expect(report(first, to, NOW - 10).state.agent.lifecycle_state).toBe(to);
        expect(report(first, to, NOW - 30)).toMatchObject({ state: first, writes: [], visible: false });
      }
      const first = report(createAgentState(), from, NOW - 20).state;
      expect(report(first, from, NOW - 20)).toMatchObject({ writes: [], visible: false });
    }
  });

  test("[AG-4] an implausible time is replaced by the server's", () => {
    for (const wrong of [Date.UTC(1, 0), NOW + 10 ** 9, NOW - 10 ** 9]) {
      expect(report(createAgentState(), "starting", wrong).state.agent.started_at).toBe(NOW);
    }
  });
});

describe("connection", () => {
  const connect = (from: AgentState, connection_id: string, now = NOW) =>
    state.connected(from, { connection_id, api_version: "2.10", latency: {}, now });
  const applyHeartbeat = (from: AgentState, connection_id: string, now: number) =>
    state.heartbeat(from, { connection_id, latency: { here: { latency_ms: 3, preferred: true } }, now });

  test("[AG-5] connecting keeps the first time, renews the last and clears the disconnection", () => {
    const first = connect(createAgentState(), "one", NOW).state;
    const disconnected = state.disconnected(first, { connection_id: "one", now: NOW + 5 }).state;
    expect(disconnected.agent.disconnected_at).toBe(NOW + 5);
    const { agent } = connect(disconnected, "two", NOW + 9).state;
    expect(agent).toMatchObject({ first_connected_at: NOW, last_connected_at: NOW + 9, disconnected_at: null });
  });

  test("[AG-29] another process of the daemon is recorded while the workspace is shared, also one without a name; other agents are not", () => {
    const connectAs = (from: AgentState, daemon_id: string, is_shared: boolean) =>
      state.connected(from, { connection_id: "one", api_version: "2.10", latency: {}, now: NOW, daemon_id, is_shared });
    const isRecorded = (daemon_id: string, is_shared: boolean): boolean =>
      "daemon_replaced_at" in
      connectAs(connectAs(createAgentState(), "first", true).state, daemon_id, is_shared).state.agent;
    expect([isRecorded("second", true), isRecorded("", true)]).toEqual([true, true]);
    expect([isRecorded("first", true), isRecorded("second", false)]).toEqual([false, false]);
    expect("daemon_replaced_at" in connect(connectAs(createAgentState(), "first", true).state, "two").state.agent).toBe(
      false,
    );
  });

  test("[AG-7] a replaced connection neither disconnects the agent nor keeps it connected", () => {
    const replaced = connect(connect(createAgentState(), "one").state, "two", NOW + 1).state;
    expect(state.disconnected(replaced, { connection_id: "one", now: NOW + 2 })).toMatchObject({
      writes: [],
      state: replaced,
    });
    expect(applyHeartbeat(replaced, "one", NOW + 2)).toMatchObject({ writes: [], state: replaced });
  });

  test("[AG-14] [AG-22] a heartbeat is recorded but not announced, unless the agent had been considered disconnected", () => {
    const connected = connect(createAgentState(), "one").state;
    const afterHeartbeat = applyHeartbeat(connected, "one", NOW + 15_000);
    expect([afterHeartbeat.writes.length, afterHeartbeat.visible]).toEqual([1, false]);
    expect(afterHeartbeat.writes[0]?.rows[0]).toContain('{"here":{"latency_ms":3,"preferred":true}}');
    expect(applyHeartbeat(connected, "one", NOW + 31_000).visible).toBe(true);
    const reloaded = { ...connected, connection: undefined };
    expect(applyHeartbeat(reloaded, "one", NOW + 1).state.connection).toBe("one");
  });
});

describe("metadata", () => {
  test("[AG-15] values are truncated at 2048 bytes with an error that explains it; unknown keys are ignored", () => {
    const results = [
      { key: "cpu", value: "é".repeat(1025), error: "" },
      { key: "other", value: "x", error: "" },
    ];
    const { writes } = state.metadata(createAgentState(), { results, now: NOW });
    const row = writes[0]?.rows[0] as string[];
    expect(writes[0]?.rows.length).toBe(1);
    expect(row).toContain("é".repeat(1024));
    expect(row.some((value) => /exceeded 2048 bytes/.test(String(value)))).toBe(true);
    expect(
      state.metadata(createAgentState(), { results: [{ key: "no", value: "", error: "" }], now: NOW }).writes,
    ).toEqual([]);
  });
});
