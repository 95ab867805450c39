// The service worker: caches the app's scripts and styles, whose names contain their hashes, and shows an offline page when the server is
// unreachable. Everything else bypasses the cache: API responses, workspace apps and the pages themselves always come from the server. The
// build adds the names of the files and of the page (src/web/build.ts).

import { toSubscriptionBody } from "./data/push-keys.ts";

declare const FILES: readonly string[];
declare const OFFLINE: { readonly path: string; readonly needs: readonly string[] };
declare const VERSION: string;
/** The URL of the icon in notifications. */
declare const PICTURE: string;

type ExtendableEvent = Event & { waitUntil(work: Promise<unknown>): void };
type FetchEvent = ExtendableEvent & {
  readonly request: Request;
  /** A page request that the browser started while the worker was starting. */
  readonly preloadResponse?: Promise<Response | undefined>;
  respondWith(answer: Promise<Response>): void;
};
type PushEvent = ExtendableEvent & { readonly data: { json(): unknown } | null };
/** Calls of a chat that wait for approval (actors/notifications/approval.ts). */
type Approval = { readonly chat: string; readonly calls: readonly string[]; readonly can_allow: boolean };
type NotificationData = { readonly path: string; readonly approval?: Approval | undefined };
type SystemNotification = {
  readonly tag: string;
  readonly title: string;
  readonly body: string;
  readonly data: NotificationData;
  close(): void;
};
/** `action` is the pressed button of the notification; empty for the notification itself. */
type NotificationClickEvent = ExtendableEvent & { readonly notification: SystemNotification; readonly action: string };
type SubscriptionChangeEvent = ExtendableEvent & {
  readonly oldSubscription: PushSubscription | null;
  readonly newSubscription: PushSubscription | null;
};
type WorkerMessageEvent = ExtendableEvent & { readonly data: unknown };
type WindowClient = {
  readonly url: string;
  readonly visibilityState: string;
  focus(): Promise<WindowClient>;
  postMessage(data: unknown): void;
};
type ServiceWorkerScope = {
  readonly registration: ServiceWorkerRegistration;
  readonly clients: {
    matchAll(options: { type: "window"; includeUncontrolled: boolean }): Promise<readonly WindowClient[]>;
    openWindow(url: string): Promise<unknown>;
  };
  addEventListener(name: "install" | "activate", act: (event: ExtendableEvent) => void): void;
  addEventListener(name: "fetch", act: (event: FetchEvent) => void): void;
  addEventListener(name: "push", act: (event: PushEvent) => void): void;
  addEventListener(name: "notificationclick", act: (event: NotificationClickEvent) => void): void;
  addEventListener(name: "pushsubscriptionchange", act: (event: SubscriptionChangeEvent) => void): void;
  addEventListener(name: "message", act: (event: WorkerMessageEvent) => void): void;
  skipWaiting(): Promise<void>;
};

const worker = self as unknown as ServiceWorkerScope;
const CACHE_NAME = `slipway-${VERSION}`;
const cachedFiles = new Set(FILES);

worker.addEventListener("install", (event) => {
  const fillCache = async (): Promise<void> => {
    const cache = await caches.open(CACHE_NAME);
    await cache.addAll([OFFLINE.path, ...OFFLINE.needs]);
    // Cached files never change, so the new worker can take over immediately.
    await worker.skipWaiting();
  };
  event.waitUntil(fillCache());
});

worker.addEventListener("activate", (event) => {
  const deleteOldCaches = async (): Promise<void> => {
    const others = (await caches.keys()).filter((name) => name.startsWith("slipway-") && name !== CACHE_NAME);
    await Promise.all(others.map((name) => caches.delete(name)));
    // Page loads do not wait until the worker has started.
    await worker.registration.navigationPreload?.enable();
  };
  event.waitUntil(deleteOldCaches());
});

const serveFile = async (request: Request): Promise<Response> => {
  const cache = await caches.open(CACHE_NAME);
  const cached = await cache.match(request.url);
  if (cached) return cached;
  const answer = await fetch(request);
  if (answer.status === 200) await cache.put(request.url, answer.clone());
  return answer;
};

const servePage = async ({ request, preloadResponse }: FetchEvent): Promise<Response> => {
  try {
    return (await preloadResponse) ?? (await fetch(request));
  } catch (error) {
    const cached = await caches.match(OFFLINE.path);
    if (!cached) throw error;
    return cached;
  }
};

