// The start scripts of a repository, with a real shell, a real git and a real host.
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

/** Runs the start scripts of a plan in this home, as an agent does. */
const runStartScripts = async (home: string, changes: Partial<RepositoryPlan> = {}, agent = "agent-1") => {
  const plan: RepositoryPlan = Object.assign(await makePlan({}), { url: git.link("app") }, changes);
  const folders = { root: '"$HOME/app"', folder: '"$HOME/app"', state: '"$HOME/state"' };
  const runs = toRepositoryScripts(plan, folders).map(async ({ script }) => {
    const child = Bun.spawn(["sh", "-c", script], {
      cwd: home,
      env: { PATH: process.env.PATH ?? "", HOME: home, SLIPWAY_WORKSPACE_AGENT_ID: agent, GIT_TERMINAL_PROMPT: "0" },
      stdout: "pipe",
      stderr: "pipe",
    });
    const [out, errors] = await Promise.all([child.stdout.text(), child.stderr.text()]);
    return { code: await child.exited, output: out + errors };
  });
  const results = await Promise.all(runs);
  return { codes: results.map(({ code }) => code), output: results.map(({ output }) => output).join("\n") };
};

/** Runs git in the clone without blocking, because the git host is in this process. */
const runGitInClone = (home: string, ...args: string[]): Promise<string> =>
  runProgram([needs.git.file, "-C", join(home, "app"), ...args], { PATH: process.env.PATH ?? "", HOME: home });

/** Plans, each with the branch that is checked out and the number of commits. */
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
    const { codes, output } = await runStartScripts(home.path, changes);
    expect([codes, output]).toEqual([[0], expect.stringContaining("Cloned")]);
    expect(await runGitInClone(home.path, "rev-parse", "--abbrev-ref", "HEAD")).toBe(branch);
    expect(await runGitInClone(home.path, "rev-list", "--count", "HEAD")).toBe(count);
    expect(await runGitInClone(home.path, "status", "--porcelain")).toBe("");
    if (count === "1") await runGitInClone(home.path, "fetch", "-q", "--unshallow");
    expect(await runGitInClone(home.path, "rev-list", "--count", "HEAD")).toBe("2");
  },
);

test("[RW-8] an interrupted clone starts again; a folder with other content stays unchanged", async () => {
  using home = tempDirectory();
  const clone = join(home.path, "app");
  mkdirSync(join(clone, ".git"), { recursive: true });
  writeFileSync(join(clone, ".git", "slipway-cloning"), "");
  writeFileSync(join(clone, "half"), "");
  expect((await runStartScripts(home.path)).output).toContain("The last clone was interrupted.");
  expect([existsSync(join(clone, "half")), readFileSync(join(clone, "a.txt"), "utf8")]).toEqual([false, "two"]);
  writeFileSync(join(clone, "a.txt"), "mine");
  expect((await runStartScripts(home.path)).output).toContain("Leaving it unchanged.");
  expect(readFileSync(join(clone, "a.txt"), "utf8")).toBe("mine");

  using homeWithEmptyFolder = tempDirectory();
  mkdirSync(join(homeWithEmptyFolder.path, "app", "empty"), { recursive: true });
  expect((await runStartScripts(homeWithEmptyFolder.path)).output).toContain("Cloned");
  using homeWithFiles = tempDirectory();
  mkdirSync(join(homeWithFiles.path, "app"));
  writeFileSync(join(homeWithFiles.path, "app", "notes"), "mine");
  const { codes, output } = await runStartScripts(homeWithFiles.path);
  expect([codes, output.includes("contains other files. Skipping the clone.")]).toEqual([[0], true]);
  expect(readFileSync(join(homeWithFiles.path, "app", "notes"), "utf8")).toBe("mine");
});

test("[RW-12] a rejected clone fails with the host's name and a remedy, and later commands do not run", async () => {
  using home = tempDirectory();
  const post_create = [[{ run: "touch never" }]];
  const lifecycle = { on_create: [], update_content: [], post_create, post_start: [] };
  const { codes, output } = await runStartScripts(home.path, { url: git.link("none"), lifecycle });
  expect(codes).toEqual([1, 1]);
  expect(output).toContain(`could not be cloned from ${git.host}`);
  expect(output).toContain("These commands were skipped");
  using homeWithKey = tempDirectory();
  const withDeployKey = await runStartScripts(homeWithKey.path, { ssh_url: "ssh://git@127.0.0.1:1/acme/app.git" });
  expect(withDeployKey.output).toContain(
    "Check that your deploy key is listed in the repository's settings at 127.0.0.1:1",
  );
  expect(existsSync(join(home.path, "app", "never"))).toBe(false);
});

test("[RW-7] commands run in order, once until they change; background commands run after the others", async () => {
  using home = tempDirectory();
  const appendToOrder = (word: string): string => `echo "${word}" >>"$HOME/order"`;
  const lifecycle = {
    on_create: [[{ run: appendToOrder("create") }]],
    update_content: [[{ run: ["sh", "-c", `echo "$0" >>"$HOME/order"`, `$\`'" \${HOME}`] }]],
    post_create: [[{ name: "it's", run: appendToOrder("it's") }, { run: "true" }], [{ run: appendToOrder("then") }]],
    post_start: [[{ run: appendToOrder("start") }]],
  };
  const readOrder = (): string[] => readFileSync(join(home.path, "order"), "utf8").trim().split("\n");
  expect((await runStartScripts(home.path, { lifecycle })).codes).toEqual([0, 0]);
  expect(readOrder()).toEqual(["create", `$\`'" ${home.path}`, "it's", "then", "start"]);
  await runStartScripts(home.path, { lifecycle }, "agent-2");
  expect(readOrder().slice(5)).toEqual(["start"]);
  const changedLifecycle = Object.assign({}, lifecycle, { post_create: [[{ run: appendToOrder("new") }]] });
  await runStartScripts(home.path, { lifecycle: changedLifecycle }, "agent-3");
  expect(readOrder().slice(6)).toEqual(["new", "start"]);
  const brokenLifecycle = Object.assign({}, lifecycle, { on_create: [[{ run: "false" }, { run: "true" }]] });
  const { codes, output } = await runStartScripts(home.path, { lifecycle: brokenLifecycle }, "agent-4");
  expect([codes, output.includes("onCreateCommand has failed.")]).toEqual([[1, 1], true]);
  expect(readOrder().slice(8)).toEqual([]);
});

testNeeding([needs.git, needs.gitLfs], "[RW-7] the clone fetches large files from the host's LFS server", async () => {
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
  const { codes, output } = await runStartScripts(home.path, { url: git.link("large") });
  expect([codes, output]).toEqual([[0], expect.stringContaining("Cloned")]);
  expect([readFileSync(join(home.path, "app", "one.bin"), "utf8"), output]).toEqual([content, expect.anything()]);
  expect(requests).toEqual(["POST /lfs/objects/batch", "GET /object"]);

  // Without the LFS server, the large files are missing, but the clone succeeds.
  await lfs.stop(true);
  using secondHome = tempDirectory();
  const withoutLfs = await runStartScripts(secondHome.path, { url: git.link("large") });
  expect([withoutLfs.codes, withoutLfs.output]).toEqual([
    [0],
    expect.stringContaining("Large files could not be fetched"),
  ]);
  expect(readFileSync(join(secondHome.path, "app", "one.bin"), "utf8")).toBe(pointer);
});
