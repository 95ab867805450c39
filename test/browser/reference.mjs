// Important pages, in light and dark, on desktop and phone, compared with their references (pictures.mjs). node reference.mjs CHROMIUM URL
// TOKEN PAGES FOLDER RENEW NOW [SEEN]
import { openPage } from "./app-page.mjs";
import { playInChromium } from "./chromium.mjs";
import { comparePictures } from "./pictures.mjs";

const [file, url, token, pages, folder, renew, now, changedFolder] = process.argv.slice(2);
const toUrl = (path) => new URL(path, url).href;

await playInChromium(file, { timezoneId: "UTC", locale: "en-US" }, async (blank, context) => {
  const problems = [];
  const page = await openPage(context, problems);
  await page.clock.setFixedTime(Number(now));
  const options = { blank, folder, renew: renew === "yes", changedFolder };
  for (const [name, path, text] of JSON.parse(pages)) {
    // The sign-in page has no signed-in user.
    if (name !== "sign-in")
      await context.addCookies([
        { name: "service_session_token", value: token, url, expires: Number(now) / 1000 + 86_400 },
      ]);
    await page.goto(toUrl(path));
    await page.getByText(text).first().waitFor({ state: "attached" });
    problems.push(...(await comparePictures(page, name, options)));
  }
  // Tests the comparison itself: the same page with its content moved by two grid cells must differ.
  await page.evaluate(() => {
    document.querySelector("main").style.translate = "0 8px";
  });
  const moved = await comparePictures(page, JSON.parse(pages).at(-1)[0], {
    ...options,
    renew: false,
    changedFolder: "",
    tries: 1,
  });
  return { problems, moved };
});
process.exit(0);
