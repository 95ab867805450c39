// The API documentation page: it lists the operations, accepts a token, makes a call. With a folder, screenshots are written there. node
// swagger.mjs CHROMIUM URL TOKEN [FOLDER [light|dark [WIDTH [CHAT]]]]; with the ID of a chat, its stream is also followed.
import { playInChromium } from "./chromium.mjs";

const [file, url, token, folder, colorScheme = "light", width = "1100", chat] = process.argv.slice(2);
const viewport = { width: Number(width), height: 900 };

const DISPLAYS = [
  { scheme: "light", width: 390 },
  { scheme: "dark", width: 390 },
  { scheme: "dark", width: 1100 },
  { scheme: "light", width: 1100 },
];

await playInChromium(file, { colorScheme, viewport }, async (page, context) => {
  // Requests that would leave the machine are recorded and blocked.
  await context.route(
    (target) => target.origin !== new URL(url).origin && target.protocol !== "data:",
    (route) => route.abort(),
  );
  const takePicture = async (name, options = {}) => {
    if (folder) await page.screenshot({ path: `${folder}/swagger-${name}-${colorScheme}-${width}.png`, ...options });
  };
  const result = {};

  const callOperation = async () => {
    const block = page.locator("#operations-Users-getUser");
    // The previous call's response is shown until this one arrives.
    const responding = page.waitForResponse((response) => response.url().endsWith("/api/v2/users/me"));
    await block.getByRole("button", { name: "Execute" }).click();
    const status = String((await responding).status());
    const statusCell = block.locator(".live-responses-table .response-col_status", { hasText: status }).last();
    await statusCell.waitFor();
    return {
      status: (await statusCell.textContent()).trim(),
      body: await block.locator(".live-responses-table code").first().textContent(),
    };
  };
  // An operation's URL opens it. The page loads only once: parsing the document takes seconds.
  await page.goto(`${url}swagger#/Users/getUser`);
  await page.locator(".opblock-tag").first().waitFor();
  result.title = await page.title();
  result.anonymous = await callOperation();

  await page.locator(".auth-wrapper .authorize").click();
  result.schemes = await page.locator(".auth-container h4 code").allTextContents();
  await takePicture("authorize");
  result.unnamed = await page.evaluate(listUnnamedControls);
  // The focus is in the input field.
  await page.keyboard.insertText(token);
  await page.locator(".auth-container .authorize").first().click();
  await page.locator(".btn-done").first().click();
  result.signedIn = await callOperation();
  await page.locator("#operations-Users-getUser").scrollIntoViewIfNeeded();
  await takePicture("call");
  result.displays = [];
  for (const display of DISPLAYS) {
    await page.setViewportSize({ width: display.width, height: 900 });
    await page.emulateMedia({ colorScheme: display.scheme, reducedMotion: "reduce" });
    await page.locator(`html${display.scheme === "dark" ? ".dark-mode" : ":not(.dark-mode)"}`).waitFor();
    const fits = await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth);
    result.displays.push({ ...display, fits, contrast: await page.evaluate(measureContrasts) });
  }
  result.unnamed.push(...(await page.evaluate(listUnnamedControls)));
  if (chat) {
    // Stays on the same page, because the authorization is not stored. Of more than about 150 lines, only the visible ones are rendered, so
    // one list is closed before the next.
    await page.locator("#operations-tag-Users").click();
    await page.locator("#operations-tag-Chats").click();
    const stream = page.locator("#operations-Chats-streamChat");
    await stream.locator("button").first().click();
    await stream.getByPlaceholder("chat").fill(chat);
    await stream.getByRole("button", { name: "Execute" }).click();
    result.stream = await stream.locator(".live-responses-table code").first().textContent();
    await page.locator("#operations-Chats-watchChats button").first().click();
    const socket = page.locator("#operations-Chats-watchChats");
    await socket.getByRole("button", { name: "Execute" }).click();
    result.socket = await socket.locator(".live-responses-table code").first().textContent();
  }
  Object.assign(result, await openEachTag(page));
  await takePicture("list");
  return result;
});

/** Closes all tags, then opens each one after the other and records its number of operations. */
async function openEachTag(page) {
  const open = page.locator(".opblock-tag[data-is-open=true]");
  while ((await open.count()) > 0) await open.first().click();
  await page.locator(".opblock").first().waitFor({ state: "detached" });
  const tags = await page.locator(".opblock-tag a span").allTextContents();
  let operations = 0;
  for (const index of tags.keys()) {
    const section = page.locator(".opblock-tag-section").nth(index);
    await section.locator(".opblock-tag").click();
    await section.locator(".opblock").first().waitFor();
    operations += await section.locator(".opblock").count();
    await section.locator(".opblock-tag").click();
    await section.locator(".opblock").first().waitFor({ state: "detached" });
  }
  return { operations, tags };
}

/** Returns controls without an accessible name. */
function listUnnamedControls() {
  const controls = [...document.querySelectorAll("a, button, input, select, textarea")];
  const getName = (control) =>
    control.ariaLabel || control.title || control.textContent || control.labels?.[0]?.textContent || "";
  return controls
    .filter((control) => control.offsetHeight > 0 && !getName(control).trim())
    .map((control) => control.outerHTML.slice(0, 100));
}

/** Returns the contrast of the most important texts against the page behind them, with filters removed. */
function measureContrasts() {
  const parse = (text) => (text.match(/[\d.]+/g) ?? []).map(Number);
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const findBackground = (element) => {
    for (let ancestor = element; ancestor; ancestor = ancestor.parentElement) {
      const color = parse(getComputedStyle(ancestor).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const measureContrast = (selector) => {
    const element = document.querySelector(selector);
    if (!element) return [selector, 0];
    const [a, b] = [luminance(parse(getComputedStyle(element).color)), luminance(findBackground(element))].sort(
      (x, y) => y - x,
    );
    return [selector, Math.round(((a + 0.05) / (b + 0.05)) * 10) / 10];
  };
  return Object.fromEntries(
    [
      ".info .title",
      ".info p",
      ".opblock-tag",
      ".opblock-summary-path",
      ".opblock-get .opblock-summary-method",
      ".opblock-post .opblock-summary-method",
      ".opblock-put .opblock-summary-method",
      ".opblock-delete .opblock-summary-method",
      ".btn.execute",
      ".btn.cancel",
      ".opblock-summary-description",
      ".parameter__name",
      ".response-col_status",
    ].map(measureContrast),
  );
}
