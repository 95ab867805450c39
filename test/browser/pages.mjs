// The first hour: set up, sign out, sign in, create a token, revoke it. With a third argument, screenshots are written there. node
// pages.mjs CHROMIUM SETUP_LINK [FOLDER [light|dark [WIDTH]]]
import { playInChromium } from "./chromium.mjs";
import { listMisfits } from "./misfits.mjs";

const [file, link, folder, colorScheme = "light", width = "1100"] = process.argv.slice(2);
const base = new URL("/", link).href;
const viewport = { width: Number(width), height: 800 };
const ANN = { email: "ann@example.com", username: "ann", name: "Ann", password: "a-long-enough-secret" };

await playInChromium(file, { colorScheme, viewport }, async (page) => {
  const takePicture = async (name) => {
    if (folder) await page.screenshot({ path: `${folder}/${name}-${colorScheme}-${width}.png`, fullPage: true });
  };
  const getPath = () => new URL(page.url()).pathname;
  const result = { misfits: [] };
  /** On the smallest phone, regardless of the screenshots' width. */
  const checkSmallPhone = async () => {
    await page.setViewportSize({ width: 320, height: 640 });
    result.misfits.push(...(await page.evaluate(listMisfits)));
    await page.setViewportSize(viewport);
  };

  await page.goto(base);
  await page.getByText("This server has no users yet").waitFor();
  await takePicture("home-empty");
  await checkSmallPhone();

  await page.goto(link);
  await page.getByLabel("Email").fill(ANN.email);
  await page.getByLabel("Username").fill(ANN.username);
  await page.getByLabel("Name", { exact: false }).last().fill(ANN.name);
  await page.getByLabel("Password").fill("password");
  await page.getByRole("button", { name: "Create user" }).click();
  result.weak = await page.getByRole("alert").filter({ hasText: "easy to guess" }).textContent();
  await takePicture("setup");
  await checkSmallPhone();
  await page.getByLabel("Password").fill(ANN.password);
  await page.getByRole("button", { name: "Create user" }).click();
  await page.getByRole("heading", { name: /^Welcome/ }).waitFor();
  result.afterSetup = getPath();
  await page.waitForLoadState("networkidle");
  await takePicture("home");
  await checkSmallPhone();

  await page.goto(link);
  await page.getByText("is already set up").waitFor();

  await page.goto(base);
  await page.getByRole("button", { name: "Ann" }).click();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Sign in to Slipway" }).waitFor();

  await page.goto(`${base}settings/tokens`);
  await page.waitForURL("**/login?*");
  await page.getByLabel("Email").fill(ANN.email);
  await page.getByLabel("Password").fill("not the password");
  await page.keyboard.press("Enter");
  result.refused = await page.getByRole("alert").filter({ hasText: "Incorrect" }).textContent();
  await takePicture("login");
  await checkSmallPhone();
  await page.getByLabel("Password").fill(ANN.password);
  await page.keyboard.press("Enter");
  await page.waitForURL("**/account/tokens");
  const emptyState = page.getByRole("heading", { name: "No tokens yet" });
  const dialog = page.getByRole("dialog");
  await emptyState.waitFor();

  await page.getByRole("button", { name: "New token" }).click();
  result.lifetimes = await page.getByLabel("Expiration").locator("option").allTextContents();
  await dialog.getByLabel("Name").fill("laptop");
  await page.getByRole("button", { name: "Create token" }).click();
  result.key = await page.getByLabel("Token", { exact: true }).textContent();
  await takePicture("tokens-made");
  await checkSmallPhone();
  await page.getByRole("button", { name: "Copy" }).click();
  await page.getByRole("button", { name: "New token" }).click();
  await dialog.getByLabel("Name").fill("laptop");
  await page.getByRole("button", { name: "Create token" }).click();
  result.taken = await page.getByRole("alert").filter({ hasText: "in use" }).textContent();
  await page.getByRole("button", { name: "Cancel" }).click();
  const asToken = (key) =>
    fetch(`${base}api/v2/users/me`, { headers: { "Service-Session-Token": key } }).then((answer) => answer.status);
  result.before = await asToken(result.key);

  await page.getByRole("button", { name: "Delete laptop" }).click();
  await takePicture("tokens-delete");
  await page.getByRole("button", { name: "Keep it" }).click();
  result.afterCancel = await asToken(result.key);
  await page.getByRole("button", { name: "Delete laptop" }).click();
  await page.getByRole("button", { name: "Delete token" }).click();
  await emptyState.waitFor();
  result.after = await asToken(result.key);
  await page.getByText("laptop deleted").waitFor();
  result.focusAfterDelete = await page.evaluate(() => document.activeElement?.id);

  await page.getByRole("button", { name: "New token" }).click();
  await page.getByLabel("Expiration").selectOption("Custom date");
  const tomorrow = new Date(Date.now() + 86_400_000).toLocaleDateString("sv");
  await page.getByLabel("Expires after").fill(tomorrow);
  await dialog.getByLabel("Name").fill("until");
  await page.getByRole("button", { name: "Create token" }).click();
  await page.getByRole("button", { name: "Delete until" }).waitFor();
  await page.getByRole("button", { name: "New token" }).click();
  await dialog.getByLabel("Name").fill("until");
  await page.getByRole("button", { name: "Create token" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("alert").filter({ hasText: "in use" }).waitFor();
  result.focusAfterRefusal = await page.evaluate(() => document.activeElement?.textContent);

  await page.goto(`${base}cli-auth`);
  await page.getByRole("button", { name: "Create session token" }).click();
  result.session = await asToken(await page.locator("#key").filter({ hasText: "-" }).textContent());
  await takePicture("cli-auth");
  await checkSmallPhone();

  Object.assign(result, await requestConsent(page, base));
  await takePicture("oauth2-authorize");
  await checkSmallPhone();
  await page.getByRole("button", { name: "Deny" }).click();
  await page.waitForURL("**/back?error=access_denied**");

  await page.goto(`${base}login?redirect=//evil.example/`);
  await page.getByLabel("Email").fill(ANN.email);
  await page.getByLabel("Password").fill(ANN.password);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: /^Welcome/ }).waitFor();
  result.staysOnServer = page.url() === base;

  Object.assign(result, await checkFailures(page, base));
  return result;
});

