// What a person waits for in the browser: a page, a row, a letter. Runs under node in a real headless Chromium and prints figures as one
// line of JSON. node web.mjs CHROMIUM URL TOKEN SCENARIO JSON
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";
import { takeFirstSteps } from "../browser/first-steps.mjs";

const [file, url, token, scenario, given] = process.argv.slice(2);
const options = JSON.parse(given ?? "{}");
const at = (path) => new URL(path, url).href;
const quantile = (values, q) =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * q))];

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
/** Has the benchmark do something, such as let the model speak. */
const ask = async (name) => {
  process.stdout.write(`@${name}\n`);
  await lines.next();
};

/** In the page: `painted` resolves with the time at which a frame was shown that fulfils the test. */
const inPage = () => {
  window.painted = (test) =>
    new Promise((resolve, reject) => {
      setTimeout(
        () => reject(new Error(`not seen: ${test}; the page says ${document.body.textContent.slice(0, 200)}`)),
        60_000,
      );
      const shown = () => {
        const channel = new MessageChannel();
        channel.port1.onmessage = () => resolve(performance.now());
        channel.port2.postMessage(0);
      };
      const look = () => (test() ? shown() : requestAnimationFrame(look));
      requestAnimationFrame(look);
    });
  // How long each frame took while a box is scrolled by a step in each of them.
  window.scrolled = async (box, step, count) => {
    const times = [];
    let last = await new Promise(requestAnimationFrame);
    for (let n = 0; n < count; n++) {
      box.scrollBy(0, step);
      const now = await new Promise(requestAnimationFrame);
      times.push(now - last);
      last = now;
    }
    return times;
  };
  window.one = (selector) => document.querySelector(selector);
  window.count = (selector) => document.querySelectorAll(selector).length;
};

const opened = async (context, path, test) => {
  const page = await context.newPage();
  await page.addInitScript(inPage);
  await page.addInitScript(`window.first = painted(() => ${test})`);
  await page.goto(at(path), { waitUntil: "commit" });
  return { page, ms: await page.evaluate(() => window.first) };
};

/** Follows a link within the app; milliseconds from the press to the frame that shows what it leads to. */
const followed = (page, href, test) =>
  page.evaluate(`(async () => {
    const link = document.createElement("a");
    link.href = ${JSON.stringify(href)};
    document.body.append(link);
    const from = performance.now();
    link.click();
    link.remove();
    return (await painted(() => ${test})) - from;
  })()`);

/**
 * Processor's time of the page's main thread, in ms, from here to each call: scripts, styles, layout and paint. Beside the clock it tells
 * what is the page's own doing and what is its neighbours'.
 */
const processor = async (page) => {
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  const read = async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    return metrics.find(({ name }) => name === "TaskDuration").value * 1000;
  };
  let last = await read();
  return async () => {
    const before = last;
    last = await read();
    return last - before;
  };
};

