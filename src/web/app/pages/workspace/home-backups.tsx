// The home backups of a workspace: copies of its files on another machine, to create, restore and delete.
import { useEffect } from "preact/hooks";
import { formatSize } from "#base/format-size.ts";
import type { HomeBackup, HomeBackupStatus, HomeBackups } from "#schema/workspaces/home-backup.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Button, IconButton } from "../../parts/button.tsx";
import { confirmAction } from "../../parts/dialog.tsx";
import { Failed } from "../../parts/empty.tsx";
import { formatDuration } from "../../parts/format-time.ts";
import { Skeleton } from "../../parts/skeleton.tsx";
import { Time } from "../../parts/time.tsx";
import { showToast } from "../../shell/toasts.tsx";
import { canReplaceFiles } from "./can-replace-files.ts";

const STATUS_LABELS: Record<HomeBackupStatus, string> = {
  creating: "Creating",
  ready: "Ready",
  failed: "Failed",
  deleting: "Deleting",
};

export const HomeBackupList = ({ workspace }: { workspace: Workspace }) => {
  const path = { workspace: workspace.id };
  const { state, reload } = useResource(`home backups ${workspace.id}`, async () => {
    const [list, canReplace] = await Promise.all([
      call("GET /workspaces/:workspace/home-backups", { path }),
      canReplaceFiles(workspace),
    ]);
    return { ...list, mayReplace: canReplace };
  });
  // The workspace's stream reports when a backup has ended, because its snapshot is removed then.
  useEffect(() => void reload(), [workspace]);
  const { data, error } = state.value;
  if (error && !data) return <Failed title="Can't load the backups" error={error} reload={reload} />;
  if (!data) return <Skeleton lines={3} />;
  // The workspace's users cannot fix this. Owners of the server see it in the administration.
  if (data.unsupported !== "" && data.backups.length === 0) return null;
  const isBusy = data.backups.some(({ status }) => status === "creating");
  const create = async (): Promise<void> => {
    await call("POST /workspaces/:workspace/home-backups", { path });
    await reload();
  };
  const confirmFetch = (one: HomeBackup): void =>
    confirmAction({
      title: "Fetch this backup?",
      text: "Its files become a snapshot of the workspace, which you can restore when it is ready. The workspace can't be started or stopped until then.",
      confirmLabel: "Fetch backup",
      cancelLabel: "Cancel",
      act: async () => {
        await call("POST /workspaces/:workspace/home-backups/:backup/fetch", { path: { ...path, backup: one.id } });
        await reload();
        showToast("Fetching the backup");
      },
    });
  const confirmDelete = (one: HomeBackup): void =>
    confirmAction({
      title: "Delete this backup?",
      text: "You can't recover a deleted backup.",
      confirmLabel: "Delete backup",
      cancelLabel: "Keep it",
      act: async () => {
        await call("DELETE /workspaces/:workspace/home-backups/:backup", { path: { ...path, backup: one.id } });
        await reload();
      },
    });
  return (
    <section class="stack" aria-labelledby="home-backups">
      <div class="head">
        <h2 id="home-backups">Backups</h2>
        {data.unsupported === "" && data.mayReplace && (
          <span class="push">
            <Button icon="save" disabled={isBusy} onPress={create}>
              Back up now
            </Button>
          </span>
        )}
      </div>
      <p class="dim small">{data.unsupported || describeBackups(data)}</p>
      {data.backups.length > 0 && (
        <ul class="panel list">
          {data.backups.map((one) => (
            <li key={one.id} class="item">
              <span class="med">
                <Time at={one.created_at} />
              </span>
              {data.mayReplace && (
                <span class="line">
                  <Button small disabled={one.status !== "ready" || isBusy} onPress={() => confirmFetch(one)}>
                    Fetch
                  </Button>
                  <IconButton
                    icon="trash"
                    small
                    label={`Delete the backup of ${one.created_at}`}
                    disabled={one.status !== "ready" && one.status !== "failed"}
                    onPress={() => confirmDelete(one)}
                  />
                </span>
              )}
              <span class={one.error ? "sub t-bad" : "sub"}>
                {one.error || STATUS_LABELS[one.status]}
                {one.status === "ready" && `, ${formatSize(one.bytes)}, of which ${formatSize(one.added_bytes)} new`}
                {one.verified_at && (
                  <>
                    , verified <Time at={one.verified_at} />
                  </>
                )}
              </span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
};

const describeBackups = ({ interval_ms, location, bytes, backups }: HomeBackups): string => {
  const schedule =
    interval_ms === undefined ? "Created only on request" : `Created every ${formatDuration(interval_ms)}`;
  const total = backups.length > 0 ? ` Total size: ${formatSize(bytes)}.` : "";
  return `${schedule}, encrypted, in ${location}.${total}`;
};
