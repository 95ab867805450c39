// Lists the files that git ignores in a folder. Ignored files are not captured, so a restore names the missing ones; ignored repositories
// get their own checkpoints. The list is refreshed after each checkpoint, so that listing does not delay the checkpoint. Used by
// checkpoints.ts.
import { lstat, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { readRegularText } from "#base/system/regular-file.ts";
import { findNestedRepositories, isRepository, isSearchable } from "./folders.ts";
import { type ShadowGit, splitNul } from "./shadow.ts";

const MAX_ENTRIES = 500;

/** Absolute paths. An ignored folder stands for everything in it. */
type IgnoredListing = { readonly ignored: readonly string[]; readonly repositories: readonly string[] };

export class IgnoredFiles {
  readonly #shadow: ShadowGit;
  readonly #file: string;
  #listing: IgnoredListing | undefined;

  constructor(shadow: ShadowGit) {
    this.#shadow = shadow;
    this.#file = join(shadow.folders.gitDirectory, "ignored");
  }

  /** Refreshes the list. */
  async refresh(): Promise<void> {
    const args = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"];
    const paths = splitNul(await this.#shadow.git(args)).slice(0, MAX_ENTRIES);
    const folders = paths.filter((path) => path.endsWith("/")).map((path) => path.slice(0, -1));
    const searched = folders
      .filter((path) => isSearchable(path.split("/").at(-1) ?? ""))
      .map((path) => this.#resolve(path));
    const ignored = paths.map((path) => this.#resolve(path.replace(/\/$/, "")));
    this.#listing = { ignored, repositories: await findNestedRepositories(searched) };
    await writeFile(`${this.#file}.new`, JSON.stringify(this.#listing));
    await rename(`${this.#file}.new`, this.#file);
  }

  /** Returns the repositories in ignored folders, searching for them on the first call. */
  async findRepositories(): Promise<string[]> {
    const listing = this.#read() ?? (await this.refresh().then(() => this.#listing));
    const confirmed = await Promise.all(
      (listing?.repositories ?? []).map(async (path) => ((await isRepository(path)) ? [path] : [])),
    );
    return confirmed.flat();
  }

  /** Describes the ignored files that existed earlier and are missing now, except repositories, which are restored. */
  async describeMissing(): Promise<string[]> {
    const listing = this.#read();
    const missingPaths: string[] = [];
    for (const path of listing?.ignored ?? []) {
      const isCovered = listing?.repositories.some(
        (repository) => repository === path || repository.startsWith(`${path}/`),
      );
      if (!isCovered && !(await lstat(path).catch(() => undefined))) missingPaths.push(`${path} (ignored by git)`);
    }
    return missingPaths;
  }

  #read(): IgnoredListing | undefined {
    const text = this.#listing ? undefined : readRegularText(this.#file);
    if (text !== undefined) this.#listing = JSON.parse(text) as IgnoredListing;
    return this.#listing;
  }

  #resolve(path: string): string {
    return join(this.#shadow.root, path);
  }
}
