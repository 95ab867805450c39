// The versions of a template: which one is active, which are archived, and how to add one.
import { useSignal } from "@preact/signals";
import { useLocation } from "preact-iso/router";
import type { Template } from "#schema/templates/template.ts";
import type { TemplateVersion } from "#schema/templates/template-version.ts";
import { call } from "../../data/api.ts";
import type { StateKind } from "../../data/states.ts";
import { Button } from "../../parts/button.tsx";
import { setTo } from "../../parts/handlers.ts";
import { Menu, type MenuItem } from "../../parts/menu.tsx";
import { State } from "../../parts/state.tsx";
import { Time } from "../../parts/time.tsx";
import { showToast } from "../../shell/toasts.tsx";
import { ImportDialog } from "../templates/import.tsx";
import { Compare } from "./compare.tsx";

type VersionsProps = {
  readonly template: Template;
  readonly versions: readonly TemplateVersion[];
  readonly canChange: boolean;
  readonly reload: () => Promise<void>;
};

const toKind = ({ job, archived }: TemplateVersion): StateKind => {
  if (job.status === "failed" || job.status === "canceled") return "failed";
  if (job.status !== "succeeded") return "busy";
  return archived ? "stopped" : "running";
};

export const Versions = ({ template, versions, canChange, reload }: VersionsProps) => {
  const isImporting = useSignal(false);
  const { query } = useLocation();
  const newestFirst = versions.toSorted((a, b) => (a.created_at < b.created_at ? 1 : -1));
  const versionsPath = `/templates/${template.id}/versions`;
  const [from, to] = [query.from, query.to].map((id) => versions.find((one) => one.id === id));
  if (from && to && canChange)
    return <Compare versions={newestFirst} from={from} to={to} versionsPath={versionsPath} />;
  const toCompareUrl = (version: TemplateVersion): string => {
    // The preceding version, or the active one.
    const previousId = newestFirst[newestFirst.indexOf(version) + 1]?.id ?? template.active_version_id;
    return `${versionsPath}?${new URLSearchParams({ from: previousId, to: version.id })}`;
  };
  return (
    <section class="stack" aria-labelledby="versions">
      <div class="head">
        <h2 id="versions">Versions</h2>
        {canChange && (
          <span class="push">
            <Button icon="plus" onPress={setTo(isImporting, true)}>
              New version
            </Button>
          </span>
        )}
      </div>
      <ul class="panel list">
        {newestFirst.map((version) => (
          <Version
            key={version.id}
            template={template}
            version={version}
            canChange={canChange}
            reload={reload}
            compareHref={newestFirst.length > 1 ? toCompareUrl(version) : undefined}
            compareActiveHref={`${versionsPath}?${new URLSearchParams({ from: template.active_version_id, to: version.id })}`}
          />
        ))}
      </ul>
      {isImporting.value && (
        <ImportDialog
          template={template}
          onDone={(_, { name }) => {
            isImporting.value = false;
            showToast(`Version ${name} is ready. Promote it to use it for new workspaces.`);
            void reload();
          }}
          onClose={() => {
            isImporting.value = false;
            void reload();
          }}
        />
      )}
    </section>
  );
};

type VersionProps = Omit<VersionsProps, "versions"> & {
  readonly version: TemplateVersion;
  /** The address of the diff. */
  readonly compareHref: string | undefined;
  readonly compareActiveHref: string;
};

const Version = ({ template, version, canChange, reload, compareHref, compareActiveHref }: VersionProps) => {
  const isActive = version.id === template.active_version_id;
  const path = { templateversion: version.id };
  const promote = async (): Promise<void> => {
    await call("PATCH /templates/:template/versions", { path: { template: template.id }, body: { id: version.id } });
    await reload();
    showToast(`New workspaces use ${version.name}`);
  };
  const toggleArchived = async (): Promise<void> => {
    if (version.archived) await call("POST /templateversions/:templateversion/unarchive", { path });
    else await call("POST /templateversions/:templateversion/archive", { path });
    await reload();
    showToast(version.archived ? `${version.name} unarchived` : `${version.name} archived`);
  };
  const listItems = (): MenuItem[] => [
    ...(compareHref ? [{ icon: "file" as const, label: "Compare with previous version", href: compareHref }] : []),
    ...(isActive ? [] : [{ icon: "file" as const, label: "Compare with active version", href: compareActiveHref }]),
    ...(isActive ? [] : listChangeItems()),
  ];
  const listChangeItems = (): MenuItem[] => [
    ...(version.job.status === "succeeded" && !version.archived
      ? [{ icon: "up" as const, label: "Promote", act: promote }]
      : []),
    { icon: "save", label: version.archived ? "Unarchive" : "Archive", act: toggleArchived },
  ];
  return (
    <li class="item">
      <State kind={toKind(version)}>
        <span class="med clip">{version.name}</span>
      </State>
      <span class="line">
        {isActive && <span class="badge accent">Active</span>}
        {version.archived && <span class="badge">Archived</span>}
        {canChange && (compareHref || !isActive) && <Menu label={`More for ${version.name}`} items={listItems} />}
      </span>
      <span class={version.job.error ? "sub t-bad" : "sub"}>
        {version.job.error ?? (version.message || "No message")}, by {version.created_by.username},{" "}
        <Time at={version.created_at} />
      </span>
    </li>
  );
};
