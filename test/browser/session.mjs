// Data in a shared browser: drafts are removed with their user, and permission changes are shown immediately. node session.mjs CHROMIUM URL
// EMAIL PASSWORD OTHER_EMAIL OTHER_PASSWORD SHARED_WORKSPACE [FOLDER]
import { openPage, playInApp, signIn } from "./app-page.mjs";
import { askTest } from "./ask.mjs";

const [file, url, email, password, otherEmail, otherPassword, shared] = process.argv.slice(2);
const BROWSER_KEYS = ["theme", "terminal-font", "slipway.terminal-font", "banners", "banners-put-away"];

await playInApp({ file, url }, async ({ page, context, result, toUrl }) => {
  const getMessageField = (anyPage) => anyPage.getByRole("textbox", { name: "Message" });
  const listStoredKeys = (anyPage) =>
    anyPage.evaluate(
      (browserKeys) =>
        [...Object.keys(localStorage), ...Object.keys(sessionStorage)].filter((key) => !browserKeys.includes(key)),
      BROWSER_KEYS,
    );
  const waitForSignIn = async (...pages) => {
    for (const anyPage of pages) {
      await anyPage.waitForURL(/\/login/);
      await anyPage.getByLabel("Email").waitFor();
    }
  };
  const tab = await openPage(context, result.problems);

  // Two tabs with a draft each; signing out in one removes both, and a filter.
  await signIn(page, toUrl("/chats"), email, password);
  await getMessageField(page).fill("What nobody else may read");
  await tab.goto(toUrl("/chats"));
  await getMessageField(tab).fill("Nor this");
  await tab.goto(toUrl("/workspaces?q=name:mine"));
  await tab.getByRole("button", { name: "Save filter" }).click();
  await tab.getByRole("dialog").getByLabel("Name").fill("Secret filter");
  await tab.getByRole("dialog").getByRole("button", { name: "Save filter" }).click();
  await tab.getByText("Secret filter").waitFor();
  const signOut = async () => {
    await page.locator(".nav .account").click();
    await page.getByRole("button", { name: "Sign out" }).click();
  };
  // A failed request shows a message and does not sign the person out.
  await page.route("**/users/logout", (route) => route.abort());
  await signOut();
  const refused = page.getByRole("alert").filter({ hasText: "You are still signed in" });
  await refused.getByRole("button", { name: "Dismiss" }).click();
  await page.unroute("**/users/logout");
  await signOut();
  await waitForSignIn(page, tab);
  result.keysAfterSignOut = [...(await listStoredKeys(page)), ...(await listStoredKeys(tab))];

  // The next person finds nothing; their own draft survives an expired session.
  await signIn(page, toUrl("/chats"), otherEmail, otherPassword);
  result.draftOfNextUser = await getMessageField(page).inputValue();
  await getMessageField(page).fill("Mine for later");
  await context.clearCookies();
  await page.reload();
  await waitForSignIn(page);
  await signIn(page, toUrl("/chats"), otherEmail, otherPassword);
  await page.waitForFunction(() => document.querySelector("textarea")?.value === "Mine for later");
  // Another person who signs in after an expiry also finds nothing, nor does the first person after them.
  await context.clearCookies();
  await page.reload();
  await waitForSignIn(page);
  await signIn(page, toUrl("/chats"), email, password);
  await getMessageField(page).waitFor();
  result.afterExpiry = await getMessageField(page).inputValue();
  result.containsOtherDraft = await page.evaluate(() =>
    JSON.stringify({ ...localStorage, ...sessionStorage }).includes("for later"),
  );
  await signOut();
  await waitForSignIn(page);

  // An administrator ends every session: the open page closes, and its data is deleted.
  await signIn(page, toUrl("/chats"), otherEmail, otherPassword);
  await getMessageField(page).fill("Gone with the key");
  await tab.goto(toUrl("/chats"));
  await getMessageField(tab).waitFor();
  await askTest("end");
  await waitForSignIn(page, tab);
  result.keysAfterEnd = [...(await listStoredKeys(page)), ...(await listStoredKeys(tab))];

  // Permission changes are shown live, in both directions.
  await askTest("back");
  await signIn(page, toUrl("/"), otherEmail, otherPassword);
  const nav = page.getByRole("navigation", { name: "Main" });
  await nav.getByRole("link", { name: "Workspaces" }).waitFor();
  const measureChange = async (name, act) => {
    const startedAt = Date.now();
    await askTest(name);
    await act();
    result.slowest = Math.max(result.slowest ?? 0, Date.now() - startedAt);
  };
  const audit = nav.getByRole("link", { name: "Audit" });
  result.before = await audit.count();
  await measureChange("promote", () => audit.waitFor());
  await page.getByText("Your roles have changed").waitFor();
  await measureChange("demote", () => audit.waitFor({ state: "detached" }));
  await measureChange("join", () => page.getByText("Your organizations have changed").waitFor());
  await page.goto(toUrl("/admin/organizations"));
  await page.getByText("No access").waitFor();
  await measureChange("lead", () => page.getByText("No access").waitFor({ state: "detached" }));
  await measureChange("leave", () => page.getByText("No access").waitFor());
  // A workspace that is no longer shared is not mistaken for a server that is not responding.
  await page.goto(toUrl(`/workspaces/${shared}`));
  await page.getByRole("heading", { name: "shared", level: 1 }).waitFor();
  await page.getByRole("heading", { name: "Details" }).waitFor();
  await measureChange("unshare", () => page.getByText("Workspace not found").waitFor());
  await page.getByText("The server is not responding").waitFor({ state: "detached" });
  // A page that was disconnected during the change shows it after reconnecting.
  await page.addInitScript(() => {
    const sockets = [];
    window.cut = (isCut) => {
      window.isCut = isCut;
      for (const socket of sockets.splice(0)) socket.close();
    };
    window.WebSocket = class extends WebSocket {
      constructor(address) {
        super(window.isCut ? new URL("/nowhere", address) : address);
        sockets.push(this);
      }
    };
  });
  await page.goto(toUrl("/"));
  await nav.getByRole("link", { name: "Workspaces" }).waitFor();
  await page.evaluate(() => window.cut(true));
  await askTest("promote");
  await page.getByText("The server is not responding").waitFor();
  result.whileCut = await audit.count();
  await page.evaluate(() => window.cut(false));
  await audit.waitFor();
});
process.exit(0);
