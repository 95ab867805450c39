// Takes out of a git directory of checkpoints what no checkpoint holds any more (rule UN-10). What was written within the last hour stays:
// another daemon on the same folder may be about to name it. Refuses to touch anything when git cannot say what is needed.
import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { GitOptions } from "../git/scan.ts";
import { type CheckpointGit, runCheckpointGit } from "./run.ts";

const GRACE_MS = 3_600_000;

/** Where a git directory of checkpoints is, and the trees that are still needed of it. */
export type Kept = { readonly place: string; readonly trees: ReadonlySet<string> };

/** Answers how many objects were removed. */
export const pruneObjects = async (options: GitOptions, { place, trees }: Kept): Promise<number> => {
  const before = options.clock.now() - GRACE_MS;
  await removeLeavings(place, before);
  const old = await looseBefore(join(place, "objects"), before);
  if (old.size === 0) return 0;
  const git = (args: readonly string[], more: Partial<CheckpointGit> = {}) =>
    runCheckpointGit(options, { args, place, root: place, ...more });
  // The index names blobs of files that are as they were, too.
  const index = await git(["write-tree"]).catch(async (error) => {
    // It names what is gone: made anew by the next checkpoint.
    await rm(join(place, "index"), { force: true });
    throw error;
  });
  let rest = "";
  await git(["rev-list", "--objects", "--no-object-names", "--missing=allow-any", "--ignore-missing", "--stdin"], {
    input: [...trees, index.trim()].map((tree) => `${tree}\n`).join(""),
    onText(text) {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const id of lines) old.delete(id);
    },
  });
  for (const file of old.values()) await rm(file, { force: true });
  return old.size;
};

/** The objects that stand in files of their own, by their ids. */
const looseBefore = async (objects: string, before: number): Promise<Map<string, string>> => {
  const found = new Map<string, string>();
  for (const head of await readdir(objects)) {
    if (!/^[0-9a-f]{2}$/.test(head)) continue;
    for (const tail of await readdir(join(objects, head))) {
      const file = join(objects, head, tail);
      if (await isOlder(file, before)) found.set(head + tail, file);
    }
  }
  return found;
};

/** Files that a program which was killed has not removed. */
const removeLeavings = async (place: string, before: number): Promise<void> => {
  for (const name of await readdir(place)) {
    if (!/^(index|input)-/.test(name) && name !== "index.lock") continue;
    if (await isOlder(join(place, name), before)) await rm(join(place, name), { force: true });
  }
};

/** False for what is not there. */
export const isOlder = (file: string, before: number): Promise<boolean> =>
  stat(file).then(
    ({ mtimeMs }) => mtimeMs < before,
    () => false,
  );

/** A git directory that no checkpoint names, and that nobody is about to fill. */
export const isForgotten = (place: string, now: number): Promise<boolean> =>
  isOlder(join(place, "info", "ready"), now - GRACE_MS);
