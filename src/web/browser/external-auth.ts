// The page of linked accounts: shows, links and unlinks them, and shows the public git key.
import type {
  ExternalAuthLink,
  ExternalAuthList,
  ExternalAuthProvider,
  ExternalAuthUnlinked,
} from "#schema/users/external-auth.ts";
import type { GitSshKey } from "#schema/users/git-ssh-key.ts";
import { call } from "./api.ts";
import { confirmInDialog, make, offerCopy, requireSession, runBusy, runPage, showDone, the } from "./page.ts";

const PATH = "/external-auth";

const unlink = async (button: HTMLElement, { id, display_name }: ExternalAuthProvider): Promise<void> => {
  if (!(await confirmInDialog(`Unlink ${display_name}? Your workspaces can no longer use the account.`))) return;
  await runBusy(button, async () => {
    const { token_revoked } = await call<ExternalAuthUnlinked>("DELETE", `${PATH}/${id}`);
    const there = token_revoked ? "" : " The token is still valid there: revoke it in the service's settings.";
    await list();
    showDone(`${display_name} unlinked.${there}`);
    // The button no longer exists, so the focus moves to the list.
    the("all").focus();
  });
};

const makeRow = (provider: ExternalAuthProvider, link: ExternalAuthLink | undefined): HTMLElement => {
  const { id, display_name } = provider;
  const words = !link ? "Not linked" : link.authenticated ? "Linked" : "Link it again";
  const mark = !link ? "" : link.authenticated ? "running" : "failed";
  const actions: HTMLElement[] = [];
  if (!link?.authenticated) {
    const label = `Link ${display_name}`;
    actions.push(make("a", { class: "button primary", href: `/external-auth/${id}`, "aria-label": label }, "Link"));
  }
  if (link) {
    const button = make(
      "button",
      { type: "button", class: "danger", "aria-label": `Unlink ${display_name}` },
      "Unlink",
    );
    button.addEventListener("click", () => void unlink(button, provider));
    actions.push(button);
  }
  const reason = link?.validate_error ? [make("div", { class: "hint" }, link.validate_error)] : [];
  return make(
    "tr",
    {},
    make("td", {}, make("strong", {}, display_name)),
    make("td", {}, make("span", { class: `state ${mark}` }, words), ...reason),
    make("td", { class: "act" }, make("div", { class: "choices" }, ...actions)),
  );
};

const list = async (): Promise<void> => {
  const { providers, links } = await call<ExternalAuthList>("GET", PATH);
  const rows = providers.map((provider) =>
    makeRow(
      provider,
      links.find(({ provider_id }) => provider_id === provider.id),
    ),
  );
  the("providers")
    .querySelector("tbody")
    ?.replaceChildren(...rows);
  the("providers").hidden = rows.length === 0;
  the("none").hidden = rows.length > 0;
};

runPage(async () => {
  await requireSession();
  const [{ public_key }] = await Promise.all([call<GitSshKey>("GET", "/users/me/gitsshkey"), list()]);
  offerCopy(public_key);
  the("git").hidden = false;
});
