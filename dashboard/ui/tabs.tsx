/** Tabs: several views of the same thing. One view is shown at a time. */
import { Tabs as BaseTabs } from "@base-ui/react/tabs";
import { useEffect, useRef, type ReactNode } from "react";

export interface Tab {
  id: string;
  title: ReactNode;
  content: ReactNode;
}

interface TabsProps {
  /** Names the tabs for screen readers. */
  label: string;
  tabs: readonly Tab[];
  /** By default the first one, also for an id that no tab has: it can come from the URL. */
  selected?: string | undefined;
  onSelect?: (id: string) => void;
}

/** With `onSelect` the parent keeps which tab is selected, such as in the URL. */
export function Tabs({ label, tabs, selected, onSelect }: TabsProps) {
  const shown = (tabs.find(({ id }) => id === selected) ?? tabs[0])?.id;
  const list = useRef<HTMLDivElement>(null);
  // On a narrow screen the list scrolls, and the selected tab could be out of sight.
  useEffect(() => {
    const tab = list.current?.querySelector<HTMLElement>("[aria-selected=true]");
    if (tab) list.current?.scrollTo({ left: tab.offsetLeft - tab.offsetWidth / 2 });
  }, [shown]);
  const state = onSelect
    ? { value: shown, onValueChange: (id: unknown) => onSelect(String(id)) }
    : { defaultValue: shown };
  return (
    <BaseTabs.Root className="tabs" {...state}>
      <BaseTabs.List aria-label={label} className="tab-list" ref={list}>
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
