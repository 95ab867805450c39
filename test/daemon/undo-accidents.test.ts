// Twenty accidents that can happen to a workspace's files, with real git in real folders: after each, the checkpoint restores what it
// guarantees, whatever happened to the user's repositories.
import { expect } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import { Checkpoints } from "#src/daemon/checkpoints/checkpoints.ts";
import { ProcessGroups } from "#src/daemon/scripts/groups.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { makeRepository, type TestRepository } from "#test/support/repository.ts";
import { tempDirectory } from "#test/support/server.ts";

const CHAT = "11111111-1111-4111-8111-111111111111";
const CLOCK = systemClock;
const LARGE = 17 * 1024 * 1024;

type World = Disposable & {
  readonly home: string;
  readonly repository: TestRepository;
  readonly checkpoints: Checkpoints;
  /** The checkpoints of another daemon on the same folder. */
  readonly other: Checkpoints;
  sh(script: string): void;
};

/**
 * A home with a repository `u` (a submodule `u/lib`, ignored files, changes of every kind), a plain folder next to it, and an ignored
 * clone.
 */
const openWorld = (): World => {
  const temp = tempDirectory();
  const root = realpathSync(temp.path);
  const home = join(root, "home");
  const library = makeRepository(join(root, "library"));
  const repository = makeRepository(join(home, "u"));
  const { write, git } = repository;
  write("src/deep/code.txt", "committed\n");
  write(".gitignore", "ignored\nbuild/\nclones/\n");
  git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", library.root, "lib");
  git("add", ".");
  git("commit", "-q", "-m", "work");
  write("a.txt", "changed and not committed\n");
  write("new.txt", "untracked\n");
  write("tool.sh", "#!/bin/sh\n");
  write("key", "private\n");
  write("ignored", "not captured\n");
  write("build/out", "made\n");
  write("lib/a.txt", "changed in the submodule\n");
  chmodSync(join(repository.root, "tool.sh"), 0o755);
  chmodSync(join(repository.root, "key"), 0o600);
  symlinkSync("a.txt", join(repository.root, "link"));
  makeRepository(join(repository.root, "clones", "other")).write("a.txt", "changed in the clone\n");
  mkdirSync(join(home, "plain", "deep"), { recursive: true });
  writeFileSync(join(home, "plain", "deep", "notes.txt"), "by hand\n");
  writeFileSync(join(home, "z"), "before\n");
  const env = { PATH: process.env.PATH ?? "", HOME: home };
  const groups = new ProcessGroups({ clock: CLOCK, agent_id: "t" });
  const options = { clock: CLOCK, env, groups, state: join(root, "state"), folder: () => home };
  const [checkpoints, other] = [new Checkpoints(options), new Checkpoints(options)];
  const sh = (script: string): void => {
    const identity =
      'git() { command git -c user.name=Ann -c user.email=ann@example.com -c init.defaultBranch=main "$@"; };';
    const { exitCode, stderr } = Bun.spawnSync(["bash", "-ec", `${identity} ${script}`], { cwd: home, env });
    if (exitCode !== 0) throw new Error(`${script}: ${stderr}`);
  };
  return { home, repository, checkpoints, other, sh, [Symbol.dispose]: () => temp[Symbol.dispose]() };
};

/** The guarantees of every checkpoint for that home. */
const WHOLE = {
  z: "before\n",
  "plain/deep/notes.txt": "by hand\n",
  "u/a.txt": "changed and not committed\n",
  "u/src/deep/code.txt": "committed\n",
  "u/.gitignore": "ignored\nbuild/\nclones/\n",
  "u/new.txt": "untracked\n",
  "u/tool.sh": "#!/bin/sh\n",
  "u/key": "private\n",
  "u/lib/a.txt": "changed in the submodule\n",
  "u/clones/other/a.txt": "changed in the clone\n",
};

const readTexts = (home: string, paths: readonly string[]): Record<string, string | undefined> =>
  Object.fromEntries(
    paths.map((path) => [path, existsSync(join(home, path)) ? readFileSync(join(home, path), "utf8") : undefined]),
  );

type Accident = {
  readonly script: string;
  /** Files that stay although the checkpoint does not contain them, or that must be removed. */
  readonly also?: Record<string, string | undefined>;
  /** Files that the response must name. */
  readonly names?: readonly string[];
};

