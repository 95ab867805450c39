// The audit log in the browser: actions are listed, a filter is part of the URL, an entry shows each field. node audit.mjs CHROMIUM URL
// TOKEN [FOLDER]
import { playInApp } from "./app-page.mjs";

const [file, url, token, folder] = process.argv.slice(2);

await playInApp({ file, url, token, folder }, async ({ page, result, toUrl, inspect }) => {
  await page.goto(toUrl("/audit"));
  const list = page.getByRole("list", { name: "Entries" });
  await list.getByRole("link").first().waitFor();
  const detail = page.getByRole("complementary", { name: "Entry" });

  await page.getByRole("combobox", { name: "Filter audit log" }).fill("resource_type:user ");
  await page.waitForURL("**/audit?q=resource_type*");
  await list
    .getByRole("link", { name: /changed user/ })
    .first()
    .click();
  await page.waitForURL("**entry=*");
  result.address = new URL(page.url()).searchParams.get("q");
  result.fields = await detail.getByRole("row").allTextContents();
  await inspect("audit");

  await page.reload();
  result.after = await detail.getByRole("heading").textContent();

  // On a phone, an entry opens over the list at any scroll position, and closes again.
  await page.setViewportSize({ width: 390, height: 500 });
  await page.goto(toUrl("/audit"));
  await list.getByRole("link").first().waitFor();
  result.isOpenOnLoad = await detail.isVisible();
  await list.getByRole("link").nth(1).click();
  const close = detail.getByRole("link", { name: "Close entry" });
  await close.waitFor();
  result.isCloseVisible = await close.evaluate((link) => link.getBoundingClientRect().bottom < innerHeight);
  await close.click();
  await detail.waitFor({ state: "hidden" });
  await page.setViewportSize({ width: 1440, height: 900 });

  // A chat is linked with the title that its owner can see, an uploaded file with the template created from it.
  for (const kind of ["chat", "file"]) {
    await page.goto(toUrl(`/audit?q=resource_type:${kind}`));
    const name = kind === "chat" ? /created chat Repair the crane/ : /created file of \S+ \S+/;
    await list.getByRole("link", { name }).first().waitFor();
  }
  await page.goto(toUrl("/audit?q=resource_type:chat"));
  await list.getByRole("link").first().click();
  await detail.getByRole("link", { name: "Open chat" }).waitFor();
  await inspect("audit-chat");

  await page.goto(toUrl("/audit?q=username:nobody-of-this-name"));
  await page.getByText("No matching entries").waitFor();
  await inspect("audit-empty");

  await page.goto(toUrl("/connections"));
  const connections = page.getByRole("list", { name: "Connections" });
  await connections.getByText("192.0.2.7").waitFor();
  await page.getByRole("combobox", { name: "Filter connections" }).fill("status:completed ");
  await page.waitForURL("**/connections?q=status*");
  await connections.getByText("the command has ended").waitFor();
  result.connections = await connections.getByRole("listitem").count();
  await inspect("connections");
});
