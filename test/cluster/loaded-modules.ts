// Starts a server on an empty data directory, like `slipway serve`, makes one request, and prints which modules of the project it has
// loaded and its memory: bun loaded-modules.ts FOLDER
import { loadConfig } from "#base/config.ts";

const [, , folder = ""] = process.argv;
const ROOT = new URL("../..", import.meta.url).pathname;
const argv = ["--data-dir", folder, "--address", "127.0.0.1:0", "--docker-host", "unix:///nowhere/docker.sock"];
const { config, sources } = loadConfig({ argv, env: {}, readFile: () => "" });
await import("#src/cli/server/serve.ts");
const [{ openContext }, { startServer }] = await Promise.all([
  import("#src/context/open.ts"),
  import("#src/server.ts"),
]);
const context = await openContext({ config, sources });
const server = await startServer(context);
const response = await fetch(new URL("/readyz", server.url));
const modules = Object.keys((require as unknown as { cache: object }).cache)
  .filter((path) => path.startsWith(ROOT) && !path.includes("/node_modules/"))
  .map((path) => path.slice(ROOT.length));
const { rss } = process.memoryUsage();
const { user, system } = process.cpuUsage();
process.stdout.write(`${JSON.stringify({ status: response.status, modules, rss, cpu_ms: (user + system) / 1000 })}\n`);
await server.stop("it has been asked");
await context[Symbol.asyncDispose]();
process.exit(0);
