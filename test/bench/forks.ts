// Forks of a workspace with a home of 1 GiB on btrfs: how long they take, and what they take of the disk (rule FO-8). By hand and as root:
// bun test/bench/forks.ts [COUNT] [MIB]
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Fork } from "#schema/workspaces/fork.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { awaitBuild, createWorkspace } from "#test/support/workspaces.ts";
import { ServerPlace } from "../crash/server.ts";
import { enter } from "../crash/server-world.ts";

const [count = 100, mebibytes = 1024] = process.argv.slice(2).map(Number);
const FILES = 2_000;
const LOOK_MS = 50;

const run = (...command: string[]): string => {
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, { stdout: "pipe", stderr: "pipe" });
  if (exitCode !== 0) throw new Error(`${command.join(" ")}: ${stderr.toString()}`);
  return stdout.toString();
};

const folder = mkdtempSync(join(tmpdir(), "forks-"));
const disk = join(folder, "btrfs");
mkdirSync(disk);
run("truncate", "-s", "8G", `${disk}.image`);
run("mkfs.btrfs", "-q", `${disk}.image`);
run("mount", "-o", "loop", `${disk}.image`, disk);
const used = (): number => {
  run("sync", "-f", disk);
  return Number(run("df", "-B1", "--output=used", disk).split("\n")[1]);
};

/** Seconds that the server and the programs it has started have had of the processors. */
const readProcessorTime = (pid: number): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / 100;
};

const measure = async (): Promise<void> => {
  await using place = await ServerPlace.make();
  const { child } = await place.start();
  const { admin } = await enter(place);
  const template = await makeTemplate(admin, "provisioner: local\nresources: [{name: a, agents: [{name: main}]}]\n");
  const { id } = await createWorkspace(admin, template.id);
  await awaitBuild(admin, id);
  const home = join(place.directory, "workspaces", id, "home");
  const piece = new Uint8Array((mebibytes * 1024 * 1024) / FILES);
  for (let at = 0; at < FILES; at++) {
    for (let from = 0; from < piece.length; from += 65_536) crypto.getRandomValues(piece.subarray(from, from + 65_536));
    const inside = join(home, String(at % 40));
    mkdirSync(inside, { recursive: true });
    await Bun.write(join(inside, String(at)), piece);
  }
  const [before, worked] = [used(), readProcessorTime(child.pid)];
  const began = performance.now();
  let fork = await admin.post<Fork>(`/api/v2/workspaces/${id}/forks`, { count });
  const answered = performance.now();
  while (fork.status === "copying" || fork.status === "creating") {
    await Bun.sleep(LOOK_MS);
    fork = await admin.get<Fork>(`/api/v2/workspaces/${id}/forks/${fork.id}`);
  }
  const ended = performance.now();
  const processor_s = readProcessorTime(child.pid) - worked;
  const ready = fork.copies.filter(({ status }) => status === "ready").length;
  const of = { files: FILES, home_mib: mebibytes, forks: count, ready };
  const times = { answered_ms: Math.round(answered - began), ready_ms: Math.round(ended - began) };
  const figures = {
    ...of,
    ...times,
    processor_s,
    more_on_disk_mib: (used() - before) / 1024 / 1024,
    load: run("uptime").trim(),
  };
  process.stdout.write(`${JSON.stringify(figures)}\n`);
};

try {
  process.env.TMPDIR = disk;
  await measure();
} finally {
  run("umount", "-l", disk);
  rmSync(folder, { recursive: true });
}
