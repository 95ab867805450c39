// Programs as they are sent to clients that take gzip: a third of their size, packed once and kept in the data directory. The first who asks
// is sent the program as it is, so that nobody waits for the packing.
import { createReadStream, createWriteStream, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { log } from "#base/log.ts";
import type { AgentProgram } from "./programs.ts";

const SUFFIX = ".gz";
/** Below this packing saves nothing that anyone notices. */
const WORTH_BYTES = 64 * 1024;

export class PackedPrograms {
  readonly #folder: string;
  readonly #packing = new Map<string, Promise<void>>();

  constructor(data_dir: string) {
    this.#folder = join(data_dir, "cache", "programs");
  }

  /** The file of the packed program; undefined while none exists, which is then made. */
  find(program: AgentProgram): string | undefined {
    if (program.size < WORTH_BYTES) return undefined;
    const file = join(this.#folder, `${program.sha256}${SUFFIX}`);
    if (existsSync(file)) return file;
    if (!this.#packing.has(file)) this.#packing.set(file, this.#pack(program, file));
    return undefined;
  }

  /** Resolves once nothing is being packed. */
  async settled(): Promise<void> {
    await Promise.all(this.#packing.values());
  }

  async #pack({ path, sha256 }: AgentProgram, file: string): Promise<void> {
    const part = `${file}.${process.pid}.part`;
    try {
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
      // Fast: the rest would cost seconds of a processor for a few percent.
      await pipeline(createReadStream(path), createGzip({ level: 4 }), createWriteStream(part, { mode: 0o600 }));
      renameSync(part, file);
      this.#forgetOthers();
    } catch (error) {
      rmSync(part, { force: true });
      log("http").warn("the program {sha256} could not be packed: {error}", { sha256, error });
    } finally {
      this.#packing.delete(file);
    }
  }

  /** Keeps the newest programs of all systems; those of versions before go. */
  #forgetOthers(): void {
    const files = readdirSync(this.#folder).filter((name) => name.endsWith(SUFFIX));
    const aged = files.map((name) => ({ name, at: Bun.file(join(this.#folder, name)).lastModified }));
    for (const { name } of aged.sort((a, b) => b.at - a.at).slice(MAX_KEPT))
      rmSync(join(this.#folder, name), { force: true });
  }
}

/** As many as there are systems and machines. */
const MAX_KEPT = 12;
