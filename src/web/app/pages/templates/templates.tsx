// The visible templates as cards; template administrators can add more.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import type { Template } from "#schema/templates/template.ts";
import { call } from "../../data/api.ts";
import { reloadVisible, useResource } from "../../data/resource.ts";
import { formatRunsOn, formatUse } from "../../data/runs-on.ts";
import { onTemplateChange } from "../../data/workspaces.ts";
import { Button } from "../../parts/button.tsx";
import { Empty, Failed } from "../../parts/empty.tsx";
import { setTo } from "../../parts/handlers.ts";
import { Inline } from "../../parts/inline/inline.tsx";
import { Picture } from "../../parts/picture.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { Frame } from "../../shell/frame.tsx";
import { showError } from "../../shell/toasts.tsx";
import { NoTemplates } from "../home/first.tsx";
import { canManageTemplates } from "./can-manage.ts";
import { Examples } from "./examples.tsx";
import { ImportDialog } from "./import.tsx";
import { toNewWorkspaceUrl } from "./names.ts";
import { packDropped } from "./pack.ts";

export default function TemplatesPage() {
  const { route } = useLocation();
  const { state, reload } = useResource("templates", () => call("GET /templates"));
  useEffect(() => onTemplateChange(() => reloadVisible()), []);
  const isImporting = useSignal(false);
  const droppedArchive = useSignal<Blob | undefined>(undefined);
  const openDropped = async (items: DataTransferItemList): Promise<void> => {
    droppedArchive.value = await packDropped(items);
    if (droppedArchive.value) isImporting.value = true;
  };
  useEffect(() => {
    const allowDrop = (event: DragEvent): void => event.preventDefault();
    const onDrop = (event: DragEvent): void => {
      // The dialog's field handles drops itself.
      if (event.defaultPrevented || !event.dataTransfer) return;
      event.preventDefault();
      void openDropped(event.dataTransfer.items).catch(showError);
    };
    if (!canManageTemplates.value) return;
    document.addEventListener("dragover", allowDrop);
    document.addEventListener("drop", onDrop);
    return () => {
      document.removeEventListener("dragover", allowDrop);
      document.removeEventListener("drop", onDrop);
    };
  }, [canManageTemplates.value]);
  const { data, error } = state.value;
  const importButton = canManageTemplates.value && (
    <Button look="primary" icon="plus" onPress={setTo(isImporting, true)}>
      Import template
    </Button>
  );
  return (
    <Frame title="Templates" actions={data && data.length > 0 ? importButton : undefined}>
      <div class="page">
        {error ? (
          <Failed title="Can't load the templates" error={error} reload={reload} />
        ) : !data ? (
          <Skeleton lines={6} />
        ) : data.length === 0 && !canManageTemplates.value ? (
          <NoTemplates />
        ) : data.length === 0 ? (
          <Empty
            icon="layers"
            title="No templates yet"
            text="A template describes what a workspace contains: its machine, tools and apps. Start from a starter, or import a folder with a template.yaml."
          >
            {importButton}
          </Empty>
        ) : (
          <div class="cards">
            {data.map((one) => (
              <TemplateCard key={one.id} template={one} />
            ))}
          </div>
        )}
        {data && canManageTemplates.value && (
          <>
            <p class="small">
              <a href="/prebuilds">Repository prebuilds</a>{" "}
              <span class="mut">build repository images in advance, so that workspaces start in seconds.</span>
            </p>
            <Examples templates={data} onCreated={(template) => route(toNewWorkspaceUrl(template))} />
            <p class="dim small desk">Drop a template folder or archive anywhere on this page.</p>
          </>
        )}
      </div>
      {isImporting.value && (
        <ImportDialog
          {...(droppedArchive.value ? { droppedArchive: droppedArchive.value } : {})}
          onDone={({ id }) => route(`/templates/${id}`)}
          onClose={() => {
            isImporting.value = false;
            droppedArchive.value = undefined;
            void reload();
          }}
        />
      )}
    </Frame>
  );
}

const TemplateCard = ({ template }: { template: Template }) => (
  <a class="pick" href={`/templates/${template.id}`}>
    <span class="art">
      <Picture of={template.icon} otherwise="layers" />
    </span>
    <span class="line">
      <span class="med clip">{template.display_name || template.name}</span>
      {template.deprecated && <span class="badge">Deprecated</span>}
    </span>
    <p>
      <Inline text={template.description || `Runs on ${formatRunsOn(template)}.`} plainLinks /> {formatUse(template)}
    </p>
  </a>
);
