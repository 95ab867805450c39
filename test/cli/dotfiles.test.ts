// Typical dotfiles: 20 layouts of repository and home folder. Each is linked twice, and the second run must change nothing.
import { describe, expect, test } from "bun:test";
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { linkDotfiles } from "#src/cli/client/dotfile-links.ts";
import { tempDirectory } from "#test/support/server.ts";
import { installProgram } from "./client-world.ts";

/** Paths and their content. A text that begins with `-> ` is a link, and a path that ends with `/` is a folder. */
type Tree = Readonly<Record<string, string>>;

const writeTree = (root: string, tree: Tree): void => {
  for (const [path, text] of Object.entries(tree)) {
    const file = join(root, path);
    mkdirSync(path.endsWith("/") ? file : dirname(file), { recursive: true });
    if (text.startsWith("-> ")) symlinkSync(text.slice(3), file);
    else if (!path.endsWith("/")) writeFileSync(file, text);
  }
};

/** Returns all paths of a folder with their content or link target, except the content of `clone`. */
const readTree = (root: string, clone: string, subfolder = ""): Record<string, string> => {
  const found: Record<string, string> = {};
  for (const name of readdirSync(join(root, subfolder)).sort()) {
    const path = subfolder === "" ? name : `${subfolder}/${name}`;
    const file = join(root, path);
    const stat = lstatSync(file);
    if (file === clone) found[path] = "the clone";
    else if (stat.isSymbolicLink()) found[path] = `-> ${readlinkSync(file).replace(`${clone}/`, "clone/")}`;
    else if (stat.isDirectory()) Object.assign(found, readTree(root, clone, path));
    else found[path] = readFileSync(file, "utf8");
  }
  return found;
};

type Layout = {
  readonly name: string;
  readonly repository: Tree;
  readonly home?: Tree;
  /** Where the clone is, below the home folder. */
  readonly clone?: string;
  readonly expected: Tree;
};

const CLONE = ".config/slipway/dotfiles";
const CLONE_ENTRY = { [CLONE]: "the clone" };

