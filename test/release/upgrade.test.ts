// `slipway upgrade` on a simulated machine: rejected releases, an upgrade with data, a version that does not start, and a kill at each step.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { UPGRADE_FAILPOINTS } from "#base/failpoint.ts";
import { digestFile, printPublicKey, signDigest } from "#base/minisign.ts";
import { toReleaseFileName } from "#base/release.ts";
import { VERSION } from "#base/version.ts";
import { generateSigningKey } from "#src/release/signing-key.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { toProgramCommand } from "#test/support/program.ts";
import { until } from "#test/support/until.ts";
import { NEXT_VERSION, openUpgradeWorld, PROGRAMS } from "./upgrade-world.ts";

type World = Awaited<ReturnType<typeof openUpgradeWorld>>;

const SYSTEM = `linux-${process.arch === "x64" ? "amd64" : process.arch}`;
const FILE = toReleaseFileName(SYSTEM);

let world: World;

const startWorld = async (): Promise<World> => {
  const machine = await openUpgradeWorld();
  machine.runSystemctl("start");
  await until(async () => (await fetch(new URL("/readyz", machine.url)).catch(() => undefined))?.ok, {
    what: "the server",
  });
  return machine;
};

describe("refusals", () => {
  beforeAll(async () => {
    world = await startWorld();
  });
  afterAll(() => world[Symbol.asyncDispose]());

  const expectRefused = async (
    reason: string,
    args: readonly string[] = [],
    env: Readonly<Record<string, string>> = {},
  ) => {
    expect(await world.upgrade(args, env)).toEqual({ code: 1, text: expect.stringContaining(reason) });
    expect(readFileSync(world.program, "utf8")).toBe(PROGRAMS.current);
    expect(world.listInstalled()).toEqual(["slipway"]);
  };

  test("[UP-1] --check names a newer release, or reports that no release is newer, and changes nothing", async () => {
    await world.release({ program: PROGRAMS.working });
    const requestCount = world.requests.length;
    const newer = await world.upgrade(["--check"]);
    expect(newer).toEqual({ code: 1, text: `Slipway ${NEXT_VERSION} is available; this is ${VERSION}.\n` });
    expect(world.requests.slice(requestCount)).toEqual(["release.json", "release.json.minisig"]);
    await world.release({ program: PROGRAMS.current, version: VERSION });
    expect(await world.upgrade(["--check"])).toEqual({ code: 0, text: `Slipway ${VERSION} is the newest release.\n` });
    expect(await world.upgrade()).toEqual({ code: 0, text: `Slipway ${VERSION} is already installed.\n` });
    expect(world.listInstalled()).toEqual(["slipway"]);
  });

  test("[UP-2] refuses an older release unless requested, and a program whose version differs from its signature's", async () => {
    await world.release({ version: "0.1.0" });
    await expectRefused("older than");
    await expectRefused("the new program does not run on this machine", ["--allow-downgrade"]);
    await world.release({ program: PROGRAMS.working, version: "9.9.8" });
    await expectRefused("the new program reports version 9.9.9");
  });

  test("[UP-2] refuses an untrusted key, a changed list, a missing signature and a replaced file", async () => {
    await world.release({ program: PROGRAMS.working, key: generateSigningKey() });
    await expectRefused("which is not trusted here");
    const { out } = await world.release({ program: PROGRAMS.working });
    world.setResponses((name) =>
      name === "release.json" ? new Response(`${readFileSync(join(out, name), "utf8")} `) : undefined,
    );
    await expectRefused("the signature does not match the file");
    world.setResponses((name) => (name === "release.json.minisig" ? new Response("no", { status: 404 }) : undefined));
    await expectRefused("answered 404");
    world.setResponses((name) =>
      name === `${FILE}.minisig` ? new Response(Bun.file(join(out, "release.json.minisig"))) : undefined,
    );
    await expectRefused("the signature does not match the file");
    world.setResponses(() => undefined);
  });

  test("[UP-7] refuses a second upgrade until the first one has ended or was killed", async () => {
    await world.release({ program: PROGRAMS.working });
    const response = Promise.withResolvers<Response>();
    const requested = Promise.withResolvers<void>();
    world.setResponses((name) => {
      if (name !== "release.json") return undefined;
      requested.resolve();
      return new Response(
        new ReadableStream({ start: (controller) => void response.promise.then(() => controller.close()) }),
      );
    });
    const first = world.upgrade();
    await requested.promise;
    expect(world.listInstalled()).toEqual([".slipway.lock", "slipway"]);
    const second = await world.upgrade();
    expect(second).toEqual({ code: 1, text: expect.stringContaining('another "slipway upgrade"') });
    // A check for an update changes nothing.
    world.setResponses(() => undefined);
    expect((await world.upgrade(["--check"])).text).toContain("is available");
    response.resolve(new Response());
    expect((await first).code).toBe(1);
    expect(world.listInstalled()).toEqual(["slipway"]);
    // A killed upgrade leaves the file, but no lock.
    writeFileSync(join(world.installFolder, ".slipway.lock"), "");
    await expectRefused("cannot fetch", [], { SLIPWAY_RELEASE_URL: "http://127.0.0.1:1" });
  });

  test("[UP-2] fails after a partial or changed download, and if the server is unreachable", async () => {
    const { out } = await world.release({ program: PROGRAMS.working });
    const program = readFileSync(join(out, FILE));
    const serveFile = (bytes: Uint8Array) =>
      world.setResponses((name) => (name === FILE ? new Response(new Uint8Array(bytes)) : undefined));
    serveFile(program.subarray(0, program.length / 2));
    await expectRefused("was not downloaded completely");
    serveFile(Buffer.concat([program, program]));
    await expectRefused("larger than the release states");
    serveFile(program.map((byte, i) => (i === 40 ? byte ^ 1 : byte)));
    await expectRefused("does not match the release's checksum");
    world.setResponses(() => undefined);
    await expectRefused("cannot fetch", [], { SLIPWAY_RELEASE_URL: "http://127.0.0.1:1" });
  });

  test("[UP-2] refuses an unsigned file, a file for another system, and a service whose data is not found", async () => {
    const { out } = await world.release({ program: PROGRAMS.working });
    await expectRefused(`this machine needs ${FILE}`, ["--file", join(out, "slipway-darwin-arm64.gz")]);
    const otherData = ["--release-key", world.publicKey, "--data-dir", join(world.folder, "nowhere")];
    await expectRefused("there is no database in", ["--file", join(out, FILE), ...otherData]);
    const otherKey = generateSigningKey();
    const signWithComment = async (comment: string) =>
      writeFileSync(join(out, `${FILE}.minisig`), signDigest(await digestFile(join(out, FILE)), comment, otherKey));
    for (const comment of [`slipway 9.9.9: ${FILE}`, `slipway 9.9.9/2 ${FILE}`, "timestamp:1 file:slipway"]) {
      await signWithComment(comment);
      const args = ["--file", join(out, FILE), "--release-key", printPublicKey(otherKey)];
      await expectRefused("names no Slipway version and file", args);
    }
    rmSync(join(out, `${FILE}.minisig`));
    await expectRefused("there is no signature", ["--file", join(out, FILE)]);
    await expectRefused("there is no file", ["--file", join(out, "nothing.gz")]);
  });

  test("[UP-6] leaves a packaged program to its package manager", async () => {
    const markerFile = join(world.installFolder, "installed-by");
    writeFileSync(markerFile, "deb\n");
    expect(await world.upgrade()).toEqual({
      code: 1,
      text: expect.stringContaining("upgrade it with: apt install ./slipway_"),
    });
    rmSync(markerFile);
  });
});

