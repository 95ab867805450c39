// Shows a session token to paste into a program that asked for it, such as a command-line client.
import { call } from "./api.ts";
import { onSubmit, requireSession, runPage, showSecret } from "./page.ts";

onSubmit(async () => {
  const { key } = await call<{ key: string }>("POST", "/users/me/keys");
  showSecret(key);
});
runPage(async () => {
  await requireSession();
});
