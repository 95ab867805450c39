// A notice that someone else has saved a change to what the user is editing.
import { Button } from "./button.tsx";

/** `words` describes the saved value; `take` loads that value into the form. */
export const ConflictNotice = ({ words, take }: { words: string; take: () => void }) => (
  <div class="banner box attn" role="alert">
    <span>Someone else saved this in the meantime: {words}. Save again to replace it.</span>
    <span class="push">
      <Button small onPress={take}>
        Discard my changes
      </Button>
    </span>
  </div>
);
