// The editor for the files of the active version. Changes become a new version, which is tested before it is promoted.
import { type Signal, useComputed, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Template } from "#schema/templates/template.ts";
import type { TemplateVersion } from "#schema/templates/template-version.ts";
import { call, callServer } from "../../data/api.ts";
import { loadCode } from "../../data/load-code.ts";
import { useResource } from "../../data/resource.ts";
import { makeTar, type TarEntry } from "../../data/tar.ts";
import { makeDiff, readVersionFiles, type VersionFiles } from "../../data/version-files.ts";
import { adoptSheet } from "../../parts/adopt-sheet.ts";
import { Button, IconButton } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { DiffFile } from "../../parts/diff/diff-file.tsx";
import { type FileDiff, parseFiles } from "../../parts/diff/diff-lines.ts";
import { Empty, Failed } from "../../parts/empty.tsx";
import { Area, Field } from "../../parts/field.tsx";
import { writeTextTo } from "../../parts/handlers.ts";
import { Icon } from "../../parts/icon.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { showError } from "../../shell/toasts.tsx";
import { upload } from "../templates/pack.ts";
import type { CodeEditor } from "./code-editor.ts";
import { type Draft, loadDraft, storeDraft } from "./draft.ts";
import rules from "./editor.css" with { type: "text" };
import { ImportDialog } from "./trial.tsx";
import { OtherVersionNotice } from "./version-conflict.tsx";

adoptSheet(rules);

type EditorProps = {
  readonly template: Template;
  readonly active: TemplateVersion | undefined;
  readonly reload: () => Promise<void>;
};

export default function Editor({ template, active: currentActive, reload }: EditorProps) {
  const isChanged = useSignal(false);
  // The user's changes stay based on this version, even if another version is promoted.
  const baseVersion = useRef(currentActive);
  if (!isChanged.value) baseVersion.current = currentActive;
  const active = baseVersion.current;
  const { state, reload: reloadFiles } = useResource(active && `files ${active.job.file_id}`, () =>
    readVersionFiles(active?.job.file_id ?? ""),
  );
  const { data, error } = state.value;
  if (error && !data) return <Failed title="Can't load the files" error={error} reload={reloadFiles} />;
  if (!data || !active) return <Skeleton lines={8} />;
  /** Applies the same changes to the files of the version that is active now. */
  const moveDraft = (): void => {
    if (currentActive) storeDraft(currentActive.id, loadDraft(active.id));
    storeDraft(active.id, {});
    isChanged.value = false;
  };
  return (
    <>
      {currentActive && currentActive.id !== active.id && (
        <OtherVersionNotice template={template} baseVersion={active} active={currentActive}>
          <Button small onPress={moveDraft}>
            Apply my changes to {currentActive.name}
          </Button>
        </OtherVersionNotice>
      )}
      <Files key={active.id} template={template} active={active} files={data} isChanged={isChanged} reload={reload} />
    </>
  );
}

type FilesProps = {
  template: Template;
  active: TemplateVersion;
  files: VersionFiles;
  isChanged: Signal<boolean>;
  reload: () => Promise<void>;
};

const encoder = new TextEncoder();

/** Returns the files with the draft applied. */
const applyDraft = (files: VersionFiles, draft: Draft): VersionFiles => {
  const changedFiles = new Map(files);
  for (const [path, text] of Object.entries(draft)) {
    if (text === null) changedFiles.delete(path);
    else changedFiles.set(path, { bytes: encoder.encode(text), text });
  }
  return new Map([...changedFiles].sort(([a], [b]) => (a < b ? -1 : 1)));
};

const FIRST_FILES = ["template.yaml", "main.tf"];

