// Whether the content of each page takes one round trip: what it asks the server for is on its way before the app's own code is there.

/** Of the frame around every page, and of the live lists: no page's content waits for it. */
const OF_THE_FRAME = ["/appearance", "/users/me/appearance", "/notifications/inbox", "/chats?limit=100"];

/** What the server writes into the page. */
const CAME = ["/users/me", "/organizations", "/users/me/roles", "/chats?limit=100"];

/** In the page: notes what is asked for, and whether that was in the head of the page, before there was a body. */
const noteRequests = () => {
  window.asked = [];
  window.unanswered = 0;
  const { fetch } = window;
  window.fetch = async (address, ...more) => {
    const text = String(address);
    if (text.startsWith("/api/v2/")) window.asked.push({ address: text.slice(7), isEarly: document.body === null });
    window.unanswered += 1;
    try {
      return await fetch(address, ...more);
    } finally {
      // What follows from an answer is asked for by then.
      setTimeout(() => {
        window.unanswered -= 1;
      }, 50);
    }
  };
};

const isAmong = (address, texts) =>
  texts.some((text) => (text.endsWith("*") ? address.startsWith(text.slice(0, -1)) : address === text));

/** On a busy machine the server sends a page without what it begins with rather than late: then it is opened again. */
const TRIES = 10;

/** Opens a page that begins with what comes with it; gives what it asked for, and what nobody took. */
const openWhole = async (page, address, left = TRIES) => {
  await page.goto(address);
  const isThere = () => document.querySelector("h1") && window.unanswered === 0 && window.early.answers.size === 0;
  const isHere = await page.waitForFunction(isThere).then(Boolean, () => false);
  const told = await page.evaluate(() => [window.asked, [...window.early.answers.keys()]]);
  const isWhole = !told[0].some(({ address: one, isEarly }) => isEarly && isAmong(one, CAME));
  return isWhole || left === 1 ? [isHere, ...told] : openWhole(page, address, left - 1);
};

/**
 * Opens each page again: a path, and the addresses below /api/v2 that it may ask for only when others have been answered (all that begin
 * so, with `*`). Gives what was asked late, twice, or early and for nobody.
 */
export const badlyAsked = async (page, at, pages) => {
  await page.addInitScript(noteRequests);
  const wrong = [];
  for (const [path, ...later] of pages) {
    const [isHere, asked, left] = await openWhole(page, at(path));
    if (!isHere) wrong.push(`${path}: does not come`);
    for (const [n, { address, isEarly }] of asked.entries()) {
      if (isEarly && isAmong(address, CAME)) wrong.push(`${path}: asks for ${address}, which came with it`);
      if (isAmong(address, [...OF_THE_FRAME, ...later])) continue;
      if (asked.findIndex((one) => one.address === address) < n) wrong.push(`${path}: asks twice for ${address}`);
      else if (!isEarly) wrong.push(`${path}: asks late for ${address}`);
    }
    wrong.push(...left.map((key) => `${path}: nobody takes ${key}`));
  }
  return wrong;
};

/**
 * Presses the first link of Home to an address that begins so. Gives what was asked for in the moment of the press, before the page behind
 * it was there, with what was asked twice or is left over.
 */
export const askedByPress = async (page, at, begins) => {
  // Whatever Home began with has been taken: nothing takes it once the page is left.
  await openWhole(page, at("/"));
  const link = page.locator(`main a[href^="${begins}"]`).first();
  const path = await link.getAttribute("href");
  const pressed = await link.evaluate((element) => {
    window.asked = [];
    element.click();
    return window.asked.map(({ address }) => address);
  });
  await page.waitForURL(`**${path}`);
  await page.waitForFunction(() => window.unanswered === 0 && window.early.answers.size === 0);
  const asked = await page.evaluate(() => window.asked.map(({ address }) => address));
  const twice = pressed.filter((address) => asked.indexOf(address) !== asked.lastIndexOf(address));
  return { pressed: pressed.map((address) => address.replace(path, begins)), twice };
};
