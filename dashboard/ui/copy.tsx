/** Texts to copy. */
import { useState } from "react";
import { Button, type ButtonKind } from "./button.tsx";
import { notifyOfError } from "./feedback/notifications.tsx";
import { copyText } from "./text/clipboard.ts";

const COPIED_SHOWN_MS = 2_000;

interface CopyButtonProps {
  /** A function is called when the user copies: for a text that takes time to make. */
  text: string | (() => string);
  /** Names the text for screen readers, as in `Copy the URL`. */
  label?: string;
  kind?: ButtonKind;
  /** The text of the button: with others beside it, `Copy` does not say what is copied. */
  children?: string;
}

/** Browsers offer the clipboard only to pages that were loaded over HTTPS or from this machine. */
export function CopyButton({
  text,
  label = "Copy",
  kind = "plain",
  children = "Copy",
}: CopyButtonProps) {
  const [isCopied, setCopied] = useState(false);
  if (!window.isSecureContext) return null;
  async function copy(): Promise<void> {
    await copyText(typeof text === "string" ? text : text());
    setCopied(true);
    setTimeout(() => setCopied(false), COPIED_SHOWN_MS);
  }
  return (
    <Button
      kind={kind}
      className="copy"
      aria-label={isCopied ? "Copied" : label}
      onClick={() => void copy().catch(notifyOfError)}
    >
      {isCopied ? "Copied" : children}
    </Button>
  );
}

interface CommandProps {
  children: string;
  /** Names the button for screen readers. */
  label?: string;
}

/** A browser would end a line after the hyphens of an option. */
const OPTION = /(?<=\s)(--?[a-z][a-z-]*)/i;

/** A command to paste into a terminal. */
export function Command({ children, label = `Copy the command ${children}` }: CommandProps) {
  return (
    <div className="command">
      <code>
        {children
          .split(OPTION)
          .map((part, index) => (index % 2 === 0 ? part : <span key={index}>{part}</span>))}
      </code>
      <CopyButton text={children} label={label} kind="quiet" />
    </div>
  );
}