const ACCIDENTS: Record<string, Accident> = {
  "a repository is removed": {
    script: "rm -rf u; echo b > z",
    names: ["the repository in", "u/ignored (ignored by git)", "u/build (ignored by git)"],
  },
  "a repository is moved": {
    script: "mv u v; echo b > z",
    also: { "v/ignored": "not captured\n" },
    names: ["u/.git"],
  },
  "a repository loses its .git": {
    script: "rm -rf u/.git; echo b > u/a.txt; echo b > u/more",
    also: { "u/ignored": "not captured\n", "u/more": undefined },
    names: ["u/.git"],
  },
  "a repository is made again over its files": {
    script: "rm -rf u/.git; git init -q u; echo b > u/a.txt",
    also: { "u/ignored": "not captured\n" },
    // The submodule's repository was inside.
    names: ["u/lib/.git"],
  },
  "a repository is replaced by a new one": {
    script: "rm -rf u; git init -q u; echo b > u/b",
    also: { "u/b": undefined },
    names: ["u/ignored"],
  },
  "history is rewritten and collected": {
    script:
      "cd u; git add -A; git commit -qm x; git commit -q --amend -m y --allow-empty; git checkout -q --orphan o; git rm -rqf --cached .; echo n > a.txt; git add a.txt; git commit -qm n; git branch -qD main; git reflog expire --expire=now --all; git gc -q --prune=now",
    also: { "u/ignored": "not captured\n" },
  },
  "the object store is emptied": { script: "rm -rf u/.git/objects/*; echo b > u/src/deep/code.txt", also: {} },
  "a submodule is removed": { script: "rm -rf u/lib", also: {} },
  "a submodule is deinitialized": {
    script: "cd u; git submodule --quiet deinit -f lib; rm -rf .git/modules/lib",
    names: ["u/lib/.git"],
  },
  "everything is cleaned": { script: "cd u; git checkout -q -f .; git clean -fdxq", names: ["u/ignored"] },
  "everything is reset": { script: "cd u; git add -A; git reset -q --hard; git stash clear" },
  "a repository becomes a file": { script: "rm -rf u; echo file > u", names: ["u/.git"] },
  "a folder becomes a link": {
    script: "mkdir other; cp -r plain/deep other; rm -rf plain; ln -s other plain",
    also: { "other/deep/notes.txt": undefined },
  },
  "a file becomes a folder": { script: "rm u/a.txt z; mkdir -p u/a.txt/x z; echo 1 > u/a.txt/x/y; echo 1 > z/y" },
  "a plain folder is removed": { script: "rm -rf plain" },
  "a plain folder becomes a repository": {
    script: "cd plain; git init -q; git add .; git commit -qm x; echo b > deep/notes.txt; echo c > deep/more",
    also: { "plain/deep/more": undefined },
  },
  "the rules of what is ignored are removed": {
    script: "rm u/.gitignore; echo b > u/made",
    also: { "u/ignored": "not captured\n", "u/build/out": "made\n", "u/made": undefined },
  },
  "everything becomes ignored": {
    script: "echo '*' > u/.gitignore; echo b > u/src/deep/code.txt; rm u/new.txt",
    also: { "u/ignored": "not captured\n" },
  },
  "permissions and links are changed": { script: "chmod 644 u/tool.sh u/key; rm u/link; ln -s nowhere u/link" },
  "a thousand files are made": {
    script: "mkdir u/many; for i in $(seq 1 1200); do echo $i > u/many/$i; done; rm u/src/deep/code.txt",
    also: { "u/many/7": undefined },
  },
  "a clone in an ignored folder is removed": { script: "rm -rf u/clones", names: ["u/clones/other/.git"] },
  // From here on, cases reported publicly.
  "rules of what is ignored are added, and files they name are made (cline/cline#14367)": {
    script: "echo data/ >> u/.gitignore; mkdir u/data; echo precious > u/data/db",
    also: { "u/data/db": "precious\n" },
  },
  "a folder becomes a link to one elsewhere with files of the same names (Zoo-Code-Org/Zoo-Code#1413)": {
    script: "mkdir -p ../outside/deep; echo theirs > ../outside/deep/notes.txt; rm -rf plain; ln -s ../outside plain",
    also: { "../outside/deep/notes.txt": "theirs\n" },
  },
  "files of a folder without git are changed and made (anomalyco/opencode#38672)": {
    script: "echo b > plain/deep/notes.txt; echo c > plain/more",
    also: { "plain/more": undefined },
  },
  "everything in the home is removed": { script: "rm -rf ./*", names: ["u/.git", "u/ignored"] },
};

