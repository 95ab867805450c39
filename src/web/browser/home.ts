// The home page: what this is, or the workspaces of whoever is signed in.
import { call } from "./api.ts";
import { isSetUp, make, run, showProblem, signedIn, the } from "./page.ts";

type Listed = {
  workspaces: {
    name: string;
    template_name?: string;
    template_display_name?: string;
    latest_build: { status: string };
  }[];
};

const PASSING = new Set(["pending", "starting", "stopping", "canceling", "deleting"]);
const AGAIN_MS = 3000;
let timer: ReturnType<typeof setTimeout> | undefined;

const showWorkspaces = async (): Promise<void> => {
  clearTimeout(timer);
  const { workspaces } = await call<Listed>("GET", "/workspaces?q=owner:me");
  const rows = workspaces.map(({ name, template_name = "", template_display_name, latest_build: { status } }) =>
    make(
      "tr",
      {},
      make("td", {}, make("strong", {}, name)),
      make("td", { "data-label": "Template" }, template_display_name || template_name),
      make("td", {}, make("span", { class: `state ${PASSING.has(status) ? "passing" : status}` }, status)),
    ),
  );
  the("workspaces")
    .querySelector("tbody")
    ?.replaceChildren(...rows);
  the("workspaces").hidden = rows.length === 0;
  if (rows.length === 0) await showNextStep();
  else for (const id of ["none", "no-template"]) the(id).hidden = true;
  the("mine").hidden = false;
  showProblem("");
  // What goes on is followed to its end; a page that nobody looks at asks nothing.
  if (workspaces.some(({ latest_build }) => PASSING.has(latest_build.status))) timer = setTimeout(look, AGAIN_MS);
};

/** What to do while there is no workspace: with a template that there is, or how to come by one. */
const showNextStep = async (): Promise<void> => {
  const templates = await call<{ name: string; deprecated?: boolean }[]>("GET", "/templates");
  const usable = templates.find(({ deprecated }) => !deprecated);
  the("template").textContent = usable?.name ?? "";
  the("none").hidden = usable === undefined;
  the("no-template").hidden = usable !== undefined;
};

const look = (): void => {
  if (!document.hidden) run(showWorkspaces);
};

const welcome = async (): Promise<void> => {
  const isDone = await isSetUp();
  the("not-set-up").hidden = isDone;
  the("to-login").hidden = !isDone;
  the("welcome").hidden = false;
};

run(async () => {
  try {
    if (await signedIn()) {
      await showWorkspaces();
      document.addEventListener("visibilitychange", look);
    } else await welcome();
  } finally {
    the("wait").hidden = true;
  }
});
