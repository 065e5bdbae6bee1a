/** The search in bodies: a scope of its own, because each request has to be loaded for it. */
import { useEffect, useRef, type FormEvent } from "react";
import type { RequestView } from "../../../inspector/request-view.ts";
import { Button } from "../../../ui/button.tsx";
import { formatCount } from "../../../ui/numbers.ts";
import { BODY_SEARCH_MAX_REQUESTS } from "./body-search.ts";
import type { BodySearch } from "./use-body-search.ts";

interface BodySearchBarProps {
  /** The text of the search in the URL. */
  text: string;
  search: BodySearch;
  view: RequestView;
  /** Whether there is something to search. */
  isReady: boolean;
  onSearch: (text: string) => void;
  onClose: () => void;
}

export function BodySearchBar({ text, search, view, isReady, ...rest }: BodySearchBarProps) {
  const input = useRef<HTMLInputElement>(null);
  const { progress } = search;
  useEffect(() => input.current?.focus(), []);
  const isStarting = isReady && text !== "" && progress === undefined;
  useEffect(() => {
    if (isStarting) search.start(text, view.getFiltered(BODY_SEARCH_MAX_REQUESTS));
  }, [isStarting, search, text, view]);

  function handleSubmit(event: FormEvent): void {
    event.preventDefault();
    const wanted = input.current!.value;
    if (wanted === "") return;
    rest.onSearch(wanted);
    search.start(wanted, view.getFiltered(BODY_SEARCH_MAX_REQUESTS));
  }

  function cancel(): void {
    search.cancel();
    // The button is about to disappear.
    input.current?.focus();
  }
  return (
    <form className="body-search" role="search" aria-label="Bodies" onSubmit={handleSubmit}>
      <input
        ref={input}
        type="search"
        aria-label="Search in bodies"
        placeholder="A text in bodies, messages and events"
        defaultValue={text}
        spellCheck={false}
        onKeyDown={({ key }) => key === "Escape" && rest.onClose()}
      />
      {/* Two elements: if this one became the submit button during the click, the click would start the search again. */}
      {progress?.isRunning ? (
        <Button key="cancel" onClick={cancel}>
          Cancel
        </Button>
      ) : (
        <Button key="search" type="submit">
          Search
        </Button>
      )}
      <Button kind="quiet" onClick={rest.onClose}>
        Close
      </Button>
      {progress && (
        <>
          <progress
            aria-label="Searched requests"
            max={Math.max(1, progress.total)}
            value={progress.searched}
          />
          <span className="hint" aria-live="polite">
            {formatCount(progress.foundIds.size)} found in {formatCount(progress.searched)} of the
            newest {formatCount(progress.total)} requests
            {!progress.isRunning && progress.searched < progress.total && ", canceled"}
          </span>
        </>
      )}
    </form>
  );
}
