// Apps under load at their own hosts, on a server with default settings. Every response is compared with a direct response of the app.
import { describe, expect } from "bun:test";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { forFile } from "#test/support/for-file.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { echoBytes, type LoadRequest, loadApp, MemoryWatch } from "./load.ts";
import { openLoadWorld, startListening } from "./load-world.ts";

const MiB = 2 ** 20;
const toFilePath = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

const world = await forFile(openLoadWorld());

const startEchoApp = async (language: "go" | "node") => {
  if (language === "node") return await startListening([needs.node.file, toFilePath("echo-node.mjs")]);
  const program = join(world.home, "echo");
  // Like the programs of `.ci`, without -trimpath: otherwise Go would compile its standard library a second time.
  const built = Bun.spawnSync([needs.go.file, "build", "-o", program, toFilePath("echo.go")], {
    env: { ...process.env, CGO_ENABLED: "0", GOFLAGS: "-p=2" },
    stdio: ["ignore", "inherit", "inherit"],
  });
  expect(built.exitCode).toBe(0);
  return await startListening([program]);
};

const BODY = Buffer.from(Array.from({ length: 70_001 }, (_, i) => (i * 31) % 256));
const REQUESTS: LoadRequest[] = [
  ...[0, 1, 1000, 65_535, 65_536, 300_000].map((length) => ({ path: `/length/${length}` })),
  ...[0, 1, 100_000].map((length) => ({ path: `/chunked/${length}` })),
  ...[204, 304, 404, 500].map((status) => ({ path: `/status/${status}` })),
  ...[0, 1, 4096, 70_001].map((length) => ({
    path: "/echo?a=1&&b=%20+x&",
    method: "POST",
    body: BODY.subarray(0, length),
    type: "text/x-own",
  })),
  { path: "/echo", method: "PUT", body: BODY, type: "application/json" },
  { path: "/length/10", method: "HEAD" },
];

describe("at the host of an app", () => {
  for (const language of ["node", "go"] as const) {
    testNeeding(
      [needs[language]],
      `[AX-6][AX-10][AX-15] an app in ${language} sends the same responses through the server under load, in bounded memory`,
      async () => {
        await using app = await startEchoApp(language);
        const targets = world.sides(app.port);
        // Warms up, so that code is compiled and buffers reach their final size.
        await loadApp(targets, REQUESTS, { connections: 8, ms: 200 });
        using memory = new MemoryWatch(world.pids);
        const [load] = await Promise.all([
          loadApp(targets, REQUESTS, { connections: 32, ms: 700 }),
          echoBytes(targets.through, "/socket", 12 * MiB, 5_000_000),
          echoBytes(targets.through, "/socket", MiB, 1000),
        ]);
        expect(load.unstablePaths).toEqual([]);
        expect(load.different.slice(0, 3)).toEqual([]);
        expect(load.answers).toBeGreaterThan(REQUESTS.length);
        for (const { first, peak } of memory.read()) expect(peak - first).toBeLessThan(256);
      },
    );
  }
});
