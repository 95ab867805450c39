// A repository link becomes a workspace: pasted on a page, typed into the palette, and from the page's URL. Then a chat, a task and another
// workspace in it, from the repositories that are offered again. node repository.mjs CHROMIUM URL TOKEN LINK PRIVATE OTHER [FOLDER]
import { playInApp } from "./app-page.mjs";
import { askTest } from "./ask.mjs";

const [file, url, token, link, privateLink, otherLink, folder] = process.argv.slice(2);

await playInApp({ file, url, token, folder }, async ({ page, result, toUrl, inspect }) => {
  const configuration = page.getByRole("complementary", { name: "Detected configuration" });

  await page.goto(toUrl("/new?repo="));
  await page.getByRole("textbox", { name: "Repository" }).fill("nothing");
  await page.getByRole("button", { name: "Open repository" }).click();
  await page.getByText("This is not a link to a Git repository").waitFor();

  // The "Create" page, which lists templates below, also opens it.
  await page.goto(toUrl("/new"));
  await page.getByRole("form", { name: "Open a repository" }).getByLabel("Repository").fill(link);
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await configuration.waitFor();

  await page.goto(toUrl(`/new?${new URLSearchParams({ repo: privateLink })}`));
  result.refused = await page.getByRole("alert").textContent();
  await page.getByRole("button", { name: "Create deploy key" }).click();
  result.deployKey = await page.getByLabel("Public key").textContent();
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByRole("alert").filter({ hasText: "Git could not read the repository" }).waitFor();
  await inspect("repository-deploy-key");
  await page.goto(toUrl("/account/accounts"));
  await inspect("account-deploy-keys");
  await page.getByRole("button", { name: /^Revoke the deploy key for/ }).click();
  await page.getByRole("button", { name: "Revoke key" }).click();
  await page.getByText("Deploy key revoked").waitFor();

  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Search everything" }).fill(link);
  await page.getByRole("option", { name: /Open this repository/ }).click();
  await configuration.waitFor();
  result.found = await configuration.textContent();
  result.left_out = await page.getByText("initializeCommand").count();
  await inspect("repository");
  await page.getByRole("combobox", { name: "Configuration" }).selectOption(".devcontainer/b/devcontainer.json");
  await configuration.getByText(".devcontainer/b/devcontainer.json").waitFor();
  result.at = new URL(page.url()).search;
  await page.getByRole("button", { name: /Create workspace/ }).click();
  await page.waitForURL(/\/workspaces\/[0-9a-f-]{36}/);
  await page.getByText("Running").first().waitFor();
  result.name = await page.getByRole("heading", { level: 1 }).textContent();

  await page.goto(toUrl("/workspaces"));
  await page.getByRole("heading", { level: 1 }).waitFor();
  await page.evaluate(() => {
    const clipboardData = new DataTransfer();
    clipboardData.setData("text/plain", "https://github.example.com/acme/app");
    document.body.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, composed: true }));
  });
  await page.waitForURL(/\/new\?repo=https%3A%2F%2Fgithub\.example\.com/);

  // Repository prebuilds, from the templates page.
  await page.goto(toUrl("/templates"));
  await page.getByRole("link", { name: "Repository prebuilds" }).click();
  const failed = page.getByRole("listitem").filter({ hasText: "payments-api" });
  await failed.getByText("The Dockerfile cannot be built: exit code 3").waitFor();
  await failed.getByText("Log of the last build").click();
  await inspect("prebuilds");
  await page.getByRole("button", { name: "Add repository" }).click();
  const addDialog = page.getByRole("dialog");
  await addDialog.getByRole("textbox", { name: "Repository" }).fill(link);
  await inspect("prebuilds-add");
  await addDialog.getByRole("button", { name: "Add repository" }).click();
  await addDialog.getByText("Images are built by a Docker Engine, but this server can't reach one.").waitFor();
  await addDialog.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Remove shop" }).click();
  await page.getByRole("button", { name: "Remove prebuild" }).click();
  await page.getByText("shop removed").waitFor();

  // A chat in the repository uses the existing workspace; one on another branch gets its own.
  const dialog = page.getByRole("dialog");
  const text = page.getByRole("textbox", { name: "Message" });
  const startChatInRepository = async (choose) => {
    await page.goto(toUrl("/chats"));
    await page.getByRole("button", { name: "No workspace" }).click();
    await page.getByRole("button", { name: "Work in a repository…" }).click();
    await choose();
    await dialog.getByRole("button", { name: "Choose repository" }).click();
    await dialog.waitFor({ state: "detached" });
  };
  await startChatInRepository(() =>
    dialog.getByRole("group", { name: "Recent repositories" }).getByRole("button").click(),
  );
  await inspect("repository-chat");
  await text.fill("Hello");
  await text.press("Enter");
  await page.waitForURL(/\/chats\/[0-9a-f-]{36}/);
  result.reused = await page.getByRole("link", { name: "app", exact: true }).count();
  await askTest("agent");
  await startChatInRepository(async () => {
    await dialog.getByRole("textbox", { name: "Repository" }).fill(otherLink);
    await dialog.getByRole("textbox", { name: "Branch" }).fill("none");
    await dialog.getByRole("button", { name: "Choose repository" }).click();
    result.noBranch = await dialog.locator(".error, [role=alert]").first().textContent();
    await dialog.getByRole("textbox", { name: "Branch" }).fill("next");
    await inspect("repository-choose");
  });
  await page.getByRole("button", { name: "Template default", exact: true }).waitFor();
  await text.fill("say Hello there");
  await text.press("Enter");
  await page.getByText("Preparing the workspace lib.").waitFor();
  await inspect("repository-preparing");
  await page.waitForURL(/\/chats\/[0-9a-f-]{36}/);
  await page.getByText("Hello there", { exact: true }).waitFor();

  // Both are offered for a task and for a workspace, most recently used first.
  await page.goto(toUrl("/tasks"));
  await page.getByRole("button", { name: "New task" }).click();
  await dialog.getByLabel("What would you like to work on?").fill("Say good morning.");
  const recent = (box) => box.getByRole("group", { name: "Recent repositories" }).getByRole("button");
  await recent(dialog).first().waitFor();
  result.recent = (await recent(dialog).allTextContents()).map((text) => text.trim());
  await recent(dialog).first().click();
  result.branch = await dialog.getByRole("textbox", { name: "Branch" }).inputValue();
  await dialog.getByLabel("Name").fill("morning");
  await inspect("repository-task");
  await dialog.getByRole("button", { name: "Start task" }).click();
  await page.getByRole("listitem").filter({ hasText: "morning" }).first().waitFor();

  await page.goto(toUrl("/new"));
  await recent(page).first().waitFor();
  await inspect("repository-new");
  await recent(page).first().click();
  await page.getByRole("button", { name: "Open repository" }).click();
  await configuration.waitFor();
  result.opened = new URL(page.url()).searchParams.get("branch");
});
process.exit(0);
