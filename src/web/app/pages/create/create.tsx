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
import { setTo } from "../../parts/handlers.ts";
import { Icon } from "../../parts/icon.tsx";
import { Inline } from "../../parts/inline/inline.tsx";
import { Picture } from "../../parts/picture.tsx";
import { NO_REPOSITORY } from "../../parts/repository-fields.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { Frame } from "../../shell/frame.tsx";
import { NoTemplates } from "../home/first.tsx";
import { CreateForm } from "./form.tsx";
import { parseLink, parseRepository } from "./link.ts";
import { OpenRepository, RepositoryField } from "./repository.tsx";

const CRUMBS = [{ label: "Workspaces", href: "/workspaces" }];

export default function CreatePage() {
  const { url } = useLocation();
  const repository = useMemo(() => parseRepository(location.search), [url]);
  return repository ? (
    <OpenRepository repository={repository} name={parseLink(location.search).name} />
  ) : (
    <TemplateForm />
  );
}

const TemplateForm = () => {
  const prefilled = useMemo(() => parseLink(location.search), []);
  const { state, reload } = useResource("templates", () => call("GET /templates"));
  const usable = useComputed(() => (state.value.data ?? []).filter(({ deprecated }) => !deprecated));
  const chosenId = useSignal<string | undefined>(undefined);
  /** The name that the user typed. It is kept when the template changes. */
  const typedName = useSignal(prefilled.name);
  const linkedTemplate = usable.value.find(({ id, name }) => name === prefilled.template || id === prefilled.template);
  const repository = useSignal(NO_REPOSITORY);
  const defaultTemplate = usable.value.find(({ unavailable }) => unavailable === "") ?? usable.value[0];
  // A link with an unknown template does not fall back to another one.
  const selectedId = chosenId.value ?? (prefilled.template === undefined ? defaultTemplate : linkedTemplate)?.id;
  const template = usable.value.find(({ id }) => id === selectedId);
  if (state.value.error && !state.value.data) {
    return (
      <Frame title="New workspace" crumbs={CRUMBS}>
        <Failed title="Can't load the templates" error={state.value.error} reload={reload} />
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
      key={selectedId ?? ""}
      template={template}
      prefilled={prefilled}
      typedName={typedName}
      crumbs={CRUMBS}
      formAbove={prefilled.template === undefined && <RepositoryField value={repository} />}
      repositoryToOpen={repository}
    >
      {prefilled.template !== undefined && (
        <p class="small">
          <a href="/new?repo=">Open a repository</a> instead, without a template.
        </p>
      )}
      <fieldset class="stack">
        <legend class="lg">{prefilled.template === undefined ? "Or start from a template" : "Template"}</legend>
        {prefilled.template !== undefined && !linkedTemplate && (
          <p class="banner box attn" role="status">
            <Icon name="warn" />
            <span>
              The template {prefilled.template} from the link doesn't exist or isn't shared with you. Choose another
              one.
            </span>
          </p>
        )}
        <div class="cards brief">
          {usable.value.map((one) => (
            <TemplateCard
              key={one.id}
              template={one}
              isChecked={one.id === selectedId}
              onPick={setTo(chosenId, one.id)}
            />
          ))}
        </div>
      </fieldset>
    </CreateForm>
  );
};

const TemplateCard = ({
  template,
  isChecked,
  onPick,
}: {
  template: Template;
  isChecked: boolean;
  onPick: () => void;
}) => {
  const usualStartMs = template.build_time_stats.start.P50;
  return (
    <label class="pick">
      <input type="radio" name="template" checked={isChecked} onChange={onPick} />
      <span class="art">
        <Picture of={template.icon} otherwise="box" />
      </span>
      <span class="line">
        <span class="med clip">{template.display_name || template.name}</span>
        {template.unavailable !== "" ? (
          <span class="badge push">Unavailable</span>
        ) : (
          usualStartMs !== null && <span class="push dim small num">{formatDuration(usualStartMs)}</span>
        )}
      </span>
      <p>
        <Inline text={template.description || `Runs on ${formatRunsOn(template)}.`} plainLinks />
      </p>
    </label>
  );
};
