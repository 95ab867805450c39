// Timing helpers for pages, for those of the app (web.mjs) and a bare page (web-floor.mjs).

export const quantile = (values, q) =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * q))];

/** Runs in the page: `waitForPaint` resolves with the time of the first frame that passes the test. */
export const inPage = () => {
  window.waitForPaint = (test) =>
    new Promise((resolve, reject) => {
      setTimeout(
        () => reject(new Error(`did not appear: ${test}; the page shows ${document.body.textContent.slice(0, 200)}`)),
        60_000,
      );
      const resolveAfterPaint = () => {
        const channel = new MessageChannel();
        channel.port1.onmessage = () => resolve(performance.now());
        channel.port2.postMessage(0);
      };
      const checkFrame = () => (test() ? resolveAfterPaint() : requestAnimationFrame(checkFrame));
      requestAnimationFrame(checkFrame);
    });
  // Measures the duration of each frame while a box is scrolled by one step per frame.
  window.scrollBox = async (box, step, count) => {
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
  window.query = (selector) => document.querySelector(selector);
  window.count = (selector) => document.querySelectorAll(selector).length;
};

/** Runs in the page: records in `keyDelays` the time from each key to the next frame. */
export const recordKeyDelays = () => {
  window.keyDelays = [];
  addEventListener(
    "keydown",
    ({ timeStamp }) => void window.waitForPaint(() => true).then((now) => window.keyDelays.push(now - timeStamp)),
  );
};

/** Opens a page at this address, and returns it once a frame passes the test, with the milliseconds since its start. */
export const openTimedPage = async (context, address, test) => {
  const page = await context.newPage();
  await page.addInitScript(inPage);
  await page.addInitScript(`window.first = waitForPaint(() => ${test})`);
  await page.goto(address, { waitUntil: "commit" });
  return { page, ms: await page.evaluate(() => window.first) };
};

/** Follows a link within the app; returns the milliseconds from the click to the frame that shows its target. */
export const followLink = (page, href, test) =>
  page.evaluate(`(async () => {
    const link = document.createElement("a");
    link.href = ${JSON.stringify(href)};
    document.body.append(link);
    const from = performance.now();
    link.click();
    link.remove();
    return (await waitForPaint(() => ${test})) - from;
  })()`);

/**
 * Measures the CPU time of the page's main thread, in ms, from here to each call: scripts, styles, layout and paint. Compared with
 * wall-clock time, it separates the page's own work from other load.
 */
export const startCpuTimer = async (page) => {
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

/** Returns the 95th percentile of the frame time over `count` steps, in ms, and the page's CPU time per frame. */
export const measureScrolling = async (page, box, step, count) => {
  const readCpuMs = await startCpuTimer(page);
  const frames = await page.evaluate(`scrollBox(${box}, ${step}, ${count})`);
  return { frame_p95: quantile(frames, 0.95), frame_cpu: (await readCpuMs()) / count };
};