worker.addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== "GET" || origin !== location.origin) return;
  if (cachedFiles.has(pathname)) event.respondWith(serveFile(request));
  // Workspace apps (`/@owner/workspace/...`) and the API are not handled here.
  else if (request.mode === "navigate" && !/^\/(@|api\/)/.test(pathname)) event.respondWith(servePage(event));
});

/** The payload that the server sends (actors/notifications/push.ts). */
type PushPayload = {
  readonly id: string;
  readonly title: string;
  readonly body: string;
  readonly path: string;
  readonly approval?: Approval;
};

const ALLOW = { action: "allow", title: "Allow" };
const DENY = { action: "deny", title: "Deny" };

const showNotification = (title: string, body: string, tag: string, data: NotificationData): Promise<void> => {
  const { approval } = data;
  const actions = approval === undefined ? [] : approval.can_allow ? [ALLOW, DENY] : [DENY];
  const options = { body, tag, icon: PICTURE, data, actions, requireInteraction: actions.length > 0 };
  return worker.registration.showNotification(title, options);
};

worker.addEventListener("push", (event) => {
  const {
    id = "",
    title = "Slipway",
    body = "",
    path = "/",
    approval,
  } = (event.data?.json() ?? {}) as Partial<PushPayload>;
  event.waitUntil(showNotification(title, body, id, approval ? { path, approval } : { path }));
});

/**
 * Answers only the calls in the notification. The server refuses answers to calls that no longer wait, and answers by anyone other than the
 * chat's owner.
 */
const sendDecision = async (
  { tag, title, body, data }: SystemNotification,
  approval: Approval,
  decision: string,
): Promise<void> => {
  const answers = approval.calls.map((tool_call_id) => ({ tool_call_id, decision }));
  const response = await fetch(`/api/v2/chats/${encodeURIComponent(approval.chat)}/permissions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ answers }),
  }).catch(() => undefined);
  if (response?.ok) return;
  const { path } = data;
  // The calls were not answered, so the user can retry.
  if (!response || response.status >= 500)
    await showNotification(title, `The server is not responding. ${body}`, tag, data);
  else if (response.status === 401)
    await showNotification("Sign in to answer", "Your session has ended. Sign in, then answer in the chat.", tag, {
      path,
    });
  else await showNotification("Not answered", "The chat is no longer waiting for this approval.", tag, { path });
};

/** Opens the page of the notification, in an existing window if there is one. */
const showPage = async (path: string): Promise<void> => {
  const target = new URL(path, location.origin);
  const url = target.origin === location.origin ? target.href : location.origin;
  const windows = await worker.clients.matchAll({ type: "window", includeUncontrolled: true });
  // Excludes pages of workspace apps.
  const pages = windows.filter((one) => !new URL(one.url).pathname.startsWith("/@"));
  const page =
    pages.find((one) => one.url === url) ?? pages.find((one) => one.visibilityState === "visible") ?? pages[0];
  if (!page) {
    await worker.clients.openWindow(url);
    return;
  }
  page.postMessage({ show: url.slice(location.origin.length) });
  await page.focus().catch(() => undefined);
};

worker.addEventListener("notificationclick", (event) => {
  const { notification, action } = event;
  const { path, approval } = notification.data;
  notification.close();
  event.waitUntil(approval && action !== "" ? sendDecision(notification, approval, action) : showPage(path));
});

const sendSubscription = (method: "POST" | "DELETE", body: object): Promise<Response> =>
  fetch("/api/v2/users/me/webpush/subscription", {
    method,
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });

// Push services move subscriptions from time to time.
worker.addEventListener("pushsubscriptionchange", (event) => {
  const moveSubscription = async (): Promise<void> => {
    const { oldSubscription: old } = event;
    const current = event.newSubscription ?? (old && (await worker.registration.pushManager.subscribe(old.options)));
    if (current) await sendSubscription("POST", toSubscriptionBody(current));
    if (old) await sendSubscription("DELETE", { endpoint: old.endpoint });
  };
  event.waitUntil(moveSubscription());
});

// A page has loaded with a session (shell/begin.ts). Subscriptions end with the session that registered them.
worker.addEventListener("message", (event) => {
  if ((event.data as { signed_in?: unknown } | null)?.signed_in !== true) return;
  const register = async (): Promise<void> => {
    const subscription = await worker.registration.pushManager.getSubscription();
    if (subscription) await sendSubscription("POST", toSubscriptionBody(subscription));
  };
  // The next page load tries again.
  event.waitUntil(register().catch(() => undefined));
});
