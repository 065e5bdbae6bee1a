/** The palette: a field that finds pages, actions, resources by their name, and recent requests. */
import { Autocomplete } from "@base-ui/react/autocomplete";
import { Dialog } from "@base-ui/react/dialog";
import { useState } from "react";
import { Icon } from "../../ui/icon.tsx";
import { VisitorText } from "../../ui/text/visitor-text.tsx";
import { usePaletteGroups, type PaletteEntry, type PaletteGroup } from "./entries.tsx";
import { searchPalette } from "./search.ts";
import "./palette.css";

interface PaletteProps {
  isOpen: boolean;
  onClose: () => void;
}

export function Palette({ isOpen, onClose }: PaletteProps) {
  return (
    <Dialog.Root open={isOpen} onOpenChange={(open) => !open && onClose()}>
      <Dialog.Portal>
        <Dialog.Backdrop className="backdrop" />
        <Dialog.Popup className="dialog palette" aria-label="Find anything">
          <Search onClose={onClose} />
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

function Search({ onClose }: { onClose: () => void }) {
  const [query, setQuery] = useState("");
  const found = searchPalette(usePaletteGroups(), query);
  return (
    <Autocomplete.Root
      open
      inline
      mode="none"
      items={found}
      itemToStringValue={({ title }: PaletteEntry) => title}
      value={query}
      onValueChange={(next, { reason }) => {
        if (reason !== "item-press") setQuery(next);
      }}
      autoHighlight="always"
      keepHighlight
    >
      <div className="palette-field">
        <Icon name="search" />
        <Autocomplete.Input
          autoFocus
          aria-label="Find anything"
          placeholder="Find pages, tunnels, tokens, requests, actions…"
          spellCheck={false}
        />
        <Dialog.Close className="quiet">
          <span className="hidden-text">Close</span>
          <kbd aria-hidden="true">Esc</kbd>
        </Dialog.Close>
      </div>
      <Autocomplete.Empty className="palette-empty">
        {found.length === 0 ? "No results." : null}
      </Autocomplete.Empty>
      <Autocomplete.List className="palette-list">
        {({ title, items }: PaletteGroup) => (
          <Autocomplete.Group key={title} items={items}>
            <Autocomplete.GroupLabel className="menu-label">{title}</Autocomplete.GroupLabel>
            <Autocomplete.Collection>
              {(entry: PaletteEntry) => (
                <Entry
                  key={entry.id}
                  entry={entry}
                  onChoose={() => {
                    onClose();
                    entry.run();
                  }}
                />
              )}
            </Autocomplete.Collection>
          </Autocomplete.Group>
        )}
      </Autocomplete.List>
    </Autocomplete.Root>
  );
}

function Entry({ entry, onChoose }: { entry: PaletteEntry; onChoose: () => void }) {
  const { title, detail = "", shortcut, icon } = entry;
  return (
    <Autocomplete.Item value={entry} className="menu-item palette-item" onClick={onChoose}>
      <Icon name={icon} />
      <VisitorText text={title} className="palette-title" />
      {detail !== "" && <bdi className="hint">{detail}</bdi>}
      {shortcut !== undefined && <kbd>{shortcut}</kbd>}
    </Autocomplete.Item>
  );
}
