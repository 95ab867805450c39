// The trash: deleted workspaces whose files still exist, to restore or delete permanently.
import { formatSize } from "#base/format-size.ts";
import type { Trash } from "#schema/workspaces/trash.ts";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Button, ButtonLink } from "../../parts/button.tsx";
import { confirmAction } from "../../parts/dialog.tsx";
import { Empty, Failed } from "../../parts/empty.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { Time } from "../../parts/time.tsx";
import { Frame } from "../../shell/frame.tsx";
import { showToast } from "../../shell/toasts.tsx";

type TrashedWorkspace = Trash["workspaces"][number];

export default function TrashPage() {
  const { state, reload } = useResource("trash", () => call("GET /workspaces/trash"));
  const { data, error } = state.value;
  return (
    <Frame title="Trash" crumbs={[{ label: "Workspaces", href: "/workspaces" }]}>
      <div class="page">
        {error && !data ? (
          <Failed title="Can't load the trash" error={error} reload={reload} />
        ) : data ? (
          <TrashList trash={data} reload={reload} />
        ) : (
          <Skeleton lines={5} />
        )}
      </div>
    </Frame>
  );
}

const TrashList = ({ trash, reload }: { trash: Trash; reload: () => Promise<void> }) => {
  if (trash.workspaces.length === 0) {
    return (
      <Empty
        icon="trash"
        title="The trash is empty"
        text="Deleted workspaces and their files stay here for a few days."
      >
        <ButtonLink look="primary" href="/workspaces">
          All workspaces
        </ButtonLink>
      </Empty>
    );
  }
  const restore = async ({ id, name }: TrashedWorkspace): Promise<void> => {
    const build = await call("POST /workspaces/:workspace/restore", { path: { workspace: id }, body: {} });
    await reload();
    showToast(build.workspace_name === name ? `${name} restored` : `${name} restored as ${build.workspace_name}`);
  };
  const confirmDelete = ({ id, name }: TrashedWorkspace): void =>
    confirmAction({
      title: `Delete ${name} permanently?`,
      text: "Its files and snapshots are permanently deleted.",
      confirmLabel: "Delete permanently",
      cancelLabel: "Keep it",
      isDanger: true,
      act: async () => {
        const body = { transition: "delete", permanent: true } as const;
        await call("POST /workspaces/:workspace/builds", { path: { workspace: id }, body });
        await reload();
        showToast(`Deleting ${name} permanently`);
      },
    });
  return (
    <section class="stack" aria-labelledby="trash">
      <p class="small mut" id="trash">
        {trash.workspaces.length === 1 ? "1 workspace" : `${trash.workspaces.length} workspaces`},{" "}
        {formatSize(trash.bytes)}. A restored workspace has its files, snapshots, parameters and chats; its shares are
        not restored.
      </p>
      <ul class="panel list">
        {trash.workspaces.map((one) => (
          <li key={one.id} class="item">
            <span class="med clip">
              {one.owner_name}/{one.name}
            </span>
            <span class="line">
              <Button small onPress={() => restore(one)} label={`Restore ${one.name}`}>
                Restore
              </Button>
              <Button small onPress={() => confirmDelete(one)} label={`Delete ${one.name} permanently`}>
                Delete
              </Button>
            </span>
            <span class="sub">
              {one.template_name}, {formatSize(one.bytes)}, deleted <Time at={one.deleted_at} ago />, kept until{" "}
              <Time at={one.kept_until} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
};
