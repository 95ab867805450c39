// An administrator in the browser: adds a user, assigns a role, creates an application and replaces its secret, adds a provider and a
// model, and tries it. node administration.mjs CHROMIUM URL TOKEN MODELS [FOLDER]
import { playInApp } from "./app-page.mjs";

const ICON = "data:image/svg+xml,%3Csvg%20xmlns=%22http://www.w3.org/2000/svg%22/%3E";

const [file, url, token, models, folder] = process.argv.slice(2);

await playInApp({ file, url, token, folder }, async ({ page, result, toUrl, inspect }) => {
  const dialog = page.getByRole("dialog");

  await page.goto(toUrl("/admin"));
  await page.getByRole("button", { name: "Other ways to add users" }).click();
  await page.getByRole("button", { name: "Add user…" }).click();
  await dialog.getByLabel("Type", { exact: true }).selectOption("password");
  await dialog.getByLabel("Username").fill("grace");
  await dialog.getByLabel("Email").fill("grace@example.com");
  await dialog.getByLabel("Password").fill("password1234");
  await inspect("admin-add-user");
  await dialog.getByRole("button", { name: "Add user" }).click();
  result.refused = await dialog.locator(".error").first().textContent();
  await dialog.getByLabel("Password").fill("four quiet harbours at night");
  await dialog.getByRole("button", { name: "Add user" }).click();
  const grace = page.getByRole("listitem").filter({ hasText: "grace@example.com" });
  await grace.waitFor();
  await grace.getByRole("button", { name: "More for grace" }).click();
  await page.getByRole("button", { name: "Roles…" }).click();
  await dialog.getByRole("checkbox", { name: /Auditor/ }).check();
  await dialog.getByRole("button", { name: "Set roles" }).click();
  await grace.getByText("Auditor").waitFor();
  await inspect("admin-people");

  await page.getByRole("navigation", { name: "Administration" }).getByRole("link", { name: "Applications" }).click();
  result.secrets = await manageApplications(page, inspect);

  await page.getByRole("navigation", { name: "Administration" }).getByRole("link", { name: "Models" }).click();
  await page.getByText("No models yet").waitFor();
  await inspect("admin-models-empty");
  await page.getByRole("button", { name: "Add provider" }).click();
  await dialog.getByLabel("Provider").selectOption("openai-compat");
  await dialog.getByLabel("Name").fill("Ollama");
  await dialog.getByLabel("Address").fill(`${models}/v1`);
  await dialog.getByRole("button", { name: "Add provider" }).click();
  await dialog.getByText("Add a model from Ollama").waitFor();
  await dialog.getByLabel("Model").fill("qwen3-coder:30b");
  await dialog.getByRole("button", { name: "Test and add model" }).click();
  await page.getByText("qwen3-coder:30b responded: “Hello there.”").waitFor();
  await inspect("admin-models");

  await page.getByRole("navigation", { name: "Administration" }).getByRole("link", { name: "AI gateway" }).click();
  await page.getByRole("switch", { name: /Enable the AI gateway/ }).click();
  await page.getByText("AI gateway enabled").waitFor();
  await page.getByRole("button", { name: "Add name" }).click();
  await dialog.getByLabel("Name").fill("claude-*");
  await dialog.getByLabel("Model", { exact: true }).fill("qwen3-coder:30b");
  await inspect("admin-gateway-name");
  await dialog.getByRole("button", { name: "Add name" }).click();
  await page.getByRole("listitem").filter({ hasText: "claude-*" }).getByText("Ollama: qwen3-coder:30b").waitFor();
  await inspect("admin-gateway");
});

/** Creates an application, changes it, and replaces its first secret. Returns the last characters of the valid secrets. */
async function manageApplications(page, inspect) {
  const dialog = page.getByRole("dialog");
  const readSecretEnd = async (output) => `…${(await output.textContent()).trim().slice(-6)}`;
  await page.getByRole("button", { name: "Add application" }).click();
  await dialog.getByLabel("Name").fill("Board");
  await dialog.getByLabel("Callback URL").fill("http://boards.example.com/back");
  await dialog.getByRole("button", { name: "Add application" }).click();
  await dialog.getByText("must be https").first().waitFor();
  await dialog.getByLabel("Callback URL").fill("https://boards.example.com/back");
  await dialog.getByRole("button", { name: "Add application" }).click();
  const firstSecret = await readSecretEnd(page.getByLabel("Client secret"));
  await page.getByRole("button", { name: "More for Board" }).click();
  await page.getByRole("button", { name: "Edit…" }).click();
  await dialog.getByLabel("Name").fill("Maps");
  await dialog.getByLabel("Callback URL").fill("https://maps.example.com/back");
  await dialog.getByLabel("Icon").fill(ICON);
  await inspect("admin-application");
  await dialog.getByRole("button", { name: "Save application" }).click();
  await page.getByRole("listitem").filter({ hasText: "Maps" }).getByText("https://maps.example.com/back").waitFor();
  await inspect("admin-applications");
  await page.getByRole("button", { name: "More for Maps" }).click();
  await page.getByRole("button", { name: "Secrets…" }).click();
  await dialog.getByRole("button", { name: "New secret" }).click();
  const secondSecret = await readSecretEnd(dialog.getByLabel("Client secret"));
  const secretItems = dialog.getByRole("list", { name: "Secrets of Maps" }).getByRole("listitem");
  await secretItems.nth(1).waitFor();
  await inspect("admin-application-secrets");
  await secretItems.filter({ hasText: firstSecret }).getByRole("button").click();
  await page.getByRole("button", { name: "Delete secret" }).click();
  await secretItems.filter({ hasText: firstSecret }).waitFor({ state: "detached" });
  const remaining = await secretItems.locator(".mono").allTextContents();
  await dialog.getByRole("button", { name: "Close" }).click();
  return { remaining, second: secondSecret };
}
