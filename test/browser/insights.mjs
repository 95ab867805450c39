// The insights page: figures and plots, date ranges, by keyboard, as a file. node insights.mjs CHROMIUM URL TOKEN [FOLDER]
import { readFileSync } from "node:fs";
import { playInApp } from "./app-page.mjs";

const [file, url, token, folder] = process.argv.slice(2);
const options = { file, url, token, folder, timezoneId: "Europe/Stockholm" };

await playInApp(options, async ({ page, result, toUrl, inspect }) => {
  const tabs = page.getByRole("navigation", { name: "Insight sections" });

  await page.goto(toUrl("/insights"));
  const usersPlot = page.getByRole("slider", { name: "Users per day, by day" });
  await usersPlot.waitFor();
  await page.locator(".plot-box canvas").first().waitFor();
  result.last = await usersPlot.getAttribute("aria-valuetext");
  await usersPlot.focus();
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("ArrowLeft");
  result.moved = await usersPlot.getAttribute("aria-valuetext");
  await inspect("insights-use");

  await tabs.getByRole("link", { name: "Builds" }).click();
  await page.getByRole("slider", { name: "Build time, by day" }).waitFor();
  await page.locator(".plot-box canvas").nth(1).waitFor();
  result.builds = (await page.locator(".stats dd").first().textContent()).trim();
  await page.mouse.move(0, 0);
  const box = await page.locator(".plot-box").first().boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + 80);
  await inspect("insights-builds");
  const downloading = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download as CSV" }).click();
  const download = await downloading;
  result.file = download.suggestedFilename().startsWith("slipway-builds-");
  result.csv = readFileSync(await download.path(), "utf8");

  await page.getByRole("button", { name: "7 days" }).click();
  await page.waitForURL("**/insights/builds?days=7");
  await page.waitForFunction(() => document.querySelector(".plot-box")?.getAttribute("aria-valuemax") === "6");
  result.days = 7;
  await tabs.getByRole("link", { name: "Chats and cost" }).click();
  await page.getByRole("slider", { name: "Tokens by model, by day" }).waitFor();
  result.keepsPeriod = page.url().endsWith("/insights/chats?days=7");
  await page.goto(toUrl("/insights/chats"));
  await page.locator(".plot-box canvas").nth(2).waitFor();
  await inspect("insights-chats");

  await tabs.getByRole("link", { name: "AI usage" }).click();
  await page.getByRole("slider", { name: "Cost, by day" }).waitFor();
  await page.getByRole("region", { name: "Breakdown" }).getByText("grace").waitFor();
  await inspect("insights-ai-usage");
  const [recorded] = await page.getByRole("button", { name: /^Read call/ }).all();
  await recorded.click();
  const recordingDialog = page.getByRole("dialog", { name: "Call of grace to test-model" });
  result.answer = await recordingDialog.getByRole("region", { name: "Answer" }).locator("pre").textContent();
  await recordingDialog.getByText("Name the project").waitFor();
  await inspect("insights-recording");
  await page.keyboard.press("Escape");
  await page.getByLabel("Group by").selectOption("Group");
  await page.getByRole("cell", { name: "No group" }).waitFor();
  await page.getByLabel("Group by").selectOption("Day");
  const usage = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download as CSV" }).click();
  result.usage = readFileSync(await (await usage).path(), "utf8");
  await page.goto(toUrl("/account/ai-usage"));
  await page.getByRole("slider", { name: "Cost, by day" }).waitFor();
  result.choices = await page.getByLabel("Group by").locator("option").allTextContents();
  await inspect("account-ai-usage");
  await page.goto(toUrl("/insights/chats"));

  await tabs.getByRole("link", { name: "Latency" }).click();
  await page.getByRole("table").waitFor();
  await inspect("insights-latency");

  await page.getByRole("button", { name: /to \d+/ }).click();
  await page.getByLabel("First day").fill("2020-01-01");
  await page.getByLabel("Last day").fill("2020-01-03");
  await inspect("insights-days");
  await page.getByText("UTC", { exact: true }).click();
  await page.getByRole("button", { name: "Apply" }).click();
  await page.getByText("No workspace connections in this period.").waitFor();
  await inspect("insights-empty");
});
