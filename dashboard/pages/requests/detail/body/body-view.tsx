/** The bytes of a body in several views. Nothing in it is rendered as a page or run: HTML and SVG are text. */
import { useMemo, type ReactNode } from "react";
import { CopyButton } from "../../../../ui/copy.tsx";
import { Button } from "../../../../ui/button.tsx";
import { formatBytes } from "../../../../ui/numbers.ts";
import { downloadFile } from "../../../../ui/text/download.ts";
import { Tabs, type Tab } from "../../../../ui/tabs.tsx";
import {
  getContentKind,
  parseMediaType,
  type ContentKind,
  type MediaType,
} from "../../decode/media-type.ts";
import { parseJsonTree } from "../../decode/json/json.ts";
import { decodeText, looksLikeText } from "../../decode/text.ts";
import { FormBody } from "./form-body.tsx";
import { HexView } from "./hex-view.tsx";
import { ImageView } from "./image-view.tsx";
import { JsonBody } from "./json-body.tsx";
import { MultipartView } from "./multipart-view.tsx";
import type { NestedBody } from "./nested-body.ts";
import { TextView } from "./text-view.tsx";

/** Longer texts have no copy button: the clipboard and other programs become slow. */
const COPY_MAX_BYTES = 1024 * 1024;
const TYPE_SHOWN_CHARS = 100;
/** Enough to skip white space before the first bracket of a JSON document. */
const JSON_START_BYTES = 64;

interface BodyViewProps extends NestedBody {
  /** Whether the bytes are still compressed. */
  isEncoded: boolean;
  /** The selected tab. */
  view?: string | undefined;
  onSelectView?: (view: string) => void;
}

export function BodyView(props: BodyViewProps) {
  const { name, fileName, bytes, contentType, isEncoded, isCut } = props;
  const type = useMemo(() => parseMediaType(contentType), [contentType]);
  const kind = useMemo(
    () => (isEncoded ? "binary" : findKind(bytes, type)),
    [bytes, type, isEncoded],
  );
  const tabs = buildTabs(kind, type, { name, bytes, isCut });
  const view = tabs.some(({ id }) => id === props.view) ? props.view : undefined;
  const canCopy = kind !== "binary" && kind !== "image" && bytes.length <= COPY_MAX_BYTES;
  return (
    <div className="body-view">
      <div className="body-actions">
        <span className="hint">
          {type.essence === "" ? (
            "no content type"
          ) : (
            <bdi>{type.essence.slice(0, TYPE_SHOWN_CHARS)}</bdi>
          )}{" "}
          · {formatBytes(bytes.length)}
        </span>
        {canCopy && (
          <CopyButton
            text={() => decodeText(bytes, type.parameters.get("charset")).text}
            label={`Copy the ${name.toLowerCase()}`}
            kind="quiet"
          />
        )}
        <Button
          kind="quiet"
          aria-label={`Download the ${name.toLowerCase()}`}
          onClick={() => downloadFile(fileName + getExtension(kind, type), bytes)}
        >
          Download
        </Button>
      </div>
      <Tabs
        label={`Views of the ${name.toLowerCase()}`}
        tabs={tabs}
        selected={view}
        {...(props.onSelectView && { onSelect: props.onSelectView })}
      />
    </div>
  );
}

function renderBody(body: NestedBody): ReactNode {
  return <BodyView {...body} isEncoded={false} />;
}

function findKind(bytes: Uint8Array, type: MediaType): ContentKind {
  const kind = getContentKind(type);
  const isText = looksLikeText(bytes) || type.parameters.has("charset");
  if (kind === "image" || kind === "multipart") return kind;
  if (!isText) return "binary";
  if (kind !== null && kind !== "text") return kind;
  // Many servers send JSON as text, or without a type.
  const start = new TextDecoder().decode(bytes.subarray(0, JSON_START_BYTES)).trimStart();
  const isJson = /^[[{]/.test(start) && "value" in parseJsonTree(decodeText(bytes, undefined).text);
  return isJson && type.essence !== "text/html" ? "json" : "text";
}

function buildTabs(
  kind: ContentKind,
  type: MediaType,
  { name, bytes, isCut }: Pick<NestedBody, "name" | "bytes" | "isCut">,
): Tab[] {
  const charset = type.parameters.get("charset");
  const pretty = {
    json: (
      <JsonBody name={name} bytes={bytes} charset={charset} isCut={isCut} renderBody={renderBody} />
    ),
    form: <FormBody bytes={bytes} charset={charset} />,
    multipart: (
      <MultipartView
        bytes={bytes}
        boundary={type.parameters.get("boundary")}
        renderBody={renderBody}
      />
    ),
    image: <ImageView name={name} bytes={bytes} />,
    text: null,
    binary: null,
  }[kind];
  const raw = {
    id: "raw",
    title: "Raw",
    content: <TextView name={name} bytes={bytes} charset={charset} />,
  };
  const hex = { id: "hex", title: "Hex", content: <HexView name={name} bytes={bytes} /> };
  if (kind === "binary") return [hex, raw];
  if (pretty === null) return [raw, hex];
  return [{ id: "pretty", title: "Pretty", content: pretty }, raw, hex];
}

/** Never an extension that a double click would run. */
function getExtension(kind: ContentKind, { essence }: MediaType): string {
  if (kind === "json") return ".json";
  if (kind === "image") return `.${essence.slice("image/".length)}`;
  return kind === "text" || kind === "form" ? ".txt" : ".bin";
}
