// The sign-in page.
import { call } from "./api.ts";
import { isSetUp, onSubmit, run, the } from "./page.ts";
import { wayBack } from "./way-back.ts";

onSubmit(async ({ email, password }) => {
  await call("POST", "/users/login", { email, password });
  location.replace(wayBack(location.search, location.origin));
});
run(async () => {
  the("not-set-up").hidden = await isSetUp();
});
