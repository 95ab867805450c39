// Reads the SQL files of a migrations folder while a module is loaded or bundled (`with { type: "macro" }`), so that no list is maintained
// and the compiled program contains the texts.
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
