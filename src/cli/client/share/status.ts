// `slipway share status WORKSPACE`: the users and groups that a workspace is shared with.
import type { WorkspaceAcl } from "#schema/workspaces/acl.ts";
import { readArguments } from "../../arguments.ts";
import { asTable } from "../../options.ts";
import { plain } from "../../text.ts";
import { EXIT, type RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { workspaceAsked } from "../workspaces/find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv);
  const named = workspaceAsked(input, words);
  return withServer("share status", input, value, async ({ client }) => {
    const { id } = await named(client);
    const acl = await client.get(`/api/v2/workspaces/${id}/acl`);
    input.print(has.json ? JSON.stringify(acl) : shown(acl));
    return EXIT.ok;
  });
};

/** Formats one row for each user and group. */
export const shown = ({ users, groups }: WorkspaceAcl): string => {
  const rows = [
    ...users.map(({ username, role }) => [plain(username), "user", role]),
    ...groups.map((one) => [plain(one.name), `group of ${plain(one.organization_name)}`, one.role]),
  ];
  return rows.length === 0 ? "Not shared." : asTable(["SHARED WITH", "KIND", "ROLE"], rows);
};
