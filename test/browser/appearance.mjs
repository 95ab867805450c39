// A deployment with its own name, logo and announcements, and a person whose appearance settings apply in every browser. node
// appearance.mjs CHROMIUM URL EMAIL PASSWORD [FOLDER]
import { checkPage, openPage, signIn } from "./app-page.mjs";
import { playInChromium } from "./chromium.mjs";

const [file, url, email, password, folder] = process.argv.slice(2);
const at = (path) => new URL(path, url).href;
const LOGO = `data:image/svg+xml;base64,${btoa('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><circle cx="4" cy="4" r="4" fill="teal"/></svg>')}`;

await playInChromium(file, { viewport: { width: 1440, height: 900 } }, async (_blank, context) => {
  const problems = [];
  const page = await openPage(context, problems);
  const result = { wrong: problems };
  const dialog = page.getByRole("dialog");
  const look = async (name) => problems.push(...(await checkPage(page, `face-${name}`, folder)));
  const notified = page.getByRole("note", { name: "Announcement" });

  await signIn(page, at("/admin/appearance"), email, password);
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
    await notified.getByText(message).waitFor();
  }
  await look("admin");

  // The announcement is dismissed only in this browser.
  await notified.filter({ hasText: "Maintenance" }).getByRole("button").click();
  await page.goto(at("/account"));
  await notified.getByText("The docks are open.").waitFor();
  result.announced = await notified.count();

  // Theme and font are stored for the account.
  await page.getByText("Dark", { exact: true }).click();
  await Promise.all([
    page.waitForResponse(async (answer) => (await answer.request().postData())?.includes("fira-code") ?? false),
    page.getByLabel("Terminal font").selectOption("fira-code"),
  ]);
  await look("profile");

  // Another browser: shows the name before sign-in, and the theme in the first paint of the first page.
  await page.evaluate(() => localStorage.clear());
  await context.clearCookies();
  await page.close();
  const second = await openPage(context, problems);
  await second.goto(at("/login"), { waitUntil: "commit" });
  result.title = await second.title();
  await second.getByRole("heading", { name: "Sign in to Harbour & <Sons>" }).waitFor();
  result.logo = await second.locator("img.logo").evaluate((picture) => picture.naturalWidth > 0);
  problems.push(...(await checkPage(second, "face-login", folder)));
  await second.addInitScript(() => {
    // The first frame in which the page shows something.
    const seen = () => {
      if (!document.querySelector(".app")) requestAnimationFrame(seen);
      else window.firstTheme = document.documentElement.dataset.theme;
    };
    requestAnimationFrame(seen);
  });
  await signIn(second, at("/login"), email, password);
  await second.waitForURL(at("/"));
  await second.getByRole("navigation", { name: "Main" }).getByText("Harbour & <Sons>").waitFor();
  await second.waitForFunction(() => window.firstTheme !== undefined);
  result.theme = await second.evaluate(() => window.firstTheme);
  await second.waitForFunction(() => localStorage.getItem("terminal-font") === "fira-code");
  result.manifest = await second.evaluate(async () => (await (await fetch("/manifest.webmanifest")).json()).name);
  await second.getByRole("note", { name: "Announcement" }).nth(1).waitFor();
  return result;
});
process.exit(0);
