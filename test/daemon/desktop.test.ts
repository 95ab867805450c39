// The desktop of a workspace, with real VNC servers: started on demand, captured, and controlled with pointer and keyboard.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inflateSync } from "node:zlib";
import { systemClock } from "#base/clock.ts";
import { AppError } from "#base/errors.ts";
import { performAction } from "#src/daemon/desktop/actions.ts";
import { Desktop } from "#src/daemon/desktop/desktop.ts";
import { parseKeysyms, toKeysym } from "#src/daemon/desktop/keysyms.ts";
import { computeScale, createPicture } from "#src/daemon/desktop/png.ts";
import { parseVncServer } from "#src/daemon/desktop/programs.ts";
import { ProcessGroups } from "#src/daemon/scripts/groups.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { until } from "#test/support/until.ts";

const clock = systemClock;
const groups = new ProcessGroups({ clock, agent_id: "desktop-test" });
let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "slipway-desktop-test-"));
});
afterAll(async () => {
  await groups.endAll(5_000);
  rmSync(folder, { recursive: true, force: true });
});

/** Returns a PATH with only these programs and their dependencies, so that no other VNC server is found. */
const makePath = (...names: string[]): string => {
  const binFolder = join(folder, ["path", ...names].join("-"));
  mkdirSync(binFolder);
  for (const name of [...names, "sh", "cat", "xkbcomp", "perl"]) {
    const file = Bun.which(name);
    if (file) symlinkSync(file, join(binFolder, name));
  }
  return binFolder;
};
const makeDesktop = (PATH: string, extraEnv: Record<string, string> = {}) =>
  new Desktop({ clock, groups, env: { PATH, HOME: folder, SLIPWAY_WORKSPACE_AGENT_ID: "desktop-test", ...extraEnv } });

/** Returns an image's size, and a function that returns the color at a position. */
const readPng = (image: string) => {
  const bytes = Buffer.from(image, "base64");
  const [width, height] = [bytes.readUInt32BE(16), bytes.readUInt32BE(20)];
  const rows = inflateSync(bytes.subarray(41, 41 + bytes.readUInt32BE(33)));
  const colorAt = (x: number, y: number): string =>
    rows
      .subarray(y * (1 + width * 3) + 1 + x * 3)
      .subarray(0, 3)
      .toString("hex");
  return { width, height, colorAt };
};

const catchAppError = async (promise: Promise<unknown>): Promise<AppError> => {
  const error = await promise.then(
    () => undefined,
    (caught: unknown) => caught,
  );
  if (!(error instanceof AppError)) throw new Error(`expected an AppError, got ${error}`);
  return error;
};

const testDesktop = (title: string, requirements: Parameters<typeof testNeeding>[0], programs: string[]) =>
  testNeeding([...requirements, needs.xterm], title, async () => {
    const typed = join(folder, `${programs[0]}.txt`);
    const session = `exec ${needs.xterm.file} -geometry 80x24+0+0 -bg '#102030' -e sh -c 'cat > ${typed}'`;
    const desktop = makeDesktop(makePath(...programs), { SLIPWAY_DESKTOP_SESSION: session });
    const first = await performAction(desktop, clock, { action: "screenshot" });
    expect([first.width, first.height]).toEqual([1_280, 800]);
    expect(desktop.env).toMatchObject({ DISPLAY: expect.stringMatching(/^:\d+$/), XAUTHORITY: expect.any(String) });
    // The window is open once its background color is visible.
    const readWindowColor = async () =>
      readPng((await performAction(desktop, clock, { action: "wait", duration_ms: 50 })).image).colorAt(300, 200);
    await until(async () => (await readWindowColor()) === "102030");
    await performAction(desktop, clock, { action: "click", x: 200, y: 150 });
    await performAction(desktop, clock, { action: "type", text: "Hello, World! 1+1" });
    await performAction(desktop, clock, { action: "key", keys: "BackSpace Return ctrl+d" });
    await until(async () => (await readWindowColor()) !== "102030");
    expect(await Bun.file(typed).text()).toBe("Hello, World! 1+\n");
    expect(
      (await catchAppError(performAction(desktop, clock, { action: "key", keys: "ctrl+nothing" }))).validations,
    ).toMatchObject([{ field: "keys" }]);
    expect(await catchAppError(performAction(desktop, clock, { action: "click", x: 2_000, y: 1 }))).toMatchObject({
      kind: "invalid",
    });
  });

describe("a desktop", () => {
  testDesktop(
    "[DT-1] starts Xvnc on first use, shows programs, and accepts pointer and keyboard input",
    [needs.xvnc],
    ["Xvnc"],
  );
  testDesktop("[DT-1] starts Xvfb and x11vnc", [needs.xvfb, needs.x11vnc], ["Xvfb", "x11vnc"]);

  test("[DT-1] reports missing programs; a VNC server named by the template is used, never started", async () => {
    expect(await catchAppError(makeDesktop(makePath()).connect())).toMatchObject({
      kind: "internal",
      detail: "Neither Xvnc nor Xvfb with x11vnc is installed in the workspace.",
    });
    expect(
      await catchAppError(makeDesktop("", { SLIPWAY_DESKTOP_VNC: join(folder, "nothing") }).connect()),
    ).toMatchObject({
      detail: expect.stringContaining("cannot be reached"),
    });
    const parseServerName = (text: string) => parseVncServer({ SLIPWAY_DESKTOP_VNC: text });
    expect([
      parseServerName("5901"),
      parseServerName("box:5902"),
      parseServerName("/tmp/x"),
      parseServerName("what"),
    ]).toEqual([{ hostname: "127.0.0.1", port: 5901 }, { hostname: "box", port: 5902 }, { unix: "/tmp/x" }, undefined]);
  });

  test("[DT-4] scales a large screen down by averaging pixels, and accepts the key names that models use", async () => {
    const [width, height] = [2_560, 20];
    const pixels = new Uint8Array(width * height * 4);
    for (let i = 0; i < width * height; i += 1) pixels.set(i % 2 === 0 ? [0, 0, 200, 0] : [100, 0, 0, 0], i * 4);
    const picture = await createPicture({ width, height, pixels });
    expect([picture.width, picture.height, computeScale({ width, height })]).toEqual([1_280, 10, 0.5]);
    expect(readPng(Buffer.from(picture.png).toString("base64")).colorAt(7, 3)).toBe("640032");
    expect([toKeysym("a"), toKeysym("é"), toKeysym("€"), toKeysym("\n")]).toEqual([0x61, 0xe9, 0x010020ac, 0xff0d]);
    expect([
      parseKeysyms("ctrl+shift+T"),
      parseKeysyms("F5"),
      parseKeysyms("+"),
      parseKeysyms("Page_Down"),
      parseKeysyms("hyper+x"),
    ]).toEqual([[0xffe3, 0xffe1, 0x54], [0xffc2], [0x2b], [0xff56], undefined]);
  });
});
