// Reads the state of one repository with the workspace's git: branch, origin, and the diff against the last commit (facts/chats 2.11, rules
// GS-2, GS-3). Changes nothing, not even the index, runs no program that the repository configures, and takes at most a minute.
import { lstat, readlink } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { readRegularFile } from "#base/system/regular-file.ts";
import type { GitReferences } from "#schema/agents/git-message.ts";
import type { Environment } from "../environment.ts";
import type { ProcessGroups } from "../scripts/groups.ts";
import { runProcess } from "../scripts/process.ts";
import { Diff, formatNewFileDiff, MAX_FILE_BYTES } from "./diff.ts";

export type GitOptions = { readonly clock: Clock; readonly groups: ProcessGroups; readonly env: Environment };

/** The state of a repository. */
export type RepositorySnapshot = {
  readonly branch: string;
  readonly remote_origin: string;
  readonly unified_diff: string;
};

const TIMEOUT_MS = 20_000;
/** Maximum size of a listing; a larger one is cut off. */
const MAX_LISTED_BYTES = 1024 * 1024;
const MAX_NEW_FILES = 2_000;

const SAFE_SETTINGS = ["--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false"];
const ENVIRONMENT = { GIT_TERMINAL_PROMPT: "0", GIT_OPTIONAL_LOCKS: "0", GIT_NO_LAZY_FETCH: "1", LC_ALL: "C" };

/** Throws with git's own message if the repository cannot be read. */
export const scanRepository = async (options: GitOptions, root: string): Promise<RepositorySnapshot> => {
  const status = ["status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--no-renames"];
  const listed = await runGit(options, root, status);
  const remote_origin = await loadOrigin(options, root);
  const lines = listed.split("\0");
  const diff = new Diff();
  if (lines.some((line) => /^[12u] /.test(line))) await diffTracked(options, root, lines, diff);
  const untracked = lines.filter((line) => line.startsWith("? ")).map((line) => line.slice(2));
  for (const path of untracked.slice(0, MAX_NEW_FILES)) {
    if (diff.isFull) break;
    const text = await diffNewFile(join(root, path), path);
    if (text !== undefined) diff.addFile(text);
  }
  return { branch: parseBranch(lines), remote_origin, unified_diff: diff.text };
};

/** Loads only the branch that is checked out, and whether it was pushed. */
export const loadReference = async (
  options: GitOptions,
  repo_root: string,
): Promise<GitReferences["repositories"][number]> => {
  const branch = (await runGit(options, repo_root, ["symbolic-ref", "--short", "-q", "HEAD"], [1])).trim();
  const remote_origin = await loadOrigin(options, repo_root);
  const remote = `refs/remotes/origin/${branch}`;
  const remoteRef = branch === "" ? "" : await runGit(options, repo_root, ["for-each-ref", "--count=1", remote]);
  return { repo_root, branch, remote_origin, pushed: remoteRef !== "" };
};

const parseBranch = (lines: readonly string[]): string => {
  const name = lines.find((line) => line.startsWith("# branch.head "))?.slice("# branch.head ".length) ?? "";
  return name === "(detached)" ? "" : name;
};

const loadOrigin = async (options: GitOptions, root: string): Promise<string> => {
  const text = (await runGit(options, root, ["config", "--get", "remote.origin.url"], [1])).trim();
  // Remote URLs often contain tokens.
  return text.replace(/^([a-z+]+:\/\/)[^/@]*@/i, "$1");
};

const diffTracked = async (options: GitOptions, root: string, lines: readonly string[], diff: Diff): Promise<void> => {
  const isFirst = lines.includes("# branch.oid (initial)");
  // Before the first commit, everything is compared with an empty tree in the repository's hash format.
  const base = isFirst ? (await runGit(options, root, ["hash-object", "-t", "tree", "/dev/null"])).trim() : "HEAD";
  const large = ["-c", `core.bigFileThreshold=${MAX_FILE_BYTES}`];
  const args = [...large, "diff", "--no-color", "--no-ext-diff", "--no-textconv", base, "--"];
  await run(options, root, args, (bytes) => {
    diff.add(bytes);
    return !diff.isFull;
  });
};

/** Returns undefined for anything but a file or link, and for a file removed in the meantime. */
const diffNewFile = async (absolute: string, path: string): Promise<string | undefined> => {
  try {
    const stats = await lstat(absolute);
    if (stats.isSymbolicLink()) {
      return formatNewFileDiff(path, { mode: "120000", content: new TextEncoder().encode(await readlink(absolute)) });
    }
    if (!stats.isFile()) return undefined;
    const mode = (stats.mode & 0o100) === 0 ? "100644" : "100755";
    return formatNewFileDiff(path, {
      mode,
      content: stats.size > MAX_FILE_BYTES ? undefined : readRegularFile(absolute, MAX_FILE_BYTES),
    });
  } catch {
    return undefined;
  }
};

const runGit = async (
  options: GitOptions,
  root: string,
  args: readonly string[],
  acceptedCodes: readonly number[] = [],
): Promise<string> => {
  const chunks: Uint8Array[] = [];
  let size = 0;
  const collect = (bytes: Uint8Array): boolean => {
    chunks.push(bytes);
    size += bytes.byteLength;
    return size < MAX_LISTED_BYTES;
  };
  await run(options, root, args, collect, acceptedCodes);
  return Buffer.concat(chunks).toString("utf8");
};

/** Runs git and passes its output to `onOutput`, until `onOutput` returns false. */
const run = async (
  { clock, groups, env }: GitOptions,
  root: string,
  args: readonly string[],
  onOutput: (bytes: Uint8Array) => boolean,
  acceptedCodes: readonly number[] = [],
): Promise<void> => {
  let pid = 0;
  let isStopped = false;
  let errorText = "";
  const result = await runProcess({
    command: ["git", ...SAFE_SETTINGS, ...args],
    directory: root,
    env: { ...env, ...ENVIRONMENT },
    clock,
    groups,
    timeout_ms: TIMEOUT_MS,
    onStart: (process_id) => {
      pid = process_id;
    },
    onOutput: (from, bytes) => {
      if (from === "stderr") errorText = (errorText + new TextDecoder().decode(bytes)).slice(0, 500);
      else if (!isStopped && !onOutput(bytes)) {
        isStopped = true;
        groups.end(pid);
      }
    },
  });
  if (isStopped || result.exit_code === 0 || acceptedCodes.includes(result.exit_code)) return;
  throw new Error(result.timed_out ? "git takes too long" : errorText.trim() || `git ended with ${result.exit_code}`);
};
