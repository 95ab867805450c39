// Repository prebuilds: repositories whose images are built in advance, the last build of each, and the webhook for pushes.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { CreatedRepositoryPrebuild, RepositoryPrebuild } from "#schema/templates/repository-prebuild.ts";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Button } from "../../parts/button.tsx";
import { confirmAction } from "../../parts/dialog.tsx";
import { Empty, Failed } from "../../parts/empty.tsx";
import { Fold } from "../../parts/fold.tsx";
import { setTo } from "../../parts/handlers.ts";
import { Secret } from "../../parts/secret.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { State } from "../../parts/state.tsx";
import { Time } from "../../parts/time.tsx";
import { Frame } from "../../shell/frame.tsx";
import { showToast } from "../../shell/toasts.tsx";
import { AddPrebuild } from "./add.tsx";

export default function PrebuildsPage() {
  const { state, reload } = useResource("repository prebuilds", () => call("GET /repositories/prebuilds"));
  const isAdding = useSignal(false);
  const created = useSignal<CreatedRepositoryPrebuild | undefined>(undefined);
  const { data, error } = state.value;
  const addButton = (
    <Button look="primary" icon="plus" onPress={setTo(isAdding, true)}>
      Add repository
    </Button>
  );
  return (
    <Frame
      title="Repository prebuilds"
      crumbs={[{ label: "Templates", href: "/templates" }]}
      actions={data && data.length > 0 ? addButton : undefined}
    >
      <div class="page">
        {error && !data ? (
          <Failed title="Can't load the repository prebuilds" error={error} reload={reload} />
        ) : !data ? (
          <Skeleton lines={5} />
        ) : (
          <section class="stack" aria-labelledby="prebuilds">
            <p class="small mut" id="prebuilds">
              Slipway builds the image of each repository's default branch in advance: after a push, on a schedule, or
              when you select Build. Workspaces that open the repository start from this image.
            </p>
            {created.value && <Webhook key={created.value.prebuild.id} created={created.value} />}
            {data.length === 0 ? (
              <Empty
                icon="branch"
                title="No repository prebuilds yet"
                text="Add a repository that people open often: the first start with a new commit then takes seconds."
              >
                {addButton}
              </Empty>
            ) : (
              <ul class="panel list">
                {data.map((one) => (
                  <PrebuildRow key={one.id} prebuild={one} reload={reload} />
                ))}
              </ul>
            )}
          </section>
        )}
      </div>
      {isAdding.value && (
        <AddPrebuild
          onCreated={async (one) => {
            created.value = one;
            await reload();
          }}
          onClose={setTo(isAdding, false)}
        />
      )}
    </Frame>
  );
}

/** The URL and the secret to enter at the repository's host. */
const Webhook = ({ created }: { created: CreatedRepositoryPrebuild }) => {
  const title = useRef<HTMLHeadingElement>(null);
  useEffect(() => title.current?.focus(), []);
  return (
    <section class="panel" aria-labelledby="webhook">
      <header>
        <h2 id="webhook" tabIndex={-1} ref={title}>
          Webhook of {created.prebuild.name}
        </h2>
      </header>
      <div class="body stack">
        <p>
          Add a webhook for push events with the content type JSON in the repository's settings on its host. Copy the
          secret now: it isn't shown again.
        </p>
        <Secret label="Address" text={created.prebuild.webhook_url} />
        <Secret label="Secret" text={created.secret} />
      </div>
    </section>
  );
};

const STATES = { waiting: "stopped", building: "busy", ready: "done", failed: "failed" } as const;
const STATUS_LABELS = { waiting: "Waiting", building: "Building", ready: "Ready", failed: "Failed" } as const;

const PrebuildRow = ({ prebuild, reload }: { prebuild: RepositoryPrebuild; reload: () => Promise<void> }) => {
  const { id, name, url, status, error, commit, built_at, next_at, interval_hours, owner_name, log } = prebuild;
  const path = { prebuild: id };
  const startBuild = async (): Promise<void> => {
    await call("POST /repositories/prebuilds/:prebuild/build", { path });
    await reload();
    showToast(`Checking ${name} for new commits`);
  };
  const confirmRemove = (): void =>
    confirmAction({
      title: `Remove ${name}?`,
      text: "Images of this repository are no longer built in advance, and its webhook stops working.",
      confirmLabel: "Remove prebuild",
      cancelLabel: "Keep it",
      isDanger: true,
      act: async () => {
        await call("DELETE /repositories/prebuilds/:prebuild", { path });
        await reload();
        showToast(`${name} removed`);
      },
    });
  return (
    <li class="item">
      <State kind={STATES[status]}>
        <span class="med clip">{name}</span>
      </State>
      <span class="line">
        <Button small label={`Build ${name}`} disabled={status === "building"} onPress={startBuild}>
          Build
        </Button>
        <Button small label={`Remove ${name}`} onPress={confirmRemove}>
          Remove
        </Button>
      </span>
      <span class={status === "failed" ? "sub t-bad" : "sub"}>
        {STATUS_LABELS[status]}
        {commit && (
          <>
            , commit <span class="mono">{commit.slice(0, 8)}</span>
          </>
        )}
        {built_at && (
          <>
            , <Time at={built_at} />
          </>
        )}
        {status === "failed" && `: ${error}`}
      </span>
      <span class="sub clip mono">{url}</span>
      <span class="sub">
        Added by {owner_name}
        {interval_hours > 0 && next_at && (
          <>
            , next check <Time at={next_at} />
          </>
        )}
      </span>
      {log && (
        <Fold class="sub" summary="Log of the last build">
          <pre class="cmd mono" tabIndex={0}>
            {log}
          </pre>
        </Fold>
      )}
    </li>
  );
};
