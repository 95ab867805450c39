// Loads names from the server for completion. Errors yield no names: a user who presses Tab expects no error message.
import { pause } from "#base/retry.ts";
import { SCOPES } from "#schema/users/scopes.ts";
import { SITE_ROLES } from "#schema/users/user.ts";
import type { BuildStatus } from "#schema/workspaces/build.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { Client } from "#src/client.ts";
import { makeClient } from "../client/remote.ts";
import { toPlainLine } from "../text.ts";
import type { NameKind, VerbInput } from "../verb.ts";

/** A candidate that stands for local files, which the shell completes better. */
export const FILES_CANDIDATE = ":files";

export type Names = NameKind | "scope" | "role" | "organization" | "model";
type Candidate = { text: string; help?: string };

/** Matches names that a shell reads as one word. Shells insert names unquoted, so other characters could run a command. */
const PLAIN_NAME = /^[\p{L}\p{N}_][\p{L}\p{N}_.@+:/-]*$/u;
/** Maximum wait after Tab was pressed. */
const TIMEOUT_MS = 1500;

/** `before` contains the words typed so far, which may name a server or a user. `word` is the action, such as `start`. */
export const listNames = async (
  input: VerbInput,
  before: readonly string[],
  kind: Names,
  word = "",
): Promise<Candidate[]> => {
  const findValue = (flag: string): string | undefined => before[before.indexOf(flag) + 1 || before.length];
  const url = findValue("--url");
  try {
    const client = LOCAL_NAMES.has(kind) ? undefined : makeClient(input, url === undefined ? {} : { url });
    const loading = LOADERS[kind](client as Client, findValue("--user") ?? "me", word);
    const found = await Promise.race([loading, pause(input.clock, TIMEOUT_MS).then(() => [])]);
    return found
      .filter(({ text }) => LOCAL_NAMES.has(kind) || PLAIN_NAME.test(text))
      .map(({ text, help }) => ({ text, ...(help ? { help: toPlainLine(help) } : {}) }));
  } catch {
    return [];
  }
};

/** Workspaces with these statuses are not offered for the command. */
const EXCLUDED_STATUSES: Readonly<Record<string, readonly BuildStatus[]>> = {
  start: ["running", "starting"],
  stop: ["stopped", "stopping"],
};

/** Names that need no server. */
const LOCAL_NAMES = new Set<Names>(["scope", "role"]);

const LOADERS: Readonly<Record<Names, (client: Client, user: string, word: string) => Promise<Candidate[]>>> = {
  workspace: async (client, _user, word) => {
    const { workspaces } = await client.get("/api/v2/workspaces?q=owner%3Ame&limit=100");
    const excluded = EXCLUDED_STATUSES[word];
    return workspaces
      .filter(({ latest_build }: Workspace) => !excluded?.includes(latest_build.status))
      .map(({ name, latest_build }: Workspace) => ({ text: name, help: latest_build.status }));
  },
  template: async (client) =>
    (await client.get("/api/v2/templates")).map(({ name, description }) => ({
      text: name,
      help: description,
    })),
  task: async (client) => {
    const { tasks } = await client.get("/api/v2/tasks?q=owner%3Ame&limit=50");
    return tasks.map(({ name, display_name }) => ({ text: name, help: display_name }));
  },
  chat: async (client) =>
    (await client.get("/api/v2/chats?limit=50")).map(({ id, title }) => ({
      text: id.slice(0, 8),
      help: title,
    })),
  user: async (client) => {
    const { users } = await client.get("/api/v2/users?limit=100");
    return users.map(({ username, email }) => ({ text: username, help: email }));
  },
  token: async (client, user) => {
    const path = `/api/v2/users/${encodeURIComponent(user)}/keys/tokens?include_expired=true` as const;
    return (await client.get(path)).map((one) => ({ text: one.token_name, help: one.scopes.join(", ") }));
  },
  group: async (client) =>
    (await client.get("/api/v2/groups")).map(({ name, display_name }) => ({ text: name, help: display_name })),
  secret: async (client) =>
    (await client.get("/api/v2/users/me/secrets")).map(({ name, description }) => ({ text: name, help: description })),
  application: async (client) =>
    (await client.get("/api/v2/oauth2-provider/apps")).map(({ name, callback_url }) => ({
      text: name,
      help: callback_url,
    })),
  organization: async (client) =>
    (await client.get("/api/v2/users/me/organizations")).map(({ name, display_name }) => ({
      text: name,
      help: display_name,
    })),
  model: async (client) => {
    const { providers } = await client.get("/api/v2/chats/models");
    return providers.flatMap(({ models }) =>
      models.map(({ model, display_name }) => ({ text: model, help: display_name })),
    );
  },
  scope: async () => SCOPES.map((text) => ({ text })),
  role: async () => SITE_ROLES.map((text) => ({ text })),
};
