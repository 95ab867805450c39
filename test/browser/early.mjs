// Checks that the content of each page takes one round trip: its requests are sent before the app's own code has loaded.

/** Requests of the frame around every page, and of the live lists, for which no page's content waits. */
const FRAME_REQUESTS = ["/appearance", "/users/me/appearance", "/notifications/inbox", "/chats?limit=100"];

/** Data that the server embeds in the page. */
const EMBEDDED = ["/users/me", "/organizations", "/users/me/roles", "/chats?limit=100"];

/** Runs in the page: records requests, and whether they were sent from the page's head, before there was a body. */
const recordRequests = () => {
  window.sentRequests = [];
  window.unanswered = 0;
  const { fetch } = window;
  window.fetch = async (address, ...options) => {
    const text = String(address);
    if (text.startsWith("/api/v2/"))
      window.sentRequests.push({ address: text.slice(7), isEarly: document.body === null });
    window.unanswered += 1;
    try {
      return await fetch(address, ...options);
    } finally {
      // Requests that follow from a response are sent by then.
      setTimeout(() => {
        window.unanswered -= 1;
      }, 50);
    }
  };
};

const matchesAny = (address, texts) =>
  texts.some((text) => (text.endsWith("*") ? address.startsWith(text.slice(0, -1)) : address === text));

/** A busy server omits the embedded data, instead of sending the page late. Then the page is opened again. */
const TRIES = 10;

/** Opens a page that has its embedded data; returns its requests, and unused prefetches. */
const openPage = async (page, address, triesLeft = TRIES) => {
  await page.goto(address);
  const isLoaded = () => document.querySelector("h1") && window.unanswered === 0 && window.early.answers.size === 0;
  const hasLoaded = await page.waitForFunction(isLoaded).then(Boolean, () => false);
  const requestsAndUnused = await page.evaluate(() => [window.sentRequests, [...window.early.answers.keys()]]);
  const hasEmbeddedData = !requestsAndUnused[0].some(
    ({ address: requestAddress, isEarly }) => isEarly && matchesAny(requestAddress, EMBEDDED),
  );
  return hasEmbeddedData || triesLeft === 1
    ? [hasLoaded, ...requestsAndUnused]
    : openPage(page, address, triesLeft - 1);
};

/**
 * Opens each page again: a path, and the URLs below /api/v2 that it may request only after other responses (with `*` as a wildcard at the
 * end). Returns requests that were late, sent twice, or early and unused.
 */
export const listBadRequests = async (page, toUrl, pages) => {
  await page.addInitScript(recordRequests);
  const problems = [];
  for (const [path, ...later] of pages) {
    const [hasLoaded, requested, unused] = await openPage(page, toUrl(path));
    if (!hasLoaded) problems.push(`${path}: does not load`);
    for (const [n, { address, isEarly }] of requested.entries()) {
      if (isEarly && matchesAny(address, EMBEDDED))
        problems.push(`${path}: requests ${address}, which the page embeds`);
      if (matchesAny(address, [...FRAME_REQUESTS, ...later])) continue;
      if (requested.findIndex((request) => request.address === address) < n)
        problems.push(`${path}: requests twice ${address}`);
      else if (!isEarly) problems.push(`${path}: requests late ${address}`);
    }
    problems.push(...unused.map((key) => `${path}: does not use the response to ${key}`));
  }
  return problems;
};

/**
 * Clicks the first link on Home to a URL with this prefix. Returns the requests that the click itself sends, before the target page exists,
 * and which of them are sent twice.
 */
export const listRequestsOnPress = async (page, toUrl, prefix) => {
  // Home has used its prefetched responses by then; they would stay unused after the page is left.
  await openPage(page, toUrl("/"));
  const link = page.locator(`main a[href^="${prefix}"]`).first();
  const path = await link.getAttribute("href");
  const pressed = await link.evaluate((element) => {
    window.sentRequests = [];
    element.click();
    return window.sentRequests.map(({ address }) => address);
  });
  await page.waitForURL(`**${path}`);
  await page.waitForFunction(() => window.unanswered === 0 && window.early.answers.size === 0);
  const requested = await page.evaluate(() => window.sentRequests.map(({ address }) => address));
  const twice = pressed.filter((address) => requested.indexOf(address) !== requested.lastIndexOf(address));
  return { pressed: pressed.map((address) => address.replace(path, prefix)), twice };
};
