// The pages of a template that others change: what they promote, archive and delete appears on an idle page, and unsaved input stays. node
// template-conflict.mjs CHROMIUM URL TOKEN TEMPLATE FIRST SECOND [FOLDER]
import { playInApp } from "./app-page.mjs";

const [file, url, token, template, firstVersion, secondVersion, folder] = process.argv.slice(2);

await playInApp({ file, url, token, folder }, async ({ page, result, toUrl, inspect }) => {
  const headers = { "service-session-token": token, "content-type": "application/json" };
  /** A change by someone else, not through the page. */
  const requestAsOther = async (method, path, body) => {
    const response = await fetch(toUrl(`/api/v2${path}`), { method, headers, body: body && JSON.stringify(body) });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status}`);
  };
  const promote = (id) => requestAsOther("PATCH", `/templates/${template}/versions`, { id });
  const getItem = (name) => page.getByRole("listitem").filter({ hasText: name });

  await page.goto(toUrl(`/templates/${template}/versions`));
  await getItem("one").getByText("Active").waitFor();
  await promote(secondVersion);
  await getItem("two").getByText("Active").waitFor();
  await requestAsOther("POST", `/templateversions/${firstVersion}/archive`);
  await getItem("one").getByText("Archived").waitFor();
  await requestAsOther("POST", `/templateversions/${firstVersion}/unarchive`);
  await getItem("one").getByText("Archived").waitFor({ state: "detached" });

  // In the editor, changes stay with their version until the person moves them.
  await page.goto(toUrl(`/templates/${template}/files`));
  await page.getByRole("textbox", { name: "template.yaml" }).click();
  await page.keyboard.press("Control+End");
  await page.keyboard.type("# Typed here.\n");
  await page.getByText("1 file changed since two").waitFor();
  await promote(firstVersion);
  await page
    .getByText(/one became the active version while you were editing\. Your changes are based on two/)
    .waitFor();
  await page.keyboard.type("# And after.\n");
  result.draftCount = await page.getByText("# Typed here.").count();
  await inspect("template-other-active");
  await page.getByRole("button", { name: "Apply my changes to one" }).click();
  await page.getByText("1 file changed since one").waitFor();
  await page.getByText("# And after.").waitFor();
  // Without changes, the newest version is shown.
  await page.getByRole("button", { name: "Discard changes" }).click();
  await promote(secondVersion);
  await page.getByText("Version two").waitFor();

  // Untouched settings are updated; unsaved input stays.
  await page.goto(toUrl(`/templates/${template}/settings`));
  const displayName = page.getByLabel("Display name");
  await displayName.waitFor();
  await requestAsOther("PATCH", `/templates/${template}`, { display_name: "Theirs" });
  await page.waitForFunction(() => document.querySelector("input[name=display_name]")?.value === "Theirs");
  await displayName.fill("Mine");
  await requestAsOther("PATCH", `/templates/${template}`, { description: "Theirs, too." });
  await page.getByRole("heading", { name: "Theirs" }).waitFor();
  await promote(firstVersion);
  await page.waitForFunction(() => performance.getEntriesByType("resource").length > 0);
  result.typed = await displayName.inputValue();
  await page.getByRole("button", { name: "Save template" }).click();
  await page.getByText("Template saved").waitFor();

  await requestAsOther("DELETE", `/templates/${template}`);
  await page.getByText("Template not found").waitFor();
  await page.getByRole("link", { name: "All templates" }).waitFor();
  await inspect("template-gone");
});
