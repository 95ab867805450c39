// The terminal page: job control, splits, tabs, search, a file by drop, font size, a phone's extra keys, and reconnecting after a reload
// and after the server was killed. node terminal.mjs CHROMIUM URL EMAIL PASSWORD AGENT [FOLDER]
import { countRestyledElements, playInApp, signIn } from "./app-page.mjs";
import { askTest } from "./ask.mjs";
import { scaleTimeout } from "./chromium.mjs";

const [file, url, email, password, agent, folder] = process.argv.slice(2);

await playInApp({ file, url, folder }, async ({ page, context, result, toUrl, inspect }) => {
  const getPane = (n) => page.getByRole("region", { name: new RegExp(`^Terminal ${n}\\b`) });
  const getRows = (n) => getPane(n).locator(".xterm-rows");
  const waitForPattern = (n, pattern, options) =>
    page.waitForFunction(
      ([name, expected]) => {
        const sections = [...document.querySelectorAll("section[aria-label]")];
        const found = sections.find((section) => section.getAttribute("aria-label").split(",")[0] === name);
        return new RegExp(expected).test(found?.querySelector(".xterm-rows")?.textContent ?? "");
      },
      [`Terminal ${n}`, pattern],
      options,
    );
  const waitForText = (n, text, options) => waitForPattern(n, text.replace(/[.$]/g, "\\$&"), options);
  const waitForPrompt = (n) => waitForPattern(n, "[#$%>] ");
  const type = async (text) => {
    await page.keyboard.type(text);
    await page.keyboard.press("Enter");
  };

  await signIn(page, toUrl("/terminals"), email, password);
  await page.waitForURL("**/terminals");
  await page.getByRole("link", { name: /^story/ }).waitFor();
  await inspect("terminals");
  await page.getByRole("link", { name: /^story/ }).click();
  await page.waitForURL(`**/terminals/${agent}`);
  await page.waitForFunction(() => /[#$%>]/.test(document.querySelector(".xterm-rows")?.textContent ?? ""));

  // Job control: a program is stopped, continues in the background, returns, and is interrupted. A key sent before the program is in the
  // foreground would go only to the shell.
  await type("kept=$((6*7)); mkdir -p deep; cd deep; sh -c 'echo up-$((1+1)); exec sleep 1000'");
  await waitForText(1, "up-2");
  await page.keyboard.press("Control+z");
  await waitForText(1, "Stopped");
  await type("bg; jobs");
  await waitForText(1, "Running");
  await type("fg");
  await waitForPattern(1, "fg\\s*sh -c");
  await page.keyboard.press("Control+c");
  await type("echo code-$? kept-$kept");
  await waitForText(1, "code-130 kept-42");

  // A typed character recomputes the styles of its row, not of the page.
  result.restyled = await countRestyledElements(page, async () => {
    await page.keyboard.type("echo let");
    await waitForText(1, "echo let");
    await page.keyboard.type("ter-$((1+1))");
    await waitForText(1, "letter-$((1+1))".replace(/[()+]/g, "\\$&"));
  });
  await page.keyboard.press("Enter");
  await waitForText(1, "letter-2");

  // A paste larger than a message arrives completely, and later keys come after it.
  await type("stty -echo; echo go-$((1+1)); cat > pasted; stty echo; echo pasted-$(wc -c < pasted)");
  // The shell's line editing, which would consume the first part, has ended.
  await waitForText(1, "go-2");
  await page.evaluate(
    (text) => {
      const clipboardData = new DataTransfer();
      clipboardData.setData("text/plain", text);
      const paste = new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true });
      document.querySelector(".xterm-helper-textarea").dispatchEvent(paste);
    },
    `${"0123456789".repeat(10)}\n`.repeat(20_000),
  );
  await page.keyboard.press("Control+d");
  await waitForText(1, "pasted-2020000");

  // Splits, each with its own shell; then a tab.
  await page.keyboard.press("Alt+Shift+R");
  await getPane(2).waitFor();
  await page.waitForFunction(() => document.querySelectorAll(".xterm-rows").length === 2);
  await waitForPrompt(2);
  await type("echo other-$kept-$((1+1))");
  await waitForText(2, "other--2");
  await page.getByRole("button", { name: "More terminal actions" }).click();
  await page.getByRole("button", { name: /Split below/ }).click();
  await waitForPrompt(3);
  await type("for i in $(seq 1 500); do echo line-$i; done; printf '\\e]0;counting\\a'; echo https://example.com/x");
  await waitForText(3, "example.com/x");
  await getPane(3).getByText("counting", { exact: true }).waitFor();
  await inspect("terminal-splits");

  // Search goes up through the scrollback.
  await page.keyboard.press("Control+Shift+F");
  const search = page.getByRole("searchbox", { name: "Search terminal" });
  await search.fill("line-77");
  await waitForText(3, "line-77");
  await inspect("terminal-search");
  await search.fill("nothing-like-it");
  await page.getByText("No results").waitFor();
  await page.keyboard.press("Escape");

  // A file dropped on the first pane is stored in that pane's current folder.
  const drop = async (text) => {
    const data = await page.evaluateHandle((content) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([content], "dropped.txt", { type: "text/plain" }));
      return transfer;
    }, text);
    await getPane(1).dispatchEvent("dragover", { dataTransfer: data });
    await page.getByText("Drop to upload").waitFor();
    await getPane(1).dispatchEvent("drop", { dataTransfer: data });
  };
  await drop("first of two");
  await page.getByText(/Uploaded .*deep\/dropped.txt/).waitFor();
  await drop("second of two");
  await page.getByRole("button", { name: "Replace file" }).waitFor();
  await inspect("terminal-replace");
  await page.getByRole("button", { name: "Replace file" }).click();
  await getPane(1).locator(".xterm-screen").click();
  await type("cat dropped.txt");
  await waitForText(1, "second of two");

  // Ctrl-C copies the selection.
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await type("echo copy''-me");
  await waitForText(1, "copy-me");
  const box = await getRows(1)
    .locator("div", { hasText: /^copy-me/ })
    .first()
    .boundingBox();
  await page.mouse.dblclick(box.x + 10, box.y + 6);
  await page.keyboard.press("Control+c");
  await page.waitForFunction(async () => (await navigator.clipboard.readText()).startsWith("copy"));
  result.copied = await page.evaluate(() => navigator.clipboard.readText());

  // 24-bit colors, which the page's policy would block as style attributes.
  await type("printf '\\e[38;2;200;30;40mtr''ue\\e[0m\\n'");
  await waitForText(1, "true");
  result.colour = await getRows(1)
    .locator("span", { hasText: /^true$/ })
    .first()
    .evaluate((span) => getComputedStyle(span).color);

  // The button does the same.
  const chooser = page.waitForEvent("filechooser");
  await page.getByRole("button", { name: "More terminal actions" }).click();
  await page.getByRole("button", { name: "Upload files" }).click();
  const chosenFile = { name: "chosen.txt", mimeType: "text/plain", buffer: Buffer.from("third") };
  await (await chooser).setFiles(chosenFile);
  await page.getByText(/Uploaded .*deep\/chosen.txt/).waitFor();
  // Leaves the terminal with the keyboard.
  await page.locator(".xterm-helper-textarea").first().focus();
  await page.keyboard.press("Alt+Shift+ArrowUp");
  result.focusAfterLeaving = await page.evaluate(() => document.activeElement.ariaLabel);

  // Font size.
  const readSize = () => page.locator(".foot .num").textContent();
  const before = await readSize();
  await page.getByRole("button", { name: "More terminal actions" }).click();
  await page.getByRole("button", { name: "Font size 18" }).click();
  await page.waitForFunction((previous) => document.querySelector(".foot .num").textContent !== previous, before);

  // A new tab; then everything is restored after a reload, and after the server was killed.
  await page.getByRole("button", { name: "New terminal" }).click();
  await waitForPrompt(4);
  await type("echo in-tab-$((40+2))");
  await waitForText(4, "in-tab-42");
  await page.keyboard.press("Alt+1");
  await waitForText(1, "second of two");
  await page.reload();
  await waitForText(1, "second of two");
  result.panes = await page.locator(".column > section").count();
  await askTest("restart");
  await page.getByText("Connection lost.").first().waitFor({ state: "detached" });
  await getPane(1).locator(".xterm-screen").click();
  // Input typed before the page has noticed the disconnect is lost.
  for (let tries = 1; ; tries++) {
    await type("echo still-$kept");
    const hasReturned = await waitForText(1, "still-42", { timeout: scaleTimeout(10_000) }).then(
      () => true,
      () => false,
    );
    if (hasReturned) break;
    if (tries === 6) throw new Error("the terminal did not return");
  }
  await inspect("terminal");

  // On a phone, one pane at a time, with the keys that its keyboard lacks.
  await page.setViewportSize({ width: 390, height: 844 });
  const keys = page.getByRole("toolbar", { name: "Keys" });
  // The program must be in the foreground to receive the key.
  await type("sh -c 'echo be\"gun\"; exec sleep 1000'");
  await waitForText(1, "begun");
  await keys.getByRole("button", { name: "Ctrl" }).click();
  await keys.getByRole("button", { name: "Ctrl", pressed: true }).waitFor();
  await page.keyboard.type("c");
  await type("echo after-$?");
  await waitForText(1, "after-130");
  await keys.getByRole("button", { name: "Up" }).click();
  await page.keyboard.press("Enter");
  await waitForText(1, "after-0");
  result.shown = await page.locator(".column > section:visible").count();
  await page.setViewportSize({ width: 1440, height: 900 });

  // When a shell ends, another is offered; closing removes a pane.
  await getPane(1).locator(".xterm-screen").click();
  await type("exit");
  await getPane(1).getByRole("button", { name: "Open another" }).click();
  await waitForPrompt(1);
  for (const n of [3, 2]) await page.getByRole("button", { name: `Close terminal ${n}` }).click();
  result.remainingPanes = await page.locator(".column > section:visible").count();

  await page.goto(toUrl("/terminals/00000000-0000-4000-8000-000000000000"));
  await page.getByText("Can't connect").waitFor();
});
process.exit(0);
