// A template is uploaded as an archive, gets a version, and is changed, all in the browser. node templates.mjs CHROMIUM URL TOKEN ARCHIVE
// FOLDER_OF_TEMPLATE [FOLDER]
import { playInApp } from "./app-page.mjs";

const [file, url, token, broken, template, folder] = process.argv.slice(2);

await playInApp({ file, url, token, folder }, async ({ page, result, toUrl, inspect }) => {
  const dialog = page.getByRole("dialog");
  const tabs = page.getByRole("navigation", { name: "Template sections" });

  await page.goto(toUrl("/templates"));
  await page.getByText("No workspaces yet.").first().waitFor();
  await page.getByRole("button", { name: "Import template" }).click();
  await dialog.getByLabel("Name").fill("broken");
  await dialog.getByLabel("Archive").setInputFiles(broken);
  await inspect("template-import");
  await dialog.getByRole("button", { name: "Import" }).click();
  result.refused = await dialog.getByRole("alert").textContent();
  await dialog.getByRole("button", { name: /Cancel|Close/ }).click();

  await page.getByRole("button", { name: "Import template" }).click();
  await dialog.getByLabel("Name").fill("sandbox");
  await dialog.getByLabel("Folder", { exact: true }).setInputFiles(template);
  await dialog.getByRole("button", { name: "Import" }).click();
  await page.getByRole("heading", { name: "Sandbox for trying" }).waitFor();
  result.path = new URL(page.url()).pathname;
  await inspect("template-overview");

  await tabs.getByRole("link", { name: "Versions" }).click();
  await page.getByRole("button", { name: "New version" }).click();
  await dialog.getByLabel("Message").fill("Says more.");
  await dialog.getByLabel("Folder", { exact: true }).setInputFiles(template);
  await dialog.getByRole("button", { name: "Import" }).click();
  const secondVersion = page.getByRole("listitem").filter({ hasText: "Says more." });
  await secondVersion.getByRole("button", { name: /^More for/ }).click();
  await page.getByRole("button", { name: "Promote" }).click();
  await secondVersion.getByText("Active").waitFor();
  await inspect("template-versions");

  await tabs.getByRole("link", { name: "Settings" }).click();
  await page.getByLabel("Display name").fill("Sandbox");
  await page.getByLabel("Autostop after (hours)").fill("8");
  await page.getByLabel("Deprecation message").fill("There is a better one.");
  // Someone else changes another field, and one of the edited fields.
  await page.evaluate(() =>
    fetch(`/api/v2${location.pathname.replace("/settings", "")}`, {
      method: "PATCH",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        display_name: "Sandpit",
        description: "By **another**, see [the docs](https://docs.example.com)",
      }),
    }),
  );
  await page.getByRole("button", { name: "Save template" }).click();
  await page.getByRole("alert").filter({ hasText: 'display name is now "Sandpit"' }).waitFor();
  await page.getByRole("button", { name: "Save template" }).click();
  await page.getByText("Template saved").waitFor();
  await page.getByText("Deprecated", { exact: true }).waitFor();
  await inspect("template-settings");
  const templates = await page.evaluate(() => fetch("/api/v2/templates").then((answer) => answer.json()));
  result.saved = templates.find(({ name }) => name === "sandbox");

  // Descriptions are Markdown.
  await tabs.getByRole("link", { name: "Overview" }).click();
  await page.locator("p strong").getByText("another").waitFor();
  result.link = await page.getByRole("link", { name: "the docs" }).getAttribute("href");
  await tabs.getByRole("link", { name: "Settings" }).click();

  await page.getByRole("button", { name: "Delete…" }).click();
  await dialog.getByLabel(/^Type sandbox/).fill("sandbox");
  await dialog.getByRole("button", { name: "Delete template" }).click();
  await page.waitForURL("**/templates");
  await page.getByText("sandbox deleted").waitFor();
  await inspect("template-list");
});
