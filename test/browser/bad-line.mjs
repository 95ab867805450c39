// An impatient person on a bad connection: responses are late or lost, and everything is clicked twice. node bad-line.mjs CHROMIUM URL
// TOKEN TEMPLATE
import { openPage, playInApp } from "./app-page.mjs";

const [file, url, token, template] = process.argv.slice(2);

await playInApp({ file, url, token }, async ({ page, context, result, toUrl, inspect }) => {
  const dialog = page.getByRole("dialog");
  /** Holds requests with this method and path in `heldRoutes`. `end` stops that. */
  const hold = async (method, path) => {
    const heldRoutes = [];
    await page.route(path, (route) => {
      if (route.request().method() !== method) return route.fallback();
      heldRoutes.push(route);
    });
    return { heldRoutes, end: () => page.unroute(path) };
  };
  const waitForHeldRoute = async ({ heldRoutes }) => {
    while (heldRoutes.length === 0) await page.waitForRequest(() => true, { timeout: 250 }).catch(() => {});
    return heldRoutes[0];
  };

  // Two clicks in a row and a lost response: the workspace is created once, and found again.
  await page.goto(toUrl("/new?template=shared&name=hasty"));
  const create = page.getByRole("button", { name: "Create" });
  const name = page.getByLabel("Name", { exact: true });
  await name.waitFor();
  const creation = await hold("POST", "**/users/me/workspaces");
  await create.click();
  await name.press("Enter");
  await name.press("Control+Enter");
  await create.click({ force: true });
  const requested = await waitForHeldRoute(creation);
  result.creations = creation.heldRoutes.length;
  await requested.fetch();
  await requested.abort();
  await page.getByText("The server cannot be reached.").first().waitFor();
  result.name = await name.inputValue();
  await creation.end();
  await create.click();
  await page.waitForURL("**/workspaces/*");

  // Text typed while a message is being sent stays, and a reload in the meantime loses nothing.
  await page.goto(toUrl("/chats"));
  const message = page.getByRole("textbox", { name: "Message" });
  await message.fill("First thought");
  let sending = await hold("POST", "**/api/v2/chats");
  await page.getByRole("button", { name: "Start chat" }).click();
  const lost = await waitForHeldRoute(sending);
  await message.fill("And another");
  await lost.abort();
  await page.waitForFunction(() => document.querySelector("textarea").value.includes("First"));
  result.both = await message.inputValue();
  await sending.end();
  sending = await hold("POST", "**/api/v2/chats");
  await page.getByRole("button", { name: "Start chat" }).click();
  await waitForHeldRoute(sending);
  await page.reload();
  await message.waitFor();
  result.afterReload = await message.inputValue();
  await sending.end();
  await message.fill("");

  // A click next to a form, or one that started in a field, does not discard the input.
  await page.goto(toUrl("/admin"));
  await page.getByRole("button", { name: "Other ways to add users" }).click();
  await page.getByRole("button", { name: "Add user…" }).click();
  const box = await dialog.getByLabel("Username").boundingBox();
  await page.mouse.move(box.x + 20, box.y + 10);
  await page.mouse.down();
  await page.mouse.move(5, 5);
  await page.mouse.up();
  result.dragged = await dialog.count();
  await dialog.getByLabel("Username").fill("grace");
  await page.mouse.click(5, 5);
  result.username = await dialog.getByLabel("Username").inputValue();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Other ways to add users" }).click();
  await page.getByRole("button", { name: "Add user…" }).click();
  await dialog.waitFor();
  await page.mouse.click(5, 5);
  await dialog.waitFor({ state: "detached" });

  // A form submitted with two clicks is sent once.
  await page.goto(toUrl(`/templates/${template}/settings`));
  await page.getByLabel("Display name").fill("Other");
  const saving = await hold("PATCH", "**/api/v2/templates/*");
  await page.getByRole("button", { name: "Save template" }).click();
  await page.getByLabel("Display name").press("Enter");
  const saved = await waitForHeldRoute(saving);
  result.sending = await page.locator("form[aria-busy=true]").count();
  result.saves = saving.heldRoutes.length;
  await saved.continue();
  await page.getByText("Template saved").waitFor();
  await saving.end();

  // The code of a page fails to load at the first attempt.
  let loadCount = 0;
  await page.route(/audit-[a-z0-9]+\.js/, (route) => (++loadCount <= 2 ? route.abort() : route.continue()));
  await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Audit" }).click();
  await page.getByRole("heading", { name: "Audit" }).first().waitFor();
  result.notLoaded = await page.getByText("Can't load this page").count();

  // Another person opens a page: the app's own code is lost once, and the server is busy when it is asked who they are.
  // Without the service worker, which would have cached the code.
  const machine = await context.browser().newContext({ serviceWorkers: "block" });
  const visitor = await openPage(machine, result.problems);
  let [documents, busyResponses] = [0, 0];
  visitor.on("request", (request) => {
    if (request.isNavigationRequest() && request.url().endsWith("/account")) documents += 1;
  });
  const main = /\/assets\/main-[a-z0-9]+\.js/;
  await visitor.route(main, (route) => (documents === 1 ? route.abort() : route.continue()));
  await visitor.route(/\/api\/v2\/(users\/me|organizations|users\/me\/roles)$/, (route) => {
    if (route.request().url().endsWith("/me")) busyResponses += 1;
    return busyResponses <= 3
      ? route.fulfill({ status: 503, json: { message: "The server is busy." } })
      : route.continue();
  });
  await visitor.goto(toUrl("/account"));
  await visitor.getByLabel("Email").waitFor();
  result.documents = documents;
  result.busy = busyResponses;
  await visitor.unroute(main);
  await visitor.route(main, (route) => route.abort());
  await visitor.goto(toUrl("/login"));
  await visitor.getByRole("heading", { name: "Can't load this page" }).waitFor();
  await inspect("not-loaded", visitor);
  await visitor.unroute(main);
  await visitor.getByRole("button", { name: "Reload" }).click();
  await visitor.getByLabel("Email").waitFor();
});
