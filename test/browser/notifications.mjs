// A person hears of something, looks at it, and chooses what to hear of. node notifications.mjs CHROMIUM URL EMAIL PASSWORD [FOLDER]
import { lookAt, openPage } from "./app-page.mjs";
import { inChromium } from "./chromium.mjs";

const [file, url, email, password, folder] = process.argv.slice(2);
const at = (path) => new URL(path, url).href;

await inChromium(file, { viewport: { width: 1440, height: 900 } }, async (_blank, context) => {
  const wrong = [];
  const page = await openPage(context, wrong);
  const result = { wrong };
  const look = async (name) => wrong.push(...(await lookAt(page, `notifications-${name}`, folder)));
  const bell = page.getByRole("navigation", { name: "Main" }).getByRole("button", { name: /Notifications/ });

  await page.goto(at("/workspaces"));
  await page.getByLabel("E-mail").fill(email);
  await page.getByLabel("Password").fill(password);
  await page.keyboard.press("Enter");
  await bell.waitFor();
  await bell.click();
  const panel = page.getByRole("dialog", { name: "Notifications" });
  await panel.getByText("Nothing yet").waitFor();
  await look("empty");
  await panel.getByRole("link", { name: "Choose what to hear of" }).click();
  await page.getByRole("heading", { name: "Workspace events" }).waitFor();
  await look("choose");
  await page.getByRole("button", { name: "Send me a test" }).click();
  // Told without being asked for.
  await bell.getByText("1").waitFor();
  await bell.click();
  await panel.getByRole("link", { name: "A test notification" }).waitFor();
  await look("one");
  await panel.getByRole("button", { name: /^Mark read/ }).click();
  await panel.getByRole("button", { name: /^Mark unread/ }).waitFor();
  result.left = await bell.locator(".count").count();
  await panel.getByRole("button", { name: /^Mark unread/ }).click();
  await panel.getByRole("link", { name: "A test notification" }).click();
  await page.waitForURL(at("/"));
  await page.goto(at("/account/notifications"));
  await page.getByRole("switch", { name: /^Test/ }).click();
  await page.waitForResponse((answer) => answer.url().endsWith("/notifications/preferences"));
  await page.reload();
  result.checked = await page.getByRole("switch", { name: /^Test/ }).isChecked();
  return result;
});
