/** A running search in bodies, and what it has found. */
import { useEffect, useRef, useState } from "react";
import type {
  CaptureDetail,
  CaptureSummary,
} from "../../../../protocol/schemas/inspector/captures.ts";
import { load } from "../../../api/session.ts";
import { notifyOfError } from "../../../ui/feedback/notifications.tsx";
import { searchBodies } from "./body-search.ts";

/** The list changes at most this often while a search runs. */
const PROGRESS_INTERVAL_MS = 200;

export interface SearchProgress {
  isRunning: boolean;
  searched: number;
  total: number;
  foundIds: ReadonlySet<string>;
}

export interface BodySearch {
  /** undefined before a search. */
  progress: SearchProgress | undefined;
  /** undefined without a search: the list shows all requests. */
  foundIds: ReadonlySet<string> | undefined;
  start: (text: string, captures: readonly CaptureSummary[]) => void;
  /** Stops the search. The requests that it has found stay listed. */
  cancel: () => void;
  clear: () => void;
}

export function useBodySearch(): BodySearch {
  const [progress, setProgress] = useState<SearchProgress>();
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(), []);

  async function run(text: string, captures: readonly CaptureSummary[]): Promise<void> {
    running.current?.abort();
    const controller = new AbortController();
    running.current = controller;
    const { signal } = controller;
    const foundIds = new Set<string>();
    let searched = 0;
    const report = (isRunning: boolean) =>
      setProgress({ isRunning, searched, total: captures.length, foundIds: new Set(foundIds) });
    report(true);
    const timer = setInterval(() => report(true), PROGRESS_INTERVAL_MS);
    try {
      await searchBodies(captures, text, {
        load: (id) => load<CaptureDetail>(`/inspector/${id}`, signal),
        signal,
        onSearched({ id }, isFound) {
          searched += 1;
          if (isFound) foundIds.add(id);
        },
      });
    } catch (error) {
      if (!signal.aborted) notifyOfError(error);
      controller.abort();
    }
    clearInterval(timer);
    if (running.current === controller) report(false);
  }
  return {
    progress,
    foundIds: progress?.foundIds,
    start: (text, captures) => void run(text, captures),
    cancel: () => running.current?.abort(),
    clear() {
      running.current?.abort();
      running.current = undefined;
      setProgress(undefined);
    },
  };
}
