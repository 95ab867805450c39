// The security page: authenticator app, passkeys and recovery codes of whoever is signed in.
import type { Passkey } from "#schema/passkey.ts";
import type { Factors, TotpEnrolment } from "#schema/second-factor.ts";
import { call } from "./api.ts";
import { confirmed, confirmsWith, withPasswordAndCode } from "./confirm.ts";
import { askWhether, busyWith, make, mustBeSignedIn, offerCopy, onSubmit, run, say, showProblem, the } from "./page.ts";
import { knowsPasskeys, makePasskey } from "./webauthn.ts";

const MINE = "/users/me";
let enrolment = "";

const words = (time: string): string => new Date(time).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });

const showCodes = (codes: readonly string[]): void => {
  the("codes").hidden = codes.length === 0;
  if (codes.length === 0) return;
  offerCopy(codes.join("\n"));
  the("codes-title").focus();
};

const rowOf = ({ id, name, last_used_at }: Passkey): HTMLElement => {
  const button = make("button", { type: "button", class: "danger", "aria-label": `Delete ${name}` }, "Delete");
  button.addEventListener("click", async () => {
    if (!(await askWhether(`Delete ${name}? It signs you in no more.`))) return;
    await busyWith(button, async () => {
      if (!(await confirmed(() => call("DELETE", `${MINE}/passkeys/${id}`)))) return;
      await show();
      say(`${name} is deleted.`);
      the("keys").focus();
    });
  });
  return make(
    "tr",
    {},
    make("td", {}, make("strong", {}, name)),
    make("td", { class: "when", "data-label": "Last used" }, last_used_at ? words(last_used_at) : "never"),
    make("td", { class: "act" }, button),
  );
};

const show = async (): Promise<void> => {
  const [factors, passkeys] = await Promise.all([
    call<Factors>("GET", `${MINE}/factors`),
    call<Passkey[]>("GET", `${MINE}/passkeys`),
  ]);
  const hasAny = factors.totp !== null || passkeys.length > 0;
  the("required").hidden = !factors.required || hasAny;
  the("app-state").textContent = factors.totp
    ? `On since ${words(factors.totp.created_at)}. Signing in with your password needs a code.`
    : "Off. With an app, signing in with your password needs a code that it shows, too.";
  the("enrolment").hidden = true;
  the("set-up").hidden = factors.totp !== null;
  the("disable").hidden = factors.totp === null;
  the("passkeys")
    .querySelector("tbody")
    ?.replaceChildren(...passkeys.map(rowOf));
  the("passkeys").hidden = passkeys.length === 0;
  the("no-passkeys").hidden = passkeys.length > 0;
  the("recovery").hidden = !hasAny;
  the("left").textContent = `${factors.recovery_codes_left} of ten are left.`;
  confirmsWith({ code: hasAny, passkey: passkeys.length > 0 });
  the("own").hidden = false;
};

const begin = async (): Promise<void> => {
  const begun = await call<TotpEnrolment>("POST", `${MINE}/factors/totp`);
  enrolment = begun.enrolment;
  the<HTMLImageElement>("qr").src = `data:image/svg+xml,${encodeURIComponent(begun.qr_svg)}`;
  the("secret").textContent = begun.secret.replace(/(.{4})(?=.)/g, "$1 ");
  the("set-up").hidden = true;
  the("enrolment").hidden = false;
  the("form").querySelector("input")?.focus();
};

the("set-up").addEventListener("click", () => void busyWith(the("set-up"), async () => void (await confirmed(begin))));
onSubmit(async ({ code }) => {
  const made = await call<{ recovery_codes: string[] }>("POST", `${MINE}/factors/totp/confirm`, { enrolment, code });
  await show();
  say("Your app is set up.");
  showCodes(made.recovery_codes);
});
the("disable").addEventListener("click", async () => {
  const disable = (given: object): Promise<void> => call("DELETE", `${MINE}/factors/totp`, given);
  if (!(await withPasswordAndCode(disable))) return;
  run(async () => {
    await show();
    showCodes([]);
    say("The app is disabled.");
    the("title").focus();
  });
});
the("renew").addEventListener("click", () => {
  const renew = async (): Promise<void> => {
    const made = await call<{ recovery_codes: string[] }>("POST", `${MINE}/factors/recovery-codes`);
    await show();
    showCodes(made.recovery_codes);
  };
  void busyWith(the("renew"), async () => void (await confirmed(renew)));
});
onSubmit(
  async ({ name }) => {
    const add = async (): Promise<void> => {
      const given = await makePasskey(`${MINE}/passkeys/start`);
      const made = await call<{ recovery_codes: string[] }>("POST", `${MINE}/passkeys`, { ...given, name });
      the<HTMLFormElement>("add").reset();
      await show();
      say(`${name} is added.`);
      showCodes(made.recovery_codes);
    };
    await confirmed(add);
  },
  { form: "add" },
);
run(async () => {
  const { login_type } = await mustBeSignedIn();
  the("elsewhere").hidden = login_type === "password";
  if (login_type !== "password") return;
  const { passkey } = await call<{ passkey: { enabled: boolean } }>("GET", "/users/authmethods");
  const isHere = passkey.enabled && knowsPasskeys();
  the("add").hidden = !isHere;
  the("not-here").hidden = passkey.enabled;
  await show();
  showProblem("");
});
