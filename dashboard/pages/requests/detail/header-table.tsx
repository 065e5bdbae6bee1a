/** The headers of a request or a response, with a filter. */
import { Link } from "@tanstack/react-router";
import { useId } from "react";
import type { CaptureDetail } from "../../../../protocol/schemas/inspector/captures.ts";
import { useQueryParameters, useSetQueryParameters } from "../../../app/query-parameters.ts";
import { CopyButton } from "../../../ui/copy.tsx";
import { useTypedText } from "../../../ui/forms/typed-text.ts";
import { Badge } from "../../../ui/section.tsx";
import { parseCookies, parseResponseCookies } from "../decode/cookies.ts";
import { isRedacted } from "../decode/redacted.ts";
import { FieldTable, type FieldTableRow } from "./field-table.tsx";
import { Collapsible } from "./collapsible.tsx";
import { usePolicyHeaders } from "./policy-headers.ts";

/** With fewer headers a filter does not help. */
const FILTERED_MIN_HEADERS = 8;

interface HeaderTableProps {
  request: CaptureDetail;
  side: "request" | "response";
  isOpen: boolean;
}

export function HeaderTable({ request, side, isOpen }: HeaderTableProps) {
  const headers = request[`${side}_headers`];
  const policyHeaders = usePolicyHeaders(request);
  const filterId = useId();
  const parameter = `${side}_headers`;
  const { [parameter]: filter = "" } = useQueryParameters();
  const setParameters = useSetQueryParameters();
  const [typed, setTyped] = useTypedText(filter, (text) => setParameters({ [parameter]: text }));
  const entries = Object.entries(headers);
  const lines = entries.flatMap(([name, value]) =>
    value.split("\n").map((line) => `${name}: ${line}`),
  );
  const wanted = filter.toLowerCase();
  const rows = entries
    .filter((entry) => entry.some((text) => text.toLowerCase().includes(wanted)))
    .map(([name, value]): FieldTableRow => {
      const isSetByPolicy = side === "request" && policyHeaders.has(name);
      if (isRedacted(value)) return { name, value: "", note: <Badge>redacted: not stored</Badge> };
      return isSetByPolicy
        ? { name, value, note: <PolicyLink id={request.tunnel_id} /> }
        : { name, value };
    });
  return (
    <>
      <Collapsible
        title={`${side === "request" ? "Request" : "Response"} headers`}
        count={entries.length}
        isOpen={isOpen}
        actions={
          entries.length > 0 && (
            <CopyButton text={lines.join("\n")} label={`Copy all ${side} headers`} kind="quiet" />
          )
        }
      >
        {entries.length >= FILTERED_MIN_HEADERS && (
          <div className="header-filter">
            <label className="hidden-text" htmlFor={filterId}>
              Filter the {side} headers
            </label>
            <input
              id={filterId}
              type="search"
              placeholder="Filter the headers"
              value={typed}
              onChange={(event) => setTyped(event.currentTarget.value)}
            />
          </div>
        )}
        {rows.length > 0 && <FieldTable caption={`Headers of the ${side}`} rows={rows} />}
        {rows.length === 0 && (
          <p className="hint">
            {entries.length === 0 ? explainNone(request, side) : "No header matches."}
          </p>
        )}
      </Collapsible>
      <Cookies headers={headers} />
    </>
  );
}

function explainNone({ truncated }: CaptureDetail, side: HeaderTableProps["side"]): string {
  if (!truncated[`${side}_head`]) return "No headers.";
  const reason =
    "were not stored: too many requests or responses had large ones, or the tunnel captured too much.";
  if (side === "response") return `The headers ${reason}`;
  return `The headers and the end of a long path ${reason} The request can't be replayed.`;
}

function PolicyLink({ id }: { id: string }) {
  return (
    <Link to="/tunnels/$id" params={{ id }} search={{ tab: "policy" }}>
      set by the traffic policy
    </Link>
  );
}

/** The cookies of a request, or those that a response sets. */
function Cookies({ headers }: { headers: Record<string, string> }) {
  const { cookie, "set-cookie": setCookie } = headers;
  const rows: FieldTableRow[] = [];
  if (cookie !== undefined && !isRedacted(cookie)) rows.push(...parseCookies(cookie));
  if (setCookie !== undefined && !isRedacted(setCookie)) {
    const cookies = parseResponseCookies(setCookie);
    rows.push(
      ...cookies.map(({ attributes, ...field }) => ({
        ...field,
        ...(attributes !== "" && { note: attributes }),
      })),
    );
  }
  if (rows.length === 0) return null;
  return (
    <Collapsible title="Cookies" count={rows.length}>
      <FieldTable caption="Cookies" rows={rows} />
    </Collapsible>
  );
}
