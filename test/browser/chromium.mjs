// Headless Chromium for the browser scripts in this folder, which run under node as child processes of the tests. Records every request,
// error and warning of the pages, so that a test can check that no request left the machine and none was blocked.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const FLAGS =
  "--no-sandbox --disable-gpu --disable-3d-apis --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync";

const pace = Number(process.env.SLIPWAY_TEST_PACE ?? 1);

/** Scales a timeout in ms for this machine, as test/support/pace.ts does. */
export const scaleTimeout = (ms) => ms * pace;

/** Opens a browser, runs the story, and prints its result as one JSON line. `file` is the browser's program. */
export const playInChromium = async (file, options, story) => {
  const directory = mkdtempSync(join(tmpdir(), "slipway-chromium-"));
  const context = await chromium.launchPersistentContext(directory, {
    executablePath: file,
    args: FLAGS.split(" "),
    headless: true,
    timeout: scaleTimeout(180_000),
    // Frames of transitions and spinners are drawn by the processor. whole.mjs plays with motion.
    reducedMotion: "reduce",
    ...options,
  });
  // Allows for a busy machine; the test that runs the story has its own timeout.
  context.setDefaultTimeout(scaleTimeout(60_000));
  const requests = [];
  const consoleErrors = [];
  context.on("request", (request) => requests.push(request.url()));
  context.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") consoleErrors.push(message.text());
  });
  context.on("weberror", (error) => consoleErrors.push(String(error.error())));
  try {
    const page = context.pages()[0] ?? (await context.newPage());
    const result = await story(page, context);
    process.stdout.write(`${JSON.stringify({ ...result, requests, consoleErrors })}\n`);
  } catch (error) {
    const folder = process.env.SLIPWAY_PICTURES;
    for (const [index, page] of folder ? context.pages().entries() : [])
      await page.screenshot({ path: join(folder, `failed-${index}.png`) }).catch(() => {});
    throw error;
  } finally {
    await context.close();
    rmSync(directory, { recursive: true, force: true });
  }
};
