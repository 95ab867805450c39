// A disk of a few mebibytes for one data directory: a tmpfs in a separate mount namespace, which ends with its process. Needs a Linux that
// lets this user create namespaces; elsewhere `smallDiskSkipReason` gives the reason.
import { closeSync, cpSync, mkdirSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";

/** Command prefix for a mount namespace. */
export const ENTER = ["unshare", "--user", "--map-root-user", "--mount"];

/** Returns why such a disk is impossible here; an empty string if it is possible. */
export const smallDiskSkipReason = (): string => {
  if (Bun.which("unshare") === null || Bun.which("nsenter") === null) return "needs the programs unshare and nsenter";
  const { exitCode } = Bun.spawnSync([...ENTER, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], { stderr: "ignore" });
  return exitCode === 0 ? "" : "needs the right to mount in a new namespace";
};

export class SmallDisk implements AsyncDisposable {
  readonly #holder: Bun.Subprocess<"pipe", "pipe", "inherit">;
  readonly #directory: string;

  private constructor(holder: Bun.Subprocess<"pipe", "pipe", "inherit">, directory: string) {
    this.#holder = holder;
    this.#directory = directory;
  }

  /** Mounts a disk of this size at this directory. */
  static async mount(directory: string, mebibytes: number): Promise<SmallDisk> {
    mkdirSync(directory, { recursive: true });
    const script = 'mount -t tmpfs -o size="$1"m tmpfs "$0" && echo ready && read -r _';
    const argv = [...ENTER, "sh", "-c", script, directory, String(mebibytes)];
    const holder = Bun.spawn(argv, { stdin: "pipe", stdout: "pipe", stderr: "inherit" });
    const { value } = await holder.stdout.getReader().read();
    if (value === undefined) throw new Error("the disk was not mounted");
    return new SmallDisk(holder, directory);
  }

  /** Returns the prefix of a command that runs with this disk. */
  get commandPrefix(): string[] {
    return ["nsenter", `--target=${this.#holder.pid}`, "--user", "--mount", "--preserve-credentials", "--"];
  }

  /**
   * Returns the path of a file of the data directory for this process, which has other mounts. SQLite cannot use it, because it would
   * resolve the link.
   */
  path(name: string): string {
    return join(`/proc/${this.#holder.pid}/root${this.#directory}`, name);
  }

  /** Uses all remaining space. */
  fill(): void {
    const file = openSync(this.path("filler"), "a");
    try {
      for (const size of [65_536, 4_096, 1]) {
        const block = new Uint8Array(size);
        while (writesFully(file, block));
      }
    } finally {
      closeSync(file);
    }
  }

  /** Frees the space. */
  free(): void {
    rmSync(this.path("filler"), { force: true });
  }

  /** Locks the database from another program. Returns a function that unlocks it. */
  async hold(): Promise<() => Promise<void>> {
    const script = `
      const db = new (require("bun:sqlite").Database)(process.argv.at(-1));
      db.run("pragma busy_timeout=10000");
      db.run("begin immediate");
      process.stdout.write("locked");
      process.stdin.once("data", () => { db.run("rollback"); process.exit(0); });`;
    const argv = [...this.commandPrefix, process.execPath, "-e", script, join(this.#directory, "slipway.db")];
    const child = Bun.spawn(argv, { stdin: "pipe", stdout: "pipe", stderr: "inherit" });
    const { value } = await child.stdout.getReader().read();
    if (value === undefined) throw new Error("the database was not locked");
    return async () => {
      child.stdin.write("go");
      child.stdin.end();
      await child.exited;
    };
  }

  /** Copies the content of the disk. */
  copyTo(directory: string): void {
    cpSync(this.path("."), directory, { recursive: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#holder.stdin.end();
    await this.#holder.exited;
  }
}

const writesFully = (file: number, block: Uint8Array): boolean => {
  try {
    return writeSync(file, block) === block.length;
  } catch {
    return false;
  }
};
