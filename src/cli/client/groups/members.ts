// `slipway groups members GROUP [--add USER]... [--remove USER]...`: lists or changes the members of a group.
import type { Static } from "@sinclair/typebox";
import type { GroupMember, GroupMembers } from "#schema/users/group.ts";
import type { Client } from "#src/client.ts";
import { readArguments } from "../../arguments.ts";
import { formatTable } from "../../options.ts";
import { toPlainLine } from "../../text.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { getUser } from "../users/find.ts";
import { selectGroup } from "./find.ts";

const PAGE_SIZE = 100;

export const run: RunVerb = async (input) => {
  const { words, value, list, has } = readArguments(input.argv, { values: ["organization"], lists: ["add", "remove"] });
  const findGroup = selectGroup(input, words, value.organization);
  return withServer("groups members", input, value, async ({ client }) => {
    const { id } = await findGroup(client);
    const loadUserIds = (names: readonly string[]): Promise<string[]> =>
      Promise.all(names.map(async (name) => (await getUser(client, name)).id));
    const [add_users, remove_users] = [await loadUserIds(list.add), await loadUserIds(list.remove)];
    if (add_users.length + remove_users.length > 0) {
      await client.patch(`/api/v2/groups/${id}`, { add_users, remove_users });
    }
    const members = await listMembers(client, id);
    const rows = members.map((one) => [one.username, toPlainLine(one.name) || "-", toPlainLine(one.email), one.status]);
    if (has.json) input.print(JSON.stringify(members));
    else if (rows.length === 0) input.print("No members.");
    else input.print(formatTable(["USERNAME", "NAME", "EMAIL", "STATUS"], rows));
  });
};

/** Loads all members, page by page. */
const listMembers = async (client: Client, id: string): Promise<GroupMember[]> => {
  const members: GroupMember[] = [];
  for (;;) {
    const query = new URLSearchParams({ limit: String(PAGE_SIZE), offset: String(members.length) });
    const { users }: Static<typeof GroupMembers> = await client.get(`/api/v2/groups/${id}/members?${query}`);
    members.push(...users);
    if (users.length < PAGE_SIZE) return members;
  }
};
