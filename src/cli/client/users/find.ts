// Users by the names that people give them, for every verb that works on one.
import { emailKey } from "#base/email-address.ts";
import type { User } from "#schema/users/user.ts";
import { ApiError, type Client } from "#src/client.ts";
import { oneWord, orAsked } from "../../asked.ts";
import { plain, relative } from "../../text.ts";
import { unknownName } from "../../unknown-name.ts";
import type { VerbInput } from "../../verb.ts";

/** Where the API has a user. */
export const userPath = (user: string) => `/api/v2/users/${encodeURIComponent(user)}` as const;

/** The user of a name, an address or an id. Throws VerbFailure when none exists that the caller may see. */
export const userNamed = async (client: Client, name: string): Promise<User> => {
  const found = name.includes("@") ? await userAt(client, name) : name;
  return client.get(userPath(found)).catch(async (error) => {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
    throw await unknownName("user", name, () => userNames(client), "slipway users list");
  });
};

/** The ID of the user with an email address; the address itself if there is no such user. */
const userAt = async (client: Client, email: string): Promise<string> => {
  const q = new URLSearchParams({ q: email, limit: "100" });
  const { users } = await client.get(`/api/v2/users?${q}`);
  return users.find((one) => emailKey(one.email) === emailKey(email))?.id ?? email;
};

/** The first hundred usernames that the caller can see. */
export const userNames = async (client: Client): Promise<string[]> => {
  const { users } = await client.get("/api/v2/users?limit=100");
  return users.map(({ username }) => username);
};

/** The user that the words name, or that is asked for at a terminal. Throws UsageError before anything is sent. */
export const userAsked = (input: VerbInput, words: readonly string[]): ((client: Client) => Promise<User>) => {
  const word = oneWord(input, words, "the user");
  return async (client) => userNamed(client, await orAsked(input, word, "User", () => userNames(client)));
};

/** Site roles as they are typed, `-` for none. */
export const formatRoles = ({ roles }: Pick<User, "roles">): string =>
  roles.map(({ name }) => plain(name)).join(",") || "-";

/** Somebody who was just added is no idle account. */
const formatUserStatus = ({ status }: User): string => (status === "dormant" ? "never signed in" : status);

/** What a list shows of a user. */
export const userRow = (user: User, now: number): string[] => [
  user.username,
  plain(user.email) || "-",
  user.is_service_account ? `${formatUserStatus(user)}, service account` : formatUserStatus(user),
  formatRoles(user),
  user.last_seen_at === undefined ? "never" : relative(user.last_seen_at, now),
];
