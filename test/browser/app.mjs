// The app's first pages as a person uses them: sign in, the list live, search, bulk, the palette, a cut line.
// node app.mjs CHROMIUM URL EMAIL PASSWORD [FOLDER]
import { lookAt, openPage } from "./app-page.mjs";
import { inChromium } from "./chromium.mjs";

const [file, url, email, password, folder] = process.argv.slice(2);
const at = (path) => new URL(path, url).href;

await inChromium(file, { viewport: { width: 1440, height: 900 } }, async (_blank, context) => {
  const wrong = [];
  const page = await openPage(context, wrong);
  const result = { wrong };

  await page.goto(at("/workspaces"));
  await page.waitForURL("**/login?*");
  await page.getByLabel("E-mail").fill(email);
  await page.getByLabel("Password").fill("not the password");
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByText("Incorrect email or password").waitFor();
  wrong.push(...(await lookAt(page, "login", folder)));
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.waitForURL("**/workspaces*");

  const rows = page.getByRole("table", { name: "Workspaces" });
  await rows.getByRole("link", { name: "alpha", exact: true }).waitFor();
  result.names = await rows.locator("a.name").allTextContents();
  wrong.push(...(await lookAt(page, "workspaces", folder)));

  // What is typed filters at once; a finished term is a chip.
  await page.keyboard.press("/");
  await page.keyboard.type("alph");
  await rows.getByRole("link", { name: "beta", exact: true }).waitFor({ state: "detached" });
  result.filtered = await rows.locator("a.name").allTextContents();
  result.address = new URL(page.url()).searchParams.get("q");
  await page.getByRole("combobox", { name: "Filter workspaces" }).fill("stat");
  await page.keyboard.press("Tab");
  await page.getByRole("option", { name: "stopped" }).click();
  await page.getByText("No workspace fits").waitFor();
  await page.getByRole("button", { name: "Remove status filter" }).click();
  await rows.getByRole("link", { name: "beta", exact: true }).waitFor();

  // Both are stopped together, and the list says so by itself.
  await page.getByRole("checkbox", { name: "Select all" }).check();
  wrong.push(...(await lookAt(page, "workspaces-selected", folder)));
  await page.getByRole("toolbar", { name: "Selected workspaces" }).getByRole("button", { name: "Stop" }).click();
  await page.getByRole("row", { name: /alpha.*Stopped/ }).waitFor();
  await page.getByRole("row", { name: /beta.*Stopped/ }).waitFor();

  // The server's own words in a menu of the row.
  await page.getByRole("button", { name: "More for alpha" }).click();
  await page.getByRole("button", { name: "Pin", exact: true }).click();
  await page.getByTitle("Pinned").waitFor();

  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Search everything" }).fill("bet");
  await page.getByRole("option", { name: /^beta/ }).waitFor();
  wrong.push(...(await lookAt(page, "palette", folder)));
  await page.keyboard.press("Escape");

  // The same as a command.
  await page.getByRole("button", { name: "Show what this page did as a command" }).click();
  result.command = await page.locator("dialog pre").first().textContent();
  await page.getByRole("button", { name: "curl" }).click();
  result.curl = await page.locator("dialog pre").first().textContent();
  await page.keyboard.press("Escape");

  await page.getByRole("link", { name: "Home" }).first().click();
  await page.getByRole("heading", { name: "Recent workspaces" }).waitFor();
  wrong.push(...(await lookAt(page, "home", folder)));
  return result;
});
