// Links a repository of dotfiles into a home folder. Folders that several programs use, such as `.config`, remain folders, and their
// entries are linked. Existing files are kept next to their links, and the clone itself is never moved.
import { lstatSync, mkdirSync, readdirSync, readlinkSync, renameSync, rmSync, statSync, symlinkSync } from "node:fs";
import { join, sep } from "node:path";

/** Top-level files about the repository itself. */
const EXCLUDED_FILES = new Set([
  ".git",
  ".gitignore",
  ".gitmodules",
  ".gitattributes",
  ".github",
  ".gitlab-ci.yml",
  ".DS_Store",
]);
/** Programs write into these folders: a link to a whole folder would put their files into the clone. */
const SHARED_FOLDERS = new Set([
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
/** Programs refuse these folders if others can read them. */
const PRIVATE_FOLDERS = new Set([".ssh", ".gnupg"]);

/** Links each dotfile of the clone into the home folder. Returns the paths that are newly linked. */
export const linkDotfiles = (clone: string, home: string): string[] => {
  const names = readdirSync(clone).filter((name) => name.startsWith(".") && !EXCLUDED_FILES.has(name));
  return names.sort().flatMap((name) => linkOne({ clone, home }, name));
};

type Roots = { readonly clone: string; readonly home: string };

const linkOne = (roots: Roots, path: string): string[] => {
  const [from, to] = [join(roots.clone, path), join(roots.home, path)];
  // Never links the clone itself.
  if (to === roots.clone) return [];
  const isFolder = lstatSync(from).isDirectory();
  const existing = lstatSync(to, { throwIfNoEntry: false });
  const isLinked = existing?.isSymbolicLink() === true && readlinkSync(to) === from;
  if (isFolder && (SHARED_FOLDERS.has(path) || isRealFolder(to) || containsPath(to, roots.clone))) {
    if (isLinked) rmSync(to);
    else if (existing && !isFolderOrLinkToFolder(to)) renameToBackup(to);
    mkdirSync(to, { recursive: true, ...(PRIVATE_FOLDERS.has(path) ? { mode: 0o700 } : {}) });
    return readdirSync(from)
      .filter((name) => name !== ".git" && name !== ".DS_Store")
      .sort()
      .flatMap((name) => linkOne(roots, `${path}/${name}`));
  }
  if (isLinked) return [];
  if (existing) renameToBackup(to);
  symlinkSync(from, to);
  return [path];
};

const isRealFolder = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

const isFolderOrLinkToFolder = (path: string): boolean =>
  statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

const containsPath = (folder: string, path: string): boolean => path.startsWith(`${folder}${sep}`);

/** Moves an existing file out of the way, under an unused name. */
export const renameToBackup = (path: string): void => {
  for (let i = 0; ; i++) {
    const name = `${path}.before-dotfiles${i === 0 ? "" : `.${i}`}`;
    if (lstatSync(name, { throwIfNoEntry: false })) continue;
    renameSync(path, name);
    return;
  }
};
