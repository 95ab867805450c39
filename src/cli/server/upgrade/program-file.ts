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
    const markerFile = join(dirname(this.path), "installed-by");
    const manager = existsSync(markerFile) ? readFileSync(markerFile, "utf8").trim() : undefined;
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

  /** Path of the program before the last upgrade. */
  get previousPath(): string {
    return `${this.path}.before`;
  }

  /** Path where the newer program is unpacked, on the same disk. */
  get nextPath(): string {
    return join(dirname(this.path), `.${basename(this.path)}.next`);
  }

  get system(): string {
    return readSystem(this.path) ?? `${process.platform}-${process.arch === "x64" ? "amd64" : process.arch}`;
  }

  /** Blocks other upgrades of this program until disposed, or until the process ends. Throws LockedError while another is running. */
  lock(): Disposable {
    const path = join(dirname(this.path), `.${basename(this.path)}.lock`);
    const busyMessage = `another "slipway upgrade" of ${this.path} is running; wait for it to finish`;
    const fd = openSync(path, "a", 0o600);
    const { ino } = fstatSync(fd);
    closeSync(fd);
    const lock = lockFile(path, busyMessage);
    // The previous holder removes the file when it finishes, so the locked file may no longer have a name.
    if (statSync(path, { throwIfNoEntry: false })?.ino !== ino) {
      lock.close();
      throw new LockedError(busyMessage);
    }
    return {
      [Symbol.dispose]: () => {
        rmSync(path, { force: true });
        lock.close();
      },
    };
  }

  /** Runs the unpacked program. Throws UpgradeError unless it matches this system and that version. */
  async check(version: string): Promise<void> {
    const system = readSystem(this.nextPath);
    // On systems other than Linux, the file's header is not conclusive; running it is.
    if (system !== undefined && system !== this.system) {
      throw new UpgradeError(`the program is for ${system}, this machine is ${this.system}`);
    }
    chmodSync(this.nextPath, 0o755);
    const reported = await readVersion(this.nextPath);
    if (reported !== version) {
      throw new UpgradeError(
        `the new program ${reported === undefined ? "does not run on this machine" : `reports version ${reported}`}`,
      );
    }
  }

  /** Replaces this program with the newer one and keeps the old one. */
  replace(): void {
    rmSync(this.previousPath, { force: true });
    linkSync(this.path, this.previousPath);
    failpoint("upgrade_kept");
    flush(this.nextPath);
    renameSync(this.nextPath, this.path);
    flush(dirname(this.path));
  }

  /** Restores the previous program and keeps its copy. */
  restorePrevious(): void {
    if (!existsSync(this.previousPath)) throw new UpgradeError(`there is no previous program ${this.previousPath}`);
    copyFileSync(this.previousPath, this.nextPath);
    flush(this.nextPath);
    renameSync(this.nextPath, this.path);
    flush(dirname(this.path));
  }

  /** Removes files that an interrupted upgrade has left. */
  removeLeftovers(): void {
    for (const path of [this.nextPath, `${this.nextPath}.gz`]) rmSync(path, { force: true });
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
