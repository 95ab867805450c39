// Lists by name what is deleted together with a workspace.
import { call } from "../data/api.ts";
import { chats } from "../data/chats.ts";
import { useResource } from "../data/resource.ts";

const loadDeletedThings = async (id: string) => {
  const path = { workspace: id };
  const [workspace, { shares }] = await Promise.all([
    call("GET /workspaces/:workspace", { path }),
    call("GET /workspaces/:workspace/port-share", { path }),
  ]);
  const template = await call("GET /templates/:template", { path: { template: workspace.template_id } });
  const trashDays = template.has_trash ? template.trash_days : 0;
  return { resources: workspace.latest_build.resources, shares, shared_with: workspace.shared_with, days: trashDays };
};

const formatCount = (count: number, singular: string, plural: string): string =>
  count === 1 ? `1 ${singular}` : `${count} ${plural}`;

/** Shown in addition to the general text, once it is loaded. */
export const DeletionList = ({ id }: { id: string }) => {
  const { state } = useResource(`what goes ${id}`, () => loadDeletedThings(id));
  const { data } = state.value;
  const chatCount = [...chats.value.values()].filter(({ workspace_id }) => workspace_id === id).length;
  return (
    <>
      <span>
        {data && data.days > 0
          ? `Its machine and shared ports are removed. Its files stay in the trash for ${data.days} days, and you can restore it from there.`
          : "Its machine, disks and shared ports are removed. Its chats stay readable."}
      </span>
      {data && (
        <ul class="bare small mut">
          {data.resources.map((one) => (
            <li key={one.id}>
              {one.type} <b>{one.name}</b>
              {one.agents.length > 0 && ` with ${one.agents.map(({ name }) => name).join(", ")}`}
            </li>
          ))}
          {data.shares.length > 0 && (
            <li>
              {formatCount(data.shares.length, "shared port", "shared ports")}:{" "}
              {data.shares.map(({ port }) => port).join(", ")}
            </li>
          )}
          {data.shared_with.length > 0 && (
            <li>Shared with {formatCount(data.shared_with.length, "user or group", "users and groups")}</li>
          )}
          {chatCount > 0 && <li>Kept: {formatCount(chatCount, "chat", "chats")}, read-only</li>}
        </ul>
      )}
    </>
  );
};
