// Decides whether the user may restore and delete copies of a workspace's files: this requires permission to enter and to change the
// workspace. Administrators of an organization or of templates can see a workspace without these permissions.
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { call } from "../../data/api.ts";
import { isSiteOwner, me } from "../../data/session.ts";

export const canReplaceFiles = async ({ id, owner_id }: Workspace): Promise<boolean> => {
  if (owner_id === me.value?.id || isSiteOwner.value) return true;
  const object = { resource_type: "workspace", resource_id: id };
  const checks = { enter: { object, action: "ssh" }, change: { object, action: "update" } };
  const { enter = false, change = false } = await call("POST /authcheck", { body: { checks } });
  return enter && change;
};