/** Accidents that leave `.git` folders that git cannot use. */
const BROKEN = {
  "a worktree that was removed": "mkdir x; echo 'gitdir: /nonexistent' > x/.git",
  "an empty .git": "mkdir -p x/.git",
  "a clone that was cut short": "git init -q x; rm -rf x/.git/objects",
  "a repository without a commit (anomalyco/opencode#26893)": "git init -q x",
  "a damaged HEAD": "git init -q x; echo zzz > x/.git/HEAD",
  "a .git of the whole home": "mkdir x; mkdir .git",
};

for (const [name, script] of Object.entries(BROKEN)) {
  testNeeding([needs.git], `[UN-1][UN-11] ${name} does not prevent checkpoints of files`, async () => {
    using world = openWorld();
    const { checkpoints, home, sh } = world;
    sh(`${script}; mkdir x/deep; echo mine > x/deep/file`);
    expect(await checkpoints.take({ chat_id: CHAT, message_id: 1 })).toEqual({ problems: [] });
    sh("rm -rf x u/src; echo b > z");
    await checkpoints.restore({ chat_id: CHAT, message_id: 1 });
    const wanted = { ...WHOLE, "x/deep/file": "mine\n" };
    expect(readTexts(home, Object.keys(wanted))).toEqual(wanted);
  });
}

testNeeding(
  [needs.git],
  "[UN-6][UN-13] newly ignored files are not removed, files created since are moved aside, and a broken Git configuration prevents nothing",
  async () => {
    using world = openWorld();
    const { checkpoints, home, sh } = world;
    await checkpoints.take({ chat_id: CHAT, message_id: 1 });
    sh("echo later > u/secret.env; echo made > u/made; echo data > results");
    // A later checkpoint contains a file that is ignored afterwards.
    await checkpoints.take({ chat_id: CHAT, message_id: 2 });
    sh("echo secret.env >> u/.git/info/exclude; echo '[broken' > .gitconfig; rm -rf u/src");
    await checkpoints.restore({ chat_id: CHAT, message_id: 1 });
    const gone = { "u/made": undefined, results: undefined, "u/secret.env": "later\n" };
    expect(readTexts(home, Object.keys({ ...WHOLE, ...gone }))).toEqual({ ...WHOLE, ...gone });
    const aside = join(home, "..", "state", "removed");
    const put = [...new Bun.Glob("**/{made,results}").scanSync({ cwd: aside })].map((path) => path.split("/").at(-1));
    expect(put.sort()).toEqual(["made", "results"]);
    expect(await checkpoints.take({ chat_id: CHAT, message_id: 3 })).toEqual({ problems: [] });
  },
);

testNeeding(
  [needs.git],
  "[UN-1][UN-6] files and folders whose names have a meaning for a shell or Git are restored unchanged",
  async () => {
    using world = openWorld();
    const { checkpoints, home } = world;
    const odd = [
      "-rf",
      "a b",
      "new\nline",
      "tab\there",
      "*",
      "[x]?",
      "quo\"te'",
      "back\\slash",
      ":(top)x",
      "#hash",
      "!not",
      "\u00e4\u0308\u202f",
      "trailing ",
    ];
    for (const name of odd) {
      const folder = makeRepository(join(home, name), { empty: true });
      folder.write(name, `file ${name}`);
      folder.write(`deep/${name}/x`, `deep ${name}`);
      writeFileSync(join(home, "plain", name), `plain ${name}`);
    }
    const paths = odd.flatMap((name) => [`${name}/${name}`, `${name}/deep/${name}/x`, `plain/${name}`]);
    const before = readTexts(home, paths);
    expect((await checkpoints.take({ chat_id: CHAT, message_id: 1 })).problems).toEqual([]);
    for (const name of odd) rmSync(join(home, name), { recursive: true });
    rmSync(join(home, "plain"), { recursive: true });
    await checkpoints.restore({ chat_id: CHAT, message_id: 1 });
    expect(readTexts(home, paths)).toEqual(before);
    // Without their repositories they are plain folders now; none of their files count as new.
    await checkpoints.restore({ chat_id: CHAT, message_id: 1 });
    expect(readTexts(home, paths)).toEqual(before);
  },
);

