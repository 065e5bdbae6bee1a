/** Opens the palette, as its shortcut does. Its code is loaded when it is opened for the first time. */
import { lazy, Suspense, useState } from "react";
import { Button } from "../../ui/button.tsx";
import { ErrorBoundary } from "../../ui/feedback/error-boundary.tsx";
import { Icon } from "../../ui/icon.tsx";
import { formatKey, useShortcuts } from "../shortcuts.ts";

const Palette = lazy(async () => {
  const { Palette: component } = await import("../palette/palette.tsx");
  return { default: component };
});

const KEY = "Mod+k";

export function PaletteButton() {
  const [isOpen, setOpen] = useState(false);
  const [wasOpened, setOpened] = useState(false);
  const open = () => {
    setOpened(true);
    setOpen(true);
  };
  useShortcuts("Everywhere", [
    { keys: [KEY], title: "Find anything", act: () => (isOpen ? setOpen(false) : open()) },
  ]);
  return (
    <>
      <Button className="find" aria-keyshortcuts="Meta+K Control+K" onClick={open}>
        <Icon name="search" />
        <span>Find anything</span>
        <kbd aria-hidden="true">{formatKey(KEY)}</kbd>
      </Button>
      {wasOpened && (
        <ErrorBoundary>
          <Suspense>
            <Palette isOpen={isOpen} onClose={() => setOpen(false)} />
          </Suspense>
        </ErrorBoundary>
      )}
    </>
  );
}
