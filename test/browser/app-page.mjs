// Checks shared by all page stories: axe-core in light and dark, a phone's width, and no policy violations.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { inChromium } from "./chromium.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const CLOSING = "WebSocket is already in CLOSING or CLOSED state.";

/** Opens a page and records its policy violations and errors in `told`. */
export const openPage = async (context, notified) => {
  const page = await context.newPage();
  await page.addInitScript(() => {
    window.violations = [];
    addEventListener("securitypolicyviolation", (event) => {
      window.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`);
    });
  });
  // Rejections by the browser itself have no stack. A connection that the server closes at this very moment causes one even though the page
  // has checked it.
  page.on("pageerror", ({ name, message, stack }) => {
    if (message !== CLOSING) notified.push(stack || `${name}: ${message} (${page.url()})`);
  });
  return page;
};

/**
 * Opens another page of the app like a click on a link, without loading the app again: a load costs the browser and the server several
 * times as much as the page. app.mjs loads each page by its address. Both pages must have different titles.
 */
export const goWithin = async (page, address) => {
  await page.evaluate((href) => {
    const link = document.createElement("a");
    link.href = href;
    document.body.append(link);
    document.title = "";
    link.click();
    link.remove();
  }, address);
  await page.waitForFunction(() => document.title !== "");
};

/** Waits for transitions to end: a color in transition matches neither state. */
export const settle = (page) =>
  page.evaluate(async () => {
    // Render recent clicks and input first, because that starts a transition.
    await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
    const ending = document.getAnimations().filter(({ effect }) => Number.isFinite(effect.getComputedTiming().endTime));
    await Promise.allSettled(ending.map(({ finished }) => finished));
  });

/** Returns the largest number of elements whose styles were computed together while `act` ran. */
export const countRestyled = async (page, act) => {
  const session = await page.context().newCDPSession(page);
  const counts = [0];
  session.on("Tracing.dataCollected", ({ value }) => {
    for (const { name, args } of value) if (name === "UpdateLayoutTree") counts.push(args.elementCount ?? 0);
  });
  await session.send("Tracing.start", { traceConfig: { includedCategories: ["devtools.timeline"] } });
  await act();
  const complete = new Promise((resolve) => session.once("Tracing.tracingComplete", resolve));
  await session.send("Tracing.end");
  await complete;
  await session.detach();
  return Math.max(...counts);
};

/** Returns the number of layers that contain more than a glyph. */
export const countLayers = async (page) => {
  const session = await page.context().newCDPSession(page);
  const drawn = new Promise((resolve) =>
    session.on("LayerTree.layerTreeDidChange", ({ layers }) => layers && resolve(layers)),
  );
  await session.send("DOM.enable");
  await session.send("LayerTree.enable");
  const layers = await drawn;
  await session.detach();
  return layers.filter(({ drawsContent, width }) => drawsContent && width > 24).length;
};

/** `rules` limits the check to these rules; by default all run. `within` is the part of the page to check. */
const axeOf = async (page, rules, within = ["html"]) => {
  if (!(await page.evaluate(() => "axe" in window))) {
    const session = await page.context().newCDPSession(page);
    // Through the debugger, so that the page's policy need not allow it.
    await session.send("Runtime.evaluate", { expression: AXE });
    await session.detach();
  }
  // Only violations are reported, so nothing else is prepared; none of the rules reads style sheets.
  const only = { resultTypes: ["violations"], preload: false };
  const options = rules ? { ...only, runOnly: { type: "rule", values: rules } } : only;
  const { violations } = await page.evaluate(
    ([where, given]) => window.axe.run({ include: where }, given),
    [within.map((one) => [one]), options],
  );
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, any }) => `${id} ${target.join(" ")} ${any.map(({ message }) => message).join("; ")}`),
  );
};

/** The rules that depend on colors: the others give the same result in light and dark. */
const COLOURS = ["color-contrast", "link-in-text-block"];

/** Runs in the page: returns what overflows its panel, card or bar, unless it can be scrolled there. */
const outOfBoxes = () => {
  const found = [];
  for (const box of document.querySelectorAll(".panel, .ask, .bulk, .item, dialog[open] .body")) {
    const { right, width } = box.getBoundingClientRect();
    if (width === 0) continue;
    for (const one of box.querySelectorAll("*")) {
      const here = one.getBoundingClientRect();
      if (here.right <= right + 1 || here.width === 0 || !one.checkVisibility() || one.closest(".vh")) continue;
      let isCut = false;
      for (let at = one.parentElement; at !== box && !isCut; at = at.parentElement)
        isCut = getComputedStyle(at).overflowX !== "visible";
      if (!isCut) found.push(`${one.textContent.slice(0, 40) || one.tagName} stands out of its ${box.className}`);
    }
  }
  return [...new Set(found)].slice(0, 5);
};

/** Checks a page as it is; returns the problems. */
export const lookAt = async (page, name, folder) => {
  const problems = [];
  const viewport = page.viewportSize();
  for (const scheme of ["light", "dark"]) {
    // Without motion, so that no color is in transition between the schemes.
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
    // The hover state under the pointer is not representative.
    if (folder) await page.mouse.move(0, 0);
    await settle(page);
    problems.push(
      ...(await axeOf(page, scheme === "dark" ? COLOURS : undefined)).map((text) => `${name} ${scheme}: ${text}`),
    );
    if (folder) await page.screenshot({ path: `${folder}/${name}-${scheme}-${viewport.width}.png` });
  }
  await page.setViewportSize({ width: 390, height: 844 });
  const sideways = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  if (sideways > 0) problems.push(`${name}: ${sideways} pixels too wide for a phone`);
  // Controls in a table must not be beyond the edge of the screen.
  const away = await page.evaluate(() =>
    [...document.querySelectorAll("table :is(button, input, select)")]
      .filter((one) => one.checkVisibility() && one.getBoundingClientRect().right > innerWidth)
      .map((one) => one.getAttribute("aria-label") ?? one.textContent),
  );
  problems.push(...away.map((label) => `${name}: ${label} is off a phone's screen`));
  let out = await page.evaluate(outOfBoxes);
  // A plot follows the width of its box with a delay.
  for (let tries = 1; out.length > 0 && tries < 50; tries++) {
    await settle(page);
    out = await page.evaluate(outOfBoxes);
  }
  problems.push(...out.map((text) => `${name}: on a phone ${text}`));
  if (folder) await page.screenshot({ path: `${folder}/${name}-dark-390.png` });
  await page.emulateMedia({ colorScheme: "light", reducedMotion: null });
  if (folder) await page.screenshot({ path: `${folder}/${name}-light-390.png` });
  await page.setViewportSize(viewport);
  problems.push(...(await page.evaluate(() => window.violations.splice(0))).map((text) => `${name}: ${text}`));
  return problems;
};

/** Elements that open over a page: a dialog, a menu, a list of suggestions. */
export const OPEN = "dialog[open], [popover]:popover-open, [role=listbox]:not([hidden])";

/** Checks what is open over a page, and where the keyboard focus is. */
export const lookAtOpen = async (page, name, folder) => {
  const problems = [];
  const file = name.replaceAll(/[^a-z0-9]+/gi, "-").slice(0, 80);
  const open = OPEN.split(", ");
  const within = await page.evaluate((all) => all.filter((one) => document.querySelector(one)), open);
  for (const scheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
    await settle(page);
    const found = await axeOf(page, scheme === "dark" ? COLOURS : undefined, within);
    problems.push(...found.map((text) => `${name} ${scheme}: ${text}`));
    if (folder) await page.screenshot({ path: `${folder}/${file}-${scheme}.png` });
  }
  const focus = await page.evaluate((all) => {
    const { activeElement } = document;
    const isIn = all.some((one) => activeElement?.closest(one)) || activeElement?.matches("[role=combobox], textarea");
    return isIn ? "" : `${activeElement?.tagName} ${activeElement?.textContent?.slice(0, 30)}`;
  }, open);
  if (focus !== "") problems.push(`${name}: the focus is at ${focus}`);
  const place = await page.evaluate((all) => {
    const box = [...document.querySelectorAll(all.join())].at(-1)?.getBoundingClientRect();
    return box && (box.right > innerWidth || box.left < 0 || box.top < 0 || box.bottom > innerHeight + 1);
  }, open);
  if (place) problems.push(`${name}: stands out of the window`);
  problems.push(...(await page.evaluate(() => window.violations.splice(0))).map((text) => `${name}: ${text}`));
  return problems;
};

/** Signs in at the page to which `address` redirects. */
export const signIn = async (page, address, email, password) => {
  await page.goto(address);
  await page.getByLabel("Email").fill(email);
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
};

/**
 * Plays a story of the app in one page, 1440 wide. With `token`, its user is already signed in. `folder` receives screenshots; the rest of
 * `given` are Playwright context options. The story writes to `result`; its `wrong` contains errors of the page and problems found by
 * `look`.
 */
export const inApp = ({ file, url, token, folder, ...options }, story) =>
  inChromium(file, { viewport: { width: 1440, height: 900 }, ...options }, async (_blank, context) => {
    if (token) await context.addCookies([{ name: "service_session_token", value: token, url }]);
    const result = { wrong: [] };
    const page = await openPage(context, result.wrong);
    const at = (path) => new URL(path, url).href;
    const look = async (name, other = page) => result.wrong.push(...(await lookAt(other, name, folder)));
    await story({ page, context, result, at, look });
    return result;
  });
