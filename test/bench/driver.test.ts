// The driver must detect faults: these tests run it against a server that misbehaves on purpose. They do not measure speed. They are
// skipped without a C compiler.
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { needs, testNeeding } from "#test/support/needs.ts";
import { Driver, type PlanLine } from "./driver.ts";

type Fault = "none" | "lost" | "doubled" | "swapped";

/** Accepts PATCHes like the product and sends each batch to the followers. Every tenth batch has the fault. */
function startFaultyServer(fault: Fault, onBatch: (batch: number) => void) {
  let batchCount = 0;
  let heldFrame: string | undefined;
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    routes: {
      "/logs": async (request) => {
        const { logs } = (await request.json()) as { logs: unknown };
        const frame = JSON.stringify(logs);
        const hasFault = ++batchCount % 10 === 0;
        onBatch(batchCount);
        if (hasFault && fault === "swapped") heldFrame = frame;
        else if (!hasFault || fault !== "lost") server.publish("all", frame);
        if (hasFault && fault === "doubled") server.publish("all", frame);
        if (!hasFault && heldFrame) {
          server.publish("all", heldFrame);
          heldFrame = undefined;
        }
        return new Response("{}");
      },
      "/follow": (request) => {
        if (server.upgrade(request)) return;
        return new Response("websocket only", { status: 400 });
      },
    },
    websocket: {
      open(socket) {
        socket.subscribe("all");
      },
      message() {},
    },
  });
  return server;
}

const directory = mkdtempSync(join(tmpdir(), "slipway-driver-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));
const driver = needs.cc.found ? await Driver.compile(directory, undefined) : undefined;

/** The measured window ends after this number of batches, however long they take. One in ten has the fault. */
const BATCHES = 25;

async function runDriver(fault: Fault) {
  const ended = new AbortController();
  const server = startFaultyServer(fault, (batch) => batch === BATCHES && ended.abort());
  try {
    if (!driver) throw new Error("there is no compiler");
    const plan: PlanLine[] = [
      { kind: "patch", agent: 0, path: "/logs", token: "t", source: crypto.randomUUID() },
      { kind: "follow", agent: 0, path: "/follow", token: "t" },
    ];
    return await driver.load(
      server.port ?? 0,
      plan,
      { secs: 60, warm: 0, lines: 5, rate: 200, drain: 0.5 },
      undefined,
      ended.signal,
    );
  } finally {
    server.stop(true);
  }
}

testNeeding(
  [needs.cc],
  "[BM-1] lost and duplicated batches are detected and reported as missing or surplus lines",
  async () => {
    for (const fault of ["lost", "doubled"] as const) {
      const result = await runDriver(fault);
      expect(result.gaps).toBeGreaterThan(0);
      expect(result.lines_wrong).toBeGreaterThan(0);
    }
  },
);

testNeeding([needs.cc], "[BM-1] swapped batches are counted even if every line arrives", async () => {
  expect((await runDriver("swapped")).gaps).toBeGreaterThan(0);
});

testNeeding(
  [needs.cc],
  "[BM-1] a server that loses nothing has no faults, and a window that ends early reports its actual length",
  async () => {
    const result = await runDriver("none");
    expect(result).toMatchObject({ errors: 0, gaps: 0, lines_wrong: 0, followers_closed: 0 });
    expect(result.ack.n).toBeGreaterThan(0);
    expect(result.follow.n).toBeGreaterThan(0);
    expect(result.seconds).toBeGreaterThan(0);
    expect(result.seconds).toBeLessThan(60);
    expect(result.batches_per_s * result.seconds).toBeCloseTo(result.ack.n, -1);
  },
);

test("[BM-2] without a C compiler, the benchmark stops and says what to install", async () => {
  const bench = Bun.spawn([process.execPath, join(import.meta.dir, "run.ts"), "--floor", "--only", "start"], {
    env: { ...process.env, PATH: "" },
    stdout: "ignore",
    stderr: "pipe",
  });
  expect(await new Response(bench.stderr).text()).toContain("C compiler");
  expect(await bench.exited).toBe(1);
});
