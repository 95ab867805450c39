// A link is pasted on the first page; the editor opens in the clone. Counts clicks. node open-repository.mjs CHROMIUM URL TOKEN LINK
// GENUINE [FOLDER]
import { playInApp } from "./app-page.mjs";
import { countPresses } from "./presses.mjs";

const [file, url, token, link, genuine, folder] = process.argv.slice(2);

await playInApp({ file, url, token, folder }, async ({ page, context, result, toUrl, inspect }) => {
  await page.goto(toUrl("/"));
  await page.getByRole("heading", { level: 1 }).waitFor();
  const startedAt = Date.now();
  const presses = countPresses();
  await page.evaluate((text) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData("text/plain", text);
    document.body.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, composed: true }));
  }, link);
  await page.getByRole("complementary", { name: "Detected configuration" }).waitFor();
  await presses.press(page.getByRole("radio", { name: "VS Code" }));
  await inspect("open-repository");
  await presses.press(page.getByRole("button", { name: /Create workspace/ }));
  await page.waitForURL(/\/workspaces\/[0-9a-f-]{36}/);
  const app = page.getByRole("region", { name: "Apps and ports" }).getByRole("link", { name: "VS Code", exact: true });
  await page.getByText("VS Code is ready.").waitFor();
  const [editor] = await Promise.all([context.waitForEvent("page"), presses.press(app.first())]);
  if (genuine === "yes") {
    await editor.getByRole("treeitem", { name: "work" }).waitFor();
    result.folder = await editor.title();
  } else await editor.getByText("here").waitFor();
  result.presses = presses.count();
  result.seconds = (Date.now() - startedAt) / 1000;
  await editor.close();
});
process.exit(0);
