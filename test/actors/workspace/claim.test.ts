// Which workspaces can be claimed, and the result of a claim.
import { describe, expect, test } from "bun:test";
import { type Claim, isClaim, toClaimChange } from "#actors/workspace/claim.ts";
import type { Change, NewBuild } from "#actors/workspace/decision.ts";
import { NIL_UUID } from "#base/ids.ts";
import { guardUser } from "#db/users/users.ts";
import { PREBUILDS_USER_ID } from "#schema/workspaces/prebuilds.ts";
import { FAILED, type Facts, HOUR, PENDING, START, stateWith } from "./schedule-state.ts";

const READY: Facts = {
  workspace: { owner_id: PREBUILDS_USER_ID, name: "prebuild-1", group_acl: { everyone: "admin" }, favorite: true },
  build: { initiator_id: PREBUILDS_USER_ID, template_version_preset_id: "preset" },
};
const build: NewBuild = {
  id: "build-2",
  job_id: "job-2",
  job_key: 2,
  transition: "start",
  reason: "initiator",
  initiator_id: "ada",
  template_version_id: NIL_UUID,
  template_version_preset_id: "preset",
  orphan: false,
  log_level: "",
  parameters: [{ name: "size", value: "small" }],
  provisioner: "echo",
  file_id: NIL_UUID,
  tags: {},
};
const CLAIM: Claim = {
  owner_id: "ada",
  name: "mine",
  autostart_schedule: null,
  ttl_ms: HOUR,
  automatic_updates: "always",
  task_id: null,
  build,
};
const readyState = (overrides: Facts = {}) =>
  stateWith({
    workspace: { ...READY.workspace, ...overrides.workspace },
    build: { ...READY.build, ...overrides.build },
    job: { ...READY.job, ...overrides.job },
  });

describe("[PB-7] a prebuild that is unavailable cannot be claimed", () => {
  // biome-ignore format: a table of cases
  const cases: [string, Facts, Partial<NewBuild>?][] = [
    ["of another user", { workspace: { owner_id: "bob" } }],
    ["deleted", { workspace: { deleted: true } }],
    ["dormant", { workspace: { dormant_at: START } }],
    ["being built", { job: PENDING }],
    ["failed", { job: FAILED }],
    ["stopped", { build: { transition: "stop" } }],
    ["started by another user", { build: { initiator_id: "bob" } }],
    ["of another version", {}, { template_version_id: "other" }],
    ["of another preset", {}, { template_version_preset_id: "other" }],
  ];
  test.each(cases)("%s", (_, facts, otherBuild = {}) => {
    expect(toClaimChange(readyState(facts), { ...CLAIM, build: { ...build, ...otherBuild } }, START)).toBeUndefined();
  });
});

test("[PB-7] a claim changes owner, name and times, revokes every share, and queues the build, unless another claim was first", () => {
  const { state, writes, events, effects } = toClaimChange(
    { ...readyState(), agent_ids: ["a"] },
    CLAIM,
    START + HOUR,
  ) as Change;
  expect(state.workspace).toMatchObject({
    owner_id: "ada",
    name: "mine",
    ttl_ms: HOUR,
    automatic_updates: "always",
    last_used_at: START + HOUR,
    group_acl: {},
    task_id: null,
    user_acl: {},
    favorite: false,
    latest_build_id: "build-2",
  });
  expect(state.build).toMatchObject({ id: "build-2", build_number: 2, initiator_id: "ada", deadline: null });
  // The new owner must still exist, and the workspace must be unclaimed.
  expect(writes[0]).toEqual(guardUser({ id: "ada" }));
  expect(writes[1]?.sql).toContain("owner_id");
  expect(writes[1]?.expect).toBe(1);
  expect(events).toContainEqual({ topic: "agent_gone", agent_id: "a" });
  expect(events).toContainEqual({ topic: "access_changed" });
  expect(effects).toEqual([{ do: "submit", job_id: "job-2" }]);
  // A second claim fails, because the workspace has an owner.
  expect(toClaimChange(state, { ...CLAIM, name: "other" }, START + HOUR)).toBeUndefined();
});

describe("[PB-9] whether a build belongs to a claim", () => {
  const storeWithBuildBy = (initiator_id: string) =>
    ({ get: async () => ({ initiator_id }) }) as unknown as Parameters<typeof isClaim>[0];
  const requested = { workspace_id: "w", build_number: 2, initiator_id: "ada", transition: "start" } as const;
  const cases: [string, boolean, Promise<boolean>][] = [
    [
      "a start that follows a build by the prebuilds user",
      true,
      isClaim(storeWithBuildBy(PREBUILDS_USER_ID), { owner_id: "ada" }, requested),
    ],
    ["not after another build", false, isClaim(storeWithBuildBy("ada"), { owner_id: "ada" }, requested)],
    [
      "not the first build",
      false,
      isClaim(storeWithBuildBy(PREBUILDS_USER_ID), { owner_id: "ada" }, { ...requested, build_number: 1 }),
    ],
    [
      "not a stop",
      false,
      isClaim(storeWithBuildBy(PREBUILDS_USER_ID), { owner_id: "ada" }, { ...requested, transition: "stop" }),
    ],
    [
      "not while the prebuilds user is the owner",
      false,
      isClaim(storeWithBuildBy(PREBUILDS_USER_ID), { owner_id: PREBUILDS_USER_ID }, requested),
    ],
  ];
  test.each(cases)("%s", async (_, answer, result) => {
    expect(await result).toBe(answer);
  });
});

test("[PB-20] claiming a shared prebuild is recorded as a loss of access; claiming an unshared one is not", () => {
  const claimWith = (facts: Facts) => (toClaimChange(readyState(facts), CLAIM, START) as Change).state.workspace;
  expect(claimWith({})).toMatchObject({ group_acl: {}, access_lost_at: START });
  expect(claimWith({ workspace: { group_acl: {} } }).access_lost_at).toBeNull();
});
