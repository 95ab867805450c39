// Counts for the stories of the first hour: each click on a button or link, and each key that submits something.
import { waitForTransitions } from "./app-page.mjs";

/** Starts a counter. Typed or pasted text does not count. */
export const countPresses = (start = 0) => {
  let presses = start;
  return {
    press: async (locator) => {
      presses += 1;
      await locator.click();
    },
    key: async (locator, key) => {
      presses += 1;
      await locator.press(key);
    },
    count: () => presses,
  };
};

/** Opens the setup link and fills in its form. */
export const setUpServer = async (page, setup, { email, username, password }) => {
  await page.goto(setup);
  await page.getByLabel("Email").fill(email);
  await page.getByLabel("Username").fill(username);
  await page.getByLabel("Password").fill(password);
};

export const takeScreenshot = async (page, folder, name) => {
  if (!folder) return;
  await waitForTransitions(page);
  await page.screenshot({ path: `${folder}/${name}.png` });
};
