/** The JSON Web Tokens in a text: their header and their claims. */
import { useMemo } from "react";
import { RelativeTime } from "../../../ui/time.tsx";
import { isContainer, type JsonContainer, type JsonValue } from "../decode/json/json.ts";
import { formatJson } from "../decode/json/json-format.ts";
import { findJsonWebTokens, type JsonWebToken, type TokenTime } from "../decode/json-web-token.ts";
import { LongText } from "./long-text.tsx";
import { PreciseTime } from "./precise-time.tsx";

const TIME_LABELS: Record<TokenTime["claim"], string> = {
  iat: "Issued",
  nbf: "Valid from",
  exp: "Expires",
};

export function JsonWebTokenDetails({ text }: { text: string }) {
  const tokens = useMemo(() => findJsonWebTokens(text), [text]);
  return tokens.map((token, index) => <Token key={index} token={token} />);
}

function Token({ token: { header, claims, times } }: { token: JsonWebToken }) {
  return (
    <details className="web-token">
      <summary>
        JSON Web Token <span className="hint">decoded, signature not verified</span>
      </summary>
      {times.length > 0 && (
        <ul className="token-times">
          {times.map(({ claim, timestamp }) => (
            <li key={claim}>
              {TIME_LABELS[claim]} <RelativeTime timestamp={timestamp} />{" "}
              <span className="hint">
                (<PreciseTime timestamp={timestamp} />)
              </span>
            </li>
          ))}
        </ul>
      )}
      <Fields title="Header" object={header} />
      <Fields title="Claims" object={claims} />
    </details>
  );
}

const FIELDS_SHOWN = 100;
const NAME_SHOWN_CHARS = 60;

function Fields({ title, object }: { title: string; object: JsonContainer }) {
  return (
    <>
      <h4>{title}</h4>
      <dl>
        {object.entries.slice(0, FIELDS_SHOWN).map(({ key, value }, index) => (
          <div key={index}>
            <dt>
              <LongText text={String(key)} maxChars={NAME_SHOWN_CHARS} />
            </dt>
            <dd>
              <LongText text={formatValue(value)} />
            </dd>
          </div>
        ))}
      </dl>
    </>
  );
}

function formatValue(value: JsonValue): string {
  return isContainer(value) ? formatJson(value) : value.text;
}
