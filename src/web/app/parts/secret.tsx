// Something to take away: a key or codes, wrapped so that all of it is seen, with a button that copies it.
import { copy } from "./as-command.tsx";
import { Button } from "./button.tsx";

export const Secret = ({ label, text }: { label: string; text: string }) => (
  <>
    <output class="cmd mono" aria-label={label}>
      {text}
    </output>
    <div>
      <Button icon="copy" onPress={() => copy(text)}>
        Copy
      </Button>
    </div>
  </>
);
