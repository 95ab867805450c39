// The installed app: its manifest, its service worker, its caches, and the page shown while the server is unreachable. node install.mjs
// CHROMIUM URL EMAIL PASSWORD [FOLDER]
import { playInApp, signIn } from "./app-page.mjs";
import { askTest } from "./ask.mjs";

const [file, url, email, password, folder] = process.argv.slice(2);

await playInApp({ file, url, folder }, async ({ page, context, result, toUrl, inspect }) => {
  await signIn(page, toUrl("/workspaces"), email, password);
  await page.getByRole("heading", { name: "Workspaces", level: 1 }).waitFor();
  const session = await context.newCDPSession(page);
  const { errors } = await session.send("Page.getAppManifest");
  const { installabilityErrors } = await session.send("Page.getInstallabilityErrors");
  result.manifest = [...errors, ...installabilityErrors.map(({ errorId }) => errorId)];
  await page.evaluate(() => navigator.serviceWorker.ready);
  await page.reload();
  await page.waitForFunction(() => navigator.serviceWorker.controller !== null);
  await page.reload();
  await page.getByRole("heading", { name: "Workspaces", level: 1 }).waitFor();
  const listCached = () =>
    page.evaluate(async () => {
      const names = await caches.keys();
      const cachedRequests = await Promise.all(names.map(async (name) => (await caches.open(name)).keys()));
      return { caches: names.length, paths: cachedRequests.flat().map(({ url }) => new URL(url).pathname) };
    });
  result.cached = await listCached();
  // The palette leads to every section.
  await page.keyboard.press("Control+k");
  await page.keyboard.type("health");
  await page.getByRole("option", { name: /Health/ }).waitFor();
  await inspect("palette");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/admin/health");

  // No other code may create a script URL.
  result.refused = await page.evaluate(() => {
    try {
      trustedTypes.createPolicy("slipway-worker", { createScriptURL: (text) => text });
      return false;
    } catch {
      return true;
    }
  });

  // Without the server, the URL shows the offline page, and the app returns when it is opened again.
  await askTest("stop");
  await page.goto(toUrl("/chats"));
  await page.getByRole("heading", { name: "The server cannot be reached" }).waitFor();
  await inspect("offline");
  await askTest("start");
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByRole("textbox", { name: "Message" }).waitFor();
  result.returnedTo = new URL(page.url()).pathname;
  await page.evaluate(() => fetch("/api/v2/users/me", { cache: "reload" }));
  result.after = await listCached();
});
process.exit(0);
