// Names for new workspaces that their person has not used yet.
import { workspaceNameFor } from "#base/links/repository-address.ts";
import { me } from "../../data/session.ts";
import { workspaces } from "../../data/workspaces.ts";

/** A name like that of the template or repository, with a number where it is taken. */
export const freeWorkspaceName = (like: string): string => {
  const base = workspaceNameFor(like);
  const taken = new Set<string>();
  for (const one of workspaces.value.values()) if (one.owner_id === me.value?.id) taken.add(one.name.toLowerCase());
  let name = base;
  for (let at = 2; taken.has(name.toLowerCase()); at++) name = `${base}-${at}`;
  return name;
};
