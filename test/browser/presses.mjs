// What stories of the first hour count: each press of a button or link, and each key that sends something.
import { settle } from "./app-page.mjs";

/** Counts from nothing. Text that is typed or pasted is no press. */
export const pressing = (start = 0) => {
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

/** Opens the setup link and fills its form. */
export const enter = async (page, setup, { email, username, password }) => {
  await page.goto(setup);
  await page.getByLabel("Email").fill(email);
  await page.getByLabel("Username").fill(username);
  await page.getByLabel("Password").fill(password);
};

export const takePicture = async (page, folder, name) => {
  if (!folder) return;
  await settle(page);
  await page.screenshot({ path: `${folder}/${name}.png` });
};
