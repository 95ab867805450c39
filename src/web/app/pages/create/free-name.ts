// Finds unused names for new workspaces.
import { toWorkspaceName } from "#base/links/repository-address.ts";
import { me } from "../../data/session.ts";
import { workspaces } from "../../data/workspaces.ts";

/** Returns a name based on the template or repository, with a number if it is taken. */
export const findFreeName = (preferredName: string): string => {
  const base = toWorkspaceName(preferredName);
  const takenNames = new Set<string>();
  for (const one of workspaces.value.values())
    if (one.owner_id === me.value?.id) takenNames.add(one.name.toLowerCase());
  let name = base;
  for (let number = 2; takenNames.has(name.toLowerCase()); number++) name = `${base}-${number}`;
  return name;
};
