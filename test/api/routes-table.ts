// `bun run routes`: writes src/schema/routes.ts, the types of all calls of the API, from the routes of the server. `bun run types`, `bun run unused`
// and `npm test` run it first. Not an install: that has no Bun on its path where `npm start` has fetched it. Does nothing without TypeScript.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../..");
const FILE = join(ROOT, "src/schema/routes.ts");

if (existsSync(join(ROOT, "node_modules/typescript"))) {
  // `npm start` installs only what the server needs, which is less than this needs.
  const [{ printRoutes }, { readRoutes }] = await Promise.all([
    import("./print-routes.ts"),
    import("./declared-routes.ts"),
  ]);
  const text = await printRoutes(await readRoutes());
  // An editor or compiler that watches the file has nothing to do when nothing has changed.
  if (!existsSync(FILE) || readFileSync(FILE, "utf8") !== text) writeFileSync(FILE, text);
}
