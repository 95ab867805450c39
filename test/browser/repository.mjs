// A link to a repository becomes a workspace: pasted on a page, typed into the palette, and from the address of the page.
// node repository.mjs CHROMIUM URL TOKEN LINK PRIVATE [FOLDER]
import { inApp } from "./app-page.mjs";

const [file, url, token, link, closed, folder] = process.argv.slice(2);

await inApp({ file, url, token, folder }, async ({ page, result, at, look }) => {
  const found = page.getByRole("complementary", { name: "What was found" });

  await page.goto(at("/new?repo="));
  await page.getByLabel("Link to a repository").fill("nothing");
  await page.getByRole("button", { name: "Open repository" }).click();
  await page.getByText("This is not a link to a Git repository").waitFor();

  await page.goto(at(`/new?${new URLSearchParams({ repo: closed })}`));
  result.refused = await page.getByRole("alert").textContent();

  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Search everything" }).fill(link);
  await page.getByRole("option", { name: /Open this repository/ }).click();
  await found.waitFor();
  result.found = await found.textContent();
  result.left_out = await page.getByText("initializeCommand").count();
  await look("repository");
  await page.getByLabel("Configuration").selectOption(".devcontainer/b/devcontainer.json");
  await found.getByText(".devcontainer/b/devcontainer.json").waitFor();
  result.at = new URL(page.url()).search;
  await page.getByRole("button", { name: /Create workspace/ }).click();
  await page.waitForURL(/\/workspaces\/[0-9a-f-]{36}/);
  await page.getByText("Running").first().waitFor();
  result.name = await page.getByRole("heading", { level: 1 }).textContent();

  await page.goto(at("/workspaces"));
  await page.getByRole("heading", { level: 1 }).waitFor();
  await page.evaluate(() => {
    const clipboardData = new DataTransfer();
    clipboardData.setData("text/plain", "https://github.example.com/acme/app");
    document.body.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, composed: true }));
  });
  await page.waitForURL(/\/new\?repo=https%3A%2F%2Fgithub\.example\.com/);
});