const Files = ({ template, active, files, isChanged, reload }: FilesProps) => {
  const draft = useSignal<Draft>(loadDraft(active.id));
  const draftFiles = useComputed(() => applyDraft(files, draft.value));
  const openPath = useSignal(FIRST_FILES.find((path) => files.has(path)) ?? [...files.keys()][0] ?? "");
  /** Increments when the editor must be refilled. */
  const editorNumber = useSignal(0);
  const dialog = useSignal<"" | "add" | "rename" | "save">("");
  const importing = useSignal<TemplateVersion | undefined>(undefined);
  const changeFile = (path: string, text: string | null): void => {
    const { [path]: _, ...others } = draft.value;
    const isUnchanged = text === null ? !files.has(path) : files.get(path)?.text === text;
    draft.value = isUnchanged ? others : { ...others, [path]: text };
    storeDraft(active.id, draft.value);
  };
  const changedCount = Object.keys(draft.value).length;
  useEffect(() => {
    isChanged.value = changedCount > 0;
  }, [changedCount]);
  const file = draftFiles.value.get(openPath.value);
  const openFile = (path: string): void => {
    openPath.value = path;
    editorNumber.value += 1;
  };
  const openSaveDialog = (): void => {
    if (changedCount > 0) dialog.value = "save";
  };
  const removeFile = (): void => {
    changeFile(openPath.value, null);
    openFile([...draftFiles.value.keys()][0] ?? "");
  };
  return (
    <>
      <div class="line wrap editor-bar">
        <span class="dim small num" role="status">
          {changedCount === 0
            ? `Version ${active.name}`
            : `${changedCount} ${changedCount === 1 ? "file" : "files"} changed since ${active.name}`}
        </span>
        <span class="push line">
          {changedCount > 0 && (
            <Button
              look="ghost"
              onPress={() => {
                draft.value = {};
                storeDraft(active.id, {});
                openFile(files.has(openPath.value) ? openPath.value : ([...files.keys()][0] ?? ""));
              }}
            >
              Discard changes
            </Button>
          )}
          <Button look="primary" keys="Ctrl S" disabled={changedCount === 0} onPress={openSaveDialog}>
            Save as new version…
          </Button>
        </span>
      </div>
      <div class="editor">
        <nav class="editor-files" aria-label="Files">
          <p class="line">
            <span class="dim small">Files</span>
            <span class="push line">
              <IconButton icon="plus" small label="Add file" onPress={() => (dialog.value = "add")} />
              <IconButton
                icon="pen"
                small
                label={`Rename ${openPath.value}`}
                disabled={file?.text === undefined}
                onPress={() => (dialog.value = "rename")}
              />
              <IconButton
                icon="trash"
                small
                label={`Remove ${openPath.value}`}
                disabled={file === undefined}
                onPress={removeFile}
              />
            </span>
          </p>
          <ul>
            {[...draftFiles.value.keys()].map((path) => (
              <li key={path}>
                <button
                  type="button"
                  class="btn ghost"
                  aria-current={path === openPath.value ? "true" : undefined}
                  onClick={() => openFile(path)}
                >
                  <Icon name="file" />
                  <span class="clip">{path}</span>
                  {path in draft.value && <span class="badge busy">changed</span>}
                </button>
              </li>
            ))}
          </ul>
        </nav>
        {file === undefined ? (
          <Empty icon="file" title="No file" text="Add a file. A template needs a template.yaml or Terraform files." />
        ) : file.text === undefined ? (
          <Empty icon="file" title="This is not a text file" text="The template keeps it unchanged." />
        ) : (
          <CodeBox
            key={`${openPath.value} ${editorNumber.value}`}
            path={openPath.value}
            text={file.text}
            onChange={(text) => changeFile(openPath.value, text)}
            onSave={openSaveDialog}
          />
        )}
      </div>
      {(dialog.value === "add" || dialog.value === "rename") && (
        <FileNameDialog
          title={dialog.value === "add" ? "Add file" : `Rename ${openPath.value}`}
          initialPath={dialog.value === "add" ? "" : openPath.value}
          files={draftFiles.value}
          close={() => (dialog.value = "")}
          onDone={(path) => {
            const text = dialog.value === "add" ? "" : (file?.text ?? "");
            if (dialog.value === "rename") changeFile(openPath.value, null);
            changeFile(path, text);
            dialog.value = "";
            openFile(path);
          }}
        />
      )}
      {dialog.value === "save" && (
        <SaveDialog
          active={active}
          template={template}
          before={files}
          after={draftFiles.value}
          close={() => (dialog.value = "")}
          onSaved={(version) => {
            dialog.value = "";
            importing.value = version;
          }}
        />
      )}
      {importing.value && (
        <ImportDialog
          template={template}
          version={importing.value}
          onClose={(isPromoted) => {
            importing.value = undefined;
            // The draft is complete once promoted; otherwise it still needs fixing.
            if (isPromoted) {
              storeDraft(active.id, {});
              isChanged.value = false;
            }
            void reload();
          }}
        />
      )}
    </>
  );
};

type CodeProps = { path: string; text: string; onChange: (text: string) => void; onSave: () => void };