/** A program that has registered itself asks for access; the person signs in first, and then gets the same request. */
async function requestConsent(page, base) {
  // Nothing listens there.
  await page.route("http://127.0.0.1:9/**", (route) => route.fulfill({ body: "back" }));
  const redirect_uris = ["http://127.0.0.1/back"];
  const data = { client_name: "Editor", redirect_uris, token_endpoint_auth_method: "none" };
  const { client_id } = await (await page.request.post(`${base}oauth2/register`, { data })).json();
  const requested = new URLSearchParams({
    client_id,
    redirect_uri: "http://127.0.0.1:9/back",
    response_type: "code",
    scope: "workspace:read workspace:ssh",
    code_challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
    code_challenge_method: "S256",
  });
  // An invalid request never redirects the person automatically.
  await page.goto(`${base}oauth2/authorize?${new URLSearchParams([...requested, ["response_mode", "fragment"]])}`);
  await page.getByText("An application that calls itself Editor sent an invalid request").waitFor();
  const stays = new URL(page.url()).pathname;
  await page.getByRole("button", { name: "Return to the application" }).click();
  await page.waitForURL("**/back?error=invalid_request**");
  await page.context().clearCookies();
  await page.goto(`${base}oauth2/authorize?${requested}`);
  await page.getByLabel("Email").fill(ANN.email);
  await page.getByLabel("Password").fill(ANN.password);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Allow access to Editor?" }).waitFor();
  return { stays, scopes: await page.locator("#scopes li").allTextContents() };
}

/** Checks the pages when the server fails, and their redirects when the session ends. */
async function checkFailures(page, base) {
  const result = {};
  await page.route("**/api/v2/users/me", (route) => route.fulfill({ status: 503, json: { message: "It stops." } }));
  // The page's embedded data must not contain the user either.
  await page.addInitScript(() => {
    const drop = () => document.getElementById("first")?.remove();
    new MutationObserver(drop).observe(document, { childList: true, subtree: true });
  });
  for (const path of ["", "settings/external-auth"]) {
    await page.goto(base + path);
    await page.getByRole("alert").filter({ hasText: "It stops." }).waitFor();
  }
  await page.unroute("**/api/v2/users/me");

  await page.goto(`${base}cli-auth`);
  await page.getByText("ann", { exact: true }).waitFor();
  await page.context().clearCookies();
  await page.getByRole("button", { name: "Create session token" }).click();
  await page.waitForURL("**/login?redirect=%2Fcli-auth");
  await page.getByLabel("Email").fill(ANN.email);
  await page.getByLabel("Password").fill(ANN.password);
  await page.keyboard.press("Enter");
  await page.waitForURL("**/cli-auth");
  return result;
}
