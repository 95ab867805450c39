// An organization administrator: their sections of the administration, an MCP server with custom headers, and a workspace whose template
// requires an external account, which is linked without leaving the form. node in-place.mjs CHROMIUM URL TOKEN MCP TEMPLATE [FOLDER]
import { checkPage, openPage } from "./app-page.mjs";
import { askTest } from "./ask.mjs";
import { playInChromium } from "./chromium.mjs";

const [file, url, token, mcp, template, folder] = process.argv.slice(2);
const toUrl = (path) => new URL(path, url).href;

await playInChromium(file, { viewport: { width: 1440, height: 900 } }, async (_blank, context) => {
  await context.addCookies([{ name: "service_session_token", value: token, url }]);
  const problems = [];
  const page = await openPage(context, problems);
  const result = { problems };
  const inspect = async (name) => problems.push(...(await checkPage(page, `in-place-${name}`, folder)));
  const dialog = page.getByRole("dialog");

  await page.goto(toUrl("/"));
  await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Administration" }).click();
  const sections = page.getByRole("navigation", { name: "Administration" }).getByRole("link");
  await sections.first().waitFor();
  result.sections = await sections.allTextContents();
  await sections.filter({ hasText: "MCP servers" }).click();
  await page.getByRole("button", { name: "Add MCP server" }).click();
  await dialog.getByLabel("Short name").fill("sums");
  await dialog.getByLabel("Address", { exact: true }).fill(`${mcp}/mcp`);
  await dialog.getByLabel("Authentication").selectOption("custom_headers");
  await dialog.getByLabel("Name", { exact: true }).fill("X-Tide");
  await dialog.getByLabel("Value").fill("canary-high");
  await dialog.getByRole("button", { name: "Add header" }).click();
  await dialog.getByLabel("Name", { exact: true }).nth(1).fill("X-Moon");
  await dialog.getByLabel("Value").nth(1).fill("canary-full");
  await inspect("headers");
  await dialog.getByRole("button", { name: "Add and try" }).click();
  await dialog.getByText("sums responded").waitFor();
  await dialog.getByRole("button", { name: "Close", exact: true }).click();
  await page.getByRole("button", { name: "Show this page's requests as commands" }).click();
  await dialog.getByRole("button", { name: "curl" }).click();
  result.commands = (await dialog.locator("pre").allTextContents()).join("\n");
  await page.keyboard.press("Escape");

  await page.goto(toUrl(`/new?template=${template}`));
  const create = page.getByRole("button", { name: "Create" });
  await page.getByText("Git of web must be linked").waitFor();
  await page.getByRole("link", { name: "sizes" }).waitFor();
  result.isCreateDisabled = await create.isDisabled();
  await inspect("account");
  const [popup] = await Promise.all([
    context.waitForEvent("page"),
    page.getByRole("link", { name: "Link Git of web" }).click(),
  ]);
  await popup.getByRole("button", { name: "Sign in at Git of web" }).click();
  await page.getByText("Git of web is linked").waitFor();
  await page.waitForFunction(
    () => ![...document.querySelectorAll("button")].find((button) => button.textContent.startsWith("Create"))?.disabled,
  );
  // The popup closes automatically, or says that it can be closed.
  await Promise.race([
    popup.waitForEvent("close").catch(() => {}),
    popup
      .getByText("is linked")
      .waitFor()
      .catch(() => {}),
  ]);
  await create.click();
  await page.waitForURL("**/workspaces/*");
  result.closed = popup.isClosed();

  // Her role is revoked while she uses the page.
  await page.goto(toUrl("/admin/mcp-servers"));
  await page.getByRole("button", { name: "Add MCP server" }).waitFor();
  await askTest("demote");
  await page.getByText("Your roles have changed").waitFor();
  await page.getByText("No access").waitFor();
  return result;
});
process.exit(0);
