// Web push in a browser: the person enables it, the server's message becomes a system notification, a click opens its page. The browser's
// real push service is not reachable; the test simulates it and passes on what it could decrypt. node push.mjs CHROMIUM URL EMAIL PASSWORD
// SUBSCRIPTION MESSAGE [FOLDER]
import { readFileSync } from "node:fs";
import { checkPage, openPage, signIn } from "./app-page.mjs";
import { askTest } from "./ask.mjs";
import { playInChromium } from "./chromium.mjs";
import { simulateSubscription } from "./play-subscribing.mjs";

const [file, url, email, password, subscription, message, folder] = process.argv.slice(2);
const toUrl = (path) => new URL(path, url).href;

await playInChromium(file, { viewport: { width: 1440, height: 900 } }, async (_blank, context) => {
  const problems = [];
  await context.grantPermissions(["notifications"], { origin: new URL(url).origin });
  const page = await openPage(context, problems);
  await page.addInitScript(simulateSubscription, JSON.parse(subscription));
  const result = { problems };
  await signIn(page, toUrl("/account/notifications"), email, password);
  const toggle = page.getByRole("switch", { name: /Show system notifications/ });
  /** Waits until the server has stored it. */
  const clickToggle = () =>
    Promise.all([page.waitForResponse((answer) => answer.url().endsWith("/webpush/subscription")), toggle.click()]);
  const waitForToggle = (isOn) =>
    page.waitForFunction(
      (isChecked) => document.querySelector("[aria-labelledby=this-browser] input")?.checked === isChecked,
      isOn,
    );
  await toggle.waitFor();
  await page.evaluate(() => navigator.serviceWorker.ready);
  await page.waitForFunction(() => document.querySelector("[aria-labelledby=this-browser] input")?.disabled === false);
  result.requestsBefore = await page.evaluate(() => window.permissionRequests);
  result.before = await toggle.isChecked();
  await clickToggle();
  await waitForToggle(true);
  result.permissionRequests = await page.evaluate(() => window.permissionRequests);
  result.key = await page.evaluate(() => sessionStorage.getItem("subscribed"));
  problems.push(...(await checkPage(page, "account-push", folder)));
  await page.getByRole("button", { name: "Send test notification" }).click();
  await askTest("delivered");

  // The message that the service decrypted goes to the app's own worker, as the browser would do.
  const session = await context.newCDPSession(page);
  const registered = new Promise((resolve) => {
    session.on(
      "ServiceWorker.workerRegistrationUpdated",
      ({ registrations: [registration] }) => registration && resolve(registration),
    );
  });
  await session.send("ServiceWorker.enable");
  const { registrationId } = await registered;
  const origin = new URL(url).origin;
  await session.send("ServiceWorker.deliverPushMessage", {
    origin,
    registrationId,
    data: readFileSync(message, "utf8"),
  });
  result.shown = await page.evaluate(async () => {
    const registration = await navigator.serviceWorker.ready;
    for (;;) {
      const notifications = await registration.getNotifications();
      if (notifications.length > 0) return notifications.map(({ title, body, data }) => ({ title, body, data }));
      await new Promise((resolve) => requestAnimationFrame(resolve));
    }
  });

  // A click, as the system reports it to the worker: the open page navigates without a reload.
  const [worker] = context.serviceWorkers();
  await page.evaluate(() => {
    window.same = true;
  });
  result.closed = await worker.evaluate(async (data) => {
    // Only the system can create events that can be awaited.
    const promises = [];
    let isClosed = false;
    const close = () => {
      isClosed = true;
    };
    const event = new Event("notificationclick");
    Object.assign(event, { notification: { data, close }, waitUntil: (work) => promises.push(work) });
    dispatchEvent(event);
    await Promise.all(promises);
    return isClosed;
  }, result.shown[0].data);
  await page.waitForURL(toUrl(result.shown[0].data.path));
  result.same = await page.evaluate(() => window.same);

  // The session ends, and the browser keeps its subscription. The next sign-in registers it again, on whichever page.
  await page.goto("about:blank");
  await askTest("end");
  await context.clearCookies();
  await worker.evaluate(({ endpoint, auth, p256dh }) => {
    const decode = (text) =>
      Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0)).buffer;
    const getKey = (name) => decode(name === "auth" ? auth : p256dh);
    PushManager.prototype.getSubscription = async () => ({ endpoint, getKey });
  }, JSON.parse(subscription));
  await signIn(page, toUrl("/"), email, password);
  await askTest("back");

  await page.goto(toUrl("/account/notifications"));
  await waitForToggle(true);
  await clickToggle();
  await waitForToggle(false);
  await askTest("off");
  // Signing out also ends the notifications.
  await clickToggle();
  await waitForToggle(true);
  await page.locator(".nav .account").click();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL("**/login");
  await askTest("off");
  return result;
});
process.exit(0);
