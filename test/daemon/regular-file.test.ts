// Files of the workspace that a program has replaced by something that cannot be read to its end.
import { afterAll, expect, test } from "bun:test";
import { closeSync, mkdirSync, openSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { APPEND_FLAGS, readRegularFile, readRegularText } from "#base/system/regular-file.ts";
import { tempFolder } from "./support/daemon.ts";

const folder = tempFolder();
afterAll(() => folder[Symbol.dispose]());
const at = (name: string): string => join(folder.path, name);
const makePipe = (path: string): void => void Bun.spawnSync(["mkfifo", path]);

test("[DM-29] a regular file is read, also through a link and from /proc, up to the limit", () => {
  writeFileSync(at("text"), "root:x:0:0::/root:/bin/sh\n");
  symlinkSync(at("text"), at("link"));
  expect(readRegularText(at("link"))).toBe("root:x:0:0::/root:/bin/sh\n");
  // Its size is given as 0.
  expect(readRegularText("/proc/self/stat")).toContain(String(process.pid));
  expect(readRegularFile(at("text"), 26).byteLength).toBe(26);
  expect(() => readRegularFile(at("text"), 25)).toThrow("more than 25 bytes");
  closeSync(openSync(at("sparse"), "w"));
  truncateSync(at("sparse"), 1024 ** 4);
  expect(readRegularText(at("sparse"))).toBeUndefined();
});

test("[DM-29] a pipe, a device, a folder and links to them are not read", () => {
  makePipe(at("pipe"));
  symlinkSync(at("pipe"), at("to-pipe"));
  symlinkSync("/dev/zero", at("to-device"));
  mkdirSync(at("folder"));
  for (const name of ["pipe", "to-pipe", "to-device", "folder"]) {
    expect(() => readRegularFile(at(name), 1024), name).toThrow("is not a regular file");
    expect(readRegularText(at(name))).toBeUndefined();
  }
  expect(readRegularText(at("missing"))).toBeUndefined();
  expect(() => openSync(at("pipe"), APPEND_FLAGS)).toThrow("ENXIO");
});

test("[DM-29] pipes in place of the daemon's own files do not stop it", async () => {
  // In a program of its own, which can be ended: a reader of a pipe waits forever.
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
  const home = at("home");
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
