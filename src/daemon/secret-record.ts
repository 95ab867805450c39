// Which files a daemon of this workspace has written secrets into, and what it wrote, so that a later one can take back what is no longer
// wanted and knows what someone has changed since (rule DM-23). Kept alongside the checkpoints; without the record nothing is ever removed.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Static, Type as t } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { linkToken } from "#base/ids.ts";
import { log } from "#base/log.ts";

const Content = t.Object({
  salt: t.String(),
  /** Of what stands there: two while one takes the place of the other. */
  digests: t.Array(t.String()),
});
const Kept = t.Object({ files: t.Record(t.String(), Content) });
type Content = Static<typeof Content>;

const computeDigest = (salt: string, bytes: Uint8Array): string =>
  createHash("sha256").update(salt).update(bytes).digest("hex");

export class SecretRecord {
  readonly #path: string;
  readonly #files: Map<string, Content>;

  /** `name` tells workspaces apart that share a home folder. One that cannot be read is empty. */
  constructor(folder: string, name: string) {
    this.#path = join(folder, `secret-files-${name}.json`);
    this.#files = new Map(Object.entries(readKept(this.#path)));
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
    const known = this.#files.get(path) ?? { salt: linkToken(), digests: [] };
    this.#files.set(path, { ...known, digests: [...known.digests, computeDigest(known.salt, bytes)] });
  }

  /** They are written: what stood there before is ours no more. */
  end(path: string, bytes: Uint8Array): void {
    const known = this.#files.get(path);
    if (known) this.#files.set(path, { ...known, digests: [computeDigest(known.salt, bytes)] });
  }

  forget(path: string): void {
    this.#files.delete(path);
  }

  /** Whole or not at all; never throws. A record of nothing is no file. */
  save(): void {
    try {
      if (this.#files.size === 0) {
        rmSync(this.#path, { force: true });
        return;
      }
      mkdirSync(dirname(this.#path), { recursive: true, mode: 0o700 });
      const beside = `${this.#path}.${process.pid}`;
      writeFileSync(beside, JSON.stringify({ files: Object.fromEntries(this.#files) }), { mode: 0o600 });
      renameSync(beside, this.#path);
    } catch (error) {
      log("daemon").error("which files hold secrets cannot be noted in {path}: {error}", { path: this.#path, error });
    }
  }
}

const readKept = (path: string): Record<string, Content> => {
  try {
    const kept: unknown = JSON.parse(readFileSync(path, "utf8"));
    return Value.Check(Kept, kept) ? kept.files : {};
  } catch {
    return {};
  }
};
