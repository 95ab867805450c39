// Detects concurrent edits of a setting: shows what someone else saved before replacing it; saving again confirms.
import { type ReadonlySignal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

type Plain = string | number | undefined;

type Setting<T extends Plain> = {
  /** As the page knows it, live. */
  readonly now: T;
  /** As the form has it. */
  readonly typed: T;
  /** What the server has in this moment: the page may not have heard yet. */
  readonly read: () => Promise<T>;
  /** Writes a value into the form. */
  readonly fill: (value: T) => void;
};

type Meanwhile<T extends Plain> = {
  /** What someone else has saved since the form was filled in, until one has decided. */
  readonly other: ReadonlySignal<{ readonly value: T } | undefined>;
  /** False when there is something to tell first: it is in `other` then. */
  readonly mayReplace: () => Promise<boolean>;
  /** The form continues with what someone else has saved. */
  readonly take: () => void;
};

/** An unedited form follows changes made elsewhere. */
export const useMeanwhile = <T extends Plain>({ now, typed, read, fill }: Setting<T>): Meanwhile<T> => {
  /** The value that the form was filled with, or the newer one that the user was shown. */
  const known = useRef(now);
  const other = useSignal<{ readonly value: T } | undefined>(undefined);
  const meet = (value: T, mayFill: boolean): void => {
    if (value === known.current) return;
    const isUntouched = typed === known.current;
    known.current = value;
    if (isUntouched && mayFill) fill(value);
    other.value = value === typed || (isUntouched && mayFill) ? undefined : { value };
  };
  useEffect(() => meet(now, true), [now]);
  return {
    other,
    mayReplace: async () => {
      const before = known.current;
      meet(await read(), false);
      if (other.value && known.current !== before) return false;
      known.current = typed;
      other.value = undefined;
      return true;
    },
    take: () => {
      if (other.value) fill(other.value.value);
      other.value = undefined;
    },
  };
};
