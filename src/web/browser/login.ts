// The sign-in page: the password, then a code where the account has a second factor.
import type { LoginRefused } from "#schema/second-factor.ts";
import { call, Problem } from "./api.ts";
import { isSetUp, make, onSubmit, run, the } from "./page.ts";
import { wayBack } from "./way-back.ts";

type Provider = { name: string; icon: string; url: string };

const done = (): void => location.replace(wayBack(location.search, location.origin));
const second = the<HTMLFormElement>("second");
let challenge = "";

const show = (isSecond: boolean): void => {
  the("form").hidden = isSecond;
  the("providers").hidden = isSecond || the("providers").childElementCount === 0;
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
/** One way in beside the password for each provider. */
const offerProviders = async (): Promise<void> => {
  const { oidc } = await call<{ oidc: { providers: Provider[] } }>("GET", "/users/authmethods");
  const way = new URLSearchParams({ redirect: new URLSearchParams(location.search).get("redirect") ?? "/" });
  const links = oidc.providers.map(({ name, icon, url }) => {
    const link = make("a", { class: "button", href: `${url}?${way}` }, `Sign in with ${name}`);
    if (icon.startsWith("data:")) link.prepend(make("img", { src: icon, alt: "", width: "20", height: "20" }), " ");
    return link;
  });
  the("providers").replaceChildren(...links);
  the("providers").hidden = links.length === 0 || !second.hidden;
};

run(async () => {
  // A sign-in at a provider that needs a second factor here goes on with a challenge.
  challenge = new URLSearchParams(location.hash.slice(1)).get("challenge") ?? "";
  if (challenge !== "") {
    history.replaceState(null, "", location.pathname + location.search);
    show(true);
  }
  const [isDone] = await Promise.all([isSetUp(), offerProviders()]);
  the("not-set-up").hidden = isDone;
});
