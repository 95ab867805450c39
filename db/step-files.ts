// The SQL files of a folder of migrations. Read while a module is loaded or bundled (`with { type: "macro" }`), so that no list of them is
// kept and the compiled program has their texts inside.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Returns name and text of each migration in `db/<folder>`, in order. */
export const readStepFiles = (folder: string): (readonly [name: string, sql: string])[] => {
  const path = join(import.meta.dir, folder);
  return readdirSync(path)
    .filter((file) => file.endsWith(".sql"))
    .sort()
    .map((file) => [file.slice(0, -".sql".length), readFileSync(join(path, file), "utf8")] as const);
};
