// A person manages their account in the browser. node account.mjs CHROMIUM URL EMAIL PASSWORD [FOLDER]
import { openPage, playInApp, signIn } from "./app-page.mjs";

const [file, url, email, password, folder] = process.argv.slice(2);

await playInApp({ file, url, folder }, async ({ page, context, result, toUrl, inspect }) => {
  const dialog = page.getByRole("dialog");
  const sections = page.getByRole("navigation", { name: "Account" });

  await signIn(page, toUrl("/account"), email, password);
  await page.getByLabel("Name", { exact: true }).fill("Ada Lovelace");
  await page.getByRole("button", { name: "Save profile" }).click();
  await page.getByRole("button", { name: "Ada Lovelace" }).waitFor();
  await inspect("account-profile");

  await sections.getByRole("link", { name: "Security" }).click();
  await page.getByLabel("New password").fill("password1234");
  await page.getByText("easy to guess").waitFor();
  await inspect("account-password");
  await page.getByLabel("Current password").fill("not this one");
  await page.getByLabel("New password").fill("four quiet harbours at night");
  await page.getByText("Strong enough.").waitFor();
  await page.getByRole("button", { name: "Change password" }).click();
  result.passwordError = await page.locator("form").getByRole("alert").textContent();
  await page.getByLabel("Current password").fill(password);
  await page.getByRole("button", { name: "Change password" }).click();
  await page.getByText("Password changed").waitFor();

  // A second sign-in, whose session the person ends below.
  const login = await fetch(toUrl("/api/v2/users/login"), {
    method: "POST",
    headers: { "content-type": "application/json", "user-agent": "curl/8.9.1" },
    body: JSON.stringify({ email, password: "four quiet harbours at night" }),
  });
  const { session_token } = await login.json();
  await sections.getByRole("link", { name: "Sessions" }).click();
  await page.getByText("This session").waitFor();
  await inspect("account-sessions");
  await page.getByRole("button", { name: /^End session of curl/ }).click();
  await page.getByText(/curl.* signed out/).waitFor();
  const fetchStatus = (token) =>
    fetch(toUrl("/api/v2/users/me"), { headers: { "service-session-token": token } }).then(({ status }) => status);
  result.ended = await fetchStatus(session_token);

  // The path that clients send people to.
  await page.goto(toUrl("/settings/tokens"));
  await page.getByRole("heading", { name: "No tokens yet" }).waitFor();
  result.tokensAt = new URL(page.url()).pathname;
  await page.getByRole("button", { name: "New token" }).click();
  await dialog.getByLabel("Name").fill("readme-bot");
  await dialog.getByText("Selected scopes").click();
  await dialog.getByLabel("Find scopes").fill("workspace:read");
  await dialog.getByRole("checkbox", { name: "workspace:read", exact: true }).check();
  await dialog.getByLabel("Allowed addresses").fill("127.0.0.0/8\nnowhere");
  await inspect("account-new-token");
  await dialog.getByRole("button", { name: "Create token" }).click();
  result.addressError = await dialog.locator(".error").first().textContent();
  await dialog.getByLabel("Allowed addresses").fill("127.0.0.0/8, ::1");
  await dialog.getByRole("button", { name: "Create token" }).click();
  const key = await page.getByLabel("Token", { exact: true }).textContent();
  const asToken = (path) =>
    fetch(toUrl(path), { headers: { "service-session-token": key } }).then(({ status }) => status);
  result.statusInScope = await asToken("/api/v2/workspaces");
  result.statusOutsideScope = await asToken("/api/v2/templates");
  await inspect("account-tokens");
  await page.reload();
  await page.getByText("readme-bot").waitFor();
  result.shownAgain = (await page.content()).includes(key);

  await sections.getByRole("link", { name: "Git and linked accounts" }).click();
  const before = await page.getByLabel("Public key").textContent();
  await inspect("account-accounts");
  await page.getByRole("button", { name: "Regenerate key" }).click();
  await dialog.getByRole("button", { name: "Regenerate key" }).click();
  await page.getByText("SSH key regenerated").waitFor();
  result.keys = [before, await page.getByLabel("Public key").textContent()];

  await sections.getByRole("link", { name: "Skills" }).click();
  await page.getByRole("button", { name: "Write skill" }).click();
  await dialog.getByLabel("Name").fill("Write Commits");
  await dialog.getByLabel("When to use it").fill("Before writing a commit message.");
  await dialog.getByLabel("Text").fill("Say why, not what.");
  await dialog.getByRole("button", { name: "Write skill" }).click();
  const errors = dialog.locator(".error, [role=alert]");
  await errors.first().waitFor();
  result.skillErrors = await errors.allTextContents();
  await dialog.getByLabel("Name").fill("write-commits");
  await dialog.getByRole("button", { name: "Write skill" }).click();
  await page.getByRole("button", { name: "More for write-commits" }).waitFor();
  await inspect("account-skills");

  await sections.getByRole("link", { name: "Dotfiles" }).click();
  const dotfiles = page.getByRole("form", { name: "Dotfiles" });
  await dotfiles.getByLabel("Repository").fill("https://t0ken@git.example.com/ada/dotfiles");
  await dotfiles.getByRole("button", { name: "Save dotfiles" }).click();
  await dotfiles.getByText("must not contain a password or token").waitFor();
  await dotfiles.getByLabel("Repository").fill("https://git.example.com/ada/dotfiles");
  await dotfiles.getByLabel("Install command").fill("make all");
  await dotfiles.getByRole("button", { name: "Save dotfiles" }).click();
  await dotfiles.getByRole("button", { name: "Remove dotfiles" }).waitFor();
  await inspect("account-dotfiles");

  await sections.getByRole("link", { name: "Quiet hours" }).click();
  await page.getByText("Not set: midnight UTC").waitFor();
  await page.getByLabel("Time", { exact: true }).fill("21:30");
  await page.getByLabel("Time zone").selectOption("Europe/Paris");
  await page.getByRole("button", { name: "Save quiet hours" }).click();
  await page.getByRole("button", { name: "Reset to midnight UTC" }).waitFor();
  await inspect("account-quiet-hours");

  await sections.getByRole("link", { name: "Permissions" }).click();
  await page.getByLabel("Permission mode of new chats").selectOption("ask");
  await page.getByRole("button", { name: "Add rule" }).click();
  await page.getByLabel("Command starts with").fill("git status");
  await page.getByRole("button", { name: "Save permissions" }).click();
  await page.getByText("Permissions saved").waitFor();
  await inspect("account-permissions");

  // Two tabs: changes in one appear in the other when the person returns to it, and a session that ends, ends in both.
  const tab = await openPage(context, result.problems);
  await tab.goto(toUrl("/account/tokens"));
  await tab.getByRole("button", { name: "Delete readme-bot" }).waitFor();
  await page.goto(toUrl("/account/tokens"));
  await page.getByRole("button", { name: "Delete readme-bot" }).click();
  await page.getByRole("button", { name: "Delete token" }).click();
  await page.getByText("No tokens yet").waitFor();
  await tab.getByRole("button", { name: "Delete readme-bot" }).click();
  await tab.getByRole("button", { name: "Delete token" }).click();
  await tab.getByRole("status").filter({ hasText: "no longer exists" }).waitFor();
  await tab.getByRole("dialog").waitFor({ state: "detached" });
  await tab.getByText("No tokens yet").waitFor();
  await page.evaluate(async () => {
    await fetch("/api/v2/users/logout", { method: "POST" });
  });
  await tab.waitForURL("**/login?redirect=%2Faccount%2Ftokens");
});
