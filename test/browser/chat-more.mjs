// Less frequent chat actions: approving a plan, files by drop and paste, a retry, waiting for a slot, sub-agents, a compacted history,
// pins, titles, forks, the archive, search. node chat-more.mjs CHROMIUM URL EMAIL PASSWORD [FOLDER]
import { openPage, playInApp, signIn } from "./app-page.mjs";

const [file, url, email, password, folder] = process.argv.slice(2);
const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPj/HwADBwIAMCbHYQAAAABJRU5ErkJggg==";

await playInApp({ file, url, folder }, async ({ page, context, result, toUrl, inspect }) => {
  const message = page.getByRole("textbox", { name: "Message" });
  const sendMessage = async (text) => {
    await message.fill(text);
    await message.press("Enter");
  };
  const waitForTurnEnd = () => page.getByRole("button", { name: "Interrupt" }).waitFor({ state: "detached" });
  const getGroup = (name) => page.locator(".side .chats").locator(`h2:has-text("${name}") + ul`);
  const startChat = async (text, inWorkspace = true) => {
    await page.getByRole("link", { name: "New chat" }).click();
    await page.waitForURL("**/chats");
    // Only the page of a new chat has this label. Text typed earlier would go to the previous chat.
    const workspaceButton = page.getByRole("button", { name: "No workspace" });
    await workspaceButton.waitFor();
    if (inWorkspace) {
      await workspaceButton.click();
      await page.getByRole("button", { name: /^story/ }).click();
    }
    await sendMessage(text);
    await page.waitForURL("**/chats/*");
  };

  await signIn(page, toUrl("/chats"), email, password);
  await message.waitFor();

  // A plan: its file is shown, the chat is listed as waiting for approval, and is approved from there.
  await page.getByRole("radio", { name: "Plan" }).check({ force: true });
  await startChat("Plan it");
  const plan = page.getByRole("group", { name: "Plan" });
  await plan.getByRole("heading", { name: "Sort the shelf" }).waitFor();
  await getGroup("Needs you").getByRole("link").first().waitFor();
  result.needs = await getGroup("Needs you").locator(".sub").first().textContent();
  await inspect("chat-plan");
  await page.goto(toUrl("/"));
  await page.locator(".what", { hasText: "waiting for your approval" }).waitFor();
  await page.goBack();
  await plan.getByRole("button", { name: "Approve and start" }).click();
  await page.getByText("Go ahead with the plan.").waitFor();
  await waitForTurnEnd();
  await page.getByRole("radio", { name: "Plan", checked: false }).waitFor({ state: "attached" });
  await getGroup("Needs you").waitFor({ state: "detached" });

  // Files: dropped on the composer, pasted as an image; sent and shown.
  const createTransfer = (kind, name) =>
    page.evaluateHandle(
      ([pixel, type, fileName]) => {
        const data = new DataTransfer();
        const bytes =
          type === "image/png" ? Uint8Array.from(atob(pixel), (character) => character.charCodeAt(0)) : "some words";
        data.items.add(new File([bytes], fileName, { type }));
        return data;
      },
      [PIXEL, kind, name],
    );
  const composer = page.locator("form.composer");
  const dropped = await createTransfer("text/plain", "notes.txt");
  await composer.dispatchEvent("dragover", { dataTransfer: dropped });
  await page.getByPlaceholder("Drop files here").waitFor();
  await inspect("chat-drop");
  await composer.dispatchEvent("drop", { dataTransfer: dropped });
  await composer.getByText("notes.txt").waitFor();
  const pasted = await createTransfer("image/png", "");
  await message.evaluate((box, data) => {
    box.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
  }, pasted);
  await composer.getByText("pasted.png").waitFor();
  await page.getByText("Uploading").waitFor({ state: "detached" });
  await page.reload();
  await composer.getByText("notes.txt").waitFor();
  await sendMessage("Look at these");
  await page.locator(".user-text img").waitFor();
  await page.locator(".user-text").getByText("notes.txt").waitFor();
  await waitForTurnEnd();
  await inspect("chat-files");

  // A provider error: the time until the next attempt, and then the answer.
  await sendMessage("Be busy");
  await page.getByText(/Retrying (in \d+ s )?\(attempt \d\)/).waitFor();
  await inspect("chat-retry");
  await page.getByText("I will remember that.").last().waitFor();
  await waitForTurnEnd();

  // Sub-agents are listed below their chat, with their status.
  await sendMessage("Send two");
  const tree = page.getByRole("list", { name: "Sub-agents" });
  await tree.getByText("Reads the tests").waitFor();
  await tree.getByText("Reads the code").waitFor();
  await inspect("chat-tree");
  await waitForTurnEnd();
  const mainUrl = page.url();
  await tree.getByText("Reads the code").click();
  await page.getByText(/38 39 40/).waitFor();
  await page.getByRole("link", { name: /\/$/ }).waitFor();
  await inspect("chat-child");
  await page.goto(mainUrl);

  // While the only slot is taken, another chat waits and says so.
  await startChat("Count on", false);
  await page.getByText(/1 2 3 4 5/).waitFor();
  const countingUrl = page.url();
  await startChat("Hello", false);
  await page.getByText("Waiting for a slot: other chats are running").waitFor();
  await inspect("chat-slot");
  await page.goto(countingUrl);
  await page.getByText(/1 2 3 4 5/).waitFor();
  await message.press("Escape");
  await waitForTurnEnd();

  // The history is compacted; the summary is in a collapsed section.
  await page.goto(mainUrl);
  await message.fill("/comp");
  await page.getByRole("option", { name: "/compact" }).waitFor();
  await message.press("Tab");
  await message.press("Enter");
  const fold = page.locator("details.fold", { hasText: "Summarized" });
  await fold.waitFor();
  await waitForTurnEnd();
  await fold.locator("summary").click();
  await fold.getByText("I will remember that.").waitFor();
  await inspect("chat-compacted");

  // Its title, a pin, a fork, the archive, and searching its messages.
  const openMenuItem = async (item) => {
    await page.getByRole("button", { name: /^More for/ }).click();
    await page.getByRole("region", { name: "Conversation" }).getByRole("button", { name: item, exact: true }).click();
  };
  await openMenuItem("Rename");
  await page.getByLabel("Title").fill("The shelf");
  await inspect("chat-rename");
  await page.getByRole("button", { name: "Rename", exact: true }).click();
  await page.getByRole("heading", { name: "The shelf", exact: true }).waitFor();
  await openMenuItem("Pin");
  await getGroup("Pinned").getByText("The shelf").waitFor();
  await openMenuItem("Fork");
  await page.getByRole("dialog", { name: "Fork this chat?" }).getByRole("button", { name: "Fork chat" }).click();
  await page.waitForFunction((before) => location.href !== before, mainUrl);
  await page.getByText("Chat forked. This is the copy.").waitFor();
  await page.locator(".user-text", { hasText: "Send two" }).waitFor();
  result.forked = await page.locator(".user-text").count();
  await openMenuItem("Archive");
  await page.getByText("This chat is archived.").waitFor();
  await page.getByRole("button", { name: "Group chats" }).click();
  await page.getByRole("button", { name: "Archived" }).click();
  await getGroup("Archived").getByRole("link").first().waitFor();
  await inspect("chat-archived");
  await openMenuItem("Unarchive");
  await page.getByRole("button", { name: "Group chats" }).click();
  await page.getByRole("button", { name: "By state" }).click();
  await page.getByRole("button", { name: "Search chats" }).click();
  await page.getByRole("searchbox", { name: "Search in all chats" }).fill("shelf colour");
  await page.locator(".side .chats").getByText("No matching chats.").waitFor();
  await page.getByRole("searchbox", { name: "Search in all chats" }).fill("Look at these");
  await page.locator(".side .chats").getByText("The shelf").first().waitFor();
  await inspect("chat-search");

  // Another model for one message, and its reasoning effort.
  await page.goto(mainUrl);
  await page.getByRole("button", { name: "Coder", exact: false }).first().click();
  await inspect("chat-models");
  await page.getByRole("button", { name: /Second/ }).click();
  await page.getByRole("button", { name: /^Effort/ }).click();
  await page.getByRole("button", { name: "high", exact: true }).click();
  await page.getByText("Effort: high").waitFor();
  await sendMessage("Hello there");
  await waitForTurnEnd();
  await page.getByRole("img", { name: /Context used/ }).waitFor();

  // Each of two tabs keeps its draft. When one deletes the chat, the other offers a new chat with its draft.
  await startChat("Remember two tabs", false);
  await waitForTurnEnd();
  const tab = await openPage(context, result.problems);
  await tab.goto(page.url());
  await message.fill("Typed in the one");
  const otherMessage = tab.getByRole("textbox", { name: "Message" });
  await otherMessage.fill("Typed in the other");
  await page.reload();
  await message.waitFor();
  result.typed = [await message.inputValue(), await otherMessage.inputValue()];
  await openMenuItem("Delete");
  await page.getByRole("button", { name: "Delete chat" }).click();
  await tab.getByText("Chat not found").waitFor();
  await tab.getByRole("button", { name: "New chat from this draft" }).click();
  await tab.waitForURL("**/chats");
  await tab.waitForFunction(() => document.querySelector("textarea")?.value === "Typed in the other");
});
