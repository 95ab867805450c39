// Shows a session token to paste into a program that asked for it, such as a command-line client.
import { call } from "./api.ts";
import { mustBeSignedIn, onSubmit, run, showSecret } from "./page.ts";

onSubmit(async () => {
  const { key } = await call<{ key: string }>("POST", "/users/me/keys");
  showSecret(key);
});
run(async () => {
  await mustBeSignedIn();
});
