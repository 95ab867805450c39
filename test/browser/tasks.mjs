// A person stores a secret for their workspaces, sets a template's default agent, creates a task, looks at its result, pauses and deletes
// it, and starts a chat, all in the browser. node tasks.mjs CHROMIUM URL EMAIL PASSWORD TEMPLATE WORKSPACE [FOLDER]
import { playInApp, signIn } from "./app-page.mjs";
import { askTest } from "./ask.mjs";
import { scaleTimeout } from "./chromium.mjs";

const [file, url, email, password, template, workspace, folder] = process.argv.slice(2);

await playInApp({ file, url, folder }, async ({ page, result, toUrl, inspect }) => {
  const dialog = page.getByRole("dialog");
  const confirm = (name) => dialog.getByRole("button", { name, exact: true }).click();

  await signIn(page, toUrl("/account/secrets"), email, password);
  await page.getByText("No secrets yet").waitFor();
  await inspect("secrets-none");
  await page.getByRole("button", { name: "Add secret" }).click();
  await dialog.getByLabel("Name").fill("registry");
  await dialog.getByLabel("Value").fill("canary-of-the-registry");
  await dialog.getByLabel("Variable").fill("PATH");
  await confirm("Add secret");
  result.refused = await dialog.locator(".error, [role=alert]").first().textContent();
  await dialog.getByLabel("Variable").fill("REGISTRY_TOKEN");
  await dialog.getByLabel("File").fill("~/.registry");
  await inspect("secrets-add");
  await confirm("Add secret");
  await page.getByText("Available as $REGISTRY_TOKEN and ~/.registry.").waitFor();
  await inspect("secrets");
  result.shown = (await page.content()).includes("canary-of-the-registry");

  await page.goto(toUrl(`/templates/${template}/settings`));
  await page.getByLabel("Default agent").selectOption({ label: "Test agent" });
  await inspect("template-default-agent");
  await page.getByRole("button", { name: "Save template" }).click();
  await page.getByText("Template saved").waitFor();

  await page.goto(toUrl("/account/notifications"));
  await page.getByRole("switch", { name: /^Chat needs you/ }).click();
  await page.getByRole("link", { name: "Tasks", exact: true }).click();
  await page.getByText("Some notifications are off").waitFor();
  await inspect("tasks-unheard");
  await page.getByRole("button", { name: "Don't show again" }).click();
  await page.getByText("Some notifications are off").waitFor({ state: "detached" });
  await page.waitForURL("**/tasks");
  await page.getByText("No tasks yet").waitFor();
  await inspect("tasks-none");
  await page.getByRole("button", { name: "New task" }).click();
  await dialog.getByLabel("What would you like to work on?").fill("say Good morning, harbour.");
  await dialog.getByLabel("Template").selectOption({ index: 0 });
  await dialog.getByLabel("Name").fill("morning");
  result.agents = await dialog.getByLabel("Agent or model").locator("option").allTextContents();
  await inspect("tasks-new");
  await confirm("Start task");
  const task = page.getByRole("listitem").filter({ hasText: "morning" });
  // Without a reload: the workspace starts, its chat begins and answers.
  await task.getByText(/done|waiting for you/).waitFor({ timeout: scaleTimeout(120_000) });
  await inspect("tasks");
  await task.getByRole("link").first().click();
  await page.waitForURL("**/chats/*");
  await page.getByText("Good morning, harbour.", { exact: true }).waitFor();
  await page.getByTitle("This chat uses a coding agent").getByText("Test agent").waitFor();
  await page.goBack();

  const openMenuItem = async (item) => {
    await task.getByRole("button", { name: /^More for/ }).click();
    await page.getByRole("button", { name: item }).click();
  };
  await openMenuItem("Pause");
  await task.getByText("paused").waitFor();
  await openMenuItem("Resume");
  await task.getByText(/done|waiting for you/).waitFor({ timeout: scaleTimeout(120_000) });
  await openMenuItem("Delete…");
  await confirm("Delete task");
  await task.waitFor({ state: "detached", timeout: scaleTimeout(120_000) });

  // The template's agent is preselected in its workspaces, until the person selects another.
  const waitForSelected = (name) => page.getByRole("button", { name, exact: true }).waitFor();
  const selectAgent = async (current, name) => {
    await page.getByRole("button", { name: current, exact: true }).click();
    await page
      .getByRole("group", { name: /^(Model|Coding agent): / })
      .getByRole("button", { name })
      .click();
    await waitForSelected(name);
  };
  const sendMessage = async (text) => {
    const field = page.getByRole("textbox", { name: "Message" });
    await field.fill(text);
    await field.press("Enter");
    await page.waitForURL("**/chats/*-*");
  };
  await page.goto(toUrl("/chats"));
  await waitForSelected("coder");
  await page.goto(toUrl(`/chats?workspace=${workspace}`));
  await waitForSelected("Test agent");
  await inspect("chat-default-agent");
  await selectAgent("Test agent", "coder");
  await selectAgent("coder", "Test agent");
  await sendMessage("say Hello from the agent.");
  await page.getByText("Hello from the agent.", { exact: true }).waitFor();
  await askTest("off");
  await page.goto(toUrl(`/chats?workspace=${workspace}`));
  await page.getByText('The coding agent "Test agent" is disabled.').waitFor();
  await waitForSelected("coder");
  await inspect("chat-default-agent-off");
  await sendMessage("Hello, model.");
  await page.getByTitle("This chat uses a coding agent").waitFor({ state: "detached" });
});
process.exit(0);
