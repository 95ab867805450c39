// Says what differs between two captures of one folder: counts of all of it, and as much of the diff as anyone wants to read. Used by checkpoints.ts.
import type { FolderChanges } from "#schema/agents/checkpoint.ts";
import { Diff } from "../git/diff.ts";
import type { GitOptions } from "../git/scan.ts";
import { BULK_TIMEOUT_MS } from "./run.ts";
import { findOwnRepository } from "./seed.ts";
import type { ShadowGit } from "./shadow.ts";

/** The tree of no files, which every git knows. */
const EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
const COMPARE = ["-c", "core.quotePath=false", "diff-tree", "-r", "--no-renames", "--no-ext-diff", "--no-textconv"];

/** Compares the trees; undefined stands for a folder that was not there. Throws with git's own words. */
export const compareTrees = async (
  options: GitOptions,
  shadow: ShadowGit,
  {
    before = EMPTY_TREE,
    after = EMPTY_TREE,
  }: { readonly before: string | undefined; readonly after: string | undefined },
): Promise<Omit<FolderChanges, "root">> => {
  await shadow.prepare();
  // Tracked files that are too large to be copied are only there.
  const own = shadow.kind === "repository" ? await findOwnRepository(options, shadow.root) : undefined;
  const how = { timeout_ms: BULK_TIMEOUT_MS, ...(own ? { borrowed: own.objects } : {}) };
  const counts = { files: 0, added: 0, removed: 0 };
  const numbers = await shadow.git([...COMPARE, "--numstat", "-z", before, after], how);
  for (const line of numbers.split("\0").filter((one) => one !== "")) {
    const [added, removed] = line.split("\t");
    counts.files += 1;
    // Of what is no text git counts no lines.
    counts.added += Number(added) || 0;
    counts.removed += Number(removed) || 0;
  }
  const diff = new Diff();
  const encoder = new TextEncoder();
  const onText = (text: string): void => diff.add(encoder.encode(text));
  await shadow.git([...COMPARE, "-p", before, after], { ...how, onText });
  return { ...counts, unified_diff: diff.text };
};
