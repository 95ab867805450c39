// Workspaces in any state, for the tables of times: only the relevant fields are given, the rest have defaults.
import type { NewBuild, WorkspaceState } from "#actors/workspace/decision.ts";
import { DEFAULT_RULES, type ScheduleRules } from "#actors/workspace/schedule-rules.ts";
import { NIL_UUID } from "#base/ids.ts";

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
/** A Tuesday. */
export const START = Date.UTC(2030, 0, 1, 12);

export type Facts = {
  workspace?: Partial<WorkspaceState["workspace"]>;
  build?: Partial<WorkspaceState["build"]>;
  job?: Partial<WorkspaceState["job"]>;
};

/** Defaults of a new build, except its IDs, transition and initiator. */
export const PLAIN_BUILD = {
  template_version_id: NIL_UUID,
  template_version_preset_id: null,
  initiator_id: NIL_UUID,
  orphan: false,
  log_level: "",
  parameters: [],
  provisioner: "echo",
  file_id: NIL_UUID,
  tags: {},
};

/** Returns the n-th build; by default a start by a person. */
export const buildWith = (n: number, overrides: Partial<NewBuild> = {}): NewBuild => ({
  ...PLAIN_BUILD,
  id: `build-${n}`,
  job_id: `job-${n}`,
  job_key: n,
  transition: "start",
  reason: "initiator",
  ...overrides,
});

/** The state before its first build. */
export const NEW_WORKSPACE: WorkspaceState["workspace"] = {
  id: "workspace",
  owner_id: NIL_UUID,
  part: 0,
  organization_id: NIL_UUID,
  template_id: NIL_UUID,
  name: "dev",
  automatic_updates: "never",
  autostart_schedule: null,
  ttl_ms: null,
  favorite: false,
  user_acl: {},
  group_acl: {},
  access_lost_at: null,
  task_id: null,
  created_at: START,
  updated_at: START,
  last_used_at: START,
  dormant_at: null,
  deleting_at: null,
  next_start_at: null,
  autostart_no_user_data: false,
  deleted: false,
  trashed_until: null,
  trashed_bytes: null,
  latest_build_id: "",
  status: "pending",
  version: 0,
};

/** Defaults: started successfully at START, without deadline or schedule. */
export const stateWith = ({ workspace = {}, build = {}, job = {} }: Facts = {}): WorkspaceState => ({
  workspace: {
    ...NEW_WORKSPACE,
    owner_id: "owner",
    latest_build_id: "build-1",
    status: "running",
    version: 1,
    ...workspace,
  },
  build: {
    id: "build-1",
    workspace_id: "workspace",
    build_number: 1,
    job_id: "job-1",
    template_version_id: NIL_UUID,
    template_version_preset_id: null,
    initiator_id: "owner",
    transition: "start",
    reason: "initiator",
    orphan: false,
    log_level: "",
    daily_cost: 0,
    deadline: null,
    max_deadline: null,
    created_at: START,
    updated_at: START,
    state: null,
    followed_by: null,
    kept_ms: null,
    sealed_snapshot_value: "",
    no_user_data: false,
    restored_snapshot_id: null,
    restored_workspace_id: null,
    restores_once: false,
    ...build,
  },
  job: {
    id: "job-1",
    key: 1,
    created_at: START,
    updated_at: START,
    started_at: START,
    canceled_at: null,
    completed_at: START,
    error: "",
    error_code: "",
    worker_id: null,
    worker_name: "",
    attempts: 1,
    logs_length: 0,
    logs_overflowed: false,
    ...job,
  },
  tags: {},
  timings: [],
  agent_ids: [],
  capturing: null,
});

export const createRules = (rules: Partial<ScheduleRules> = {}): ScheduleRules => ({ ...DEFAULT_RULES, ...rules });

/** A failed job. */
export const FAILED = { error: "broken" };
export const PENDING = { started_at: null, completed_at: null };

export const iso = (ms: number | null | undefined): string | null | undefined =>
  ms === null || ms === undefined ? ms : new Date(ms).toISOString().slice(0, 16);
