// Runs git on a git directory of checkpoints, without the user's hooks, filters or prompts, and with limits on output and time. Every file
// of this folder that needs git uses it. Throws `conflict` with git's own message.
import { AppError, conflict } from "#base/errors.ts";
import type { GitOptions } from "../git/scan.ts";
import { runProcess } from "../scripts/process.ts";

const TIMEOUT_MS = 20_000;
/** For commands that read a whole repository. */
export const BULK_TIMEOUT_MS = 300_000;
const MAX_LISTED_BYTES = 32 * 1024 * 1024;
const ENVIRONMENT = { GIT_TERMINAL_PROMPT: "0", GIT_NO_LAZY_FETCH: "1", GIT_CONFIG_NOSYSTEM: "1", LC_ALL: "C" };
const SETTINGS = [
  "core.fsmonitor=false",
  "core.untrackedCache=false",
  // Writes only the changed part of a large index.
  "core.splitIndex=true",
  "splitIndex.sharedIndexExpire=1.day.ago",
  "core.sparseCheckout=false",
  "core.autocrlf=false",
  "core.bare=false",
  "core.fileMode=true",
  "core.symlinks=true",
  "core.ignoreCase=false",
  // One sync for all objects of a command instead of one for each.
  "core.fsyncMethod=batch",
  "core.compression=1",
  "gc.auto=0",
];
const SAFE_SETTINGS = SETTINGS.flatMap((one) => ["-c", one]);

/**
 * A private git directory with its own index and rules, the object store that all folders of the workspace share, and the folder with the
 * files.
 */
export type GitFolders = { readonly gitDirectory: string; readonly objects: string; readonly root: string };

export type CheckpointGit = GitFolders & {
  readonly args: readonly string[];
  readonly input?: string;
  readonly index?: string;
  /** The user's object store, from which this command may also read. */
  readonly borrowed?: string;
  readonly timeout_ms?: number;
  /** Exit codes other than 0 that are not failures. */
  readonly acceptedCodes?: readonly number[];
  /** Receives the output, which may then have any size; the result is empty. */
  readonly onText?: (text: string) => void;
};

/** Runs git in the given folders and returns its output. */
export const runCheckpointGit = async (options: GitOptions, run: CheckpointGit): Promise<string> => {
  const { args, gitDirectory, objects, root, input, index, borrowed } = run;
  const env: Record<string, string> = { GIT_DIR: gitDirectory, GIT_OBJECT_DIRECTORY: objects };
  if (args[0] !== "init") env.GIT_WORK_TREE = root;
  if (index !== undefined) env.GIT_INDEX_FILE = index;
  if (borrowed !== undefined) env.GIT_ALTERNATE_OBJECT_DIRECTORIES = quotePath(borrowed);
  const { timeout_ms, acceptedCodes, onText } = run;
  // A temporary index must not leave a shared index file behind.
  const settings = index === undefined ? SAFE_SETTINGS : [...SAFE_SETTINGS, "-c", "core.splitIndex=false"];
  const command = ["git", ...settings, ...args];
  return runGitProgram(options, { command, root, env, input, timeout_ms, acceptedCodes, onText });
};

type Program = Pick<CheckpointGit, "root" | "input" | "timeout_ms" | "acceptedCodes" | "onText"> & {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
};

/** Runs a program that runs git. If git cannot read the user's settings, runs it again without them. */
export const runGitProgram = async (options: GitOptions, program: Program): Promise<string> => {
  try {
    return await runOnce(options, program);
  } catch (error) {
    if (!(error instanceof AppError) || !BAD_SETTINGS_MESSAGE.test(error.message)) throw error;
    const { command, root, env, input, timeout_ms, acceptedCodes, onText } = program;
    const envWithoutUserSettings = { ...env, GIT_CONFIG_GLOBAL: "/dev/null" };
    return runOnce(options, { command, root, env: envWithoutUserSettings, input, timeout_ms, acceptedCodes, onText });
  }
};

/** Git reports unreadable settings before it does anything. */
const BAD_SETTINGS_MESSAGE = /bad (numeric |boolean )?config|unable to access '.*config'/;

const runOnce = async (options: GitOptions, program: Program): Promise<string> => {
  const { command, root, env, input, timeout_ms = TIMEOUT_MS, acceptedCodes = [], onText } = program;
  const { clock, groups } = options;
  const chunks: Uint8Array[] = [];
  const decoder = new TextDecoder();
  let size = 0;
  let message = "";
  const result = await runProcess({
    command,
    directory: root,
    env: { ...options.env, ...ENVIRONMENT, ...env },
    clock,
    groups,
    timeout_ms,
    ...(input === undefined ? {} : { stdin: new TextEncoder().encode(input) }),
    onOutput: (from, bytes) => {
      if (from === "stderr") {
        message = (message + new TextDecoder().decode(bytes)).slice(0, 500);
        return;
      }
      if (onText) return onText(decoder.decode(bytes, { stream: true }));
      size += bytes.byteLength;
      if (size <= MAX_LISTED_BYTES) chunks.push(bytes);
    },
  });
  if (result.timed_out || size > MAX_LISTED_BYTES) throw conflict(`${root} has too many files to look through`);
  if (result.exit_code !== 0 && !acceptedCodes.includes(result.exit_code))
    throw conflict(`git: ${message.trim() || `ended with ${result.exit_code}`}`);
  return Buffer.concat(chunks).toString("utf8");
};

/** Quotes a path so that git does not split it at colons. */
const quotePath = (path: string): string => `"${path.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
