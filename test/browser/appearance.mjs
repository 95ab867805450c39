// A deployment with its own name, logo and announcements, and a person whose appearance settings apply in every browser. node
// appearance.mjs CHROMIUM URL EMAIL PASSWORD [FOLDER]
import { checkPage, openPage, signIn } from "./app-page.mjs";
import { playInChromium } from "./chromium.mjs";

const [file, url, email, password, folder] = process.argv.slice(2);
const toUrl = (path) => new URL(path, url).href;
const LOGO = `data:image/svg+xml;base64,${btoa('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><circle cx="4" cy="4" r="4" fill="teal"/></svg>')}`;

await playInChromium(file, { viewport: { width: 1440, height: 900 } }, async (_blank, context) => {
  const problems = [];
  const page = await openPage(context, problems);
  const result = { problems };
  const dialog = page.getByRole("dialog");
  const inspect = async (name) => problems.push(...(await checkPage(page, `face-${name}`, folder)));
  const announcement = page.getByRole("note", { name: "Announcement" });

  await signIn(page, toUrl("/admin/appearance"), email, password);
  await page.getByText("No announcements").waitFor();
  await page.getByRole("button", { name: "Edit", exact: true }).click();
  await dialog.getByLabel("Name").fill("Harbour & <Sons>");
  await dialog.getByLabel("Logo URL").fill("javascript:alert(1)");
  await dialog.getByRole("button", { name: "Save" }).click();
  result.refused = await dialog.locator(".error").textContent();
  await dialog.getByLabel("Logo URL").fill(LOGO);
  await dialog.getByRole("button", { name: "Save" }).click();
  await page.locator(".brand img").waitFor();
  for (const [message, colour] of [
    ["Maintenance on Friday at 18:00 UTC.", "#1f6feb"],
    ["The docks are open.", ""],
  ]) {
    await page.getByRole("button", { name: "Add announcement" }).click();
    await dialog.getByLabel("Message").fill(message);
    await dialog.getByLabel("Color").fill(colour);
    await dialog.getByRole("button", { name: "Add announcement" }).click();
    await dialog.waitFor({ state: "detached" });
    await announcement.getByText(message).waitFor();
  }
  await inspect("admin");

  // The announcement is dismissed only in this browser.
  await announcement.filter({ hasText: "Maintenance" }).getByRole("button").click();
  await page.goto(toUrl("/account"));
  await announcement.getByText("The docks are open.").waitFor();
  result.announced = await announcement.count();

  // Theme and font are stored for the account.
  await page.getByText("Dark", { exact: true }).click();
  await Promise.all([
    page.waitForResponse(async (answer) => (await answer.request().postData())?.includes("fira-code") ?? false),
    page.getByLabel("Terminal font").selectOption("fira-code"),
  ]);
  await inspect("profile");

  // Another browser: shows the name before sign-in, and the theme in the first paint of the first page.
  await page.evaluate(() => localStorage.clear());
  await context.clearCookies();
  await page.close();
  const otherPage = await openPage(context, problems);
  await otherPage.goto(toUrl("/login"), { waitUntil: "commit" });
  result.title = await otherPage.title();
  await otherPage.getByRole("heading", { name: "Sign in to Harbour & <Sons>" }).waitFor();
  result.logo = await otherPage.locator("img.logo").evaluate((picture) => picture.naturalWidth > 0);
  problems.push(...(await checkPage(otherPage, "face-login", folder)));
  await otherPage.addInitScript(() => {
    // The first frame in which the page shows something.
    const recordFirstTheme = () => {
      if (!document.querySelector(".app")) requestAnimationFrame(recordFirstTheme);
      else window.firstTheme = document.documentElement.dataset.theme;
    };
    requestAnimationFrame(recordFirstTheme);
  });
  await signIn(otherPage, toUrl("/login"), email, password);
  await otherPage.waitForURL(toUrl("/"));
  await otherPage.getByRole("navigation", { name: "Main" }).getByText("Harbour & <Sons>").waitFor();
  await otherPage.waitForFunction(() => window.firstTheme !== undefined);
  result.theme = await otherPage.evaluate(() => window.firstTheme);
  await otherPage.waitForFunction(() => localStorage.getItem("terminal-font") === "fira-code");
  result.manifest = await otherPage.evaluate(async () => (await (await fetch("/manifest.webmanifest")).json()).name);
  await otherPage.getByRole("note", { name: "Announcement" }).nth(1).waitFor();
  return result;
});
process.exit(0);
