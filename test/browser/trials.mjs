// A person tries a prompt in three ways, looks at the changes of one, and keeps it. node trials.mjs CHROMIUM URL TOKEN CHAT [FOLDER]
import { playInApp } from "./app-page.mjs";

const [file, url, token, chat, folder] = process.argv.slice(2);

await playInApp({ file, url, token, folder }, async ({ page, result, toUrl, inspect }) => {
  const dialog = page.getByRole("dialog");
  const ways = page.getByRole("region", { name: "Ways" });
  const way = (number) => ways.getByRole("listitem", { name: `Way ${number}` });
  await page.goto(toUrl(`/chats/${chat}`));
  await page.getByRole("button", { name: /^More for/ }).click();
  await page.getByRole("button", { name: "Try several ways" }).click();
  await dialog.getByLabel("Prompt", { exact: true }).fill("Write nothing");
  await dialog.getByLabel("Different prompt for each way").check();
  for (const [number, word] of [
    [1, "one"],
    [2, "two"],
    [3, "three"],
  ])
    await dialog.getByLabel(`Prompt of way ${number}`).fill(`Write ${word}`);
  await dialog.getByLabel("Check command").fill("grep two answer");
  await inspect("try");
  await dialog.getByRole("button", { name: "Try 3 ways" }).click();
  await dialog.waitFor({ state: "hidden" });
  await ways.getByText("Trying 3 ways").waitFor();
  await inspect("trying");
  await way(2).getByText("Passed").waitFor();
  await ways.getByText("3 ways to choose from").waitFor();
  await way(1).getByText("Failed").waitFor();
  result.second = (await way(2).textContent()).replace(/\s+/g, " ");
  await way(1).getByText("Check exited with 1").click();
  await inspect("tried");
  await way(2).getByRole("button", { name: "Show diff of way 2" }).click();
  await dialog.getByRole("region", { name: "Diff of answer" }).waitFor();
  result.diff = (await dialog.getByRole("region", { name: "Diff of answer" }).textContent()).replace(/\s+/g, " ");
  await inspect("way-diff");
  await dialog.getByRole("button", { name: "Close" }).click();
  await way(2).getByRole("button", { name: "Keep way 2" }).click();
  result.asks = await dialog.textContent();
  await inspect("keep-way");
  await dialog.getByRole("button", { name: "Keep way 2" }).click();
  await ways.getByText("Kept way 2").waitFor();
  await inspect("kept");
  await ways.getByRole("link", { name: "Open chat" }).click();
  await page.getByText("The answer is two.").waitFor();
});
