// Edits a template in the browser: changes files, saves, tries and promotes a version, compares versions, changes variables, and uses an
// example with one click. node template-editor.mjs CHROMIUM URL TOKEN TEMPLATE HAS_TERRAFORM [FOLDER]
import { openPage, playInApp } from "./app-page.mjs";

const [file, url, token, template, hasTerraform, folder] = process.argv.slice(2);

await playInApp({ file, url, token, folder }, async ({ page, context, result, toUrl, inspect }) => {
  const dialog = page.getByRole("dialog");
  const tabs = page.getByRole("navigation", { name: "Template sections" });

  await page.goto(toUrl(`/templates/${template}/files`));
  const code = page.getByRole("textbox", { name: "template.yaml" });
  await code.click();
  await page.keyboard.press("Control+End");
  await page.keyboard.type("# Said in the browser.\n");
  await page.getByText("1 file changed since").waitFor();
  await page.getByRole("button", { name: "Add file" }).click();
  await dialog.getByLabel("Path").fill("../out");
  result.badPath = await dialog.getByText("Enter a path inside").count();
  await dialog.getByLabel("Path").fill("scripts/start.sh");
  await dialog.getByRole("button", { name: "Add file" }).click();
  await page.getByRole("textbox", { name: "scripts/start.sh" }).click();
  await page.keyboard.type("echo hello # from here");
  await inspect("template-files");

  // Changes survive a reload.
  await page.reload();
  await page.getByText("2 files changed since").waitFor();
  // Another tab continues with them automatically.
  const tab = await openPage(context, result.problems);
  await tab.goto(page.url());
  await tab.getByText("2 files changed since").waitFor();
  await tab.getByRole("textbox", { name: "template.yaml" }).click();
  await tab.keyboard.press("Control+End");
  await tab.keyboard.type("# Said in another tab.\n");
  await page.reload();
  await page.getByText("2 files changed since").waitFor();
  await page.getByText("# Said in the browser.").waitFor();
  result.otherTabText = await page.getByText("# Said in another tab.").count();
  await page.getByRole("textbox", { name: "template.yaml" }).click();
  await page.keyboard.press("Control+s");
  await dialog.getByLabel("Message").fill("Says where it was said.");
  await dialog.getByRole("region", { name: "Diff of scripts/start.sh" }).waitFor();
  await inspect("template-save");
  await dialog.getByRole("button", { name: "Save and import" }).click();
  await dialog.getByRole("button", { name: "Dry run" }).click();
  await dialog.getByText("Dry run succeeded.").waitFor();
  await inspect("template-trial");
  await dialog.getByRole("button", { name: "Promote" }).click();
  await page.getByText(/New workspaces use/).waitFor();
  await page.getByRole("button", { name: "scripts/start.sh" }).waitFor();
  // The draft ends once the new version is loaded.
  await page.getByText("changed since").waitFor({ state: "detached" });
  result.draftCount = await page.getByText("changed since").count();

  // A person who saves an outdated draft gets a warning.
  await tab.getByRole("textbox", { name: "template.yaml" }).click();
  await tab.keyboard.press("Control+s");
  await tab.getByRole("alert").filter({ hasText: "became the active version" }).waitFor();
  await tab.close();

  await tabs.getByRole("link", { name: "Versions" }).click();
  const newest = page.getByRole("listitem").filter({ hasText: "Says where it was said." });
  await newest.getByText("Active").waitFor();
  await newest.getByRole("button", { name: /^More for/ }).click();
  await page.getByRole("link", { name: "Compare with previous version" }).click();
  const diff = page.getByRole("region", { name: "Diff of template.yaml" });
  result.diff = await diff.textContent();
  await page.getByRole("region", { name: "scripts/start.sh", exact: true }).getByText("new").waitFor();
  await inspect("template-compare");

  await tabs.getByRole("link", { name: "Variables" }).click();
  await page.getByLabel("region").fill("south");
  await inspect("template-variables");
  await page.getByRole("button", { name: "Save as new version" }).click();
  await dialog.getByRole("button", { name: "Promote" }).click();
  await page.waitForFunction(() => document.querySelector("dialog[open]") === null);
  const variables = await page.evaluate(
    (id) =>
      fetch(`/api/v2/templates/${id}`)
        .then((answer) => answer.json())
        .then(({ active_version_id }) => fetch(`/api/v2/templateversions/${active_version_id}/variables`))
        .then((answer) => answer.json()),
    template,
  );
  result.variables = variables.map(({ name, value }) => [name, value]);

  await page.goto(toUrl("/templates"));
  await inspect("template-examples");
  result.localButtons = await page.getByRole("button", { name: "Use Local" }).count();
  await page.getByRole("button", { name: "Use Blank", exact: true }).click();
  await page.waitForURL("**/new?template=blank");
  const blankOption = page.getByRole("radio", { name: /Blank/ });
  await blankOption.waitFor({ state: "attached" });
  result.isBlankSelected = await blankOption.isChecked();
  await inspect("template-started");
  await page.goto(toUrl("/templates"));
  await page.getByRole("link", { name: "Create workspace from Blank", exact: true }).waitFor();
  result.blankButtons = await page.getByRole("button", { name: "Use Blank", exact: true }).count();
  await page.getByRole("button", { name: "Use Blank in Docker" }).waitFor();
  if (hasTerraform === "true") {
    await page.getByRole("button", { name: "Use Hetzner Cloud" }).click();
    await page.getByRole("dialog", { name: "Values for Hetzner Cloud" }).getByLabel("hcloud_token").waitFor();
    await inspect("template-values");
  }
});
