// The import log of a template version, live.
import { LogView } from "../../parts/log-view.tsx";

export const ImportLog = ({ feed }: Pick<Parameters<typeof LogView>[0], "feed">) => (
  <LogView title="Import log" feed={feed} sources={["import"]} file="import.log" empty="Waiting for output…" />
);
