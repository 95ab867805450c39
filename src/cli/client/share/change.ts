// `slipway share add|remove WORKSPACE --user USER… [--everyone]`: with whom a workspace is shared.
import { usageError } from "#base/usage-error.ts";
import { type PatchWorkspaceAcl, WORKSPACE_ROLES } from "#schema/workspaces/acl.ts";
import type { Client } from "#src/client.ts";
import { readArguments } from "../../arguments.ts";
import { EXIT, type RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { userNamed } from "../users/find.ts";
import { workspaceAsked } from "../workspaces/find.ts";
import { shown } from "./status.ts";

const changing =
  (verb: "add" | "remove"): RunVerb =>
  async (input) => {
    const { words, value, list, has } = readArguments(input.argv, {
      ...(verb === "add" ? { values: ["role"] as const } : {}),
      lists: ["user"],
      switches: ["everyone"],
    });
    if (list.user.length === 0 && !has.everyone) throw usageError(`share ${verb}`, "expected --user or --everyone");
    const role = verb === "remove" ? "" : roleOf((value as { role?: string }).role ?? "use");
    const named = workspaceAsked(input, words);
    return withServer(`share ${verb}`, input, value, async ({ client }) => {
      const { id, organization_id } = await named(client);
      const path = `/api/v2/workspaces/${id}/acl` as const;
      await client.patch(path, {
        user_roles: Object.fromEntries((await idsOf(client, list.user)).map((user) => [user, role])),
        // The group of all members of an organization has the organization's id.
        ...(has.everyone ? { group_roles: { [organization_id]: role } } : {}),
      } satisfies PatchWorkspaceAcl);
      const acl = await client.get(path);
      input.print(has.json ? JSON.stringify(acl) : shown(acl));
      return EXIT.ok;
    });
  };

const roleOf = (text: string): string => {
  if (WORKSPACE_ROLES.some((role) => role === text)) return text;
  throw usageError("--role", `expected ${WORKSPACE_ROLES.join(" or ")}`);
};

const idsOf = (client: Client, names: readonly string[]): Promise<string[]> =>
  Promise.all(names.map(async (name) => (await userNamed(client, name)).id));

export const add = changing("add");
export const remove = changing("remove");