const LAYOUTS: readonly Layout[] = [
  {
    name: "only files",
    repository: { ".vimrc": "v", "README.md": "r" },
    expected: { ...CLONE_ENTRY, ".vimrc": "-> clone/.vimrc" },
  },
  {
    name: "an existing file",
    repository: { ".vimrc": "v" },
    home: { ".vimrc": "mine" },
    expected: { ...CLONE_ENTRY, ".vimrc": "-> clone/.vimrc", ".vimrc.before-dotfiles": "mine" },
  },
  {
    name: "a file that an earlier run kept",
    repository: { ".vimrc": "v" },
    home: { ".vimrc": "new", ".vimrc.before-dotfiles": "old" },
    expected: {
      ...CLONE_ENTRY,
      ".vimrc": "-> clone/.vimrc",
      ".vimrc.before-dotfiles": "old",
      ".vimrc.before-dotfiles.1": "new",
    },
  },
  {
    name: "a new folder",
    repository: { ".vim/colors/a.vim": "c" },
    expected: { ...CLONE_ENTRY, ".vim": "-> clone/.vim" },
  },
  {
    name: "an existing folder",
    repository: { ".vim/a.vim": "a" },
    home: { ".vim/own.vim": "o" },
    expected: { ...CLONE_ENTRY, ".vim/a.vim": "-> clone/.vim/a.vim", ".vim/own.vim": "o" },
  },
  {
    name: ".config with the clone in it",
    repository: { ".config/nvim/init.lua": "n" },
    home: { ".config/gh/hosts.yml": "h" },
    expected: { ...CLONE_ENTRY, ".config/nvim": "-> clone/.config/nvim", ".config/gh/hosts.yml": "h" },
  },
  {
    name: "an existing folder in .config",
    repository: { ".config/nvim/init.lua": "n", ".config/nvim/lua/x.lua": "x" },
    home: { ".config/nvim/spell/add": "s" },
    expected: {
      ...CLONE_ENTRY,
      ".config/nvim/init.lua": "-> clone/.config/nvim/init.lua",
      ".config/nvim/lua": "-> clone/.config/nvim/lua",
      ".config/nvim/spell/add": "s",
    },
  },
  {
    name: ".config/slipway itself",
    repository: { ".config/slipway/session.json": "s", ".config/slipway/dotfiles/evil": "e" },
    expected: { ...CLONE_ENTRY, ".config/slipway/session.json": "-> clone/.config/slipway/session.json" },
  },
  {
    name: ".ssh",
    repository: { ".ssh/config": "c" },
    home: { ".ssh/id_ed25519": "k" },
    expected: { ...CLONE_ENTRY, ".ssh/config": "-> clone/.ssh/config", ".ssh/id_ed25519": "k" },
  },
  {
    name: "a new .ssh",
    repository: { ".ssh/config": "c" },
    expected: { ...CLONE_ENTRY, ".ssh/config": "-> clone/.ssh/config" },
  },
  {
    name: "an existing .ssh/config",
    repository: { ".ssh/config": "c" },
    home: { ".ssh/config": "mine" },
    expected: { ...CLONE_ENTRY, ".ssh/config": "-> clone/.ssh/config", ".ssh/config.before-dotfiles": "mine" },
  },
  {
    name: ".local/bin and .local/share",
    repository: { ".local/bin/tool": "t", ".local/share/fonts/f.ttf": "f" },
    expected: {
      ...CLONE_ENTRY,
      ".local/bin/tool": "-> clone/.local/bin/tool",
      ".local/share/fonts": "-> clone/.local/share/fonts",
    },
  },
  {
    name: "an existing link",
    repository: { ".zshrc": "z" },
    home: { ".zshrc": "-> /etc/zshrc" },
    expected: { ...CLONE_ENTRY, ".zshrc": "-> clone/.zshrc", ".zshrc.before-dotfiles": "-> /etc/zshrc" },
  },
  {
    name: "an existing broken link",
    repository: { ".zshrc": "z" },
    home: { ".zshrc": "-> nowhere" },
    expected: { ...CLONE_ENTRY, ".zshrc": "-> clone/.zshrc", ".zshrc.before-dotfiles": "-> nowhere" },
  },
  {
    name: "a file in place of a folder",
    repository: { ".config/git/config": "g" },
    home: { ".config/git": "file" },
    expected: { ...CLONE_ENTRY, ".config/git": "-> clone/.config/git", ".config/git.before-dotfiles": "file" },
  },
  {
    name: "a folder in place of a file",
    repository: { ".profile": "p" },
    home: { ".profile/x": "x" },
    expected: { ...CLONE_ENTRY, ".profile": "-> clone/.profile", ".profile.before-dotfiles/x": "x" },
  },
  {
    name: "files about the repository itself",
    repository: {
      ".git/HEAD": "h",
      ".gitignore": "i",
      ".github/workflows/ci.yml": "c",
      ".gitconfig": "g",
      ".DS_Store": "d",
    },
    expected: { ...CLONE_ENTRY, ".gitconfig": "-> clone/.gitconfig" },
  },
  {
    name: "the clone in ~/.dotfiles",
    clone: ".dotfiles",
    repository: { ".bashrc": "b", ".dotfiles/old": "o", ".config/x": "x" },
    expected: { ".dotfiles": "the clone", ".bashrc": "-> clone/.bashrc", ".config/x": "-> clone/.config/x" },
  },
  {
    name: "the clone in a folder that the repository also has",
    clone: ".local/share/dots/copy",
    repository: { ".local/share/dots/a": "a", ".local/share/dots/copy/b": "b" },
    expected: { ".local/share/dots/copy": "the clone", ".local/share/dots/a": "-> clone/.local/share/dots/a" },
  },
  {
    name: "links inside the repository",
    repository: { ".bashrc": "b", ".bash_profile": "-> .bashrc", ".config/vim": "-> ../.vim", ".vim/vimrc": "v" },
    expected: {
      ...CLONE_ENTRY,
      ".bashrc": "-> clone/.bashrc",
      ".bash_profile": "-> clone/.bash_profile",
      ".config/vim": "-> clone/.config/vim",
      ".vim": "-> clone/.vim",
    },
  },
];