test("[UP-3][UP-4] upgrades with a backup, keeps the data, goes back on request, and upgrades from a file", async () => {
  await using machine = await startWorld();
  expect(await machine.signIn()).toContain(VERSION);
  const { out } = await machine.release({ program: PROGRAMS.working });
  const upgraded = await machine.upgrade();
  expect(upgraded).toEqual({ code: 0, text: expect.stringContaining(`Slipway ${NEXT_VERSION} is ready.\n`) });
  expect(machine.listInstalled()).toEqual(["slipway", "slipway.before"]);
  expect(await machine.signIn()).toContain(NEXT_VERSION);
  const backups = readdirSync(join(machine.data, "backups"));
  expect(backups.filter((name) => name.startsWith("slipway-"))).toHaveLength(1);

  const returned = await machine.upgrade(["--back"], {}, [machine.program]);
  expect(returned).toEqual({ code: 0, text: expect.stringContaining(`Slipway ${VERSION} is ready.\n`) });
  expect(await machine.signIn()).toContain(VERSION);
  expect(existsSync(join(machine.data, "newer-1.db"))).toBe(true);

  const fromFile = await machine.upgrade(["--file", join(out, FILE)]);
  expect(fromFile).toEqual({ code: 0, text: expect.stringContaining(`Slipway ${NEXT_VERSION} is ready.\n`) });
  expect(await machine.signIn()).toContain(NEXT_VERSION);
});

