// Records which files this workspace's daemons have written secrets into, and what they wrote, so that a later daemon can remove unwanted
// files and detect files that a person has changed (rule DM-23). Paths are stored next to the checkpoints; without them nothing is removed.
// Salts and digests, from which a weak secret could be guessed, are stored with the content: in memory if the content is there, so that
// copies of the home contain only paths.
import { createHash } from "node:crypto";
import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Static, Type as t } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { linkToken } from "#base/ids.ts";
import { log } from "#base/log.ts";
import { isOwnFolder } from "#base/secrets/memory-folder.ts";
import { readRegularText } from "#base/system/regular-file.ts";

const Content = t.Object({
  salt: t.String(),
  /** Digests of the content: two while one replaces the other, none if they are in memory. */
  digests: t.Array(t.String()),
});
const StoredRecord = t.Object({ files: t.Record(t.String(), Content) });
type Content = Static<typeof Content>;

const computeDigest = (salt: string, bytes: Uint8Array): string =>
  createHash("sha256").update(salt).update(bytes).digest("hex");

const PATH_ALONE: Content = { salt: "", digests: [] };

export class SecretRecord {
  readonly #path: string;
  readonly #inMemory: string;
  readonly #files: Map<string, Content>;

  /** `name` distinguishes workspaces that share a home folder. An unreadable record is treated as empty. */
  constructor(folder: string, name: string, memory: string) {
    this.#path = join(folder, `secret-files-${name}.json`);
    this.#inMemory = join(memory, "record.json");
    const known = isOwnFolder(memory) ? readKept(this.#inMemory) : {};
    this.#files = new Map(
      Object.entries(readKept(this.#path)).map(([path, content]) => [
        path,
        Object.hasOwn(known, path) ? known[path]! : content,
      ]),
    );
  }

  get paths(): string[] {
    return [...this.#files.keys()];
  }

  /** Returns true if these bytes were written there. */
  isWritten(path: string, bytes: Uint8Array): boolean {
    const known = this.#files.get(path);
    return known?.digests.includes(computeDigest(known.salt, bytes)) === true;
  }

  /** Call before writing: from now on both the new and the old content count as ours. */
  begin(path: string, bytes: Uint8Array): void {
    if (this.isWritten(path, bytes)) return;
    const { salt: known = "", digests = [] } = this.#files.get(path) ?? {};
    const salt = known || linkToken();
    this.#files.set(path, { salt, digests: [...digests, computeDigest(salt, bytes)] });
  }

  /** Called after writing: the old content is no longer treated as written by the daemon. */
  end(path: string, bytes: Uint8Array): void {
    const known = this.#files.get(path);
    if (known) this.#files.set(path, { ...known, digests: [computeDigest(known.salt, bytes)] });
  }

  remove(path: string): void {
    this.#files.delete(path);
  }

  /**
   * Writes the record atomically; never throws. Removes the file if the record is empty. `hasMemory`: stores digests in memory and removes
   * them from the home.
   */
  save(hasMemory: boolean): void {
    if (hasMemory) writeKept(this.#inMemory, this.#files);
    writeKept(this.#path, hasMemory ? new Map(this.paths.map((path) => [path, PATH_ALONE])) : this.#files);
  }
}

const writeKept = (path: string, files: ReadonlyMap<string, Content>): void => {
  try {
    if (files.size === 0) {
      rmSync(path, { force: true });
      return;
    }
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    const temporaryFile = `${path}.${process.pid}`;
    writeFileSync(temporaryFile, JSON.stringify({ files: Object.fromEntries(files) }), { mode: 0o600 });
    renameSync(temporaryFile, path);
  } catch (error) {
    log("daemon").error("which files hold secrets cannot be noted in {path}: {error}", { path, error });
  }
};

const readKept = (path: string): Record<string, Content> => {
  try {
    const stored: unknown = JSON.parse(readRegularText(path) ?? "");
    return Value.Check(StoredRecord, stored) ? stored.files : {};
  } catch {
    return {};
  }
};
