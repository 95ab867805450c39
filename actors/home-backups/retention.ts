// Decides which backups of a workspace are kept: the newest of each of the last days and weeks with a backup. Pure.

const DAY_MS = 86_400_000;
/** 1 January 1970 was a Thursday, three days after a Monday. */
const MONDAY_OFFSET_MS = 3 * DAY_MS;

type DatedBackup = { readonly id: string; readonly created_at: number; readonly isDamaged: boolean };
type KeepCounts = { readonly daily: number; readonly weekly: number };

/** Returns the IDs of the backups to delete. Days and weeks are in UTC; the newest undamaged backup is always kept. */
export const chooseOutdated = (backups: readonly DatedBackup[], { daily, weekly }: KeepCounts): string[] => {
  const sorted = backups.toSorted((a, b) => b.created_at - a.created_at);
  const intact = sorted.filter(({ isDamaged }) => !isDamaged);
  const kept = new Set<string>();
  const keepNewestPerPeriod = (count: number, toPeriod: (at: number) => number): void => {
    const periods = new Set<number>();
    for (const { id, created_at } of intact) {
      const period = toPeriod(created_at);
      if (periods.has(period)) continue;
      if (periods.size === count) return;
      periods.add(period);
      kept.add(id);
    }
  };
  keepNewestPerPeriod(Math.max(1, daily), (at) => Math.floor(at / DAY_MS));
  keepNewestPerPeriod(weekly, (at) => Math.floor((at + MONDAY_OFFSET_MS) / (7 * DAY_MS)));
  // A damaged backup may contain data that no other has, until there is a newer undamaged one.
  const newest = intact[0]?.created_at ?? 0;
  return sorted
    .filter(({ id, created_at, isDamaged }) => (isDamaged ? created_at < newest : !kept.has(id)))
    .map(({ id }) => id);
};
