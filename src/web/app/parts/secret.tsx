// A secret to copy: a key or codes, wrapped so that everything is visible, with a copy button.
import { copyText } from "./as-command.tsx";
import { Button } from "./button.tsx";

export const Secret = ({ label, text }: { label: string; text: string }) => (
  <>
    <output class="cmd mono" aria-label={label}>
      {text}
    </output>
    <div>
      <Button icon="copy" onPress={() => copyText(text)}>
        Copy
      </Button>
    </div>
  </>
);
