// Detects concurrent edits of a setting: shows what someone else saved before replacing it; saving again confirms.
import { type ReadonlySignal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

type Plain = string | number | undefined;

type Setting<T extends Plain> = {
  /** The live value, as the page knows it. */
  readonly current: T;
  /** The value in the form. */
  readonly typed: T;
  /** Loads the current value from the server, which may be newer than the page's. */
  readonly read: () => Promise<T>;
  /** Writes a value into the form. */
  readonly fill: (value: T) => void;
};

type ConcurrentEdit<T extends Plain> = {
  /** The value that someone else has saved since the form was filled in, until the user decides. */
  readonly other: ReadonlySignal<{ readonly value: T } | undefined>;
  /** Returns false if someone else has saved a value that the user has not seen; it is in `other` then. */
  readonly mayReplace: () => Promise<boolean>;
  /** Fills the form with the other user's value. */
  readonly take: () => void;
};

/** An unedited form follows changes made elsewhere. */
export const useConflictCheck = <T extends Plain>({ current, typed, read, fill }: Setting<T>): ConcurrentEdit<T> => {
  /** The value that the form was filled with, or the newer value that the user has seen. */
  const lastSeen = useRef(current);
  const other = useSignal<{ readonly value: T } | undefined>(undefined);
  const onValue = (value: T, mayFill: boolean): void => {
    if (value === lastSeen.current) return;
    const isUntouched = typed === lastSeen.current;
    lastSeen.current = value;
    if (isUntouched && mayFill) fill(value);
    other.value = value === typed || (isUntouched && mayFill) ? undefined : { value };
  };
  useEffect(() => onValue(current, true), [current]);
  return {
    other,
    mayReplace: async () => {
      const seenBefore = lastSeen.current;
      onValue(await read(), false);
      if (other.value && lastSeen.current !== seenBefore) return false;
      lastSeen.current = typed;
      other.value = undefined;
      return true;
    },
    take: () => {
      if (other.value) fill(other.value.value);
      other.value = undefined;
    },
  };
};
