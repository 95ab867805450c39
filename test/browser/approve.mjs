// Approving what a chat does: the mode in the composer, an edit as a diff, a command with its parts, an answer from a system notification
// while the page is elsewhere, and, from a phone, the request of a coding agent that was started on a laptop. On the phone, the diff is
// also read and the workspace restarted. node approve.mjs CHROMIUM URL EMAIL PASSWORD SUBSCRIPTION MESSAGE AGENT [FOLDER]
import { readFileSync } from "node:fs";
import { openPage, playInApp, signIn } from "./app-page.mjs";
import { askTest } from "./ask.mjs";
import { scaleTimeout } from "./chromium.mjs";
import { simulateSubscription } from "./play-subscribing.mjs";

const [file, url, email, password, subscription, message, agentJson, folder] = process.argv.slice(2);
const agent = JSON.parse(agentJson);

await playInApp({ file, url, folder }, async ({ page, context, result, toUrl, inspect }) => {
  await context.grantPermissions(["notifications"], { origin: new URL(url).origin });
  await page.addInitScript(simulateSubscription, JSON.parse(subscription));
  await signIn(page, toUrl("/chats"), email, password);
  await page.waitForURL("**/chats");
  const field = page.getByRole("textbox", { name: "Message" });
  const waitForMode = (anyPage, name) =>
    anyPage.getByRole("radio", { name, checked: true }).waitFor({ state: "attached" });
  await field.waitFor();
  await waitForMode(page, "Allow everything");

  // A chat in a workspace on this machine asks for approval, unless another mode is selected.
  await page.getByRole("button", { name: "No workspace" }).click();
  await page.getByRole("button", { name: /^story/ }).click();
  await waitForMode(page, "Ask");
  await page.getByText("Asks before it edits files").waitFor();
  await field.focus();
  for (const next of ["Accept edits", "Allow everything", "Plan", "Ask"]) {
    await page.keyboard.press("Shift+Tab");
    await waitForMode(page, next);
  }
  await inspect("approve-new");
  await field.fill("Fix the sum");
  await field.press("Enter");
  await page.waitForURL("**/chats/*");

  // An edit is shown as a diff.
  await page.getByRole("heading", { name: "Edit sum.sh?" }).waitFor();
  const diff = page.getByRole("group", { name: "Edit sum.sh?" }).getByRole("region", { name: /^Diff of/ });
  result.diff = (await diff.textContent()).replace(/\s+/g, " ");
  await inspect("approve-edit");

  // A click on another page changes the mode here.
  const otherPage = await openPage(context, result.problems);
  await otherPage.goto(page.url());
  await otherPage.getByRole("heading", { name: "Edit sum.sh?" }).waitFor();
  await otherPage.getByText("Accept edits", { exact: true }).click();
  await waitForMode(page, "Accept edits");
  await waitForMode(otherPage, "Accept edits");
  await otherPage.getByText("Ask", { exact: true }).click();
  await waitForMode(page, "Ask");
  await otherPage.close();
  await page.bringToFront();
  await page.getByRole("button", { name: "Allow once" }).click();

  // A command is shown with its parts and its folder, and the button names the rule that it would add.
  await page.getByRole("heading", { name: "Run this command?" }).waitFor();
  const command = page.getByRole("group", { name: "Run this command?" });
  await command.locator(".cmd .s").first().waitFor();
  await command.getByText("2 commands").click();
  result.parts = await command.getByRole("list", { name: "Commands in it" }).getByRole("listitem").allTextContents();
  result.runsIn = await command.locator("p").last().textContent();
  await inspect("approve-command");
  await command.getByRole("button", { name: "Always allow these 3 commands" }).click();
  await page.getByText("it prints 5").waitFor();
  await page.getByText("3 rules apply first.").waitFor();

  // Shortcuts are single keys, and the fork button asks for confirmation.
  await page.locator(".flow").click({ position: { x: 2, y: 2 } });
  await page.keyboard.press("?");
  const keys = page.getByRole("dialog", { name: "Keyboard shortcuts" });
  await keys.getByText("Next permission mode").waitFor();
  await inspect("approve-keys");
  await page.keyboard.press("Escape");
  await keys.waitFor({ state: "detached" });
  const chatUrl = page.url();
  await page.getByRole("button", { name: "Fork chat" }).click();
  await page.getByRole("heading", { name: "Fork this chat?" }).waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  result.stays = page.url() === chatUrl;

  // A tablet with a keyboard: the field has the focus, and Enter sends.
  const tabletContext = await context
    .browser()
    ?.newContext({ hasTouch: true, isMobile: true, viewport: { width: 820, height: 1180 } });
  if (tabletContext) {
    await tabletContext.addCookies(await context.cookies());
    const tablet = await openPage(tabletContext, result.problems);
    await tablet.goto(chatUrl);
    await tablet.waitForFunction(() => document.activeElement?.id === "composer");
    await tablet.keyboard.type("Count to 3");
    await tablet.keyboard.press("Enter");
    await tablet.getByText("1 2 3").first().waitFor();
    await tabletContext.close();
  }
  result.touch = tabletContext !== undefined && tabletContext !== null;

  // A coding agent is selected and asks on the laptop. The answer comes from a phone.
  await page.goto(toUrl("/chats"));
  await field.waitFor();
  await page.getByRole("button", { name: "No workspace" }).click();
  await page.getByRole("button", { name: /^story/ }).click();
  await page.getByRole("button", { name: "coder", exact: true }).click();
  await page.getByRole("button", { name: `${agent.label} Coding agent` }).click();
  await page.getByRole("button", { name: agent.label, exact: true }).waitFor();
  await field.fill(agent.prompt);
  await field.press("Control+Enter");
  await page.waitForURL("**/chats/*");
  // A genuine agent takes a while to start.
  await page.getByRole("button", { name: "Allow once" }).waitFor({ timeout: scaleTimeout(120_000) });
  await inspect("agent-laptop");
  const phoneContext = await context
    .browser()
    ?.newContext({ hasTouch: true, isMobile: true, viewport: { width: 390, height: 844 } });
  if (phoneContext) {
    await phoneContext.addCookies(await context.cookies());
    const phone = await openPage(phoneContext, result.problems);
    await phone.goto(page.url());
    const approval = phone.getByRole("group", { name: /proof-phone/ });
    await approval.waitFor();
    // Until the page knows whether the file exists, the question says "Write".
    const heading = approval.getByRole("heading", { name: /^(Create|Replace) / });
    await heading.waitFor();
    result.question = await heading.textContent();
    await inspect("agent-phone", phone);
    await phone.getByRole("button", { name: "Allow once" }).tap();
    await phone.getByText(agent.words).last().waitFor();
    await inspect("agent-phone-done", phone);
    await phoneContext.close();
  }
  await page.getByRole("button", { name: "Allow once" }).waitFor({ state: "detached" });

  // The system notification has the answer buttons, while the page is elsewhere. From here on, the person is on a phone.
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto(toUrl("/account/notifications"));
  const toggle = page.getByRole("switch", { name: /Show system notifications/ });
  await page.waitForFunction(() => document.querySelector("[aria-labelledby=this-browser] input")?.disabled === false);
  await Promise.all([
    page.waitForResponse((response) => response.url().endsWith("/webpush/subscription")),
    toggle.click(),
  ]);
  await askTest("asked");

  const session = await context.newCDPSession(page);
  const registered = new Promise((resolve) => {
    session.on(
      "ServiceWorker.workerRegistrationUpdated",
      ({ registrations: [registration] }) => registration && resolve(registration),
    );
  });
  await session.send("ServiceWorker.enable");
  const { registrationId } = await registered;
  const waitForNotification = (titlePrefix) =>
    page.evaluate(async (title) => {
      const registration = await navigator.serviceWorker.ready;
      for (;;) {
        const found = (await registration.getNotifications()).find((candidate) => candidate.title.startsWith(title));
        if (found) {
          const { tag, title: foundTitle, body, data, actions } = found;
          return {
            tag,
            title: foundTitle,
            body,
            data,
            actions: actions.map(({ action, title: label }) => [action, label]),
          };
        }
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }, titlePrefix);
  const [worker] = context.serviceWorkers();
  /** Clicks a button of the notification, as the system reports it to the worker. */
  const press = (notification, action) =>
    worker.evaluate(
      async ([notificationFields, pressed]) => {
        const promises = [];
        const event = new Event("notificationclick");
        Object.assign(event, { notification: { ...notificationFields, close: () => {} }, action: pressed });
        event.waitUntil = (work) => promises.push(work);
        dispatchEvent(event);
        await Promise.all(promises);
      },
      [notification, action],
    );
  const data = readFileSync(message, "utf8");
  await session.send("ServiceWorker.deliverPushMessage", { origin: new URL(url).origin, registrationId, data });
  const notification = await waitForNotification("Fix");
  result.notification = { body: notification.body, actions: notification.actions };
  await press(notification, "allow");
  await askTest("allowed");
  // The same notification on another device: the request is no longer pending.
  await press(notification, "deny");
  result.late = (await waitForNotification("Not answered")).body;

  // Clicking the notification itself opens the chat, where the diff is read; then its workspace is restarted.
  await press(notification, "");
  await page.waitForURL("**/chats/*");
  await page.getByText("it prints 5").waitFor();
  if (folder) await page.screenshot({ path: `${folder}/phone-command.png` });
  await page.getByRole("button", { name: "Changes", exact: true }).click();
  const changes = page.getByRole("complementary", { name: "Chat panel" }).getByRole("region", { name: /^Diff of/ });
  await changes.waitFor();
  result.changes = (await changes.textContent()).replace(/\s+/g, " ");
  if (folder) await page.screenshot({ path: `${folder}/phone-changes.png` });
  await page.getByRole("button", { name: "Close", exact: true }).click();
  await page.goto(toUrl("/workspaces"));
  await page.getByRole("link", { name: "story", exact: true }).click();
  await page.waitForURL("**/workspaces/*");
  await page.getByRole("button", { name: "Restart", exact: true }).click();
  await page
    .getByText(/^(Stopping|Starting|Pending)$/)
    .first()
    .waitFor();
  await askTest("restarted");
  await page.getByText("Running", { exact: true }).first().waitFor();
  if (folder) await page.screenshot({ path: `${folder}/phone-restarted.png` });
  await page.close();
});
process.exit(0);
