// The app's first pages: sign in, the live list, search, bulk actions, the palette, a disconnect. node app.mjs CHROMIUM URL EMAIL PASSWORD
// BETA PAGES [FOLDER]
import { countLayers, playInApp } from "./app-page.mjs";
import { listBadRequests, listRequestsOnPress } from "./early.mjs";

const [file, url, email, password, beta, pages, folder] = process.argv.slice(2);

await playInApp({ file, url, folder }, async ({ page, result, toUrl, inspect }) => {
  await page.goto(toUrl("/workspaces"));
  await page.waitForURL("**/login?*");
  await page.getByLabel("Email").fill(email);
  await page.getByLabel("Password").fill("not the password");
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByText("Incorrect email or password").waitFor();
  await inspect("login");
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.waitForURL("**/workspaces*");

  const rows = page.getByRole("table", { name: "Workspaces" });
  await rows.getByRole("link", { name: "alpha", exact: true }).waitFor();
  result.names = await rows.locator("a.name").allTextContents();
  await inspect("workspaces");
  // A rotating glyph has its own layer; the texts around it do not.
  const before = await countLayers(page);
  await page.evaluate(() => {
    for (const glyph of document.querySelectorAll(".rows .state")) glyph.dataset.state = "busy";
  });
  await page.waitForFunction(() => document.getAnimations().length >= 2);
  result.layers = (await countLayers(page)) - before;
  // The window becomes as narrow as a phone: rows have two lines.
  await page.reload();
  await rows.getByRole("link", { name: "alpha", exact: true }).waitFor();
  await page.setViewportSize({ width: 390, height: 844 });
  await page.waitForFunction(() => {
    const boxes = [...document.querySelectorAll(".virtual-row")].map((row) => row.getBoundingClientRect());
    return (
      boxes.length > 1 &&
      boxes.every(({ height, top }, n) => height > 40 && (n === 0 || top >= boxes[n - 1].bottom - 1))
    );
  });
  await page.setViewportSize({ width: 1440, height: 900 });

  // Typing filters immediately; a finished term becomes a chip.
  await page.keyboard.press("/");
  await page.keyboard.type("alph");
  await rows.getByRole("link", { name: "beta", exact: true }).waitFor({ state: "detached" });
  result.filtered = await rows.locator("a.name").allTextContents();
  await page.waitForURL((address) => address.searchParams.get("q")?.endsWith("alph"));
  result.address = new URL(page.url()).searchParams.get("q");
  await page.getByRole("combobox", { name: "Filter workspaces" }).fill("stat");
  await page.keyboard.press("Tab");
  await page.getByRole("option", { name: "stopped" }).click();
  await page.getByText("No matching workspaces").waitFor();
  await page.getByRole("button", { name: "Remove status filter" }).click();
  await rows.getByRole("link", { name: "beta", exact: true }).waitFor();

  // Both workspaces are stopped together, and the list updates automatically.
  await page.getByRole("checkbox", { name: "Select all" }).check();
  await inspect("workspaces-selected");
  await page.getByRole("toolbar", { name: "Selected workspaces" }).getByRole("button", { name: "Stop" }).click();
  await page.getByRole("row", { name: /alpha.*Stopped/ }).waitFor();
  await page.getByRole("row", { name: /beta.*Stopped/ }).waitFor();

  // By keyboard: the clicked button is replaced by another, and the focus stays in its row.
  await page.keyboard.press("Tab");
  await page.getByRole("button", { name: "Start alpha" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("row", { name: /alpha.*Running/ }).waitFor();
  result.keepsFocus = await page.evaluate(() =>
    document.activeElement?.closest("[role=row]")?.textContent.includes("alpha"),
  );

  // The row's menu shows the server's own message.
  await page.getByRole("button", { name: "More for alpha" }).click();
  await page.getByRole("button", { name: "Pin", exact: true }).click();
  await page.getByTitle("Pinned").waitFor();

  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Search everything" }).fill("bet");
  await page.getByRole("option", { name: /^beta/ }).waitFor();
  await inspect("palette");
  for (const name of ["Trash", "Repository prebuilds", "Documentation", "Invite people"]) {
    await page.getByRole("combobox", { name: "Search everything" }).fill(name);
    await page.getByRole("option", { name }).waitFor();
  }
  await page.keyboard.press("Escape");

  // "Show as command".
  await page.getByRole("button", { name: "Show this page's requests as commands" }).click();
  result.command = await page.locator("dialog pre").first().textContent();
  await page.getByRole("button", { name: "curl" }).click();
  result.curl = await page.locator("dialog pre").first().textContent();
  await page.keyboard.press("Escape");

  await page.getByRole("link", { name: "Home" }).first().click();
  await page.getByRole("heading", { name: "Recent workspaces" }).waitFor();
  await inspect("home");

  // Missing and inaccessible objects are reported and not retried forever.
  const missingId = "00000000-0000-4000-8000-000000000000";
  const sockets = [];
  page.on("websocket", (socket) => sockets.push(socket.url()));
  await page.goto(toUrl(`/workspaces/${missingId}`));
  await page.getByText("Workspace not found").waitFor();
  await page.goto(toUrl(`/chats/${missingId}`));
  await page.getByText("Chat not found").waitFor();
  result.retriedSockets = sockets.filter((address) => address.includes(missingId));
  result.writable = await page.getByRole("textbox", { name: "Message" }).count();

  // Opens each page again: its data must be requested together with it.
  result.badRequests = await listBadRequests(page, toUrl, JSON.parse(pages));
  result.pressed = await listRequestsOnPress(page, toUrl, "/chats/");

  // Someone else deletes the workspace of an open dialog; the Back button closes a dialog.
  await page.goto(toUrl("/workspaces"));
  const openDeleteDialog = async () => {
    await page.getByRole("button", { name: "More for beta" }).click();
    await page.getByRole("button", { name: "Delete…" }).click();
    await page.getByRole("dialog", { name: "Delete beta?" }).waitFor();
  };
  await page.getByRole("link", { name: "Home" }).first().click();
  await page.getByRole("link", { name: "Workspaces" }).first().click();
  await openDeleteDialog();
  await page.goBack();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.goForward();
  await openDeleteDialog();
  await page.evaluate(async (id) => {
    const headers = { "content-type": "application/json" };
    await fetch(`/api/v2/workspaces/${id}/builds`, { method: "POST", headers, body: '{"transition":"delete"}' });
  }, beta);
  await page.getByText("beta was deleted in the meantime").waitFor();
  await page.getByRole("dialog").waitFor({ state: "detached" });
});
