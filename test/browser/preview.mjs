// Opens an app of each of these workspaces from its page, and returns its host and content. node preview.mjs CHROMIUM URL TOKEN APP
// WORKSPACE,WORKSPACE...
import { playInApp } from "./app-page.mjs";

const [file, url, token, app, workspaces] = process.argv.slice(2);

await playInApp({ file, url, token }, async ({ page, context, result, toUrl }) => {
  result.shown = [];
  // test/provisioners/starters.test.ts expects this name.
  result.wrong = result.problems;
  for (const workspace of workspaces.split(",")) {
    await page.goto(toUrl(`/workspaces/${workspace}`));
    const link = page.getByRole("region", { name: "Apps and ports" }).getByRole("link", { name: app });
    const [opened] = await Promise.all([context.waitForEvent("page"), link.click()]);
    await opened.waitForLoadState();
    result.shown.push([new URL(opened.url()).hostname, (await opened.locator("body").innerText()).trim()]);
    await opened.close();
  }
});
process.exit(0);
