// The service worker: keeps the app's own scripts and styles, whose names hold their hashes, and shows a page when the server cannot be
// reached. Nothing else goes through it: what the API answers, what apps of workspaces serve, and the pages themselves always come from
// the server. The build puts the names of the files and of the page in front of it (src/web/build.ts).

import { subscriptionBody } from "./data/push-keys.ts";

declare const FILES: readonly string[];
declare const OFFLINE: { readonly path: string; readonly needs: readonly string[] };
declare const VERSION: string;
/** The address of the picture that is shown beside a notification. */
declare const PICTURE: string;

type Extendable = Event & { waitUntil(work: Promise<unknown>): void };
type Fetching = Extendable & {
  readonly request: Request;
  /** A page that the browser has asked for while the worker began. */
  readonly preloadResponse?: Promise<Response | undefined>;
  respondWith(answer: Promise<Response>): void;
};
type Pushing = Extendable & { readonly data: { json(): unknown } | null };
type Notice = { readonly data: { readonly path: string }; close(): void };
type Clicking = Extendable & { readonly notification: Notice };
type Resubscribing = Extendable & {
  readonly oldSubscription: PushSubscription | null;
  readonly newSubscription: PushSubscription | null;
};
type Window = {
  readonly url: string;
  readonly visibilityState: string;
  focus(): Promise<Window>;
  postMessage(data: unknown): void;
};
type Worker = {
  readonly registration: ServiceWorkerRegistration;
  readonly clients: {
    matchAll(options: { type: "window"; includeUncontrolled: boolean }): Promise<readonly Window[]>;
    openWindow(url: string): Promise<unknown>;
  };
  addEventListener(name: "install" | "activate", act: (event: Extendable) => void): void;
  addEventListener(name: "fetch", act: (event: Fetching) => void): void;
  addEventListener(name: "push", act: (event: Pushing) => void): void;
  addEventListener(name: "notificationclick", act: (event: Clicking) => void): void;
  addEventListener(name: "pushsubscriptionchange", act: (event: Resubscribing) => void): void;
  skipWaiting(): Promise<void>;
};

const worker = self as unknown as Worker;
const NAME = `slipway-${VERSION}`;
const kept = new Set(FILES);

worker.addEventListener("install", (event) => {
  const fill = async (): Promise<void> => {
    const cache = await caches.open(NAME);
    await cache.addAll([OFFLINE.path, ...OFFLINE.needs]);
    // What is kept never changes, so that the new one may take over at once.
    await worker.skipWaiting();
  };
  event.waitUntil(fill());
});

worker.addEventListener("activate", (event) => {
  const clear = async (): Promise<void> => {
    const others = (await caches.keys()).filter((name) => name.startsWith("slipway-") && name !== NAME);
    await Promise.all(others.map((name) => caches.delete(name)));
    // A page does not wait until this worker has begun.
    await worker.registration.navigationPreload?.enable();
  };
  event.waitUntil(clear());
});

const file = async (request: Request): Promise<Response> => {
  const cache = await caches.open(NAME);
  const known = await cache.match(request.url);
  if (known) return known;
  const answer = await fetch(request);
  if (answer.status === 200) await cache.put(request.url, answer.clone());
  return answer;
};

const page = async ({ request, preloadResponse }: Fetching): Promise<Response> => {
  try {
    return (await preloadResponse) ?? (await fetch(request));
  } catch (error) {
    const known = await caches.match(OFFLINE.path);
    if (!known) throw error;
    return known;
  }
};

worker.addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== "GET" || origin !== location.origin) return;
  if (kept.has(pathname)) event.respondWith(file(request));
  // Pages of apps (`/@owner/workspace/...`) and the API are others' affair.
  else if (request.mode === "navigate" && !/^\/(@|api\/)/.test(pathname)) event.respondWith(page(event));
});

/** What the server sends (actors/notifications/push.ts). */
type Pushed = { readonly id: string; readonly title: string; readonly body: string; readonly path: string };

worker.addEventListener("push", (event) => {
  const { id, title, body, path } = (event.data?.json() ?? {}) as Partial<Pushed>;
  event.waitUntil(
    worker.registration.showNotification(title ?? "Slipway", {
      body,
      tag: id,
      icon: PICTURE,
      data: { path: path ?? "/" },
    }),
  );
});

/** To the page that it is about: in a window that is open already, or a new one. */
const show = async (path: string): Promise<void> => {
  const wanted = new URL(path, location.origin);
  const url = wanted.origin === location.origin ? wanted.href : location.origin;
  const open = await worker.clients.matchAll({ type: "window", includeUncontrolled: true });
  // Not the pages of workspaces' apps.
  const pages = open.filter((one) => !new URL(one.url).pathname.startsWith("/@"));
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
  event.notification.close();
  event.waitUntil(show(event.notification.data.path));
});

const tell = (method: "POST" | "DELETE", body: object): Promise<Response> =>
  fetch("/api/v2/users/me/webpush/subscription", {
    method,
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });

// The browser's maker moves subscriptions now and then.
worker.addEventListener("pushsubscriptionchange", (event) => {
  const move = async (): Promise<void> => {
    const { oldSubscription: old } = event;
    const one = event.newSubscription ?? (old && (await worker.registration.pushManager.subscribe(old.options)));
    if (one) await tell("POST", subscriptionBody(one));
    if (old) await tell("DELETE", { endpoint: old.endpoint });
  };
  event.waitUntil(move());
});
