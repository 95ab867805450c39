// Serves the speed test of the private network's clients (facts/tailnet-peer 6). The client sends a line of JSON, the agent an empty
// object, and then one side sends for the requested time. [WN-8]
import type { Clock } from "#base/clock.ts";
import { type Duplex, WireError } from "#src/wire/index.ts";

const MAX_LINE_CHARS = 1_024;
/** Maximum duration of a test, regardless of the request. */
const MAX_TEST_MS = 60_000;
const TEST_BLOCK = new Uint8Array(64 * 1024);
/** The direction in which the agent sends; in the other direction, the client sends. */
const DOWNLOAD_DIRECTION = 0;

/** Serves one test. Throws WireError `protocol` for an invalid line. */
export const serveSpeedTest = async (stream: Duplex, clock: Clock): Promise<void> => {
  const { direction, ms } = parseTest(await readFirstLine(stream));
  await stream.write(new TextEncoder().encode("{}\n"));
  if (direction === DOWNLOAD_DIRECTION) {
    const deadlineMs = clock.monotonic() + ms;
    while (clock.monotonic() < deadlineMs) await stream.write(TEST_BLOCK);
  } else while ((await stream.read()) !== undefined);
  await stream.end();
};

const readFirstLine = async (stream: Duplex): Promise<string> => {
  let text = "";
  while (!text.includes("\n") && !isCompleteJson(text)) {
    const chunk = await stream.read();
    if (chunk === undefined || text.length > MAX_LINE_CHARS)
      throw new WireError("protocol", "The speed test has no valid description.");
    text += new TextDecoder().decode(chunk);
  }
  return text;
};

/** Not every client ends the line. */
const isCompleteJson = (text: string): boolean => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

const parseTest = (text: string): { direction: number; ms: number } => {
  try {
    const { time, direction } = JSON.parse(text) as { time: unknown; direction: unknown };
    if (typeof time !== "number" || (direction !== 0 && direction !== 1)) throw new Error("no test");
    return { direction, ms: Math.min(MAX_TEST_MS, time / 1e6) };
  } catch {
    throw new WireError("protocol", "The speed test has no valid description.");
  }
};
