// A person gets a notification, opens it, and chooses which ones to get. node notifications.mjs CHROMIUM URL EMAIL PASSWORD [FOLDER]
import { playInApp, signIn } from "./app-page.mjs";

const [file, url, email, password, folder] = process.argv.slice(2);

await playInApp({ file, url, folder }, async ({ page, result, toUrl, inspect }) => {
  const bell = page.getByRole("navigation", { name: "Main" }).getByRole("button", { name: /Notifications/ });

  await signIn(page, toUrl("/workspaces"), email, password);
  await bell.waitFor();
  await bell.click();
  const panel = page.getByRole("dialog", { name: "Notifications" });
  await panel.getByText("No notifications yet").waitFor();
  await inspect("notifications-empty");
  await panel.getByRole("link", { name: "Notification settings" }).click();
  await page.getByRole("heading", { name: "Workspace events" }).waitFor();
  await inspect("notifications-choose");
  await page.getByRole("button", { name: "Send test notification" }).click();
  // It arrives without a reload.
  await bell.getByText("1").waitFor();
  await bell.click();
  await panel.getByRole("link", { name: "Test notification" }).waitFor();
  await inspect("notifications-one");
  await panel.getByRole("button", { name: /^Mark read/ }).click();
  await panel.getByRole("button", { name: /^Mark unread/ }).waitFor();
  result.unread = await bell.locator(".count").count();
  await panel.getByRole("button", { name: /^Mark unread/ }).click();
  await panel.getByRole("link", { name: "Test notification" }).click();
  await page.waitForURL(toUrl("/"));
  await page.goto(toUrl("/account/notifications"));
  await Promise.all([
    page.waitForResponse((answer) => answer.url().endsWith("/notifications/preferences")),
    page.getByRole("switch", { name: /^Test/ }).click(),
  ]);
  await page.reload();
  result.checked = await page.getByRole("switch", { name: /^Test/ }).isChecked();
});
