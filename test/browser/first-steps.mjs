// A new user's steps in the browser: from the link that the server prints to an answer in a running workspace. The model is one that the
// server has detected on its machine.

/** Performs these steps in the page; returns the number of clicks, and the seconds it took. */
export const takeFirstSteps = async (page, setup, { email, username, password }) => {
  const startedAt = Date.now();
  let presses = 0;
  const press = async (locator) => {
    presses += 1;
    await locator.click();
  };
  const button = (name) => page.getByRole("button", { name, exact: true });
  await page.goto(setup);
  await page.getByLabel("Email").fill(email);
  await page.getByLabel("Username").fill(username);
  await page.getByLabel("Password").fill(password);
  await press(button("Create user and sign in"));
  await press(button("Add and test"));
  await page.getByText(/qwen3-coder:30b responded/).waitFor();
  await press(page.locator(".page").getByRole("link", { name: "Create workspace" }).first());
  await press(page.getByRole("button", { name: "Create" }));
  await page.waitForURL("**/workspaces/*");
  const workspace = page.url();
  await press(page.getByRole("link", { name: "New chat", exact: true }));
  const message = page.getByRole("textbox", { name: "Message" });
  await message.waitFor();
  await message.fill("Hello");
  await message.press("Enter");
  // In the chat: a toast also contains the text, from trying the model.
  await page.getByRole("region", { name: "Chat messages" }).getByText("I will remember that.").waitFor();
  return { presses, seconds: (Date.now() - startedAt) / 1000, workspace };
};
