// `slipway share add|remove WORKSPACE --user USER… --group GROUP… [--everyone]`: shares a workspace, or stops sharing it.
import { usageError } from "#base/usage-error.ts";
import { type PatchWorkspaceAcl, WORKSPACE_ROLES } from "#schema/workspaces/acl.ts";
import { readArguments } from "../../arguments.ts";
import type { RunVerb } from "../../verb.ts";
import { getGroup } from "../groups/find.ts";
import { withServer } from "../remote.ts";
import { getUser } from "../users/find.ts";
import { selectWorkspace } from "../workspaces/find.ts";
import { formatAcl } from "./status.ts";

const createVerb =
  (verb: "add" | "remove"): RunVerb =>
  async (input) => {
    const { words, value, list, has } = readArguments(input.argv, {
      ...(verb === "add" ? { values: ["role"] as const } : {}),
      lists: ["user", "group"],
      switches: ["everyone"],
    });
    if (list.user.length + list.group.length === 0 && !has.everyone) {
      throw usageError(`share ${verb}`, "expected --user, --group or --everyone");
    }
    const role = verb === "remove" ? "" : parseRole((value as { role?: string }).role ?? "use");
    const findWorkspace = selectWorkspace(input, words);
    return withServer(`share ${verb}`, input, value, async ({ client }) => {
      const { id, organization_id } = await findWorkspace(client);
      const path = `/api/v2/workspaces/${id}/acl` as const;
      const users = await Promise.all(list.user.map((name) => getUser(client, name)));
      const groups = await Promise.all(list.group.map((name) => getGroup(client, organization_id, name)));
      // The group of all members of an organization has the organization's id.
      const everyone = has.everyone ? [{ id: organization_id }] : [];
      await client.patch(path, {
        user_roles: Object.fromEntries(users.map((one) => [one.id, role])),
        group_roles: Object.fromEntries([...groups, ...everyone].map((one) => [one.id, role])),
      } satisfies PatchWorkspaceAcl);
      const acl = await client.get(path);
      input.print(has.json ? JSON.stringify(acl) : formatAcl(acl));
    });
  };

const parseRole = (text: string): string => {
  if (WORKSPACE_ROLES.some((role) => role === text)) return text;
  throw usageError("--role", `expected ${WORKSPACE_ROLES.join(" or ")}`);
};

export const add = createVerb("add");
export const remove = createVerb("remove");
