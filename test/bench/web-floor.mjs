// The page rows for a bare page of a bare server (floor-page.ts) instead of the app: the machine's own cost.
import { inPage, measureScrolling, openTimedPage, quantile, recordKeyDelays, startCpuTimer } from "./web-page.mjs";

const ROWS = "count('.row') > 9";
const KEYS = 60;

const openFloor = async (context, url) => (await openTimedPage(context, url, ROWS)).page;

/** Returns the time from the click to the frame that shows the fetched data. */
const measureOpen = (page) =>
  page.evaluate(async () => {
    document.querySelector("main").replaceChildren();
    const from = performance.now();
    void window.openPage();
    return (await window.waitForPaint(() => window.count(".row") > 9)) - from;
  });

const scroll = async (page, step, count) => {
  await page.evaluate(() => window.fillBox());
  return measureScrolling(page, "query('#box')", step, count);
};

/** Returns the time from the key to the frame that shows its echo, over a socket. */
const measureEchoes = async (page) => {
  await page.evaluate(async () => {
    await window.listen();
    window.times = [];
    const pressed = [];
    addEventListener("keydown", ({ timeStamp }) => pressed.push(timeStamp), true);
    new MutationObserver(() => {
      const from = pressed.shift();
      const channel = new MessageChannel();
      channel.port1.onmessage = () => window.times.push(performance.now() - from);
      channel.port2.postMessage(0);
    }).observe(document.querySelector("#typed"), { childList: true });
  });
  await page.locator("#field").focus();
  for (let n = 0; n < KEYS; n++) {
    await page.keyboard.press("x");
    await page.waitForTimeout(40);
  }
  return page.evaluate(() => window.times);
};

/** Returns the time from the key to the frame that shows it in a field, as the scenario of the list measures it. */
const measureKeys = async (page) => {
  await page.locator("#field").focus();
  await page.evaluate(recordKeyDelays);
  for (const key of "ws-0123") {
    await page.keyboard.press(key);
    await page.waitForTimeout(120);
  }
  return page.evaluate(() => window.keyDelays);
};

export const floors = {
  async load(context, url) {
    const { page: before } = await openTimedPage(context, new URL("/messages", url).href, "document.body !== null");
    await before.close();
    const page = await context.newPage();
    await page.addInitScript(inPage);
    await page.addInitScript(`window.first = waitForPaint(() => ${ROWS})`);
    const readCpuMs = await startCpuTimer(page);
    await page.goto(url, { waitUntil: "commit" });
    return { fast_ms: await page.evaluate(() => window.first), fast_cpu: await readCpuMs() };
  },

  async list(context, url) {
    const page = await openFloor(context, url);
    const again_ms = await measureOpen(page);
    const key_p95 = quantile(await measureKeys(page), 0.95);
    return { again_ms, ...(await scroll(page, 240, 150)), key_p95 };
  },

  async chat(context, url) {
    const page = await openFloor(context, url);
    return { open_ms: await measureOpen(page), ...(await scroll(page, 120, 240)) };
  },

  async log(context, url) {
    const page = await openFloor(context, url);
    return { open_ms: await measureOpen(page), ...(await scroll(page, 240, 150)) };
  },

  async terminal(context, url) {
    const times = await measureEchoes(await openFloor(context, url));
    return { echo_p50: quantile(times, 0.5), echo_p95: quantile(times, 0.95), keys: times.length };
  },
};
