/** The body of a delivery: as it was received, and indented when it is JSON. */
import { useMemo } from "react";
import type { Delivery } from "../../../../protocol/schemas/webhooks.ts";
import { fromBase64, toHex } from "../../../../shared/bytes.ts";
import { useQueryParameters, useSetQueryParameters } from "../../../app/search.ts";
import { Button } from "../../../ui/button.tsx";
import { formatBytes } from "../../../ui/numbers.ts";
import { Tabs } from "../../../ui/tabs.tsx";
import { CodeBlock } from "../../../ui/text/code-block.tsx";
import { downloadFile } from "../../../ui/text/download.ts";
import { formatJson } from "./format-json.ts";

/** Browsers lay out longer texts slowly. The rest is in the file. */
const TEXT_SHOWN_MAX_CHARS = 100_000;
const HEX_SHOWN_MAX_BYTES = 1_024;

export function DeliveryBody({ delivery }: { delivery: Delivery }) {
  const { view } = useQueryParameters();
  const setParameters = useSetQueryParameters();
  const { bytes, text, json } = useMemo(() => decodeBody(delivery.body), [delivery.body]);
  const save = () => downloadFile(json === null ? "delivery.bin" : "delivery.json", bytes);
  if (bytes.length === 0) return <p>The body is empty.</p>;
  const shown = [
    ...(json === null ? [] : [{ id: "json", title: "JSON", content: <Text>{json}</Text> }]),
    text === null
      ? { id: "bytes", title: "Bytes", content: <Text>{formatHex(bytes)}</Text> }
      : { id: "text", title: "As received", content: <Text>{text}</Text> },
  ];
  const selected = shown.some(({ id }) => id === view) ? view : undefined;
  return (
    <>
      <Tabs
        label="Views of the body"
        tabs={shown}
        selected={selected}
        onSelect={(next) => setParameters({ view: next })}
      />
      <div className="actions">
        <Button onClick={save}>Download the body ({formatBytes(bytes.length)})</Button>
      </div>
    </>
  );
}

function Text({ children }: { children: string }) {
  const isCut = children.length > TEXT_SHOWN_MAX_CHARS;
  return (
    <>
      <CodeBlock label="Body">
        {isCut ? children.slice(0, TEXT_SHOWN_MAX_CHARS) : children}
      </CodeBlock>
      {isCut && (
        <p className="hint">Only the beginning is shown. Download the body for the rest.</p>
      )}
    </>
  );
}

function decodeBody(base64: string) {
  const bytes = fromBase64(base64) ?? new Uint8Array();
  const text = decodeText(bytes);
  return { bytes, text, json: text === null ? null : formatJson(text) };
}

/** @returns null when the bytes are not text. */
function decodeText(bytes: Uint8Array): string | null {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}

function formatHex(bytes: Uint8Array): string {
  const hex = toHex(bytes.subarray(0, HEX_SHOWN_MAX_BYTES)).replaceAll(/../g, "$& ");
  return bytes.length > HEX_SHOWN_MAX_BYTES ? `${hex}…` : hex;
}
