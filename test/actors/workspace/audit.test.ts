// The audit log entries of a workspace, derived from two of its states.
import { describe, expect, test } from "bun:test";
import { buildWorkspaceEntries } from "#actors/workspace/audit.ts";
import type { WorkspaceState } from "#actors/workspace/decision.ts";
import { type Origin, withOrigin } from "#base/origin.ts";
import { HOUR, START, stateWith } from "./schedule-state.ts";

const ORIGIN: Origin = { user_id: "ann", ip: "192.0.2.1", user_agent: "", request_id: "r" };
const state = stateWith({});
const newBuild = (reason: string): WorkspaceState => ({
  ...state,
  build: { ...state.build, id: "another", build_number: 9, transition: "stop", reason, initiator_id: "ann" },
});
const listEntries = (before: WorkspaceState | undefined, after: WorkspaceState, requested = true) =>
  withOrigin(requested ? () => ORIGIN : undefined, () => buildWorkspaceEntries(before, after, START)).map(
    ({ action, resource_type, build_reason, user_id }) => [action, resource_type, build_reason ?? "", user_id ?? null],
  );

describe("[AU-7] the audit log of workspace changes", () => {
  test("usage, job states and derived times are not recorded", () => {
    const { workspace } = state;
    expect(listEntries(state, state)).toEqual([]);
    expect(listEntries(state, { ...state, workspace: { ...workspace, last_used_at: START, version: 99 } })).toEqual([]);
    expect(listEntries(state, { ...state, workspace: { ...workspace, next_start_at: START + HOUR } })).toEqual([]);
    expect(listEntries(state, { ...state, job: { ...state.job, logs_length: 7 } })).toEqual([]);
    expect(listEntries(state, { ...state, build: { ...state.build, deadline: START + HOUR } })).toEqual([]);
  });

  test("changes by people, with their consequences in the same entry", () => {
    const workspace = { ...state.workspace, ttl_ms: HOUR, next_start_at: START + HOUR };
    const [entry] = buildWorkspaceEntries(state, { ...state, workspace }, START);
    expect([entry?.action, entry?.resource_type]).toEqual(["write", "workspace"]);
    const canceled = { ...state, job: { ...state.job, canceled_at: START } };
    expect(listEntries({ ...state, job: { ...state.job, canceled_at: null } }, canceled)).toEqual([
      ["write", "workspace_build", state.build.reason, null],
    ]);
  });

  test("[AU-4] builds by the server have no user; builds without a request, such as from a chat, have their initiator", () => {
    expect(listEntries(state, newBuild("autostop"), false)).toEqual([["stop", "workspace_build", "autostop", null]]);
    expect(listEntries(state, newBuild("initiator"), false)).toEqual([["stop", "workspace_build", "initiator", "ann"]]);
    expect(listEntries(state, newBuild("initiator"))).toEqual([["stop", "workspace_build", "initiator", null]]);
    const deleted = { ...state, workspace: { ...state.workspace, deleted: true } };
    expect(listEntries(state, deleted, false).map((entry) => entry.slice(0, 2))).toEqual([["delete", "workspace"]]);
    expect(listEntries(undefined, state).map((entry) => entry.slice(0, 2))).toEqual([
      ["create", "workspace"],
      [state.build.transition, "workspace_build"],
    ]);
  });
});
