// The parameters of a workspace: the current values, a preview of a change, and the build that applies it.
import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { DynamicParameter } from "#schema/workspaces/dynamic-parameters.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { WorkspaceSummary } from "#schema/workspaces/workspace-watch.ts";
import { call, callServer } from "../../data/api.ts";
import { FormSocket, type Values } from "../../data/form-socket.ts";
import { useResource } from "../../data/resource.ts";
import { isTransitional } from "../../data/states.ts";
import * as actions from "../../data/workspace-actions.ts";
import { Button } from "../../parts/button.tsx";
import { ConflictNotice } from "../../parts/edit-conflict-notice.tsx";
import { Failed } from "../../parts/empty.tsx";
import { Parameter } from "../../parts/parameter.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";

export const Parameters = ({ workspace, row }: { workspace: Workspace; row: WorkspaceSummary }) => {
  const { latest_build } = workspace;
  const { state, reload } = useResource(`parameters ${latest_build.id}`, () =>
    call("GET /workspacebuilds/:workspacebuild/parameters", { path: { workspacebuild: latest_build.id } }),
  );
  const { data, error } = state.value;
  // The form stays visible while the parameters of another build are loaded.
  const lastLoaded = useRef(data);
  lastLoaded.current = data ?? lastLoaded.current;
  const values = useSignal<Values>({});
  const touchedNames = useSignal<ReadonlySet<string>>(new Set());
  if (error && !lastLoaded.current) return <Failed title="Can't load the parameters" error={error} reload={reload} />;
  if (!lastLoaded.current) return <Skeleton lines={5} />;
  return (
    <ParametersForm
      key={row.template_active_version_id}
      workspace={workspace}
      row={row}
      current={toValues(lastLoaded.current)}
      values={values}
      touchedNames={touchedNames}
    />
  );
};

const toValues = (parameters: readonly { readonly name: string; readonly value: string }[]): Values =>
  Object.fromEntries(parameters.map(({ name, value }) => [name, value]));

/** Returns the parameters of the newest build. */
const loadCurrent = async (workspace: Workspace): Promise<Values> => {
  const { latest_build } = await callServer("GET /workspaces/:workspace", { path: { workspace: workspace.id } });
  return toValues(
    await call("GET /workspacebuilds/:workspacebuild/parameters", { path: { workspacebuild: latest_build.id } }),
  );
};

const FIXED_HINT = "Can't be changed after the workspace is created.";

type Change = { readonly name: string; readonly from: string | undefined; readonly to: string };

type FormProps = {
  readonly workspace: Workspace;
  readonly row: WorkspaceSummary;
  /** The values of the newest build; another build may change them while the user edits. */
  readonly current: Values;
  /** The edited values, which are kept across new builds and template versions. */
  readonly values: Signal<Values>;
  readonly touchedNames: Signal<ReadonlySet<string>>;
};

const ParametersForm = ({ workspace, row, current, values, touchedNames }: FormProps) => {
  // Always uses the active version, as an update would.
  const form = useMemo(() => new FormSocket(row.template_active_version_id, { ...current, ...values.value }), []);
  useEffect(() => () => form.end(), []);
  const lastKnown = useRef(current);
  const conflicts = useSignal<readonly Change[]>([]);
  /** Stores the current values. Returns true if someone else changed an edited value, which is shown first. */
  const checkConflict = (latest: Values): boolean => {
    const previous = lastKnown.current;
    lastKnown.current = latest;
    const isEdited = (name: string): boolean => touchedNames.value.has(name) && values.value[name] !== latest[name];
    const conflictingNames = Object.keys(latest).filter((name) => latest[name] !== previous[name] && isEdited(name));
    if (conflictingNames.length > 0)
      conflicts.value = conflictingNames.map((name) => ({ name, from: previous[name], to: latest[name] ?? "" }));
    return conflictingNames.length > 0;
  };
  const serialized = JSON.stringify(current);
  useEffect(() => {
    checkConflict(current);
    form.sendValues({ ...current, ...values.value });
  }, [serialized]);
  const parameters = form.answer.value?.parameters.filter(({ ephemeral }) => !ephemeral);
  const getValue = (one: DynamicParameter): string =>
    values.value[one.name] ?? current[one.name] ?? (one.value.valid ? one.value.value : "");
  const changes = (parameters ?? [])
    .map((one): Change => ({ name: one.name, from: current[one.name], to: getValue(one) }))
    .filter(({ from, to }) => from !== to);
  if (!parameters) return <Skeleton lines={5} />;
  const hasErrors = parameters.some(({ diagnostics }) => diagnostics.some(({ severity }) => severity === "error"));
  const setValue = (name: string, value: string): void => {
    touchedNames.value = new Set(touchedNames.value).add(name);
    values.value = { ...values.value, [name]: value };
    form.sendValues({ ...current, ...values.value });
  };
  const apply = async (): Promise<void> => {
    if (checkConflict(await loadCurrent(workspace))) return;
    conflicts.value = [];
    await actions.updateWorkspace(
      row,
      changes.map(({ name, to }) => ({ name, value: to })),
    );
  };
  const acceptTheirs = (): void => {
    const otherValues = conflicts.value.map(({ name, to }) => [name, to]);
    values.value = { ...values.value, ...Object.fromEntries(otherValues) };
    conflicts.value = [];
    form.sendValues({ ...current, ...values.value });
  };
  return (
    <div class="split">
      <div class="stack loose">
        {parameters.length === 0 && <p class="dim">This template has no parameters.</p>}
        {parameters.map((one) => (
          <Parameter
            key={one.name}
            parameter={one}
            value={getValue(one)}
            isTouched={touchedNames.value.has(one.name) || current[one.name] === undefined}
            fixedReason={one.mutable || current[one.name] === undefined ? undefined : FIXED_HINT}
            onValue={(value) => setValue(one.name, value)}
          />
        ))}
      </div>
      <aside class="panel" aria-label="Changes">
        <header>
          <h2>Changes</h2>
        </header>
        <div class="body stack">
          {conflicts.value.length > 0 && (
            <ConflictNotice
              savedValue={conflicts.value.map(({ name, to }) => `${name} is now ${to || "empty"}`).join(", ")}
              onDiscard={acceptTheirs}
            />
          )}
          {row.outdated && <p class="small">Updates the workspace to the active version of its template.</p>}
          {changes.length === 0 && !row.outdated && <p class="dim small">No changes yet.</p>}
          {changes.length > 0 && (
            <div class="scroll" role="region" aria-label="Changed parameters" tabIndex={0}>
              <table class="table fields">
                <thead>
                  <tr>
                    <th>Parameter</th>
                    <th>Before</th>
                    <th>After</th>
                  </tr>
                </thead>
                <tbody>
                  {changes.map(({ name, from, to }) => (
                    <tr key={name}>
                      <td>{name}</td>
                      <td>{from === undefined ? <span class="dim">new</span> : <del>{from || "empty"}</del>}</td>
                      <td>
                        <ins>{to || "empty"}</ins>
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )}
        </div>
        <footer>
          <Button
            look="primary"
            disabled={hasErrors || isTransitional(row) || (changes.length === 0 && !row.outdated)}
            onPress={apply}
          >
            {row.status === "running" ? "Update and restart" : "Update and start"}
          </Button>
        </footer>
      </aside>
    </div>
  );
};
