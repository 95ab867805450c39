// Files of the workspace that a program has replaced with something that has no end, like a pipe.
import { afterAll, expect, test } from "bun:test";
import { closeSync, mkdirSync, openSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { APPEND_FLAGS, readRegularFile, readRegularText } from "#base/system/regular-file.ts";
import { tempFolder } from "./support/daemon.ts";

const folder = tempFolder();
afterAll(() => folder[Symbol.dispose]());
const pathOf = (name: string): string => join(folder.path, name);
const makePipe = (path: string): void => void Bun.spawnSync(["mkfifo", path]);

test("[DM-29] reads regular files up to the limit, including through a link and from /proc", () => {
  writeFileSync(pathOf("text"), "root:x:0:0::/root:/bin/sh\n");
  symlinkSync(pathOf("text"), pathOf("link"));
  expect(readRegularText(pathOf("link"))).toBe("root:x:0:0::/root:/bin/sh\n");
  // The kernel reports its size as 0.
  expect(readRegularText("/proc/self/stat")).toContain(String(process.pid));
  expect(readRegularFile(pathOf("text"), 26).byteLength).toBe(26);
  expect(() => readRegularFile(pathOf("text"), 25)).toThrow("more than 25 bytes");
  closeSync(openSync(pathOf("sparse"), "w"));
  truncateSync(pathOf("sparse"), 1024 ** 4);
  expect(readRegularText(pathOf("sparse"))).toBeUndefined();
});

test("[DM-29] does not read a pipe, a device, a folder or a link to one", () => {
  makePipe(pathOf("pipe"));
  symlinkSync(pathOf("pipe"), pathOf("to-pipe"));
  symlinkSync("/dev/zero", pathOf("to-device"));
  mkdirSync(pathOf("folder"));
  for (const name of ["pipe", "to-pipe", "to-device", "folder"]) {
    expect(() => readRegularFile(pathOf(name), 1024), name).toThrow("is not a regular file");
    expect(readRegularText(pathOf(name))).toBeUndefined();
  }
  expect(readRegularText(pathOf("missing"))).toBeUndefined();
  expect(() => openSync(pathOf("pipe"), APPEND_FLAGS)).toThrow("ENXIO");
});

test("[DM-29] pipes in place of the daemon's own files do not stop it", async () => {
  // A reader of a pipe would wait forever, so the code runs in a separate process that can be killed.
  const script = `
    import { SecretRecord } from "#src/daemon/secret-record.ts";
    import { GitRecord } from "#src/daemon/git/record.ts";
    import { writeHomeFiles } from "#src/daemon/coding-agents/home-files.ts";
    import { readGitfile, isRepository } from "#src/daemon/checkpoints/folders.ts";
    const [folder] = process.argv.slice(-1);
    writeHomeFiles(folder, {});
    const found = [
      new SecretRecord(folder, "w", "/nonexistent").paths,
      await new GitRecord(folder).read("chat"),
      await readGitfile(folder),
      await isRepository(folder + "/repository"),
    ];
    console.log(JSON.stringify(found));`;
  const home = pathOf("home");
  mkdirSync(join(home, "repository", ".git"), { recursive: true });
  for (const name of ["secret-files-w.json", "chat.json", ".git", ".slipway-given.json", "repository/.git/HEAD"])
    makePipe(join(home, name));
  const child = Bun.spawn([process.execPath, "--no-env-file", "-e", script, home], {
    cwd: join(import.meta.dir, "../.."),
    stdout: "pipe",
    stderr: "inherit",
    timeout: 20_000,
  });
  expect(await new Response(child.stdout).text()).toBe("[[],null,null,false]\n");
});
