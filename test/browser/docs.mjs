// The documentation in the app: its pages, searching headings, and internal links. node docs.mjs CHROMIUM URL TOKEN [FOLDER]
import { playInApp } from "./app-page.mjs";

const [file, url, token, folder] = process.argv.slice(2);

/** Runs in the page: the machine is so busy that the browser is never idle. */
const simulateBusyBrowser = () => {
  window.requestIdleCallback = (callback, options) => (options ? setTimeout(callback, options.timeout) : 0);
};

// The story sees requests of pages, but none of a service worker.
await playInApp({ file, url, token, folder, serviceWorkers: "block" }, async ({ page, result, toUrl, inspect }) => {
  await page.addInitScript(simulateBusyBrowser);
  // The first request for the code of the highlighting is lost, and the first one for the language.
  const lostScripts = [];
  await page.route(/\/(highlight|bash)-\w+\.js$/, async (route) => {
    const name = new URL(route.request().url()).pathname;
    if (lostScripts.includes(name)) return route.continue();
    lostScripts.push(name);
    await route.abort();
  });
  await page.goto(toUrl("/docs"));
  const text = page.getByRole("article");
  await text.getByRole("link").first().waitFor();
  result.dead = await text.locator('a[href^="/docs/"]').evaluateAll(async (links) => {
    const pages = [...document.querySelectorAll(".subnav a")].map((link) => link.getAttribute("href"));
    return links.map((link) => link.getAttribute("href").split("#")[0]).filter((href) => !pages.includes(href));
  });
  await inspect("docs-contents");
  await page.getByLabel("Search headings").fill("use a model");
  await page
    .getByRole("list", { name: "Headings found" })
    .getByRole("link", { name: /Use a model/ })
    .click();
  await page.waitForURL("**/docs/chats#use-a-model");
  const heading = page.getByRole("heading", { name: "Use a model" });
  await heading.waitFor();
  await page.waitForFunction(() => {
    const top = document.getElementById("use-a-model")?.getBoundingClientRect().top;
    return top !== undefined && top >= 0 && top < 300;
  });
  await inspect("docs-page");
  await text.getByRole("link", { name: "quickstart" }).first().click();
  await page.waitForURL("**/docs/quickstart");
  await text.locator(".code .c").first().waitFor();
  result.lost = lostScripts.length;
  result.title = await page.getByRole("heading", { level: 1 }).textContent();
  await page.goto(toUrl("/docs/nothing-of-this-name"));
  await page.getByText("Page not found").waitFor();
  await inspect("docs-nothing");
});