const CodeBox = ({ path, text, onChange, onSave }: CodeProps) => {
  const box = useRef<HTMLDivElement>(null);
  const latest = useRef({ changed: onChange, save: onSave });
  latest.current = { changed: onChange, save: onSave };
  useEffect(() => {
    let editor: CodeEditor | undefined;
    let isUnmounted = false;
    const loading = loadCode(() => import("./code-editor.ts")).then(({ CodeEditor }) => {
      if (isUnmounted || !box.current) return;
      editor = new CodeEditor(box.current, {
        path,
        text,
        isReadOnly: false,
        onChange: (next) => latest.current.changed(next),
        onSave: () => latest.current.save(),
      });
    });
    loading.catch(() => showError(new Error("Can't load the editor. Reload the page; your changes are kept.")));
    return () => {
      isUnmounted = true;
      editor?.end();
    };
  }, []);
  return <div ref={box} class="editor-code" />;
};

/** Returns the error of a path; it must be below the template's folder. */
const validatePath = (path: string, files: VersionFiles): string => {
  if (path === "") return "";
  if (path.startsWith("/") || path.split("/").some((part) => part === "" || part === "." || part === ".."))
    return "Enter a path inside the template's folder, such as scripts/start.sh.";
  return files.has(path) ? "A file with this name already exists." : "";
};

type NameProps = {
  title: string;
  initialPath: string;
  files: VersionFiles;
  close: () => void;
  onDone: (path: string) => void;
};

const FileNameDialog = ({ title, initialPath, files, close, onDone }: NameProps) => {
  const path = useSignal(initialPath);
  const problem = path.value === initialPath ? "" : validatePath(path.value, files);
  const canSubmit = path.value !== "" && path.value !== initialPath && problem === "";
  return (
    <Dialog
      title={title}
      onClose={close}
      footer={
        <>
          <Button onPress={close}>Cancel</Button>
          <Button look="primary" disabled={!canSubmit} onPress={() => onDone(path.value)}>
            {initialPath === "" ? "Add file" : "Rename file"}
          </Button>
        </>
      }
    >
      <Field
        label="Path"
        value={path.value}
        error={problem || undefined}
        spellcheck={false}
        autocomplete="off"
        autocapitalize="none"
        onInput={(event) => {
          path.value = event.currentTarget.value.trim();
        }}
        onKeyDown={(event) => event.key === "Enter" && canSubmit && onDone(path.value)}
      />
    </Dialog>
  );
};

type SaveProps = {
  template: Template;
  /** The version that was changed. */
  active: TemplateVersion;
  before: VersionFiles;
  after: VersionFiles;
  close: () => void;
  onSaved: (version: TemplateVersion) => void;
};

const SaveDialog = ({ template, active, before, after, close, onSaved }: SaveProps) => {
  const message = useSignal("");
  const changes = useSignal<readonly FileDiff[]>([]);
  /** Another version that someone has promoted. */
  const otherVersion = useSignal("");
  useEffect(() => {
    void callServer("GET /templates/:template", { path: { template: template.id } })
      .then(async ({ active_version_id }) => {
        if (active_version_id === active.id) return;
        const path = { templateversion: active_version_id };
        otherVersion.value = (await call("GET /templateversions/:templateversion", { path })).name;
      })
      .catch(() => {});
    void makeDiff(before, after).then((diff) => {
      changes.value = parseFiles(diff);
    });
  }, []);
  const save = async (): Promise<void> => {
    const entries: TarEntry[] = [...after].map(([path, { bytes }]) => ({ path, bytes }));
    const file_id = await upload(makeTar(entries));
    const body = { file_id, template_id: template.id, message: message.value.trim() };
    const path = { organization: template.organization_id };
    onSaved(await call("POST /organizations/:organization/templateversions", { path, body }));
  };
  return (
    <Dialog
      title="Save as new version"
      class="wide"
      onClose={close}
      footer={
        <>
          <Button onPress={close}>Keep editing</Button>
          <Button look="primary" onPress={save}>
            Save and import
          </Button>
        </>
      }
    >
      <div class="stack">
        {otherVersion.value && (
          <p class="banner box attn" role="alert">
            <span>
              {otherVersion.value} became the active version while you were editing. Your changes are based on{" "}
              {active.name} and don't include it.
            </span>
          </p>
        )}
        <Area
          label="Message"
          value={message.value}
          hint="Workspaces use the previous version until you promote this one."
          onInput={writeTextTo(message)}
        />
        {changes.value.map((file) => (
          <DiffFile key={file.path} file={file} isOpen />
        ))}
      </div>
    </Dialog>
  );
};
