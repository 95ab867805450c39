// `bun run routes`: writes src/schema/routes.ts, the types of all calls of the API, from the routes of the server. Installs, `bun run types`
// and `npm test` run it, so you never have to. Does nothing where the tools that read those types are not installed.
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
