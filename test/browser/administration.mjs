// An administrator with the screen alone: adds a user, gives a role, adds a provider and a model, and tries it.
// node administration.mjs CHROMIUM URL TOKEN MODELS [FOLDER]
import { inApp } from "./app-page.mjs";

const [file, url, token, models, folder] = process.argv.slice(2);

await inApp({ file, url, token, folder }, async ({ page, result, at, look }) => {
  const dialog = page.getByRole("dialog");

  await page.goto(at("/admin"));
  await page.getByRole("button", { name: "Add user" }).click();
  await dialog.getByLabel("Username").fill("grace");
  await dialog.getByLabel("E-mail").fill("grace@example.com");
  await dialog.getByLabel("Password").fill("password1234");
  await look("admin-add-user");
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
  await look("admin-people");

  await page.getByRole("navigation", { name: "Administration" }).getByRole("link", { name: "Models" }).click();
  await page.getByText("No models yet").waitFor();
  await look("admin-models-empty");
  await page.getByRole("button", { name: "Add provider" }).click();
  await dialog.getByLabel("Provider").selectOption("openai-compat");
  await dialog.getByLabel("Name").fill("Ollama");
  await dialog.getByLabel("Address").fill(`${models}/v1`);
  await dialog.getByRole("button", { name: "Add provider" }).click();
  await dialog.getByText("Add a model of Ollama").waitFor();
  await dialog.getByLabel("Model").fill("qwen3-coder:30b");
  await dialog.getByRole("button", { name: "Add and try model" }).click();
  await page.getByText("qwen3-coder:30b answers: “Hello there.”").waitFor();
  await look("admin-models");
});
