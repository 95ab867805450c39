// A lead with an empty server invites three people; each joins by their link and has a running workspace. Counts the clicks of all four.
// node first-hour-lead.mjs CHROMIUM SETUP [FOLDER]
import { openPage } from "./app-page.mjs";
import { playInChromium } from "./chromium.mjs";
import { countPresses, setUpServer, takeScreenshot } from "./presses.mjs";

const [file, setup, folder] = process.argv.slice(2);
const LEAD = { email: "lead@example.com", username: "lead", password: "four quiet harbours at night" };
const TEAM = ["Ada Lovelace <ada@example.com>", "Grace Hopper <grace@example.com>", "jo@example.com"];

await playInChromium(file, { viewport: { width: 1440, height: 900 } }, async (_blank, context) => {
  const problems = [];
  const result = { problems };
  const presses = countPresses();
  const takePicture = (anyPage, name) => takeScreenshot(anyPage, folder, `lead-${name}`);

  const lead = await openPage(context, problems);
  await setUpServer(lead, setup, LEAD);
  await presses.press(lead.getByRole("button", { name: "Create user and sign in" }));
  await lead.getByRole("heading", { name: "Welcome, lead" }).waitFor();
  await lead.getByRole("link", { name: "Create workspace" }).first().waitFor();
  await takePicture(lead, "home");
  await presses.press(lead.getByRole("link", { name: "Invite people" }));
  await presses.press(lead.getByRole("button", { name: "Invite people" }));
  const dialog = lead.getByRole("dialog");
  await dialog.getByLabel("Email addresses").fill(TEAM.join("\n"));
  await takePicture(lead, "invite");
  await presses.press(dialog.getByRole("button", { name: "Create links" }));
  await lead.getByRole("dialog", { name: "3 people invited" }).waitFor();
  result.warnings = await dialog.getByText("No template is available").count();
  await takePicture(lead, "links");
  await presses.press(dialog.getByRole("button", { name: "Copy all links" }));
  const links = await dialog.locator(".sub.mono").allTextContents();

  // Each on their own machine, with the link that the lead has copied.
  for (const [index, link] of links.entries()) {
    const machine = await context.browser().newContext({ viewport: { width: 1440, height: 900 } });
    const page = await openPage(machine, problems);
    await page.goto(link);
    await page.getByLabel("Password").fill("a-long-enough-secret");
    await takePicture(page, `door-${index + 1}`);
    await presses.press(page.getByRole("button", { name: "Create account" }));
    await presses.press(page.getByRole("link", { name: "Create workspace" }).first());
    await presses.press(page.getByRole("button", { name: "Create", exact: true }));
    await page.waitForURL(/\/workspaces\/[0-9a-f-]{36}/);
    await page.getByText("Running", { exact: true }).first().waitFor();
    await page.getByRole("link", { name: "Terminal", exact: true }).first().waitFor();
    await takePicture(page, `workspace-${index + 1}`);
    await machine.close();
  }
  result.presses = presses.count();
  return result;
});
process.exit(0);
