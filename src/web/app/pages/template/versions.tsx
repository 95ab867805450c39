// The versions of a template: which one is active, which are archived, and how to add one.
import { useSignal } from "@preact/signals";
import { useLocation } from "preact-iso/router";
import type { Template } from "#schema/templates/template.ts";
import type { TemplateVersion } from "#schema/templates/template-version.ts";
import { call } from "../../data/api.ts";
import type { StateKind } from "../../data/states.ts";
import { Button } from "../../parts/button.tsx";
import { sets } from "../../parts/handlers.ts";
import { Menu, type MenuItem } from "../../parts/menu.tsx";
import { State } from "../../parts/state.tsx";
import { Time } from "../../parts/time.tsx";
import { showToast } from "../../shell/toasts.tsx";
import { Import } from "../templates/import.tsx";
import { Compare } from "./compare.tsx";

type VersionsProps = {
  readonly template: Template;
  readonly versions: readonly TemplateVersion[];
  readonly mayChange: boolean;
  readonly reload: () => Promise<void>;
};

const toKind = ({ job, archived }: TemplateVersion): StateKind => {
  if (job.status === "failed" || job.status === "canceled") return "failed";
  if (job.status !== "succeeded") return "busy";
  return archived ? "stopped" : "running";
};

export const Versions = ({ template, versions, mayChange, reload }: VersionsProps) => {
  const isImporting = useSignal(false);
  const { query } = useLocation();
  const newest = versions.toSorted((a, b) => (a.created_at < b.created_at ? 1 : -1));
  const base = `/templates/${template.id}/versions`;
  const [from, to] = [query.from, query.to].map((id) => versions.find((one) => one.id === id));
  if (from && to && mayChange) return <Compare versions={newest} from={from} to={to} base={base} />;
  const toCompareUrl = (version: TemplateVersion): string => {
    // The preceding version, or the active one.
    const before = newest[newest.indexOf(version) + 1]?.id ?? template.active_version_id;
    return `${base}?${new URLSearchParams({ from: before, to: version.id })}`;
  };
  return (
    <section class="stack" aria-labelledby="versions">
      <div class="head">
        <h2 id="versions">Versions</h2>
        {mayChange && (
          <span class="push">
            <Button icon="plus" onPress={sets(isImporting, true)}>
              New version
            </Button>
          </span>
        )}
      </div>
      <ul class="panel list">
        {newest.map((version) => (
          <Version
            key={version.id}
            template={template}
            version={version}
            mayChange={mayChange}
            reload={reload}
            compared={newest.length > 1 ? toCompareUrl(version) : undefined}
            withActive={`${base}?${new URLSearchParams({ from: template.active_version_id, to: version.id })}`}
          />
        ))}
      </ul>
      {isImporting.value && (
        <Import
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
  readonly compared: string | undefined;
  readonly withActive: string;
};

const Version = ({ template, version, mayChange, reload, compared, withActive }: VersionProps) => {
  const isActive = version.id === template.active_version_id;
  const path = { templateversion: version.id };
  const promote = async (): Promise<void> => {
    await call("PATCH /templates/:template/versions", { path: { template: template.id }, body: { id: version.id } });
    await reload();
    showToast(`New workspaces use ${version.name}`);
  };
  const archive = async (): Promise<void> => {
    if (version.archived) await call("POST /templateversions/:templateversion/unarchive", { path });
    else await call("POST /templateversions/:templateversion/archive", { path });
    await reload();
    showToast(version.archived ? `${version.name} unarchived` : `${version.name} archived`);
  };
  const items = (): MenuItem[] => [
    ...(compared ? [{ icon: "file" as const, label: "Compare with previous version", href: compared }] : []),
    ...(isActive ? [] : [{ icon: "file" as const, label: "Compare with active version", href: withActive }]),
    ...(isActive ? [] : changes()),
  ];
  const changes = (): MenuItem[] => [
    ...(version.job.status === "succeeded" && !version.archived
      ? [{ icon: "up" as const, label: "Promote", act: promote }]
      : []),
    { icon: "save", label: version.archived ? "Unarchive" : "Archive", act: archive },
  ];
  return (
    <li class="item">
      <State kind={toKind(version)}>
        <span class="med clip">{version.name}</span>
      </State>
      <span class="line">
        {isActive && <span class="badge accent">Active</span>}
        {version.archived && <span class="badge">Archived</span>}
        {mayChange && (compared || !isActive) && <Menu label={`More for ${version.name}`} items={items} />}
      </span>
      <span class={version.job.error ? "sub t-bad" : "sub"}>
        {version.job.error ?? (version.message || "No message")}, by {version.created_by.username},{" "}
        <Time at={version.created_at} />
      </span>
    </li>
  );
};
