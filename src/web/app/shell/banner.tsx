// A banner that the connection to the server is lost, since when, and when the next retry is. The content of the page stays.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { line, tryNow } from "../data/live-socket.ts";
import { Button } from "../parts/button.tsx";
import { Icon } from "../parts/icon.tsx";

/** Short interruptions are not shown. */
const AFTER_MS = 1_500;

const clock = (at: number): string => new Date(at).toTimeString().slice(0, 8);

export const CutBanner = () => {
  const cut = line.value.state === "cut" ? line.value : undefined;
  const now = useSignal(Date.now());
  useEffect(() => {
    if (!cut) return;
    const timer = setInterval(() => {
      now.value = Date.now();
    }, 500);
    return () => clearInterval(timer);
  }, [cut === undefined]);
  if (!cut || now.value - cut.since < AFTER_MS) return null;
  const seconds = Math.max(0, Math.ceil((cut.next - now.value) / 1000));
  return (
    <div class="banner bad" role="status">
      <span class="t-bad">
        <Icon name="warn" />
      </span>
      <span>
        The server is not responding. Last updated {clock(cut.since)}.{" "}
        {seconds > 0 ? `Retrying in ${seconds} s.` : "Retrying now."}
      </span>
      <span class="push line">
        <Button small onPress={tryNow}>
          Retry now
        </Button>
      </span>
    </div>
  );
};
