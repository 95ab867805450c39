// `slipway offline tokens list|create|revoke`: manages users' tokens on the machine while no server runs.
import { toRfc3339 } from "#base/clock.ts";
import { loadConfig } from "#base/config.ts";
import { usageError } from "#base/usage-error.ts";
import { MachineAccounts } from "#domain/users/machine.ts";
import { formatTable, rejectOthers, requireOneWord, takeOptions } from "../options.ts";
import { type RunVerb, takeSwitch, type VerbInput } from "../verb.ts";
import { runOnMachine } from "./machine.ts";

type Order = { words: readonly string[]; options: Partial<Record<(typeof OPTIONS)[number], string>>; json: boolean };
type Work = (accounts: MachineAccounts, order: Order, input: VerbInput) => Promise<void>;

const OPTIONS = ["user", "name", "lifetime"] as const;

export const run: RunVerb = async (input) => {
  const { given: json, rest: withoutJson } = takeSwitch(input.argv, "--json");
  const { words, options, rest: argv } = takeOptions(withoutJson, OPTIONS);
  const [what = "", ...more] = words;
  const work = HANDLERS[what];
  if (!work) throw usageError(what || "tokens", `expected one of ${Object.keys(HANDLERS).join(", ")}`);
  rejectOthers(options, what, what === "create" ? OPTIONS : ["user"]);
  const { config } = loadConfig({ ...input, argv });
  return runOnMachine("offline tokens", input, config, (store) =>
    work(new MachineAccounts(store, input.clock), { words: more, options, json }, input),
  );
};

const list: Work = async (accounts, { words, options, json }, { print }) => {
  if (words[0] !== undefined) throw usageError(words[0], "unexpected argument");
  const tokens = (await accounts.tokens(options.user)).map(({ key, username }) => ({
    id: key.id,
    username,
    name: key.token_name,
    scope: key.scope,
    created_at: toRfc3339(key.created_at),
    last_used: toRfc3339(key.last_used),
    expires_at: toRfc3339(key.expires_at),
  }));
  if (json) return print(JSON.stringify(tokens));
  const rows = tokens.map((one) => [one.id, one.username, one.name, one.scope, one.expires_at]);
  print(formatTable(["ID", "USER", "NAME", "SCOPE", "EXPIRES"], rows));
};

const create: Work = async (accounts, { words, options, json }, { print }) => {
  if (words[0] !== undefined) throw usageError(words[0], "unexpected argument");
  if (options.user === undefined) throw usageError("--user", "expected the user who gets the token");
  const created = await accounts.createToken(options.user, { name: options.name, lifetime: options.lifetime });
  const facts = { ...created, expires_at: toRfc3339(created.expires_at) };
  print(json ? JSON.stringify(facts) : created.token);
};

const revoke: Work = async (accounts, { words, options, json }, { print }) => {
  const id = await accounts.revokeToken(requireOneWord(words, "the token's id, or its name with --user"), options.user);
  print(json ? JSON.stringify({ id }) : `The token ${id} is revoked.`);
};

const HANDLERS: Readonly<Record<string, Work>> = { list, create, revoke };
