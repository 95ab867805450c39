// The pages of a template that others change: what they promote, archive and delete appears on an idle page, and unsaved input stays. node
// template-conflict.mjs CHROMIUM URL TOKEN TEMPLATE FIRST SECOND [FOLDER]
import { playInApp } from "./app-page.mjs";

const [file, url, token, template, first, second, folder] = process.argv.slice(2);

await playInApp({ file, url, token, folder }, async ({ page, result, at, look }) => {
  const headers = { "service-session-token": token, "content-type": "application/json" };
  /** A change by someone else, not through the page. */
  const other = async (method, path, body) => {
    const answer = await fetch(at(`/api/v2${path}`), { method, headers, body: body && JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status}`);
  };
  const promote = (id) => other("PATCH", `/templates/${template}/versions`, { id });
  const named = (name) => page.getByRole("listitem").filter({ hasText: name });

  await page.goto(at(`/templates/${template}/versions`));
  await named("one").getByText("Active").waitFor();
  await promote(second);
  await named("two").getByText("Active").waitFor();
  await other("POST", `/templateversions/${first}/archive`);
  await named("one").getByText("Archived").waitFor();
  await other("POST", `/templateversions/${first}/unarchive`);
  await named("one").getByText("Archived").waitFor({ state: "detached" });

  // In the editor, changes stay with their version until the person moves them.
  await page.goto(at(`/templates/${template}/files`));
  await page.getByRole("textbox", { name: "template.yaml" }).click();
  await page.keyboard.press("Control+End");
  await page.keyboard.type("# Typed here.\n");
  await page.getByText("1 file changed since two").waitFor();
  await promote(first);
  await page
    .getByText(/one became the active version while you were editing\. Your changes are based on two/)
    .waitFor();
  await page.keyboard.type("# And after.\n");
  result.kept = await page.getByText("# Typed here.").count();
  await look("template-other-active");
  await page.getByRole("button", { name: "Apply my changes to one" }).click();
  await page.getByText("1 file changed since one").waitFor();
  await page.getByText("# And after.").waitFor();
  // Without changes, the newest version is shown.
  await page.getByRole("button", { name: "Discard changes" }).click();
  await promote(second);
  await page.getByText("Version two").waitFor();

  // Untouched settings are updated; unsaved input stays.
  await page.goto(at(`/templates/${template}/settings`));
  const shown = page.getByLabel("Display name");
  await shown.waitFor();
  await other("PATCH", `/templates/${template}`, { display_name: "Theirs" });
  await page.waitForFunction(() => document.querySelector("input[name=display_name]")?.value === "Theirs");
  await shown.fill("Mine");
  await other("PATCH", `/templates/${template}`, { description: "Theirs, too." });
  await page.getByRole("heading", { name: "Theirs" }).waitFor();
  await promote(first);
  await page.waitForFunction(() => performance.getEntriesByType("resource").length > 0);
  result.typed = await shown.inputValue();
  await page.getByRole("button", { name: "Save template" }).click();
  await page.getByText("Template saved").waitFor();

  await other("DELETE", `/templates/${template}`);
  await page.getByText("Template not found").waitFor();
  await page.getByRole("link", { name: "All templates" }).waitFor();
  await look("template-gone");
});
