// `bun run routes`: writes src/schema/routes.ts, the types of all API calls, from the routes of the server. `bun run types`, `bun run
// unused` and `npm test` run it first. It cannot be an install step, because Bun is not on the PATH of an install if `npm start` has
// downloaded it. Does nothing without TypeScript.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../..");
const FILE = join(ROOT, "src/schema/routes.ts");

if (existsSync(join(ROOT, "node_modules/typescript"))) {
  // `npm start` installs only what the server needs, which is not enough here.
  const [{ printRoutes }, { readRoutes }] = await Promise.all([
    import("./print-routes.ts"),
    import("./declared-routes.ts"),
  ]);
  const text = await printRoutes(await readRoutes());
  // Unchanged files are not written, so that watching editors and compilers have nothing to do.
  if (!existsSync(FILE) || readFileSync(FILE, "utf8") !== text) writeFileSync(FILE, text);
}
