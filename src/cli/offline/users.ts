// `slipway offline users list|create|suspend|activate|reset-password|reset-factors`: manages accounts on the machine while no server runs.
import { toOptionalRfc3339, toRfc3339 } from "#base/clock.ts";
import { loadConfig } from "#base/config.ts";
import { usageError } from "#base/usage-error.ts";
import { MachineAccounts } from "#domain/users/machine.ts";
import { formatTable, rejectOthers, requireOneWord, takeOptions } from "../options.ts";
import { readPassword } from "../password.ts";
import { type RunVerb, takeSwitch, type VerbInput } from "../verb.ts";
import { runOnMachine } from "./machine.ts";

type Order = { words: readonly string[]; options: Partial<Record<(typeof OPTIONS)[number], string>>; json: boolean };
type Work = (accounts: MachineAccounts, order: Order, input: VerbInput) => Promise<void>;

const OPTIONS = ["email", "roles", "password-file"] as const;
const OPTIONS_BY_COMMAND: Readonly<Record<string, readonly string[]>> = {
  create: OPTIONS,
  "reset-password": ["password-file"],
};

export const run: RunVerb = async (input) => {
  const { given: json, rest: withoutJson } = takeSwitch(input.argv, "--json");
  const { words, options, rest: argv } = takeOptions(withoutJson, OPTIONS);
  const [what = "", ...names] = words;
  const work = HANDLERS[what];
  if (!work) throw usageError(what || "users", `expected one of ${Object.keys(HANDLERS).join(", ")}`);
  rejectOthers(options, what, OPTIONS_BY_COMMAND[what] ?? []);
  const { config } = loadConfig({ ...input, argv });
  return runOnMachine("offline users", input, config, (store) =>
    work(new MachineAccounts(store, input.clock), { words: names, options, json }, input),
  );
};

const list: Work = async (accounts, { words, json }, { print }) => {
  if (words[0] !== undefined) throw usageError(words[0], "unexpected argument");
  const users = (await accounts.users()).map(({ id, username, email, status, roles, created_at, last_seen_at }) => ({
    id,
    username,
    email,
    status,
    roles,
    created_at: toRfc3339(created_at),
    last_seen_at: toOptionalRfc3339(last_seen_at) ?? null,
  }));
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

const create: Work = async (accounts, { words, options, json }, input) => {
  const username = requireOneWord(words, "the user's name");
  if (options.email === undefined) throw usageError("--email", "expected the user's email address");
  const { password, made } = readPassword(options["password-file"], input);
  const roles = options.roles?.split(",").map((role) => role.trim()) ?? [];
  const id = await accounts.create({ username, email: options.email, password, roles });
  if (json) input.print(JSON.stringify({ id, username, ...(made ? { password } : {}) }));
  else input.print(made ? `Created ${username}. Password: ${password}` : `Created ${username}.`);
};

const suspension =
  (suspended: boolean): Work =>
  async (accounts, { words, json }, { print }) => {
    const { id, username, status } = await accounts.setSuspended(requireOneWord(words, "the user's name"), suspended);
    print(json ? JSON.stringify({ id, username, status }) : `${username} is ${status}.`);
  };

const resetPassword: Work = async (accounts, { words, options, json }, input) => {
  const name = requireOneWord(words, "the user's name");
  const { password, made } = readPassword(options["password-file"], input);
  const { id, username } = await accounts.setPassword(name, password);
  if (json) input.print(JSON.stringify({ id, username, ...(made ? { password } : {}) }));
  else {
    const message = made ? ` New password: ${password}` : "";
    input.print(`The password of ${username} is set; all sessions and tokens were revoked.${message}`);
  }
};

const resetFactors: Work = async (accounts, { words, json }, { print }) => {
  const { id, username } = await accounts.resetFactors(requireOneWord(words, "the user's name"));
  print(json ? JSON.stringify({ id, username }) : `${username} can now sign in with only the password.`);
};

const HANDLERS: Readonly<Record<string, Work>> = {
  list,
  create,
  suspend: suspension(true),
  activate: suspension(false),
  "reset-password": resetPassword,
  "reset-factors": resetFactors,
};
