// Running out of resources: a disk that is really full, and processes that the kernel really kills.
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AGENT_ID_VARIABLE } from "#src/daemon/environment.ts";
import { MemoryKills, type MemoryReading, readMemory } from "#src/daemon/memory-kills.ts";
import { type Process, readProc } from "#src/daemon/own-processes.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { until } from "#test/support/until.ts";
import { startDaemon, tempFolder } from "./support/daemon.ts";
import { bytes, RecordingServer, script } from "./support/server.ts";

const MIB = 1024 * 1024;
const makeProcess = (pid: number, ...argv: string[]): Process => ({ pid, group: pid, cpu_ms: 0, moved_bytes: 0, argv });

/** Returns a `MemoryKills` whose checks get these readings in order. */
const makeMemoryKills = (
  readings: readonly { reading: MemoryReading; processes?: readonly Process[] }[],
  log: number[] = [],
) => {
  let index = -1;
  return new MemoryKills({
    agent_id: "agent",
    read: () => readings[++index]?.reading,
    processes: () => readings[index]?.processes ?? [],
    resident: (pid) => pid * MIB,
    log: () => log,
  });
};
const nearlyFull = { used: 90, total: 100 };

test("[DM-26] reports a memory kill as the largest process that ended, or without a name if none is known", () => {
  const kills = makeMemoryKills([
    {
      reading: { memory: nearlyFull, isOwn: true, kills: 3 },
      processes: [makeProcess(10, "vim"), makeProcess(50, "npm", "run", "build")],
    },
    { reading: { memory: nearlyFull, isOwn: true, kills: 4 }, processes: [makeProcess(10, "vim")] },
    { reading: { memory: { used: 1, total: 100 }, isOwn: true, kills: 6 }, processes: [] },
  ]);
  expect(kills.takeKilled()).toEqual([]);
  expect(kills.takeKilled()).toEqual(["npm run build"]);
  expect(kills.takeKilled()).toEqual(["vim", ""]);
  expect(kills.memory).toEqual({ used: 1, total: 100 });
  expect(kills.takeKilled()).toEqual([]);
});

test("[DM-26] on a shared machine, only workspace processes named in the kernel's log count as killed", () => {
  const readings = [
    {
      reading: { memory: nearlyFull, isOwn: false, kills: 0 },
      processes: [makeProcess(10, "vim"), makeProcess(50, "make"), makeProcess(60, "ls")],
    },
    { reading: { memory: nearlyFull, isOwn: false, kills: 1 }, processes: [makeProcess(10, "vim")] },
    { reading: { memory: nearlyFull, isOwn: false, kills: 2 }, processes: [makeProcess(10, "vim")] },
  ];
  const kills = makeMemoryKills(readings, [50]);
  expect([kills.takeKilled(), kills.takeKilled(), kills.takeKilled()]).toEqual([[], ["make"], []]);
});

test("[DM-26] reads cgroups v1 and v2; without a limit, the machine's memory applies", () => {
  const readFrom = (files: Record<string, string>) => (file: string) => files[file] ?? "";
  const meminfo = { "/proc/meminfo": "MemTotal:  1000 kB\nMemFree: 1 kB\nMemAvailable:   400 kB\n" };
  const cgroupV2 = {
    "/proc/self/cgroup": "0::/\n",
    "/sys/fs/cgroup/memory.events": "low 0\nhigh 0\nmax 9\noom 2\noom_kill 7\n",
    "/sys/fs/cgroup/memory.max": "1000\n",
    "/sys/fs/cgroup/memory.current": "900\n",
    "/sys/fs/cgroup/memory.stat": "anon 100\ninactive_file 500\n",
  };
  expect(readMemory(readFrom(cgroupV2))).toEqual({ memory: { used: 400, total: 1000 }, isOwn: true, kills: 7 });
  expect(readMemory(readFrom({ ...cgroupV2, ...meminfo, "/sys/fs/cgroup/memory.max": "max\n" }))).toEqual({
    memory: { used: 600 * 1024, total: 1000 * 1024 },
    isOwn: false,
    kills: 7,
  });
  const cgroupV1 = {
    "/proc/self/cgroup": "4:memory:/docker/x\n0::/docker/x\n",
    "/sys/fs/cgroup/memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes": "2000\n",
    "/sys/fs/cgroup/memory/memory.usage_in_bytes": "1900\n",
    "/sys/fs/cgroup/memory/memory.stat": "inactive_file 1\ntotal_inactive_file 900\n",
  };
  expect(readMemory(readFrom(cgroupV1))).toEqual({ memory: { used: 1000, total: 2000 }, isOwn: true, kills: 1 });
  expect(readMemory(readFrom({}))).toBeUndefined();
});