test("[UP-3] without a service, prints how to restart, and replaces a client without data", async () => {
  await using machine = await openUpgradeWorld();
  rmSync(join(machine.folder, "bin", "systemctl"));
  const { out } = await machine.release({ program: PROGRAMS.working });
  const { publicKey } = machine;
  expect(await machine.upgrade(["--file", join(out, FILE), "--release-key", publicKey])).toEqual({
    code: 0,
    text: expect.stringContaining(`Installed Slipway ${NEXT_VERSION}`),
  });
  expect(machine.version()).toContain(NEXT_VERSION);
});

test("[UP-4] restores the previous program and data if a version changes the data and does not start", async () => {
  await using machine = await startWorld();
  await machine.release({ program: PROGRAMS.failing });
  const failed = await machine.upgrade();
  expect(failed.text).toContain(`Slipway ${NEXT_VERSION} did not start: its service failed`);
  expect(failed).toEqual({ code: 1, text: expect.stringContaining(`Slipway ${VERSION} is ready.\n`) });
  expect(failed.text).toContain("kept as");
  expect(await machine.signIn()).toContain(VERSION);
  expect(existsSync(join(machine.data, "newer-1.db"))).toBe(true);
});

const UPGRADE_POINTS = [
  "upgrade_unpacked",
  "upgrade_backed_up",
  "upgrade_kept",
  "upgrade_replaced",
  "upgrade_restarted",
] as const;
const RETURN_POINTS = ["upgrade_stopped", "upgrade_data_back", "upgrade_program_back"] as const;

test(
  "[UP-5] after a kill at any step, program and data are intact, and the same command completes the upgrade",
  async () => {
    expect([...UPGRADE_POINTS, ...RETURN_POINTS].toSorted()).toEqual([...UPGRADE_FAILPOINTS].toSorted());
    await using machine = await startWorld();
    await machine.release({ program: PROGRAMS.working });
    for (const point of UPGRADE_POINTS) {
      expect([point, (await machine.upgrade([], { SLIPWAY_FAILPOINT: point })).code]).toEqual([point, "SIGKILL"]);
      const isNew = point === "upgrade_replaced" || point === "upgrade_restarted";
      expect(machine.version()).toContain(isNew ? NEXT_VERSION : VERSION);
      if (point === "upgrade_replaced") renameSync(`${machine.program}.before`, machine.program);
    }
    await until(async () => (await machine.signIn().catch(() => "")).includes(NEXT_VERSION), {
      what: "the new server",
    });
    expect(await machine.upgrade()).toEqual({ code: 0, text: `Slipway ${NEXT_VERSION} is already installed.\n` });
  },
  scaleTimeout(180_000),
);

test(
  "[UP-5] after a kill at any step back, --back completes the return",
  async () => {
    await using machine = await startWorld();
    await machine.release({ program: PROGRAMS.failing });
    for (const point of RETURN_POINTS) {
      expect([point, (await machine.upgrade([], { SLIPWAY_FAILPOINT: point })).code]).toEqual([point, "SIGKILL"]);
      expect(await machine.upgrade(["--back"], {}, toProgramCommand())).toEqual({
        code: 0,
        text: expect.stringContaining(`Slipway ${VERSION} is ready.\n`),
      });
      expect(await machine.signIn()).toContain(VERSION);
    }
  },
  scaleTimeout(240_000),
);
