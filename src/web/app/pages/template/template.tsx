// One template: its description, versions and settings.

import { useEffect } from "preact/hooks";
import lazy from "preact-iso/lazy";
import { useLocation, useRoute } from "preact-iso/router";
import type { Template } from "#schema/templates/template.ts";
import type { TemplateVersion } from "#schema/templates/template-version.ts";
import { call, Problem } from "../../data/api.ts";
import { branding } from "../../data/branding.ts";
import { loadCode } from "../../data/load-code.ts";
import { reloadVisible, useResource } from "../../data/resource.ts";
import { isAdministrator } from "../../data/session.ts";
import { onTemplateChange } from "../../data/workspaces.ts";
import { copyText } from "../../parts/as-command.tsx";
import { ButtonLink, IconButton } from "../../parts/button.tsx";
import { Empty, Failed } from "../../parts/empty.tsx";
import { formatDuration } from "../../parts/format-time.ts";
import { Inline } from "../../parts/inline/inline.tsx";
import { Tabs } from "../../parts/sections.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { Frame } from "../../shell/frame.tsx";
import { Markdown } from "../chat/markdown.tsx";
import { Access } from "./access.tsx";
import { Settings } from "./settings.tsx";
import { Variables } from "./variables.tsx";
import { Versions } from "./versions.tsx";

const Editor = lazy(() => loadCode(() => import("./editor.tsx")));
const TemplateInsights = lazy(() => loadCode(() => import("./insights.tsx")));

const CRUMBS = [{ label: "Templates", href: "/templates" }];

const WIDE_TABS: ReadonlySet<string> = new Set(["insights"]);

const loadTemplate = async (id: string) => {
  const path = { template: id };
  const checks = { change: { object: { resource_type: "template", resource_id: id }, action: "update" as const } };
  const [template, versions, { change = false }] = await Promise.all([
    call("GET /templates/:template", { path }),
    call("GET /templates/:template/versions", { path, query: { include_archived: true } }),
    call("POST /authcheck", { body: { checks } }),
  ]);
  return { template, versions, canChange: change };
};

export default function TemplatePage() {
  const { params } = useRoute();
  const { route } = useLocation();
  const id = params.template ?? "";
  const { state, reload } = useResource(`template ${id}`, () => loadTemplate(id));
  // Someone else may change it, promote or archive a version, or delete it.
  useEffect(() => onTemplateChange((changedId) => (changedId ?? id) === id && reloadVisible()), [id]);
  const { data, error } = state.value;
  const isUnavailable = error instanceof Problem && [400, 404, 410].includes(error.status);
  // The page keeps its content if it cannot be reloaded: it may contain an edit.
  if (isUnavailable || !data) {
    return (
      <Frame title="Template" crumbs={CRUMBS}>
        <div class="page">
          {isUnavailable ? (
            <Empty icon="layers" title="Template not found" text="It was deleted, or it is not shared with you.">
              <ButtonLink look="primary" href="/templates">
                All templates
              </ButtonLink>
            </Empty>
          ) : error ? (
            <Failed title="Can't load the template" error={error} reload={reload} />
          ) : (
            <Skeleton lines={6} />
          )}
        </div>
      </Frame>
    );
  }
  const { template, versions, canChange } = data;
  const tab = params.tab ?? "";
  const active = versions.find(({ id }) => id === template.active_version_id);
  const tabs = [
    ["", "Overview"],
    ["versions", "Versions"],
    ...(canChange
      ? [
          ["files", "Files"],
          ["variables", "Variables"],
        ]
      : []),
    ...(isAdministrator.value ? [["insights", "Insights"]] : []),
    ...(canChange
      ? [
          ["access", "Access"],
          ["settings", "Settings"],
        ]
      : []),
  ];
  const base = `/templates/${id}`;
  return (
    <Frame
      title={template.display_name || template.name}
      crumbs={CRUMBS}
      note={template.deprecated && <span class="badge">Deprecated</span>}
      actions={
        !template.deprecated && (
          <ButtonLink look="primary" icon="plus" href={`/new?template=${encodeURIComponent(template.name)}`}>
            New workspace
          </ButtonLink>
        )
      }
    >
      <Tabs
        label="Template sections"
        tabs={tabs.map(([name = "", label = ""]) => ({ name, label, href: name ? `${base}/${name}` : base }))}
        open={tab}
      />
      {tab === "files" && canChange ? (
        <Editor template={template} active={active} reload={reload} />
      ) : (
        <div class={WIDE_TABS.has(tab) ? "page" : "page narrow"}>
          {tab === "" ? (
            <Overview template={template} active={active} />
          ) : tab === "versions" ? (
            <Versions template={template} versions={versions} canChange={canChange} reload={reload} />
          ) : tab === "variables" && canChange ? (
            <Variables template={template} active={active} reload={reload} />
          ) : tab === "insights" && isAdministrator.value ? (
            <TemplateInsights id={template.id} />
          ) : tab === "access" && canChange ? (
            <Access template={template} />
          ) : tab === "settings" && canChange ? (
            <Settings key={template.id} template={template} reload={reload} onDeleted={() => route("/templates")} />
          ) : (
            <Empty icon="search" title="Section not found" text="The URL doesn't match any section." />
          )}
        </div>
      )}
    </Frame>
  );
}

const Overview = ({ template, active }: { template: Template; active: TemplateVersion | undefined }) => {
  const usualStartMs = template.build_time_stats.start.P50;
  const badge = `[Open in ${branding.value.name}](${location.origin}/new?template=${encodeURIComponent(template.name)})`;
  return (
    <>
      {template.deprecation_message && (
        <p class="banner box attn">
          <span>{template.deprecation_message}</span>
        </p>
      )}
      {template.description && (
        <p>
          <Inline text={template.description} />
        </p>
      )}
      <dl class="stats">
        <div>
          <dt>People</dt>
          <dd>{template.active_user_count}</dd>
        </div>
        <div>
          <dt>Start, median</dt>
          <dd>{usualStartMs === null ? "None yet" : formatDuration(usualStartMs)}</dd>
        </div>
        <div>
          <dt>Version</dt>
          <dd class="clip">{active?.name ?? "None"}</dd>
        </div>
      </dl>
      {active?.readme ? (
        <section class="stack" aria-labelledby="readme">
          <div class="head">
            <h2 id="readme">README</h2>
          </div>
          <div class="prose">
            <Markdown text={active.readme} />
          </div>
        </section>
      ) : (
        <p class="mut">This version has no README.md.</p>
      )}
      <section class="panel" aria-labelledby="badge">
        <header>
          <h2 id="badge">Open in {branding.value.name}</h2>
          <span class="push">
            <IconButton icon="copy" small label="Copy the link as Markdown" onPress={() => copyText(badge)} />
          </span>
        </header>
        <div class="body stack small">
          <p class="mut">For a project's README. The link opens a prefilled form.</p>
          <pre class="cmd mono" tabIndex={0}>
            {badge}
          </pre>
        </div>
      </section>
    </>
  );
};
