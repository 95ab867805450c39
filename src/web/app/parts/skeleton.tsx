// A loading placeholder: nothing for 300 ms, then bars.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { setTo } from "./handlers.ts";

const DELAY_MS = 300;

export const Skeleton = ({ lines = 3 }: { lines?: number }) => {
  const isShown = useSignal(false);
  useEffect(() => {
    const timer = setTimeout(setTo(isShown, true), DELAY_MS);
    return () => clearTimeout(timer);
  }, []);
  if (!isShown.value) return null;
  const widths = [180, 290, 240, 210];
  return (
    <svg class="skels" viewBox={`0 0 300 ${lines * 24 - 12}`} role="img" aria-label="Loading">
      {Array.from({ length: lines }, (_, index) => (
        <rect key={index} y={index * 24} width={widths[index % widths.length]} height="10" rx="4" />
      ))}
    </svg>
  );
};
