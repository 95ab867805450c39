// `slipway offline users list|create|suspend|activate|reset-password|reset-factors`: manages accounts on the machine while no server runs.
import { toOptionalRfc3339, toRfc3339 } from "#base/clock.ts";
import { loadConfig } from "#base/config.ts";
import { usageError } from "#base/usage-error.ts";
import { MachineAccounts } from "#domain/users/machine.ts";
import { formatTable, rejectOtherOptions, requireOneWord, takeOptions } from "../options.ts";
import { readPassword } from "../password.ts";
import { type RunVerb, takeSwitch, type VerbInput } from "../verb.ts";
import { runOnMachine } from "./machine.ts";

type ParsedArguments = {
  words: readonly string[];
  options: Partial<Record<(typeof OPTIONS)[number], string>>;
  json: boolean;
};
type Handler = (accounts: MachineAccounts, parsed: ParsedArguments, input: VerbInput) => Promise<void>;

const OPTIONS = ["email", "roles", "password-file"] as const;
const OPTIONS_BY_COMMAND: Readonly<Record<string, readonly string[]>> = {
  create: OPTIONS,
  "reset-password": ["password-file"],
};

export const run: RunVerb = async (input) => {
  const { isGiven: json, rest: withoutJson } = takeSwitch(input.argv, "--json");
  const { words, options, rest: argv } = takeOptions(withoutJson, OPTIONS);
  const [command = "", ...names] = words;
  const handler = HANDLERS[command];
  if (!handler) throw usageError(command || "users", `expected one of ${Object.keys(HANDLERS).join(", ")}`);
  rejectOtherOptions(options, command, OPTIONS_BY_COMMAND[command] ?? []);
  const { config } = loadConfig({ ...input, argv });
  return runOnMachine("offline users", input, config, (store) =>
    handler(new MachineAccounts(store, input.clock), { words: names, options, json }, input),
  );
};

const list: Handler = async (accounts, { words, json }, { print }) => {
  if (words[0] !== undefined) throw usageError(words[0], "unexpected argument");
  const users = (await accounts.listUsers()).map(
    ({ id, username, email, status, roles, created_at, last_seen_at }) => ({
      id,
      username,
      email,
      status,
      roles,
      created_at: toRfc3339(created_at),
      last_seen_at: toOptionalRfc3339(last_seen_at) ?? null,
    }),
  );
  if (json) return print(JSON.stringify(users));
  const rows = users.map((one) => [
    one.username,
    one.email,
    one.status,
    one.roles.join(",") || "-",
    one.last_seen_at ?? "never",
  ]);
  print(formatTable(["USERNAME", "EMAIL", "STATUS", "ROLES", "LAST SEEN"], rows));
};

const create: Handler = async (accounts, { words, options, json }, input) => {
  const username = requireOneWord(words, "the user's name");
  if (options.email === undefined) throw usageError("--email", "expected the user's email address");
  const { password, isGenerated } = readPassword(options["password-file"], input);
  const roles = options.roles?.split(",").map((role) => role.trim()) ?? [];
  const id = await accounts.create({ username, email: options.email, password, roles });
  if (json) input.print(JSON.stringify({ id, username, ...(isGenerated ? { password } : {}) }));
  else input.print(isGenerated ? `Created ${username}. Password: ${password}` : `Created ${username}.`);
};

const createSuspendHandler =
  (suspended: boolean): Handler =>
  async (accounts, { words, json }, { print }) => {
    const { id, username, status } = await accounts.setSuspended(requireOneWord(words, "the user's name"), suspended);
    print(json ? JSON.stringify({ id, username, status }) : `${username} is ${status}.`);
  };

const resetPassword: Handler = async (accounts, { words, options, json }, input) => {
  const name = requireOneWord(words, "the user's name");
  const { password, isGenerated } = readPassword(options["password-file"], input);
  const { id, username } = await accounts.setPassword(name, password);
  if (json) input.print(JSON.stringify({ id, username, ...(isGenerated ? { password } : {}) }));
  else {
    const passwordNote = isGenerated ? ` New password: ${password}` : "";
    input.print(`The password of ${username} is set; all sessions and tokens were revoked.${passwordNote}`);
  }
};

const resetFactors: Handler = async (accounts, { words, json }, { print }) => {
  const { id, username } = await accounts.resetFactors(requireOneWord(words, "the user's name"));
  print(json ? JSON.stringify({ id, username }) : `${username} can now sign in with only the password.`);
};

const HANDLERS: Readonly<Record<string, Handler>> = {
  list,
  create,
  suspend: createSuspendHandler(true),
  activate: createSuspendHandler(false),
  "reset-password": resetPassword,
  "reset-factors": resetFactors,
};
