// What opens over a page: dialogs, menus, the palette, lists of suggestions. Each is opened by keys alone, looked at, and closed by Escape.
// node overlays.mjs CHROMIUM URL TOKEN OVERLAYS [FOLDER]
import { inApp, lookAtOpen, OPEN } from "./app-page.mjs";

const [file, url, token, overlays, folder] = process.argv.slice(2);

/** What stands over the page now, by its name; empty when nothing does. */
const openNow = (page, which = OPEN) =>
  page.evaluate((selector) => {
    const open = [...document.querySelectorAll(selector)].filter((one) => one.checkVisibility());
    return open.at(-1)?.getAttribute("aria-label") ?? "";
  }, which);

/** Presses one after the other: `keys:` and `type:` where the focus is, else a button or a field by its name. */
const press = async (page, step) => {
  if (step.startsWith("keys:")) return page.keyboard.press(step.slice(5));
  if (step.startsWith("type:")) return page.keyboard.type(step.slice(5));
  const [, role = "button", name = step] = /^(textbox|combobox) (.*)$/.exec(step) ?? [];
  const found = page.getByRole(role, { name, exact: true }).last();
  await found.focus();
  if (role === "button") await page.keyboard.press("Enter");
};

await inApp({ file, url, token, folder, reducedMotion: "reduce" }, async ({ page, result, at }) => {
  result.opened = [];
  let path = "";
  for (const [where, ...steps] of JSON.parse(overlays)) {
    const name = `${where.replaceAll(/[0-9a-f-]{36}/g, "ID")} ${steps.join(" > ")}`;
    if (where !== path) await page.goto(at(where));
    path = where;
    await page.locator("h1").first().waitFor({ state: "attached" });
    for (const [n, step] of steps.entries()) {
      await press(page, step);
      // A menu opens, then what one of its items opens.
      const wanted = n > 0 && !step.includes(":") ? "dialog[open]" : OPEN;
      if (n === steps.length - 1 || (/^(keys:|[^:]*$)/.test(step) && !/^(textbox|combobox)/.test(step)))
        await page.locator(wanted).last().waitFor();
    }
    result.opened.push(await openNow(page));
    result.wrong.push(...(await lookAtOpen(page, name, folder)));
    await page.keyboard.press("Escape");
    await page.locator(OPEN).last().waitFor({ state: "hidden" });
    // Anyone who goes by keys returns to where they were.
    if (await page.evaluate(() => document.activeElement === document.body))
      result.wrong.push(`${name}: the focus is lost`);
  }
});
