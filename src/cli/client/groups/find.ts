// Groups by the names that people give them, for every verb that works on one.
import { usageError } from "#base/usage-error.ts";
import type { Group } from "#schema/users/group.ts";
import type { Client } from "#src/client.ts";
import { oneWord, orAsked } from "../../asked.ts";
import { plain } from "../../text.ts";
import { unknownName } from "../../unknown-name.ts";
import type { VerbInput } from "../../verb.ts";

/** Where the API has the groups of an organization. */
export const groupsPath = (organization: string | undefined) =>
  `/api/v2/organizations/${encodeURIComponent(organization ?? "default")}/groups` as const;

/** The group of a name, letter case ignored, or an id. Throws VerbFailure when none exists. */
export const groupNamed = async (client: Client, organization: string | undefined, name: string): Promise<Group> => {
  const groups = await client.get(groupsPath(organization));
  const wanted = name.toLowerCase();
  const found = groups.find((one) => one.name.toLowerCase() === wanted) ?? groups.find(({ id }) => id === wanted);
  if (!found) throw await unknownName("group", name, () => groups.map((one) => one.name), "slipway groups list");
  return found;
};

/** The group that the words name, or that is asked for at a terminal. Throws UsageError before anything is sent. */
export const groupAsked = (
  input: VerbInput,
  words: readonly string[],
  organization: string | undefined,
): ((client: Client) => Promise<Group>) => {
  const word = oneWord(input, words, "the group");
  return async (client) => {
    const names = async () => (await client.get(groupsPath(organization))).map(({ name }) => name);
    return groupNamed(client, organization, await orAsked(input, word, "Group", names));
  };
};

/** What the options of `create` and `edit` set. */
export const MEMBERS = ["display-name", "avatar-url", "quota"] as const;
type Given = Readonly<Partial<Record<(typeof MEMBERS)[number], string>>>;

/** The members of a request that the options stand for. Throws UsageError for a quota that is no number. */
export const toGroupFields = (given: Given) => {
  const { quota } = given;
  if (quota !== undefined && !/^\d{1,9}$/.test(quota))
    throw usageError("--quota", "expected credits per day, 0 or more");
  return {
    ...(given["display-name"] === undefined ? {} : { display_name: given["display-name"] }),
    ...(given["avatar-url"] === undefined ? {} : { avatar_url: given["avatar-url"] }),
    ...(quota === undefined ? {} : { quota_allowance: Number(quota) }),
  };
};

/** For people: one row for each fact. */
export const described = (group: Group): string => {
  const rows: [string, string][] = [
    ["Group", `${group.name} (${group.id})`],
    ["Display name", group.display_name || "-"],
    ["Organization", group.organization_name],
    ["Members", String(group.total_member_count)],
    ["Quota", `${group.quota_allowance} credits per day for each member`],
  ];
  return rows.map(([head, text]) => `${head.padEnd(12)}  ${plain(text)}`).join("\n");
};
