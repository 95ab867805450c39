// Which processes of a workspace are active jobs, and how they are described.
import { expect, test } from "bun:test";
import { AGENT_ID_VARIABLE } from "#src/daemon/environment.ts";
import { formatCommand, Jobs } from "#src/daemon/jobs.ts";
import { type Process, readProcesses } from "#src/daemon/own-processes.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { until } from "#test/support/until.ts";

const makeProcess = (pid: number, group: number, cpu_ms: number, ...argv: string[]): Process => ({
  pid,
  group,
  cpu_ms,
  moved_bytes: 0,
  argv,
});

test("[DM-25] process groups that used CPU since the last check are jobs, the busiest first", () => {
  const processLists = [
    [makeProcess(10, 10, 5_000, "code-server"), makeProcess(20, 20, 100, "npm run build")],
    [
      makeProcess(10, 10, 5_900, "code-server"),
      makeProcess(20, 20, 200, "npm run build"),
      makeProcess(21, 20, 9_000, "esbuild"),
      makeProcess(30, 30, 40_000, "make"),
    ],
    [makeProcess(10, 10, 5_900, "code-server"), makeProcess(30, 30, 40_000, "make")],
  ];
  const jobs = new Jobs("agent", () => processLists.shift() ?? []);
  expect(jobs.takeActive(0)).toEqual([]);
  expect(jobs.takeActive(60_000)).toEqual([
    { command: "make", load: 40_000 / 60_000 },
    { command: "npm run build", load: 9_100 / 60_000 },
  ]);
  expect(jobs.takeActive(60_000)).toEqual([]);
});

test("[DM-25] a process group that reads or writes a lot is a job, even if it uses little CPU", () => {
  const makeMovingProcess = (pid: number, moved_bytes: number, ...argv: string[]) => ({
    ...makeProcess(pid, pid, 0, ...argv),
    moved_bytes,
  });
  const processLists = [
    [makeMovingProcess(10, 1e9, "curl"), makeMovingProcess(20, 1e9, "code-server")],
    // 100 KB and 10 KB per second, in a minute.
    [makeMovingProcess(10, 1e9 + 6e6, "curl"), makeMovingProcess(20, 1e9 + 6e5, "code-server")],
    [makeMovingProcess(10, 1e9 + 6e6, "curl"), makeMovingProcess(20, 1e9 + 6e5, "code-server")],
  ];
  const jobs = new Jobs("agent", () => processLists.shift() ?? []);
  jobs.takeActive(0);
  expect(jobs.takeActive(60_000)).toEqual([{ command: "curl", load: 0.05 }]);
  expect(jobs.takeActive(60_000)).toEqual([]);
});

test("[DM-25] a job's description contains its program and plain words, never a possible secret", () => {
  expect(formatCommand(["npm run build"])).toBe("npm run build");
  expect(formatCommand(["/usr/bin/python3", "train/train.py", "--token", "x"])).toBe("python3 train.py");
  expect(formatCommand(["-bash"])).toBe("bash");
  expect(formatCommand(["curl", "-H", "Authorization: Bearer abc"])).toBe("curl");
  expect(formatCommand(["deploy", "ghp_A1b2C3d4", "prod"])).toBe("deploy");
  expect(formatCommand(["psql", "postgres://me:secret@host/db"])).toBe("psql");
  expect(formatCommand(["a b\nc", "d"])).toBe("");
  expect(formatCommand([])).toBe("");
});

testNeeding([needs.curl], "[DM-25] a download over a real connection is a job", async () => {
  using server = Bun.serve({
    port: 0,
    fetch: () => new Response(new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(65_536)) })),
  });
  const agent_id = crypto.randomUUID();
  const jobs = new Jobs(agent_id);
  jobs.takeActive(0);
  const child = Bun.spawn(["curl", "-s", "--limit-rate", "2M", "-o", "/dev/null", server.url.href], {
    env: { PATH: process.env.PATH, [AGENT_ID_VARIABLE]: agent_id },
  });
  try {
    await until(() => readProcesses(agent_id).some(({ moved_bytes }) => moved_bytes >= 300_000) || undefined);
    expect(jobs.takeActive(4_000).map(({ command }) => command)).toEqual(["curl"]);
  } finally {
    child.kill("SIGKILL");
    await child.exited;
  }
});

test("[DM-25] finds an agent's real processes and their CPU use", async () => {
  const agent_id = crypto.randomUUID();
  const jobs = new Jobs(agent_id);
  jobs.takeActive(0);
  const child = Bun.spawn(["bash", "-c", "while :; do :; done"], { env: { [AGENT_ID_VARIABLE]: agent_id } });
  try {
    await until(() => readProcesses(agent_id).some(({ cpu_ms }) => cpu_ms >= 50) || undefined);
    expect(jobs.takeActive(500)[0]?.load).toBeGreaterThanOrEqual(0.1);
  } finally {
    child.kill("SIGKILL");
    await child.exited;
  }
});
