// The snapshots of a workspace: copies of its files, to create, restore and delete.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { formatSize } from "#base/format-size.ts";
import type { Snapshot, SnapshotMethod, SnapshotStatus } from "#schema/workspaces/snapshot.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Button, IconButton } from "../../parts/button.tsx";
import { confirmAction } from "../../parts/dialog.tsx";
import { Empty, Failed } from "../../parts/empty.tsx";
import { Field } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { setTo } from "../../parts/handlers.ts";
import { Skeleton } from "../../parts/skeleton.tsx";
import { Time } from "../../parts/time.tsx";
import { showToast } from "../../shell/toasts.tsx";
import { canReplaceFiles } from "./can-replace-files.ts";

const METHOD_TEXTS: Record<SnapshotMethod, string> = {
  btrfs: "The workspace is paused for a moment. Unchanged files take no space.",
  reflink: "The workspace is paused while its files are copied. Unchanged files take no space.",
  archive: "The workspace is paused while its files are copied into a compressed archive.",
  volume: "The workspace is paused while its volumes are copied. Files outside of volumes are not included.",
  module: "The template copies its disks. The workspace keeps running: stop it first for files that are consistent.",
};

const STATUS_LABELS: Record<SnapshotStatus, string> = {
  creating: "Creating",
  ready: "Ready",
  failed: "Failed",
  restoring: "Restoring",
  deleting: "Deleting",
};

export const SnapshotList = ({ workspace }: { workspace: Workspace }) => {
  const { id, latest_build } = workspace;
  const path = { workspace: id };
  const { state, reload } = useResource(`snapshots ${id}`, async () => {
    const [list, canReplace] = await Promise.all([
      call("GET /workspaces/:workspace/snapshots", { path }),
      canReplaceFiles(workspace),
    ]);
    return { ...list, mayReplace: canReplace };
  });
  const isNaming = useSignal(false);
  // The workspace's stream reports every change to a snapshot.
  useEffect(() => void reload(), [workspace]);
  const { data, error } = state.value;
  if (error && !data) return <Failed title="Can't load the snapshots" error={error} reload={reload} />;
  if (!data) return <Skeleton lines={5} />;
  if (data.unsupported !== "") return <Empty icon="box" title="No snapshots" text={data.unsupported} />;
  const isBusy = data.snapshots.some(({ status }) => status === "creating" || status === "restoring");
  const createButton = (
    <Button look="primary" icon="plus" disabled={isBusy} onPress={setTo(isNaming, true)}>
      Create snapshot
    </Button>
  );
  const confirmRestore = (one: Snapshot): void =>
    confirmAction({
      title: `Restore ${formatSnapshotName(one)}?`,
      text: `All files of ${workspace.name} are replaced with those of the snapshot.${
        latest_build.status === "running" ? " The workspace restarts." : ""
      }`,
      confirmLabel: "Restore files",
      cancelLabel: "Cancel",
      act: async () => {
        await call("POST /workspaces/:workspace/snapshots/:snapshot/restore", { path: { ...path, snapshot: one.id } });
        await reload();
        showToast("Restoring files");
      },
    });
  const confirmDelete = (one: Snapshot): void =>
    confirmAction({
      title: `Delete ${formatSnapshotName(one)}?`,
      text: "You can't recover a deleted snapshot.",
      confirmLabel: "Delete snapshot",
      cancelLabel: "Keep it",
      act: async () => {
        await call("DELETE /workspaces/:workspace/snapshots/:snapshot", { path: { ...path, snapshot: one.id } });
        await reload();
      },
    });
  return (
    <section class="stack" aria-label="Snapshots">
      {isNaming.value && <NameDialog workspace={workspace} close={setTo(isNaming, false)} onCreated={reload} />}
      {data.snapshots.length === 0 ? (
        <Empty
          icon="box"
          title="No snapshots yet"
          text={`A snapshot is a copy of all files of the workspace that you can restore later. ${data.method ? METHOD_TEXTS[data.method] : ""}`}
        >
          {createButton}
        </Empty>
      ) : (
        <>
          <div class="line wrap">
            <span class="dim small">
              {data.snapshots.length} of {data.limit}
              {data.method === "module" ? "." : `, ${formatSize(data.bytes)}.`}
              {data.method ? ` ${METHOD_TEXTS[data.method]}` : ""}
            </span>
            <span class="push">{createButton}</span>
          </div>
          <ul class="panel list">
            {data.snapshots.map((one) => (
              <li key={one.id} class="item">
                <span class="med clip">{formatSnapshotName(one)}</span>
                {data.mayReplace && (
                  <span class="line">
                    <Button small disabled={one.status !== "ready" || isBusy} onPress={() => confirmRestore(one)}>
                      Restore
                    </Button>
                    <IconButton
                      icon="trash"
                      small
                      label={`Delete ${formatSnapshotName(one)}`}
                      disabled={(one.status !== "ready" && one.status !== "failed") || one.reason === "backup"}
                      onPress={() => confirmDelete(one)}
                    />
                  </span>
                )}
                <span class={one.error ? "sub t-bad" : "sub"}>
                  {one.error || STATUS_LABELS[one.status]}
                  {hasSize(one) && `, ${formatSize(one.bytes)}`}, <Time at={one.created_at} />
                </span>
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
};

/** The size of a snapshot made by a template is unknown. */
const hasSize = ({ status, method }: Snapshot): boolean =>
  method !== "module" && (status === "ready" || status === "restoring");

const REASON_NAMES: Partial<Record<Snapshot["reason"], string>> = { stop: "Created on stop", backup: "For a backup" };

const formatSnapshotName = ({ name, reason, id }: Snapshot): string =>
  name || (REASON_NAMES[reason] ?? `Snapshot ${id.slice(0, 8)}`);

type NameProps = { readonly workspace: Workspace; readonly close: () => void; readonly onCreated: () => Promise<void> };

const NameDialog = ({ workspace, close, onCreated }: NameProps) => (
  <FormDialog
    title="Create snapshot"
    submitLabel="Create snapshot"
    onClose={close}
    act={async ({ name = "" }) => {
      const body = name.trim() === "" ? {} : { name: name.trim() };
      await call("POST /workspaces/:workspace/snapshots", { path: { workspace: workspace.id }, body });
      await onCreated();
    }}
  >
    {(problems) => <Field label="Name" name="name" maxLength={64} hint="Optional." error={problems.name} />}
  </FormDialog>
);
