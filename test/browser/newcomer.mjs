// The first user of a server whose containers cannot reach it: from the setup link to a workspace that is shared with a second person. node
// newcomer.mjs CHROMIUM SETUP [FOLDER]
import { openPage, playInApp, signIn } from "./app-page.mjs";
import { askTest } from "./ask.mjs";
import { setUpServer } from "./presses.mjs";

const [file, setup, folder] = process.argv.slice(2);
const ADA = { email: "ada@example.com", username: "ada", password: "four quiet harbours at night" };
const BOB = { email: "bob@example.com", username: "bob", password: "nine grey herons at noon" };

await playInApp({ file, url: setup, folder }, async ({ page, context, result, toUrl, inspect }) => {
  const dialog = page.getByRole("dialog");
  const button = (name) => page.getByRole("button", { name, exact: true });
  await setUpServer(page, setup, ADA);
  await button("Create user and sign in").click();
  await page.getByRole("heading", { name: "Welcome, ada" }).waitFor();
  await inspect("newcomer-home");

  // The choice of a starter says why Docker is not one, and what to set.
  await page.goto(toUrl("/templates"));
  await page.getByText("Docker workspaces are not available").waitFor();
  result.docker = await page.getByText("Docker workspaces are not available").textContent();
  result.canUseDocker = await button("Use Docker").isEnabled();
  result.canUseLocal = await button("Use VS Code").isEnabled();
  await inspect("newcomer-templates");
  // A template that somebody wrote for containers is refused before a build starts.
  await askTest("containers");
  await page.goto(toUrl("/new?template=boxes"));
  await page.getByText("Workspaces of this template can't start").waitFor();
  result.reason = await page.getByText("Workspaces of this template can't start").textContent();
  result.canCreate = await button("Create").isEnabled();
  await inspect("newcomer-new");

  // After the first workspace, the first steps stay until they are done or dismissed.
  await page.goto(toUrl("/new?template=local&name=first"));
  await button("Create").click();
  await page.waitForURL("**/workspaces/*");
  const workspace = page.url();
  await page.getByText("Running", { exact: true }).first().waitFor();
  // Apps and editors are listed when the menu is open; deleting stays last.
  await button("More for first").click();
  const menu = page.getByRole("group", { name: "More for first" });
  await menu.getByText("VS Code").first().waitFor();
  result.menu = await menu
    .locator(":scope > *")
    .evaluateAll((items) => items.slice(-2).map((item) => item.textContent || item.tagName));
  await page.keyboard.press("Escape");
  await page.goto(toUrl("/"));
  const steps = page.getByRole("region", { name: "First steps" });
  await steps.waitFor();
  await inspect("newcomer-steps");
  result.steps = await steps.getByRole("listitem").allTextContents();
  await steps.getByRole("link", { name: "New chat" }).click();
  const message = page.getByRole("textbox", { name: "Message" });
  await message.fill("Hello");
  await message.press("Enter");
  await page.getByRole("region", { name: "Chat messages" }).waitFor();
  await page.goto(toUrl("/"));
  await steps.getByRole("link", { name: "Invite people" }).click();

  // A form shows an error once, at its field.
  await page.getByRole("button", { name: "Other ways to add users" }).click();
  await page.getByRole("button", { name: "Add user…" }).click();
  await dialog.getByLabel("Type").selectOption("password");
  await dialog.getByLabel("Username").fill("login");
  await dialog.getByLabel("Email").fill(BOB.email);
  await dialog.getByLabel("Password").fill(BOB.password);
  await dialog.getByRole("button", { name: "Add user" }).click();
  await dialog.locator(".error").waitFor();
  result.errors = await dialog.locator(".error, [role=alert]").allTextContents();
  result.focus = await page.evaluate(() => document.activeElement?.getAttribute("name"));
  await inspect("newcomer-error");
  await dialog.getByLabel("Username").fill(BOB.username);
  await dialog.getByRole("button", { name: "Add user" }).click();
  await page.getByText(BOB.email).waitFor();
  await page.goto(toUrl("/"));
  await page.getByRole("heading", { name: "Recent workspaces" }).waitFor();
  await page.getByRole("heading", { name: "Recent chats" }).waitFor();
  result.stepsLeft = await steps.count();

  // The second person hears that the workspace is shared with them, and follows the link.
  const bob = await openPage(
    await context.browser().newContext({ viewport: { width: 1440, height: 900 } }),
    result.problems,
  );
  await signIn(bob, toUrl("/"), BOB.email, BOB.password);
  const bell = bob.getByRole("navigation", { name: "Main" }).getByRole("button", { name: /Notifications/ });
  await bell.waitFor();
  await page.goto(`${workspace}/sharing`);
  await page.getByLabel("User or group").selectOption({ label: BOB.username });
  await button("Share").click();
  await page.getByText(`Shared with ${BOB.username}`).waitFor();
  await bell.getByText("1").waitFor();
  await bell.click();
  await inspect("newcomer-notified", bob);
  await bob.getByRole("link", { name: "ada shared the workspace first with you" }).click();
  await bob.waitForURL(workspace);
  await bob.getByRole("heading", { name: "first" }).first().waitFor();

  await page.goto(toUrl("/audit?q=resource_type:user"));
  const entries = page.getByRole("list", { name: "Entries" });
  await entries.getByRole("link").first().waitFor();
  result.audit = (await entries.getByRole("link").allTextContents()).map((text) => text.replace(/\s+/g, " "));
  await inspect("newcomer-audit");
});
process.exit(0);
