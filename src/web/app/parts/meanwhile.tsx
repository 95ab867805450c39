// Says what someone else has saved while one was changing the same.
import { Button } from "./button.tsx";

/** `words` say how it is now; `take` continues with that. */
export const Meanwhile = ({ words, take }: { words: string; take: () => void }) => (
  <div class="banner box attn" role="alert">
    <span>Someone else saved this in the meantime: {words}. Save again to replace it.</span>
    <span class="push">
      <Button small onPress={take}>
        Discard my changes
      </Button>
    </span>
  </div>
);
