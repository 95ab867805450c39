// A person creates a snapshot of a workspace, restores it and deletes it. node snapshots.mjs CHROMIUM URL TOKEN WORKSPACE OTHER TEMPLATE
// [FOLDER]
import { playInApp } from "./app-page.mjs";

const [file, url, token, workspace, otherWorkspace, template, folder] = process.argv.slice(2);

await playInApp({ file, url, token, folder }, async ({ page, result, toUrl, inspect }) => {
  const dialog = page.getByRole("dialog");
  const confirm = (name) => dialog.getByRole("button", { name, exact: true }).click();
  const row = page.getByRole("listitem").filter({ hasText: "Before the upgrade" });

  await page.goto(toUrl(`/workspaces/${workspace}/snapshots`));
  await page.getByText("No snapshots yet").waitFor();
  await inspect("snapshots-none");
  await page.getByRole("button", { name: "Create snapshot" }).click();
  await dialog.getByLabel("Name").fill("Before the upgrade");
  await confirm("Create snapshot");
  await row.getByText("Ready").waitFor();
  await inspect("snapshots");
  await row.getByRole("button", { name: "Restore" }).click();
  result.asks = await dialog.textContent();
  await confirm("Restore files");
  // Until then, the row behind the dialog shows the old state.
  await dialog.waitFor({ state: "hidden" });
  await page.getByRole("main").getByText("Running").first().waitFor();
  await row.getByText("Ready").waitFor();
  await row.getByRole("button", { name: "Delete Before the upgrade" }).click();
  await confirm("Delete snapshot");
  await page.getByText("No snapshots yet").waitFor();

  await page.getByRole("button", { name: "More for dev" }).click();
  await page.getByRole("button", { name: "Fork", exact: true }).click();
  await dialog.getByLabel("Workspaces", { exact: true }).fill("2");
  await dialog.getByLabel("Start the new workspaces").uncheck();
  await inspect("fork");
  await confirm("Fork workspace");
  await page.goto(toUrl("/workspaces"));
  for (const name of ["dev-fork", "dev-fork-2"])
    await page.getByRole("main").getByText(name, { exact: true }).first().waitFor();
  await inspect("forked");
  await page.goto(toUrl(`/workspaces/${workspace}/snapshots`));
  await page.getByText("No snapshots yet").waitFor();

  await page.request.post(toUrl(`/api/v2/workspaces/${workspace}/builds`), {
    data: { transition: "delete" },
    headers: { "Service-Session-Token": token },
  });
  await page.getByText("dev was deleted").or(page.getByText("This workspace was deleted")).first().waitFor();
  await page.goto(toUrl("/workspaces"));
  await page.getByRole("link", { name: "Trash" }).click();
  await page.getByRole("listitem").filter({ hasText: "admin/dev" }).waitFor();
  await inspect("trash");
  await page.getByRole("button", { name: "Restore dev" }).click();
  await page.getByText("The trash is empty").waitFor();
  await page.goto(toUrl(`/workspaces/${workspace}`));
  await page.getByRole("main").getByText("Stopped").first().waitFor();

  await page.goto(toUrl(`/workspaces/${otherWorkspace}/snapshots`));
  await page.getByText("not available for this template").waitFor();
  await page.goto(toUrl(`/templates/${template}/settings`));
  result.hint = await page
    .getByLabel("Snapshots kept on stop")
    .evaluate((field) => field.closest(".field").textContent);
});
