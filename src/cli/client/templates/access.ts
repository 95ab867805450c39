// `slipway templates access TEMPLATE`: lists or changes who can use and administer a template.
import { usageError } from "#base/usage-error.ts";
import type { Template } from "#schema/templates/template.ts";
import type { Client } from "#src/client.ts";
import { readArguments } from "../../arguments.ts";
import { formatTable } from "../../options.ts";
import { toPlainLine } from "../../text.ts";
import type { RunVerb } from "../../verb.ts";
import { getGroup } from "../groups/find.ts";
import { withServer } from "../remote.ts";
import { getUser } from "../users/find.ts";
import { selectTemplate } from "./find.ts";

const LISTS = ["user", "group", "remove-user", "remove-group"] as const;
const ROLE_PATTERN = /^(.+):(use|admin)$/;

type RoleChange = { readonly name: string; readonly role: string };

/** Parses `NAME:admin`; a name alone grants use. */
const parseRoles = (texts: readonly string[]): RoleChange[] =>
  texts.map((text) => {
    const [, name = text, role = "use"] = ROLE_PATTERN.exec(text) ?? [];
    return { name, role };
  });
const toRemovals = (names: readonly string[]): RoleChange[] => names.map((name) => ({ name, role: "" }));

export const run: RunVerb = async (input) => {
  const { words, value, list, has } = readArguments(input.argv, { lists: LISTS });
  const findTemplate = selectTemplate(input, words);
  const users = [...parseRoles(list.user), ...toRemovals(list["remove-user"])];
  const groups = [...parseRoles(list.group), ...toRemovals(list["remove-group"])];
  for (const changes of [users, groups]) {
    const duplicate = changes.find(({ name }, index) => changes.findIndex((one) => one.name === name) < index);
    if (duplicate) throw usageError(duplicate.name, "given twice");
  }
  return withServer("templates access", input, value, async ({ client }) => {
    const template = await findTemplate(client);
    const path = `/api/v2/templates/${template.id}/acl` as const;
    if (users.length + groups.length > 0) {
      const user_perms = await findIds(users, async (name) => (await getUser(client, name)).id);
      const group_perms = await findIds(groups, (name) => getGroupId(client, template, name));
      await client.patch(path, { user_perms, group_perms });
    }
    const acl = await client.get(path);
    const rows = [
      ...acl.group.map((one) => ["group", toPlainLine(one.name), one.role]),
      ...acl.users.map((one) => ["user", one.username, one.role]),
    ];
    if (has.json) input.print(JSON.stringify(acl));
    else if (rows.length === 0) input.print("Only template administrators can use it.");
    else input.print(formatTable(["KIND", "NAME", "ROLE"], rows));
  });
};

const findIds = async (wanted: readonly RoleChange[], find: (name: string) => Promise<string>) =>
  Object.fromEntries(await Promise.all(wanted.map(async ({ name, role }) => [await find(name), role] as const)));

/** Returns the ID of a group in the template's organization. `Everyone` is the group of all members of the organization. */
const getGroupId = async (client: Client, { organization_id }: Template, name: string): Promise<string> =>
  (await getGroup(client, organization_id, name)).id;
