// Compares two captures of one folder: totals over all files, and a diff of bounded size. Used by checkpoints.ts.
import type { FolderChanges } from "#schema/agents/checkpoint.ts";
import { Diff } from "../git/diff.ts";
import type { GitOptions } from "../git/scan.ts";
import { BULK_TIMEOUT_MS } from "./run.ts";
import { findOwnRepository } from "./seed.ts";
import type { ShadowGit } from "./shadow.ts";

/** The empty tree, which every git knows. */
const EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
const COMPARE = ["-c", "core.quotePath=false", "diff-tree", "-r", "--no-renames", "--no-ext-diff", "--no-textconv"];

/** Compares the trees; undefined stands for a folder that did not exist. Throws with git's own message. */
export const compareTrees = async (
  options: GitOptions,
  shadow: ShadowGit,
  {
    before = EMPTY_TREE,
    after = EMPTY_TREE,
  }: { readonly before: string | undefined; readonly after: string | undefined },
): Promise<Omit<FolderChanges, "root">> => {
  await shadow.prepare();
  // Tracked files that are too large to copy exist only in the user's repository.
  const own = shadow.kind === "repository" ? await findOwnRepository(options, shadow.root) : undefined;
  const how = { timeout_ms: BULK_TIMEOUT_MS, ...(own ? { borrowed: own.objects } : {}) };
  const counts = { files: 0, added: 0, removed: 0 };
  const numbers = await shadow.git([...COMPARE, "--numstat", "-z", before, after], how);
  for (const line of numbers.split("\0").filter((one) => one !== "")) {
    const [added, removed] = line.split("\t");
    counts.files += 1;
    // Git does not count lines of binary files.
    counts.added += Number(added) || 0;
    counts.removed += Number(removed) || 0;
  }
  const diff = new Diff();
  const encoder = new TextEncoder();
  const onText = (text: string): void => diff.add(encoder.encode(text));
  await shadow.git([...COMPARE, "-p", before, after], { ...how, onText });
  return { ...counts, unified_diff: diff.text };
};
