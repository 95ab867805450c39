// Latencies that a person notices in the browser: of a page, a row, a letter. Runs under node in a real headless Chromium and prints
// figures as one line of JSON. node web.mjs CHROMIUM URL TOKEN SCENARIO JSON
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";
import { takeFirstSteps } from "../browser/first-steps.mjs";
import { floors } from "./web-floor.mjs";
import {
  followLink,
  inPage,
  measureScrolling,
  openTimedPage,
  quantile,
  recordKeyDelays,
  startCpuTimer,
} from "./web-page.mjs";

const [file, url, token, scenario, optionsJson] = process.argv.slice(2);
const options = JSON.parse(optionsJson ?? "{}");
const toUrl = (path) => new URL(path, url).href;

/** Memory samples of a page during answers. */
const MEMORY_SAMPLES = 10;

/** A person looks at a page before clicking something. */
const PAUSE_MS = 700;

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
/** Asks the benchmark for an action, such as starting the model. */
const askBench = async (name) => {
  process.stdout.write(`@${name}\n`);
  await lines.next();
};

const scenarios = {
  async first(context) {
    const ada = { email: "ada@example.com", username: "ada", password: "four quiet harbours at night" };
    const { presses, seconds } = await takeFirstSteps(await context.newPage(), options.setup, ada);
    return { presses, screen_s: seconds };
  },

  async load(context) {
    const figures = {};
    // The browser's own startup does not count.
    const { page: before } = await openTimedPage(context, toUrl("/healthz"), "document.body !== null");
    await before.close();
    for (const kind of ["fast", "slow"]) {
      const page = await context.newPage();
      const session = await context.newCDPSession(page);
      await session.send("Network.enable");
      await session.send("Network.setCacheDisabled", { cacheDisabled: true });
      await session.send("Network.setBypassServiceWorker", { bypass: true });
      if (kind === "slow") {
        await session.send("Emulation.setCPUThrottlingRate", { rate: 4 });
        const [downloadThroughput, uploadThroughput] = [1.6, 0.75].map((mbit) => (mbit * 1_000_000) / 8);
        const network = { offline: false, latency: 150, downloadThroughput, uploadThroughput };
        await session.send("Network.emulateNetworkConditions", network);
      }
      const bytes = { js: 0, css: 0 };
      const kinds = new Map();
      session.on("Network.responseReceived", ({ requestId, response }) => kinds.set(requestId, response.mimeType));
      session.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
        const type = /(java|ecma)script|css/.exec(kinds.get(requestId) ?? "")?.[0];
        if (type) bytes[type === "css" ? "css" : "js"] += encodedDataLength;
      });
      await page.addInitScript(inPage);
      await page.addInitScript("window.first = waitForPaint(() => query('.page .empty, .page .list') !== null)");
      const readCpuMs = await startCpuTimer(page);
      await page.goto(toUrl("/"), { waitUntil: "commit" });
      figures[`${kind}_ms`] = await page.evaluate(() => window.first);
      figures[`${kind}_cpu`] = await readCpuMs();
      figures.js_kb = bytes.js / 1024;
      figures.css_kb = bytes.css / 1024;
      await page.close();
    }
    // As on a repeat visit: the browser has the files, and the worker that serves them.
    const content = "query('.page .empty, .page .list') !== null";
    const { page: visit } = await openTimedPage(context, toUrl("/"), content);
    await visit.evaluate(() => navigator.serviceWorker.ready.then(() => true));
    await visit.reload();
    await visit.waitForTimeout(PAUSE_MS);
    await visit.close();
    const repeatTimes = [];
    for (let n = 0; n < 3; n++) {
      const { page, ms } = await openTimedPage(context, toUrl("/"), content);
      repeatTimes.push(ms);
      await page.close();
    }
    return { ...figures, again_ms: quantile(repeatTimes, 0.5) };
  },

  async list(context) {
    const rows = "count('.rows .virtual-row') > 10";
    const { page, ms } = await openTimedPage(context, toUrl("/workspaces?q="), rows);
    const whole_ms = await page.evaluate(
      (expectedCount) => waitForPaint(() => Number(query(".bar .num").textContent) >= expectedCount * 0.9),
      options.workspaces,
    );
    const scrolling = await measureScrolling(page, "window", 240, 150);
    const readCpuMs = await startCpuTimer(page);
    await page.evaluate(() => scrollTo(0, 0));
    await page.getByRole("link", { name: "Home", exact: true }).click();
    await page.getByRole("heading", { name: "Home", level: 1 }).waitFor();
    await page.waitForTimeout(PAUSE_MS);
    await readCpuMs();
    const again_ms = await followLink(page, "/workspaces?q=", rows);
    const again_cpu = await readCpuMs();
    const field = page.locator(".filter input");
    await field.focus();
    const keys = [];
    await page.evaluate(recordKeyDelays);
    await readCpuMs();
    for (const key of "ws-0123") {
      await page.keyboard.press(key);
      await page.waitForTimeout(120);
    }
    const key_cpu = (await readCpuMs()) / "ws-0123".length;
    keys.push(...(await page.evaluate(() => keyDelays)));
    const rowCount = Number(await page.locator(".bar .num").textContent());
    if (rowCount !== 10) throw new Error(`the filter left ${rowCount}`);
    return {
      open_ms: ms,
      whole_ms,
      again_ms,
      ...scrolling,
      key_p95: quantile(keys, 0.95),
      again_cpu,
      key_cpu,
    };
  },

  async chat(context) {
    // The visible area is filled, down to the newest message.
    const isFilled =
      "query('.flow') && query('.flow').scrollHeight > query('.flow').clientHeight && count('.flow ol > li') > 9";
    const { page } = await openTimedPage(context, toUrl("/chats"), "count('.side a.item') > 1");
    await page.waitForTimeout(PAUSE_MS);
    const readCpuMs = await startCpuTimer(page);
    const open_ms = await followLink(page, `/chats/${options.chat}`, isFilled);
    const open_cpu = await readCpuMs();
    await page.waitForTimeout(PAUSE_MS);
    const nodes = await page.evaluate(() => count("*"));
    const scrolling = await measureScrolling(page, "query('.flow')", -120, 240);
    const nodes_after = await page.evaluate(() => count("*"));
    // Runs last, because a background page renders no frames.
    const cold = await openTimedPage(context, toUrl(`/chats/${options.chat}`), isFilled);
    return { open_ms, cold_ms: cold.ms, nodes, ...scrolling, nodes_after, open_cpu };
  },

  async stream(context) {
    const { page } = await openTimedPage(context, toUrl(`/chats/${options.chat}`), "query('#composer') !== null");
    const session = await context.newCDPSession(page);
    const readHeapMb = async () => {
      await session.send("HeapProfiler.collectGarbage");
      return (await session.send("Runtime.getHeapUsage")).usedSize / 1024 / 1024;
    };
    await page.evaluate(() => {
      window.delays = [];
      let lastStamp = 0;
      let isWaiting = false;
      const recordDelays = () => {
        isWaiting = false;
        const now = performance.timeOrigin + performance.now();
        const text = [...document.querySelectorAll(".flow .prose")].at(-1)?.textContent.slice(-600) ?? "";
        for (const [, stamp] of text.matchAll(/<(\d{13}\.\d+)>/g)) {
          if (Number(stamp) <= lastStamp) continue;
          lastStamp = Number(stamp);
          delays.push(now - lastStamp);
        }
      };
      new MutationObserver(() => {
        if (isWaiting) return;
        isWaiting = true;
        requestAnimationFrame(() => {
          const channel = new MessageChannel();
          channel.port1.onmessage = recordDelays;
          channel.port2.postMessage(0);
        });
      }).observe(document.body, {
        childList: true,
        subtree: true,
        characterData: true,
      });
    });
    const sendMessage = async (text, action) => {
      await page.locator("#composer").fill(text);
      await page.keyboard.press("Enter");
      const interrupt = page.getByRole("button", { name: "Interrupt" });
      await interrupt.waitFor();
      await askBench(action);
      // As long as a long answer takes.
      await interrupt.waitFor({ state: "detached", timeout: 900_000 });
      const last = await page.evaluate(() => [...document.querySelectorAll(".flow .prose")].at(-1)?.textContent);
      if (!/^<\d.*the end$/s.test(last ?? "")) throw new Error(`the answer is not the model's: ${last?.slice(0, 100)}`);
    };
    await sendMessage("one", "speak");
    const times = await page.evaluate(() => delays.splice(0));
    await sendMessage("two", "hurry");
    const heaps = [await readHeapMb()];
    for (let n = 1; n <= options.rounds; n++) {
      await sendMessage(`more ${n}`, "hurry");
      // Recorded data would count as memory of the page.
      await page.evaluate(() => delays.splice(0));
      if (n % (options.rounds / MEMORY_SAMPLES) >= 1) continue;
      heaps.push(await readHeapMb());
      if (options.rounds > MEMORY_SAMPLES) process.stderr.write(`${n} answers: ${heaps.at(-1).toFixed(1)} MB\n`);
    }
    const [before, after] = [heaps[0], heaps.at(-1)];
    return {
      token_p50: quantile(times, 0.5),
      token_p95: quantile(times, 0.95),
      tokens: times.length,
      heap_mb: before,
      half_mb: heaps[MEMORY_SAMPLES / 2] - before,
      grown_mb: after - before,
    };
  },

  async terminal(context) {
    const { page } = await openTimedPage(
      context,
      toUrl(`/terminals/${options.agent}`),
      "/[#$] /.test(query('.xterm-rows')?.textContent ?? '')",
    );
    await page.locator(".xterm-helper-textarea").focus();
    await page.evaluate(() => {
      window.echoes = [];
      const pressed = [];
      const rows = query(".xterm-rows");
      const letters = () => rows.textContent.split("x").length;
      let shown = letters();
      addEventListener("keydown", ({ timeStamp }) => pressed.push(timeStamp), true);
      new MutationObserver(() => {
        const now = letters();
        const from = now > shown ? pressed.shift() : undefined;
        shown = now;
        if (from === undefined) return;
        const channel = new MessageChannel();
        channel.port1.onmessage = () => echoes.push(performance.now() - from);
        channel.port2.postMessage(0);
      }).observe(rows, { childList: true, subtree: true, characterData: true });
    });
    for (let n = 0; n < options.keys; n++) {
      await page.keyboard.press("x");
      await page.waitForTimeout(40);
    }
    const times = await page.evaluate(() => echoes);
    return { echo_p50: quantile(times, 0.5), echo_p95: quantile(times, 0.95), keys: times.length };
  },

  async log(context) {
    const tabs = "query('.tabs a[href$=logs]') !== null";
    const { page } = await openTimedPage(context, toUrl(`/workspaces/${options.workspace}`), tabs);
    await page.waitForTimeout(PAUSE_MS);
    const readCpuMs = await startCpuTimer(page);
    const lines = "count('.log.tall .l, .tall-log .log .l') > 10";
    const open_ms = await followLink(page, `/workspaces/${options.workspace}/logs`, lines);
    const open_cpu = await readCpuMs();
    const scrolling = await measureScrolling(page, "query('.log .virtual').closest('.log')", -240, 150);
    // Runs last: the same page from scratch.
    const cold = await openTimedPage(context, toUrl(`/workspaces/${options.workspace}/logs`), lines);
    return { open_ms, cold_ms: cold.ms, ...scrolling, open_cpu, nodes: await page.evaluate(() => count("*")) };
  },
};

const directory = mkdtempSync(join(tmpdir(), "slipway-web-bench-"));
// Without software rendering, which says nothing about a graphics card: terminal letters are then DOM elements.
const flags = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-3d-apis",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
const context = await chromium.launchPersistentContext(directory, {
  executablePath: file,
  args: flags,
  headless: true,
  viewport: { width: 1440, height: 900 },
});
try {
  context.setDefaultTimeout(60_000);
  if (token) await context.addCookies([{ name: "service_session_token", value: token, url }]);
  process.stdout.write(`${JSON.stringify(await (options.floor ? floors : scenarios)[scenario](context, url))}\n`);
} finally {
  await context.close();
  rmSync(directory, { recursive: true, force: true });
}
process.exit(0);
