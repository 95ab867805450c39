// A typical chat: it edits a file, asks, is answered, interrupted and undone; two pages show the same; the connection is cut. node chat.mjs
// CHROMIUM URL EMAIL PASSWORD TYPED WORKSPACE AGENT SECONDS [FOLDER]
import { readFileSync } from "node:fs";
import { openPage, playInApp, signIn } from "./app-page.mjs";
import { disconnectFor, openProxy } from "./line.mjs";

const [file, url, email, password, typed, workspace, agent, seconds, folder] = process.argv.slice(2);

const line = await openProxy(url);

await playInApp({ file, url: line.url, folder }, async ({ page, context, result, toUrl, inspect }) => {
  result.line = line.url;

  await signIn(page, toUrl("/chats"), email, password);
  await page.waitForURL("**/chats");
  const message = page.getByRole("textbox", { name: "Message" });
  await message.waitFor();
  await inspect("chat-new");

  // In a workspace, selected by keyboard and mouse; the draft survives a reload.
  await message.fill("Fix the sum");
  await page.reload();
  await message.waitFor();
  result.draft = await message.inputValue();
  await page.getByRole("button", { name: "No workspace" }).click();
  await page.getByRole("button", { name: /^story/ }).click();
  await message.press("Enter");
  await page.waitForURL("**/chats/*");
  const address = new URL(page.url()).pathname;

  // The chat asks for approval, on two pages at the same time.
  const otherPage = await openPage(context, result.problems);
  await otherPage.goto(toUrl(address));
  const getApproval = (anyPage) => anyPage.getByRole("heading", { name: "Run this command?" });
  await getApproval(page).waitFor();
  await getApproval(otherPage).waitFor();
  await page.getByRole("region", { name: "Edit of work/sum.sh" }).waitFor();
  await page.getByRole("region", { name: "Diff of sum.sh" }).waitFor();
  await inspect("chat-permission");
  await page.getByRole("heading", { name: "Chat:" }).waitFor({ state: "attached" });
  await otherPage.locator("main").click({ position: { x: 5, y: 5 } });
  await otherPage.keyboard.press("a");
  for (const anyPage of [page, otherPage]) {
    await getApproval(anyPage).waitFor({ state: "detached" });
    await anyPage.getByText("it prints 5").waitFor();
  }
  const readMessages = (anyPage) => anyPage.locator(".flow").textContent();
  result.same = (await readMessages(page)) === (await readMessages(otherPage));
  result.prose = await page.locator(".prose").last().textContent();
  result.links = await page.locator(".prose a").count();
  await page.locator(".prose .code .c").first().waitFor();
  await inspect("chat-done");

  // A comment on a diff line is sent to the chat.
  await page.getByRole("button", { name: "Comment on line 1" }).last().click();
  await page.getByRole("textbox", { name: "Comment on line 1 of sum.sh" }).fill("Say why in a comment");
  await page.getByRole("button", { name: "Send to chat" }).click();
  await page.getByText("I will remember that.").waitFor();
  result.reference = await page.locator(".reference").textContent();

  // The files of its workspace: changed by the chat, existing, and one more by drop.
  const files = await openPage(context, result.problems);
  await files.goto(toUrl("/workspaces?q="));
  await files.getByRole("link", { name: "story", exact: true }).click();
  await files.getByRole("link", { name: "Files", exact: true }).click();
  await files.getByRole("region", { name: "Diff of sum.sh" }).waitFor();
  const list = files.getByRole("list", { name: "Files" });
  await list.getByRole("link", { name: /^work/ }).click();
  await list.getByRole("link", { name: /^sum\.sh/ }).click();
  await files.getByRole("region", { name: "File sum.sh" }).getByText("$1 + $2").waitFor();
  const droppedFile = await files.evaluateHandle(() => {
    const data = new DataTransfer();
    data.items.add(new File(["brought along"], "brought.txt", { type: "text/plain" }));
    return data;
  });
  const folderOfWork = files.locator("section[aria-labelledby=folder]");
  await folderOfWork.dispatchEvent("dragover", { dataTransfer: droppedFile });
  await files.getByText("Drop to upload into this folder").waitFor();
  await folderOfWork.dispatchEvent("drop", { dataTransfer: droppedFile });
  await files.getByText("Uploaded brought.txt").waitFor();
  await list.getByRole("link", { name: /^brought\.txt/ }).click();
  await files.getByRole("region", { name: "File brought.txt" }).getByText("brought along").waitFor();
  await inspect("workspace-files", files);
  const [download] = await Promise.all([
    files.waitForEvent("download"),
    files.getByRole("link", { name: "Download" }).click(),
  ]);
  result.downloaded = readFileSync(await download.path(), "utf8");
  await files.close();

  // The title is not truncated between the list and the panel of a small screen.
  await page.setViewportSize({ width: 1280, height: 800 });
  result.isTitleCut = await page.locator(".talk .bar h2").evaluate((title) => title.scrollWidth > title.clientWidth);
  await page.setViewportSize({ width: 1440, height: 900 });

  // A terminal of the workspace next to it.
  await page.getByRole("tab", { name: "Terminal" }).click();
  const terminal = page.getByRole("region", { name: "Terminal" });
  await terminal.locator(".xterm-helper-textarea").waitFor({ state: "attached" });
  await page.getByText("Connecting").waitFor({ state: "detached" });
  await terminal.locator(".xterm-helper-textarea").pressSequentially(`touch ${typed}\n`);
  await inspect("chat-terminal");
  await page.getByRole("tab", { name: "Changes" }).click();

  // The connection is cut during an answer: nothing is missing or duplicated.
  await otherPage.close();
  await message.fill("Count to 120");
  await message.press("Enter");
  await page.getByText(/1 2 3 4 5/).waitFor();
  line.cut();
  await page.getByText("The server is not responding").waitFor();
  result.staysVisible = /1 2 3 4 5/.test(await readMessages(page));
  // One banner, one scrollbar, and a correct status.
  await page.locator(".dock .status").getByText("Not connected").waitFor();
  result.offlineLayout = await page.evaluate(() => [
    document.querySelectorAll(".banner").length,
    document.documentElement.scrollHeight - innerHeight,
  ]);
  line.restore();
  await page.getByText(/118 119 120/).waitFor();
  await page.getByRole("button", { name: "Interrupt" }).waitFor({ state: "detached" });
  result.counted = await page.locator(".prose").last().textContent();

  // A message typed in the meantime is queued and can be withdrawn, and Escape interrupts.
  await message.fill("Count on");
  await message.press("Enter");
  await page
    .getByText(/1 2 3 4 5 6 7 8 9 10 11 12 13/)
    .last()
    .waitFor();
  for (const text of ["First of two", "Second of two"]) {
    await message.fill(text);
    await message.press("Enter");
    await page.getByRole("list", { name: "Queued messages" }).getByText(text).waitFor();
  }
  const queue = page.getByRole("list", { name: "Queued messages" });
  await queue.getByRole("button", { name: "Move up" }).click();
  await page.waitForFunction(() => document.querySelector(".queue li")?.textContent.includes("Second"));
  await inspect("chat-queue");
  await queue.getByRole("button", { name: "Remove from queue" }).first().click();
  await queue.getByText("Second of two").waitFor({ state: "detached" });
  const typeDuringRequest = async (route) => {
    await message.fill("Typed during the request");
    await route.continue();
  };
  await page.route(/\/queue\/\d+$/, typeDuringRequest, { times: 1 });
  await queue.getByRole("button", { name: "Take back and edit" }).click();
  await queue.waitFor({ state: "detached" });
  // The stream can remove the message from the queue before the server's answer puts its text back.
  await page.waitForFunction((box) => box.value.includes("First of two"), await message.elementHandle());
  result.takenBack = await message.inputValue();
  await message.fill("");
  await message.press("Escape");
  await page.getByRole("button", { name: "Interrupt" }).waitFor({ state: "detached" });
  result.partial = /^1 2 3 4 5 6 7/.test(await page.locator(".prose").last().textContent());

  // Slash commands.
  await message.fill("/cl");
  await page.getByRole("option", { name: "/clear" }).waitFor();
  await message.press("Tab");
  await message.press("Enter");
  await page.getByText("Context cleared.").waitFor();

  // The first message is edited, and the files are restored. On a busy machine the count above is many pages long, and messages that far away
  // are not rendered.
  await page.locator(".flow").evaluate((flow) => flow.scrollTo({ top: -flow.scrollHeight }));
  const firstMessage = page.locator(".user-message").first();
  await firstMessage.hover();
  await firstMessage.getByRole("button", { name: "Edit message" }).click();
  const edit = page.getByRole("group", { name: "Edit message" });
  await edit.getByRole("textbox").fill("Remember the sum");
  await edit.getByRole("switch").check();
  await inspect("chat-edit");
  await edit.getByRole("button", { name: "Send again" }).click();
  await page.getByText("Count to 120").waitFor({ state: "detached" });
  await page.getByText("I will remember that.").waitFor();
  result.userMessages = await page.locator(".user-text").allTextContents();
  result.chat = address;

  // In plan mode it asks a question; the answer is a message.
  await page.getByRole("link", { name: "New chat" }).click();
  await page.waitForURL("**/chats");
  await page.getByRole("radio", { name: "Plan" }).check({ force: true });
  await message.fill("Ask me");
  await message.press("Enter");
  const question = page.getByRole("group", { name: "Question" });
  await question.getByText("Which color should it be?").waitFor();
  await page.getByRole("radio", { name: "Plan", checked: true }).waitFor({ state: "attached" });
  await inspect("chat-question");
  await question.getByRole("radio", { name: /Other answer/ }).check();
  await question.getByRole("textbox").fill("Red");
  await question.getByRole("button", { name: "Answer" }).click();
  await page.getByText("I will remember that.").waitFor();
  result.answered = await page.locator(".user-text").last().textContent();

  // Checks all live parts of pages while the connection is dead.
  const callApi = async (method, path, body) => {
    const { service_session_token: token } = Object.fromEntries(
      (await context.cookies()).map(({ name, value }) => [name, value]),
    );
    const headers = { "Service-Session-Token": token, "content-type": "application/json" };
    const response = await fetch(new URL(`/api/v2${path}`, url), { method, headers, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  };
  result.away = await disconnectFor(Number(seconds), {
    line,
    chat: new URL(page.url()).pathname,
    terminal: `/terminals/${agent}`,
    log: `/workspaces/${workspace}/logs`,
    async open(path) {
      const newPage = await openPage(context, result.problems);
      await newPage.goto(toUrl(path));
      return newPage;
    },
    async act(name) {
      await callApi("POST", "/organizations", { name });
      await callApi(name === "before" ? "DELETE" : "PUT", `/workspaces/${workspace}/favorite`);
    },
  });
  await page.close();
  await line.close();
});
process.exit(0);
