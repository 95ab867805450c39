// Finds users by name, for all commands that work on one.
import { toEmailKey } from "#base/email-address.ts";
import type { User } from "#schema/users/user.ts";
import { ApiError, type Client } from "#src/client.ts";
import { promptIfMissing, takeOneWord } from "../../missing-arguments.ts";
import { formatRelative, toPlainLine } from "../../text.ts";
import { toUnknownNameError } from "../../unknown-name.ts";
import type { VerbInput } from "../../verb.ts";

/** The API path of a user. */
export const toUserPath = (user: string) => `/api/v2/users/${encodeURIComponent(user)}` as const;

/** Returns the user with this name, email address or ID. Throws VerbFailure if the caller can see none. */
export const getUser = async (client: Client, name: string): Promise<User> => {
  const found = name.includes("@") ? await findUserId(client, name) : name;
  return client.get(toUserPath(found)).catch(async (error) => {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
    throw await toUnknownNameError("user", name, () => listUserNames(client), "slipway users list");
  });
};

/** Returns the ID of the user with an email address, or the address if none exists. */
const findUserId = async (client: Client, email: string): Promise<string> => {
  const q = new URLSearchParams({ q: email, limit: "100" });
  const { users } = await client.get(`/api/v2/users?${q}`);
  return users.find((one) => toEmailKey(one.email) === toEmailKey(email))?.id ?? email;
};

/** Returns the first hundred usernames that the caller can see. */
export const listUserNames = async (client: Client): Promise<string[]> => {
  const { users } = await client.get("/api/v2/users?limit=100");
  return users.map(({ username }) => username);
};

/** Returns the named user, or prompts for one on a terminal. Throws UsageError before any request. */
export const selectUser = (input: VerbInput, words: readonly string[]): ((client: Client) => Promise<User>) => {
  const word = takeOneWord(input, words, "the user");
  return async (client) => getUser(client, await promptIfMissing(input, word, "User", () => listUserNames(client)));
};

/** Formats site roles as they are typed; `-` for none. */
export const formatRoles = ({ roles }: Pick<User, "roles">): string =>
  roles.map(({ name }) => toPlainLine(name)).join(",") || "-";

/** A new account is not an idle one. */
const formatUserStatus = ({ status }: User): string => (status === "dormant" ? "never signed in" : status);

/** The columns of a user in lists. */
export const toUserRow = (user: User, now: number): string[] => [
  user.username,
  toPlainLine(user.email) || "-",
  user.is_service_account ? `${formatUserStatus(user)}, service account` : formatUserStatus(user),
  formatRoles(user),
  user.last_seen_at === undefined ? "never" : formatRelative(user.last_seen_at, now),
];
