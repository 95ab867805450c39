// Wire shapes of trials: one prompt tried in several ways, each in a fork of the chat's workspace with a copy of the chat.
import { type Static, Type as t } from "@sinclair/typebox";
import { time, uuid } from "../fields.ts";
import { oneOf } from "../one-of.ts";
import { named, namedObject } from "../shape-names.ts";
import { strictObject } from "../strict.ts";

/** Limits for the number of ways in a trial. */
export const MIN_WAYS = 2;
export const MAX_WAYS = 8;
/** Maximum number of a user's ways that are not kept or discarded yet. */
export const MAX_OPEN_WAYS = 16;

/** Maximum duration of a check, in seconds. */
export const CHECK_SECONDS = 600;
export const MAX_CHECK_SECONDS = 3_600;
/** Bytes kept of a check's output, from its end. */
export const CHECK_OUTPUT_BYTES = 8_192;

export const WAY_STATUSES = [
  ...(["waiting", "working", "needs_you", "checking"] as const),
  ...(["passed", "failed", "finished", "stopped", "error"] as const),
] as const;
export type WayStatus = (typeof WAY_STATUSES)[number];

export const TRIAL_STATUSES = ["running", "ready", "keeping", "discarding", "kept", "discarded"] as const;
export type TrialStatus = (typeof TRIAL_STATUSES)[number];

const TrialCheck = namedObject("TrialCheck", {
  exit_code: t.Union([t.Integer(), t.Null()], {
    description: "The exit code of the check; null if it was stopped before it exited.",
  }),
  timed_out: t.Boolean({ description: "Whether the check was stopped because its timeout passed." }),
  output: t.String({ description: `The end of the check's output, at most ${CHECK_OUTPUT_BYTES} bytes.` }),
  duration_ms: t.Integer({ minimum: 0, description: "The duration of the check, in milliseconds." }),
});
export type TrialCheck = Static<typeof TrialCheck>;

const TrialChanges = namedObject("TrialChanges", {
  files: t.Integer({ minimum: 0, description: "The number of files that were changed, added or removed." }),
  added: t.Integer({ minimum: 0, description: "The number of added lines." }),
  removed: t.Integer({ minimum: 0, description: "The number of removed lines." }),
});
export type TrialChanges = Static<typeof TrialChanges>;

const TrialWay = namedObject("TrialWay", {
  number: t.Integer({
    minimum: 1,
    maximum: MAX_WAYS,
    description: "The number of the way within the trial, starting at 1.",
  }),
  status: named(
    "TrialWayStatus",
    oneOf(
      WAY_STATUSES,
      "The state of the way. `waiting`: its fork is being created. `needs_you`: its chat waits for an approval. `checking`: the check command is running. `passed`, `failed`: the result of the check. `finished`: there is no check. `error`: it failed for the reason in `error`.",
    ),
  ),
  error: t.String({ description: "Why the way failed or could not be deleted; empty otherwise." }),
  prompt: t.String({ description: "The prompt that the way's chat is sent." }),
  model_config_id: t.Optional(uuid("The ID of the model that the way uses; default: the chat's model.")),
  coding_agent: t.Optional(t.String({ description: "The coding agent of the way's chat." })),
  workspace_id: uuid("The ID of the fork. It is known before the workspace exists."),
  workspace_name: t.String({ description: "The name of the fork; the planned name until it exists." }),
  chat_id: uuid("The ID of the copied chat. It is known before the chat exists."),
  changes: t.Optional({
    ...TrialChanges,
    description: "The changes to files since the prompt; absent until the turn has ended, and if they are unknown.",
  }),
  changes_error: t.String({ description: "Why the changes are unknown; empty otherwise." }),
  check: t.Optional({ ...TrialCheck, description: "The result of the check command; absent until it has ended." }),
  cost_micros: t.Integer({
    description: "The cost of the way's chat in millionths of a US dollar. Calls without a price count as 0.",
  }),
  started_at: t.Optional(time("When the prompt was sent to the way's chat.")),
  ended_at: t.Optional(time("When the way's last turn ended.")),
  deleted: t.Boolean({ description: "Whether the way's workspace was deleted." }),
});
export type TrialWay = Static<typeof TrialWay>;

export const Trial = namedObject("Trial", {
  id: uuid(),
  chat_id: uuid("The ID of the chat that the ways start from."),
  workspace_id: uuid("The ID of the workspace that the ways start from."),
  owner_id: uuid(),
  status: named(
    "TrialStatus",
    oneOf(
      TRIAL_STATUSES,
      "The state of the trial. `ready`: all ways are done, and one of them can be kept. `keeping`, `discarding`: the forks are being deleted.",
    ),
  ),
  error: t.String({ description: "Why the last attempt to keep a way failed; empty otherwise." }),
  check_command: t.String({ description: "The command that checks each way; empty if there is no check." }),
  check_timeout_seconds: t.Integer({ description: "The timeout of the check command, in seconds." }),
  kept_way: t.Optional(t.Integer({ description: "The number of the way that is being kept or was kept." })),
  ways: t.Array(TrialWay),
  created_at: time(),
  updated_at: time(),
});
export type Trial = Static<typeof Trial>;

export const Trials = namedObject("Trials", { trials: t.Array(Trial, { description: "The trials, newest first." }) });
export type Trials = Static<typeof Trials>;

const prompt = (description: string) => t.Optional(t.String({ maxLength: 100_000, description }));

const CreateTrialWay = named(
  "CreateTrialWay",
  strictObject({
    prompt: prompt("The prompt of this way; default: the trial's prompt."),
    model_config_id: t.Optional(uuid("The ID of the model; default: the chat's model.")),
    coding_agent: t.Optional(
      t.Union([t.String({ maxLength: 64 }), t.Null()], {
        description: "The coding agent; default: the chat's. Null selects a model instead.",
      }),
    ),
  }),
);
export type CreateTrialWay = Static<typeof CreateTrialWay>;

export const CreateTrial = named(
  "CreateTrial",
  strictObject({
    prompt: prompt("The prompt for ways that don't have their own."),
    count: t.Optional(
      t.Integer({ minimum: MIN_WAYS, maximum: MAX_WAYS, description: "The number of ways; default 3." }),
    ),
    ways: t.Optional(
      t.Array(CreateTrialWay, {
        minItems: MIN_WAYS,
        maxItems: MAX_WAYS,
        description: "The ways. Needed only if they have their own prompts, models or agents.",
      }),
    ),
    check_command: t.Optional(
      t.String({
        maxLength: 10_000,
        description:
          "A command that runs with `sh -c` in the agent's folder of each fork when its turn ends. If empty, there is no check.",
      }),
    ),
    check_timeout_seconds: t.Optional(
      t.Integer({
        minimum: 1,
        maximum: MAX_CHECK_SECONDS,
        description: `The timeout of the check command, in seconds; default ${CHECK_SECONDS}.`,
      }),
    ),
  }),
);
export type CreateTrial = Static<typeof CreateTrial>;

export const KeepWay = named(
  "KeepWay",
  strictObject({ way: t.Integer({ minimum: 1, maximum: MAX_WAYS, description: "The number of the way to keep." }) }),
);

const TrialFolderDiff = namedObject("TrialFolderDiff", {
  root: t.String({ description: "The absolute path of the folder or repository in the workspace." }),
  unified_diff: t.String({
    description: "The changes as a unified diff. Files that are too large are omitted and noted.",
  }),
});

export const TrialDiff = namedObject("TrialDiff", {
  folders: t.Array(TrialFolderDiff, { description: "The folders and repositories with changes." }),
});
export type TrialDiff = Static<typeof TrialDiff>;