describe("layouts", () => {
  test("[CV-28] exactly 20 exist", () => expect(LAYOUTS).toHaveLength(20));

  test.each(LAYOUTS.map((layout) => [layout.name, layout] as const))(
    "[CV-28] %s: linked, existing files kept, and unchanged by a second run",
    (_, { repository, home: before = {}, clone: clonePath = CLONE, expected }) => {
      using temp = tempDirectory();
      const home = join(temp.path, "home");
      const clone = join(home, clonePath);
      writeTree(clone, repository);
      writeTree(home, before);
      const first = linkDotfiles(clone, home);
      const created = readTree(home, clone);
      expect(created).toEqual({ ...expected });
      // Nothing was moved or linked inside the clone.
      for (const [path, text] of Object.entries(repository)) {
        if (!text.startsWith("-> ")) expect([path, readFileSync(join(clone, path), "utf8")]).toEqual([path, text]);
      }
      const links = Object.entries(created).filter(([, text]) => text.startsWith("-> clone/"));
      expect(first.sort()).toEqual(links.map(([path]) => path).sort());
      expect(linkDotfiles(clone, home)).toEqual([]);
      expect(readTree(home, clone)).toEqual(created);
    },
  );

  test("[CV-28] creates .ssh readable only by its owner, and turns a previously linked folder into a real one", () => {
    using temp = tempDirectory();
    const [home, clone] = [join(temp.path, "home"), join(temp.path, "clone")];
    writeTree(clone, { ".ssh/config": "c", ".config/a": "a" });
    writeTree(home, { ".config": `-> ${join(clone, ".config")}` });
    expect(linkDotfiles(clone, home)).toEqual([".config/a", ".ssh/config"]);
    expect(statSync(join(home, ".ssh")).mode & 0o777).toBe(0o700);
    expect(lstatSync(join(home, ".config")).isDirectory()).toBe(true);
    expect(readdirSync(join(clone, ".config"))).toEqual(["a"]);
  });
});

test("[CV-28] `--branch` checks out branches that are newer than the clone, and tags", async () => {
  using temp = tempDirectory();
  const [home, repository] = [join(temp.path, "home"), join(temp.path, "repository")];
  mkdirSync(home);
  mkdirSync(repository);
  const identity = {
    GIT_AUTHOR_NAME: "a",
    GIT_AUTHOR_EMAIL: "a@b.c",
    GIT_COMMITTER_NAME: "a",
    GIT_COMMITTER_EMAIL: "a@b.c",
  };
  const env = { PATH: installProgram(home), HOME: home, GIT_CONFIG_GLOBAL: "/dev/null", ...identity };
  const sh = async (line: string, cwd = repository) => {
    const child = Bun.spawn(["sh", "-c", line], { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
    const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text()]);
    return { code: await child.exited, out, err };
  };
  await sh("git init -b main && echo one > .one && git add -A && git commit -m one");
  const installDotfiles = (flags = "") => sh(`slipway dotfiles -y '${repository}' ${flags}`, home);
  expect(await installDotfiles()).toMatchObject({ code: 0, out: "Linked .one.\n" });
  await sh(
    "git checkout -b newer && echo two > .two && git add -A && git commit -m two && git tag v2 && echo three > .three && git add -A && git commit -m three",
  );
  expect(await installDotfiles("--branch newer")).toMatchObject({ code: 0, out: "Linked .three, .two.\n" });
  expect(await installDotfiles("--branch v2")).toMatchObject({ code: 0, out: "Everything is already linked.\n" });
  expect((await installDotfiles("--branch none")).err).toContain("git checkout failed");
  expect((await installDotfiles("--branch=--orphan")).code).toBe(1);
  expect(await installDotfiles("--branch main")).toMatchObject({ code: 0 });
});
