// The default permissions of the user's new chats.
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Failed } from "../../parts/empty.tsx";
import { PermissionsEditor } from "../../parts/permissions-editor.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";

export const Permissions = () => {
  const { state, again } = useResource("permissions", () => call("GET /chats/config/user-permissions"));
  const { data, error } = state.value;
  if (error) return <Failed what="Can't load your permissions" error={error} again={again} />;
  if (!data) return <Skeleton lines={6} />;
  return (
    <PermissionsEditor
      key={JSON.stringify(data)}
      title="Permissions for new chats"
      kept={data.permissions}
      none="Server default"
      asks="Ask me"
      save={async (permissions) => {
        await call("PUT /chats/config/user-permissions", { body: { permissions } });
        await again();
      }}
    />
  );
};