testNeeding(
  [needs.git],
  "[UN-4][UN-5][UN-12] files that are too large, or could not be captured in time, are reported by the checkpoint and by its restore",
  async () => {
    using world = openWorld();
    const { checkpoints, home, sh, repository } = world;
    writeFileSync(join(repository.root, "large"), new Uint8Array(LARGE));
    await checkpoints.take({ chat_id: CHAT, message_id: 1 });
    sh("rm -rf u plain");
    const { left_out } = await checkpoints.restore({ chat_id: CHAT, message_id: 1 });
    expect(left_out.join("\n")).toContain("u/large (it is larger than 16 MiB)");
    // An existing one is left alone.
    sh("head -c 18000000 /dev/zero > u/large; echo b > z");
    await checkpoints.restore({ chat_id: CHAT, message_id: 1 });
    expect(statSync(join(repository.root, "large")).size).toBe(18_000_000);
    expect(readTexts(home, Object.keys(WHOLE))).toEqual(WHOLE);
    // So is one that was too large then and is small now: it is not new.
    sh("echo small > u/large");
    await checkpoints.restore({ chat_id: CHAT, message_id: 1 });
    expect(readTexts(home, ["u/large"])).toEqual({ "u/large": "small\n" });

    const late = await checkpoints.take({ chat_id: CHAT, message_id: 2, within_ms: 1 });
    expect(late.problems).toEqual([expect.stringContaining("still being made")]);
    await checkpoints.waitUntilIdle();
    // It is unknown what tools had done when it was ready.
    expect(await checkpoints.take({ chat_id: CHAT, message_id: 2 })).toEqual({ problems: late.problems ?? [] });
    const refused = await checkpoints.restore({ chat_id: CHAT, message_id: 2 }).catch((error) => error);
    expect([refused.kind, refused.message]).toEqual(["conflict", expect.stringContaining("still being made")]);
    expect(await checkpoints.take({ chat_id: CHAT, message_id: 3 })).toEqual({ problems: [] });
  },
);

testNeeding(
  [needs.git],
  "[UN-1][UN-2] files that Git converts, hides or has in conflict are captured as they are on disk",
  async () => {
    using world = openWorld();
    const { checkpoints, home, sh } = world;
    sh(`git init -q w; cd w
      printf '*.crlf text eol=crlf\n*.rot filter=rot\n' > .gitattributes
      git config filter.rot.clean 'tr a-z n-za-m'; git config filter.rot.smudge 'tr a-z n-za-m'
      printf 'one\ntwo\n' > t.crlf; echo hello > s.rot; echo base > c; echo kept > assumed; echo kept > skipped
      git add .; git commit -qm one; rm t.crlf s.rot; git checkout -q .
      git update-index --assume-unchanged assumed; git update-index --skip-worktree skipped
      git checkout -qb side; echo side > c; git commit -qam side; git checkout -q main; echo main > c; git commit -qam main
      git merge -q side >/dev/null || true; echo local > assumed; echo local > skipped; echo later > intended; git add -N intended`);
    const paths = ["t.crlf", "s.rot", "c", "assumed", "skipped", "intended"].map((path) => `w/${path}`);
    const before = readTexts(home, paths);
    expect(before["w/t.crlf"]).toBe("one\r\ntwo\r\n");
    await checkpoints.take({ chat_id: CHAT, message_id: 1 });
    sh("rm -rf w");
    await checkpoints.restore({ chat_id: CHAT, message_id: 1 });
    expect(readTexts(home, paths)).toEqual(before);
  },
);

testNeeding(
  [needs.git],
  "[UN-2] cline/cline#5598, cline/cline#1313, cline/cline#9317: repositories and submodules are unchanged by every checkpoint, also by one that was given up",
  async () => {
    using world = openWorld();
    const { checkpoints, home, sh } = world;
    const look =
      "for one in u u/lib u/clones/other; do git -C $one status --porcelain; git -C $one rev-parse HEAD; done";
    const listTree = (): string => {
      sh(`(${look}; find . -name '.git*' -not -path '*/.git/*' | sort) > ../seen`);
      return readFileSync(join(home, "..", "seen"), "utf8");
    };
    const before = listTree();
    await checkpoints.take({ chat_id: CHAT, message_id: 1, within_ms: 1 });
    expect(listTree()).toBe(before);
    await checkpoints.take({ chat_id: CHAT, message_id: 2 });
    await checkpoints.waitUntilIdle();
    expect(listTree()).toBe(before);
  },
);

