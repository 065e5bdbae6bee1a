/**
 * Back, forward and a reload show a page where it was scrolled to. The router restores the position as soon as the page is
 * rendered, which is often before its data has arrived and made it as high as before.
 */
import { useElementScrollRestoration, useLocation } from "@tanstack/react-router";
import { useEffect } from "react";

/** Later, the user has begun to read. */
const WAIT_MAX_MS = 10_000;
const USER_EVENTS = ["wheel", "touchmove", "pointerdown", "keydown"] as const;

export function useScrollPosition(): void {
  const entry = useLocation({ select: ({ state }) => state.__TSR_key });
  const top = useElementScrollRestoration({ getElement: () => window })?.scrollY ?? 0;
  useEffect(() => (top > 0 ? scrollWhenHighEnough(top) : undefined), [entry]);
}

/** @returns a function that stops waiting. */
function scrollWhenHighEnough(top: number): () => void {
  const page = document.documentElement;
  const observer = new ResizeObserver(() => {
    if (page.scrollHeight - page.clientHeight < top) return;
    stop();
    scrollTo({ top });
  });
  const timer = setTimeout(stop, WAIT_MAX_MS);
  function stop(): void {
    observer.disconnect();
    clearTimeout(timer);
    for (const type of USER_EVENTS) removeEventListener(type, stop);
  }
  for (const type of USER_EVENTS) addEventListener(type, stop);
  observer.observe(document.body);
  return stop;
}
