// Snapshots, a restore and forks of a workspace with a large home: their duration and disk usage (rule FO-8). Run manually as root:
// `bun test/bench/homes.ts btrfs|here [--files 2000] [--mib 1024] [--forks 100]`. `btrfs` uses a loop file of 16 GiB, `here` the file
// system of the temp folder. Half of each file is compressible.
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Fork } from "#schema/workspaces/fork.ts";
import type { Snapshot, Snapshots } from "#schema/workspaces/snapshot.ts";
import type { Client } from "#src/client.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { awaitBuild, createWorkspace } from "#test/support/workspaces.ts";
import { ServerSlot } from "../crash/server.ts";
import { signInAdmin } from "../crash/server-world.ts";

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    files: { type: "string", default: "2000" },
    mib: { type: "string", default: "1024" },
    forks: { type: "string", default: "100" },
  },
});
const [files, mebibytes, forks] = [values.files, values.mib, values.forks].map(Number) as [number, number, number];
const isOnBtrfs = positionals[0] === "btrfs";
const POLL_MS = 20;
/** Files per folder. */
const FILES_PER_FOLDER = 50;

const run = (...command: string[]): string => {
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, { stdout: "pipe", stderr: "pipe" });
  if (exitCode !== 0) throw new Error(`${command.join(" ")}: ${stderr.toString()}`);
  return stdout.toString();
};

const folder = mkdtempSync(join(tmpdir(), "homes-"));
const disk = join(folder, "disk");
mkdirSync(disk);
if (isOnBtrfs) {
  run("truncate", "-s", "16G", `${disk}.image`);
  run("mkfs.btrfs", "-q", `${disk}.image`);
  run("mount", "-o", "loop", `${disk}.image`, disk);
}
const readUsedMiB = (): number => {
  run("sync", "-f", disk);
  return Number(run("df", "-B1", "--output=used", disk).split("\n")[1]) / 1024 / 1024;
};

/** Returns the CPU seconds of the server and of the programs that it has started. */
const readProcessorTime = (pid: number): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / 100;
};

const fill = async (home: string): Promise<void> => {
  const content = new Uint8Array((mebibytes * 1024 * 1024) / files).fill(0x61);
  const randomHalf = content.subarray(0, content.length / 2);
  for (let index = 0; index < files; index++) {
    for (let from = 0; from < randomHalf.length; from += 65_536)
      crypto.getRandomValues(randomHalf.subarray(from, from + 65_536));
    const subfolder = join(home, String(Math.floor(index / FILES_PER_FOLDER)));
    if (index % FILES_PER_FOLDER === 0) mkdirSync(subfolder, { recursive: true });
    await Bun.write(join(subfolder, String(index)), content);
  }
  run("sync", "-f", disk);
};

/** Polls until `isOver` returns true, and returns the last result. */
const waitUntil = async <T>(read: () => Promise<T>, isOver: (result: T) => boolean): Promise<T> => {
  for (;;) {
    const result = await read();
    if (isOver(result)) return result;
    await Bun.sleep(POLL_MS);
  }
};

const createSnapshot = async (admin: Client, id: string): Promise<Snapshot> => {
  const path = `/api/v2/workspaces/${id}/snapshots`;
  const created = await admin.post<Snapshot>(path, {});
  const loadSnapshot = async () =>
    (await admin.get<Snapshots>(path)).snapshots.find((candidate) => candidate.id === created.id) ?? created;
  const snapshot = await waitUntil(loadSnapshot, ({ status }) => status !== "creating");
  if (snapshot.status !== "ready") throw new Error(snapshot.error);
  return snapshot;
};

const measure = async (): Promise<void> => {
  await using place = await ServerSlot.make();
  const { child } = await place.start();
  const { admin } = await signInAdmin(place);
  const template = await makeTemplate(admin, "provisioner: local\nresources: [{name: a, agents: [{name: main}]}]\n");
  const { id } = await createWorkspace(admin, template.id);
  await awaitBuild(admin, id);
  const home = join(place.directory, "workspaces", id, "home");
  await fill(home);
  process.stdout.write(`${files} files, ${mebibytes} MiB, ${isOnBtrfs ? "btrfs" : "here"}, ${run("uptime").trim()}\n`);
  const measureWork = async <T>(title: string, work: () => Promise<T>): Promise<T> => {
    const [usedBefore, cpuBefore, startedAt] = [readUsedMiB(), readProcessorTime(child.pid), performance.now()];
    const result = await work();
    const seconds = (performance.now() - startedAt) / 1_000;
    const cpuSeconds = readProcessorTime(child.pid) - cpuBefore;
    const addedMiB = Math.round(readUsedMiB() - usedBefore);
    process.stdout.write(`| ${title} | ${seconds.toFixed(2)} s | ${cpuSeconds.toFixed(1)} s | ${addedMiB} MiB |\n`);
    return result;
  };
  const { id: snapshot, method } = await measureWork("first snapshot", () => createSnapshot(admin, id));
  for (let index = 0; index < 250; index++) await Bun.write(join(home, "0", `changed-${index}`), "changed");
  await measureWork(`snapshot after 250 changed files (${method})`, () => createSnapshot(admin, id));
  await measureWork("restore, with the stop and the start", async () => {
    await admin.post<unknown>(`/api/v2/workspaces/${id}/snapshots/${snapshot}/restore`, {});
    await awaitBuild(admin, id);
  });
  await measureWork(`${forks} forks`, async () => {
    const path = `/api/v2/workspaces/${id}/forks`;
    const { id: fork } = await admin.post<Fork>(path, { count: forks });
    const read = () => admin.get<Fork>(`${path}/${fork}`);
    const { copies } = await waitUntil(read, ({ status }) => status !== "copying" && status !== "creating");
    const ready = copies.filter(({ status }) => status === "ready").length;
    if (ready !== forks) throw new Error(`${ready} of ${forks} forks are ready`);
  });
};

try {
  process.env.TMPDIR = disk;
  await measure();
} finally {
  if (isOnBtrfs) run("umount", "-l", disk);
  rmSync(folder, { recursive: true });
}
