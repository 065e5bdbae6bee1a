/** Text of several lines in a fixed-width font: configurations, scripts, bodies. */
import { CopyButton } from "../copy.tsx";

interface CodeBlockProps {
  /** Names the text for screen readers. */
  label: string;
  /** Shown as it is, in any language: it never becomes HTML. */
  children: string;
}

/** A long text scrolls within the block. */
export function CodeBlock({ label, children }: CodeBlockProps) {
  return (
    <div className="code-block">
      <pre tabIndex={0} role="group" aria-label={label}>
        {children}
      </pre>
      <CopyButton text={children} label={`Copy: ${label}`} />
    </div>
  );
}
