// An administrator manages the server in the browser: a first model that was detected, organizations, MCP servers, provisioner keys,
// spending limits, permissions, health, settings, a backup, the log, and the live audit log. node administration-server.mjs CHROMIUM URL
// TOKEN MCP [FOLDER]
import { playInApp } from "./app-page.mjs";

const [file, url, token, mcp, folder] = process.argv.slice(2);

await playInApp({ file, url, token, folder }, async ({ page, result, toUrl, inspect }) => {
  const dialog = page.getByRole("dialog");
  const press = (name) => page.getByRole("button", { name, exact: true }).click();
  const confirm = (name) => dialog.getByRole("button", { name, exact: true }).click();

  await page.goto(toUrl("/admin/models"));
  await page.getByRole("heading", { name: "Ollama on this machine" }).waitFor();
  await page.getByText("qwen3-coder:30b").waitFor();
  await inspect("admin-first-model");
  await press("Add and test");
  await page.getByText("qwen3-coder:30b responded: “Hello there.”").waitFor();
  await page.getByRole("heading", { name: "Ollama on this machine" }).waitFor({ state: "detached" });

  await page.getByRole("button", { name: "More for qwen3-coder:30b" }).click();
  await page.getByRole("button", { name: "Price…" }).click();
  await dialog.getByLabel("Input, per million tokens", { exact: true }).fill("0.25");
  await dialog.getByLabel("Output, per million tokens", { exact: true }).fill("1.5");
  await inspect("admin-price");
  await confirm("Save price");
  await page.getByText("0.25 / 1.50").waitFor();
  // Opens a page with the keyboard alone: the search finds it by its name.
  await page.keyboard.press("Control+k");
  await page.keyboard.type("organiz");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/admin/organizations");
  await press("Add organization");
  await dialog.getByLabel("Name", { exact: true }).fill("two words");
  await confirm("Add organization");
  result.refused = await dialog.locator(".error").first().textContent();
  await dialog.getByLabel("Name", { exact: true }).fill("harbour");
  await dialog.getByLabel("Display name").fill("The Harbour");
  await confirm("Add organization");
  await inspect("admin-organizations");
  await page.getByRole("link", { name: "The Harbour" }).click();
  await press("Add member");
  await dialog.getByLabel("Username").fill("grace");
  await confirm("Add member");
  const grace = page.getByRole("listitem").filter({ hasText: "grace" });
  await grace.getByRole("button", { name: "More for grace" }).click();
  await page.getByRole("button", { name: "Roles…" }).click();
  await dialog.getByRole("checkbox").first().check();
  await confirm("Set roles");
  await grace.locator(".badge").waitFor();
  await inspect("admin-organization");

  await page.goto(toUrl("/admin/mcp-servers"));
  await page.getByText("No MCP servers").waitFor();
  await inspect("admin-mcp-empty");
  await press("Add MCP server");
  await dialog.getByLabel("Short name").fill("sums");
  await dialog.getByLabel("Address", { exact: true }).fill(`${mcp}/mcp`);
  await dialog.getByLabel("Authentication").selectOption("api_key");
  await dialog.getByLabel("Key").fill("Bearer canary-of-the-server");
  await dialog.getByLabel("Disabled tools").fill("fail");
  await inspect("admin-mcp-form");
  await confirm("Add and try");
  await dialog.getByText("sums responded").waitFor();
  result.tools = await dialog.getByRole("list", { name: "Tools" }).getByRole("listitem").count();
  await inspect("admin-mcp-tried");
  await confirm("Close");
  await page.getByRole("button", { name: "Show this page's requests as commands" }).click();
  await dialog.getByRole("button", { name: "curl" }).click();
  result.commands = (await dialog.locator("pre").allTextContents()).join("\n");
  await inspect("admin-commands");
  await page.keyboard.press("Escape");
  await inspect("admin-mcp");

  await page.goto(toUrl("/admin/workers"));
  await page.getByText("No external workers").waitFor();
  await press("Create key");
  await dialog.getByLabel("Name").fill("builders");
  await dialog.getByLabel("Tags").fill("region=eu, gpu=yes");
  await confirm("Create key");
  result.key = await dialog.getByLabel("Command").textContent();
  await page.keyboard.press("Escape");
  await page.getByText("region=eu, gpu=yes, created").or(page.getByText("gpu=yes, region=eu, created")).waitFor();
  await inspect("admin-workers");
  await page.getByRole("button", { name: "Revoke builders" }).click();
  await confirm("Revoke key");
  await page.getByText("No keys. A worker authenticates").waitFor();

  await page.goto(toUrl("/admin/external-accounts"));
  await page.getByText("No providers").waitFor();
  await inspect("admin-external-accounts");

  await page.goto(toUrl("/admin/permissions"));
  await page.getByLabel("Permission mode of new chats").selectOption("ask");
  await press("Add rule");
  await inspect("admin-permissions");
  await press("Save permissions");
  await page.getByText("Permissions saved").waitFor();

  await page.goto(toUrl("/admin/budgets"));
  await page.getByLabel("US dollars per user").fill("25");
  await press("Save limit");
  await page.getByText("Limit saved").waitFor();
  await press("Add limit");
  await dialog.getByLabel("Username").fill("grace");
  await dialog.getByLabel("US dollars").fill("5");
  await confirm("Add limit");
  await page.getByText("$5.00").waitFor();
  await inspect("admin-spending");

  await page.goto(toUrl("/admin/hooks"));
  await page.getByText("No consumer is configured.").waitFor();
  await inspect("admin-hooks");

  await page.goto(toUrl("/admin/health"));
  await page.getByText("Data directory", { exact: true }).waitFor();
  await page.getByRole("switch", { name: /^Maintain prebuilt workspaces/ }).click();
  await page.getByText("Paused: none are created").waitFor();
  await inspect("admin-health");

  await page.goto(toUrl("/admin/settings"));
  await page.getByLabel("Find settings").fill("data_dir");
  await page.getByText("from SLIPWAY_DATA_DIR").waitFor();
  await inspect("admin-settings");

  await page.goto(toUrl("/admin/backups"));
  await page.getByText("No backups yet").waitFor();
  await inspect("admin-backups-empty");
  await press("Back up now");
  const backup = page.getByRole("listitem").filter({ hasText: "Slipway" });
  await backup.waitFor();
  await backup.getByRole("button", { name: /^Verify/ }).click();
  await page.getByText(", verified").waitFor();
  await inspect("admin-backups");

  // Only warnings are shown. Of many lines, only the visible ones are in the page.
  await page.goto(toUrl("/admin/logs?level=warn"));
  await page.getByText("the tide is late").first().waitFor();
  await inspect("admin-logs");

  await page.goto(toUrl("/audit"));
  const list = page.getByRole("list", { name: "Entries" });
  await list.getByRole("link").first().waitFor();
  // A change by someone else appears without a reload.
  await page.evaluate(() =>
    fetch("/api/v2/organizations", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ name: "pier" }),
    }),
  );
  await list.getByRole("link", { name: /pier/ }).waitFor();
  await page.getByRole("button", { name: /^kept/ }).click();
  await dialog.getByLabel("Days", { exact: true }).fill("400");
  await confirm("Save retention");
  await page.getByRole("button", { name: "kept 400 days" }).waitFor();
  await inspect("audit-live");

  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto(toUrl("/admin/health"));
  const healthLink = page.getByRole("link", { name: "Health", exact: true });
  result.isInView = await healthLink.evaluate((link) => {
    const { left, right } = link.getBoundingClientRect();
    return left >= 0 && right <= innerWidth;
  });
  // The name of a check is not cut off by its links.
  const name = page.locator(".state", { hasText: "Data directory" });
  result.isCut = await name.evaluate(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth);
});
