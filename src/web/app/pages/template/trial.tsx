// The dialog that imports a new version, shows its log, tries it with a dry run, and promotes it.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { Template } from "#schema/templates/template.ts";
import type { TemplateVersion } from "#schema/templates/template-version.ts";
import { call, formatError } from "../../data/api.ts";
import { FormSocket, type Values } from "../../data/form-socket.ts";
import { LogFeed } from "../../data/logs.ts";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { DryRun } from "../../parts/dry-run.tsx";
import { Parameter } from "../../parts/parameter.tsx";
import { showToast } from "../../shell/toasts.tsx";
import { ImportLog } from "./import-log.tsx";

type ImportDialogProps = {
  readonly template: Template;
  /** The version whose import has started. */
  readonly version: TemplateVersion;
  readonly onClose: (isPromoted: boolean) => void;
};

export const ImportDialog = ({ template, version, onClose }: ImportDialogProps) => {
  const problem = useSignal("");
  const isImported = useSignal(false);
  const hasDryRunSucceeded = useSignal(false);
  const feed = useMemo(() => new LogFeed(), []);
  useEffect(() => {
    const path = { templateversion: version.id };
    const checkImport = async (): Promise<void> => {
      const { job } = await call("GET /templateversions/:templateversion", { path });
      if (job.status !== "succeeded") throw new Error(job.error ?? "The import failed.");
      isImported.value = true;
    };
    const onImportEnd = (): void => {
      void checkImport().catch((error) => {
        problem.value = formatError(error);
      });
    };
    feed.follow({ source: "import", path: `/templateversions/${version.id}/logs`, onEnd: onImportEnd });
    return () => feed.end();
  }, []);
  const promote = async (): Promise<void> => {
    const path = { template: template.id };
    await call("PATCH /templates/:template/versions", { path, body: { id: version.id } });
    showToast(`New workspaces use ${version.name}`);
    onClose(true);
  };
  return (
    <Dialog
      title={`Version ${version.name}`}
      class="wide"
      onClose={() => onClose(false)}
      footer={
        <>
          <Button onPress={() => onClose(false)}>{isImported.value ? "Later" : "Close"}</Button>
          <Button
            look={hasDryRunSucceeded.value ? "primary" : undefined}
            disabled={!isImported.value}
            onPress={promote}
          >
            Promote
          </Button>
        </>
      }
    >
      {problem.value && (
        <p class="t-bad" role="alert">
          {problem.value}
        </p>
      )}
      {isImported.value ? (
        <TryValues version_id={version.id} onSuccess={() => (hasDryRunSucceeded.value = true)} />
      ) : (
        <ImportLog feed={feed} />
      )}
    </Dialog>
  );
};

const TryValues = ({ version_id, onSuccess }: { version_id: string; onSuccess: () => void }) => {
  const values = useSignal<Values>({});
  const touchedNames = useSignal<ReadonlySet<string>>(new Set());
  const dryRunCount = useSignal(0);
  const form = useMemo(() => new FormSocket(version_id, {}), []);
  useEffect(() => () => form.end(), []);
  const parameters = form.answer.value?.parameters ?? [];
  return (
    <div class="stack">
      {parameters.map((one) => (
        <Parameter
          key={one.name}
          parameter={one}
          value={values.value[one.name] ?? (one.value.valid ? one.value.value : "")}
          isTouched={touchedNames.value.has(one.name)}
          onValue={(value) => {
            touchedNames.value = new Set(touchedNames.value).add(one.name);
            values.value = { ...values.value, [one.name]: value };
            form.sendValues(values.value);
          }}
        />
      ))}
      <div class="line wrap">
        <Button
          look={dryRunCount.value === 0 ? "primary" : undefined}
          icon="play"
          onPress={() => {
            dryRunCount.value += 1;
          }}
        >
          Dry run
        </Button>
        <span class="dim small">
          Checks whether a workspace could be created with these values, without creating one.
        </span>
      </div>
      {dryRunCount.value > 0 && (
        <DryRun
          key={dryRunCount.value}
          version_id={version_id}
          onSuccess={onSuccess}
          body={{
            rich_parameter_values: Object.entries(values.value).map(([name, value]) => ({ name, value })),
          }}
        />
      )}
    </div>
  );
};
