// The desktop next to a chat: a window that the chat opens is visible, and receives typed text. node desktop.mjs CHROMIUM URL EMAIL
// PASSWORD [FOLDER]
import { playInApp, signIn } from "./app-page.mjs";
import { askTest } from "./ask.mjs";

const [file, url, email, password, folder] = process.argv.slice(2);

await playInApp({ file, url, folder }, async ({ page, context, result, toUrl, inspect }) => {
  await signIn(page, toUrl("/chats"), email, password);
  const message = page.getByRole("textbox", { name: "Message" });
  const sendMessage = async (text) => {
    await message.fill(text);
    await message.press("Enter");
  };
  await message.waitFor();
  await page.getByRole("button", { name: "No workspace" }).click();
  await page.getByRole("button", { name: /^story/ }).click();
  await sendMessage("Hello");
  await page.waitForURL("**/chats/*");
  await page.getByText("I will remember that.").waitFor();
  result.before = (
    await context
      .pages()
      .at(-1)
      .evaluate(() => performance.getEntriesByType("resource"))
  ).filter(({ name }) => name.includes("desktop-session")).length;
  await page.getByRole("tab", { name: "Desktop" }).click();
  const screen = page.locator(".desktop canvas");
  await screen.waitFor();
  await page.getByText("Connecting").waitFor({ state: "detached" });
  // The chat's programs find the desktop once it exists.
  await sendMessage("Paint it");
  await page.getByRole("button", { name: "Allow once" }).click();
  await page.waitForFunction(() => {
    const canvas = document.querySelector(".desktop canvas");
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let red = 0;
    for (let offset = 0; offset < data.length; offset += 4)
      if (data[offset] > 240 && data[offset + 1] < 16 && data[offset + 2] < 16) red += 1;
    return red > 20_000;
  });
  await inspect("chat-desktop");
  await screen.click({ position: { x: 60, y: 60 } });
  await page.keyboard.type("hello from afar", { delay: 20 });
  await page.keyboard.press("Enter");
  await askTest("typed");
});
process.exit(0);
