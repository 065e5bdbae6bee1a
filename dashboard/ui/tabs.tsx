/** Tabs: several views of the same thing, of which one is shown. */
import { Tabs as BaseTabs } from "@base-ui/react/tabs";
import type { ReactNode } from "react";

export interface Tab {
  id: string;
  title: ReactNode;
  content: ReactNode;
}

export interface TabsProps {
  /** Names the tabs for screen readers. */
  label: string;
  tabs: readonly Tab[];
  /** By default the first one. */
  selected?: string | undefined;
  onSelect?: (id: string) => void;
}

/** With `onSelect` the parent keeps which tab is selected, such as in the URL. */
export function Tabs({ label, tabs, selected, onSelect }: TabsProps) {
  const first = tabs[0]?.id;
  const state = onSelect
    ? { value: selected ?? first, onValueChange: (id: unknown) => onSelect(String(id)) }
    : { defaultValue: selected ?? first };
  return (
    <BaseTabs.Root className="tabs" {...state}>
      <BaseTabs.List aria-label={label} className="tab-list">
        {tabs.map(({ id, title }) => (
          <BaseTabs.Tab key={id} value={id}>
            {title}
          </BaseTabs.Tab>
        ))}
      </BaseTabs.List>
      {tabs.map(({ id, content }) => (
        <BaseTabs.Panel key={id} value={id}>
          {content}
        </BaseTabs.Panel>
      ))}
    </BaseTabs.Root>
  );
}
