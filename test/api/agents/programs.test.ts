// Downloads for a machine to become an agent: the program by system name, with a digest, and the script that installs it.
import { expect, test } from "bun:test";
import { chmodSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { sha256 } from "#base/ids.ts";
import { startTestServer, tempDirectory } from "#test/support/server.ts";

const SCRIPT = "#!/bin/sh\necho ran\n";
const platform = `${process.platform}-${process.arch === "x64" ? "amd64" : process.arch}`;

const serving = async (folder: string) => {
  const ownFolder = join(folder, "own");
  const binaries = join(folder, "binaries");
  mkdirSync(binaries);
  writeFileSync(ownFolder, SCRIPT);
  writeFileSync(join(binaries, "slipway-linux-musl-arm64"), "\x7fELF of another machine");
  chmodSync(ownFolder, 0o755);
  return startTestServer({ env: { SLIPWAY_AGENT_BINARY: ownFolder, SLIPWAY_AGENT_BINARIES: binaries } });
};

test("[TF-13] the program for a system is served under both names, with its digest, and only once", async () => {
  using folder = tempDirectory();
  await using server = await serving(folder.path);
  const get = (path: string, headers: Record<string, string> = {}) => fetch(new URL(path, server.url), { headers });
  const [mine, theirs] = await Promise.all([get(`/bin/slipway-${platform}`), get(`/bin/coder-${platform}`)]);
  expect([await mine.text(), await theirs.text()]).toEqual([SCRIPT, SCRIPT]);
  const etag = mine.headers.get("etag") as string;
  expect(etag).toBe(`"${sha256(SCRIPT)}"`);
  expect((await get(`/bin/slipway-${platform}`, { "if-none-match": `"other", ${etag}` })).status).toBe(304);
  expect((await get("/bin/slipway-linux-musl-arm64")).headers.get("content-type")).toBe("application/octet-stream");
  const sums = await (await get("/bin/SHA256SUMS")).text();
  expect(sums.split("\n").map((line) => line.split("  ")[1])).toEqual(
    expect.arrayContaining([`slipway-${platform}`, "slipway-linux-musl-arm64"]),
  );
  for (const name of ["slipway-windows-arm64.exe", "slipway-plan9-amd64", "own", "..%2fown", "slipway"]) {
    expect([name, (await get(`/bin/${name}`)).status]).toEqual([name, 404]);
  }
});

test("[TF-14] a machine's script names this server's address, downloads the program and starts it", async () => {
  using folder = tempDirectory();
  await using server = await serving(folder.path);
  for (const path of [
    `/init-script/${platform.replace("-", "/")}`,
    `/api/v2/init-script/${platform.replace("-", "/")}`,
  ]) {
    const script = await (await fetch(new URL(path, server.url))).text();
    expect(script).toContain(`CODER_AGENT_URL="${server.url.href}"`);
    // Runs with only a PATH: the script starts the program that the server serves.
    const run = Bun.spawn(["sh", "-c", script], {
      env: { PATH: process.env.PATH ?? "", BINARY_DIR: join(folder.path, "fetched") },
      stdout: "pipe",
      stderr: "inherit",
    });
    expect([await run.stdout.text(), await run.exited]).toEqual(["ran\n", 0]);
  }
  expect((await fetch(new URL("/init-script/plan9/amd64", server.url))).status).toBe(400);
});

test("[TF-14] all starts on a machine share one folder for the program, never one that another user has created", async () => {
  using folder = tempDirectory();
  await using server = await serving(folder.path);
  const script = await (await fetch(new URL(`/init-script/${platform.replace("-", "/")}`, server.url))).text();
  const temp = join(folder.path, "temp");
  mkdirSync(temp);
  const run = async (): Promise<string> => {
    const env = { PATH: process.env.PATH ?? "", TMPDIR: temp };
    return Bun.spawn(["sh", "-c", script], { env, stdout: "pipe", stderr: "inherit" }).stdout.text();
  };
  expect(await Promise.all([run(), run(), run()])).toEqual(["ran\n", "ran\n", "ran\n"]);
  const [shared = "", ...others] = readdirSync(temp);
  expect([others, readdirSync(join(temp, shared))]).toEqual([[], ["slipway"]]);
  // A link may point to a folder that others can write to.
  const elsewhere = join(folder.path, "elsewhere");
  mkdirSync(elsewhere);
  const away = join(folder.path, "away");
  mkdirSync(away);
  symlinkSync(elsewhere, join(away, shared));
  const env = { PATH: process.env.PATH ?? "", TMPDIR: away };
  const linked = Bun.spawn(["sh", "-c", script], { env, stdout: "pipe", stderr: "inherit" });
  expect([await linked.stdout.text(), readdirSync(elsewhere)]).toEqual(["ran\n", []]);
});
