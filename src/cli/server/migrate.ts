// `slipway migrate [--check] [--json]`: migrates the database to this version, as a start of the server would, or reports whether a
// migration is needed.
import { loadConfig } from "#base/config.ts";
import { inspectDatabase } from "#db/engine/inspect.ts";
import { runOnMachine } from "../offline/machine.ts";
import { takeOptions } from "../options.ts";
import { EXIT, type RunVerb, takeSwitch } from "../verb.ts";
import { move } from "./move.ts";

/** Exit code of --check if a migration is needed. */
const MIGRATION_NEEDED = 1;

export const run: RunVerb = async (input) => {
  const { isGiven: json, rest } = takeSwitch(input.argv, "--json");
  const { isGiven: check, rest: argv } = takeSwitch(rest, "--check");
  const { options, rest: settingArguments } = takeOptions(argv, ["to"]);
  const { config } = loadConfig({ ...input, argv: settingArguments });
  if (options.to !== undefined) return move(input, config, options.to, json);
  if (config.database_url !== undefined) {
    input.printError("slipway migrate: a PostgreSQL database is upgraded when a node starts\n");
    return EXIT.failed;
  }
  const { exists, schema, newest, problem, missing } = inspectDatabase(config.data_dir);
  const facts = { exists, schema, newest, missing };
  if (check) {
    if (json) input.print(JSON.stringify(facts));
    else if (!exists) input.print("No database yet; it is created on the first start.");
    else if (problem) input.print(`${problem.charAt(0).toUpperCase()}${problem.slice(1)}`);
    else if (missing.length === 0) input.print(`The database is up to date (schema ${schema}).`);
    else input.print(`Pending: ${missing.join(", ")}. The database is copied to backups/ first.`);
    return !exists || schema === newest ? EXIT.ok : MIGRATION_NEEDED;
  }
  if (!exists) {
    input.printError(`slipway migrate: there is no database in ${config.data_dir}\n`);
    return EXIT.failed;
  }
  // Opening the store performs the migration.
  const work = async (): Promise<void> => {
    if (json) input.print(JSON.stringify({ applied: missing, schema: newest }));
    else input.print(missing.length === 0 ? "The database was already up to date." : `Applied: ${missing.join(", ")}.`);
  };
  return runOnMachine("migrate", input, config, work, { mayCreate: true });
};
