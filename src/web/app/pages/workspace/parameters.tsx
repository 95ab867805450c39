// The parameters of a workspace: the current values, a preview of a change, and the build that applies it.
import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { DynamicParameter } from "#schema/workspaces/dynamic-parameters.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { WorkspaceSummary } from "#schema/workspaces/workspace-watch.ts";
import { call, callServer } from "../../data/api.ts";
import { FormSocket, type Values } from "../../data/form-socket.ts";
import { useResource } from "../../data/resource.ts";
import { isPassing } from "../../data/states.ts";
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
  const last = useRef(data);
  last.current = data ?? last.current;
  const values = useSignal<Values>({});
  const touched = useSignal<ReadonlySet<string>>(new Set());
  if (error && !last.current) return <Failed what="Can't load the parameters" error={error} reload={reload} />;
  if (!last.current) return <Skeleton lines={5} />;
  return (
    <Form
      key={row.template_active_version_id}
      workspace={workspace}
      row={row}
      before={toValues(last.current)}
      values={values}
      touched={touched}
    />
  );
};

const toValues = (all: readonly { readonly name: string; readonly value: string }[]): Values =>
  Object.fromEntries(all.map(({ name, value }) => [name, value]));

/** Returns the parameters of the newest build. */
const readNow = async (workspace: Workspace): Promise<Values> => {
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
  readonly before: Values;
  /** The edited values, which are kept across new builds and template versions. */
  readonly values: Signal<Values>;
  readonly touched: Signal<ReadonlySet<string>>;
};

const Form = ({ workspace, row, before, values, touched }: FormProps) => {
  // Always uses the active version, as an update would.
  const form = useMemo(() => new FormSocket(row.template_active_version_id, { ...before, ...values.value }), []);
  useEffect(() => () => form.end(), []);
  const known = useRef(before);
  const others = useSignal<readonly Change[]>([]);
  /** Stores the current values. Returns true if someone else changed an edited value, which is shown first. */
  const checkConflict = (now: Values): boolean => {
    const was = known.current;
    known.current = now;
    const isMine = (name: string): boolean => touched.value.has(name) && values.value[name] !== now[name];
    const found = Object.keys(now).filter((name) => now[name] !== was[name] && isMine(name));
    if (found.length > 0) others.value = found.map((name) => ({ name, from: was[name], to: now[name] ?? "" }));
    return found.length > 0;
  };
  const isAs = JSON.stringify(before);
  useEffect(() => {
    checkConflict(before);
    form.sendValues({ ...before, ...values.value });
  }, [isAs]);
  const parameters = form.answer.value?.parameters.filter(({ ephemeral }) => !ephemeral);
  const getValue = (one: DynamicParameter): string =>
    values.value[one.name] ?? before[one.name] ?? (one.value.valid ? one.value.value : "");
  const changes = (parameters ?? [])
    .map((one): Change => ({ name: one.name, from: before[one.name], to: getValue(one) }))
    .filter(({ from, to }) => from !== to);
  if (!parameters) return <Skeleton lines={5} />;
  const isWrong = parameters.some(({ diagnostics }) => diagnostics.some(({ severity }) => severity === "error"));
  const set = (name: string, value: string): void => {
    touched.value = new Set(touched.value).add(name);
    values.value = { ...values.value, [name]: value };
    form.sendValues({ ...before, ...values.value });
  };
  const apply = async (): Promise<void> => {
    if (checkConflict(await readNow(workspace))) return;
    others.value = [];
    await actions.update(
      row,
      changes.map(({ name, to }) => ({ name, value: to })),
    );
  };
  const acceptTheirs = (): void => {
    const theirs = others.value.map(({ name, to }) => [name, to]);
    values.value = { ...values.value, ...Object.fromEntries(theirs) };
    others.value = [];
    form.sendValues({ ...before, ...values.value });
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
            touched={touched.value.has(one.name) || before[one.name] === undefined}
            fixed={one.mutable || before[one.name] === undefined ? undefined : FIXED_HINT}
            onValue={(value) => set(one.name, value)}
          />
        ))}
      </div>
      <aside class="panel" aria-label="Changes">
        <header>
          <h2>Changes</h2>
        </header>
        <div class="body stack">
          {others.value.length > 0 && (
            <ConflictNotice
              words={others.value.map(({ name, to }) => `${name} is now ${to || "empty"}`).join(", ")}
              take={acceptTheirs}
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
            disabled={isWrong || isPassing(row) || (changes.length === 0 && !row.outdated)}
            onPress={apply}
          >
            {row.status === "running" ? "Update and restart" : "Update and start"}
          </Button>
        </footer>
      </aside>
    </div>
  );
};
