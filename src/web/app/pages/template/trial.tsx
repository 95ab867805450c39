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

type TrialProps = {
  readonly template: Template;
  /** The version whose import has started. */
  readonly begun: TemplateVersion;
  /** `activated`: the version was promoted. */
  readonly onClose: (activated: boolean) => void;
};

export const Trial = ({ template, begun, onClose }: TrialProps) => {
  const problem = useSignal("");
  const imported = useSignal(false);
  const hasWorked = useSignal(false);
  const feed = useMemo(() => new LogFeed(), []);
  useEffect(() => {
    const path = { templateversion: begun.id };
    const finish = async (): Promise<void> => {
      const { job } = await call("GET /templateversions/:templateversion", { path });
      if (job.status !== "succeeded") throw new Error(job.error ?? "The import failed.");
      imported.value = true;
    };
    const onImportEnd = (): void => {
      void finish().catch((error) => {
        problem.value = formatError(error);
      });
    };
    feed.follow({ source: "import", path: `/templateversions/${begun.id}/logs`, ended: onImportEnd });
    return () => feed.end();
  }, []);
  const promote = async (): Promise<void> => {
    const path = { template: template.id };
    await call("PATCH /templates/:template/versions", { path, body: { id: begun.id } });
    showToast(`New workspaces use ${begun.name}`);
    onClose(true);
  };
  return (
    <Dialog
      title={`Version ${begun.name}`}
      class="wide"
      onClose={() => onClose(false)}
      footer={
        <>
          <Button onPress={() => onClose(false)}>{imported.value ? "Later" : "Close"}</Button>
          <Button look={hasWorked.value ? "primary" : undefined} disabled={!imported.value} onPress={promote}>
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
      {imported.value ? (
        <TryValues version_id={begun.id} worked={() => (hasWorked.value = true)} />
      ) : (
        <ImportLog feed={feed} />
      )}
    </Dialog>
  );
};

const TryValues = ({ version_id, worked }: { version_id: string; worked: () => void }) => {
  const values = useSignal<Values>({});
  const touched = useSignal<ReadonlySet<string>>(new Set());
  const tried = useSignal(0);
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
          touched={touched.value.has(one.name)}
          onValue={(value) => {
            touched.value = new Set(touched.value).add(one.name);
            values.value = { ...values.value, [one.name]: value };
            form.sendValues(values.value);
          }}
        />
      ))}
      <div class="line wrap">
        <Button
          look={tried.value === 0 ? "primary" : undefined}
          icon="play"
          onPress={() => {
            tried.value += 1;
          }}
        >
          Dry run
        </Button>
        <span class="dim small">
          Checks whether a workspace could be created with these values, without creating one.
        </span>
      </div>
      {tried.value > 0 && (
        <DryRun
          key={tried.value}
          version_id={version_id}
          worked={worked}
          body={{
            rich_parameter_values: Object.entries(values.value).map(([name, value]) => ({ name, value })),
          }}
        />
      )}
    </div>
  );
};
