/** `?` lists the keyboard shortcuts of everything that is shown. */
import { useState } from "react";
import { OpenDialog } from "../../ui/forms/dialog.tsx";
import { Button } from "../../ui/button.tsx";
import { formatKey, useShortcutGroups, useShortcuts, type Shortcut } from "../shortcuts.ts";

export function ShortcutsDialog() {
  const [isOpen, setOpen] = useState(false);
  const groups = useShortcutGroups();
  useShortcuts("Everywhere", [
    { keys: ["?"], title: "List the keyboard shortcuts", act: () => setOpen(true) },
  ]);
  return (
    <OpenDialog
      isOpen={isOpen}
      onClose={() => setOpen(false)}
      title="Keyboard shortcuts"
      // With the focus on the button below, a long list would be scrolled to its end.
      initialFocus="title"
    >
      {[...new Set(groups.map(({ title }) => title))].map((title) => (
        <ShortcutList
          key={title}
          title={title}
          shortcuts={groups
            .filter((each) => each.title === title)
            .flatMap((each) => each.shortcuts)}
        />
      ))}
      <div className="actions">
        <Button onClick={() => setOpen(false)}>Close</Button>
      </div>
    </OpenDialog>
  );
}

function ShortcutList({ title, shortcuts }: { title: string; shortcuts: readonly Shortcut[] }) {
  if (shortcuts.length === 0) return null;
  return (
    <section className="shortcuts">
      <h3>{title}</h3>
      <dl>
        {shortcuts.map(({ keys, title: action }) => (
          <div key={action}>
            <dt>{action}</dt>
            <dd>
              {keys.map((key) => (
                <kbd key={key}>{formatKey(key)}</kbd>
              ))}
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
