// Compresses each program once for clients that accept gzip, and caches the result in the data directory. The first client gets the
// program uncompressed, so that no request waits for the compression.
import { createReadStream, createWriteStream, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { log } from "#base/log.ts";
import type { AgentProgram } from "./programs.ts";

const SUFFIX = ".gz";
/** Smaller programs are not worth compressing. */
const MIN_COMPRESSED_BYTES = 64 * 1024;

export class PackedPrograms {
  readonly #folder: string;
  readonly #packing = new Map<string, Promise<void>>();

  constructor(data_dir: string) {
    this.#folder = join(data_dir, "cache", "programs");
  }

  /** Returns the compressed file; undefined while none exists, in which case it is created in the background. */
  find(program: AgentProgram): string | undefined {
    if (program.size < MIN_COMPRESSED_BYTES) return undefined;
    const file = join(this.#folder, `${program.sha256}${SUFFIX}`);
    if (existsSync(file)) return file;
    if (!this.#packing.has(file)) this.#packing.set(file, this.#pack(program, file));
    return undefined;
  }

  /** Resolves when no compression is running. */
  async flush(): Promise<void> {
    await Promise.all(this.#packing.values());
  }

  async #pack({ path, sha256 }: AgentProgram, file: string): Promise<void> {
    const partialFile = `${file}.${process.pid}.part`;
    try {
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
      // A fast level: higher ones take seconds of CPU time to save a few percent.
      await pipeline(createReadStream(path), createGzip({ level: 4 }), createWriteStream(partialFile, { mode: 0o600 }));
      renameSync(partialFile, file);
      this.#deleteOld();
    } catch (error) {
      rmSync(partialFile, { force: true });
      log("http").warn("cannot compress the program {sha256}: {error}", { sha256, error });
    } finally {
      this.#packing.delete(file);
    }
  }

  /** Deletes all but the newest `MAX_KEPT` files. */
  #deleteOld(): void {
    const files = readdirSync(this.#folder).filter((name) => name.endsWith(SUFFIX));
    const datedFiles = files.map((name) => ({ name, at: Bun.file(join(this.#folder, name)).lastModified }));
    for (const { name } of datedFiles.sort((a, b) => b.at - a.at).slice(MAX_KEPT))
      rmSync(join(this.#folder, name), { force: true });
  }
}

/** Number of supported combinations of system and architecture. */
const MAX_KEPT = 12;
