// The story of the first hour: set up, sign out, sign in, make a token, revoke it. With a third argument, pictures go there.
// node pages.mjs CHROMIUM SETUP_LINK [FOLDER [light|dark [WIDTH]]]
import { inChromium } from "./chromium.mjs";

const [file, link, folder, colorScheme = "light", width = "1100"] = process.argv.slice(2);
const base = new URL("/", link).href;
const viewport = { width: Number(width), height: 800 };
const ANN = { email: "ann@example.com", username: "ann", name: "Ann", password: "a-long-enough-secret" };

await inChromium(file, { colorScheme, viewport }, async (page) => {
  const picture = async (name) => {
    if (folder) await page.screenshot({ path: `${folder}/${name}-${colorScheme}-${width}.png`, fullPage: true });
  };
  const at = () => new URL(page.url()).pathname;
  const result = {};

  await page.goto(base);
  await page.getByText("This server has no user yet").waitFor();
  await picture("home-empty");

  await page.goto(link);
  await page.getByLabel("E-mail").fill(ANN.email);
  await page.getByLabel("Username").fill(ANN.username);
  await page.getByLabel("Name", { exact: false }).last().fill(ANN.name);
  await page.getByLabel("Password").fill("password");
  await page.getByRole("button", { name: "Create user" }).click();
  result.weak = await page.getByRole("alert").textContent();
  await picture("setup");
  await page.getByLabel("Password").fill(ANN.password);
  await page.getByRole("button", { name: "Create user" }).click();
  await page.getByRole("heading", { name: "Your workspaces" }).waitFor();
  result.afterSetup = at();
  await page.waitForLoadState("networkidle");
  await picture("home");

  await page.goto(link);
  await page.getByText("has been set up already").waitFor();

  await page.getByRole("link", { name: "Slipway" }).click();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("link", { name: "Sign in" }).waitFor();
  await picture("home-stranger");

  await page.goto(`${base}settings/tokens`);
  await page.waitForURL("**/login?*");
  await page.getByLabel("E-mail").fill(ANN.email);
  await page.getByLabel("Password").fill("not the password");
  await page.keyboard.press("Enter");
  result.refused = await page.getByRole("alert").filter({ hasText: "Incorrect" }).textContent();
  await picture("login");
  await page.getByLabel("Password").fill(ANN.password);
  await page.keyboard.press("Enter");
  await page.waitForURL("**/settings/tokens");
  await page.getByText("There are none.").waitFor();

  result.lifetimes = await page.getByLabel("Lifetime").locator("option").allTextContents();
  await page.getByLabel("Name").fill("laptop");
  await page.getByRole("button", { name: "Make token" }).click();
  result.key = await page.locator("#key").filter({ hasText: "-" }).textContent();
  await picture("tokens-made");
  await page.getByRole("button", { name: "Copy" }).click();
  await page.getByLabel("Name").fill("laptop");
  await page.getByRole("button", { name: "Make token" }).click();
  result.taken = await page.getByRole("alert").filter({ hasText: "in use" }).textContent();
  const asToken = (key) =>
    fetch(`${base}api/v2/users/me`, { headers: { "Service-Session-Token": key } }).then((answer) => answer.status);
  result.before = await asToken(result.key);

  await page.getByRole("button", { name: "Delete laptop" }).click();
  await picture("tokens-delete");
  await page.getByRole("button", { name: "Keep it" }).click();
  result.kept = await asToken(result.key);
  await page.getByRole("button", { name: "Delete laptop" }).click();
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByText("There are none.").waitFor();
  result.after = await asToken(result.key);

  await page.getByLabel("Lifetime").selectOption("Until a date");
  const tomorrow = new Date(Date.now() + 86_400_000).toLocaleDateString("sv");
  await page.getByLabel("Last day").fill(tomorrow);
  await page.getByLabel("Name").fill("until");
  await page.getByRole("button", { name: "Make token" }).click();
  await page.getByRole("button", { name: "Delete until" }).waitFor();

  await page.goto(`${base}cli-auth`);
  await page.getByRole("button", { name: "Show a session token" }).click();
  result.session = await asToken(await page.locator("#key").filter({ hasText: "-" }).textContent());
  await picture("cli-auth");

  await page.goto(`${base}login?redirect=//evil.example/`);
  await page.getByLabel("E-mail").fill(ANN.email);
  await page.getByLabel("Password").fill(ANN.password);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Your workspaces" }).waitFor();
  result.afterEvil = page.url() === base;
  return result;
});
