// `slipway support-bundle FILE.tar [--log-file FILE] [settings]`: collects diagnostics without secrets: version and machine, settings,
// findings of `doctor`, sizes of tables, and the last lines of a log. The bundle is a plain tar, so its content can be checked before it is
// sent. With --url, a running server creates it (../client/support/server.ts).
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { keepProcessAlive } from "#base/clock.ts";
import { describeSettings } from "#base/config/describe.ts";
import { SERVER_SETTINGS } from "#base/config/settings.ts";
import { type Config, loadConfig } from "#base/config.ts";
import { redact } from "#base/redact.ts";
import { Flow } from "#db/backup/flow.ts";
import { packTar } from "#db/backup/tar.ts";
import { inspectDatabase, measureTables } from "#db/engine/inspect.ts";
import { describeProcess, formatJson } from "#domain/administration/support-bundle.ts";
import { readOptionFile, requireOneWord, takeOptions } from "../options.ts";
import { EXIT, type RunVerb, takeSwitch, type VerbInput } from "../verb.ts";
import { collectFindings } from "./doctor.ts";

const LOG_LINES = 2000;

export const run: RunVerb = async (input) => {
  if (input.argv.some((word) => /^--(url|token)(=|$)/.test(word))) {
    return (await import("../client/support/server.ts")).run(input);
  }
  const { isGiven: json, rest } = takeSwitch(input.argv, "--json");
  const { words, options, rest: argv } = takeOptions(rest, ["log-file"]);
  const file = requireOneWord(words, "the file to write, such as support.tar");
  const serverInput = { ...input, argv };
  const loaded = loadConfig(serverInput);
  const parts: Record<string, string> = {
    "about.json": formatJson(describeProcess(input.clock)),
    "settings.json": redact(formatJson(describeSettings(SERVER_SETTINGS, loaded))),
    "doctor.json": redact(formatJson(await collectFindings(serverInput, true))),
    "database.json": formatJson(await collectDatabaseFacts(loaded.config)),
  };
  if (options["log-file"] !== undefined) parts["log.txt"] = readLastLines(options["log-file"], input);
  await writeBundle(file, parts, new Flow(input.clock, 0, input.signal));
  const names = Object.keys(parts);
  if (json) input.print(JSON.stringify({ path: resolve(file), files: names }));
  else input.print(`${resolve(file)} holds ${names.join(", ")}. Review it before you send it: tar -xOf ${file}`);
  return EXIT.ok;
};

const collectDatabaseFacts = async ({ data_dir, database_url }: Config) => {
  try {
    if (database_url !== undefined) return await (await import("#db/pg/inspect.ts")).inspectPostgres(database_url);
    const facts = inspectDatabase(data_dir);
    return { ...facts, tables: facts.exists ? measureTables(data_dir) : [] };
  } catch (error) {
    return { error: (error as Error).message };
  }
};

const readLastLines = (path: string, input: VerbInput): string => {
  const lines = readOptionFile("--log-file", path, input).split("\n");
  return redact(lines.slice(-LOG_LINES - 1).join("\n"));
};

const writeBundle = async (file: string, parts: Readonly<Record<string, string>>, flow: Flow): Promise<void> => {
  const keepAlive = keepProcessAlive();
  const folder = mkdtempSync(join(dirname(resolve(file)), ".support-"));
  try {
    for (const [name, text] of Object.entries(parts)) writeFileSync(join(folder, name), text, { mode: 0o600 });
    await packTar(folder, Object.keys(parts), file, flow);
  } finally {
    rmSync(folder, { recursive: true, force: true });
    keepAlive.cancel();
  }
};
