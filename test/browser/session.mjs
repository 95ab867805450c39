// Data in a shared browser: drafts are removed with their user, and permission changes are shown immediately. node session.mjs CHROMIUM URL
// EMAIL PASSWORD OTHER_EMAIL OTHER_PASSWORD SHARED_WORKSPACE [FOLDER]
import { openPage, playInApp, signIn } from "./app-page.mjs";
import { askTest } from "./ask.mjs";

const [file, url, email, password, otherEmail, otherPassword, shared] = process.argv.slice(2);
const OF_BROWSER = ["theme", "terminal-font", "slipway.terminal-font", "banners", "banners-put-away"];

await playInApp({ file, url }, async ({ page, context, result, at }) => {
  const written = (one) => one.getByRole("textbox", { name: "Message" });
  const kept = (one) =>
    one.evaluate(
      (browsers) =>
        [...Object.keys(localStorage), ...Object.keys(sessionStorage)].filter((key) => !browsers.includes(key)),
      OF_BROWSER,
    );
  const atTheDoor = async (...pages) => {
    for (const one of pages) {
      await one.waitForURL(/\/login/);
      await one.getByLabel("Email").waitFor();
    }
  };
  const tab = await openPage(context, result.wrong);

  // Two tabs with a draft each; signing out in one removes both, and a filter.
  await signIn(page, at("/chats"), email, password);
  await written(page).fill("What nobody else may read");
  await tab.goto(at("/chats"));
  await written(tab).fill("Nor this");
  await tab.goto(at("/workspaces?q=name:mine"));
  await tab.getByRole("button", { name: "Save filter" }).click();
  await tab.getByRole("dialog").getByLabel("Name").fill("Secret filter");
  await tab.getByRole("dialog").getByRole("button", { name: "Save filter" }).click();
  await tab.getByText("Secret filter").waitFor();
  const out = async () => {
    await page.locator(".nav .account").click();
    await page.getByRole("button", { name: "Sign out" }).click();
  };
  // A failed request shows a message and does not sign the person out.
  await page.route("**/users/logout", (route) => route.abort());
  await out();
  const refused = page.getByRole("alert").filter({ hasText: "You are still signed in" });
  await refused.getByRole("button", { name: "Dismiss" }).click();
  await page.unroute("**/users/logout");
  await out();
  await atTheDoor(page, tab);
  result.left = [...(await kept(page)), ...(await kept(tab))];

  // The next person finds nothing; their own draft survives an expired session.
  await signIn(page, at("/chats"), otherEmail, otherPassword);
  result.found = await written(page).inputValue();
  await written(page).fill("Mine for later");
  await context.clearCookies();
  await page.reload();
  await atTheDoor(page);
  await signIn(page, at("/chats"), otherEmail, otherPassword);
  await page.waitForFunction(() => document.querySelector("textarea")?.value === "Mine for later");
  // Another person who signs in after an expiry also finds nothing, nor does the first person after them.
  await context.clearCookies();
  await page.reload();
  await atTheDoor(page);
  await signIn(page, at("/chats"), email, password);
  await written(page).waitFor();
  result.afterExpiry = await written(page).inputValue();
  result.ofOther = await page.evaluate(() =>
    JSON.stringify({ ...localStorage, ...sessionStorage }).includes("for later"),
  );
  await out();
  await atTheDoor(page);

  // An administrator ends every session: the open page closes, and its data is deleted.
  await signIn(page, at("/chats"), otherEmail, otherPassword);
  await written(page).fill("Gone with the key");
  await tab.goto(at("/chats"));
  await written(tab).waitFor();
  await askTest("end");
  await atTheDoor(page, tab);
  result.leftByEnd = [...(await kept(page)), ...(await kept(tab))];

  // Permission changes are shown live, in both directions.
  await askTest("back");
  await signIn(page, at("/"), otherEmail, otherPassword);
  const nav = page.getByRole("navigation", { name: "Main" });
  await nav.getByRole("link", { name: "Workspaces" }).waitFor();
  const took = async (name, act) => {
    const started = Date.now();
    await askTest(name);
    await act();
    result.slowest = Math.max(result.slowest ?? 0, Date.now() - started);
  };
  const audit = nav.getByRole("link", { name: "Audit" });
  result.before = await audit.count();
  await took("promote", () => audit.waitFor());
  await page.getByText("Your roles have changed").waitFor();
  await took("demote", () => audit.waitFor({ state: "detached" }));
  await took("join", () => page.getByText("Your organizations have changed").waitFor());
  await page.goto(at("/admin/organizations"));
  await page.getByText("No access").waitFor();
  await took("lead", () => page.getByText("No access").waitFor({ state: "detached" }));
  await took("leave", () => page.getByText("No access").waitFor());
  // A workspace that is no longer shared is not mistaken for a server that is not responding.
  await page.goto(at(`/workspaces/${shared}`));
  await page.getByRole("heading", { name: "shared", level: 1 }).waitFor();
  await page.getByRole("heading", { name: "Details" }).waitFor();
  await took("unshare", () => page.getByText("Workspace not found").waitFor());
  await page.getByText("The server is not responding").waitFor({ state: "detached" });
  // A page that was disconnected during the change shows it after reconnecting.
  await page.addInitScript(() => {
    const all = [];
    window.cut = (isCut) => {
      window.isCut = isCut;
      for (const one of all.splice(0)) one.close();
    };
    window.WebSocket = class extends WebSocket {
      constructor(address) {
        super(window.isCut ? new URL("/nowhere", address) : address);
        all.push(this);
      }
    };
  });
  await page.goto(at("/"));
  await nav.getByRole("link", { name: "Workspaces" }).waitFor();
  await page.evaluate(() => window.cut(true));
  await askTest("promote");
  await page.getByText("The server is not responding").waitFor();
  result.whileCut = await audit.count();
  await page.evaluate(() => window.cut(false));
  await audit.waitFor();
});
process.exit(0);
