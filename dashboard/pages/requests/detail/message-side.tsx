/** The request, or the response: body, query, headers and cookies. */
import type { CaptureDetail } from "../../../../protocol/schemas/inspector/captures.ts";
import { Section } from "../../../ui/section.tsx";
import { FIELDS_MAX, parseForm } from "../decode/form.ts";
import { MessageBody } from "./body/message-body.tsx";
import { FieldTable } from "./field-table.tsx";
import { Collapsible } from "./collapsible.tsx";
import { HeaderTable } from "./header-table.tsx";

interface MessageSideProps {
  title: string;
  request: CaptureDetail;
  side: "request" | "response";
  /** In little space the headers are collapsed at first. */
  isCompact: boolean;
}

export function MessageSide({ title, request, side, isCompact }: MessageSideProps) {
  return (
    <Section title={title}>
      <MessageBody request={request} side={side} />
      {side === "request" && request.query !== null && <QueryTable query={request.query} />}
      <HeaderTable request={request} side={side} isOpen={!isCompact} />
    </Section>
  );
}

function QueryTable({ query }: { query: string }) {
  const { fields, isCut } = parseForm(query);
  return (
    <Collapsible title="Query parameters" count={fields.length}>
      <FieldTable caption="Query parameters" rows={fields} />
      {isCut && <p className="hint">Only the first {FIELDS_MAX} are shown.</p>}
    </Collapsible>
  );
}
