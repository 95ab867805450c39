// `slipway offline tokens list|create|revoke`: manages users' tokens on the machine while no server runs.
import { toRfc3339 } from "#base/clock.ts";
import { loadConfig } from "#base/config.ts";
import { usageError } from "#base/usage-error.ts";
import { MachineAccounts } from "#domain/users/machine.ts";
import { formatTable, rejectOtherOptions, requireOneWord, takeOptions } from "../options.ts";
import { type RunVerb, takeSwitch, type VerbInput } from "../verb.ts";
import { runOnMachine } from "./machine.ts";

type ParsedArguments = {
  words: readonly string[];
  options: Partial<Record<(typeof OPTIONS)[number], string>>;
  json: boolean;
};
type Handler = (accounts: MachineAccounts, parsed: ParsedArguments, input: VerbInput) => Promise<void>;

const OPTIONS = ["user", "name", "lifetime"] as const;

export const run: RunVerb = async (input) => {
  const { isGiven: json, rest: withoutJson } = takeSwitch(input.argv, "--json");
  const { words, options, rest: argv } = takeOptions(withoutJson, OPTIONS);
  const [command = "", ...more] = words;
  const handler = HANDLERS[command];
  if (!handler) throw usageError(command || "tokens", `expected one of ${Object.keys(HANDLERS).join(", ")}`);
  rejectOtherOptions(options, command, command === "create" ? OPTIONS : ["user"]);
  const { config } = loadConfig({ ...input, argv });
  return runOnMachine("offline tokens", input, config, (store) =>
    handler(new MachineAccounts(store, input.clock), { words: more, options, json }, input),
  );
};

const list: Handler = async (accounts, { words, options, json }, { print }) => {
  if (words[0] !== undefined) throw usageError(words[0], "unexpected argument");
  const tokens = (await accounts.listTokens(options.user)).map(({ key, username }) => ({
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

const create: Handler = async (accounts, { words, options, json }, { print }) => {
  if (words[0] !== undefined) throw usageError(words[0], "unexpected argument");
  if (options.user === undefined) throw usageError("--user", "expected the user who gets the token");
  const created = await accounts.createToken(options.user, { name: options.name, lifetime: options.lifetime });
  const output = { ...created, expires_at: toRfc3339(created.expires_at) };
  print(json ? JSON.stringify(output) : created.token);
};

const revoke: Handler = async (accounts, { words, options, json }, { print }) => {
  const id = await accounts.revokeToken(requireOneWord(words, "the token's id, or its name with --user"), options.user);
  print(json ? JSON.stringify({ id }) : `The token ${id} is revoked.`);
};

const HANDLERS: Readonly<Record<string, Handler>> = { list, create, revoke };
