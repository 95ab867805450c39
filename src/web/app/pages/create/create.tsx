// The form for a new workspace: a template, a name, parameters as evaluated by the server, and a link that opens the form with these
// values.

import { useComputed, useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import type { Template } from "#schema/templates/template.ts";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { formatRunsOn } from "../../data/runs-on.ts";
import { Failed } from "../../parts/empty.tsx";
import { formatDuration } from "../../parts/format-time.ts";
import { sets } from "../../parts/handlers.ts";
import { Icon } from "../../parts/icon.tsx";
import { Inline } from "../../parts/inline/inline.tsx";
import { Picture } from "../../parts/picture.tsx";
import { NO_REPOSITORY } from "../../parts/repository-fields.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { Frame } from "../../shell/frame.tsx";
import { NoTemplates } from "../home/first.tsx";
import { CreateForm } from "./form.tsx";
import { readLink, readRepository } from "./link.ts";
import { OpenRepository, RepositoryField } from "./repository.tsx";

const CRUMBS = [{ label: "Workspaces", href: "/workspaces" }];

export default function CreatePage() {
  const { url } = useLocation();
  const requested = useMemo(() => readRepository(location.search), [url]);
  return requested ? <OpenRepository asked={requested} name={readLink(location.search).name} /> : <FromTemplate />;
}

const FromTemplate = () => {
  const filled = useMemo(() => readLink(location.search), []);
  const { state, reload } = useResource("templates", () => call("GET /templates"));
  const usable = useComputed(() => (state.value.data ?? []).filter(({ deprecated }) => !deprecated));
  const chosen = useSignal<string | undefined>(undefined);
  /** The name that the user typed. It is kept when the template changes. */
  const typed = useSignal(filled.name);
  const linkedTemplate = usable.value.find(({ id, name }) => name === filled.template || id === filled.template);
  const repository = useSignal(NO_REPOSITORY);
  const first = usable.value.find(({ unavailable }) => unavailable === "") ?? usable.value[0];
  // A link with an unknown template does not fall back to another one.
  const picked = chosen.value ?? (filled.template === undefined ? first : linkedTemplate)?.id;
  const template = usable.value.find(({ id }) => id === picked);
  if (state.value.error && !state.value.data) {
    return (
      <Frame title="New workspace" crumbs={CRUMBS}>
        <Failed what="Can't load the templates" error={state.value.error} reload={reload} />
      </Frame>
    );
  }
  if (!state.value.data || usable.value.length === 0) {
    return (
      <Frame title="New workspace" crumbs={CRUMBS}>
        <div class="page">{state.value.data ? <NoTemplates /> : <Skeleton lines={5} />}</div>
      </Frame>
    );
  }
  return (
    <CreateForm
      key={picked ?? ""}
      template={template}
      filled={filled}
      typed={typed}
      crumbs={CRUMBS}
      above={filled.template === undefined && <RepositoryField value={repository} />}
      instead={repository}
    >
      {filled.template !== undefined && (
        <p class="small">
          <a href="/new?repo=">Open a repository</a> instead, without a template.
        </p>
      )}
      <fieldset class="stack">
        <legend class="lg">{filled.template === undefined ? "Or start from a template" : "Template"}</legend>
        {filled.template !== undefined && !linkedTemplate && (
          <p class="banner box attn" role="status">
            <Icon name="warn" />
            <span>
              The template {filled.template} from the link doesn't exist or isn't shared with you. Choose another one.
            </span>
          </p>
        )}
        <div class="cards brief">
          {usable.value.map((one) => (
            <Card key={one.id} template={one} checked={one.id === picked} pick={sets(chosen, one.id)} />
          ))}
        </div>
      </fieldset>
    </CreateForm>
  );
};

const Card = ({ template, checked, pick }: { template: Template; checked: boolean; pick: () => void }) => {
  const usual = template.build_time_stats.start.P50;
  return (
    <label class="pick">
      <input type="radio" name="template" checked={checked} onChange={pick} />
      <span class="art">
        <Picture of={template.icon} otherwise="box" />
      </span>
      <span class="line">
        <span class="med clip">{template.display_name || template.name}</span>
        {template.unavailable !== "" ? (
          <span class="badge push">Unavailable</span>
        ) : (
          usual !== null && <span class="push dim small num">{formatDuration(usual)}</span>
        )}
      </span>
      <p>
        <Inline text={template.description || `Runs on ${formatRunsOn(template)}.`} plainLinks />
      </p>
    </label>
  );
};
