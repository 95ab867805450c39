// The page of linked accounts: shows, links and unlinks them, and shows the public git key.
import type {
  ExternalAuthLink,
  ExternalAuthList,
  ExternalAuthProvider,
  ExternalAuthUnlinked,
} from "#schema/users/external-auth.ts";
import type { GitSshKey } from "#schema/users/git-ssh-key.ts";
import { call } from "./api.ts";
import {
  confirmInDialog,
  createElement,
  getElement,
  offerCopy,
  requireSession,
  runBusy,
  runPage,
  showDone,
} from "./page.ts";

const PATH = "/external-auth";

const unlink = async (button: HTMLElement, { id, display_name }: ExternalAuthProvider): Promise<void> => {
  if (!(await confirmInDialog(`Unlink ${display_name}? Your workspaces can no longer use the account.`))) return;
  await runBusy(button, async () => {
    const { token_revoked } = await call<ExternalAuthUnlinked>("DELETE", `${PATH}/${id}`);
    const tokenNote = token_revoked ? "" : " The token is still valid there: revoke it in the service's settings.";
    await showList();
    showDone(`${display_name} unlinked.${tokenNote}`);
    // The button no longer exists, so the focus moves to the list.
    getElement("all").focus();
  });
};

const makeRow = (provider: ExternalAuthProvider, link: ExternalAuthLink | undefined): HTMLElement => {
  const { id, display_name } = provider;
  const status = !link ? "Not linked" : link.authenticated ? "Linked" : "Link it again";
  const statusClass = !link ? "" : link.authenticated ? "running" : "failed";
  const actions: HTMLElement[] = [];
  if (!link?.authenticated) {
    const label = `Link ${display_name}`;
    actions.push(
      createElement("a", { class: "button primary", href: `/external-auth/${id}`, "aria-label": label }, "Link"),
    );
  }
  if (link) {
    const button = createElement(
      "button",
      { type: "button", class: "danger", "aria-label": `Unlink ${display_name}` },
      "Unlink",
    );
    button.addEventListener("click", () => void unlink(button, provider));
    actions.push(button);
  }
  const reason = link?.validate_error ? [createElement("div", { class: "hint" }, link.validate_error)] : [];
  return createElement(
    "tr",
    {},
    createElement("td", {}, createElement("strong", {}, display_name)),
    createElement("td", {}, createElement("span", { class: `state ${statusClass}` }, status), ...reason),
    createElement("td", { class: "act" }, createElement("div", { class: "choices" }, ...actions)),
  );
};

const showList = async (): Promise<void> => {
  const { providers, links } = await call<ExternalAuthList>("GET", PATH);
  const rows = providers.map((provider) =>
    makeRow(
      provider,
      links.find(({ provider_id }) => provider_id === provider.id),
    ),
  );
  getElement("providers")
    .querySelector("tbody")
    ?.replaceChildren(...rows);
  getElement("providers").hidden = rows.length === 0;
  getElement("none").hidden = rows.length > 0;
};

runPage(async () => {
  await requireSession();
  const [{ public_key }] = await Promise.all([call<GitSshKey>("GET", "/users/me/gitsshkey"), showList()]);
  offerCopy(public_key);
  getElement("git").hidden = false;
});
