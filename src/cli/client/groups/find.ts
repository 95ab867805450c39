// Finds groups by name, for all commands that work on one.
import { usageError } from "#base/usage-error.ts";
import type { Group } from "#schema/users/group.ts";
import type { Client } from "#src/client.ts";
import { promptIfMissing, takeOneWord } from "../../missing-arguments.ts";
import { formatFields } from "../../options.ts";
import { toUnknownNameError } from "../../unknown-name.ts";
import type { VerbInput } from "../../verb.ts";

/** The API path of an organization's groups. */
export const toGroupsPath = (organization: string | undefined) =>
  `/api/v2/organizations/${encodeURIComponent(organization ?? "default")}/groups` as const;

/** Returns the group with this name (case-insensitive) or ID. Throws VerbFailure if it does not exist. */
export const getGroup = async (client: Client, organization: string | undefined, name: string): Promise<Group> => {
  const groups = await client.get(toGroupsPath(organization));
  const wanted = name.toLowerCase();
  const found = groups.find((one) => one.name.toLowerCase() === wanted) ?? groups.find(({ id }) => id === wanted);
  if (!found) throw await toUnknownNameError("group", name, () => groups.map((one) => one.name), "slipway groups list");
  return found;
};

/** Returns the named group, or prompts for one on a terminal. Throws UsageError before any request. */
export const selectGroup = (
  input: VerbInput,
  words: readonly string[],
  organization: string | undefined,
): ((client: Client) => Promise<Group>) => {
  const word = takeOneWord(input, words, "the group");
  return async (client) => {
    const loadNames = async () => (await client.get(toGroupsPath(organization))).map(({ name }) => name);
    return getGroup(client, organization, await promptIfMissing(input, word, "Group", loadNames));
  };
};

/** The options of `create` and `edit`. */
export const GROUP_OPTIONS = ["display-name", "avatar-url", "quota"] as const;
type GroupOptions = Readonly<Partial<Record<(typeof GROUP_OPTIONS)[number], string>>>;

/** Converts the options to request fields. Throws UsageError if the quota is not a number. */
export const toGroupFields = (given: GroupOptions) => {
  const { quota } = given;
  if (quota !== undefined && !/^\d{1,9}$/.test(quota))
    throw usageError("--quota", "expected credits per day, 0 or more");
  return {
    ...(given["display-name"] === undefined ? {} : { display_name: given["display-name"] }),
    ...(given["avatar-url"] === undefined ? {} : { avatar_url: given["avatar-url"] }),
    ...(quota === undefined ? {} : { quota_allowance: Number(quota) }),
  };
};

/** Formats a group with one row per field. */
export const describeGroup = (group: Group): string =>
  formatFields([
    ["Group", `${group.name} (${group.id})`],
    ["Display name", group.display_name || "-"],
    ["Organization", group.organization_name],
    ["Members", String(group.total_member_count)],
    ["Quota", `${group.quota_allowance} credits per day for each member`],
  ]);
