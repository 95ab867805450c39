// How the time of a page is taken, of the app's (web.mjs) and of a bare one (web-floor.mjs).

export const quantile = (values, q) =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * q))];

/** In the page: `painted` resolves with the time at which a frame was shown that fulfils the test. */
export const inPage = () => {
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

/** A new page at this address, when a frame has shown what fulfils the test; and milliseconds from its beginning to then. */
export const opened = async (context, address, test) => {
  const page = await context.newPage();
  await page.addInitScript(inPage);
  await page.addInitScript(`window.first = painted(() => ${test})`);
  await page.goto(address, { waitUntil: "commit" });
  return { page, ms: await page.evaluate(() => window.first) };
};

/** Follows a link within the app; milliseconds from the press to the frame that shows what it leads to. */
export const followed = (page, href, test) =>
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
 * Processor's time of the page's main thread, in ms, from here to each call: scripts, styles, layout and paint. Alongside the clock it tells
 * what is the page's own doing and what is its neighbours'.
 */
export const processor = async (page) => {
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

/** The frames of `count` steps, in ms at the 95th percentile, and what the page's own processor had to do for each. */
export const noteScrolling = async (page, box, step, count) => {
  const spent = await processor(page);
  const frames = await page.evaluate(`scrolled(${box}, ${step}, ${count})`);
  return { frame_p95: quantile(frames, 0.95), frame_cpu: (await spent()) / count };
};
