// The service worker: keeps the app's own scripts and styles, whose names hold their hashes, and shows a page when the server cannot be
// reached. Nothing else goes through it: what the API answers, what apps of workspaces serve, and the pages themselves always come from
// the server. The build puts the names of the files and of the page in front of it (src/web/build.ts).

declare const FILES: readonly string[];
declare const OFFLINE: { readonly path: string; readonly needs: readonly string[] };
declare const VERSION: string;

type Extendable = Event & { waitUntil(work: Promise<unknown>): void };
type Fetching = Extendable & { readonly request: Request; respondWith(answer: Promise<Response>): void };
type Worker = {
  addEventListener(name: "install" | "activate", act: (event: Extendable) => void): void;
  addEventListener(name: "fetch", act: (event: Fetching) => void): void;
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

const page = async (request: Request): Promise<Response> => {
  try {
    return await fetch(request);
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
  else if (request.mode === "navigate" && !/^\/(@|api\/)/.test(pathname)) event.respondWith(page(request));
});
