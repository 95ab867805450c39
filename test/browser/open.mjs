// Opens parts of a workspace with two agents, from its page and from its row: terminals, files, apps of every kind, editors.
// node open.mjs CHROMIUM URL TOKEN WORKSPACE [FOLDER]
import { openPage, playInApp } from "./app-page.mjs";

const [file, url, token, workspace, folder] = process.argv.slice(2);

await playInApp({ file, url, token, folder }, async ({ page, context, result, toUrl, inspect }) => {
  // Links for programs of this machine, which are not installed.
  const links = [];
  const recordLinks = async (openedPage) => {
    const session = await context.newCDPSession(openedPage);
    await session.send("Page.enable");
    session.on("Page.frameRequestedNavigation", ({ url: requestedUrl }) => links.push(requestedUrl));
  };
  const nextLink = async (scheme) => {
    const findLink = () => links.find((link) => link.startsWith(`${scheme}:`));
    for (let tries = 0; !findLink() && tries < 100; tries++) await page.waitForTimeout(50);
    return findLink();
  };

  await page.goto(toUrl(`/workspaces/${workspace}`));
  const panel = page.getByRole("region", { name: "Apps and ports" });
  await panel.getByRole("link", { name: "By command" }).waitFor();
  result.items = (await panel.locator("li").allTextContents()).filter((text) => !/listens|^:/.test(text));
  result.tooltip = await panel.locator("li", { hasText: "Handbook" }).last().getAttribute("title");
  await inspect("open");

  // An app that needs a host name shows an error if there is none.
  const [named] = await Promise.all([
    context.waitForEvent("page"),
    panel.getByRole("link", { name: "By name" }).click(),
  ]);
  await named.getByRole("heading", { name: "This app needs its own host name" }).waitFor();
  await named.close();

  // A program gets a key only after a page has asked and shown where it goes; a page never gets one.
  result.handbook = await panel.getByRole("link", { name: "Handbook" }).getAttribute("href");
  const [confirmation] = await Promise.all([
    context.waitForEvent("page"),
    panel.getByRole("link", { name: "Bridge" }).click(),
  ]);
  await confirmation.getByRole("heading", { name: "Open Bridge?" }).waitFor();
  result.asks = (await confirmation.locator("#hosts").innerText()).split("\n");
  result.warns = await confirmation.locator("#foreign").isVisible();
  if (folder) await confirmation.screenshot({ path: `${folder}/open-app.png`, fullPage: true });
  await recordLinks(confirmation);
  await confirmation.getByRole("button", { name: "Open with a key" }).click();
  result.bridge = await nextLink("bridge");
  await confirmation.close();
  // A browser with windows asks before it opens a link in a program, and the page gets no key events until it is answered, so this uses a
  // separate page.
  const otherPage = await openPage(context, result.problems);
  await recordLinks(otherPage);
  await otherPage.goto(toUrl(`/workspaces/${workspace}`));
  await otherPage
    .getByRole("region", { name: "Apps and ports" })
    .getByRole("button", { name: "Editor" })
    .last()
    .click();
  const menu = otherPage.getByRole("group", { name: "Open dev.two in an editor" });
  result.editors = (await menu.getByRole("button").allTextContents()).map((text) => text.trim());
  await menu.getByRole("button", { name: "Cursor" }).click();
  result.cursor = await nextLink("cursor");
  await otherPage.close();

  // Each agent has its terminal.
  await panel.getByRole("link", { name: "Terminal" }).last().click();
  await page.getByRole("group", { name: "Agent" }).getByRole("button", { name: "two", pressed: true }).waitFor();
  const waitForOutput = (text) =>
    page.waitForFunction((expected) => document.querySelector(".xterm-rows")?.textContent.includes(expected), text);
  const screen = page.locator(".xterm-screen");
  await screen.waitFor();
  await page.waitForFunction(() => /[#$%>]/.test(document.querySelector(".xterm-rows")?.textContent ?? ""));
  await page.locator(".terminal textarea").focus();
  await page.keyboard.type("echo this-is-$WHICH");
  await page.keyboard.press("Enter");
  await waitForOutput("this-is-two");
  await inspect("open-agents");

  // An app with a command runs it in its own terminal.
  await page.goto(toUrl("/workspaces"));
  await page.getByRole("button", { name: "More for dev" }).click();
  const row = page.getByRole("group", { name: "More for dev" });
  await row.getByRole("link", { name: "By command" }).waitFor();
  result.row = (await row.locator("a, button").allTextContents()).map((text) => text.trim());
  await row.getByRole("link", { name: "By command" }).click();
  await page.waitForURL("**/terminals/*");
  await waitForOutput("ran-42");
  // A URL may name an app, but not a command.
  await page.goto(toUrl(`${new URL(page.url()).pathname}?command=${encodeURIComponent("echo sneaked-$((40+2))")}`));
  await waitForOutput("ran-42");
  result.tabs = await page.getByRole("group", { name: "Tabs" }).count();
});
