// A connection between browser and server that can be cut, or silently stop working; and what pages show afterwards.
import { connect, createServer } from "node:net";
import { scaleTimeout } from "./chromium.mjs";

/** Listens on a free loopback port and forwards everything to `target`. */
export const openProxy = async (target) => {
  const pairs = new Set();
  let state = "open";
  const { hostname, port } = new URL(target);
  const server = createServer((client) => {
    if (state === "cut") return client.destroy();
    const pair = { client, upstream: connect(Number(port), hostname), isDead: state === "dead" };
    pairs.add(pair);
    for (const [source, destination] of [
      [client, pair.upstream],
      [pair.upstream, client],
    ]) {
      // Data sent on a dead connection is lost, and neither end notices.
      source.on("data", (bytes) => pair.isDead || destination.write(bytes));
      source.on("error", () => {});
      source.on("close", () => {
        if (!pair.isDead) destination.destroy();
        pairs.delete(pair);
      });
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    cut() {
      state = "cut";
      for (const { client, upstream } of pairs) for (const end of [client, upstream]) end.destroy();
    },
    /** As when a NAT forgets a connection: open connections stay open, but transfer nothing. */
    die() {
      state = "dead";
      for (const pair of pairs) pair.isDead = true;
    },
    restore() {
      state = "open";
    },
    close() {
      for (const { client, upstream } of pairs) for (const end of [client, upstream]) end.destroy();
      return new Promise((resolve) => server.close(resolve));
    },
  };
};

/** Longer than the page needs to detect a dead connection, twice. */
const DETECTION_TIMEOUT_MS = scaleTimeout(150_000);

/**
 * Keeps a chat, a terminal, a log and two lists open while the connection is dead for `seconds`. If that is too short for the pages to
 * detect it, the connection is then cut. `act(name)` makes changes that the lists show. Returns what each page shows in the end, and how
 * many placeholders it showed in the meantime.
 */
export const disconnectFor = async (seconds, { line, open, chat, terminal, log, act }) => {
  const pages = {
    chat: await open(chat),
    terminal: await open(terminal),
    log: await open(log),
    list: await open("/workspaces?q="),
  };
  const audit = await open("/audit?q=resource_type%3Aorganization");
  const entries = audit.getByRole("list", { name: "Entries" });
  const readRows = (page) =>
    page.evaluate(() => [...document.querySelectorAll(".xterm-rows > *")].map((row) => row.textContent).join(""));
  const ticks = (seconds + 6) * 2;

  await pages.list.locator("a.name").first().waitFor();
  await pages.log.locator(".log .l").first().waitFor();
  await act("before");
  await entries.getByText("before").waitFor();
  await pages.terminal.waitForFunction(() => /[#$%>]/.test(document.querySelector(".xterm-rows")?.textContent ?? ""));
  await pages.terminal.locator(".xterm-helper-textarea").focus();
  await pages.terminal.keyboard.type(
    `clear; for n in $(seq 1 ${ticks}); do printf "t$n "; sleep 0.5; done; echo e-$((40+2))`,
  );
  await pages.terminal.keyboard.press("Enter");
  await pages.terminal.waitForFunction(() => /t1 t2 t3 /.test(document.querySelector(".xterm-rows").textContent));
  const message = pages.chat.getByRole("textbox", { name: "Message" });
  await message.fill("Count to 500");
  await message.press("Enter");
  await pages.chat
    .getByText(/1 2 3 4 5 6/)
    .last()
    .waitFor();
  const lines = await pages.log.locator(".log .l").allTextContents();
  const allPages = [...Object.values(pages), audit];
  for (const page of allPages)
    await page.evaluate(() => {
      window.placeholders = 0;
      const count = () => {
        window.placeholders += document.querySelectorAll("main .skels").length;
      };
      new MutationObserver(count).observe(document.body, { childList: true, subtree: true });
    });

  line.die();
  await act("meanwhile");
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  if (seconds < 30) line.cut();
  line.restore();

  const timeout = { timeout: DETECTION_TIMEOUT_MS };
  await entries.getByText("meanwhile").waitFor(timeout);
  await pages.list.getByTitle("Pinned").first().waitFor(timeout);
  await pages.terminal.waitForFunction(
    () => document.querySelector(".xterm-rows").textContent.includes("e-42"),
    undefined,
    timeout,
  );
  await pages.chat.getByText(/498 499 500/).waitFor(timeout);
  await pages.chat.getByRole("button", { name: "Interrupt" }).waitFor({ state: "detached", ...timeout });
  const terminalText = await readRows(pages.terminal);
  const observed = {
    counted: (await pages.chat.locator(".prose").last().textContent()).trim(),
    ticked: [...terminalText.matchAll(/t(\d+)/g)].map(([, n]) => Number(n)).filter(Boolean),
    ticks,
    lines: [lines, await pages.log.locator(".log .l").allTextContents()],
    entries: await Promise.all(["before", "meanwhile"].map((text) => entries.getByText(text).count())),
    rows: await pages.list.locator("a.name").allTextContents(),
    placeholders: await Promise.all(allPages.map((page) => page.evaluate(() => window.placeholders))),
  };
  for (const page of allPages) await page.close();
  return observed;
};
