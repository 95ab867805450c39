// Push notifications of this browser, shown even if no page of the app is open. The browser asks the user for permission once.
import { signal } from "@preact/signals";
import { call, Problem } from "./api.ts";
import { getSubscription, isPushSupported, unsubscribeHere } from "./browser-push.ts";
import { toSubscriptionBody } from "./push-keys.ts";

/** `unavailable`: the browser does not support push, or the page was loaded neither over HTTPS nor from localhost. */
export type PushState = "on" | "off" | "denied" | "unknown" | "unavailable";

export const pushState = signal<PushState>("unknown");

const decodeBase64Url = (text: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (character) => character.charCodeAt(0));

const registerSubscription = (subscription: PushSubscription): Promise<void> =>
  call("POST /users/me/webpush/subscription", { body: toSubscriptionBody(subscription) });

/** Reads the state of this browser. Sends an existing subscription to the server again, because the server may have lost it. */
export const loadPushState = async (): Promise<void> => {
  if (!isPushSupported()) {
    pushState.value = "unavailable";
    return;
  }
  const subscription = await getSubscription();
  if (subscription) await registerSubscription(subscription);
  pushState.value = Notification.permission === "denied" ? "denied" : subscription ? "on" : "off";
};

/**
 * Asks the user for permission, subscribes, and registers the subscription with the server. Throws an error with a message for the user.
 */
export const enablePush = async (): Promise<void> => {
  if ((await Notification.requestPermission()) !== "granted") {
    pushState.value = Notification.permission === "denied" ? "denied" : "off";
    return;
  }
  const { webpush_public_key } = await call("GET /buildinfo");
  const { pushManager } = await navigator.serviceWorker.ready;
  const options = { userVisibleOnly: true, applicationServerKey: decodeBase64Url(webpush_public_key) };
  const subscription = await pushManager.subscribe(options).catch(async (error: unknown) => {
    // The existing subscription has the key of another server that was at this address.
    const old = await pushManager.getSubscription();
    if (!old) throw new Error(`The browser's push service failed: ${(error as Error).message}`);
    await old.unsubscribe();
    return pushManager.subscribe(options);
  });
  try {
    await registerSubscription(subscription);
  } catch (error) {
    await subscription.unsubscribe();
    throw error;
  }
  pushState.value = "on";
};

/** Unsubscribes before sign-out and closes shown notifications, so that the next user of this browser does not see them. */
export const disablePush = async (): Promise<void> => {
  await unsubscribePush().catch(() => {});
  await unsubscribeHere().catch(() => {});
};

export const unsubscribePush = async (): Promise<void> => {
  const subscription = isPushSupported() ? await getSubscription() : null;
  if (subscription) {
    const body = { endpoint: subscription.endpoint };
    await call("DELETE /users/me/webpush/subscription", { body }).catch((error: unknown) => {
      if (!(error instanceof Problem && error.status === 404)) throw error;
    });
    await subscription.unsubscribe();
  }
  if (pushState.value === "on") pushState.value = "off";
};
