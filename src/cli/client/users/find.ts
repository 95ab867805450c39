// Finds users by name, for all commands that work on one.
import { emailKey } from "#base/email-address.ts";
import type { User } from "#schema/users/user.ts";
import { ApiError, type Client } from "#src/client.ts";
import { oneWord, promptIfMissing } from "../../asked.ts";
import { plain, relative } from "../../text.ts";
import { unknownName } from "../../unknown-name.ts";
import type { VerbInput } from "../../verb.ts";

/** The API path of a user. */
export const userPath = (user: string) => `/api/v2/users/${encodeURIComponent(user)}` as const;

/** Returns the user with this name, email address or ID. Throws VerbFailure if the caller can see none. */
export const userNamed = async (client: Client, name: string): Promise<User> => {
  const found = name.includes("@") ? await userAt(client, name) : name;
  return client.get(userPath(found)).catch(async (error) => {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
    throw await unknownName("user", name, () => userNames(client), "slipway users list");
  });
};

/** Returns the ID of the user with an email address, or the address if none exists. */
const userAt = async (client: Client, email: string): Promise<string> => {
  const q = new URLSearchParams({ q: email, limit: "100" });
  const { users } = await client.get(`/api/v2/users?${q}`);
  return users.find((one) => emailKey(one.email) === emailKey(email))?.id ?? email;
};

/** Returns the first hundred usernames that the caller can see. */
export const userNames = async (client: Client): Promise<string[]> => {
  const { users } = await client.get("/api/v2/users?limit=100");
  return users.map(({ username }) => username);
};

/** Returns the named user, or prompts for one on a terminal. Throws UsageError before any request. */
export const userAsked = (input: VerbInput, words: readonly string[]): ((client: Client) => Promise<User>) => {
  const word = oneWord(input, words, "the user");
  return async (client) => userNamed(client, await promptIfMissing(input, word, "User", () => userNames(client)));
};

/** Formats site roles as they are typed; `-` for none. */
export const formatRoles = ({ roles }: Pick<User, "roles">): string =>
  roles.map(({ name }) => plain(name)).join(",") || "-";

/** A new account is not an idle one. */
const formatUserStatus = ({ status }: User): string => (status === "dormant" ? "never signed in" : status);

/** The columns of a user in lists. */
export const userRow = (user: User, now: number): string[] => [
  user.username,
  plain(user.email) || "-",
  user.is_service_account ? `${formatUserStatus(user)}, service account` : formatUserStatus(user),
  formatRoles(user),
  user.last_seen_at === undefined ? "never" : relative(user.last_seen_at, now),
];
