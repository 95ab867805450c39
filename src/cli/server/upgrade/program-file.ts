// The program file, with the previous version next to it. The program's path always names a complete file.
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fstatSync,
  linkSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { failpoint } from "#base/failpoint.ts";
import { LockedError, lockFile } from "#base/lock-file.ts";
import { flush } from "#base/system/flush.ts";
import { readSystem } from "#src/provisioners/docker/program.ts";
import { UpgradeError } from "./error.ts";

/** How to upgrade a file that a package manager owns, by the content of `installed-by` next to it. */
const PACKAGE_MANAGERS: Readonly<Record<string, string>> = {
  deb: "apt install ./slipway_VERSION_ARCH.deb",
  rpm: "dnf upgrade ./slipway-VERSION.rpm",
  npm: "npm install --global slipway@latest",
  brew: "brew upgrade slipway",
  image: "start the container from the newer image",
};

export class ProgramFile {
  readonly path: string;

  /** Throws UpgradeError if the file must not be replaced. */
  constructor(path: string) {
    if (!existsSync(path)) throw new UpgradeError(`there is no program ${path}`);
    this.path = realpathSync(path);
    const mark = join(dirname(this.path), "installed-by");
    const manager = existsSync(mark) ? readFileSync(mark, "utf8").trim() : undefined;
    if (manager !== undefined) {
      throw new UpgradeError(
        `${this.path} belongs to a package; upgrade it with: ${PACKAGE_MANAGERS[manager] ?? manager}`,
      );
    }
    try {
      accessSync(dirname(this.path), constants.W_OK);
    } catch {
      throw new UpgradeError(`${dirname(this.path)} is not writable; run this command as root`);
    }
  }

  /** The program before the last upgrade. */
  get former(): string {
    return `${this.path}.before`;
  }

  /** Path where the newer program is unpacked, on the same disk. */
  get next(): string {
    return join(dirname(this.path), `.${basename(this.path)}.next`);
  }

  get system(): string {
    return readSystem(this.path) ?? `${process.platform}-${process.arch === "x64" ? "amd64" : process.arch}`;
  }

  /** Blocks other upgrades of this program until disposed, or until the process ends. Throws LockedError while another is running. */
  lock(): Disposable {
    const path = join(dirname(this.path), `.${basename(this.path)}.lock`);
    const taken = `another "slipway upgrade" of ${this.path} is running; wait for it to finish`;
    const mine = openSync(path, "a", 0o600);
    const { ino } = fstatSync(mine);
    closeSync(mine);
    const held = lockFile(path, taken);
    // The previous holder removes the file when it finishes, so the locked file may no longer have a name.
    if (statSync(path, { throwIfNoEntry: false })?.ino !== ino) {
      held.close();
      throw new LockedError(taken);
    }
    return {
      [Symbol.dispose]: () => {
        rmSync(path, { force: true });
        held.close();
      },
    };
  }

  /** Runs the unpacked program. Throws UpgradeError unless it matches this system and that version. */
  async check(version: string): Promise<void> {
    const system = readSystem(this.next);
    // On systems other than Linux, the file's header is not conclusive; running it is.
    if (system !== undefined && system !== this.system) {
      throw new UpgradeError(`the program is for ${system}, this machine is ${this.system}`);
    }
    chmodSync(this.next, 0o755);
    const message = await readVersion(this.next);
    if (message !== version) {
      throw new UpgradeError(
        `the new program ${message === undefined ? "does not run on this machine" : `reports version ${message}`}`,
      );
    }
  }

  /** Replaces this program with the newer one and keeps the old one. */
  replace(): void {
    rmSync(this.former, { force: true });
    linkSync(this.path, this.former);
    failpoint("upgrade_kept");
    flush(this.next);
    renameSync(this.next, this.path);
    flush(dirname(this.path));
  }

  /** Restores the previous program and keeps its copy. */
  restorePrevious(): void {
    if (!existsSync(this.former)) throw new UpgradeError(`there is no previous program ${this.former}`);
    copyFileSync(this.former, this.next);
    flush(this.next);
    renameSync(this.next, this.path);
    flush(dirname(this.path));
  }

  /** Removes files that an interrupted upgrade has left. */
  removeLeftovers(): void {
    for (const path of [this.next, `${this.next}.gz`]) rmSync(path, { force: true });
  }
}

/** Returns the version that a program reports; undefined if it does not run. */
export const readVersion = async (program: string): Promise<string | undefined> => {
  try {
    const child = Bun.spawn([program, "version", "--json"], { stdio: ["ignore", "pipe", "ignore"] });
    const text = await child.stdout.text();
    return (await child.exited) === 0 ? (JSON.parse(text) as { slipway?: string }).slipway : undefined;
  } catch {
    return undefined;
  }
};
