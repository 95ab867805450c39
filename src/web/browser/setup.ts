// The setup page: makes the first user with the token of the link that the server prints.
import { call } from "./api.ts";
import { onSubmit, the } from "./page.ts";

const setup_token = new URLSearchParams(location.search).get("token") ?? "";

const insteadOf = (why: string): void => {
  the("why").textContent = why;
  the("instead").hidden = false;
  the("create").hidden = true;
};

const isSetUp = await call("GET", "/users/first").then(
  () => true,
  () => false,
);
if (isSetUp) insteadOf("This server has been set up already.");
else if (setup_token === "")
  insteadOf("This page needs the link that the server printed when it started. Restart it for a new one.");

onSubmit(async ({ email, username, name, password }) => {
  await call("POST", "/users/first", { setup_token, email, username, name, password });
  await call("POST", "/users/login", { email, password });
  location.replace("/");
});
