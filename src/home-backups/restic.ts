// Backups with restic: a repository for each workspace, in which each backup is one file, the tar of the home. Secrets are passed to restic
// only through its environment.

import { drain, writeToChild } from "#base/system/child-streams.ts";
import { HomeBackupError } from "./error.ts";
import type { BackupStorage } from "./storage.ts";

/** The oldest supported version, which is in Debian 12. */
const MIN_VERSION = [0, 14] as const;
const FILE = "home.tar";
const MAX_OUTPUT_CHARS = 64 * 1024;

/** Returns the path of restic; undefined if it is not installed. */
export const findRestic = (program: string | undefined, path: string | undefined): string | undefined =>
  Bun.which(program ?? "restic", { PATH: path ?? "" }) ?? undefined;

/** Returns restic's version. Throws HomeBackupError when the program cannot be used. */
export const checkRestic = async (program: string): Promise<string> => {
  const output = await new Response(spawn([program, "version"], {}).stdout).text();
  const [, version = ""] = /^restic (\d+\.\d+\.\d+)/.exec(output) ?? [];
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (version === "") throw new HomeBackupError(`${program} is not restic.`);
  if (major < MIN_VERSION[0] || (major === MIN_VERSION[0] && minor < MIN_VERSION[1])) {
    throw new HomeBackupError(`restic ${version} is too old. Install version ${MIN_VERSION.join(".")} or newer.`);
  }
  return version;
};

export class Restic {
  readonly #program: string;
  readonly #storage: BackupStorage;
  readonly #password: string;
  readonly #path: string;

  constructor(program: string, storage: BackupStorage, password: string, path: string) {
    this.#program = program;
    this.#storage = storage;
    this.#password = password;
    this.#path = path;
  }

  /** Stores the stream as one snapshot. If it fails, there is no snapshot. Throws HomeBackupError, and errors of the stream. */
  async write(
    workspace_id: string,
    id: string,
    stream: AsyncIterable<Uint8Array>,
    signal: AbortSignal,
  ): Promise<{ readonly restic_snapshot: string; readonly added_bytes: number }> {
    await this.#prepare(workspace_id, signal);
    const stdin = ["--stdin", "--stdin-filename", FILE, "--host", "slipway", "--tag", id];
    const child = this.#spawn(workspace_id, ["backup", "--json", "--quiet", ...stdin], signal);
    const output = readEnd(child.stdout);
    const errorOutput = readEnd(child.stderr);
    await writeToChild(child, stream);
    await this.#waitForExit(child, errorOutput, signal);
    for (const line of (await output).split("\n")) {
      if (!line.includes('"summary"')) continue;
      const { snapshot_id, data_added } = JSON.parse(line) as { snapshot_id: string; data_added: number };
      return { restic_snapshot: snapshot_id, added_bytes: data_added };
    }
    throw new HomeBackupError("restic exited without reporting what it stored.");
  }

  /** Returns the content of a snapshot. Throws HomeBackupError, also at the end. */
  async *read(workspace_id: string, restic_snapshot: string, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const child = this.#spawn(workspace_id, ["dump", "--no-lock", restic_snapshot, FILE], signal);
    const errorOutput = readEnd(child.stderr);
    yield* drain(child);
    await this.#waitForExit(child, errorOutput, signal, { isDamage: true });
  }

  /** Deletes the snapshots that are not in `kept`, and data that no snapshot uses. */
  async prune(workspace_id: string, kept: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    if (!(await this.#exists(workspace_id))) return;
    if (kept.size === 0) {
      for await (const { name } of this.#storage.list(toFolder(workspace_id))) await this.#storage.remove(name);
      return;
    }
    await this.#run(workspace_id, ["unlock", "--quiet"], signal);
    const listed = await this.#run(workspace_id, ["snapshots", "--json"], signal);
    const isKept = (id: string): boolean => [...kept].some((one) => id.startsWith(one));
    const removed = (JSON.parse(listed) as { id: string }[]).map(({ id }) => id).filter((id) => !isKept(id));
    if (removed.length > 0) await this.#run(workspace_id, ["forget", "--quiet", "--prune", ...removed], signal);
  }

  /** Creates the repository if it is missing, and removes stale locks. */
  async #prepare(workspace_id: string, signal: AbortSignal): Promise<void> {
    if (await this.#exists(workspace_id)) await this.#run(workspace_id, ["unlock", "--quiet"], signal);
    else await this.#run(workspace_id, ["init", "--quiet"], signal);
  }

  async #exists(workspace_id: string): Promise<boolean> {
    return (await this.#storage.get(`${toFolder(workspace_id)}config`, MAX_OUTPUT_CHARS)) !== undefined;
  }

  async #run(workspace_id: string, argv: readonly string[], signal: AbortSignal): Promise<string> {
    const child = this.#spawn(workspace_id, argv, signal);
    child.stdin.end();
    const [output, errorOutput] = [new Response(child.stdout).text(), readEnd(child.stderr)];
    await this.#waitForExit(child, errorOutput, signal);
    return output;
  }

  async #waitForExit(
    child: ReturnType<typeof spawn>,
    errorOutput: Promise<string>,
    signal: AbortSignal,
    { isDamage = false } = {},
  ): Promise<void> {
    const message = await errorOutput;
    const code = await child.exited;
    signal.throwIfAborted();
    if (code === 0) return;
    const hasWrongKey = /wrong password|no key found/i.test(message);
    const reason = hasWrongKey ? "the repository was encrypted with another recovery key" : getLastLine(message);
    throw new HomeBackupError(`restic failed: ${reason || `exit status ${code}`}.`, {
      isDamage: isDamage && !hasWrongKey && isDataDamaged(message),
    });
  }

  #spawn(workspace_id: string, argv: readonly string[], signal: AbortSignal) {
    return spawn([this.#program, "--no-cache", ...argv], {
      signal,
      env: Object.assign(
        {
          PATH: this.#path,
          HOME: "/",
          LANG: "C",
          RESTIC_PASSWORD: this.#password,
          RESTIC_REPOSITORY: this.#storage.restic.repository(toFolder(workspace_id).slice(0, -1)),
        },
        this.#storage.restic.env,
      ),
    });
  }
}

const toFolder = (workspace_id: string): string => `${workspace_id}/restic/`;

type Options = { readonly env?: Readonly<Record<string, string>>; readonly signal?: AbortSignal };

const spawn = (command: readonly string[], { env = {}, signal }: Options) => {
  signal?.throwIfAborted();
  return Bun.spawn([...command], {
    cwd: "/",
    env,
    stdin: "pipe",
    stdout: "pipe",
    stderr: "pipe",
    ...(signal ? { signal, killSignal: "SIGKILL" } : {}),
  });
};

/** Returns the end of a program's output. */
const readEnd = async (stream: ReadableStream<Uint8Array>): Promise<string> => {
  let end = "";
  const decoder = new TextDecoder();
  for await (const bytes of stream) end = (end + decoder.decode(bytes, { stream: true })).slice(-MAX_OUTPUT_CHARS);
  return end;
};

/** Returns whether restic's output says that stored data is damaged, not unreachable. */
const isDataDamaged = (output: string): boolean =>
  /invalid data returned|ciphertext verification failed|does not match|not found in (the )?(index|repository)|no such file|does not exist|blob .{0,200} not found/i.test(
    output,
  );

const getLastLine = (output: string): string =>
  output.trim().split("\n").at(-1)?.replace(/\.$/, "").slice(0, 300) ?? "";
