/** The messages of a WebSocket, or the events of an event stream, in the order in which they were sent. */
import { useId, useMemo, useState } from "react";
import type { CaptureDetail } from "../../../../../protocol/schemas/inspector/captures.ts";
import { useQueryParameters, useSetQueryParameters } from "../../../../app/query-parameters.ts";
import { useTypedText } from "../../../../ui/forms/typed-text.ts";
import { formatBytes, formatCount, formatOffset } from "../../../../ui/numbers.ts";
import { Badge, Section } from "../../../../ui/section.tsx";
import { WindowedRows } from "../../../../ui/text/windowed-rows.tsx";
import {
  explainClose,
  filterStreamItems,
  listStreamItems,
  type StreamItem,
} from "../../decode/message-stream.ts";
import { VisitorText } from "../../../../ui/text/visitor-text.tsx";
import { BodyView } from "../body/body-view.tsx";

const ROW_HEIGHT_PX = 36;
const PREVIEW_CHARS = 200;

export function StreamTimeline({ request }: { request: CaptureDetail }) {
  const { messages: text = "", sender: from = "" } = useQueryParameters();
  const items = useMemo(() => listStreamItems(request), [request]);
  const shown = useMemo(() => filterStreamItems(items, { from, text }), [items, from, text]);
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  const isWebSocket = request.kind === "websocket";
  const total = isWebSocket ? request.frames_total : request.events_total;
  // Positions count from the first message, so that they stay the same while others arrive.
  const firstPosition = total - items.length;
  const positions = useMemo(() => new Map(items.map((item, index) => [item, index])), [items]);

  function toggle(position: number): void {
    const next = new Set(open);
    if (!next.delete(position)) next.add(position);
    setOpen(next);
  }

  return (
    <Section title={isWebSocket ? "Messages" : "Events"}>
      <StreamFilters isWebSocket={isWebSocket} />
      <p className="hint" role="note">
        {shown.length === items.length
          ? `${formatCount(items.length)} shown`
          : `${formatCount(shown.length)} of ${formatCount(items.length)} match`}
        {firstPosition > 0 && `, of ${formatCount(total)} in all: only these are stored`}
        {request.state === "open" && ". More appear as they arrive."}
      </p>
      {shown.length > 0 && (
        <WindowedRows
          className={isWebSocket ? "stream" : "stream events"}
          role="list"
          aria-label={isWebSocket ? "Messages" : "Events"}
          count={shown.length}
          rowHeight={ROW_HEIGHT_PX}
          isMeasured
          followsEnd={request.state === "open"}
          renderRow={(index) => {
            const item = shown[index];
            if (item === undefined) return null;
            const position = firstPosition + (positions.get(item) ?? 0);
            return (
              <StreamRow
                item={item}
                number={position + 1}
                isWebSocket={isWebSocket}
                isOpen={open.has(position)}
                onToggle={() => toggle(position)}
              />
            );
          }}
        />
      )}
    </Section>
  );
}

function StreamFilters({ isWebSocket }: { isWebSocket: boolean }) {
  const id = useId();
  const { messages = "", sender = "" } = useQueryParameters();
  const setParameters = useSetQueryParameters();
  const [typed, setTyped] = useTypedText(messages, (text) => setParameters({ messages: text }));
  return (
    <div className="stream-filters">
      <label className="hidden-text" htmlFor={`${id}-text`}>
        Filter by text
      </label>
      <input
        id={`${id}-text`}
        type="search"
        placeholder="Filter by text"
        value={typed}
        onChange={(event) => setTyped(event.currentTarget.value)}
      />
      {isWebSocket && (
        <>
          <label className="hidden-text" htmlFor={`${id}-from`}>
            Sender
          </label>
          <select
            id={`${id}-from`}
            value={sender}
            onChange={(event) => setParameters({ sender: event.currentTarget.value })}
          >
            <option value="">Both directions</option>
            <option value="client">From the visitor</option>
            <option value="server">From the server</option>
          </select>
        </>
      )}
    </div>
  );
}

interface StreamRowProps {
  item: StreamItem;
  number: number;
  isWebSocket: boolean;
  isOpen: boolean;
  onToggle: () => void;
}

function StreamRow({ item, number, isWebSocket, isOpen, onToggle }: StreamRowProps) {
  const { offsetMs, from, kind, size, bytes, text, close, eventId } = item;
  const sender = from === "client" ? "From the visitor" : "From the server";
  return (
    <div role="listitem" className={`stream-item ${from}`}>
      <button type="button" className="stream-line" aria-expanded={isOpen} onClick={onToggle}>
        <span className="stream-offset">+{formatOffset(Math.max(0, offsetMs))}</span>
        {isWebSocket && (
          <span className="stream-arrow" title={sender}>
            <span aria-hidden="true">{from === "client" ? "↑" : "↓"}</span>
            <span className="hidden-text">{sender}</span>
          </span>
        )}
        <bdi className="stream-kind">{kind.slice(0, PREVIEW_CHARS)}</bdi>
        <span className="stream-preview">
          <Preview item={item} />
        </span>
        <span className="stream-size">{formatBytes(size)}</span>
      </button>
      {isOpen && (
        <div className="stream-content">
          {eventId !== null && (
            <p className="hint">
              ID <bdi>{eventId.slice(0, PREVIEW_CHARS)}</bdi>
            </p>
          )}
          {close !== null ? (
            <p>
              <Badge>{close.code}</Badge> {explainClose(close.code)}.{" "}
              {close.reason !== "" && <VisitorText text={close.reason} />}
            </p>
          ) : (
            <>
              {bytes.length === 0 && (
                <p className="hint">
                  {size === 0 ? "Empty." : "Not stored: bodies were not captured for this tunnel."}
                </p>
              )}
              {bytes.length > 0 && bytes.length < size && (text === null || isWebSocket) && (
                <p className="hint">
                  The first {formatBytes(bytes.length)} of {formatBytes(size)}: the rest is not
                  stored.
                </p>
              )}
              {bytes.length > 0 && (
                <BodyView
                  name={`${isWebSocket ? "Message" : "Event"} ${formatCount(number)}`}
                  fileName={`message-${number}`}
                  bytes={bytes}
                  contentType={undefined}
                  isEncoded={false}
                  isCut={bytes.length < size}
                />
              )}
            </>
          )}
        </div>
      )}
    </div>
  );
}

function Preview({ item: { close, text, size } }: { item: StreamItem }) {
  if (close?.reason) {
    const reason = close.reason.slice(0, PREVIEW_CHARS).toWellFormed();
    return (
      <>
        {close.code} <VisitorText text={reason} />
      </>
    );
  }
  if (close !== null) return `${close.code} ${explainClose(close.code)}`;
  if (text === null) return `${formatCount(size)} bytes`;
  return <VisitorText text={text.slice(0, PREVIEW_CHARS).toWellFormed()} />;
}
