// The dialog that imports a template or a new version from a folder or an archive, with the live log, and creates the template.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { Template } from "#schema/templates/template.ts";
import type { TemplateVersion } from "#schema/templates/template-version.ts";
import { call, formatError } from "../../data/api.ts";
import { LogFeed } from "../../data/logs.ts";
import { organizations } from "../../data/session.ts";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { submitWith } from "../../parts/handlers.ts";
import { ImportLog } from "../template/import-log.tsx";
import { packDropped, packFolder, upload } from "./pack.ts";

type ImportProps = {
  /** The template that gets the version; without it, a new template is created. */
  readonly template?: Template;
  /** An archive that was dropped on the page. */
  readonly droppedArchive?: Blob;
  readonly onDone: (template: Template, version: TemplateVersion) => void;
  readonly onClose: () => void;
};

export const ImportDialog = ({ template, droppedArchive, onDone, onClose }: ImportProps) => {
  const version = useSignal<TemplateVersion | undefined>(undefined);
  const archive = useSignal<Blob | undefined>(droppedArchive);
  const problem = useSignal("");
  const feed = useMemo(() => new LogFeed(), []);
  useEffect(() => () => feed.end(), []);
  const runAction = (act: () => Promise<unknown>): Promise<unknown> => {
    problem.value = "";
    return act().catch((error) => {
      problem.value = formatError(error);
    });
  };
  const finish = (name: string, importing: TemplateVersion): Promise<unknown> =>
    runAction(async () => {
      const created = await call("GET /templateversions/:templateversion", { path: { templateversion: importing.id } });
      if (created.job.status !== "succeeded") throw new Error(created.job.error ?? "The import failed.");
      onDone(
        template ??
          (await call("POST /organizations/:organization/templates", {
            path: { organization: created.organization_id },
            body: { name, template_version_id: created.id },
          })),
        created,
      );
    });
  const startImport = (form: HTMLFormElement): Promise<unknown> =>
    runAction(async () => {
      const { name = "", message = "" } = Object.fromEntries(new FormData(form)) as Record<string, string>;
      const organization = template?.organization_id ?? organizations.value[0]?.id;
      if (!archive.value || !organization) throw new Error("Choose a folder or an archive.");
      const file_id = await upload(archive.value);
      const importing = await call("POST /organizations/:organization/templateversions", {
        path: { organization },
        body: { file_id, message, ...(template ? { template_id: template.id } : {}) },
      });
      version.value = importing;
      const path = `/templateversions/${importing.id}/logs`;
      feed.follow({ source: "import", path, onEnd: () => void finish(name, importing) });
    });
  return (
    <Dialog
      title={template ? `New version of ${template.name}` : "Import template"}
      class="wide"
      onClose={onClose}
      footer={<Button onPress={onClose}>{version.value ? "Close" : "Cancel"}</Button>}
    >
      {version.value ? (
        <ImportLog feed={feed} />
      ) : (
        <form class="stack" onSubmit={submitWith(startImport)}>
          <DropField archive={archive.value} runAction={runAction} onArchive={(blob) => (archive.value = blob)} />
          {template ? (
            <div class="field">
              <label for="import-message">Message</label>
              <input class="input" id="import-message" name="message" maxLength={500} />
            </div>
          ) : (
            <div class="field">
              <label for="import-name">Name</label>
              <input class="input" id="import-name" name="name" required maxLength={32} spellcheck={false} />
              <span class="hint">Letters, digits and hyphens.</span>
            </div>
          )}
          <div>
            <Button look="primary" type="submit">
              Import
            </Button>
          </div>
        </form>
      )}
      {problem.value && (
        <p class="t-bad" role="alert">
          {problem.value}
        </p>
      )}
    </Dialog>
  );
};

type DropProps = {
  readonly archive: Blob | undefined;
  readonly runAction: (work: () => Promise<unknown>) => Promise<unknown>;
  readonly onArchive: (archive: Blob | undefined) => void;
};

/** Missing in the type of inputs, but supported by every browser. */
const FOLDER_ATTRIBUTES = { webkitdirectory: true };

const DropField = ({ archive, runAction, onArchive }: DropProps) => (
  <fieldset
    class="field drop"
    onDragOver={(event) => event.preventDefault()}
    onDrop={(event) => {
      event.preventDefault();
      const items = event.dataTransfer?.items;
      if (items) void runAction(async () => onArchive(await packDropped(items)));
    }}
  >
    <legend>Folder or archive</legend>
    <p class="small mut">
      Drop a folder with a template.yaml or *.tf here, or a tar or zip archive of one
      {archive && `. ${archive.size} bytes chosen`}.
    </p>
    <label>
      Archive <input type="file" accept=".tar,.zip" onChange={(event) => onArchive(event.currentTarget.files?.[0])} />
    </label>
    <label>
      Folder{" "}
      <input
        type="file"
        {...FOLDER_ATTRIBUTES}
        onChange={(event) => {
          const files = [...(event.currentTarget.files ?? [])];
          void runAction(async () => onArchive(await packFolder(files)));
        }}
      />
    </label>
  </fieldset>
);
