// The tokens page: make, list, delete.
import type { ApiKey } from "#schema/api-key.ts";
import { call } from "./api.ts";
import { askWhether, busyWith, make, mustBeSignedIn, onSubmit, run, say, showSecret, the } from "./page.ts";

const TOKENS = "/users/me/keys/tokens";
const HOUR = 3_600_000;
const DAYS = [7, 30, 60, 90];

const words = (time: string): string => new Date(time).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });

const lifetimes = (maxHours: number): HTMLElement[] => [
  ...DAYS.filter((days) => days * 24 <= maxHours).map((days) =>
    make("option", { value: String(days) }, `${days} days`),
  ),
  make("option", { value: "date" }, "Until a date"),
];

/** The end of that day, here. */
const endOf = (date: string): number => new Date(`${date}T23:59:59`).getTime();

const lifetimeOf = (days: string, date: string): string => {
  if (days !== "date") return `${Number(days) * 24}h`;
  const left = Math.floor((endOf(date) - Date.now()) / 1000);
  if (!(left > 0)) throw new Error("Choose a day that is not over.");
  return `${left}s`;
};

const rowOf = (token: ApiKey): HTMLElement => {
  const button = make(
    "button",
    { type: "button", class: "danger", "aria-label": `Delete ${token.token_name}` },
    "Delete",
  );
  button.addEventListener("click", async () => {
    if (!(await askWhether(`Delete ${token.token_name}? Programs that use it are signed out at once.`))) return;
    await busyWith(button, async () => {
      await call("DELETE", `/users/me/keys/${token.id}`);
      await list();
      say(`${token.token_name} is deleted.`);
      // The button is gone; the keyboard goes on from the list.
      the("all").focus();
    });
  });
  const lastUsed = token.last_used === token.created_at ? "never" : words(token.last_used);
  return make(
    "tr",
    {},
    make("td", {}, make("strong", {}, token.token_name)),
    make("td", { class: "when", "data-label": "Last used" }, lastUsed),
    make("td", { class: "when", "data-label": "Expires" }, words(token.expires_at)),
    make("td", { class: "act" }, button),
  );
};

const list = async (): Promise<void> => {
  const tokens = await call<ApiKey[]>("GET", TOKENS);
  the("tokens")
    .querySelector("tbody")
    ?.replaceChildren(...tokens.map(rowOf));
  the("tokens").hidden = tokens.length === 0;
  the("none").hidden = tokens.length > 0;
};

const form = the<HTMLFormElement>("form");
const days = form.elements.namedItem("days") as HTMLSelectElement;
const date = form.elements.namedItem("date") as HTMLInputElement;

const offerLifetimes = async (): Promise<void> => {
  const { max_token_lifetime } = await call<{ max_token_lifetime: number }>("GET", `${TOKENS}/tokenconfig`);
  const maxHours = max_token_lifetime / 1e6 / HOUR;
  days.append(...lifetimes(maxHours));
  date.min = new Date(Date.now()).toLocaleDateString("sv");
  // Dates beyond what a date field can show are no bound.
  const last = Date.now() + maxHours * HOUR - 24 * HOUR;
  if (maxHours < 100 * 366 * 24) date.max = new Date(last).toLocaleDateString("sv");
  askForDate();
};

/** A field that is required but not seen would keep the form from being sent. */
const askForDate = (): void => {
  date.required = days.value === "date";
  the("until").hidden = !date.required;
};
days.addEventListener("change", askForDate);

onSubmit(async ({ token_name = "", days = "7", date = "" }) => {
  const { key } = await call<{ key: string }>("POST", TOKENS, { token_name, lifetime: lifetimeOf(days, date) });
  form.reset();
  askForDate();
  // Shown whatever becomes of the list: it cannot be shown again.
  showSecret(key);
  say("");
  await list();
});
run(async () => {
  await mustBeSignedIn();
  await Promise.all([offerLifetimes(), list()]);
});
