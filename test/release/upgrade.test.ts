// `slipway upgrade` on a simulated machine: what it rejects, an upgrade with data, a version that does not start, and a kill at each step.
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
  const one = await openUpgradeWorld();
  one.tell("start");
  await until(async () => (await fetch(new URL("/readyz", one.url)).catch(() => undefined))?.ok, {
    what: "the server",
  });
  return one;
};

describe("refusals", () => {
  beforeAll(async () => {
    world = await startWorld();
  });
  afterAll(() => world[Symbol.asyncDispose]());

  const expectRefused = async (
    words: string,
    args: readonly string[] = [],
    env: Readonly<Record<string, string>> = {},
  ) => {
    expect(await world.upgrade(args, env)).toEqual({ code: 1, text: expect.stringContaining(words) });
    expect(readFileSync(world.program, "utf8")).toBe(PROGRAMS.same);
    expect(world.listInstalled()).toEqual(["slipway"]);
  };

  test("[UP-1] --check names the newer release and changes nothing; without one it says so", async () => {
    await world.release({ program: PROGRAMS.good });
    const requested = world.asked.length;
    const newer = await world.upgrade(["--check"]);
    expect(newer).toEqual({ code: 1, text: `Slipway ${NEXT_VERSION} is available; this is ${VERSION}.\n` });
    expect(world.asked.slice(requested)).toEqual(["release.json", "release.json.minisig"]);
    await world.release({ program: PROGRAMS.same, version: VERSION });
    expect(await world.upgrade(["--check"])).toEqual({ code: 0, text: `Slipway ${VERSION} is the newest release.\n` });
    expect(await world.upgrade()).toEqual({ code: 0, text: `Slipway ${VERSION} is already installed.\n` });
    expect(world.listInstalled()).toEqual(["slipway"]);
  });

  test("[UP-2] an older release is refused unless requested, and so is a program whose version differs from its signature's", async () => {
    await world.release({ version: "0.1.0" });
    await expectRefused("older than");
    await expectRefused("the new program does not run on this machine", ["--allow-downgrade"]);
    await world.release({ program: PROGRAMS.good, version: "9.9.8" });
    await expectRefused("the new program reports version 9.9.9");
  });

  test("[UP-2] an untrusted key, a changed list, a missing signature and a replaced file are refused", async () => {
    await world.release({ program: PROGRAMS.good, key: generateSigningKey() });
    await expectRefused("which is not trusted here");
    const { out } = await world.release({ program: PROGRAMS.good });
    world.answer((name) =>
      name === "release.json" ? new Response(`${readFileSync(join(out, name), "utf8")} `) : undefined,
    );
    await expectRefused("the signature does not match the file");
    world.answer((name) => (name === "release.json.minisig" ? new Response("no", { status: 404 }) : undefined));
    await expectRefused("answered 404");
    world.answer((name) =>
      name === `${FILE}.minisig` ? new Response(Bun.file(join(out, "release.json.minisig"))) : undefined,
    );
    await expectRefused("the signature does not match the file");
    world.answer(() => undefined);
  });

  test("[UP-7] a second concurrent upgrade is refused until the first has ended or was killed", async () => {
    await world.release({ program: PROGRAMS.good });
    const response = Promise.withResolvers<Response>();
    const requested = Promise.withResolvers<void>();
    world.answer((name) => {
      if (name !== "release.json") return undefined;
      requested.resolve();
      return new Response(new ReadableStream({ start: (one) => void response.promise.then(() => one.close()) }));
    });
    const first = world.upgrade();
    await requested.promise;
    expect(world.listInstalled()).toEqual([".slipway.lock", "slipway"]);
    const second = await world.upgrade();
    expect(second).toEqual({ code: 1, text: expect.stringContaining('another "slipway upgrade"') });
    // A check for an update changes nothing.
    world.answer(() => undefined);
    expect((await world.upgrade(["--check"])).text).toContain("is available");
    response.resolve(new Response());
    expect((await first).code).toBe(1);
    expect(world.listInstalled()).toEqual(["slipway"]);
    // A killed upgrade leaves the file, but no lock.
    writeFileSync(join(world.installFolder, ".slipway.lock"), "");
    await expectRefused("cannot fetch", [], { SLIPWAY_RELEASE_URL: "http://127.0.0.1:1" });
  });

  test("[UP-2] a partial download, a changed one and an unreachable server fail", async () => {
    const { out } = await world.release({ program: PROGRAMS.good });
    const program = readFileSync(join(out, FILE));
    const serveFile = (bytes: Uint8Array) =>
      world.answer((name) => (name === FILE ? new Response(new Uint8Array(bytes)) : undefined));
    serveFile(program.subarray(0, program.length / 2));
    await expectRefused("was not downloaded completely");
    serveFile(Buffer.concat([program, program]));
    await expectRefused("larger than the release states");
    serveFile(program.map((byte, i) => (i === 40 ? byte ^ 1 : byte)));
    await expectRefused("does not match the release's checksum");
    world.answer(() => undefined);
    await expectRefused("cannot fetch", [], { SLIPWAY_RELEASE_URL: "http://127.0.0.1:1" });
  });

  test("[UP-2] a file without its signature, one for another system, and a service whose data is not found are refused", async () => {
    const { out } = await world.release({ program: PROGRAMS.good });
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

  test("[UP-6] a packaged program is left to its package manager", async () => {
    const mark = join(world.installFolder, "installed-by");
    writeFileSync(mark, "deb\n");
    expect(await world.upgrade()).toEqual({
      code: 1,
      text: expect.stringContaining("upgrade it with: apt install ./slipway_"),
    });
    rmSync(mark);
  });
});

test("[UP-3][UP-4] upgrades with backup and data, is ready as the new version, and goes back on request; then upgrades from a file", async () => {
  await using machine = await startWorld();
  expect(await machine.signIn()).toContain(VERSION);
  const { out } = await machine.release({ program: PROGRAMS.good });
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

test("[UP-3] without a service it says how to restart, and replaces a client without data", async () => {
  await using machine = await openUpgradeWorld();
  rmSync(join(machine.folder, "bin", "systemctl"));
  const { out } = await machine.release({ program: PROGRAMS.good });
  const { publicKey } = machine;
  expect(await machine.upgrade(["--file", join(out, FILE), "--release-key", publicKey])).toEqual({
    code: 0,
    text: expect.stringContaining(`Installed Slipway ${NEXT_VERSION}`),
  });
  expect(machine.version()).toContain(NEXT_VERSION);
});

test("[UP-4] if a version changes the data and does not start, the previous program and data are restored, and the server runs", async () => {
  await using machine = await startWorld();
  await machine.release({ program: PROGRAMS.bad });
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
  "[UP-5] killed at each step of an upgrade, the program is complete, the server has its data, and the same command completes the upgrade",
  async () => {
    expect([...UPGRADE_POINTS, ...RETURN_POINTS].toSorted()).toEqual([...UPGRADE_FAILPOINTS].toSorted());
    await using machine = await startWorld();
    await machine.release({ program: PROGRAMS.good });
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
  "[UP-5] killed at each step back, --back completes it",
  async () => {
    await using machine = await startWorld();
    await machine.release({ program: PROGRAMS.bad });
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
