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

/** Checks that find these readings one after the other. */
const makeMemoryKills = (
  looks: readonly { reading: MemoryReading; processes?: readonly Process[] }[],
  log: number[] = [],
) => {
  let look = -1;
  return new MemoryKills({
    agent_id: "agent",
    read: () => looks[++look]?.reading,
    processes: () => looks[look]?.processes ?? [],
    resident: (pid) => pid * MIB,
    log: () => log,
  });
};
const scarce = { used: 90, total: 100 };

test("[DM-26] a process killed for memory is named after the largest one that ended, or counted if it was not observed", () => {
  const kills = makeMemoryKills([
    {
      reading: { memory: scarce, isOwn: true, kills: 3 },
      processes: [makeProcess(10, "vim"), makeProcess(50, "npm", "run", "build")],
    },
    { reading: { memory: scarce, isOwn: true, kills: 4 }, processes: [makeProcess(10, "vim")] },
    { reading: { memory: { used: 1, total: 100 }, isOwn: true, kills: 6 }, processes: [] },
  ]);
  expect(kills.takeKilled()).toEqual([]);
  expect(kills.takeKilled()).toEqual(["npm run build"]);
  expect(kills.takeKilled()).toEqual(["vim", ""]);
  expect(kills.memory).toEqual({ used: 1, total: 100 });
  expect(kills.takeKilled()).toEqual([]);
});

test("[DM-26] on a shared machine, only the workspace's processes that the kernel's log names count as killed", () => {
  const looks = [
    {
      reading: { memory: scarce, isOwn: false, kills: 0 },
      processes: [makeProcess(10, "vim"), makeProcess(50, "make"), makeProcess(60, "ls")],
    },
    { reading: { memory: scarce, isOwn: false, kills: 1 }, processes: [makeProcess(10, "vim")] },
    { reading: { memory: scarce, isOwn: false, kills: 2 }, processes: [makeProcess(10, "vim")] },
  ];
  const kills = makeMemoryKills(looks, [50]);
  expect([kills.takeKilled(), kills.takeKilled(), kills.takeKilled()]).toEqual([[], ["make"], []]);
});

test("[DM-26] control groups of both versions are read, and without a limit the machine's memory applies", () => {
  const readFrom = (all: Record<string, string>) => (file: string) => all[file] ?? "";
  const meminfo = { "/proc/meminfo": "MemTotal:  1000 kB\nMemFree: 1 kB\nMemAvailable:   400 kB\n" };
  const second = {
    "/proc/self/cgroup": "0::/\n",
    "/sys/fs/cgroup/memory.events": "low 0\nhigh 0\nmax 9\noom 2\noom_kill 7\n",
    "/sys/fs/cgroup/memory.max": "1000\n",
    "/sys/fs/cgroup/memory.current": "900\n",
    "/sys/fs/cgroup/memory.stat": "anon 100\ninactive_file 500\n",
  };
  expect(readMemory(readFrom(second))).toEqual({ memory: { used: 400, total: 1000 }, isOwn: true, kills: 7 });
  expect(readMemory(readFrom({ ...second, ...meminfo, "/sys/fs/cgroup/memory.max": "max\n" }))).toEqual({
    memory: { used: 600 * 1024, total: 1000 * 1024 },
    isOwn: false,
    kills: 7,
  });
  const first = {
    "/proc/self/cgroup": "4:memory:/docker/x\n0::/docker/x\n",
    "/sys/fs/cgroup/memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes": "2000\n",
    "/sys/fs/cgroup/memory/memory.usage_in_bytes": "1900\n",
    "/sys/fs/cgroup/memory/memory.stat": "inactive_file 1\ntotal_inactive_file 900\n",
  };
  expect(readMemory(readFrom(first))).toEqual({ memory: { used: 1000, total: 2000 }, isOwn: true, kills: 1 });
  expect(readMemory(readFrom({}))).toBeUndefined();
});

const GROUPS = "/sys/fs/cgroup/memory";
const groups = {
  found: existsSync(join(GROUPS, "memory.oom_control")),
  reason: "needs control groups of memory",
  file: "",
};

testNeeding([needs.root, groups], "[DM-26] a process that the kernel kills is named", async () => {
  const name = `slipway-test-${process.pid}`;
  const group = join(GROUPS, name);
  mkdirSync(group);
  writeFileSync(join(group, "memory.limit_in_bytes"), String(200 * MIB));
  const agent_id = crypto.randomUUID();
  const read = () => readMemory((file) => (file === "/proc/self/cgroup" ? `4:memory:/${name}\n` : readProc(file)));
  const kills = new MemoryKills({ agent_id, read });
  kills.takeKilled();
  // Fills most of the limit, waits until it was noticed, and uses the rest.
  const fill =
    "const all = []; const take = (n) => { for (let i = 0; i < n; i++) all.push(Buffer.alloc(1 << 20, 1)); };";
  const text = `${fill} take(110); console.log("seen"); process.stdin.once("data", () => take(400));`;
  const child = Bun.spawn(["sh", "-c", `echo $$ > ${group}/cgroup.procs; exec "$0" -e '${text}'`, process.execPath], {
    env: { ...process.env, [AGENT_ID_VARIABLE]: agent_id },
    stdin: "pipe",
  });
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
  "[DM-27] a daemon whose home is full starts, runs its scripts, reports it and continues",
  async () => {
    using place = tempFolder();
    const home = join(place.path, "home");
    mkdirSync(home);
    Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", home]);
    try {
      // As full as a program leaves it that writes until it fails.
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
      await server.until((one) => one.lines().length >= 3);
      expect(server.lines()).toContain("info still works");
      expect(server.lines()).toContain("info refused");
      await server.until((one) => one.lines(0).length > 0);
      expect(server.lines(0)).toContain(`error The disk of ${home} is full: free some space.`);
      const [first] = await server.until((one) => {
        const calls = one.calls("pushResourcesMonitoringUsage");
        return calls.length > 0 && calls;
      });
      const volume = { volume: home, used: BigInt(MIB), total: BigInt(MIB) };
      expect(first?.request).toMatchObject({ datapoints: [{ volumes: [volume] }] });
      // Freed space is reported within seconds.
      Bun.spawnSync(["rm", join(home, "fill")]);
      await server.until((one) => one.calls("pushResourcesMonitoringUsage").length > 1);
      await daemon.stop();
      expect(server.states.at(-1)).toBe("off");
    } finally {
      Bun.spawnSync(["umount", "-l", home]);
    }
  },
);
