/** The fields that filter the audit log. `/` moves the focus to the text. */
import { useQuery } from "@tanstack/react-query";
import { useRef, type ComponentProps } from "react";
import { membersQuery } from "../../api/organization/organizations.ts";
import { useMe } from "../../app/session-state.ts";
import { useQueryParameters, useSetQueryParameters } from "../../app/query-parameters.ts";
import { useShortcuts } from "../../app/shortcuts.ts";
import { Button } from "../../ui/button.tsx";
import { useTypedText } from "../../ui/forms/typed-text.ts";
import { FILTER_NAMES, pickFilter, RANGES } from "./event-filter.ts";
import { AUDIT_ACTION_NAMES } from "../../../protocol/audit/audit-actions.ts";
import { formatAction } from "./sentences.ts";

/** While the user types, the log is not loaded for each letter. */
const TYPING_PAUSE_MS = 250;
const NO_FILTER = Object.fromEntries(FILTER_NAMES.map((name) => [name, ""]));
const CUSTOM_RANGE = "custom";

export function EventFilterBar() {
  const filter = pickFilter(useQueryParameters());
  const setParameters = useSetQueryParameters();
  const frame = useRef<HTMLDivElement>(null);
  const focusText = () => frame.current?.querySelector<HTMLElement>("input")?.focus();
  const members = useQuery(membersQuery(useMe().active_org.id));
  useShortcuts("Audit log", [{ keys: ["/"], title: "Search the events", act: focusText }]);
  const isCustom =
    filter.range === CUSTOM_RANGE || filter.from !== undefined || filter.to !== undefined;
  return (
    <div className="event-filters" role="search" aria-label="Events" ref={frame}>
      <FilterField name="text" label="Search" placeholder="Names, addresses, IDs" type="search" />
      <select
        aria-label="Action"
        value={filter.action ?? ""}
        onChange={(event) => setParameters({ action: event.currentTarget.value })}
      >
        <option value="">All actions</option>
        {AUDIT_ACTION_NAMES.map((action) => (
          <option key={action} value={action}>
            {formatAction(action)}
          </option>
        ))}
      </select>
      <FilterField name="actor" label="Person" placeholder="Email address" list="actors" />
      <datalist id="actors">
        {members.data?.map(({ email }) => (
          <option key={email} value={email} />
        ))}
      </datalist>
      <FilterField name="ip" label="IP address" placeholder="IP address" />
      <select
        aria-label="Time"
        value={isCustom ? CUSTOM_RANGE : (filter.range ?? "")}
        onChange={(event) => setParameters({ range: event.currentTarget.value, from: "", to: "" })}
      >
        <option value="">Any time</option>
        {RANGES.map(({ id, title }) => (
          <option key={id} value={id}>
            {title}
          </option>
        ))}
        <option value={CUSTOM_RANGE}>From … to …</option>
      </select>
      {isCustom && (
        <>
          <FilterField name="from" label="From" type="datetime-local" />
          <FilterField name="to" label="Until" type="datetime-local" />
        </>
      )}
      {Object.keys(filter).length > 0 && (
        <Button
          kind="quiet"
          onClick={() => {
            setParameters(NO_FILTER);
            focusText();
          }}
        >
          Clear
        </Button>
      )}
    </div>
  );
}

interface FilterFieldProps extends ComponentProps<"input"> {
  name: (typeof FILTER_NAMES)[number];
  label: string;
}

/** Writes its text to the URL when the user pauses, and shows at once what a link or a button has written there. */
function FilterField({ name, label, ...rest }: FilterFieldProps) {
  const value = pickFilter(useQueryParameters())[name] ?? "";
  const setParameters = useSetQueryParameters();
  const save = (text: string) => setParameters({ [name]: text });
  const [typed, setTyped] = useTypedText(value, save, TYPING_PAUSE_MS);
  return (
    <input
      {...rest}
      aria-label={label}
      title={label}
      autoComplete="off"
      spellCheck={false}
      value={typed}
      onChange={(event) => setTyped(event.currentTarget.value)}
    />
  );
}
