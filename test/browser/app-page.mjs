// Checks shared by all page stories: axe-core in light and dark, a phone's width, and no policy violations.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { playInChromium } from "./chromium.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const CLOSING = "WebSocket is already in CLOSING or CLOSED state.";

/** Opens a page, records its policy violations, and adds its errors to `problems`. */
export const openPage = async (context, problems) => {
  const page = await context.newPage();
  await page.addInitScript(() => {
    window.violations = [];
    addEventListener("securitypolicyviolation", (event) => {
      window.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`);
    });
  });
  // Rejections by the browser itself have no stack. A connection that the server is closing causes one, even if the page has checked its
  // state.
  page.on("pageerror", ({ name, message, stack }) => {
    if (message !== CLOSING) problems.push(stack || `${name}: ${message} (${page.url()})`);
  });
  return page;
};

/**
 * Opens another page of the app like a click on a link. Loading the app again would be several times as expensive. app.mjs loads each
 * page by its address. Both pages must have different titles.
 */
export const navigateInApp = async (page, address) => {
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

/** Waits for transitions to end, because a color in transition matches neither state. */
export const waitForTransitions = (page) =>
  page.evaluate(async () => {
    // Render recent clicks and input first, because that starts a transition.
    await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    const animations = document
      .getAnimations()
      .filter(({ effect }) => Number.isFinite(effect.getComputedTiming().endTime));
    await Promise.allSettled(animations.map(({ finished }) => finished));
  });

/** Returns the largest number of elements whose styles were computed together while `act` ran. */
export const countRestyledElements = async (page, act) => {
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
  const layerTree = new Promise((resolve) =>
    session.on("LayerTree.layerTreeDidChange", ({ layers }) => layers && resolve(layers)),
  );
  await session.send("DOM.enable");
  await session.send("LayerTree.enable");
  const layers = await layerTree;
  await session.detach();
  return layers.filter(({ drawsContent, width }) => drawsContent && width > 24).length;
};

/** Runs axe-core and returns the violations. `rules` limits the check to these rules. `within` has the selectors of the parts to check. */
const runAxe = async (page, rules, within = ["html"]) => {
  if (!(await page.evaluate(() => "axe" in window))) {
    const session = await page.context().newCDPSession(page);
    // Through the debugger, so that the page's policy need not allow it.
    await session.send("Runtime.evaluate", { expression: AXE });
    await session.detach();
  }
  // Reports only violations, and does not preload style sheets, which no rule reads.
  const only = { resultTypes: ["violations"], preload: false };
  const options = rules ? { ...only, runOnly: { type: "rule", values: rules } } : only;
  const { violations } = await page.evaluate(
    ([where, axeOptions]) => window.axe.run({ include: where }, axeOptions),
    [within.map((one) => [one]), options],
  );
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, any }) => `${id} ${target.join(" ")} ${any.map(({ message }) => message).join("; ")}`),
  );
};

/** The rules that depend on colors: the others give the same result in light and dark. */
const COLOR_RULES = ["color-contrast", "link-in-text-block"];

/** Runs in the page. Returns descriptions of elements that overflow their panel, card or bar, unless they can be scrolled into view. */
const listOverflows = () => {
  const overflows = [];
  for (const box of document.querySelectorAll(".panel, .ask, .bulk, .item, dialog[open] .body")) {
    const { right, width } = box.getBoundingClientRect();
    if (width === 0) continue;
    for (const element of box.querySelectorAll("*")) {
      const rectangle = element.getBoundingClientRect();
      if (rectangle.right <= right + 1 || rectangle.width === 0 || !element.checkVisibility() || element.closest(".vh"))
        continue;
      let isClipped = false;
      for (let parent = element.parentElement; parent !== box && !isClipped; parent = parent.parentElement)
        isClipped = getComputedStyle(parent).overflowX !== "visible";
      if (!isClipped)
        overflows.push(`${element.textContent.slice(0, 40) || element.tagName} overflows its ${box.className}`);
    }
  }
  return [...new Set(overflows)].slice(0, 5);
};

/** Checks a page in its current state. Returns the problems. */
export const checkPage = async (page, name, folder) => {
  const problems = [];
  const viewport = page.viewportSize();
  for (const scheme of ["light", "dark"]) {
    // Without motion, so that no color is in transition between the schemes.
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
    // The hover state under the pointer is not representative.
    if (folder) await page.mouse.move(0, 0);
    await waitForTransitions(page);
    problems.push(
      ...(await runAxe(page, scheme === "dark" ? COLOR_RULES : undefined)).map((text) => `${name} ${scheme}: ${text}`),
    );
    if (folder) await page.screenshot({ path: `${folder}/${name}-${scheme}-${viewport.width}.png` });
  }
  await page.setViewportSize({ width: 390, height: 844 });
  const excessPx = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  if (excessPx > 0) problems.push(`${name}: ${excessPx} pixels too wide for a phone`);
  // Controls in a table must not be beyond the edge of the screen.
  const offScreen = await page.evaluate(() =>
    [...document.querySelectorAll("table :is(button, input, select)")]
      .filter((control) => control.checkVisibility() && control.getBoundingClientRect().right > innerWidth)
      .map((control) => control.getAttribute("aria-label") ?? control.textContent),
  );
  problems.push(...offScreen.map((label) => `${name}: ${label} is off a phone's screen`));
  let overflows = await page.evaluate(listOverflows);
  // A plot follows the width of its box with a delay.
  for (let tries = 1; overflows.length > 0 && tries < 50; tries++) {
    await waitForTransitions(page);
    overflows = await page.evaluate(listOverflows);
  }
  problems.push(...overflows.map((text) => `${name}: on a phone ${text}`));
  if (folder) await page.screenshot({ path: `${folder}/${name}-dark-390.png` });
  await page.emulateMedia({ colorScheme: "light", reducedMotion: null });
  if (folder) await page.screenshot({ path: `${folder}/${name}-light-390.png` });
  await page.setViewportSize(viewport);
  problems.push(...(await page.evaluate(() => window.violations.splice(0))).map((text) => `${name}: ${text}`));
  return problems;
};

/** Elements that open over a page: a dialog, a menu, a list of suggestions. */
export const OPEN = "dialog[open], [popover]:popover-open, [role=listbox]:not([hidden])";

/** Checks the dialog, menu or list that is open over a page, and that it has the keyboard focus. Returns the problems. */
export const checkOverlay = async (page, name, folder) => {
  const problems = [];
  const file = name.replaceAll(/[^a-z0-9]+/gi, "-").slice(0, 80);
  const openSelectors = OPEN.split(", ");
  const within = await page.evaluate(
    (selectors) => selectors.filter((selector) => document.querySelector(selector)),
    openSelectors,
  );
  for (const scheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
    await waitForTransitions(page);
    const violations = await runAxe(page, scheme === "dark" ? COLOR_RULES : undefined, within);
    problems.push(...violations.map((text) => `${name} ${scheme}: ${text}`));
    if (folder) await page.screenshot({ path: `${folder}/${file}-${scheme}.png` });
  }
  const focus = await page.evaluate((selectors) => {
    const { activeElement } = document;
    const isIn =
      selectors.some((selector) => activeElement?.closest(selector)) ||
      activeElement?.matches("[role=combobox], textarea");
    return isIn ? "" : `${activeElement?.tagName} ${activeElement?.textContent?.slice(0, 30)}`;
  }, openSelectors);
  if (focus !== "") problems.push(`${name}: the focus is at ${focus}`);
  const isOutside = await page.evaluate((selectors) => {
    const box = [...document.querySelectorAll(selectors.join())].at(-1)?.getBoundingClientRect();
    return box && (box.right > innerWidth || box.left < 0 || box.top < 0 || box.bottom > innerHeight + 1);
  }, openSelectors);
  if (isOutside) problems.push(`${name}: is partly outside of the window`);
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
 * Plays a story of the app in one page, 1440 pixels wide. With `token`, its user is already signed in. `folder` receives screenshots;
 * `options` are passed to Playwright. The story writes to `result`. `result.problems` has errors of the page and what `inspect` finds: it
 * checks the page in its current state. `toUrl` returns the URL of a path.
 */
export const playInApp = ({ file, url, token, folder, ...options }, story) =>
  playInChromium(file, { viewport: { width: 1440, height: 900 }, ...options }, async (_blank, context) => {
    if (token) await context.addCookies([{ name: "service_session_token", value: token, url }]);
    const result = { problems: [] };
    const page = await openPage(context, result.problems);
    const toUrl = (path) => new URL(path, url).href;
    const inspect = async (name, other = page) => result.problems.push(...(await checkPage(other, name, folder)));
    await story({ page, context, result, toUrl, inspect });
    return result;
  });
