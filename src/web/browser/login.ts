// The sign-in page.
import { call } from "./api.ts";
import { onSubmit, wayBack } from "./page.ts";

onSubmit(async ({ email, password }) => {
  await call("POST", "/users/login", { email, password });
  location.replace(wayBack());
});
