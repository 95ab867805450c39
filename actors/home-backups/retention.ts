// Which backups of a workspace are kept: the newest of each of the last days and weeks that have one. Pure.

const DAY_MS = 86_400_000;
/** 1970 began on a Thursday. */
const MONDAY_OFFSET_MS = 3 * DAY_MS;

type Dated = { readonly id: string; readonly created_at: number; readonly isDamaged: boolean };
type Keep = { readonly daily: number; readonly weekly: number };

/** The ids of the backups to remove. Days and weeks are those of UTC; the newest that is not damaged always stays. */
export const chooseOutdated = (backups: readonly Dated[], { daily, weekly }: Keep): string[] => {
  const sorted = backups.toSorted((a, b) => b.created_at - a.created_at);
  const intact = sorted.filter(({ isDamaged }) => !isDamaged);
  const kept = new Set<string>();
  const keepNewestOf = (count: number, toPeriod: (at: number) => number): void => {
    const periods = new Set<number>();
    for (const { id, created_at } of intact) {
      const period = toPeriod(created_at);
      if (periods.has(period)) continue;
      if (periods.size === count) return;
      periods.add(period);
      kept.add(id);
    }
  };
  keepNewestOf(Math.max(1, daily), (at) => Math.floor(at / DAY_MS));
  keepNewestOf(weekly, (at) => Math.floor((at + MONDAY_OFFSET_MS) / (7 * DAY_MS)));
  // A damaged one may hold what no other has, until there is a newer one that is whole.
  const newest = intact[0]?.created_at ?? 0;
  return sorted
    .filter(({ id, created_at, isDamaged }) => (isDamaged ? created_at < newest : !kept.has(id)))
    .map(({ id }) => id);
};
