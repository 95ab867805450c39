// Wire shapes of external workers and their keys.
import { type Static, Type as t } from "@sinclair/typebox";
import { oneOf } from "../one-of.ts";
import { namedObject } from "../shape-names.ts";

const Tags = t.Record(t.String({ maxLength: 64 }), t.String({ maxLength: 256 }), {
  description: "The tags of the workers that sign in with the key. They take jobs whose tags they have.",
});
const Name = t.String({
  minLength: 1,
  maxLength: 64,
  pattern: "^[a-zA-Z0-9]+(?:[-_.][a-zA-Z0-9]+)*$",
  description:
    "The name of the key: letters and digits in groups joined by single hyphens, dots or underscores. Unique in its organization.",
});

export const ProvisionerKey = namedObject("ProvisionerKey", {
  id: t.String({ format: "uuid" }),
  organization_id: t.String({ format: "uuid" }),
  name: t.String(),
  tags: Tags,
  created_by: t.String({ format: "uuid", description: "The ID of the user who created the key." }),
  created_by_name: t.String({
    description: "The username of the user who created the key; empty if the user was deleted.",
  }),
  created_at: t.String({ format: "date-time" }),
});
export type ProvisionerKey = Static<typeof ProvisionerKey>;

export const CreateProvisionerKeyRequest = namedObject("CreateProvisionerKeyRequest", {
  name: Name,
  tags: t.Optional(Tags),
});

export const NewProvisionerKey = namedObject("NewProvisionerKey", {
  id: t.String({ format: "uuid" }),
  name: t.String(),
  key: t.String({ description: "The provisioner key. It is returned only once." }),
});
export type NewProvisionerKey = Static<typeof NewProvisionerKey>;

const DAEMON_STATUSES = ["offline", "idle", "busy"] as const;

const CurrentJob = namedObject("ProvisionerCurrentJob", {
  id: t.String({ format: "uuid" }),
  status: t.Literal("running"),
  type: t.String({
    description: "The type of the job: `workspace_build`, `template_version_import` or `template_version_dry_run`.",
  }),
  workspace_id: t.Union([t.String({ format: "uuid" }), t.Null()], {
    description: "The ID of the workspace. Only for builds.",
  }),
  workspace_name: t.String({ description: "The name of the workspace; empty for jobs that are not builds." }),
  template_name: t.String({ description: "The name of the template; empty if it doesn't exist yet." }),
  started_at: t.Union([t.String({ format: "date-time" }), t.Null()], {
    description: "When the worker took the job; null if it is unknown.",
  }),
});
export type CurrentJob = Static<typeof CurrentJob>;

export const ProvisionerDaemon = namedObject("ProvisionerDaemon", {
  id: t.String({ format: "uuid" }),
  organization_id: t.String({ format: "uuid" }),
  key_id: t.String({ format: "uuid", description: "The ID of the provisioner key that the worker signed in with." }),
  name: t.String(),
  version: t.String({ description: "The version of Slipway that the worker runs." }),
  provisioners: t.Array(t.String(), {
    description: "The provisioners that the worker supports: local, docker, terraform or echo.",
  }),
  tags: Tags,
  slots: t.Integer({ description: "The maximum number of concurrent jobs." }),
  status: oneOf(DAEMON_STATUSES, "The worker's status; `busy` while it is running a job."),
  current_job: t.Union([CurrentJob, t.Null()], { description: "The first of the jobs that the worker is running." }),
  created_at: t.String({ format: "date-time", description: "When the worker first signed in." }),
  last_seen_at: t.String({ format: "date-time", description: "When the worker last sent a message." }),
});
export type ProvisionerDaemon = Static<typeof ProvisionerDaemon>;

export const ProvisionerKeyDaemons = namedObject("ProvisionerKeyDaemons", {
  key: ProvisionerKey,
  daemons: t.Array(ProvisionerDaemon, { description: "The workers that have signed in with this key." }),
});
export type ProvisionerKeyDaemons = Static<typeof ProvisionerKeyDaemons>;
