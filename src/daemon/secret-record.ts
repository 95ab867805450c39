// Which files a daemon of this workspace has written secrets into, and what it wrote, so that a later one can take back what is no longer
// wanted and knows what someone has changed since (rule DM-23). The paths are kept alongside the checkpoints; without them nothing is ever removed.
// Salts and digests, by which a weak secret can be guessed, are kept with the content: in memory where the content is there, so that copies of
// the home have paths alone.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Static, Type as t } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { linkToken } from "#base/ids.ts";
import { log } from "#base/log.ts";
import { isOwnFolder } from "#base/secrets/memory-folder.ts";

const Content = t.Object({
  salt: t.String(),
  /** Of what stands there: two while one takes the place of the other, none where they are in memory. */
  digests: t.Array(t.String()),
});
const Kept = t.Object({ files: t.Record(t.String(), Content) });
type Content = Static<typeof Content>;

const computeDigest = (salt: string, bytes: Uint8Array): string =>
  createHash("sha256").update(salt).update(bytes).digest("hex");

const PATH_ALONE: Content = { salt: "", digests: [] };

export class SecretRecord {
  readonly #path: string;
  readonly #inMemory: string;
  readonly #files: Map<string, Content>;

  /** `name` tells workspaces apart that share a home folder. One that cannot be read is empty. */
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

  /** Whether these bytes are what was written there. */
  isWritten(path: string, bytes: Uint8Array): boolean {
    const known = this.#files.get(path);
    return known?.digests.includes(computeDigest(known.salt, bytes)) === true;
  }

  /** Before the bytes are written: from now on both these and those before them are ours. */
  begin(path: string, bytes: Uint8Array): void {
    if (this.isWritten(path, bytes)) return;
    const { salt: known = "", digests = [] } = this.#files.get(path) ?? {};
    const salt = known || linkToken();
    this.#files.set(path, { salt, digests: [...digests, computeDigest(salt, bytes)] });
  }

  /** They are written: what stood there before is ours no more. */
  end(path: string, bytes: Uint8Array): void {
    const known = this.#files.get(path);
    if (known) this.#files.set(path, { ...known, digests: [computeDigest(known.salt, bytes)] });
  }

  forget(path: string): void {
    this.#files.delete(path);
  }

  /** Whole or not at all; never throws. A record of nothing is no file. `hasMemory`: digests go there, and what the home had of them goes. */
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
    const beside = `${path}.${process.pid}`;
    writeFileSync(beside, JSON.stringify({ files: Object.fromEntries(files) }), { mode: 0o600 });
    renameSync(beside, path);
  } catch (error) {
    log("daemon").error("which files hold secrets cannot be noted in {path}: {error}", { path, error });
  }
};

const readKept = (path: string): Record<string, Content> => {
  try {
    const kept: unknown = JSON.parse(readFileSync(path, "utf8"));
    return Value.Check(Kept, kept) ? kept.files : {};
  } catch {
    return {};
  }
};
