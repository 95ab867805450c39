// The undo row on a large repository: the duration of the next checkpoint when ten of 50,000 files have changed, compared with `git status`
// on the same repository. CPU time does not depend on other load on the machine.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import { Checkpoints } from "#src/daemon/checkpoints/checkpoints.ts";
import { ProcessGroups } from "#src/daemon/scripts/groups.ts";
import { tempDirectory } from "#test/support/server.ts";
import { processorTicks } from "../machine.ts";
import { type Figures, productFigure, productRatio, type Row, range } from "../row.ts";
import type { SideName } from "../sides.ts";

const [FOLDERS, FILES_IN_EACH, CHANGED, ROUNDS] = [500, 100, 10, 15];
const CHAT = "11111111-1111-4111-8111-111111111111";
const env = { PATH: process.env.PATH ?? "", GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1" };

const git = async (root: string, ...args: string[]): Promise<void> => {
  const author = ["-c", "user.name=bench", "-c", "user.email=bench@example.com"];
  const child = Bun.spawn(["git", ...author, ...args], { cwd: root, env, stdout: "ignore", stderr: "inherit" });
  if ((await child.exited) !== 0) throw new Error(`git ${args[0]} failed`);
};

const fileAt = (root: string, folder: number, file: number): string =>
  join(root, `folder-${folder}`, `file-${file}.ts`);

const makeLargeRepository = async (root: string): Promise<void> => {
  for (const folder of range(FOLDERS)) {
    mkdirSync(join(root, `folder-${folder}`), { recursive: true });
    for (const file of range(FILES_IN_EACH)) {
      writeFileSync(fileAt(root, folder, file), `export const value = ${folder * FILES_IN_EACH + file};\n`.repeat(40));
    }
  }
  await git(root, "init", "-q");
  await git(root, "add", "-A");
  await git(root, "commit", "-q", "-m", "all of it");
};

const change = (root: string, round: number): void => {
  for (const file of range(CHANGED))
    writeFileSync(fileAt(root, (round * CHANGED + file) % FOLDERS, 0), `changed ${round}\n`);
};

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

const measure = async (side: SideName): Promise<Figures> => {
  using temp = tempDirectory();
  const root = join(temp.path, "work");
  await makeLargeRepository(root);
  const groups = new ProcessGroups({ clock: systemClock, agent_id: "bench" });
  const checkpoints = new Checkpoints({
    clock: systemClock,
    env,
    state: join(temp.path, "state"),
    folder: () => root,
    groups,
  });
  const takeBySide: Record<string, (round: number) => Promise<unknown>> = {
    floor: () => git(root, "status", "--porcelain"),
    product: (round) => checkpoints.take({ chat_id: CHAT, message_id: round + 2 }),
  };
  const startedAt = performance.now();
  if (side === "product") await checkpoints.take({ chat_id: CHAT, message_id: 1 });
  const first_ms = performance.now() - startedAt;
  const times: number[] = [];
  let ticks = 0;
  for (const round of range(ROUNDS)) {
    change(root, round);
    // No tool waits for the work that follows a checkpoint.
    await checkpoints.waitUntilIdle();
    const ticksBefore = processorTicks().own;
    const roundStartedAt = performance.now();
    await takeBySide[side]?.(round);
    times.push(performance.now() - roundStartedAt);
    ticks += processorTicks().own - ticksBefore;
  }
  await checkpoints.waitUntilIdle();
  return { p50_ms: median(times), processor_ms: (ticks * 10) / ROUNDS, first_ms };
};

export const undo: Row = {
  name: "undo",
  title: `the next checkpoint of a repository of ${FOLDERS * FILES_IN_EACH} files, ${CHANGED} changed`,
  sides: ["floor", "product"],
  maxRounds: 5,
  measure: (_, side) => measure(side),
  figures: { p50_ms: "next p50, ms", processor_ms: "processor for one, ms", first_ms: "first, ms" },
  verdicts: [
    { what: "next p50", target: "<= 150 ms", value: productFigure("p50_ms"), bound: 150, better: "lower", unit: "ms" },
    {
      what: "next p50 / git status",
      target: "<= 2",
      value: productRatio("p50_ms"),
      bound: 2,
      better: "lower",
      unit: "ratio",
    },
    {
      what: "processor for one / git status",
      target: "<= 2",
      value: productRatio("processor_ms"),
      bound: 2,
      better: "lower",
      unit: "ratio",
    },
  ],
};
