// Downloads with which a machine becomes an agent: the program for each system, its digest, and the script that installs it.
import { expect, test } from "bun:test";
import { chmodSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { sha256 } from "#base/ids.ts";
import { startTestServer, tempDirectory } from "#test/support/server.ts";

const SCRIPT = "#!/bin/sh\necho ran\n";
const platform = `${process.platform}-${process.arch === "x64" ? "amd64" : process.arch}`;

const startDownloadServer = async (folder: string) => {
  const ownProgram = join(folder, "own");
  const binaries = join(folder, "binaries");
  mkdirSync(binaries);
  writeFileSync(ownProgram, SCRIPT);
  writeFileSync(join(binaries, "slipway-linux-musl-arm64"), "\x7fELF of another machine");
  chmodSync(ownProgram, 0o755);
  return startTestServer({ env: { SLIPWAY_AGENT_BINARY: ownProgram, SLIPWAY_AGENT_BINARIES: binaries } });
};

test("[TF-13] the server offers the program for a system under both names with its digest, and honors the ETag", async () => {
  using folder = tempDirectory();
  await using server = await startDownloadServer(folder.path);
  const get = (path: string, headers: Record<string, string> = {}) => fetch(new URL(path, server.url), { headers });
  const [slipwayResponse, coderResponse] = await Promise.all([
    get(`/bin/slipway-${platform}`),
    get(`/bin/coder-${platform}`),
  ]);
  expect([await slipwayResponse.text(), await coderResponse.text()]).toEqual([SCRIPT, SCRIPT]);
  const etag = slipwayResponse.headers.get("etag") as string;
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

test("[TF-14] the script for a machine contains the server's URL, downloads the program and starts it", async () => {
  using folder = tempDirectory();
  await using server = await startDownloadServer(folder.path);
  for (const path of [
    `/init-script/${platform.replace("-", "/")}`,
    `/api/v2/init-script/${platform.replace("-", "/")}`,
  ]) {
    const script = await (await fetch(new URL(path, server.url))).text();
    expect(script).toContain(`CODER_AGENT_URL="${server.url.href}"`);
    // The environment contains only a PATH, so the program must come from the server.
    const child = Bun.spawn(["sh", "-c", script], {
      env: { PATH: process.env.PATH ?? "", BINARY_DIR: join(folder.path, "fetched") },
      stdout: "pipe",
      stderr: "inherit",
    });
    expect([await child.stdout.text(), await child.exited]).toEqual(["ran\n", 0]);
  }
  expect((await fetch(new URL("/init-script/plan9/amd64", server.url))).status).toBe(400);
});

test("[TF-14] all runs on a machine share one folder for the program, and never use another user's folder", async () => {
  using folder = tempDirectory();
  await using server = await startDownloadServer(folder.path);
  const script = await (await fetch(new URL(`/init-script/${platform.replace("-", "/")}`, server.url))).text();
  const tempFolder = join(folder.path, "temp");
  mkdirSync(tempFolder);
  const runScript = async (): Promise<string> => {
    const env = { PATH: process.env.PATH ?? "", TMPDIR: tempFolder };
    return Bun.spawn(["sh", "-c", script], { env, stdout: "pipe", stderr: "inherit" }).stdout.text();
  };
  expect(await Promise.all([runScript(), runScript(), runScript()])).toEqual(["ran\n", "ran\n", "ran\n"]);
  const [sharedFolder = "", ...others] = readdirSync(tempFolder);
  expect([others, readdirSync(join(tempFolder, sharedFolder))]).toEqual([[], ["slipway"]]);
  // A link may point to a folder that others can write to.
  const linkTarget = join(folder.path, "elsewhere");
  mkdirSync(linkTarget);
  const tempWithLink = join(folder.path, "away");
  mkdirSync(tempWithLink);
  symlinkSync(linkTarget, join(tempWithLink, sharedFolder));
  const env = { PATH: process.env.PATH ?? "", TMPDIR: tempWithLink };
  const child = Bun.spawn(["sh", "-c", script], { env, stdout: "pipe", stderr: "inherit" });
  expect([await child.stdout.text(), readdirSync(linkTarget)]).toEqual(["ran\n", []]);
});
