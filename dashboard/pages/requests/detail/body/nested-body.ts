/** A body within a body: a part of a form, or a decoded value of a JSON document. */
import type { ReactNode } from "react";

export interface NestedBody {
  /** Names it for screen readers. */
  name: string;
  /** The name of the download, without an extension. */
  fileName: string;
  bytes: Uint8Array<ArrayBuffer>;
  contentType: string | undefined;
  /** Whether bytes are missing. */
  isCut: boolean;
}

/** Shows it as any other body. */
export type RenderBody = (body: NestedBody) => ReactNode;
