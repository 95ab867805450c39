// A person keeps a secret for their workspaces, gives a task, looks at what came of it, pauses and deletes it, with the screen alone.
// node tasks.mjs CHROMIUM URL EMAIL PASSWORD [FOLDER]
import { inApp, signIn } from "./app-page.mjs";

const [file, url, email, password, folder] = process.argv.slice(2);

await inApp({ file, url, folder }, async ({ page, result, at, look }) => {
  const dialog = page.getByRole("dialog");
  const confirm = (name) => dialog.getByRole("button", { name, exact: true }).click();

  await signIn(page, at("/account/secrets"), email, password);
  await page.getByText("No secrets yet").waitFor();
  await look("secrets-none");
  await page.getByRole("button", { name: "Add secret" }).click();
  await dialog.getByLabel("Name").fill("registry");
  await dialog.getByLabel("Value").fill("canary-of-the-registry");
  await dialog.getByLabel("Variable").fill("PATH");
  await confirm("Add secret");
  result.refused = await dialog.locator(".error, [role=alert]").first().textContent();
  await dialog.getByLabel("Variable").fill("REGISTRY_TOKEN");
  await dialog.getByLabel("File").fill("~/.registry");
  await look("secrets-add");
  await confirm("Add secret");
  await page.getByText("In $REGISTRY_TOKEN and ~/.registry.").waitFor();
  await look("secrets");
  result.shown = (await page.content()).includes("canary-of-the-registry");

  await page.goto(at("/account/notifications"));
  await page.getByRole("switch", { name: /^Chat needs you/ }).click();
  await page.getByRole("link", { name: "Tasks", exact: true }).click();
  await page.getByText("Some notifications are off").waitFor();
  await look("tasks-unheard");
  await page.getByRole("button", { name: "Don't show again" }).click();
  await page.getByText("Some notifications are off").waitFor({ state: "detached" });
  await page.waitForURL("**/tasks");
  await page.getByText("No tasks yet").waitFor();
  await look("tasks-none");
  await page.getByRole("button", { name: "New task" }).click();
  await dialog.getByLabel("What would you like to work on?").fill("Say good morning to the harbour.");
  await dialog.getByLabel("Template").selectOption({ index: 0 });
  await dialog.getByLabel("Name").fill("morning");
  await look("tasks-new");
  await confirm("Start task");
  const task = page.getByRole("listitem").filter({ hasText: "morning" });
  // Without a reload: the workspace starts, its chat begins and answers.
  await task.getByText(/done|waiting for you/).waitFor({ timeout: 120_000 });
  await look("tasks");
  await task.getByRole("link").first().click();
  await page.waitForURL("**/chats/*");
  await page.getByText("Say good morning to the harbour.").first().waitFor();
  await page.goBack();

  const more = async (what) => {
    await task.getByRole("button", { name: /^More for/ }).click();
    await page.getByRole("button", { name: what }).click();
  };
  await more("Pause");
  await task.getByText("paused").waitFor();
  await more("Resume");
  await task.getByText(/done|waiting for you/).waitFor({ timeout: 120_000 });
  await more("Delete…");
  await confirm("Delete task");
  await task.waitFor({ state: "detached", timeout: 120_000 });
});
