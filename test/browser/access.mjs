// An organization administrator creates a group, and gives it a template; a group member then manages that template. node access.mjs
// CHROMIUM URL TOKEN EMAIL PASSWORD ORGANIZATION TEMPLATE [FOLDER]
import { openPage, playInApp, signIn } from "./app-page.mjs";

const [file, url, token, email, password, organization, template, folder] = process.argv.slice(2);

await playInApp({ file, url, token, folder }, async ({ page, context, result, toUrl, inspect }) => {
  const dialog = page.getByRole("dialog");
  const confirm = (name) => dialog.getByRole("button", { name, exact: true }).click();
  const group = page.getByRole("listitem").filter({ hasText: "The Crew" });
  const openMenuItem = async (item) => {
    await group.getByRole("button", { name: "More for The Crew" }).click();
    await page.getByRole("button", { name: item }).click();
  };

  await page.goto(toUrl(`/admin/organizations/${organization}`));
  await page.getByRole("button", { name: "Add group" }).click();
  await dialog.getByLabel("Name", { exact: true }).fill("everyone");
  await confirm("Add group");
  result.refused = await dialog.locator(".error, [role=alert]").first().textContent();
  await dialog.getByLabel("Name", { exact: true }).fill("crew");
  await dialog.getByLabel("Display name").fill("The Crew");
  await confirm("Add group");
  await group.getByText("0 members").waitFor();
  await openMenuItem("Edit…");
  await dialog.getByLabel("Allowance (credits per day)").fill("12");
  await inspect("group-change");
  await confirm("Save group");
  await group.getByText("12 credits per day").waitFor();
  await openMenuItem("Members…");
  await dialog.getByLabel("Username").fill("not-a-user");
  await confirm("Add to group");
  result.unknown = await dialog.locator(".error, [role=alert]").first().textContent();
  await dialog.getByLabel("Username").fill("grace");
  await confirm("Add to group");
  await group.getByText("1 member").waitFor();
  await openMenuItem("Members…");
  await dialog.getByRole("button", { name: "Remove grace" }).waitFor();
  await inspect("group-members");
  await confirm("Cancel");
  await inspect("organization-groups");

  const memberPage = await openPage(
    await context.browser().newContext({ viewport: { width: 1440, height: 900 } }),
    result.problems,
  );
  await signIn(memberPage, toUrl(`/templates/${template}`), email, password);
  const tabs = memberPage.getByRole("navigation", { name: "Template sections" });
  await tabs.getByRole("link", { name: "Versions" }).waitFor();
  result.before = await tabs.getByRole("link").allTextContents();

  await page.goto(toUrl(`/templates/${template}/access`));
  await page.getByRole("button", { name: /^Remove access for Everyone in/ }).click();
  await page.getByText("Only template administrators can see this template.").waitFor();
  await memberPage.reload();
  await memberPage.getByText("Template not found").waitFor();
  result.hidden = await memberPage.evaluate(
    (id) => fetch(`/api/v2/templates/${id}`).then(({ status }) => status),
    template,
  );
  await page.getByLabel("User or group").selectOption({ label: "The Crew" });
  await page.getByText("Manage").click();
  await page.getByRole("button", { name: "Give access" }).click();
  await page.getByLabel("Access of The Crew").waitFor();
  result.chosen = await page.getByLabel("User or group").inputValue();
  await inspect("template-access");

  await memberPage.reload();
  await tabs.getByRole("link", { name: "Settings" }).waitFor();
  result.after = await tabs.getByRole("link").allTextContents();
  await tabs.getByRole("link", { name: "Access" }).click();
  await memberPage.getByLabel("Access of The Crew").waitFor();
  await inspect("template-access-by-group", memberPage);

  await page.goto(toUrl(`/admin/organizations/${organization}`));
  await openMenuItem("Delete…");
  await confirm("Delete group");
  await group.waitFor({ state: "detached" });
});
