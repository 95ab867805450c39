// Runs git on a git directory of checkpoints: no hook, filter or prompt of the user's, and no more output and time than is agreed. Used by
// checkpoint-git.ts and checkpoint-objects.ts. Throws `conflict` in git's own words.
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { conflict } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import type { GitOptions } from "../git/scan.ts";
import { runProcess } from "../scripts/process.ts";

const LIMIT_MS = 20_000;
const MOST_LISTED = 16 * 1024 * 1024;
const ENVIRONMENT = { GIT_TERMINAL_PROMPT: "0", GIT_NO_LAZY_FETCH: "1", GIT_CONFIG_NOSYSTEM: "1", LC_ALL: "C" };
const SAFE = [
  "-c",
  "core.fsmonitor=false",
  "-c",
  "core.untrackedCache=false",
  "-c",
  "core.autocrlf=false",
  "-c",
  "core.bare=false",
];

/** `root`: the work tree. `onText`: takes the output, however much it is, instead of the caller. */
export type CheckpointGit = {
  readonly args: readonly string[];
  readonly place: string;
  readonly root: string;
  readonly input?: string;
  readonly index?: string;
  readonly onText?: (text: string) => void;
};

/** On the git directory at `place`; answers its output. */
export const runCheckpointGit = async (options: GitOptions, wanted: CheckpointGit): Promise<string> => {
  const { args, place, root, input, index } = wanted;
  const more = { GIT_DIR: place, GIT_WORK_TREE: root, ...(index ? { GIT_INDEX_FILE: index } : {}) };
  const env: Record<string, string> = args[0] === "init" ? { GIT_DIR: place } : more;
  const run = (command: readonly string[]) => runGitProgram(options, { command, root, env, onText: wanted.onText });
  if (input === undefined) return run(["git", ...SAFE, ...args]);
  const file = join(place, `input-${uuid()}`);
  await writeFile(file, input);
  try {
    return await run(["sh", "-c", 'exec "$@" < "$0"', file, "git", ...SAFE, ...args]);
  } finally {
    await rm(file, { force: true });
  }
};

type Program = Pick<CheckpointGit, "root"> & {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly onText?: CheckpointGit["onText"];
};

/** Any program that is git in the end. */
export const runGitProgram = async (options: GitOptions, { command, root, env, onText }: Program): Promise<string> => {
  const { clock, groups } = options;
  const chunks: Uint8Array[] = [];
  const decoder = new TextDecoder();
  let size = 0;
  let words = "";
  const end = await runProcess({
    command,
    directory: root,
    env: { ...options.env, ...ENVIRONMENT, ...env },
    clock,
    groups,
    timeout_ms: LIMIT_MS,
    onOutput: (from, bytes) => {
      if (from === "stderr") {
        words = (words + new TextDecoder().decode(bytes)).slice(0, 500);
        return;
      }
      if (onText) return onText(decoder.decode(bytes, { stream: true }));
      size += bytes.byteLength;
      if (size <= MOST_LISTED) chunks.push(bytes);
    },
  });
  if (end.timed_out || size > MOST_LISTED) throw conflict(`${root} has too much to look at`);
  if (end.exit_code !== 0) throw conflict(`git: ${words.trim() || `ended with ${end.exit_code}`}`);
  return Buffer.concat(chunks).toString("utf8");
};
