// Performs a model's desktop action and captures the resulting screen (rule DT-4). Coordinates are in pixels of the picture, which may be
// smaller than the screen. Rejects unknown keys.
import type { Clock } from "#base/clock.ts";
import { AppError, invalidField } from "#base/errors.ts";
import { pause } from "#base/retry.ts";
import type { DesktopAction, DesktopPicture } from "#schema/agents/desktop-action.ts";
import { WireError } from "#src/wire/index.ts";
import type { Desktop } from "./desktop.ts";
import { parseKeysyms, toKeysym } from "./keysyms.ts";
import { computeScale, createPicture } from "./png.ts";
import { RfbClient } from "./rfb.ts";

/** Time for the action's effect to appear on the screen. */
const SETTLE_DELAY_MS = 400;
const PRESS_DELAY_MS = 12;
const DEFAULT_WAIT_MS = 1_000;
const WHEEL = { up: 8, down: 16, left: 32, right: 64 } as const;
const BUTTONS: Readonly<Record<string, readonly [button: number, times: number]>> = {
  click: [1, 1],
  double_click: [1, 2],
  triple_click: [1, 3],
  right_click: [4, 1],
  middle_click: [2, 1],
};

export const performAction = async (desktop: Desktop, clock: Clock, action: DesktopAction): Promise<DesktopPicture> => {
  const stream = await desktop.connect();
  try {
    const screen = await RfbClient.open(stream);
    await runAction(screen, clock, action);
    if (action.action !== "screenshot" && action.action !== "wait") await pause(clock, SETTLE_DELAY_MS);
    const { width, height, png } = await createPicture(await screen.captureScreen());
    return { width, height, image: Buffer.from(png).toString("base64") };
  } catch (error) {
    if (!(error instanceof WireError)) throw error;
    throw new AppError("internal", "The desktop cannot be used.", { detail: error.message, cause: error });
  } finally {
    stream.reset("Everything is done.");
  }
};

const runAction = async (screen: RfbClient, clock: Clock, requested: DesktopAction): Promise<void> => {
  const {
    action,
    x,
    y,
    to_x,
    to_y,
    text,
    keys,
    direction = "down",
    amount = 3,
    duration_ms = DEFAULT_WAIT_MS,
  } = requested;
  const click = async (point: Point, button: number): Promise<void> => {
    await screen.movePointer(point.x, point.y, button);
    await pause(clock, PRESS_DELAY_MS);
    await screen.movePointer(point.x, point.y, 0);
    await pause(clock, PRESS_DELAY_MS);
  };
  const button = BUTTONS[action];
  if (button) {
    const point = toScreenPoint(screen, x, y, "x");
    await screen.movePointer(point.x, point.y, 0);
    for (let i = 0; i < button[1]; i += 1) await click(point, button[0]);
  } else if (action === "move") {
    const point = toScreenPoint(screen, x, y, "x");
    await screen.movePointer(point.x, point.y, 0);
  } else if (action === "drag") {
    const [from, to] = [toScreenPoint(screen, x, y, "x"), toScreenPoint(screen, to_x, to_y, "to_x")];
    await screen.movePointer(from.x, from.y, 0);
    await screen.movePointer(from.x, from.y, 1);
    for (let step = 1; step <= 10; step += 1) {
      await pause(clock, PRESS_DELAY_MS);
      const interpolate = (a: number, b: number): number => Math.round(a + ((b - a) * step) / 10);
      await screen.movePointer(interpolate(from.x, to.x), interpolate(from.y, to.y), 1);
    }
    await pause(clock, PRESS_DELAY_MS);
    await screen.movePointer(to.x, to.y, 0);
  } else if (action === "scroll") {
    const point = toScreenPoint(screen, x, y, "x");
    for (let i = 0; i < amount; i += 1) await click(point, WHEEL[direction]);
  } else if (action === "type") {
    if (text === undefined) throw invalidField("text", "is missing");
    for (const character of text) await pressKeys(screen, [toKeysym(character)]);
  } else if (action === "key") {
    if (keys === undefined) throw invalidField("keys", "is missing");
    for (const chord of keys.trim().split(/\s+/)) {
      const keysyms = parseKeysyms(chord);
      if (!keysyms) throw invalidField("keys", `names no keys: ${chord}`);
      await pressKeys(screen, keysyms);
      await pause(clock, PRESS_DELAY_MS);
    }
  } else if (action === "wait") await pause(clock, duration_ms);
};

/** Presses all keys in order and releases them. */
const pressKeys = async (screen: RfbClient, keysyms: readonly number[]): Promise<void> => {
  for (const keysym of keysyms) await screen.sendKey(keysym, true);
  for (const keysym of [...keysyms].reverse()) await screen.sendKey(keysym, false);
};

type Point = { readonly x: number; readonly y: number };

/** Converts coordinates of the picture to coordinates of the screen. Rejects with 400 if one is missing or outside of the picture. */
const toScreenPoint = ({ size }: RfbClient, x: number | undefined, y: number | undefined, field: string): Point => {
  if (x === undefined || y === undefined) throw invalidField(field, "and its other coordinate are required");
  const scale = computeScale(size);
  const point = { x: Math.round(x / scale), y: Math.round(y / scale) };
  if (point.x >= size.width || point.y >= size.height) {
    throw invalidField(field, `is off the screen: it has ${size.width * scale} by ${size.height * scale} pixels`);
  }
  return point;
};
