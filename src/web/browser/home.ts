// The home page: what this is, or the workspaces of whoever is signed in.
import { call } from "./api.ts";
import { make, showProblem, signedIn, the } from "./page.ts";

type Listed = {
  workspaces: {
    name: string;
    template_name?: string;
    template_display_name?: string;
    latest_build: { status: string };
  }[];
};

const showWorkspaces = async (): Promise<void> => {
  the("mine").hidden = false;
  const { workspaces } = await call<Listed>("GET", "/workspaces?q=owner:me");
  const rows = workspaces.map(({ name, template_name = "", template_display_name, latest_build: { status } }) =>
    make(
      "tr",
      {},
      make("td", {}, make("strong", {}, name)),
      make("td", { "data-label": "Template" }, template_display_name || template_name),
      make("td", {}, make("span", { class: `state ${status}` }, status)),
    ),
  );
  the("workspaces")
    .querySelector("tbody")
    ?.append(...rows);
  the("workspaces").hidden = rows.length === 0;
  the("none").hidden = rows.length > 0;
};

if (await signedIn()) await showWorkspaces().catch(showProblem);
else {
  const isSetUp = await call("GET", "/users/first").then(
    () => true,
    () => false,
  );
  the("not-set-up").hidden = isSetUp;
  the("to-login").hidden = !isSetUp;
  the("welcome").hidden = false;
}
