// The parameters of a workspace: what they are, what a change would be, and the build that brings it.
import { useComputed, useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { WorkspaceSummary } from "#schema/workspaces/workspace-watch.ts";
import { call } from "../../data/api.ts";
import { FormSocket, type Values } from "../../data/form-socket.ts";
import { useResource } from "../../data/resource.ts";
import { isPassing } from "../../data/states.ts";
import * as actions from "../../data/workspace-actions.ts";
import { Button } from "../../parts/button.tsx";
import { Failed } from "../../parts/empty.tsx";
import { Parameter } from "../../parts/parameter.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";

export const Parameters = ({ workspace, row }: { workspace: Workspace; row: WorkspaceSummary }) => {
  const { latest_build } = workspace;
  const { state, again } = useResource(`parameters ${latest_build.id}`, () =>
    call("GET /workspacebuilds/:workspacebuild/parameters", { path: { workspacebuild: latest_build.id } }),
  );
  const { data, error } = state.value;
  if (error && !data) return <Failed what="The parameters cannot be read" error={error} again={again} />;
  if (!data) return <Skeleton lines={5} />;
  const before = Object.fromEntries(data.map(({ name, value }) => [name, value]));
  return <Form key={`${latest_build.id} ${row.template_active_version_id}`} row={row} before={before} />;
};

const FIXED = "It stays as it was chosen when the workspace was made.";

type Change = { readonly name: string; readonly from: string | undefined; readonly to: string };

const Form = ({ row, before }: { row: WorkspaceSummary; before: Values }) => {
  const values = useSignal<Values>(before);
  const touched = useSignal<ReadonlySet<string>>(new Set());
  // Always of the newest version: that is what an update would ask.
  const form = useMemo(() => new FormSocket(row.template_active_version_id, before), []);
  useEffect(() => () => form.end(), []);
  const parameters = form.answer.value?.parameters.filter(({ ephemeral }) => !ephemeral);
  const changes = useComputed((): Change[] =>
    (form.answer.value?.parameters ?? [])
      .filter(({ ephemeral }) => !ephemeral)
      .map((one) => ({
        name: one.name,
        from: before[one.name],
        to: values.value[one.name] ?? (one.value.valid ? one.value.value : ""),
      }))
      .filter(({ from, to }) => from !== to),
  );
  if (!parameters) return <Skeleton lines={5} />;
  const isWrong = parameters.some(({ diagnostics }) => diagnostics.some(({ severity }) => severity === "error"));
  const set = (name: string, value: string): void => {
    touched.value = new Set(touched.value).add(name);
    values.value = { ...values.value, [name]: value };
    form.ask(values.value);
  };
  const apply = (): Promise<void> =>
    actions.update(
      row,
      changes.value.map(({ name, to }) => ({ name, value: to })),
    );
  return (
    <div class="split">
      <div class="stack loose">
        {parameters.length === 0 && <p class="dim">This template asks for nothing.</p>}
        {parameters.map((one) => (
          <Parameter
            key={one.name}
            parameter={one}
            value={values.value[one.name] ?? (one.value.valid ? one.value.value : "")}
            touched={touched.value.has(one.name) || before[one.name] === undefined}
            fixed={one.mutable || before[one.name] === undefined ? undefined : FIXED}
            onValue={(value) => set(one.name, value)}
          />
        ))}
      </div>
      <aside class="panel" aria-label="What changes">
        <header>
          <h2>What changes</h2>
        </header>
        <div class="body stack">
          {row.outdated && <p class="small">The workspace moves to the newest version of its template.</p>}
          {changes.value.length === 0 && !row.outdated && <p class="dim small">Nothing yet.</p>}
          {changes.value.length > 0 && (
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
                  {changes.value.map(({ name, from, to }) => (
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
            disabled={isWrong || isPassing(row) || (changes.value.length === 0 && !row.outdated)}
            onPress={apply}
          >
            {row.status === "running" ? "Update and restart" : "Update and start"}
          </Button>
        </footer>
      </aside>
    </div>
  );
};
