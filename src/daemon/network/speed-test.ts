// Serves the speed test of genuine clients (facts/tailnet-peer 6): a line of JSON, an empty answer, then one side sends for the agreed
// time. [WN-8]
import type { Clock } from "#base/clock.ts";
import { type Duplex, WireError } from "#src/wire/index.ts";

const MAX_LINE = 1_024;
/** Maximum duration of a test, regardless of the request. */
const MAX_MS = 60_000;
const TEST_BLOCK = new Uint8Array(64 * 1024);
/** Directions: the agent sends, or the client sends. */
const DOWNLOAD_DIRECTION = 0;

/** Serves one test. Throws WireError `protocol` for an invalid line. */
export const serveSpeedTest = async (stream: Duplex, clock: Clock): Promise<void> => {
  const { direction, ms } = testIn(await readFirstLine(stream));
  await stream.write(new TextEncoder().encode("{}\n"));
  if (direction === DOWNLOAD_DIRECTION) {
    const until = clock.monotonic() + ms;
    while (clock.monotonic() < until) await stream.write(TEST_BLOCK);
  } else while ((await stream.read()) !== undefined);
  await stream.end();
};

const readFirstLine = async (stream: Duplex): Promise<string> => {
  let text = "";
  while (!text.includes("\n") && !isWhole(text)) {
    const chunk = await stream.read();
    if (chunk === undefined || text.length > MAX_LINE)
      throw new WireError("protocol", "The speed test has no valid description.");
    text += new TextDecoder().decode(chunk);
  }
  return text;
};

/** Not every client ends the line. */
const isWhole = (text: string): boolean => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

const testIn = (text: string): { direction: number; ms: number } => {
  try {
    const { time, direction } = JSON.parse(text) as { time: unknown; direction: unknown };
    if (typeof time !== "number" || (direction !== 0 && direction !== 1)) throw new Error("no test");
    return { direction, ms: Math.min(MAX_MS, time / 1e6) };
  } catch {
    throw new WireError("protocol", "The test makes no sense.");
  }
};
