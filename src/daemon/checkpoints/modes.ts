// Stores file permissions that git does not record, such as 0600 of a private key. They are recorded when a file is captured, copied into
// each checkpoint, and applied to restored files (rule UN-3). Used by shadow.ts.
import { rename, writeFile } from "node:fs/promises";
import { readRegularText } from "#base/system/regular-file.ts";

/** Modes that git and a common umask produce. */
const ORDINARY_MODES = new Set([0o644, 0o664, 0o755, 0o775, 0o666, 0o777]);
const MAX_MODES = 5_000;

export class ModeList {
  readonly #file: string;
  #modes: ReadonlyMap<string, number> = new Map();

  constructor(file: string) {
    this.#file = file;
  }

  /** Permissions from the last capture. */
  get all(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#modes);
  }

  /** Records the modes of the captured files. */
  async record(captured: ReadonlyMap<string, number>): Promise<void> {
    const modes = this.#read();
    let isChanged = false;
    for (const [path, mode] of captured) {
      const isUnusual = mode !== 0 && !ORDINARY_MODES.has(mode) && modes.size < MAX_MODES;
      if (isUnusual ? modes.get(path) === mode : !modes.has(path)) continue;
      isChanged = true;
      if (isUnusual) modes.set(path, mode);
      else modes.delete(path);
    }
    if (isChanged) await this.#write(modes);
  }

  async remove(paths: readonly string[]): Promise<void> {
    await this.record(new Map(paths.map((path) => [path, 0])));
  }

  /** Reads the file each time because another daemon may have written it. */
  #read(): Map<string, number> {
    const modes = new Map(Object.entries(parseModes(readRegularText(this.#file) ?? "{}")));
    this.#modes = modes;
    return modes;
  }

  async #write(modes: Map<string, number>): Promise<void> {
    await writeFile(`${this.#file}.new`, JSON.stringify(Object.fromEntries(modes)), { mode: 0o600 });
    await rename(`${this.#file}.new`, this.#file);
  }
}

const parseModes = (text: string): Record<string, number> => {
  try {
    return JSON.parse(text) as Record<string, number>;
  } catch {
    return {};
  }
};
