// A notice that someone else has saved a change to what the user is editing.
import { Button } from "./button.tsx";

/** `savedValue` describes the saved value; `onDiscard` loads it into the form. */
export const ConflictNotice = ({ savedValue, onDiscard }: { savedValue: string; onDiscard: () => void }) => (
  <div class="banner box attn" role="alert">
    <span>Someone else saved this in the meantime: {savedValue}. Save again to replace it.</span>
    <span class="push">
      <Button small onPress={onDiscard}>
        Discard my changes
      </Button>
    </span>
  </div>
);
