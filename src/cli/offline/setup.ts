// `slipway offline setup NAME --email EMAIL [--password-file FILE]`: creates the data directory and its first owner, before the first
// start.
import { loadConfig } from "#base/config.ts";
import { openEncryption } from "#base/encryption.ts";
import { usageError } from "#base/usage-error.ts";
import { openKey } from "#db/engine/key-check.ts";
import { prepareIdentity } from "#domain/users/first-user.ts";
import { MachineAccounts } from "#domain/users/machine.ts";
import { Passwords } from "#domain/users/passwords.ts";
import { requireOneWord, takeOptions } from "../options.ts";
import { readPassword } from "../password.ts";
import { type RunVerb, takeSwitch } from "../verb.ts";
import { runOnMachine } from "./machine.ts";

export const run: RunVerb = async (input) => {
  const { isGiven: json, rest } = takeSwitch(input.argv, "--json");
  const { words, options, rest: argv } = takeOptions(rest, ["email", "password-file"]);
  const username = requireOneWord(words, "the first user's name");
  const { email } = options;
  if (email === undefined) throw usageError("--email", "expected the first user's email address");
  const { config } = loadConfig({ ...input, argv });
  const { password, isGenerated } = readPassword(options["password-file"], input);
  const work = async (store: Parameters<Parameters<typeof runOnMachine>[3]>[0]): Promise<void> => {
    const { data_dir: directory, encryption_key: digits } = config;
    if (config.database_url === undefined) openEncryption(directory);
    else await openKey(store, { directory, digits, shared: true });
    await prepareIdentity({ store, clock: input.clock, passwords: new Passwords(input.clock) }, config);
    const id = await new MachineAccounts(store, input.clock).setUp({ username, email, password });
    const passwordNote = isGenerated ? ` Password: ${password}` : "";
    if (json) input.print(JSON.stringify({ id, username, ...(isGenerated ? { password } : {}) }));
    else input.print(`Created the owner ${username}.${passwordNote}`);
  };
  return runOnMachine("offline setup", input, config, work, { mayCreate: true });
};
