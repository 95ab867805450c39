// A lead tries the sign-in provider and invites colleagues; one of them joins on a phone and has a workspace after two clicks. node
// invite.mjs CHROMIUM URL EMAIL PASSWORD [FOLDER]
import { checkPage, openPage, signIn } from "./app-page.mjs";
import { askTest } from "./ask.mjs";
import { playInChromium } from "./chromium.mjs";

const [file, url, email, password, folder] = process.argv.slice(2);
const toUrl = (path) => new URL(path, url).href;
const PEOPLE = "Name,Email\nAda Lovelace,ada@example.com\nGrace Hopper <grace@example.com>; jo@example.com";

await playInChromium(file, { viewport: { width: 1440, height: 900 } }, async (_blank, context) => {
  const problems = [];
  const result = { problems };
  const inspect = async (page, name) => problems.push(...(await checkPage(page, `invite-${name}`, folder)));

  const lead = await openPage(context, problems);
  await signIn(lead, toUrl("/admin/sign-in"), email, password);
  await lead.getByRole("button", { name: "Test sign-in" }).click();
  await lead.getByText("Signing in creates the account tia.").waitFor();
  result.hashAfterTest = new URL(lead.url()).hash;
  result.remark = await lead.getByText("does not match").textContent();
  await lead.getByText("Claims from Acme").click();
  await inspect(lead, "trial");

  await lead.goto(toUrl("/admin/people"));
  await lead.getByRole("button", { name: "Invite people" }).click();
  const dialog = lead.getByRole("dialog");
  result.noMailReason = await dialog.getByText("can't send email").textContent();
  await dialog.getByLabel("Email addresses").fill("not an address");
  await dialog.getByRole("button", { name: "Create links" }).click();
  result.refused = await dialog.getByRole("alert").textContent();
  await dialog.getByLabel("Email addresses").fill(PEOPLE);
  await inspect(lead, "form");
  await dialog.getByRole("button", { name: "Create links" }).click();
  await lead.getByRole("dialog", { name: "3 people invited" }).waitFor();
  result.warning = await dialog.getByText("No template is available").textContent();
  await dialog.getByText("ada@example.com").waitFor();
  const links = await dialog.locator(".sub.mono").allTextContents();
  await inspect(lead, "links");
  await lead.keyboard.press("Escape");
  await lead.getByRole("heading", { name: "Pending invitations" }).waitFor();
  await lead.getByRole("button", { name: "More for jo@example.com" }).click();
  await lead.getByRole("button", { name: "Revoke…" }).click();
  await dialog.getByRole("button", { name: "Revoke invitation" }).click();
  await lead.getByText("Invitation for jo@example.com revoked").waitFor();
  await inspect(lead, "pending");
  await lead.close();

  // Another person, on a phone.
  await context.clearCookies();
  const phone = await openPage(context, problems);
  await phone.setViewportSize({ width: 390, height: 844 });
  await phone.goto(toUrl("/login"));
  await phone.evaluate(() => localStorage.clear());
  const link = links.find((_, index) => index === 0) ?? "";
  await phone.goto(link);
  await phone.getByRole("heading", { name: "Welcome, Ada Lovelace" }).waitFor();
  result.providers = await phone.getByRole("button", { name: "Continue with Acme" }).count();
  await inspect(phone, "door");
  await phone.getByLabel("Password").fill("a-long-enough-secret");
  await phone.getByRole("button", { name: "Create account" }).click();
  await phone.getByText("No templates available").waitFor();
  result.contact = await phone.getByText("Ask admin").textContent();
  await inspect(phone, "nothing");
  await phone.goto(toUrl("/templates"));
  await phone.getByText("No templates available").waitFor();
  await phone.goto(toUrl("/"));
  await askTest("template");
  await phone.reload();
  await phone.getByRole("heading", { name: "Welcome, Ada Lovelace" }).waitFor();
  await inspect(phone, "welcome");
  await phone.getByRole("link", { name: "Create workspace" }).click();
  const create = phone.getByRole("button", { name: /^Create( workspace)?$/ });
  await create.waitFor();
  await inspect(phone, "create");
  await create.click();
  await phone.waitForURL(/\/workspaces\/[0-9a-f-]{36}/);
  // The link worked only once.
  await phone.goto(link);
  await phone.reload();
  result.secondUse = await phone.getByRole("alert").filter({ hasText: /\S/ }).first().textContent();
  await inspect(phone, "used");
  return result;
});

// The stream on which the test answers stays open.
process.exit(0);
