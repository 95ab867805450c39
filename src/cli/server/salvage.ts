// `slipway salvage FOLDER [--json] [settings]`: copies the readable data of a damaged data directory into a new one.
import { resolve } from "node:path";
import { loadConfig } from "#base/config.ts";
import { LockedError } from "#base/lock-file.ts";
import { usageError } from "#base/usage-error.ts";
import { BackupError } from "#db/backup/manifest.ts";
import { type SalvagedTable, type SalvageResult, salvage } from "#db/salvage/salvage.ts";
import { formatTable } from "../options.ts";
import { type RunVerb, takePath, takeSwitch } from "../verb.ts";
import { explainErrors } from "./backup.ts";

export const run: RunVerb = async (input) => {
  const { isGiven: json, rest } = takeSwitch(input.argv, "--json");
  const { path, rest: argv } = takePath(rest);
  if (path === undefined) throw usageError("salvage", "expected an empty or missing folder for the recovered data");
  const { config } = loadConfig({ ...input, argv });
  if (config.database_url !== undefined) throw usageError("salvage", "use PostgreSQL's own tools for this");
  return explainErrors("salvage", input, path, async () => {
    const options = { from: config.data_dir, into: path, now: input.clock.now(), signal: input.signal };
    const salvaged = await salvage(options).catch((error) => {
      if (error instanceof LockedError) throw new BackupError(`${error.message}; stop the server first`);
      throw error;
    });
    input.print(json ? JSON.stringify(salvaged) : describe(salvaged, path));
  });
};

const isIncomplete = ({ unreadable, left_out }: SalvagedTable): boolean => unreadable !== 0 || left_out > 0;

const describe = ({ repaired, tables, search }: SalvageResult, into: string): string => {
  const rows = tables.reduce((sum, table) => sum + table.rows, 0);
  const losses = tables
    .filter(isIncomplete)
    .map(({ name, rows, unreadable, left_out }) => [name, `${rows}`, `${unreadable}`, `${left_out}`]);
  return [
    ...(repaired === "nothing" ? [] : [`Repaired the ${repaired} of the database.`]),
    `Copied ${rows} rows of ${tables.length} tables into ${resolve(into)}.`,
    ...(losses.length === 0
      ? ["No table lost rows."]
      : [
          "Tables that lost rows:",
          formatTable(["TABLE", "ROWS COPIED", "UNREADABLE RANGES", "ROWS LEFT OUT"], losses),
        ]),
    ...(search === "whole" ? [] : ["The search index is incomplete: older chats may not be found by their text."]),
    `Start the server with --data-dir ${resolve(into)}. Keep the damaged directory until you have compared the two.`,
  ].join("\n");
};
