// Lists what git ignores in a folder. Ignored files are not kept, so a restore names the missing ones; ignored repositories get checkpoints of
// their own. The list is refreshed after each checkpoint, off its path. Used by checkpoints.ts.
import { lstat, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isLookedInto, isRepository, repositoriesBelow } from "./folders.ts";
import { type ShadowGit, split } from "./shadow.ts";

const MAX_ENTRIES = 500;

/** Absolute paths; those of ignored folders stand for all that is in them. */
type Found = { readonly ignored: readonly string[]; readonly repositories: readonly string[] };

export class IgnoredFiles {
  readonly #shadow: ShadowGit;
  readonly #file: string;
  #found: Found | undefined;

  constructor(shadow: ShadowGit) {
    this.#shadow = shadow;
    this.#file = join(shadow.place.place, "ignored");
  }

  /** Looks again. */
  async refresh(): Promise<void> {
    const args = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"];
    const paths = split(await this.#shadow.git(args)).slice(0, MAX_ENTRIES);
    const folders = paths.filter((path) => path.endsWith("/")).map((path) => path.slice(0, -1));
    const places = folders.filter((path) => isLookedInto(path.split("/").at(-1) ?? "")).map((path) => this.#at(path));
    const ignored = paths.map((path) => this.#at(path.replace(/\/$/, "")));
    this.#found = { ignored, repositories: await repositoriesBelow(places) };
    await writeFile(`${this.#file}.new`, JSON.stringify(this.#found));
    await rename(`${this.#file}.new`, this.#file);
  }

  /** Repositories in ignored folders; the first time they are looked for. */
  async repositories(): Promise<string[]> {
    const found = (await this.#read()) ?? (await this.refresh().then(() => this.#found));
    const there = await Promise.all(
      (found?.repositories ?? []).map(async (path) => ((await isRepository(path)) ? [path] : [])),
    );
    return there.flat();
  }

  /** What was there and is not, in words. Repositories are left out: they return. */
  async missing(): Promise<string[]> {
    const found = await this.#read();
    const gone: string[] = [];
    for (const path of found?.ignored ?? []) {
      const isCovered = found?.repositories.some((one) => one === path || one.startsWith(`${path}/`));
      if (!isCovered && !(await lstat(path).catch(() => undefined))) gone.push(`${path} (ignored by git)`);
    }
    return gone;
  }

  async #read(): Promise<Found | undefined> {
    this.#found ??= await readFile(this.#file, "utf8").then(
      (text) => JSON.parse(text) as Found,
      () => undefined,
    );
    return this.#found;
  }

  #at(path: string): string {
    return join(this.#shadow.root, path);
  }
}
