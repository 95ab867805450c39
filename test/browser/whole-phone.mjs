// The product on a phone: a person signs in by touch, reads and answers a chat, and uses its workspace's terminal with the row of keys. node
// whole-phone.mjs CHROMIUM URL EMAIL PASSWORD CHAT [FOLDER]
import { openPage } from "./app-page.mjs";
import { playInChromium } from "./chromium.mjs";

const [file, url, email, password, chat, folder] = process.argv.slice(2);
const toUrl = (path) => new URL(path, url).href;
const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 };

await playInChromium(file, PHONE, async (_blank, context) => {
  const problems = [];
  const page = await openPage(context, problems);
  const result = { problems };
  /** Checks that no tap target is too small and nothing is wider than the screen. */
  const checkFit = async (name) => {
    if (folder) await page.screenshot({ path: `${folder}/phone-${name}.png` });
    const excessPx = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (excessPx > 0) problems.push(`${name}: ${excessPx} pixels too wide`);
    const smallTargets = await page.evaluate(() =>
      [...document.querySelectorAll("button, .btn, .tabbar a, input, select")]
        .filter(
          (control) =>
            control.checkVisibility() && !control.closest(".prose, .xterm, label.line, .opts, .pick, .vh, .tap"),
        )
        .map((control) => [control.getBoundingClientRect(), control.outerHTML.slice(0, 90)])
        .filter(([{ height, width }]) => height > 0 && width > 1 && height < 24)
        .map(([{ height }, html]) => `${Math.round(height)} ${html}`),
    );
    problems.push(...smallTargets.map((target) => `${name}: too low for a finger: ${target}`));
  };
  await page.goto(toUrl(chat));
  await page.getByLabel("Email").fill(email);
  await page.getByLabel("Password").fill(password);
  await checkFit("sign-in");
  await page.getByRole("button", { name: "Sign in", exact: true }).tap();
  const message = page.getByRole("textbox", { name: "Message" });
  await message.waitFor();
  await message.tap();
  await message.fill("Count to 30");
  await page.getByRole("button", { name: /^Send/ }).tap();
  await page.getByText(/28 29 30/).waitFor();
  await checkFit("chat");
  const tabs = page.getByRole("navigation", { name: "Sections" });
  await page.goto(toUrl("/"));
  await tabs.getByRole("link", { name: "Workspaces" }).tap();
  await page.waitForURL("**/workspaces*");
  await checkFit("workspaces");
  await page.getByRole("link", { name: "local", exact: true }).first().tap();
  await page.waitForURL("**/workspaces/*");
  await page.getByRole("link", { name: "Terminal", exact: true }).first().waitFor();
  await checkFit("workspace");
  await page.goto(toUrl("/terminals"));
  await page
    .getByRole("link", { name: /^local/ })
    .first()
    .tap();
  const keys = page.getByRole("toolbar", { name: "Keys" });
  await keys.getByRole("button", { name: "Ctrl" }).waitFor();
  await page.waitForFunction(() => /[#$%>]/.test(document.querySelector(".xterm-rows")?.textContent ?? ""));
  await page.locator(".xterm-screen").tap();
  // The program must be in the foreground to receive the key.
  await page.keyboard.type("sh -c 'echo be\"gun\"; exec sleep 1000'");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector(".xterm-rows").textContent.includes("begun"));
  await keys.getByRole("button", { name: "Ctrl" }).tap();
  await page.keyboard.type("c");
  await page.keyboard.type("echo code-$?");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector(".xterm-rows").textContent.includes("code-130"));
  await checkFit("terminal");
  await page.goto(toUrl("/"));
  await tabs.getByRole("button", { name: "More" }).tap();
  await page.getByRole("link", { name: "Audit" }).tap();
  await page.waitForURL("**/audit*");
  await checkFit("audit");
  problems.push(...(await page.evaluate(() => window.violations)));
  return result;
});
process.exit(0);