const CGROUP_FOLDER = "/sys/fs/cgroup/memory";
const memoryCgroup = {
  found: existsSync(join(CGROUP_FOLDER, "memory.oom_control")),
  reason: "needs memory cgroups",
  file: "",
};

testNeeding([needs.root, memoryCgroup], "[DM-26] reports the name of a process that the kernel kills", async () => {
  const name = `slipway-test-${process.pid}`;
  const group = join(CGROUP_FOLDER, name);
  mkdirSync(group);
  writeFileSync(join(group, "memory.limit_in_bytes"), String(200 * MIB));
  const agent_id = crypto.randomUUID();
  const read = () => readMemory((file) => (file === "/proc/self/cgroup" ? `4:memory:/${name}\n` : readProc(file)));
  const kills = new MemoryKills({ agent_id, read });
  kills.takeKilled();
  // The program uses most of the limit, waits for a line of input, and then uses the rest.
  const defineTake =
    "const all = []; const take = (n) => { for (let i = 0; i < n; i++) all.push(Buffer.alloc(1 << 20, 1)); };";
  const program = `${defineTake} take(110); console.log("seen"); process.stdin.once("data", () => take(400));`;
  const child = Bun.spawn(
    ["sh", "-c", `echo $$ > ${group}/cgroup.procs; exec "$0" -e '${program}'`, process.execPath],
    {
      env: { ...process.env, [AGENT_ID_VARIABLE]: agent_id },
      stdin: "pipe",
    },
  );
  try {
    await child.stdout.getReader().read();
    expect(kills.takeKilled()).toEqual([]);
    child.stdin.write("go\n");
    child.stdin.flush();
    await child.exited;
    expect(kills.takeKilled()).toEqual([expect.stringMatching(/^bun/)]);
    expect(kills.memory?.total).toBe(200 * MIB);
  } finally {
    child.kill("SIGKILL");
    await child.exited;
    await until(() => {
      try {
        rmdirSync(group);
      } catch {}
      return !existsSync(group);
    });
  }
});

testNeeding(
  [needs.root],
  "[DM-27] a daemon with a full home folder starts, runs its scripts and reports the full disk",
  async () => {
    using temp = tempFolder();
    const home = join(temp.path, "home");
    mkdirSync(home);
    Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", home]);
    try {
      // Fills the disk until writing fails.
      Bun.spawnSync(["sh", "-c", `cat /dev/zero > ${home}/fill; echo > ${home}/last`]);
      await using server = new RecordingServer();
      const key = { envName: "KEY", filePath: "~/.secret/key", value: Buffer.from("x".repeat(100)) };
      server.manifest = {
        directory: "~/project",
        workspaceId: bytes(7),
        secrets: [key],
        scripts: [script("echo still works; echo > $HOME/more || echo refused")],
      };
      await using daemon = startDaemon({ url: server.url, env: { HOME: home } });
      await server.until(({ states }) => states.includes("ready"));
      await server.until(() => server.lines().length >= 3);
      expect(server.lines()).toContain("info still works");
      expect(server.lines()).toContain("info refused");
      await server.until(() => server.lines(0).length > 0);
      expect(server.lines(0)).toContain(`error The disk of ${home} is full: free some space.`);
      const [first] = await server.until(() => {
        const calls = server.calls("pushResourcesMonitoringUsage");
        return calls.length > 0 && calls;
      });
      const volume = { volume: home, used: BigInt(MIB), total: BigInt(MIB) };
      expect(first?.request).toMatchObject({ datapoints: [{ volumes: [volume] }] });
      // Freed space is reported within seconds.
      Bun.spawnSync(["rm", join(home, "fill")]);
      await server.until(() => server.calls("pushResourcesMonitoringUsage").length > 1);
      await daemon.stop();
      expect(server.states.at(-1)).toBe("off");
    } finally {
      Bun.spawnSync(["umount", "-l", home]);
    }
  },
);
