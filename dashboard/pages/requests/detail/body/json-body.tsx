/** JSON as a tree; broken JSON as text, with the position of the error. */
import { useMemo } from "react";
import { decodeText } from "../../decode/text.ts";
import { parseJsonTree } from "../../decode/json/json.ts";
import { JsonTree } from "./json-tree.tsx";
import type { RenderBody } from "./nested-body.ts";
import { TextLines } from "./text-view.tsx";

interface JsonBodyProps {
  name: string;
  bytes: Uint8Array;
  charset: string | undefined;
  isCut: boolean;
  renderBody: RenderBody;
}

export function JsonBody({ name, bytes, charset, isCut, renderBody }: JsonBodyProps) {
  const text = useMemo(() => decodeText(bytes, charset).text, [bytes, charset]);
  const result = useMemo(() => parseJsonTree(text), [text]);
  if ("value" in result)
    return <JsonTree name={name} root={result.value} renderBody={renderBody} />;
  const { message, line, column } = result.error;
  return (
    <>
      <p className="notice warning">
        {isCut
          ? "The JSON is incomplete, because bytes of the body are missing."
          : `This is not valid JSON. ${message}, in line ${line}, column ${column}.`}
      </p>
      <TextLines name={name} text={text} {...(!isCut && { marked: line })} />
    </>
  );
}
