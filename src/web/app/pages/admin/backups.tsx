// Backups: lists them, creates and verifies them, with live progress.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { formatSize } from "#base/format-size.ts";
import type { Backup, Backups as BackupList } from "#schema/administration/backup.ts";
import { call } from "../../data/api.ts";
import { LiveSocket } from "../../data/live-socket.ts";
import { Button } from "../../parts/button.tsx";
import { Empty } from "../../parts/empty.tsx";
import { formatDuration } from "../../parts/format-time.ts";
import { Skeleton } from "../../parts/skeleton.tsx";
import { State } from "../../parts/state.tsx";
import { Time } from "../../parts/time.tsx";
import { HomeBackups } from "./home-backups.tsx";

export const Backups = () => {
  const list = useSignal<BackupList | undefined>(undefined);
  useEffect(() => {
    const socket = new LiveSocket({
      address: () => "/api/v2/deployment/backups/watch",
      pings: true,
      onMessage: (text) => {
        const message = JSON.parse(text) as BackupList | { type: "ping" };
        if ("backups" in message) list.value = message;
      },
    });
    return () => socket.end();
  }, []);
  const data = list.value;
  if (!data) return <Skeleton lines={6} />;
  const { work } = data;
  const startBackup = async (): Promise<void> => {
    list.value = await call("POST /deployment/backups");
  };
  const startButton = (
    <Button look="primary" icon="save" disabled={work !== null} onPress={startBackup}>
      Back up now
    </Button>
  );
  return (
    <section class="stack" aria-labelledby="backups">
      <div class="head">
        <h2 id="backups">Backups</h2>
        {data.backups.length > 0 && <span class="push">{startButton}</span>}
      </div>
      <p class="small mut">
        {data.interval_ms === null ? (
          <>
            Automatic backups are off. To turn them on, set <code>backup_interval</code>.
          </>
        ) : (
          `A backup runs every ${formatDuration(data.interval_ms)}; the newest ${data.keep} are kept.`
        )}{" "}
        Backups are stored in <span class="mono">{data.folder}</span> on the server, together with the encryption key.
      </p>
      {work && (
        <div class="panel body stack" role="status">
          <State kind="busy">
            {work.kind === "make" ? "Backup in progress" : `${work.name} is being verified`}, {formatSize(work.bytes)}
            {work.total_bytes > 0 && ` of about ${formatSize(work.total_bytes)}`}
          </State>
          <progress
            max={Math.max(1, work.total_bytes)}
            value={Math.min(work.bytes, work.total_bytes)}
            aria-label="Progress"
          />
        </div>
      )}
      {data.failure && (
        <p class="t-bad" role="alert">
          {data.failure}
        </p>
      )}
      {data.backups.length === 0 ? (
        <Empty
          icon="save"
          title="No backups yet"
          text="A backup contains the database, uploaded files and the encryption key. The server keeps running while it is made."
        >
          {startButton}
        </Empty>
      ) : (
        <ul class="panel list">
          {data.backups.map((one) => (
            <BackupRow key={one.name} backup={one} isBusy={work !== null} />
          ))}
        </ul>
      )}
      <HomeBackups />
    </section>
  );
};

const BackupRow = ({ backup, isBusy }: { backup: Backup; isBusy: boolean }) => {
  const { name, created_at, bytes, files, version, problem, checked_at } = backup;
  return (
    <li class="item">
      <State kind={problem ? "failed" : checked_at ? "running" : "done"}>
        <span class="med">
          <Time at={created_at} />
        </span>
      </State>
      <span class="line">
        <span class="num small mut">{formatSize(bytes)}</span>
        <Button
          small
          label={`Verify ${name}`}
          disabled={isBusy}
          onPress={() => call("POST /deployment/backups/:backup/check", { path: { backup: name } })}
        >
          Verify
        </Button>
      </span>
      <span class={problem ? "sub t-bad" : "sub"}>
        {problem || (
          <>
            <span class="mono">{name}</span>, {files} files{version && `, Slipway ${version}`}
            {checked_at && (
              <>
                , verified <Time at={checked_at} />
              </>
            )}
          </>
        )}
      </span>
    </li>
  );
};
