// A person links accounts by signing in at the provider and by a device code, unlinks one, and declines access. With a folder, screenshots
// are written there. node external-auth.mjs CHROMIUM SERVER PROVIDER EMAIL PASSWORD [FOLDER [light|dark [WIDTH]]]
import { playInChromium } from "./chromium.mjs";

const [file, server, provider, email, password, folder, colorScheme = "light", width = "1100"] = process.argv.slice(2);
const viewport = { width: Number(width), height: 800 };

await playInChromium(file, { colorScheme, viewport }, async (page) => {
  const takePicture = async (name) => {
    if (folder) await page.screenshot({ path: `${folder}/${name}-${colorScheme}-${width}.png`, fullPage: true });
  };
  const row = (name) => page.getByRole("row").filter({ hasText: name });
  const result = {};

  await page.goto(new URL("/settings/external-auth", server).href);
  await page.waitForURL("**/login?*");
  await page.getByLabel("Email").fill(email);
  await page.getByLabel("Password").fill(password);
  await page.keyboard.press("Enter");
  await page.waitForURL("**/settings/external-auth");
  await row("Git of web").getByText("Not linked").waitFor();
  result.key = await page.locator("#key").filter({ hasText: "ssh-ed25519" }).textContent();
  await takePicture("accounts");

  // By keyboard only.
  await page.getByRole("link", { name: "Link Git of web" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Sign in at Git of web" }).waitFor();
  await takePicture("link");
  await page.getByRole("button", { name: "Sign in at Git of web" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("Your account at Git of web is linked.").waitFor();
  result.after = page.url();
  await takePicture("linked");

  await page.goto(new URL("/external-auth/codes", server).href);
  const code = await page
    .locator("#key")
    .filter({ hasText: /^[0-9A-F]{8}$/ })
    .textContent();
  result.devicePage = await page.getByRole("link", { name: "Open Git of codes" }).getAttribute("href");
  await takePicture("device");
  await fetch(`${provider}device?user_code=${code}`);
  await page.getByText("Your account at Git of codes is linked.").waitFor();

  await page.getByRole("link", { name: "All accounts" }).click();
  await row("Git of codes").getByText("Linked", { exact: true }).waitFor();
  await takePicture("accounts-linked");
  await page.getByRole("button", { name: "Unlink Git of web" }).click();
  await takePicture("unlink");
  await page.getByRole("button", { name: "Keep it" }).click();
  result.kept = await row("Git of web").locator(".state").textContent();
  await page.getByRole("button", { name: "Unlink Git of web" }).click();
  await page.getByRole("button", { name: "Unlink", exact: true }).click();
  await page.getByText("Git of web unlinked.").waitFor();
  result.unlinked = await row("Git of web").locator(".state").textContent();

  await page.goto(new URL("/external-auth/web/callback?error=access_denied&state=x", server).href);
  result.declined = await page.getByRole("alert").filter({ hasText: "You declined" }).textContent();
  await page.goto(new URL("/external-auth/web/callback?code=stolen&state=of-somebody-else", server).href);
  result.otherSessionError = await page.getByRole("alert").filter({ hasText: "session" }).textContent();
  result.leftInAddress = new URL(page.url()).search;
  await takePicture("refused");
  await page.goto(new URL("/external-auth/none", server).href);
  await page.getByText("This server has no such service").waitFor();
  return result;
});
