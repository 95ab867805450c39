// The sign-in page.
import { call } from "./api.ts";
import { onSubmit } from "./page.ts";
import { wayBack } from "./way-back.ts";

onSubmit(async ({ email, password }) => {
  await call("POST", "/users/login", { email, password });
  location.replace(wayBack(location.search, location.origin));
});
