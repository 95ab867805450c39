// The setup page: makes the first user with the token of the link that the server prints.
import { call } from "./api.ts";
import { isSetUp, onSubmit, run, the } from "./page.ts";

const setup_token = new URLSearchParams(location.search).get("token") ?? "";

const insteadOf = (why: string): void => {
  the("why").textContent = why;
  the("instead").hidden = false;
};

onSubmit(async ({ email, username, name, password }) => {
  await call("POST", "/users/first", { setup_token, email, username, name, password });
  await call("POST", "/users/login", { email, password });
  location.replace("/");
});
run(async () => {
  const isDone = await isSetUp().catch((error) => {
    // The form holds the place where problems are said.
    the("create").hidden = false;
    throw error;
  });
  the("to-login").hidden = !isDone;
  if (isDone) insteadOf("This server has been set up already.");
  else if (setup_token === "")
    insteadOf(
      "This page needs the link that the server printed when it started. To get a new link, restart the server.",
    );
  else the("create").hidden = false;
});