testNeeding(
  [needs.git],
  "[UN-6] anomalyco/opencode#10287, anomalyco/opencode#3148: files are restored exactly as of the message, also after commits and next to another daemon's checkpoints; without a checkpoint nothing changes",
  async () => {
    using world = openWorld();
    const { checkpoints, other, home, sh } = world;
    await checkpoints.take({ chat_id: CHAT, message_id: 1 });
    sh("cd u; echo newer > src/deep/code.txt; echo more > more; git add -A; git commit -qm newer; echo newest > a.txt");
    const at = { "u/a.txt": "newest\n", "u/src/deep/code.txt": "newer\n", "u/more": "more\n" };
    const taken = [checkpoints.take({ chat_id: CHAT, message_id: 2 }), other.take({ chat_id: CHAT, message_id: 3 })];
    expect(await Promise.all(taken)).toEqual([{ problems: [] }, { problems: [] }]);
    const missing = await checkpoints.restore({ chat_id: CHAT, message_id: 99 }).catch((error) => error);
    expect(missing.kind).toBe("not_found");
    expect(readTexts(home, Object.keys(at))).toEqual(at);
    sh("cd u; echo bad > a.txt; rm src/deep/code.txt more; echo bad > made");
    await other.restore({ chat_id: CHAT, message_id: 2 });
    expect(readTexts(home, [...Object.keys(at), "u/made"])).toEqual({ ...at, "u/made": undefined });
    // A change that the other daemon saw first is not new for this one, but is still in its checkpoint.
    sh("cd u; echo last > a.txt; chmod 600 a.txt");
    await other.take({ chat_id: CHAT, message_id: 4 });
    await checkpoints.take({ chat_id: CHAT, message_id: 5 });
    sh("cd u; echo bad > a.txt; chmod 644 a.txt");
    await checkpoints.restore({ chat_id: CHAT, message_id: 5 });
    expect(readTexts(home, ["u/a.txt"])).toEqual({ "u/a.txt": "last\n" });
  },
);

testNeeding(
  [needs.git],
  "[UN-5] cline/cline#4388: a checkpoint that was killed midway does not block later ones",
  async () => {
    using world = openWorld();
    const { checkpoints, home, sh } = world;
    await checkpoints.take({ chat_id: CHAT, message_id: 1 });
    await checkpoints.waitUntilIdle();
    const stateFolder = join(home, "..", "state", "folders");
    sh(
      `for one in ${stateFolder}/*; do echo half > $one/index.lock; touch -d '10 minutes ago' $one/index.lock; done; echo b > z`,
    );
    expect(await checkpoints.take({ chat_id: CHAT, message_id: 2 })).toEqual({ problems: [] });
    sh("echo c > z");
    await checkpoints.restore({ chat_id: CHAT, message_id: 2 });
    expect(readTexts(home, ["z"])).toEqual({ z: "b\n" });
  },
);

for (const [name, { script, also = {}, names = [] }] of Object.entries(ACCIDENTS)) {
  testNeeding([needs.git], `[UN-1][UN-3][UN-6][UN-11] the files are restored when ${name}`, async () => {
    using world = openWorld();
    const { checkpoints, home, sh } = world;
    expect(await checkpoints.take({ chat_id: CHAT, message_id: 1 })).toEqual({ problems: [] });
    await checkpoints.waitUntilIdle();
    sh(script);
    const { left_out } = await checkpoints.restore({ chat_id: CHAT, message_id: 1 });
    const wanted = { ...WHOLE, ...also };
    expect(readTexts(home, Object.keys(wanted))).toEqual(wanted);
    expect(readlinkSync(join(home, "u/link"))).toBe("a.txt");
    const modes = ["tool.sh", "key"].map((path) => statSync(join(home, "u", path)).mode & 0o777);
    expect(modes).toEqual([0o755, 0o600]);
    for (const part of names) expect(left_out.join("\n")).toContain(part);
    if (names.length === 0) expect(left_out).toEqual([]);
  });
}
