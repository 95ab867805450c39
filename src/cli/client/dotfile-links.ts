// Links from a home folder into a repository of dotfiles. Folders that programs share, such as `.config`, stay folders: their entries are
// linked. What was there before is kept alongside its link, and the repository's own clone is never moved.
import { lstatSync, mkdirSync, readdirSync, readlinkSync, renameSync, rmSync, statSync, symlinkSync } from "node:fs";
import { join, sep } from "node:path";

/** At the top of a repository these are about the repository. */
const NOT_LINKED = new Set([
  ".git",
  ".gitignore",
  ".gitmodules",
  ".gitattributes",
  ".github",
  ".gitlab-ci.yml",
  ".DS_Store",
]);
/** Programs write into these: a link to the whole folder would send what they write into the clone. */
const SHARED = new Set([
  ".cache",
  ".config",
  ".config/autostart",
  ".config/slipway",
  ".config/systemd",
  ".config/systemd/user",
  ".gnupg",
  ".local",
  ".local/bin",
  ".local/share",
  ".local/share/applications",
  ".local/state",
  ".ssh",
]);
/** Programs refuse these when others can read them. */
const PRIVATE = new Set([".ssh", ".gnupg"]);

/** Links each dotfile of the clone into the home folder. Returns the paths that were not linked before. */
export const linkDotfiles = (clone: string, home: string): string[] => {
  const names = readdirSync(clone).filter((name) => name.startsWith(".") && !NOT_LINKED.has(name));
  return names.sort().flatMap((name) => linkOne({ clone, home }, name));
};

type Roots = { readonly clone: string; readonly home: string };

const linkOne = (roots: Roots, path: string): string[] => {
  const [from, to] = [join(roots.clone, path), join(roots.home, path)];
  // The clone is not what it brings.
  if (to === roots.clone) return [];
  const isFolder = lstatSync(from).isDirectory();
  const there = lstatSync(to, { throwIfNoEntry: false });
  const isLinked = there?.isSymbolicLink() === true && readlinkSync(to) === from;
  if (isFolder && (SHARED.has(path) || isRealFolder(to) || holds(to, roots.clone))) {
    if (isLinked) rmSync(to);
    else if (there && !isFolderOrLeadsToOne(to)) keepFormer(to);
    mkdirSync(to, { recursive: true, ...(PRIVATE.has(path) ? { mode: 0o700 } : {}) });
    return readdirSync(from)
      .filter((name) => name !== ".git" && name !== ".DS_Store")
      .sort()
      .flatMap((name) => linkOne(roots, `${path}/${name}`));
  }
  if (isLinked) return [];
  if (there) keepFormer(to);
  symlinkSync(from, to);
  return [path];
};

const isRealFolder = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

const isFolderOrLeadsToOne = (path: string): boolean =>
  statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

const holds = (folder: string, path: string): boolean => path.startsWith(`${folder}${sep}`);

/** Moves what is there aside, under a name that nothing has. */
export const keepFormer = (path: string): void => {
  for (let i = 0; ; i++) {
    const name = `${path}.before-dotfiles${i === 0 ? "" : `.${i}`}`;
    if (lstatSync(name, { throwIfNoEntry: false })) continue;
    renameSync(path, name);
    return;
  }
};