const scenarios = {
  async first(context) {
    const ada = { email: "ada@example.com", username: "ada", password: "four quiet harbours at night" };
    const { presses, seconds } = await takeFirstSteps(await context.newPage(), options.setup, ada);
    return { presses, screen_s: seconds };
  },

  async load(context) {
    const figures = {};
    for (const kind of ["fast", "slow"]) {
      const page = await context.newPage();
      const session = await context.newCDPSession(page);
      await session.send("Network.enable");
      await session.send("Network.setCacheDisabled", { cacheDisabled: true });
      if (kind === "slow") {
        await session.send("Emulation.setCPUThrottlingRate", { rate: 4 });
        const [down, up] = [1.6, 0.75].map((mbit) => (mbit * 1_000_000) / 8);
        const line = { offline: false, latency: 150, downloadThroughput: down, uploadThroughput: up };
        await session.send("Network.emulateNetworkConditions", line);
      }
      const bytes = { js: 0, css: 0 };
      const kinds = new Map();
      session.on("Network.responseReceived", ({ requestId, response }) => kinds.set(requestId, response.mimeType));
      session.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
        const type = /(java|ecma)script|css/.exec(kinds.get(requestId) ?? "")?.[0];
        if (type) bytes[type === "css" ? "css" : "js"] += encodedDataLength;
      });
      await page.addInitScript(inPage);
      await page.addInitScript("window.first = painted(() => one('.page .empty, .page .list') !== null)");
      await page.goto(at("/"), { waitUntil: "commit" });
      figures[`${kind}_ms`] = await page.evaluate(() => window.first);
      figures.js_kb = bytes.js / 1024;
      figures.css_kb = bytes.css / 1024;
      await page.close();
    }
    return figures;
  },

  async list(context) {
    const rows = "count('.rows .virtual-row') > 10";
    const { page, ms } = await opened(context, "/workspaces?q=", rows);
    const whole = await page.evaluate(
      (wanted) => painted(() => Number(one(".bar .num").textContent) >= wanted * 0.9),
      options.workspaces,
    );
    const spent = await processor(page);
    const frames = await page.evaluate(() => scrolled(window, 240, 150));
    const frame_cpu = (await spent()) / 150;
    await page.evaluate(() => scrollTo(0, 0));
    await page.getByRole("link", { name: "Home", exact: true }).click();
    await page.getByRole("heading", { name: "Home", level: 1 }).waitFor();
    await page.waitForTimeout(500);
    await spent();
    const again = await followed(page, "/workspaces?q=", rows);
    const again_cpu = await spent();
    const field = page.locator(".filter input");
    await field.focus();
    const keys = [];
    await page.evaluate(() => {
      window.keyed = [];
      addEventListener(
        "keydown",
        ({ timeStamp }) => void painted(() => true).then((now) => keyed.push(now - timeStamp)),
      );
    });
    await spent();
    for (const key of "ws-0123") {
      await page.keyboard.press(key);
      await page.waitForTimeout(120);
    }
    const key_cpu = (await spent()) / "ws-0123".length;
    keys.push(...(await page.evaluate(() => keyed)));
    const left = Number(await page.locator(".bar .num").textContent());
    if (left !== 10) throw new Error(`the filter left ${left}`);
    return {
      open_ms: ms,
      whole_ms: whole,
      again_ms: again,
      frame_p95: quantile(frames, 0.95),
      key_p95: quantile(keys, 0.95),
      again_cpu,
      frame_cpu,
      key_cpu,
    };
  },

  async chat(context) {
    const shown = "count('.flow ol > li') > 20";
    const { page } = await opened(context, "/chats", "count('.side a.item') > 1");
    const spent = await processor(page);
    const open_ms = await followed(page, `/chats/${options.chat}`, shown);
    const open_cpu = await spent();
    const nodes = await page.evaluate(() => count("*"));
    const frames = await page.evaluate(() => scrolled(one(".flow"), -120, 240));
    const frame_cpu = (await spent()) / 240;
    const after = await page.evaluate(() => count("*"));
    // Last: a page in the background is shown no frames.
    const cold = await opened(context, `/chats/${options.chat}`, shown);
    return {
      open_ms,
      cold_ms: cold.ms,
      nodes,
      frame_p95: quantile(frames, 0.95),
      nodes_after: after,
      open_cpu,
      frame_cpu,
    };
  },

  async stream(context) {
    const { page } = await opened(context, `/chats/${options.chat}`, "one('#composer') !== null");
    const session = await context.newCDPSession(page);
    const heap = async () => {
      await session.send("HeapProfiler.collectGarbage");
      return (await session.send("Runtime.getHeapUsage")).usedSize / 1024 / 1024;
    };
    await page.evaluate(() => {
      window.late = [];
      let seen = 0;
      let isWaiting = false;
      const look = () => {
        isWaiting = false;
        const now = performance.timeOrigin + performance.now();
        const text = [...document.querySelectorAll(".flow .prose")].at(-1)?.textContent.slice(-600) ?? "";
        for (const [, stamp] of text.matchAll(/<(\d{13}\.\d+)>/g)) {
          if (Number(stamp) <= seen) continue;
          seen = Number(stamp);
          late.push(now - seen);
        }
      };
      new MutationObserver(() => {
        if (isWaiting) return;
        isWaiting = true;
        requestAnimationFrame(() => {
          const channel = new MessageChannel();
          channel.port1.onmessage = look;
          channel.port2.postMessage(0);
        });
      }).observe(document.body, {
        childList: true,
        subtree: true,
        characterData: true,
      });
    });
    const say = async (text, what) => {
      await page.locator("#composer").fill(text);
      await page.keyboard.press("Enter");
      const interrupt = page.getByRole("button", { name: "Interrupt" });
      await interrupt.waitFor();
      await ask(what);
      await interrupt.waitFor({ state: "detached" });
      const last = await page.evaluate(() => [...document.querySelectorAll(".flow .prose")].at(-1)?.textContent);
      if (!/^<\d.*the end$/s.test(last ?? "")) throw new Error(`the answer is not the model's: ${last?.slice(0, 100)}`);
    };
    await say("one", "speak");
    const times = await page.evaluate(() => late.splice(0));
    await say("two", "hurry");
    const before = await heap();
    for (let n = 0; n < options.rounds; n++) await say(`more ${n}`, "hurry");
    const after = await heap();
    return {
      token_p50: quantile(times, 0.5),
      token_p95: quantile(times, 0.95),
      tokens: times.length,
      heap_mb: before,
      grown_mb: after - before,
    };
  },

  async terminal(context) {
    const { page } = await opened(
      context,
      `/terminals/${options.agent}`,
      "/[#$] /.test(one('.xterm-rows')?.textContent ?? '')",
    );
    await page.locator(".xterm-helper-textarea").focus();
    await page.evaluate(() => {
      window.echoes = [];
      const pressed = [];
      const rows = one(".xterm-rows");
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
    const { page } = await opened(context, `/workspaces/${options.workspace}`, "one('.tabs a[href$=logs]') !== null");
    const spent = await processor(page);
    const open_ms = await followed(
      page,
      `/workspaces/${options.workspace}/logs`,
      "count('.log.tall .l, .tall-log .log .l') > 10",
    );
    const open_cpu = await spent();
    const frames = await page.evaluate(() => scrolled(one(".log .virtual").closest(".log"), -240, 150));
    const frame_cpu = (await spent()) / 150;
    return {
      open_cpu,
      frame_cpu,
      open_ms,
      frame_p95: quantile(frames, 0.95),
      nodes: await page.evaluate(() => count("*")),
    };
  },
};

const directory = mkdtempSync(join(tmpdir(), "slipway-web-bench-"));
// Without graphics by software, which says nothing about a graphics card: letters of a terminal are elements then.
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
  process.stdout.write(`${JSON.stringify(await scenarios[scenario](context))}\n`);
} finally {
  await context.close();
  rmSync(directory, { recursive: true, force: true });
}
process.exit(0);
