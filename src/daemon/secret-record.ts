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
  /** Digests of the content: two while a file is being replaced, none if the digests are stored in memory. */
  digests: t.Array(t.String()),
});
const StoredRecord = t.Object({ files: t.Record(t.String(), Content) });
type Content = Static<typeof Content>;

const computeDigest = (salt: string, bytes: Uint8Array): string =>
  createHash("sha256").update(salt).update(bytes).digest("hex");

const PATH_ONLY: Content = { salt: "", digests: [] };

export class SecretRecord {
  readonly #path: string;
  readonly #memoryPath: string;
  readonly #files: Map<string, Content>;

  /** `name` distinguishes workspaces that share a home folder. An unreadable record is treated as empty. */
  constructor(folder: string, name: string, memory: string) {
    this.#path = join(folder, `secret-files-${name}.json`);
    this.#memoryPath = join(memory, "record.json");
    const inMemory = isOwnFolder(memory) ? readFiles(this.#memoryPath) : {};
    this.#files = new Map(
      Object.entries(readFiles(this.#path)).map(([path, content]) => [
        path,
        Object.hasOwn(inMemory, path) ? inMemory[path]! : content,
      ]),
    );
  }

  get paths(): string[] {
    return [...this.#files.keys()];
  }

  /** Returns true if a daemon of this workspace has written these bytes to the file. */
  isWritten(path: string, bytes: Uint8Array): boolean {
    const content = this.#files.get(path);
    return content?.digests.includes(computeDigest(content.salt, bytes)) === true;
  }

  /** Call before writing a file. Until `end`, both the new and the old content count as written by the daemon. */
  begin(path: string, bytes: Uint8Array): void {
    if (this.isWritten(path, bytes)) return;
    const { salt: previousSalt = "", digests = [] } = this.#files.get(path) ?? {};
    const salt = previousSalt || linkToken();
    this.#files.set(path, { salt, digests: [...digests, computeDigest(salt, bytes)] });
  }

  /** Call after writing a file. The old content is then not treated as written by the daemon any more. */
  end(path: string, bytes: Uint8Array): void {
    const content = this.#files.get(path);
    if (content) this.#files.set(path, { ...content, digests: [computeDigest(content.salt, bytes)] });
  }

  remove(path: string): void {
    this.#files.delete(path);
  }

  /**
   * Writes the record atomically; never throws. Removes the file if the record is empty. `hasMemory`: stores digests in memory and removes
   * them from the home.
   */
  save(hasMemory: boolean): void {
    if (hasMemory) writeFiles(this.#memoryPath, this.#files);
    writeFiles(this.#path, hasMemory ? new Map(this.paths.map((path) => [path, PATH_ONLY])) : this.#files);
  }
}

const writeFiles = (path: string, files: ReadonlyMap<string, Content>): void => {
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
    log("daemon").error("the list of secret files cannot be written to {path}: {error}", { path, error });
  }
};

const readFiles = (path: string): Record<string, Content> => {
  try {
    const stored: unknown = JSON.parse(readRegularText(path) ?? "");
    return Value.Check(StoredRecord, stored) ? stored.files : {};
  } catch {
    return {};
  }
};
