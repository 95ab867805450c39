// Typical dotfiles: 20 layouts of repository and home folder, each linked twice. The second time, nothing may change.
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

/** Paths and their content; a text that begins with `-> ` is a link, a path that ends with `/` a folder. */
type Tree = Readonly<Record<string, string>>;

const plant = (root: string, tree: Tree): void => {
  for (const [path, text] of Object.entries(tree)) {
    const file = join(root, path);
    mkdirSync(path.endsWith("/") ? file : dirname(file), { recursive: true });
    if (text.startsWith("-> ")) symlinkSync(text.slice(3), file);
    else if (!path.endsWith("/")) writeFileSync(file, text);
  }
};

/** Returns everything in a folder, with links as such and without the content of `clone`. */
const readTree = (root: string, clone: string, below = ""): Record<string, string> => {
  const found: Record<string, string> = {};
  for (const name of readdirSync(join(root, below)).sort()) {
    const path = below === "" ? name : `${below}/${name}`;
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
  readonly becomes: Tree;
};

const CLONE = ".config/slipway/dotfiles";
const HERE = { [CLONE]: "the clone" };

const LAYOUTS: readonly Layout[] = [
  {
    name: "files alone",
    repository: { ".vimrc": "v", "README.md": "r" },
    becomes: { ...HERE, ".vimrc": "-> clone/.vimrc" },
  },
  {
    name: "a file that is there",
    repository: { ".vimrc": "v" },
    home: { ".vimrc": "mine" },
    becomes: { ...HERE, ".vimrc": "-> clone/.vimrc", ".vimrc.before-dotfiles": "mine" },
  },
  {
    name: "a file kept before",
    repository: { ".vimrc": "v" },
    home: { ".vimrc": "new", ".vimrc.before-dotfiles": "old" },
    becomes: {
      ...HERE,
      ".vimrc": "-> clone/.vimrc",
      ".vimrc.before-dotfiles": "old",
      ".vimrc.before-dotfiles.1": "new",
    },
  },
  {
    name: "a folder that nothing has",
    repository: { ".vim/colors/a.vim": "c" },
    becomes: { ...HERE, ".vim": "-> clone/.vim" },
  },
  {
    name: "a folder that is there",
    repository: { ".vim/a.vim": "a" },
    home: { ".vim/own.vim": "o" },
    becomes: { ...HERE, ".vim/a.vim": "-> clone/.vim/a.vim", ".vim/own.vim": "o" },
  },
  {
    name: ".config with the clone in it",
    repository: { ".config/nvim/init.lua": "n" },
    home: { ".config/gh/hosts.yml": "h" },
    becomes: { ...HERE, ".config/nvim": "-> clone/.config/nvim", ".config/gh/hosts.yml": "h" },
  },
  {
    name: "a folder of .config that is there",
    repository: { ".config/nvim/init.lua": "n", ".config/nvim/lua/x.lua": "x" },
    home: { ".config/nvim/spell/add": "s" },
    becomes: {
      ...HERE,
      ".config/nvim/init.lua": "-> clone/.config/nvim/init.lua",
      ".config/nvim/lua": "-> clone/.config/nvim/lua",
      ".config/nvim/spell/add": "s",
    },
  },
  {
    name: ".config/slipway itself",
    repository: { ".config/slipway/session.json": "s", ".config/slipway/dotfiles/evil": "e" },
    becomes: { ...HERE, ".config/slipway/session.json": "-> clone/.config/slipway/session.json" },
  },
  {
    name: ".ssh",
    repository: { ".ssh/config": "c" },
    home: { ".ssh/id_ed25519": "k" },
    becomes: { ...HERE, ".ssh/config": "-> clone/.ssh/config", ".ssh/id_ed25519": "k" },
  },
  {
    name: ".ssh that nothing has",
    repository: { ".ssh/config": "c" },
    becomes: { ...HERE, ".ssh/config": "-> clone/.ssh/config" },
  },
  {
    name: ".ssh/config that is there",
    repository: { ".ssh/config": "c" },
    home: { ".ssh/config": "mine" },
    becomes: { ...HERE, ".ssh/config": "-> clone/.ssh/config", ".ssh/config.before-dotfiles": "mine" },
  },
  {
    name: ".local/bin and .local/share",
    repository: { ".local/bin/tool": "t", ".local/share/fonts/f.ttf": "f" },
    becomes: {
      ...HERE,
      ".local/bin/tool": "-> clone/.local/bin/tool",
      ".local/share/fonts": "-> clone/.local/share/fonts",
    },
  },
  {
    name: "a link to the file already",
    repository: { ".zshrc": "z" },
    home: { ".zshrc": "-> /etc/zshrc" },
    becomes: { ...HERE, ".zshrc": "-> clone/.zshrc", ".zshrc.before-dotfiles": "-> /etc/zshrc" },
  },
  {
    name: "a link that leads nowhere",
    repository: { ".zshrc": "z" },
    home: { ".zshrc": "-> nowhere" },
    becomes: { ...HERE, ".zshrc": "-> clone/.zshrc", ".zshrc.before-dotfiles": "-> nowhere" },
  },
  {
    name: "a file where a folder comes",
    repository: { ".config/git/config": "g" },
    home: { ".config/git": "file" },
    becomes: { ...HERE, ".config/git": "-> clone/.config/git", ".config/git.before-dotfiles": "file" },
  },
  {
    name: "a folder where a file comes",
    repository: { ".profile": "p" },
    home: { ".profile/x": "x" },
    becomes: { ...HERE, ".profile": "-> clone/.profile", ".profile.before-dotfiles/x": "x" },
  },
  {
    name: "what is about the repository",
    repository: {
      ".git/HEAD": "h",
      ".gitignore": "i",
      ".github/workflows/ci.yml": "c",
      ".gitconfig": "g",
      ".DS_Store": "d",
    },
    becomes: { ...HERE, ".gitconfig": "-> clone/.gitconfig" },
  },
  {
    name: "the clone in ~/.dotfiles",
    clone: ".dotfiles",
    repository: { ".bashrc": "b", ".dotfiles/old": "o", ".config/x": "x" },
    becomes: { ".dotfiles": "the clone", ".bashrc": "-> clone/.bashrc", ".config/x": "-> clone/.config/x" },
  },
  {
    name: "the clone in a folder of its name",
    clone: ".local/share/dots/copy",
    repository: { ".local/share/dots/a": "a", ".local/share/dots/copy/b": "b" },
    becomes: { ".local/share/dots/copy": "the clone", ".local/share/dots/a": "-> clone/.local/share/dots/a" },
  },
  {
    name: "links inside of the repository",
    repository: { ".bashrc": "b", ".bash_profile": "-> .bashrc", ".config/vim": "-> ../.vim", ".vim/vimrc": "v" },
    becomes: {
      ...HERE,
      ".bashrc": "-> clone/.bashrc",
      ".bash_profile": "-> clone/.bash_profile",
      ".config/vim": "-> clone/.config/vim",
      ".vim": "-> clone/.vim",
    },
  },
];

describe("layouts", () => {
  test("[CV-28] exactly 20 exist", () => expect(LAYOUTS).toHaveLength(20));

  test.each(LAYOUTS.map((one) => [one.name, one] as const))(
    "[CV-28] %s: linked, existing files kept, and unchanged by a second run",
    (_, { repository, home: before = {}, clone: at = CLONE, becomes }) => {
      using temp = tempDirectory();
      const home = join(temp.path, "home");
      const clone = join(home, at);
      plant(clone, repository);
      plant(home, before);
      const first = linkDotfiles(clone, home);
      const created = readTree(home, clone);
      expect(created).toEqual({ ...becomes });
      // The clone is unchanged: nothing was moved or linked there.
      for (const [path, text] of Object.entries(repository)) {
        if (!text.startsWith("-> ")) expect([path, readFileSync(join(clone, path), "utf8")]).toEqual([path, text]);
      }
      const links = Object.entries(created).filter(([, text]) => text.startsWith("-> clone/"));
      expect(first.sort()).toEqual(links.map(([path]) => path).sort());
      expect(linkDotfiles(clone, home)).toEqual([]);
      expect(readTree(home, clone)).toEqual(created);
    },
  );

  test("[CV-28] .ssh is created for its owner alone, and a previously linked folder becomes a real one", () => {
    using temp = tempDirectory();
    const [home, clone] = [join(temp.path, "home"), join(temp.path, "clone")];
    plant(clone, { ".ssh/config": "c", ".config/a": "a" });
    plant(home, { ".config": `-> ${join(clone, ".config")}` });
    expect(linkDotfiles(clone, home)).toEqual([".config/a", ".ssh/config"]);
    expect(statSync(join(home, ".ssh")).mode & 0o777).toBe(0o700);
    expect(lstatSync(join(home, ".config")).isDirectory()).toBe(true);
    expect(readdirSync(join(clone, ".config"))).toEqual(["a"]);
  });
});

test("[CV-28] a branch newer than the clone is fetched before checkout, and a tag is kept", async () => {
  using temp = tempDirectory();
  const [home, repository] = [join(temp.path, "home"), join(temp.path, "repository")];
  mkdirSync(home);
  mkdirSync(repository);
  const names = {
    GIT_AUTHOR_NAME: "a",
    GIT_AUTHOR_EMAIL: "a@b.c",
    GIT_COMMITTER_NAME: "a",
    GIT_COMMITTER_EMAIL: "a@b.c",
  };
  const env = { PATH: installProgram(home), HOME: home, GIT_CONFIG_GLOBAL: "/dev/null", ...names };
  const sh = async (line: string, cwd = repository) => {
    const child = Bun.spawn(["sh", "-c", line], { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
    const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text()]);
    return { code: await child.exited, out, err };
  };
  await sh("git init -b main && echo one > .one && git add -A && git commit -m one");
  const installDotfiles = (more = "") => sh(`slipway dotfiles -y '${repository}' ${more}`, home);
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
