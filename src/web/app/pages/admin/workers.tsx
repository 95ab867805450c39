// Workers: separate processes that provision workspaces, their current jobs, and the keys they authenticate with.
import { useSignal } from "@preact/signals";
import type { NewProvisionerKey, ProvisionerDaemon } from "#schema/templates/provisioner.ts";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Button } from "../../parts/button.tsx";
import { confirmAction, Dialog } from "../../parts/dialog.tsx";
import { Empty, Failed } from "../../parts/empty.tsx";
import { Field, NameField } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { setTo } from "../../parts/handlers.ts";
import { Secret } from "../../parts/secret.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { State } from "../../parts/state.tsx";
import { Time } from "../../parts/time.tsx";
import { showToast } from "../../shell/toasts.tsx";
import { OrganizationChoice, useOrganization } from "./organization-choice.tsx";

const formatTags = (tags: Readonly<Record<string, string>>): string =>
  Object.entries(tags)
    .map(([name, value]) => `${name}=${value}`)
    .join(", ");

const parseTags = (text: string): Record<string, string> =>
  Object.fromEntries(
    text
      .split(",")
      .filter((one) => one.trim() !== "")
      .map((one) => {
        const [name = "", ...rest] = one.split("=");
        return [name.trim(), rest.join("=").trim()];
      }),
  );

export const Workers = () => {
  const organization = useOrganization();
  const path = { organization: organization ?? "" };
  const { state, reload } = useResource(organization && `workers ${organization}`, async () => {
    const [daemons, keys] = await Promise.all([
      call("GET /organizations/:organization/provisionerdaemons", { path }),
      call("GET /organizations/:organization/provisionerkeys", { path }),
    ]);
    return { daemons, keys };
  });
  const adding = useSignal(false);
  const created = useSignal<NewProvisionerKey | undefined>(undefined);
  const { data, error } = state.value;
  if (error) return <Failed title="Can't load the workers" error={error} reload={reload} />;
  if (!data) return <Skeleton lines={6} />;
  const revoke = (name: string): void =>
    confirmAction({
      title: `Revoke ${name}`,
      text: "Workers that use it are disconnected immediately, and their jobs are reassigned.",
      confirmLabel: "Revoke key",
      cancelLabel: "Keep it",
      isDanger: true,
      act: async () => {
        await call("DELETE /organizations/:organization/provisionerkeys/:key", { path: { ...path, key: name } });
        showToast(`${name} revoked`);
        await reload();
      },
    });
  return (
    <>
      <OrganizationChoice id={organization} />
      <section class="stack" aria-labelledby="workers">
        <div class="head">
          <h2 id="workers">Workers</h2>
          <span class="push">
            <Button icon="restart" onPress={reload}>
              Refresh
            </Button>
          </span>
        </div>
        {data.daemons.length === 0 ? (
          <Empty
            icon="box"
            title="No external workers"
            text="This server builds workspaces itself. To build them on another machine, create a key and run slipway provisioner there."
          />
        ) : (
          <ul class="panel list">
            {data.daemons.map((one) => (
              <Daemon key={one.id} daemon={one} keyName={data.keys.find(({ id }) => id === one.key_id)?.name} />
            ))}
          </ul>
        )}
      </section>
      <section class="stack" aria-labelledby="keys">
        <div class="head">
          <h2 id="keys">Keys</h2>
          <span class="push">
            <Button look="primary" icon="plus" onPress={setTo(adding, true)}>
              Create key
            </Button>
          </span>
        </div>
        {data.keys.length === 0 ? (
          <p class="mut">No keys. A worker authenticates with a key, which also sets its tags.</p>
        ) : (
          <ul class="panel list">
            {data.keys.map((one) => (
              <li key={one.id} class="item">
                <span class="med clip">{one.name}</span>
                <span class="line">
                  <Button small look="ghost danger" label={`Revoke ${one.name}`} onPress={() => revoke(one.name)}>
                    Revoke…
                  </Button>
                </span>
                <span class="sub clip">
                  {formatTags(one.tags) || "no tags"}, created <Time at={one.created_at} ago />
                  {one.created_by_name && ` by ${one.created_by_name}`}
                </span>
              </li>
            ))}
          </ul>
        )}
      </section>
      {adding.value && (
        <FormDialog
          title="Create worker key"
          submitLabel="Create key"
          onClose={() => {
            adding.value = false;
            void reload();
          }}
          act={async ({ name = "", tags = "" }) => {
            const body = { name, tags: parseTags(tags) };
            const key = await call("POST /organizations/:organization/provisionerkeys", { path, body });
            setTimeout(() => {
              created.value = key;
            });
          }}
        >
          {(problems) => (
            <>
              <NameField label="Name" name="name" maxLength={64} placeholder="gpu-builders" error={problems.name} />
              <Field
                label="Tags"
                name="tags"
                placeholder="region=eu, gpu=yes"
                hint="Applied to every worker that uses this key. Jobs select workers by tag."
                error={problems.tags}
              />
            </>
          )}
        </FormDialog>
      )}
      {created.value && (
        <Dialog title={`Key ${created.value.name}`} onClose={setTo(created, undefined)}>
          <p>You won't be able to see it again. On the other machine, run:</p>
          <Secret
            label="Command"
            text={`SLIPWAY_WORKER_KEY=${created.value.key} slipway provisioner --url ${location.origin}`}
          />
        </Dialog>
      )}
    </>
  );
};

const JOB_LABELS: Readonly<Record<string, string>> = {
  workspace_build: "builds",
  template_version_import: "imports",
  template_version_dry_run: "dry run of",
};

const Daemon = ({ daemon, keyName }: { daemon: ProvisionerDaemon; keyName: string | undefined }) => {
  const { status, current_job: job } = daemon;
  return (
    <li class="item">
      <State kind={status === "busy" ? "busy" : status === "idle" ? "running" : "stopped"}>
        <span class="med clip">{daemon.name}</span>
      </State>
      <span class="line">
        {Object.entries(daemon.tags).map(([name, value]) => (
          <span key={name} class="badge desk">
            {name}={value}
          </span>
        ))}
        <span class="small mut">{daemon.provisioners.join(", ")}</span>
      </span>
      <span class="sub clip">
        {job ? (
          <>
            {JOB_LABELS[job.type] ?? "works on"}{" "}
            {job.workspace_id ? (
              <a href={`/workspaces/${job.workspace_id}`}>{job.workspace_name}</a>
            ) : (
              job.template_name || "a template"
            )}
            {job.started_at && (
              <>
                {" "}
                since <Time at={job.started_at} />
              </>
            )}
          </>
        ) : status === "idle" ? (
          `idle, ${daemon.slots === 1 ? "1 job" : `${daemon.slots} jobs`} at a time`
        ) : (
          <>
            offline, last seen <Time at={daemon.last_seen_at} ago />
          </>
        )}
        {keyName && `, key ${keyName}`}
        {daemon.version && `, ${daemon.version}`}
      </span>
    </li>
  );
};
