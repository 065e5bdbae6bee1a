/** The marks of requests: of two marked ones, the diff can be shown. */
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { Button } from "../../../ui/button.tsx";

const MARKED_MAX = 2;

interface Marks {
  /** The oldest mark first. */
  ids: readonly string[];
  /** Marks a request, or removes its mark. A third mark removes the oldest one. */
  toggle: (id: string) => void;
  clear: () => void;
  /** Does nothing unless two requests are marked. */
  showDiff: () => void;
}

export function useMarks(): Marks {
  const navigate = useNavigate();
  const [ids, setIds] = useState<readonly string[]>([]);

  function toggle(id: string): void {
    const others = ids.filter((each) => each !== id);
    setIds(others.length < ids.length ? others : [...others, id].slice(-MARKED_MAX));
  }

  function showDiff(): void {
    // The ids are in the order of time: the changes go from the older request to the newer one.
    const [id, compare] = ids.toSorted();
    if (id === undefined || compare === undefined) return;
    void navigate({ to: "/requests/$id", params: { id }, search: { compare } });
  }

  return { ids, toggle, clear: () => setIds([]), showDiff };
}

/** Nothing while no request is marked. */
export function MarkedBar({ marks: { ids, clear, showDiff } }: { marks: Marks }) {
  if (ids.length === 0) return null;
  return (
    <p className="marked-bar" role="status">
      {ids.length === 1
        ? "One request is marked. Mark another with x."
        : "Two requests are marked."}{" "}
      <Button kind="link" disabled={ids.length < MARKED_MAX} onClick={showDiff}>
        Show the diff
      </Button>{" "}
      <Button kind="link" onClick={clear}>
        Remove the marks
      </Button>
    </p>
  );
}
