/** The body of a request or a response, or why it is missing. */
import { Link } from "@tanstack/react-router";
import { useEffect, useMemo, useState } from "react";
import type { CaptureDetail } from "../../../../../protocol/schemas/inspector/captures.ts";
import { fromBase64 } from "../../../../../shared/bytes.ts";
import { isEventStream } from "../../../../../shared/raw-headers.ts";
import { useQueryParameters, useSetQueryParameters } from "../../../../app/query-parameters.ts";
import { formatBytes } from "../../../../ui/numbers.ts";
import { Skeleton } from "../../../../ui/feedback/skeleton.tsx";
import {
  decodeContent,
  DECODED_MAX_BYTES,
  type DecodedContent,
} from "../../decode/content-encoding.ts";
import { explainMissingBody } from "../../decode/missing-body.ts";
import { BodyView } from "./body-view.tsx";

interface MessageBodyProps {
  request: CaptureDetail;
  side: "request" | "response";
}

export function MessageBody({ request, side }: MessageBodyProps) {
  const parameter = `${side}_view`;
  const { [parameter]: view } = useQueryParameters();
  const setParameters = useSetQueryParameters();
  const headers = request[`${side}_headers`];
  const base64 = request[`${side}_body`];
  const bytes = useMemo(() => fromBase64(base64) ?? new Uint8Array(), [base64]);
  const content = useDecodedContent(bytes, headers["content-encoding"]);
  const missing = explainMissingBody(request, side, bytes.length);
  const isWebSocket = request.kind === "websocket" && request.status === 101;
  if (isWebSocket) return null;
  return (
    <div className="body">
      <h3>{side === "request" ? "Request body" : "Response body"}</h3>
      {missing !== null && (
        <p className="notice warning">
          {missing.text}{" "}
          {missing.isAboutSettings && (
            <Link
              to="/tunnels/$id"
              params={{ id: request.tunnel_id }}
              search={{ tab: "capturing" }}
            >
              Capture settings
            </Link>
          )}
        </p>
      )}
      {isCompressedEventStream(headers) && (
        <p className="hint">
          The events of a compressed stream are not listed one by one: this is the whole stream.
        </p>
      )}
      {content === null && <Skeleton lines={4} />}
      {content !== null && bytes.length > 0 && (
        <>
          <EncodingNote content={content} sentBytes={bytes.length} />
          <BodyView
            name={side === "request" ? "Request body" : "Response body"}
            fileName={`${request.id}-${side}`}
            bytes={content.bytes}
            contentType={headers["content-type"]}
            isEncoded={content.problem?.kind === "unsupported"}
            isCut={request.truncated[side] || content.problem !== null}
            view={view}
            onSelectView={(next) => setParameters({ [parameter]: next })}
          />
        </>
      )}
      {bytes.length === 0 && missing === null && <p className="hint">No body.</p>}
    </div>
  );
}

function isCompressedEventStream(headers: Record<string, string>): boolean {
  const { "content-type": type = "", "content-encoding": encoding } = headers;
  return isEventStream(type) && encoding !== undefined;
}

/** @returns null while it is being decompressed. */
function useDecodedContent(
  bytes: Uint8Array<ArrayBuffer>,
  contentEncoding: string | undefined,
): DecodedContent | null {
  const [decoded, setDecoded] = useState<{ from: Uint8Array; content: DecodedContent }>();
  const isPlain = contentEncoding === undefined || bytes.length === 0;
  useEffect(() => {
    if (isPlain) return;
    let isWanted = true;
    void decodeContent(bytes, contentEncoding).then((content) => {
      if (isWanted) setDecoded({ from: bytes, content });
    });
    return () => {
      isWanted = false;
    };
  }, [bytes, contentEncoding, isPlain]);
  const plain = useMemo(() => ({ bytes, codings: [], problem: null }), [bytes]);
  if (isPlain) return plain;
  return decoded?.from === bytes ? decoded.content : null;
}

function EncodingNote({ content, sentBytes }: { content: DecodedContent; sentBytes: number }) {
  const { codings, problem, bytes } = content;
  if (codings.length === 0 && problem === null) return null;
  return (
    <p className="hint">
      {codings.length > 0 &&
        `Decompressed (${codings.join(", ")}): ${formatBytes(sentBytes)} became ${formatBytes(bytes.length)}. `}
      {problem?.kind === "too_long" &&
        `It is longer: decompression was cut at ${formatBytes(DECODED_MAX_BYTES)}.`}
      {problem?.kind === "incomplete" &&
        `The compressed bytes end too early or are not valid ${problem.coding}: only what could be read is shown.`}
      {problem?.kind === "unsupported" &&
        `This browser can't decompress ${problem.coding}: these are the bytes as they were sent.`}
    </p>
  );
}
