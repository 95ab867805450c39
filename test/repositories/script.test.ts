// The start scripts of a repository, run by a real shell with a real git against a real host.
import { afterAll, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { sha256 } from "#base/ids.ts";
import type { RepositoryPlan } from "#schema/templates/repository.ts";
import { toRepositoryScripts } from "#src/provisioners/repository/script.ts";
import { runProgram } from "#test/api/external-auth/git-hosts.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { tempDirectory } from "#test/support/server.ts";
import { makePlan } from "./memory-files.ts";
import { openGitWorld } from "./world.ts";

const git = openGitWorld();
afterAll(() => git[Symbol.dispose]());
const app = await git.publish("app", { "a.txt": "one" });
app.write("a.txt", "two");
app.git("commit", "-q", "-a", "-m", "second");
app.git("push", "-q", "hosted", "main", "HEAD:refs/heads/fix/it's", "HEAD:refs/pull/7/head", "HEAD:refs/tags/v1");
const head = app.git("rev-parse", "HEAD").trim();

/** Runs the start scripts of a plan as an agent does, in their own home. */
const start = async (home: string, changes: Partial<RepositoryPlan> = {}, agent = "agent-1") => {
  const plan: RepositoryPlan = Object.assign(await makePlan({}), { url: git.link("app") }, changes);
  const folders = { root: '"$HOME/app"', folder: '"$HOME/app"', state: '"$HOME/state"' };
  const ends = toRepositoryScripts(plan, folders).map(async ({ script }) => {
    const child = Bun.spawn(["sh", "-c", script], {
      cwd: home,
      env: { PATH: process.env.PATH ?? "", HOME: home, SLIPWAY_WORKSPACE_AGENT_ID: agent, GIT_TERMINAL_PROMPT: "0" },
      stdout: "pipe",
      stderr: "pipe",
    });
    const [out, errors] = await Promise.all([child.stdout.text(), child.stderr.text()]);
    return { code: await child.exited, output: out + errors };
  });
  const all = await Promise.all(ends);
  return { codes: all.map(({ code }) => code), output: all.map(({ output }) => output).join("\n") };
};

/** Not a blocking call, because the host is in this process. */
const gitInClone = (home: string, ...args: string[]): Promise<string> =>
  runProgram([needs.git.file, "-C", join(home, "app"), ...args], { PATH: process.env.PATH ?? "", HOME: home });

/** The plan, the branch that is checked out, and the number of commits. */
const CLONES: readonly (readonly [Partial<RepositoryPlan>, string, string])[] = [
  [{}, "main", "1"],
  [{ full_history: true }, "main", "2"],
  [{ ref: "refs/heads/fix/it's", ref_kind: "branch" }, "fix/it's", "1"],
  [{ ref: "refs/tags/v1", ref_kind: "tag" }, "HEAD", "1"],
  [{ ref: head, ref_kind: "commit" }, "HEAD", "1"],
  [{ ref: "refs/pull/7/head", ref_kind: "pull_request" }, "pull-7", "1"],
  [{ ref: "refs/pull/7/head", ref_kind: "pull_request", full_history: true }, "pull-7", "2"],
];

test.each(CLONES as never[])(
  "[RW-7] clones %j",
  async (changes: Partial<RepositoryPlan>, branch: string, count: string) => {
    using home = tempDirectory();
    const { codes, output } = await start(home.path, changes);
    expect([codes, output]).toEqual([[0], expect.stringContaining("Cloned")]);
    expect(await gitInClone(home.path, "rev-parse", "--abbrev-ref", "HEAD")).toBe(branch);
    expect(await gitInClone(home.path, "rev-list", "--count", "HEAD")).toBe(count);
    expect(await gitInClone(home.path, "status", "--porcelain")).toBe("");
    if (count === "1") await gitInClone(home.path, "fetch", "-q", "--unshallow");
    expect(await gitInClone(home.path, "rev-list", "--count", "HEAD")).toBe("2");
  },
);

test("[RW-8] an interrupted clone starts again; any other content of the folder is unchanged", async () => {
  using home = tempDirectory();
  const clone = join(home.path, "app");
  mkdirSync(join(clone, ".git"), { recursive: true });
  writeFileSync(join(clone, ".git", "slipway-cloning"), "");
  writeFileSync(join(clone, "half"), "");
  expect((await start(home.path)).output).toContain("The last clone was interrupted.");
  expect([existsSync(join(clone, "half")), readFileSync(join(clone, "a.txt"), "utf8")]).toEqual([false, "two"]);
  writeFileSync(join(clone, "a.txt"), "mine");
  expect((await start(home.path)).output).toContain("Leaving it unchanged.");
  expect(readFileSync(join(clone, "a.txt"), "utf8")).toBe("mine");

  using other = tempDirectory();
  mkdirSync(join(other.path, "app", "empty"), { recursive: true });
  expect((await start(other.path)).output).toContain("Cloned");
  using full = tempDirectory();
  mkdirSync(join(full.path, "app"));
  writeFileSync(join(full.path, "app", "notes"), "mine");
  const { codes, output } = await start(full.path);
  expect([codes, output.includes("contains other files. Skipping the clone.")]).toEqual([[0], true]);
  expect(readFileSync(join(full.path, "app", "notes"), "utf8")).toBe("mine");
});

test("[RW-12] a refused clone fails with the host's name and a remedy, and later commands do not run", async () => {
  using home = tempDirectory();
  const post_create = [[{ run: "touch never" }]];
  const lifecycle = { on_create: [], update_content: [], post_create, post_start: [] };
  const { codes, output } = await start(home.path, { url: git.link("none"), lifecycle });
  expect(codes).toEqual([1, 1]);
  expect(output).toContain(`could not be cloned from ${git.host}`);
  expect(output).toContain("These commands were skipped");
  using other = tempDirectory();
  const byKey = await start(other.path, { ssh_url: "ssh://git@127.0.0.1:1/acme/app.git" });
  expect(byKey.output).toContain("Check that your deploy key is listed in the repository's settings at 127.0.0.1:1");
  expect(existsSync(join(home.path, "app", "never"))).toBe(false);
});

test("[RW-7] commands run once until they change, in order; commands that a start does not wait for run in the background after the others", async () => {
  using home = tempDirectory();
  const note = (word: string): string => `echo "${word}" >>"$HOME/order"`;
  const lifecycle = {
    on_create: [[{ run: note("create") }]],
    update_content: [[{ run: ["sh", "-c", `echo "$0" >>"$HOME/order"`, `$\`'" \${HOME}`] }]],
    post_create: [[{ name: "it's", run: note("it's") }, { run: "true" }], [{ run: note("then") }]],
    post_start: [[{ run: note("start") }]],
  };
  const order = (): string[] => readFileSync(join(home.path, "order"), "utf8").trim().split("\n");
  expect((await start(home.path, { lifecycle })).codes).toEqual([0, 0]);
  expect(order()).toEqual(["create", `$\`'" ${home.path}`, "it's", "then", "start"]);
  await start(home.path, { lifecycle }, "agent-2");
  expect(order().slice(5)).toEqual(["start"]);
  const changed = Object.assign({}, lifecycle, { post_create: [[{ run: note("new") }]] });
  await start(home.path, { lifecycle: changed }, "agent-3");
  expect(order().slice(6)).toEqual(["new", "start"]);
  const broken = Object.assign({}, lifecycle, { on_create: [[{ run: "false" }, { run: "true" }]] });
  const { codes, output } = await start(home.path, { lifecycle: broken }, "agent-4");
  expect([codes, output.includes("onCreateCommand has failed.")]).toEqual([[1, 1], true]);
  expect(order().slice(8)).toEqual([]);
});

testNeeding([needs.git, needs.gitLfs], "[RW-7] large files are fetched from the host's LFS server", async () => {
  const content = "a large file\n";
  const oid = sha256(content);
  const object = { oid, size: content.length };
  const requests: string[] = [];
  // The batch API of Git LFS: the requested objects and their URLs.
  using lfs = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { pathname, origin } = new URL(request.url);
      requests.push(`${request.method} ${pathname}`);
      if (pathname !== "/lfs/objects/batch") return new Response(content);
      const { operation } = (await request.json()) as { operation: string };
      const actions = { [operation]: { href: `${origin}/object` } };
      const headers = { "content-type": "application/vnd.git-lfs+json" };
      return Response.json({ transfer: "basic", objects: [{ ...object, actions }] }, { headers });
    },
  });
  const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${oid}\nsize ${object.size}\n`;
  await git.publish("large", {
    ".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n",
    ".lfsconfig": `[lfs]\n\turl = ${new URL("lfs", lfs.url).href}\n`,
    "one.bin": pointer,
  });
  using home = tempDirectory();
  const { codes, output } = await start(home.path, { url: git.link("large") });
  expect([codes, output]).toEqual([[0], expect.stringContaining("Cloned")]);
  expect([readFileSync(join(home.path, "app", "one.bin"), "utf8"), output]).toEqual([content, expect.anything()]);
  expect(requests).toEqual(["POST /lfs/objects/batch", "GET /object"]);

  // If a host does not serve them, the large files are missing, but the clone succeeds.
  await lfs.stop(true);
  using other = tempDirectory();
  const without = await start(other.path, { url: git.link("large") });
  expect([without.codes, without.output]).toEqual([[0], expect.stringContaining("Large files could not be fetched")]);
  expect(readFileSync(join(other.path, "app", "one.bin"), "utf8")).toBe(pointer);
});
