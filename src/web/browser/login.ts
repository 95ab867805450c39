// The sign-in page: the password, then a code where the account has a second factor.
import type { LoginRefused } from "#schema/second-factor.ts";
import { call, Problem } from "./api.ts";
import { isSetUp, onSubmit, run, the } from "./page.ts";
import { wayBack } from "./way-back.ts";

const done = (): void => location.replace(wayBack(location.search, location.origin));
const second = the<HTMLFormElement>("second");
let challenge = "";

const show = (isSecond: boolean): void => {
  the("form").hidden = isSecond;
  second.hidden = !isSecond;
  second.reset();
  const first = (isSecond ? second : the<HTMLFormElement>("form")).querySelector("input");
  first?.focus();
};

onSubmit(async ({ email, password }) => {
  try {
    await call("POST", "/users/login", { email, password });
  } catch (error) {
    const needed = error instanceof Problem ? (error.body as LoginRefused).second_factor : undefined;
    if (!needed) throw error;
    challenge = needed.challenge;
    show(true);
    return;
  }
  done();
});
onSubmit(
  async ({ code }) => {
    await call("POST", "/users/login/second-factor", { challenge, code });
    done();
  },
  { form: "second", problem: "second-problem" },
);
the("back").addEventListener("click", () => show(false));
run(async () => {
  the("not-set-up").hidden = await isSetUp();
});
