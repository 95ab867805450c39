// The sign-in page: the password, then a code where the account has a second factor.
import type { LoginRefused } from "#schema/second-factor.ts";
import { call, Problem } from "./api.ts";
import { busyWith, isSetUp, make, onSubmit, run, the } from "./page.ts";
import { wayBack } from "./way-back.ts";
import { knowsPasskeys, usePasskey } from "./webauthn.ts";

type Methods = {
  oidc: { providers: { name: string; icon: string; url: string }[] };
  passkey: { enabled: boolean };
};

const done = (): void => location.replace(wayBack(location.search, location.origin));
const second = the<HTMLFormElement>("second");
let challenge = "";

/** Whether the password is the only way in. */
const isAlone = (): boolean => the("passkey").hidden && the("providers").childElementCount === 1;

const show = (isSecond: boolean): void => {
  the("form").hidden = isSecond;
  the("providers").hidden = isSecond || isAlone();
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
    the("second-passkey").hidden = !needed.methods.includes("passkey") || !knowsPasskeys();
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
const byPasskey = async (body: object): Promise<void> => {
  await call("POST", "/users/login/passkey", await usePasskey("/users/login/passkey/start", body));
  done();
};
the("passkey").addEventListener("click", () => void busyWith(the("passkey"), () => byPasskey({})));
the("second-passkey").addEventListener("click", () => {
  const act = (): Promise<void> => byPasskey({ second_factor: challenge });
  void busyWith(the("second-passkey"), act, "second-problem");
});
the("back").addEventListener("click", () => show(false));
/** The ways in beside the password: a passkey, and one for each provider. */
const offerOthers = async (): Promise<void> => {
  const { oidc, passkey } = await call<Methods>("GET", "/users/authmethods");
  the("passkey").hidden = !passkey.enabled || !knowsPasskeys();
  const way = new URLSearchParams({ redirect: new URLSearchParams(location.search).get("redirect") ?? "/" });
  const links = oidc.providers.map(({ name, icon, url }) => {
    const link = make("a", { class: "button", href: `${url}?${way}` }, `Sign in with ${name}`);
    if (icon.startsWith("data:")) link.prepend(make("img", { src: icon, alt: "", width: "20", height: "20" }), " ");
    return link;
  });
  the("providers").append(...links);
  the("providers").hidden = isAlone() || !second.hidden;
};

run(async () => {
  // A sign-in at a provider that needs a second factor here goes on with a challenge.
  challenge = new URLSearchParams(location.hash.slice(1)).get("challenge") ?? "";
  if (challenge !== "") {
    history.replaceState(null, "", location.pathname + location.search);
    show(true);
  }
  const [isDone] = await Promise.all([isSetUp(), offerOthers()]);
  the("not-set-up").hidden = isDone;
});
