// The commands for use inside a workspace, without a server: resource usage and dotfiles.
import { expect, test } from "bun:test";
import { existsSync, lstatSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { totalmem } from "node:os";
import { join } from "node:path";
import { tempDirectory } from "#test/support/server.ts";
import { installProgram } from "./client-world.ts";
import { runVerb } from "./run-verb.ts";

const CGROUP = "/sys/fs/cgroup";

test("[CV-27] `stat` reports a container's usage relative to its own limits", async () => {
  const files = {
    [`${CGROUP}/memory.max`]: "1073741824\n",
    [`${CGROUP}/memory.current`]: "536870912\n",
    [`${CGROUP}/memory.stat`]: "anon 1\ninactive_file 268435456\n",
    [`${CGROUP}/cpu.max`]: "50000 100000\n",
    [`${CGROUP}/cpu.stat`]: "usage_usec 1000000\nuser_usec 1\n",
  };
  expect((await runVerb(["stat", "mem"], { files })).printed).toBe("256.0 MiB of 1.0 GiB (25 %)\n");
  expect((await runVerb(["stat", "mem", "--prefix", "Gi"], { files })).printed).toBe("0.3 GiB of 1.0 GiB (25 %)\n");
  const { printed: machine } = await runVerb(["stat", "mem", "--host", "--json"], { files });
  expect(JSON.parse(machine).memory.total).toBe(totalmem());
  expect(JSON.parse((await runVerb(["stat", "cpu", "--json"], { files })).printed)).toEqual({
    cpu: { used: 0, total: 0.5, unit: "cores" },
  });
  const everything = await runVerb(["stat", "--path", "/"]);
  expect(everything.printed).toMatch(
    /^RESOURCE +USED\ncpu +[\d.]+ of [\d.]+ cores .*\nmemory +.* of .*\ndisk +.* of .* \(\d+ %\)\n$/,
  );
  expect((await runVerb(["stat", "disk", "--path", "/nowhere/at/all"])).code).toBe(1);
  for (const args of [["gpu"], ["cpu", "--path", "/"], ["cpu", "disk"], ["mem", "--prefix", "G"]])
    expect((await runVerb(["stat", ...args])).code).toBe(2);
});

test("[CV-27] on a shared machine, `stat` measures the agent's processes and the home folder", async () => {
  using temp = tempDirectory();
  writeFileSync(join(temp.path, "large"), new Uint8Array(3 * 1024 * 1024).fill(1));
  const env = { HOME: temp.path, SLIPWAY_SHARES_MACHINE: "true", SLIPWAY_WORKSPACE_AGENT_ID: crypto.randomUUID() };
  const { PATH = "" } = process.env;
  await using busy = Bun.spawn(["sh", "-c", "echo up; while :; do :; done"], { env: { ...env, PATH }, stdout: "pipe" });
  await busy.stdout.getReader().read();
  const { printed } = await runVerb(["stat", "--json"], { env });
  const { cpu, memory, disk } = JSON.parse(printed);
  expect(cpu.used).toBeGreaterThan(0);
  expect(memory.used).toBeGreaterThan(0);
  // A shell uses less than this, the whole machine uses more.
  expect(memory.used).toBeLessThan(16 * 1024 * 1024);
  expect(disk).toMatchObject({ total: null, unit: "bytes" });
  expect(disk.used / 1024 ** 2).toBeWithin(3, 4);
  const otherAgent = { ...env, SLIPWAY_WORKSPACE_AGENT_ID: crypto.randomUUID() };
  // If no process of the agent is found, the output has the machine's usage and says so.
  expect((await runVerb(["stat", "mem"], { env: otherAgent })).printed).toContain(", whole machine");
});

test("[CV-28] `dotfiles` links files, keeps existing ones, and adds new ones in a second run", async () => {
  using temp = tempDirectory();
  const [home, repository] = [join(temp.path, "home"), join(temp.path, "repository")];
  mkdirSync(home);
  mkdirSync(repository);
  const PATH = installProgram(home);
  const env = { PATH, HOME: home, GIT_CONFIG_GLOBAL: "/dev/null", GIT_AUTHOR_NAME: "a", GIT_AUTHOR_EMAIL: "a@b.c" };
  const sh = async (command: string[], cwd: string): Promise<{ code: number; out: string; err: string }> => {
    const committer = { GIT_COMMITTER_NAME: "a", GIT_COMMITTER_EMAIL: "a@b.c" };
    const child = Bun.spawn(command, { cwd, env: { ...env, ...committer }, stdio: ["ignore", "pipe", "pipe"] });
    const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text()]);
    return { code: await child.exited, out, err };
  };
  const commit = async (name: string, text: string, mode = 0o644): Promise<void> => {
    writeFileSync(join(repository, name), text, { mode });
    await sh(["git", "add", "-A"], repository);
    await sh(["git", "commit", "-m", "more"], repository);
  };
  await sh(["git", "init", "-b", "main"], repository);
  await commit(".vimrc", "set number\n");
  await commit("notes.txt", "not a dotfile\n");
  writeFileSync(join(home, ".vimrc"), "mine\n");
  const installDotfiles = () => sh(["slipway", "dotfiles", repository, "-y"], home);

  expect((await sh(["slipway", "dotfiles", repository], home)).code).toBe(2);
  expect(readFileSync(join(home, ".vimrc"), "utf8")).toBe("mine\n");
  expect(await installDotfiles()).toMatchObject({ code: 0, out: "Linked .vimrc.\n" });
  expect([readFileSync(join(home, ".vimrc"), "utf8"), lstatSync(join(home, ".vimrc")).isSymbolicLink()]).toEqual([
    "set number\n",
    true,
  ]);
  expect(readFileSync(join(home, ".vimrc.before-dotfiles"), "utf8")).toBe("mine\n");
  expect(existsSync(join(home, "notes.txt"))).toBe(false);

  await commit(".profile", "export A=1\n");
  expect((await installDotfiles()).out).toBe("Linked .profile.\n");
  expect((await installDotfiles()).out).toBe("Everything is already linked.\n");

  await commit("install.sh", '#!/bin/sh\necho working; echo "$PWD" > "$HOME/installed"\n', 0o755);
  expect(await installDotfiles()).toMatchObject({ code: 0, out: expect.stringContaining("install.sh of ") });
  expect(readFileSync(join(home, "installed"), "utf8").trim()).toEndWith(".config/slipway/dotfiles");
  await commit("install.sh", "#!/bin/sh\nexit 7\n", 0o755);
  const failed = await installDotfiles();
  expect([failed.code, failed.err.includes("install.sh failed (exit code 7)")]).toEqual([1, true]);
  const otherRepository = await sh(["slipway", "dotfiles", "/nowhere/else", "--yes"], home);
  expect([otherRepository.code, otherRepository.err.includes("move it away first")]).toEqual([1, true]);

  // A custom command takes precedence over the script. Another repository replaces the clone, which is kept.
  const custom = await sh(["slipway", "dotfiles", repository, "-y", "--install-command", "cat notes.txt >&2"], home);
  expect([custom.code, custom.err.includes("not a dotfile")]).toEqual([0, true]);
  const second = join(temp.path, "second");
  await sh(["git", "clone", repository, second], home);
  await sh(["git", "rm", "install.sh"], second);
  await sh(["git", "commit", "-m", "links only"], second);
  const clone = join(home, ".config/slipway/dotfiles");
  mkdirSync(`${clone}.cloning/.git`, { recursive: true });
  expect(await sh(["slipway", "dotfiles", second, "-y", "--replace"], home)).toMatchObject({ code: 0 });
  expect(existsSync(join(`${clone}.before-dotfiles`, "install.sh"))).toBe(true);
  expect([existsSync(join(clone, "install.sh")), existsSync(`${clone}.cloning`)]).toEqual([false, false]);
});
