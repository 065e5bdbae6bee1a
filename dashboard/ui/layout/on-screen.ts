/** Which parts of a page the user can see. */
import { useEffect, useRef, useState, type RefObject } from "react";

/** Whether an element is on the screen, for content that is loaded only then. */
export function useIsOnScreen<Element extends HTMLElement>(): [RefObject<Element | null>, boolean] {
  const element = useRef<Element>(null);
  const [isOnScreen, setOnScreen] = useState(false);
  useEffect(() => {
    const observer = new IntersectionObserver((entries) =>
      setOnScreen(entries.at(-1)!.isIntersecting),
    );
    observer.observe(element.current!);
    return () => observer.disconnect();
  }, []);
  return [element, isOnScreen];
}
