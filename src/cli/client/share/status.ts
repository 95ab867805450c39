// `slipway share status WORKSPACE`: the users and groups that a workspace is shared with.
import type { WorkspaceAcl } from "#schema/workspaces/acl.ts";
import { readArguments } from "../../arguments.ts";
import { formatTable } from "../../options.ts";
import { toPlainLine } from "../../text.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { selectWorkspace } from "../workspaces/find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv);
  const findWorkspace = selectWorkspace(input, words);
  return withServer("share status", input, value, async ({ client }) => {
    const { id } = await findWorkspace(client);
    const acl = await client.get(`/api/v2/workspaces/${id}/acl`);
    input.print(has.json ? JSON.stringify(acl) : formatAcl(acl));
  });
};

/** Formats one row for each user and group. */
export const formatAcl = ({ users, groups }: WorkspaceAcl): string => {
  const rows = [
    ...users.map(({ username, role }) => [toPlainLine(username), "user", role]),
    ...groups.map((one) => [toPlainLine(one.name), `group of ${toPlainLine(one.organization_name)}`, one.role]),
  ];
  return rows.length === 0 ? "Not shared." : formatTable(["SHARED WITH", "KIND", "ROLE"], rows);
};
