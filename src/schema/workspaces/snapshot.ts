// Wire shapes of snapshots: copies of a workspace's files at one moment.
import { type Static, Type as t } from "@sinclair/typebox";
import { time, uuid } from "../fields.ts";
import { oneOf } from "../one-of.ts";
import { named, namedObject } from "../shape-names.ts";
import { strictObject } from "../strict.ts";
import { lineText } from "../text.ts";

/**
 * The methods of copying files, from the cheapest to the most expensive. `volume`: a second volume of a Docker Engine. `module`: a module
 * of a Terraform template.
 */
export const SNAPSHOT_METHODS = ["btrfs", "reflink", "archive", "volume", "module"] as const;
export type SnapshotMethod = (typeof SNAPSHOT_METHODS)[number];

export const SNAPSHOT_STATUSES = ["creating", "ready", "failed", "restoring", "deleting"] as const;
export type SnapshotStatus = (typeof SNAPSHOT_STATUSES)[number];

/**
 * The purpose of a snapshot: a user's request, the template's policy on stop, a fork, the source of a home backup, or files fetched from a
 * home backup.
 */
export const SNAPSHOT_REASONS = ["manual", "stop", "fork", "backup", "fetched"] as const;
export type SnapshotReason = (typeof SNAPSHOT_REASONS)[number];

/** Returns whether a snapshot with this purpose is temporary: it is deleted as soon as its purpose is fulfilled. */
export const isTemporary = (reason: SnapshotReason): boolean => reason === "fork" || reason === "backup";

/** Maximum number of snapshots per workspace, without failed snapshots and those of forks and home backups. */
export const MAX_SNAPSHOTS = 50;

/** Returns whether the server can copy files of workspaces of this provisioner, which the trash and home backups require. */
export const hasFiles = (provisioner: string): boolean => provisioner === "local" || provisioner === "docker";

/**
 * Returns why workspaces of this provisioner cannot have snapshots; undefined if they can. `has_snapshot_module`: the template has a module
 * that creates snapshots.
 */
export const findSnapshotProblem = (
  provisioner: string,
  { has_snapshot_module = false }: { readonly has_snapshot_module?: boolean } = {},
): string | undefined => {
  if (hasFiles(provisioner) || (provisioner === "terraform" && has_snapshot_module)) return undefined;
  if (provisioner === "terraform") {
    return "Snapshots are not available for this template, because it has no folder slipway-snapshot with a Terraform module that copies its disks.";
  }
  if (provisioner === "external") return "Snapshots are not available for workspaces that an external worker builds.";
  return "Snapshots are not available for this template, because its workspaces keep no files.";
};

const method = named(
  "SnapshotMethod",
  oneOf(
    SNAPSHOT_METHODS,
    "How files are copied. `btrfs`, `reflink`: unchanged data is shared with the workspace. `archive`: a compressed file. `volume`: a second volume of the Docker Engine. `module`: a Terraform module of the template.",
  ),
);

export const Snapshot = namedObject("Snapshot", {
  id: uuid(),
  workspace_id: uuid(),
  name: t.String({ description: "The name of the snapshot; may be empty." }),
  reason: named(
    "SnapshotReason",
    oneOf(
      SNAPSHOT_REASONS,
      "Why the snapshot was created. `stop`: by the template's policy. `fork`: to copy files to other workspaces; deleted afterwards. `backup`: to copy files to a home backup; deleted afterwards. `fetched`: from a home backup.",
    ),
  ),
  status: named(
    "SnapshotStatus",
    oneOf(SNAPSHOT_STATUSES, "The status of the snapshot. `restoring`: a build is copying its files."),
  ),
  method: t.Optional(method),
  bytes: t.Integer({
    minimum: 0,
    description:
      "The size of the files in bytes or, for an archive, the size of the archive. 0 until the snapshot is ready, and for the method `module`.",
  }),
  error: t.String({ description: "Why the snapshot failed; empty otherwise." }),
  created_by: uuid("The ID of the user who requested the snapshot; the workspace's owner if it was created on stop."),
  created_at: time(),
  updated_at: time(),
});
export type Snapshot = Static<typeof Snapshot>;

export const Snapshots = namedObject("Snapshots", {
  snapshots: t.Array(Snapshot, { description: "The snapshots, newest first." }),
  bytes: t.Integer({ minimum: 0, description: "The total size of the snapshots in bytes." }),
  limit: t.Integer({ description: "The maximum number of snapshots of a workspace." }),
  method: t.Optional({
    ...method,
    description: "How the next snapshot copies files; absent if the workspace can't have snapshots.",
  }),
  unsupported: t.String({ description: "Why the workspace can't have snapshots; empty if it can." }),
});
export type Snapshots = Static<typeof Snapshots>;

export const CreateSnapshot = named(
  "CreateSnapshot",
  strictObject({
    name: t.Optional(lineText({ maxLength: 64, description: "The name of the snapshot; may be empty." })),
  }),
);
export type CreateSnapshot = Static<typeof CreateSnapshot>;
